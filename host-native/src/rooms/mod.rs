//! The live rooms of this instance: making, finding and deleting them. Each room has one task that
//! orders its commands; everybody else reads.

mod activity;
mod changes;
pub mod rule_hits;
mod runtime;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use qm_core::id::RoomId;
use qm_core::room::patch::{Patch, PatchError};
use qm_core::room::{Command, Event, Fact, Outcome, Presence, Refusal, Room, Settings};
use qm_core::time::TimeMs;

use crate::clock::Clock;
use crate::log::memory::MemoryLog;
use crate::telemetry::Metrics;

pub use self::changes::Changes;
pub use self::runtime::RoomHandle;

/// All rooms.
pub struct Rooms {
    live: RwLock<Live>,
    clock: Clock,
    metrics: Arc<Metrics>,
    log: MemoryLog,
    /// How long an ended ticket is remembered: as long as a token can name it.
    retain_ms: u64,
}

#[derive(Default)]
struct Live {
    by_id: HashMap<RoomId, Arc<RoomHandle>>,
    in_order: Vec<Arc<RoomHandle>>,
    last_generation: HashMap<RoomId, u64>,
}

impl Rooms {
    /// No rooms yet.
    #[must_use]
    pub fn new(clock: Clock, metrics: Arc<Metrics>, retain_ms: u64) -> Self {
        Self { live: RwLock::default(), clock, metrics, log: MemoryLog, retain_ms }
    }

    /// The live room of that id.
    #[must_use]
    pub fn find(&self, id: &RoomId) -> Option<Arc<RoomHandle>> {
        self.live.read().by_id.get(id).cloned()
    }

    /// All live rooms, in the order they were made.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<RoomHandle>> {
        self.live.read().in_order.clone()
    }

    /// Makes a room, or changes the one that has this id; whether it was made.
    ///
    /// # Errors
    /// [`PatchError`] when a setting does not fit; nothing changes then.
    pub async fn save(
        &self,
        id: &RoomId,
        patch: Patch,
    ) -> Result<(Arc<RoomHandle>, bool), PatchError> {
        loop {
            if let Some(room) = self.find(id) {
                match room.submit(Command::Configure(Box::new(patch.clone()))).await {
                    Err(Refusal::Settings(error)) => return Err(error),
                    // Deleted at this very moment: it is made anew.
                    Err(_) => self.forget(&room),
                    Ok(_) => return Ok((room, false)),
                }
            } else if let Some(room) = self.make(id, &patch)? {
                return Ok((room, true));
            }
        }
    }

    /// `None` when somebody else made it first.
    fn make(&self, id: &RoomId, patch: &Patch) -> Result<Option<Arc<RoomHandle>>, PatchError> {
        let now = self.clock.now();
        let settings = Box::new(patch.apply(&Settings::new(id, now), now)?);
        let mut live = self.live.write();
        if live.by_id.contains_key(id) {
            return Ok(None);
        }
        let generation = next_generation(live.last_generation.get(id).copied(), now);
        let fact = Fact::RoomOpened { room: id.clone(), generation, settings };
        let event = Event { seq: 1, at: now, fact };
        let room = Room::open(&event).expect("a room_opened event opens a room");
        self.log.append(id, &[event]);
        let handle = RoomHandle::start(
            room,
            Presence::new(now),
            self.log,
            self.clock,
            self.metrics.room(id.as_str()),
            self.metrics.outflow_lag_seconds.clone(),
            self.retain_ms,
        );
        live.last_generation.insert(id.clone(), generation);
        live.by_id.insert(id.clone(), Arc::clone(&handle));
        live.in_order.push(Arc::clone(&handle));
        tracing::info!(room = %id, generation, "room made");
        Ok(Some(handle))
    }

    /// Deletes a room; false when there is none.
    pub async fn delete(&self, id: &RoomId) -> bool {
        let Some(room) = self.find(id) else { return false };
        let closed = room.submit(Command::Close).await == Ok(Outcome::Done);
        self.forget(&room);
        if closed {
            tracing::info!(room = %id, "room deleted");
        }
        closed
    }

    fn forget(&self, room: &Arc<RoomHandle>) {
        let mut live = self.live.write();
        if live.by_id.get(room.id()).is_some_and(|held| Arc::ptr_eq(held, room)) {
            live.by_id.remove(room.id());
            live.in_order.retain(|held| !Arc::ptr_eq(held, room));
            self.metrics.forget_room(room.id().as_str());
        }
    }
}

/// Generations rise (ENG-09) and start from the clock: the memory store forgets them in a restart,
/// and a token from before it must not name a place of the new queue.
fn next_generation(last: Option<u64>, now: TimeMs) -> u64 {
    let from_clock = (now.0 / 1000).max(1);
    last.map_or(from_clock, |last| from_clock.max(last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_rise_even_within_a_second_and_across_a_restart() {
        assert_eq!(next_generation(None, TimeMs(0)), 1);
        assert_eq!(next_generation(None, TimeMs(5_999)), 5);
        assert_eq!(next_generation(Some(5), TimeMs(5_999)), 6);
        assert_eq!(next_generation(Some(5), TimeMs(90_000)), 90);
    }
}
