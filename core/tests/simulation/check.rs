//! What must hold after every step, whatever was done: the engine against the model, and rules
//! that need no model (order, rate, replay).

use qm_core::id::Place;
use qm_core::room::config::Rate;
use qm_core::room::{
    Command, Event, Fact, Presence, Room, Snapshot, Standing, decide, ms_until_due,
};
use qm_core::time::TimeMs;

use crate::engine::Engine;
use crate::model::Model;
use crate::random::Random;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, engine: T, model: T) -> Result<(), String> {
    if engine == model {
        Ok(())
    } else {
        Err(format!("{what}: engine {engine:?}, model {model:?}"))
    }
}

/// The counters of a room, compared after every step.
pub(crate) fn counters(engine: &Engine, model: &Model, now: TimeMs) -> Result<(), String> {
    let room = &engine.room;
    same("next ticket", room.next_ticket(), model.next_ticket())?;
    same("waiting", room.waiting(), model.waiting())?;
    same("pre-queue", room.pre_queued(), model.pre_waiting())?;
    same("passes unused", room.passes_unused(), model.unused())?;
    same("sessions", room.sessions(), model.inside())?;
    same("slots used", room.slots_used(), model.slots_used())?;
    same("draw due", room.draw_is_due(now), model.draw_due(now))?;
    same("settings", room.settings(), &model.rules)?;
    same("front", room.front(), model.front())
}

/// One place: where it stands, its position, whose it is.
pub(crate) fn place(
    engine: &Engine,
    model: &Model,
    place: Place,
    now: TimeMs,
) -> Result<(), String> {
    let room = &engine.room;
    let standing = room.standing(place, &engine.presence, now);
    same(&format!("{place:?}"), standing, model.standing(place, now))?;
    if let Standing::Waiting { n } = standing {
        same(&format!("position of {n}"), room.position(n), model.position(n))?;
        same("joined at", room.joined_at(n), model.tickets.get(&n).map(|t| t.joined_at))?;
    }
    match model.owner_of(place) {
        Some(owner) if !matches!(standing, Standing::Ended(_)) => {
            same("owner", room.is_owner(place, &owner), true)
        }
        _ => Ok(()),
    }
}

/// Every place that was ever given out.
pub(crate) fn everything(engine: &Engine, model: &Model, now: TimeMs) -> Result<(), String> {
    let tickets = (0..model.next_ticket() + 1).map(Place::Ticket);
    let references = model.pre.keys().map(|q| Place::Reference(*q));
    tickets.chain(references).try_for_each(|one| place(engine, model, one, now))
}

/// Timed releases of present owners never run ahead of the rate, over any window (HOL-54).
pub(crate) struct RateWatch {
    rate: Rate,
    released: f64,
    /// The most favourable start of a window so far: its time in releases, less those before it.
    best: f64,
    last_released: u64,
}

impl RateWatch {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, released: 0.0, best: f64::NEG_INFINITY, last_released: 0 }
    }

    pub(crate) fn saw(&mut self, event: &Event, room: &Room) -> Result<(), String> {
        match &event.fact {
            Fact::Passed(release) => {
                self.order(&release.ranges)?;
                let numbers: u64 = release.ranges.iter().map(|(from, to)| to - from + 1).sum();
                let timed = numbers
                    .checked_sub(release.ns.len() as u64)
                    .ok_or("more absent owners than released tickets")?;
                self.timed(event.at, timed)
            }
            Fact::Flushed(release) => self.order(&release.ranges),
            Fact::RateChanged { .. } | Fact::RoomConfigured { .. } => {
                if room.settings().rate != self.rate {
                    let rate = room.settings().rate;
                    let last_released = self.last_released;
                    *self = Self { last_released, ..Self::new(rate) };
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn timed(&mut self, at: TimeMs, count: u64) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        let earned = at.0 as f64 * self.rate.per_minute() / 60_000.0;
        self.best = self.best.max(earned - self.released);
        self.released += count as f64;
        let over = self.released - earned + self.best;
        let burst = (self.rate.per_minute() / 60.0).max(1.0);
        if over > burst + 0.001 {
            return Err(format!("{over} released above the rate; {burst} may be"));
        }
        Ok(())
    }

    fn order(&mut self, ranges: &[(u64, u64)]) -> Result<(), String> {
        for (from, to) in ranges {
            if *from <= self.last_released || to < from {
                return Err(format!("{from}..={to} released after {}", self.last_released));
            }
            self.last_released = *to;
        }
        Ok(())
    }
}

/// Nothing is due before the engine says so. Absent owners become due without an event, so a
/// room that releases is looked at within 100 ms whatever is told.
pub(crate) fn told_in_time(
    engine: &Engine,
    now: TimeMs,
    random: &mut Random,
) -> Result<(), String> {
    let told = ms_until_due(&engine.room, &engine.presence, now);
    let end = told.unwrap_or(86_400_000);
    let probes = [0, end / 2, end.saturating_sub(1), random.below(end.max(1))];
    for after in probes.into_iter().filter(|after| *after < end) {
        let facts = tick_at(&engine.room, &engine.presence, now.plus_ms(after));
        let absent = |fact: &Fact| match fact {
            Fact::Passed(release) => end <= 100 && !release.ns.is_empty(),
            _ => false,
        };
        if !facts.iter().all(absent) {
            return Err(format!("told to tick after {told:?} ms, but after {after}: {facts:?}"));
        }
    }
    Ok(())
}

fn tick_at(room: &Room, presence: &Presence, now: TimeMs) -> Vec<Fact> {
    let tick = Command::Tick { retain_ms: u64::MAX };
    decide(room, presence, &tick, now, &[0; 32]).map(|decision| decision.facts).unwrap_or_default()
}

/// Folding the written log gives the same room.
pub(crate) fn replay(engine: &Engine) -> Result<(), String> {
    let read = |event: &Event| {
        let text = serde_json::to_string(event).map_err(|error| error.to_string())?;
        let again = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        if *event == again { Ok(again) } else { Err(format!("{event:?} came back as {again:?}")) }
    };
    let log = engine.log.iter().map(read).collect::<Result<Vec<Event>, String>>()?;
    let mut room = Room::open(&log[0]).ok_or("the log does not open a room")?;
    log[1..].iter().for_each(|event| room.apply(event));
    same("fingerprint of the replay", room.fingerprint(), engine.room.fingerprint())?;
    same("fingerprint of a copy", engine.room.clone().fingerprint(), room.fingerprint())?;
    same("fingerprint from a snapshot", restored(engine)?.fingerprint(), room.fingerprint())
}

/// The room as a snapshot makes it again.
pub(crate) fn restored(engine: &Engine) -> Result<Room, String> {
    let octets = postcard::to_allocvec(&engine.room.snapshot()).map_err(|e| e.to_string())?;
    let snapshot: Snapshot = postcard::from_bytes(&octets).map_err(|e| e.to_string())?;
    snapshot.into_room().ok_or_else(|| "a snapshot makes no room".into())
}
