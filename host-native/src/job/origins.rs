//! How the origins of rooms fared at the latest looks: written by autotune, read by alerts.

use std::collections::HashMap;

use parking_lot::Mutex;
use qm_core::id::RoomId;

/// Looks in a row that found an origin ill before it counts as down.
const DOWN_AFTER: u32 = 3;

/// Unhealthy looks in a row, by room.
#[derive(Debug, Default)]
pub struct Origins(Mutex<HashMap<RoomId, u32>>);

impl Origins {
    /// Takes note of a look.
    pub(super) fn note(&self, room: &RoomId, healthy: bool) {
        let mut all = self.0.lock();
        let count = all.entry(room.clone()).or_default();
        *count = if healthy { 0 } else { count.saturating_add(1) };
    }

    /// Forgets rooms that are looked at no more.
    pub(super) fn keep(&self, is_kept: impl Fn(&RoomId) -> bool) {
        self.0.lock().retain(|room, _| is_kept(room));
    }

    /// Whether the origin of a room is down.
    pub(super) fn is_down(&self, room: &RoomId) -> bool {
        self.0.lock().get(room).is_some_and(|count| *count >= DOWN_AFTER)
    }
}
