//! Ticking exactly when told misses nothing: the same script with a tick every 10 ms writes the
//! same log. Everything in the script falls on the 10 ms grid, so the two must agree exactly.

use qm_core::address::{AddressDigest, AgentDigest};
use qm_core::digest::Digest16;
use qm_core::door::{Channel, Knock, Shown};
use qm_core::id::{Place, RoomId};
use qm_core::room::config::{Rate, RoomState, Settings};
use qm_core::room::patch::Patch;
use qm_core::room::{Claim, Client, Command, Event, Fact, Family, Join, ms_until_due};
use qm_core::time::TimeMs;

use crate::engine::{Engine, Plant};
use crate::random::Random;

const START: TimeMs = TimeMs(1_700_000_000_000);
const TICK: Command = Command::Tick { retain_ms: u64::MAX };

fn settings(random: &mut Random) -> Settings {
    Settings {
        rate: Rate::new(random.pick(&[60.0, 600.0, 6000.0])).unwrap(),
        max_concurrent: random.pick(&[None, Some(3), Some(10)]),
        passed_ttl_seconds: 3,
        session_ttl_seconds: 2,
        session_max_seconds: Some(5),
        presence_seconds: None,
        queue_max_per_address: None,
        opens_at: random.pick(&[None, Some(START.plus_ms(4_210))]),
        ..Settings::new(&RoomId::parse("sale").unwrap(), START)
    }
}

/// The rate moves between one value and zero only: a fraction earned at one rate would be due
/// beside the grid at another.
fn command(random: &mut Random, issued: u64, rate: Rate) -> Command {
    let client = Client {
        family: Family::V4,
        address: AddressDigest(7),
        agent: AgentDigest(random.below(9)),
    };
    match random.below(20) {
        0..10 => Command::Join(Join {
            claim: Claim::default(),
            fresh_owner: None,
            client,
            pre_queue_max: 100,
        }),
        10..16 => Command::Enter {
            knock: Knock {
                shown: Shown::Place(Place::Ticket(random.between(1, issued + 1))),
                owners: vec![],
                channel: Channel::Direct { client, key: None },
            },
            fresh_key: Digest16([1; 16]),
        },
        16 => Command::Flush { count: random.below(4) },
        17 => Command::Eject { ticket: random.between(1, issued + 1) },
        18 => Command::SetState(random.pick(&[
            RoomState::Active,
            RoomState::Active,
            RoomState::Paused,
        ])),
        _ => {
            let rate = random.pick(&[Rate::new(0.0), Some(rate), Some(rate)]);
            Command::Configure(Box::new(Patch { rate, ..Patch::default() }))
        }
    }
}

fn script(random: &mut Random, rate: Rate) -> Vec<(TimeMs, Command)> {
    let (mut at, mut issued) = (START, 0);
    let mut next = |_| {
        at = at.plus_ms(random.pick(&[0, 10, 50, 210, 1000]));
        let command = command(random, issued, rate);
        issued += u64::from(matches!(command, Command::Join(_)));
        (at, command)
    };
    (0..120).map(&mut next).collect()
}

/// Entropy that depends on the moment only, so that both runs draw alike.
fn entropy(now: TimeMs, command: &Command) -> [u8; 32] {
    Random::new(now.0 + u64::from(matches!(command, Command::Tick { .. }))).octets()
}

fn run_script(settings: &Settings, script: &[(TimeMs, Command)], exact: bool) -> Vec<Event> {
    let mut engine = Engine::new(settings.clone(), START, Plant::Nothing);
    let mut now = START;
    let end = script.last().map_or(START, |(at, _)| at.plus_seconds(60));
    let idle = (end, TICK);
    for (at, command) in script.iter().chain([&idle]) {
        loop {
            let told = ms_until_due(&engine.room, &engine.presence, now);
            let wait = if exact { told.unwrap_or(u64::MAX) } else { 10 };
            if now.plus_ms(wait) > *at {
                break;
            }
            now = now.plus_ms(wait);
            let events = engine.run(&TICK, now, &entropy(now, &TICK)).events;
            assert!(wait > 0 || !events.is_empty(), "told to tick at once for nothing");
            if !exact && events.iter().any(|event| matches!(event.fact, Fact::Drawn { .. })) {
                // Releases follow a draw with the next tick, which is told for at once.
                engine.run(&TICK, now, &entropy(now, &TICK));
            }
        }
        now = *at;
        engine.run(command, now, &entropy(now, command));
        if !exact {
            engine.run(&TICK, now, &entropy(now, &TICK));
        }
    }
    engine.log
}

#[test]
fn ticking_when_told_equals_ticking_all_the_time() {
    for seed in 1..=40 {
        let mut random = Random::new(seed);
        let settings = settings(&mut random);
        let script = script(&mut random, settings.rate);
        let told = run_script(&settings, &script, true);
        let always = run_script(&settings, &script, false);
        let differ = told.iter().zip(&always).find(|(told, always)| told != always);
        assert_eq!(differ, None, "seed {seed}");
        assert_eq!(told.len(), always.len(), "seed {seed}");
    }
}
