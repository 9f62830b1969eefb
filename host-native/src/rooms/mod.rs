//! The live rooms of this instance: making, finding and deleting them. Each room has one task that
//! orders its commands; everybody else reads.

mod changes;
mod feed;
mod replica;
pub mod rule_hits;
mod runtime;
mod shared;
#[cfg(test)]
mod simulation;

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
use self::feed::Shared;
pub use self::runtime::{RoomHandle, SubmitError};
pub use crate::log::store::Store;

/// All rooms. Copies are the same rooms.
#[derive(Clone)]
pub struct Rooms(Arc<Inner>);

struct Inner {
    live: RwLock<Live>,
    clock: Clock,
    metrics: Arc<Metrics>,
    backing: Backing,
    /// How long an ended ticket is remembered: as long as a token can name it.
    retain_ms: u64,
}

/// Where the rooms are kept.
enum Backing {
    Memory(MemoryLog),
    Shared(Box<Shared>),
}

#[derive(Default)]
struct Live {
    by_id: HashMap<RoomId, Arc<RoomHandle>>,
    in_order: Vec<Arc<RoomHandle>>,
    last_generation: HashMap<RoomId, u64>,
}

/// Why a room was not made or changed.
#[derive(Clone, Debug, PartialEq)]
pub enum SaveError {
    /// A setting does not fit.
    Setting(PatchError),
    /// It could not be recorded.
    Unavailable,
}

impl From<PatchError> for SaveError {
    fn from(error: PatchError) -> Self {
        Self::Setting(error)
    }
}

/// Somebody else was first this often: something is wrong with the store.
const SAVE_ATTEMPTS: usize = 8;

impl Rooms {
    /// No rooms yet, kept in this process.
    #[must_use]
    pub fn new(clock: Clock, metrics: Arc<Metrics>, retain_ms: u64) -> Self {
        Self::with(clock, metrics, retain_ms, Backing::Memory(MemoryLog))
    }

    /// No rooms yet, kept in a shared store; [`Rooms::start`] finds those there are.
    #[must_use]
    pub fn shared(clock: Clock, metrics: Arc<Metrics>, retain_ms: u64, store: Store) -> Self {
        Self::with(clock, metrics, retain_ms, Backing::Shared(Box::new(Shared::new(store))))
    }

    fn with(clock: Clock, metrics: Arc<Metrics>, retain_ms: u64, backing: Backing) -> Self {
        Self(Arc::new(Inner { live: RwLock::default(), clock, metrics, backing, retain_ms }))
    }

    /// The live room of that id.
    #[must_use]
    pub fn find(&self, id: &RoomId) -> Option<Arc<RoomHandle>> {
        self.0.live.read().by_id.get(id).cloned()
    }

    /// All live rooms, in the order they were made.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<RoomHandle>> {
        self.0.live.read().in_order.clone()
    }

    /// Makes a room, or changes the one that has this id; whether it was made.
    ///
    /// # Errors
    /// [`SaveError`]; nothing changes then.
    pub async fn save(
        &self,
        id: &RoomId,
        patch: Patch,
    ) -> Result<(Arc<RoomHandle>, bool), SaveError> {
        for _ in 0..SAVE_ATTEMPTS {
            if let Some(room) = self.find(id) {
                match room.submit(Command::Configure(Box::new(patch.clone()))).await {
                    Err(SubmitError::Refused(Refusal::Settings(error))) => return Err(error.into()),
                    Err(SubmitError::Unavailable) => return Err(SaveError::Unavailable),
                    // Deleted at this very moment: it is made anew.
                    Err(_) => self.forget(&room),
                    Ok(_) => return Ok((room, false)),
                }
            } else {
                let made = match &self.0.backing {
                    Backing::Memory(log) => self.make(id, &patch, *log)?,
                    Backing::Shared(shared) => self.make_shared(id, &patch, shared).await?,
                };
                if let Some(room) = made {
                    return Ok((room, true));
                }
            }
        }
        Err(SaveError::Unavailable)
    }

    /// `None` when somebody else made it first.
    fn make(
        &self,
        id: &RoomId,
        patch: &Patch,
        log: MemoryLog,
    ) -> Result<Option<Arc<RoomHandle>>, PatchError> {
        let now = self.0.clock.now();
        let settings = Box::new(patch.apply(&Settings::new(id, now), now)?);
        let mut live = self.0.live.write();
        if live.by_id.contains_key(id) {
            return Ok(None);
        }
        let generation = next_generation(live.last_generation.get(id).copied(), now);
        let fact = Fact::RoomOpened { room: id.clone(), generation, settings };
        let event = Event { seq: 1, at: now, fact };
        let room = Room::open(&event).expect("a room_opened event opens a room");
        log.append(id, &[event]);
        let handle = RoomHandle::start(
            room,
            Presence::new(now),
            log,
            self.0.clock,
            self.0.metrics.room(id.as_str()),
            self.0.metrics.outflow_lag_seconds.clone(),
            self.0.retain_ms,
        );
        live.last_generation.insert(id.clone(), generation);
        live.insert(&handle);
        tracing::info!(room = %id, generation, "room made");
        Ok(Some(handle))
    }

    /// Deletes a room; false when there is none.
    ///
    /// # Errors
    /// [`SubmitError::Unavailable`] when that could not be recorded.
    pub async fn delete(&self, id: &RoomId) -> Result<bool, SubmitError> {
        let Some(room) = self.find(id) else { return Ok(false) };
        let closed = match room.submit(Command::Close).await {
            Err(SubmitError::Unavailable) => return Err(SubmitError::Unavailable),
            other => other == Ok(Outcome::Done),
        };
        self.forget(&room);
        if closed {
            tracing::info!(room = %id, "room deleted");
        }
        Ok(closed)
    }

    fn forget(&self, room: &Arc<RoomHandle>) {
        let mut live = self.0.live.write();
        if live.by_id.get(room.id()).is_some_and(|held| Arc::ptr_eq(held, room)) {
            live.by_id.remove(room.id());
            live.in_order.retain(|held| !Arc::ptr_eq(held, room));
            self.0.metrics.forget_room(room.id().as_str());
        }
    }
}

impl Live {
    fn insert(&mut self, room: &Arc<RoomHandle>) {
        self.by_id.insert(room.id().clone(), Arc::clone(room));
        self.in_order.push(Arc::clone(room));
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
