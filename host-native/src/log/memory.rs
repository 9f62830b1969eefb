//! The memory store's log: events were applied in process and are forgotten here. Nothing touches
//! the disk, and a restart starts empty (STK-07, STK-11).

use qm_core::id::RoomId;
use qm_core::room::Event;

/// The log of the memory store.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryLog;

impl MemoryLog {
    /// Records the events of a batch, in order, before anybody is told of them.
    pub fn append(self, room: &RoomId, events: &[Event]) {
        for event in events {
            tracing::trace!(%room, seq = event.seq, event = event.fact.name(), "recorded");
        }
    }
}
