//! A line long enough that its front is forgotten: numbers go on, nobody alive is lost.

use qm_core::address::{AddressDigest, AgentDigest};
use qm_core::digest::Digest16;
use qm_core::id::{Place, RoomId};
use qm_core::room::{
    Claim, Client, Command, EndReason, Fact, Family, Join, Outcome, Settings, Standing,
};
use qm_core::time::TimeMs;

use crate::check;
use crate::engine::{Engine, Plant};
use crate::random::Random;

const START: TimeMs = TimeMs(1_700_000_000_000);

fn join(owner: Digest16, places: Vec<Place>, fresh_owner: Option<Digest16>) -> Command {
    let client = Client { family: Family::V4, address: AddressDigest(7), agent: AgentDigest(7) };
    let claim = Claim { places, owners: vec![owner] };
    Command::Join(Join { claim, fresh_owner, client, pre_queue_max: 0 })
}

#[test]
fn the_front_of_a_long_line_is_forgotten_and_nobody_alive() {
    let mut settings = Settings::new(&RoomId::parse("sale").unwrap(), START);
    settings.queue_max_per_address = None;
    settings.presence_seconds = None;
    let mut engine = Engine::new(settings, START, Plant::Nothing);
    let mut random = Random::new(1);
    let owners: Vec<Digest16> = (0..3000).map(|_| random.digest()).collect();
    for owner in &owners {
        engine.run(&join(*owner, vec![], Some(*owner)), START, &[0; 32]);
    }
    engine.run(&Command::SetState(qm_core::room::config::RoomState::Paused), START, &[0; 32]);
    engine.run(&Command::Flush { count: 2500 }, START, &[0; 32]);
    let late = START.plus_seconds(700);
    let mut forgotten = vec![];
    for second in 0..10 {
        engine.room = engine.room.clone();
        // The passes run out at the first tick; they are remembered from there on.
        let tick = Command::Tick { retain_ms: 100_000 };
        let ran = engine.run(&tick, late.plus_seconds(second * 40), &[0; 32]);
        forgotten.extend(ran.events.iter().filter_map(|event| match event.fact {
            Fact::Forgotten { up_to } => Some((second, up_to)),
            _ => None,
        }));
    }
    assert_eq!(forgotten, [(3, 1024), (4, 2048)]);
    let late = late.plus_seconds(400);
    let standing = |n| engine.room.standing(Place::Ticket(n), &engine.presence, late);
    assert_eq!(standing(1), Standing::Ended(EndReason::PassExpired));
    assert_eq!(standing(2500), Standing::Ended(EndReason::PassExpired));
    assert_eq!(standing(2501), Standing::Waiting { n: 2501 });
    assert_eq!(standing(3001), Standing::Unknown);
    check::replay(&engine).unwrap();
    for (n, owner) in (1u64..).zip(&owners).skip(2500) {
        assert_eq!(engine.room.position(n), Some(n - 2500));
        let ran = engine.run(&join(*owner, vec![], None), late, &[0; 32]);
        let place = Place::Ticket(n);
        assert_eq!(ran.result, Ok(Outcome::Placed { place, owner_index: Some(0) }));
        assert_eq!(engine.presence.last_seen(n), Some(START));
    }
    let newcomer = random.digest();
    let ran = engine.run(&join(newcomer, vec![Place::Ticket(1)], Some(newcomer)), late, &[0; 32]);
    let place = Place::Ticket(3001);
    assert_eq!(ran.result, Ok(Outcome::Placed { place, owner_index: None }));
}
