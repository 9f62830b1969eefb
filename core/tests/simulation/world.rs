//! The visitors, operators and clock around one room: what happens next is drawn from the seed,
//! done to the engine and to the model, and compared.

use std::collections::{BTreeSet, VecDeque};

use qm_core::address::{AddressDigest, AgentDigest};
use qm_core::digest::Digest16;
use qm_core::door::{Channel, Knock, Shown, Verdict};
use qm_core::id::{Place, RoomId};
use qm_core::room::config::{Rate, RoomState, Settings};
use qm_core::room::patch::Patch;
use qm_core::room::{
    Claim, Client, Command, Event, Fact, Family, Join, Outcome, Ran, Refusal, Standing,
    ms_until_due,
};
use qm_core::time::TimeMs;

use crate::check::{self, RateWatch};
use crate::engine::{Engine, Plant};
use crate::model::Model;
use crate::random::Random;

const START: TimeMs = TimeMs(1_700_000_000_123);
const STEPS: usize = 260;
/// Forty steps; most leave two notes.
const TRAIL: usize = 80;
const RATES: [f64; 9] = [0.0, 0.5, 30.0, 60.0, 90.5, 600.0, 1_234.567_891, 6000.0, 1_000_000.0];

/// A broken rule and how it came to be.
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) step: usize,
    pub(crate) what: String,
    pub(crate) trail: Vec<String>,
}

#[derive(Clone)]
struct Visitor {
    client: Client,
    owner: Option<Digest16>,
    place: Option<Place>,
    key: Option<Digest16>,
    here: bool,
}

struct World {
    random: Random,
    now: TimeMs,
    /// Ticks come exactly when the engine asks for them.
    exact: bool,
    engine: Engine,
    model: Model,
    watch: RateWatch,
    visitors: Vec<Visitor>,
    trail: VecDeque<(TimeMs, Note)>,
    seen: Seen,
}

/// A line of the trail; most are never printed, so they are kept as they are.
enum Note {
    Asked(Command),
    Happened(Ran),
    Heartbeat,
}

impl Note {
    fn print(&self, at: TimeMs) -> String {
        let at = at.ms_since(START);
        match self {
            Self::Asked(command) => format!("{at:>6} ms  {command:?}"),
            Self::Happened(ran) => format!("{at:>6} ms    {:?} {:?}", ran.result, ran.events),
            Self::Heartbeat => format!("{at:>6} ms  heartbeat"),
        }
    }
}

/// What happened at all, by name: a run that never gets somewhere proves nothing about it.
pub(crate) type Seen = BTreeSet<&'static str>;

/// Runs one seed.
pub(crate) fn simulate(seed: u64, plant: Plant) -> Result<Seen, Failure> {
    let mut world = World::new(seed, plant);
    for step in 0..STEPS {
        if let Err(what) = world.step(step) {
            let trail = world.trail.iter().map(|(at, note)| note.print(*at)).collect();
            return Err(Failure { seed, step, what, trail });
        }
    }
    Ok(world.seen)
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Admit { .. } => "door: admitted",
        Verdict::Reclaim { .. } => "door: reclaimed",
        Verdict::Session { .. } => "door: session",
        Verdict::Queue { reason, .. } => reason,
    }
}

impl World {
    fn new(seed: u64, plant: Plant) -> Self {
        let mut random = Random::new(seed);
        let mut settings = Settings::new(&RoomId::parse("sale").unwrap(), START);
        settings.rate = Rate::new(random.pick(&RATES)).unwrap();
        settings.max_concurrent = random.pick(&[None, Some(1), Some(4), Some(9)]);
        settings.passed_ttl_seconds = random.pick(&[1, 4, 20]);
        settings.session_ttl_seconds = random.pick(&[1, 5, 30]);
        settings.session_max_seconds = random.pick(&[None, Some(30), Some(60)]);
        settings.presence_seconds = random.pick(&[None, Some(5), Some(9)]);
        settings.queue_max_per_address = random.pick(&[None, Some(1), Some(3), Some(16)]);
        settings.pre_queue_max_per_address = random.pick(&[None, Some(1), Some(3), Some(16)]);
        settings.opens_at = random.pick(&[None, None, Some(START.plus_ms(7_777))]);
        let addresses = random.between(2, 12);
        let visitors = (0..random.between(4, 40))
            .map(|_| Visitor {
                client: client(&mut random, addresses),
                owner: None,
                place: None,
                key: None,
                here: true,
            })
            .collect();
        let exact = random.percent(50);
        Self {
            now: START,
            exact,
            engine: Engine::new(settings.clone(), START, plant),
            watch: RateWatch::new(settings.rate),
            model: Model::new(settings, START),
            visitors,
            trail: VecDeque::new(),
            seen: Seen::new(),
            random,
        }
    }

    fn step(&mut self, step: usize) -> Result<(), String> {
        self.advance()?;
        self.act()?;
        check::counters(&self.engine, &self.model, self.now)?;
        for _ in 0..4 {
            let issued = self.model.next_ticket();
            let place = Place::Ticket(self.random.below(issued + 1));
            check::place(&self.engine, &self.model, place, self.now)?;
        }
        if self.random.percent(30) {
            check::told_in_time(&self.engine, self.now, &mut self.random)?;
        }
        if step % 16 == 15 {
            check::everything(&self.engine, &self.model, self.now)?;
        }
        if step % 128 == 127 || step + 1 == STEPS {
            check::replay(&self.engine)?;
            // A copy of a room is as good as the room, and so is one from a snapshot.
            self.engine.room = if self.random.percent(50) {
                self.engine.room.clone()
            } else {
                check::restored(&self.engine)?
            };
            self.engine.presence = self.engine.presence.clone();
        }
        Ok(())
    }

    fn note(&mut self, note: Note) {
        if self.trail.len() == TRAIL {
            self.trail.pop_front();
        }
        self.trail.push_back((self.now, note));
    }

    // The clock.

    fn advance(&mut self) -> Result<(), String> {
        let pause = match self.random.below(20) {
            0..6 => 0,
            6..14 => self.random.between(1, 120),
            14..19 => self.random.between(120, 2_500),
            _ => self.random.between(2_500, 30_000),
        };
        let target = self.now.plus_ms(pause);
        let mut ticks = 0;
        while self.exact && ticks < 25 {
            let told = ms_until_due(&self.engine.room, &self.engine.presence, self.now);
            let Some(at) = told.map(|ms| self.now.plus_ms(ms)).filter(|at| *at <= target) else {
                break;
            };
            self.now = at;
            let ran = self.run(&Command::Tick { retain_ms: u64::MAX })?;
            if told == Some(0) && ran.events.is_empty() {
                return Err("told to tick at once for nothing".into());
            }
            ticks += 1;
        }
        self.now = target;
        if !self.exact && self.random.percent(70) {
            let retain_ms = self.random.pick(&[0, 1000, u64::MAX]);
            self.run(&Command::Tick { retain_ms })?;
        }
        Ok(())
    }

    // One command, done to both.

    fn run(&mut self, command: &Command) -> Result<Ran, String> {
        self.note(Note::Asked(command.clone()));
        let (head, draws) = (self.engine.room.head(), self.model.draw_due(self.now));
        let entropy = self.random.octets();
        let told = self.rehearse(command, &entropy)?;
        let ran = self.engine.run(command, self.now, &entropy);
        if told.is_some_and(|told| told != ran.events) {
            return Err(format!("rehearsed otherwise than done: {:?}", ran.events));
        }
        self.note(Note::Happened(Ran { events: ran.events.clone(), result: ran.result.clone() }));
        for (index, event) in (1..).zip(&ran.events) {
            if event.seq != head + index || event.at != self.now {
                return Err(format!("event {event:?} after {head} at {:?}", self.now));
            }
            self.watch.saw(event, &self.engine.room)?;
            self.seen.insert(event.fact.name());
            if let Fact::Forgotten { up_to } = event.fact {
                self.model.forgotten = up_to;
            }
        }
        match ran.result {
            Ok(Outcome::Door { verdict, .. }) => drop(self.seen.insert(name(verdict))),
            Err(Refusal::QueueAddressLimit) => drop(self.seen.insert("queue limit")),
            Err(Refusal::PreQueueAddressLimit) => drop(self.seen.insert("pre-queue limit")),
            Err(Refusal::PreQueueFull) => drop(self.seen.insert("pre-queue full")),
            Err(Refusal::Settings(_)) => drop(self.seen.insert("settings refused")),
            _ => {}
        }
        let mut seeds = ran.events.iter().filter_map(|event| match event.fact {
            Fact::Drawn { seed, .. } => Some(seed),
            _ => None,
        });
        let ticks = matches!(command, Command::Tick { .. });
        if ticks || (draws && !matches!(command, Command::Purge)) {
            self.model.tick(self.now, seeds.next())?;
        }
        if !ticks {
            self.model.follow(command, self.now, &ran.result)?;
        }
        if matches!(command, Command::Configure(_)) && self.model.draw_due(self.now) {
            let seed = seeds.next().ok_or("clearing the schedule draws at once")?;
            self.model.draw(&seed);
        }
        if seeds.next().is_some() { Err("drawn without need".into()) } else { Ok(ran) }
    }

    /// Now and then what is to be done is rehearsed, with more to follow or alone; what it told.
    fn rehearse(
        &mut self,
        command: &Command,
        entropy: &[u8; 32],
    ) -> Result<Option<Vec<Event>>, String> {
        if !self.random.percent(25) {
            return Ok(None);
        }
        let alone = self.random.percent(50) && self.engine.is_sound();
        let tick = Command::Tick { retain_ms: 1000 };
        let flush = Command::Flush { count: 5 };
        let commands = [command, &flush, &tick, &Command::Purge, &tick];
        let length = if alone { 1 } else { self.random.between(1, 5) as usize };
        let told = self.engine.rehearse(&commands[..length], self.now, entropy)?;
        Ok(alone.then_some(told))
    }

    // What visitors and operators do.

    fn act(&mut self) -> Result<(), String> {
        let index = self.random.index(self.visitors.len());
        match self.random.below(100) {
            0..30 => self.join(index),
            30..33 => self.foreign_join(index),
            33..36 => self.leave(index),
            36..46 => self.heartbeat(),
            46..50 => {
                self.visitors[index].here = self.random.percent(60);
                Ok(())
            }
            50..80 => self.knock(index),
            80..84 => self.foreign_knock(index),
            84..86 => self.ownerless_join(),
            _ => self.operate(),
        }
    }

    fn join(&mut self, index: usize) -> Result<(), String> {
        let fresh = self.random.digest();
        if self.random.percent(15) {
            self.visitors[index].client = client(&mut self.random, 12);
        }
        let visitor = self.visitors[index].clone();
        let shows_token = self.random.percent(85);
        let mut owners: Vec<Digest16> = visitor.owner.into_iter().collect();
        if self.random.percent(10) {
            owners.insert(0, self.random.digest());
        }
        let places = visitor.place.filter(|_| shows_token).into_iter().collect();
        let claim = Claim { places, owners };
        let pre_queue_max = self.random.pick(&[6, 1000]);
        let join = Join { claim, fresh_owner: Some(fresh), client: visitor.client, pre_queue_max };
        let ran = self.run(&Command::Join(join))?;
        if let Ok(Outcome::Placed { place, owner_index }) = ran.result
            && place != Place::Ticket(0)
        {
            let visitor = &mut self.visitors[index];
            visitor.place = Some(place);
            if owner_index.is_none() {
                visitor.owner = Some(fresh);
            }
            self.tell(place, self.now);
        }
        Ok(())
    }

    /// The answer tells the owner where they stand: seen, and told of a pass.
    fn tell(&mut self, place: Place, now: TimeMs) {
        let standing = self.engine.room.standing(place, &self.engine.presence, self.now);
        match standing {
            Standing::Waiting { n } => {
                self.engine.presence.saw_ticket(n, now, false);
                self.model.saw(Place::Ticket(n), now, false);
            }
            Standing::Passed { n, .. } | Standing::Admitted { n, .. } => {
                // An instance that has not heard of the release yet still sees the owner.
                let told = self.random.percent(80);
                self.engine.presence.saw_ticket(n, now, told);
                self.model.saw(Place::Ticket(n), now, told);
            }
            Standing::PreQueued { q } => {
                self.engine.presence.saw_reference(q, now);
                self.model.saw(place, now, false);
            }
            Standing::Ended(_) | Standing::Unknown => {}
        }
    }

    /// Somebody with another's token and no proof, or a made-up one: never gets that place.
    fn foreign_join(&mut self, index: usize) -> Result<(), String> {
        let Some(place) = self.visitors[index].place else { return Ok(()) };
        if self.model.owner_of(place).is_none() {
            return Ok(());
        }
        let owners = if self.random.percent(50) { vec![self.random.digest()] } else { vec![] };
        let join = Join {
            claim: Claim { places: vec![place], owners },
            fresh_owner: Some(self.random.digest()),
            client: client(&mut self.random, 12),
            pre_queue_max: 1000,
        };
        let ran = self.run(&Command::Join(join))?;
        match ran.result {
            Ok(Outcome::Placed { place: got, owner_index }) => {
                if got == place || owner_index.is_some() {
                    return Err(format!("a stranger got {got:?}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn ownerless_join(&mut self) -> Result<(), String> {
        let client = client(&mut self.random, 4);
        let claim = Claim::default();
        let join = Join { claim, fresh_owner: None, client, pre_queue_max: 1000 };
        self.run(&Command::Join(join)).map(drop)
    }

    fn leave(&mut self, index: usize) -> Result<(), String> {
        let visitor = self.visitors[index].clone();
        let Some(place) = visitor.place else { return Ok(()) };
        let own = self.random.percent(70);
        let owners = if own { visitor.owner.into_iter().collect() } else { vec![] };
        let claim = Claim { places: vec![place], owners };
        let before = self.model.standing(place, self.now);
        let ran = self.run(&Command::Leave(claim))?;
        let over = matches!(before, Standing::Ended(_));
        if !own && !over && ran.result != Err(Refusal::NotOwner) {
            return Err(format!("a stranger left {place:?}: {:?}", ran.result));
        }
        Ok(())
    }

    /// The open pages of everybody who is here, some by an instance whose clock is behind.
    fn heartbeat(&mut self) -> Result<(), String> {
        self.note(Note::Heartbeat);
        let places: Vec<Place> =
            self.visitors.iter().filter(|v| v.here).filter_map(|v| v.place).collect();
        for place in places {
            let behind = if self.random.percent(10) { self.random.below(700) } else { 0 };
            let now = TimeMs(self.now.0.saturating_sub(behind).max(START.0));
            self.tell(place, now);
        }
        Ok(())
    }

    fn knock(&mut self, index: usize) -> Result<(), String> {
        let visitor = self.visitors[index].clone();
        let shown = match (visitor.place, self.random.below(20)) {
            (_, 0) => Shown::Nothing,
            (_, 1) => Shown::Useless,
            (_, 2) => Shown::Outdated,
            (Some(place), _) => Shown::Place(place),
            (None, _) => Shown::Place(Place::Ticket(self.random.below(5))),
        };
        let mut from = visitor.client;
        if self.random.percent(10) {
            from = client(&mut self.random, 12);
        }
        let key = match self.random.below(10) {
            0 => Some(self.random.digest()),
            1 | 2 => None,
            _ => visitor.key,
        };
        let owners = visitor.owner.filter(|_| self.random.percent(40)).into_iter().collect();
        let channel = if self.random.percent(25) {
            Channel::Vouched { client: from }
        } else {
            Channel::Direct { client: from, key }
        };
        let fresh_key = self.random.digest();
        let knock = Knock { shown, owners, channel };
        let ran = self.run(&Command::Enter { knock, fresh_key })?;
        if let Ok(Outcome::Door { verdict, key_issued }) = ran.result {
            if key_issued {
                self.visitors[index].key = Some(fresh_key);
            }
            if let Verdict::Session { n } = verdict {
                self.engine.presence.touch(n, self.now);
            }
        }
        Ok(())
    }

    /// Another address, no proof, no key: with a token that leaked.
    fn foreign_knock(&mut self, index: usize) -> Result<(), String> {
        let Some(place) = self.visitors[index].place else { return Ok(()) };
        if self.model.owner_of(place).is_none() {
            return Ok(());
        }
        let stranger = Client {
            family: Family::V4,
            address: AddressDigest(999),
            agent: AgentDigest(self.random.below(3)),
        };
        let key = if self.random.percent(50) { Some(self.random.digest()) } else { None };
        let knock = Knock {
            shown: Shown::Place(place),
            owners: vec![self.random.digest()],
            channel: Channel::Direct { client: stranger, key },
        };
        let fresh_key = self.random.digest();
        let ran = self.run(&Command::Enter { knock, fresh_key })?;
        match ran.result {
            Ok(Outcome::Door { verdict: Verdict::Queue { .. }, key_issued: false }) => Ok(()),
            other => Err(format!("a stranger at the door of {place:?}: {other:?}")),
        }
    }

    fn operate(&mut self) -> Result<(), String> {
        let issued = self.model.next_ticket();
        let command = match self.random.below(14) {
            0..2 => Command::Flush { count: self.random.below(6) },
            2..4 => Command::Eject { ticket: self.random.below(issued + 2) },
            4 if self.random.percent(30) => Command::Purge,
            5..7 => Command::SetState(self.random.pick(&[
                RoomState::Active,
                RoomState::Active,
                RoomState::Active,
                RoomState::Paused,
                RoomState::Bypass,
            ])),
            _ => Command::Configure(Box::new(self.patch())),
        };
        self.run(&command).map(drop)
    }

    fn patch(&mut self) -> Patch {
        let mut patch = Patch::default();
        for _ in 0..self.random.between(1, 2) {
            match self.random.below(11) {
                0..3 => patch.rate = Rate::new(self.random.pick(&RATES)),
                3 => patch.max_concurrent = Some(self.random.pick(&[None, Some(1), Some(5)])),
                4 => patch.passed_ttl_seconds = Some(self.random.pick(&[1, 3, 20])),
                5 => patch.session_ttl_seconds = Some(self.random.pick(&[1, 6, 30])),
                6 => patch.session_max_seconds = Some(self.random.pick(&[None, Some(5), Some(60)])),
                7 => patch.presence_seconds = Some(self.random.pick(&[None, Some(5), Some(11)])),
                8 => patch.queue_max_per_address = Some(self.random.pick(&[None, Some(2)])),
                9 => patch.pre_queue_max_per_address = Some(self.random.pick(&[None, Some(2)])),
                _ => {
                    let ahead = self.now.plus_ms(self.random.between(1, 9_000));
                    let past = TimeMs(self.now.0 - 5);
                    let times = [None, Some(ahead), Some(ahead), Some(past), Some(self.now)];
                    patch.opens_at = Some(self.random.pick(&times));
                }
            }
        }
        if self.random.percent(10) {
            patch.state = Some(self.random.pick(&[RoomState::Active, RoomState::Paused]));
        }
        patch
    }
}

/// Addresses are shared, as behind one office; agents too.
fn client(random: &mut Random, addresses: u64) -> Client {
    let family = if random.percent(70) { Family::V4 } else { Family::V6 };
    let address = AddressDigest(random.between(1, addresses) * 2 + u64::from(family == Family::V6));
    Client { family, address, agent: AgentDigest(random.below(3)) }
}
