//! Taking back what was only tried. While a room rehearses, its storages keep the old value of
//! everything they change; afterwards they put it back, newest first, so that the cost is that of
//! the changes and never that of the room.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::outflow::Outflow;
use super::prequeue::Entry;
use super::presence::Presence;
use super::queue::{EndReason, Ticket};
use super::session::Pass;
use super::tally::Tally;
use super::{Room, Settings};
use crate::time::TimeMs;

/// Old values of the line.
#[derive(Clone, Debug)]
pub(super) struct QueueUndo {
    /// The number the next ticket got.
    pub(super) next: u64,
    /// Tickets before each change.
    pub(super) changed: Vec<(u64, Ticket)>,
    /// Chunks that were forgotten, oldest first.
    pub(super) forgotten: Vec<Vec<Ticket>>,
}

impl QueueUndo {
    pub(super) const fn at(next: u64) -> Self {
        Self { next, changed: Vec::new(), forgotten: Vec::new() }
    }
}

/// What the pre-queue knew of a reference.
#[derive(Clone, Debug)]
pub(super) struct OldReference {
    pub(super) reference: u64,
    pub(super) entry: Option<Entry>,
    pub(super) drawn: Option<u64>,
    pub(super) ended: Option<EndReason>,
}

/// A pass before a change; `None` when there was none.
pub(super) type OldPass = (u64, Option<Pass>);

/// The parts of a room that are small enough to be kept whole.
struct Small {
    head: u64,
    last_at: TimeMs,
    closed: bool,
    outflow: Outflow,
    tallies: [Tally; 3],
    settings: Box<Settings>,
}

impl Room {
    /// Does `act` and then takes back everything that it did to the room and to who is present:
    /// what comes out is what would happen. For a host that must ask a shared log before anything
    /// may be true.
    pub fn rehearse<T>(
        &mut self,
        presence: &mut Presence,
        act: impl FnOnce(&mut Self, &mut Presence) -> T,
    ) -> T {
        let small = Small {
            head: self.head,
            last_at: self.last_at,
            closed: self.closed,
            outflow: self.outflow,
            tallies: [
                self.joined_last_minute.clone(),
                self.passed_last_minute.clone(),
                self.passed_last_five_minutes.clone(),
            ],
            settings: Box::new(self.settings.clone()),
        };
        self.queue.begin();
        self.pre.begin();
        self.passes.begin();
        presence.begin();
        let result = act(self, presence);
        presence.put_back();
        self.passes.put_back();
        self.pre.put_back();
        self.queue.put_back();
        self.head = small.head;
        self.last_at = small.last_at;
        self.closed = small.closed;
        self.outflow = small.outflow;
        let [joined, passed, passed_five] = small.tallies;
        self.joined_last_minute = joined;
        self.passed_last_minute = passed;
        self.passed_last_five_minutes = passed_five;
        self.settings = *small.settings;
        result
    }
}
