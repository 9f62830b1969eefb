//! One waiting room as a pure state machine. A room is the fold of its events: `decide` reads the
//! state and proposes events, `apply` folds one in; neither does IO nor reads a clock. Hosts order
//! and record the events in between.

mod apply;
pub mod automatic;
pub mod branding;
pub mod command;
pub mod config;
mod decide;
pub mod draw;
pub mod estimate;
pub mod event;
mod field;
mod fingerprint;
mod news;
mod outflow;
pub mod patch;
mod prequeue;
pub mod presence;
mod queue;
pub mod rate;
mod release;
mod report;
mod run;
mod session;
mod snapshot;
mod tally;
mod undo;
pub mod view;
mod waiting;

pub use self::command::{Claim, Command, Join, Outcome, Refusal};
pub use self::config::Settings;
pub use self::decide::{Decision, decide, ms_until_due};
pub use self::event::{Event, Fact, Proof, Release, effective};
pub use self::news::News;
pub use self::presence::Presence;
pub use self::queue::{Client, EndReason, Family};
pub use self::run::{Ran, run};
pub use self::snapshot::Snapshot;

use self::config::RoomState;
use self::outflow::Outflow;
use self::prequeue::{PreQueue, Reference};
use self::queue::{Queue, Stage};
use self::session::Passes;
use self::tally::Tally;
use crate::id::{Place, RoomId};
use crate::time::TimeMs;

/// The state of a room: everything its events say.
#[derive(Clone, Debug)]
pub struct Room {
    id: RoomId,
    generation: u64,
    created_at: TimeMs,
    settings: Settings,
    head: u64,
    last_at: TimeMs,
    closed: bool,
    queue: Queue,
    pre: PreQueue,
    passes: Passes,
    outflow: Outflow,
    joined_last_minute: Tally,
    passed_last_minute: Tally,
    passed_last_five_minutes: Tally,
}

/// Where a place stands at a moment. Deadlines count as soon as they are reached, whether or not
/// the event that records the end was written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In line.
    Waiting {
        /// The ticket.
        n: u64,
    },
    /// In the pre-queue.
    PreQueued {
        /// The reference.
        q: u64,
    },
    /// Released, the pass not used yet.
    Passed {
        /// The ticket.
        n: u64,
        /// When the pass runs out.
        expires_at: TimeMs,
    },
    /// Inside: the door session is open.
    Admitted {
        /// The ticket.
        n: u64,
        /// When the session ends unless it is used again.
        expires_at: TimeMs,
    },
    /// Over.
    Ended(EndReason),
    /// The room never gave this place out.
    Unknown,
}

impl Room {
    /// The room that a `room_opened` event makes; `None` for any other event.
    #[must_use]
    pub fn open(event: &Event) -> Option<Self> {
        let Fact::RoomOpened { room, generation, settings } = &event.fact else { return None };
        Some(Self {
            id: room.clone(),
            generation: *generation,
            created_at: event.at,
            settings: (**settings).clone(),
            head: event.seq,
            last_at: event.at,
            closed: false,
            queue: Queue::new(),
            pre: PreQueue::default(),
            passes: Passes::default(),
            outflow: Outflow::new(settings.rate, event.at),
            joined_last_minute: Tally::new(1000),
            passed_last_minute: Tally::new(1000),
            passed_last_five_minutes: Tally::new(5000),
        })
    }

    /// The room's id.
    #[must_use]
    pub const fn id(&self) -> &RoomId {
        &self.id
    }

    /// The generation, from 1 (ENG-09).
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// What the operator set.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The `seq` of the last event applied.
    #[must_use]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// When the last event happened; time never runs back behind it within the room.
    #[must_use]
    pub const fn last_at(&self) -> TimeMs {
        self.last_at
    }

    /// When the room was made.
    #[must_use]
    pub const fn created_at(&self) -> TimeMs {
        self.created_at
    }

    /// Whether the room was deleted.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the drop is still ahead: arrivals go to the pre-queue (PRE-01).
    #[must_use]
    pub fn gate_closed(&self, now: TimeMs) -> bool {
        self.settings.opens_at.is_some_and(|opens_at| now < opens_at)
    }

    /// Whether the doors are open and the pre-queue has not been drawn yet (HOL-52).
    #[must_use]
    pub fn draw_is_due(&self, now: TimeMs) -> bool {
        !self.pre.is_empty() && !self.gate_closed(now)
    }

    /// Whether the queue is off and everybody passes (ENG-02).
    #[must_use]
    pub fn is_bypass(&self) -> bool {
        self.settings.state == RoomState::Bypass
    }

    /// How many wait in line.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.queue.waiting.len()
    }

    /// How many wait for the doors to open.
    #[must_use]
    pub fn pre_queued(&self) -> u64 {
        self.pre.len()
    }

    /// Passes not used yet.
    #[must_use]
    pub fn passes_unused(&self) -> u64 {
        self.passes.unused()
    }

    /// Open door sessions.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.passes.sessions()
    }

    /// Slots that passes and sessions hold.
    #[must_use]
    pub const fn slots_used(&self) -> u64 {
        self.passes.slots_used()
    }

    /// The number the next ticket gets.
    #[must_use]
    pub const fn next_ticket(&self) -> u64 {
        self.queue.next()
    }

    /// Joins within the last minute.
    #[must_use]
    pub fn joined_last_minute(&self, now: TimeMs) -> u64 {
        self.joined_last_minute.sum(now)
    }

    /// Releases within the last minute.
    #[must_use]
    pub fn passed_last_minute(&self, now: TimeMs) -> u64 {
        self.passed_last_minute.sum(now)
    }

    /// The ticket in front.
    #[must_use]
    pub fn front(&self) -> Option<u64> {
        self.queue.waiting.iter().next()
    }

    /// The 1-based position of a waiting ticket.
    #[must_use]
    pub fn position(&self, number: u64) -> Option<u64> {
        self.queue.waiting.contains(number).then(|| self.queue.waiting.rank(number))
    }

    /// When a ticket was taken.
    #[must_use]
    pub fn joined_at(&self, number: u64) -> Option<TimeMs> {
        self.queue.ticket(number).map(|ticket| ticket.joined_at)
    }

    /// The ticket drawn for a reference.
    #[must_use]
    pub fn drawn_ticket(&self, reference: u64) -> Option<u64> {
        match self.pre.look_up(reference)? {
            Reference::Drawn(number) => Some(number),
            Reference::Waiting | Reference::Ended(_) => None,
        }
    }

    /// Folds an event in.
    pub fn apply(&mut self, event: &Event) {
        apply::apply(self, event);
    }

    pub(crate) fn ticket(&self, number: u64) -> Option<&queue::Ticket> {
        self.queue.ticket(number)
    }

    pub(crate) fn session(&self, number: u64) -> Option<&session::Session> {
        self.passes.look_up(number)?.session.as_ref()
    }

    /// Whether an owned ticket's pass holds a slot.
    pub(crate) fn holds_owned_slot(&self, number: u64) -> bool {
        let owned = self.queue.ticket(number).is_some_and(|ticket| ticket.owner.is_some());
        owned && self.passes.look_up(number).is_some_and(|pass| pass.slot)
    }

    /// Slots free for timed releases and flushes.
    pub(crate) fn free_slots(&self) -> u64 {
        let most = self.settings.max_concurrent.map_or(u64::MAX, u64::from);
        most.saturating_sub(self.passes.slots_used())
    }

    /// When the door session of a ticket ends: idle or absolute, whichever is first (HOL-05).
    pub(crate) fn session_deadline(&self, number: u64, presence: &Presence) -> Option<TimeMs> {
        let session = self.passes.look_up(number)?.session.as_ref()?;
        let touched = presence.last_touch(number).unwrap_or(session.opened_at);
        let idle = touched.plus_seconds(u64::from(self.settings.session_ttl_seconds));
        let absolute = self
            .settings
            .session_max_seconds
            .map_or(TimeMs::MAX, |most| session.opened_at.plus_seconds(u64::from(most)));
        Some(idle.min(absolute))
    }

    /// Where a place stands.
    #[must_use]
    pub fn standing(&self, place: Place, presence: &Presence, now: TimeMs) -> Standing {
        let number = match place {
            Place::Ticket(number) => number,
            Place::Reference(reference) => match self.pre.look_up(reference) {
                Some(Reference::Drawn(number)) => number,
                Some(Reference::Waiting) => return Standing::PreQueued { q: reference },
                Some(Reference::Ended(reason)) => return Standing::Ended(reason),
                None => return Standing::Unknown,
            },
        };
        match self.queue.ticket(number).map(|ticket| ticket.stage) {
            Some(Stage::Waiting) => Standing::Waiting { n: number },
            Some(Stage::Passed) => self.standing_released(number, presence, now),
            Some(Stage::Ended(reason)) => Standing::Ended(reason),
            None if self.queue.was_forgotten(number) => Standing::Ended(EndReason::PassExpired),
            None => Standing::Unknown,
        }
    }

    fn standing_released(&self, n: u64, presence: &Presence, now: TimeMs) -> Standing {
        if let Some(expires_at) = self.session_deadline(n, presence) {
            return if now < expires_at {
                Standing::Admitted { n, expires_at }
            } else {
                Standing::Ended(EndReason::SessionEnded)
            };
        }
        match self.passes.look_up(n).map(|pass| pass.expires_at) {
            Some(expires_at) if now < expires_at => Standing::Passed { n, expires_at },
            _ => Standing::Ended(EndReason::PassExpired),
        }
    }

    /// Whether `owner` is the owner of the place, alive or over.
    #[must_use]
    pub fn is_owner(&self, place: Place, owner: &crate::digest::Digest16) -> bool {
        let of_ticket = |n| self.queue.ticket(n).and_then(|ticket| ticket.owner);
        let of_place = match place {
            Place::Ticket(number) => of_ticket(number),
            Place::Reference(reference) => match self.drawn_ticket(reference) {
                Some(number) => of_ticket(number),
                None => self.pre.entries.get(&reference).and_then(|entry| entry.owner),
            },
        };
        of_place == Some(*owner)
    }
}
