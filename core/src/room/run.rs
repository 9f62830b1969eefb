//! Decide and apply in one step, for a host that holds the only copy of a room: the memory store,
//! the simulation, the tests. A shared store puts its log in between.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use super::Room;
use super::command::{Command, Outcome, Refusal};
use super::decide::decide;
use super::event::Event;
use super::presence::Presence;
use crate::time::TimeMs;

/// What a command did to a room.
#[derive(Debug)]
pub struct Ran {
    /// The events, already applied.
    pub events: Vec<Event>,
    /// The answer.
    pub result: Result<Outcome, Refusal>,
}

/// Runs one command. When the doors opened since the last tick, the draw comes first: nobody who
/// arrives now stands before those who waited (HOL-52). Time never runs back within the room.
///
/// `entropy` is 32 random octets, fresh for every call.
pub fn run(
    room: &mut Room,
    presence: &mut Presence,
    command: &Command,
    now: TimeMs,
    entropy: &[u8; 32],
) -> Ran {
    let now = now.max(room.last_at());
    let mut events = Vec::new();
    if room.draw_is_due(now) && !matches!(command, Command::Tick { .. } | Command::Purge) {
        let first: [u8; 32] =
            Sha256::new().chain_update("qm:draw").chain_update(entropy).finalize().into();
        let tick = Command::Tick { retain_ms: u64::MAX };
        // A tick refuses nothing.
        let _ = step(room, presence, &tick, now, &first, &mut events);
    }
    let result = step(room, presence, command, now, entropy, &mut events);
    Ran { events, result }
}

fn step(
    room: &mut Room,
    presence: &mut Presence,
    command: &Command,
    now: TimeMs,
    entropy: &[u8; 32],
    events: &mut Vec<Event>,
) -> Result<Outcome, Refusal> {
    let decision = decide(room, presence, command, now, entropy)?;
    for fact in decision.facts {
        let event = Event { seq: room.head() + 1, at: now, fact };
        room.apply(&event);
        presence.follow(room, &event);
        events.push(event);
    }
    Ok(decision.outcome)
}
