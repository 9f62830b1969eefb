//! How readers learn that a room changed: a watch that wakes every stream, and two numbers that
//! tell a woken stream cheaply whether the change can concern it.

use std::sync::atomic::{AtomicU64, Ordering};

use qm_core::room::{Event, Fact, Room};
use tokio::sync::watch;

/// What changed in a room, as far as a stream must know before it looks.
#[derive(Debug)]
pub struct Changes {
    wake: watch::Sender<()>,
    /// Moves with everything that may change what any visitor reads, other than places moving up.
    epoch: AtomicU64,
    /// The lowest waiting ticket number: a ticket below it waits no more.
    front: AtomicU64,
}

impl Changes {
    pub(super) fn new() -> Self {
        Self { wake: watch::Sender::new(()), epoch: AtomicU64::new(0), front: AtomicU64::new(0) }
    }

    /// Takes note of events just applied to `room`; true when readers should be woken.
    pub(super) fn note<'a>(
        &self,
        room: &Room,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> bool {
        let moves_epoch = |event: &Event| {
            matches!(
                event.fact,
                Fact::RoomConfigured { .. }
                    | Fact::StateChanged { .. }
                    | Fact::RateChanged { .. }
                    | Fact::Drawn { .. }
                    | Fact::Purged
                    | Fact::Ejected { .. }
                    | Fact::RoomClosed
            )
        };
        let front = room.front().unwrap_or_else(|| room.next_ticket());
        // Written before the wake-up, whose lock orders them for the readers.
        self.front.store(front, Ordering::Release);
        let (mut any, mut moved) = (false, false);
        for event in events {
            (any, moved) = (true, moved || moves_epoch(event));
        }
        if moved {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        any
    }

    pub(super) fn wake(&self) {
        self.wake.send_replace(());
    }

    /// Wakes with every change, at most ten times a second.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.wake.subscribe()
    }

    /// Compare with an earlier value: equal means that at most places moved up.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Tickets below this number wait no more.
    #[must_use]
    pub fn front(&self) -> u64 {
        self.front.load(Ordering::Acquire)
    }
}
