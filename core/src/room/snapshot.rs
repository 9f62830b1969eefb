//! A room's whole state as plain data, so that a start does not fold every event again. Indices are
//! not in it: they are made anew. Hosts choose the octets and where they are kept.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::outflow::Outflow;
use super::prequeue::{Entry, PreQueue};
use super::presence::Presence;
use super::queue::{EndReason, Queue, Ticket};
use super::session::{Pass, Passes};
use super::tally::Tally;
use super::{Room, Settings};
use crate::id::RoomId;
use crate::time::TimeMs;

/// The state of a room after the event `head`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    room: RoomId,
    generation: u64,
    created_at: TimeMs,
    /// As JSON, whose readers know the settings of earlier versions.
    settings: String,
    head: u64,
    last_at: TimeMs,
    closed: bool,
    forgotten: u64,
    tickets: Vec<Ticket>,
    entries: Vec<(u64, Entry)>,
    drawn: Vec<(u64, u64)>,
    ended: Vec<(u64, EndReason)>,
    passes: Vec<(u64, Pass)>,
    outflow: Outflow,
    tallies: [(u64, Vec<u32>); 3],
}

impl Snapshot {
    /// The `seq` of the last event it includes.
    #[must_use]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// The room it is of; `None` when the settings cannot be read.
    #[must_use]
    pub fn into_room(self) -> Option<Room> {
        let settings: Settings = serde_json::from_str(&self.settings).ok()?;
        let [joined, passed, passed_five] = self.tallies;
        Some(Room {
            id: self.room,
            generation: self.generation,
            created_at: self.created_at,
            settings,
            head: self.head,
            last_at: self.last_at,
            closed: self.closed,
            queue: Queue::of_tickets(self.forgotten, self.tickets),
            pre: PreQueue::of_parts(self.entries, self.drawn, self.ended),
            passes: Passes::of_parts(self.passes),
            outflow: self.outflow,
            joined_last_minute: Tally::of_parts(1000, joined),
            passed_last_minute: Tally::of_parts(1000, passed),
            passed_last_five_minutes: Tally::of_parts(5000, passed_five),
        })
    }
}

impl Room {
    /// Everything that is needed to make the room again. O(n).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (forgotten, tickets) = self.queue.tickets();
        let pre = &self.pre;
        Snapshot {
            room: self.id.clone(),
            generation: self.generation,
            created_at: self.created_at,
            settings: serde_json::to_string(&self.settings).unwrap_or_default(),
            head: self.head,
            last_at: self.last_at,
            closed: self.closed,
            forgotten,
            tickets: tickets.cloned().collect(),
            entries: pre.entries.iter().map(|(q, entry)| (*q, entry.clone())).collect(),
            drawn: pre.drawn.iter().map(|(q, n)| (*q, *n)).collect(),
            ended: pre.ended.iter().map(|(q, reason)| (*q, *reason)).collect(),
            passes: self.passes.all().map(|(n, pass)| (n, pass.clone())).collect(),
            outflow: self.outflow,
            tallies: [
                self.joined_last_minute.parts(),
                self.passed_last_minute.parts(),
                self.passed_last_five_minutes.parts(),
            ],
        }
    }
}

impl Presence {
    /// What can be said of who is here when nothing is known, as after a start: every live place of
    /// `room` counts as seen and every session as used at `now`. Nobody loses a place because this
    /// server was away; whoever is gone is found out within the presence window.
    #[must_use]
    pub fn presumed(room: &Room, now: TimeMs) -> Self {
        let mut presence = Self::new(room.created_at);
        presence.presume(room, now);
        presence
    }

    /// The same for what is known already: nobody is seen less.
    pub fn presume(&mut self, room: &Room, now: TimeMs) {
        for number in room.queue.waiting.iter() {
            self.saw_ticket(number, now, false);
        }
        for reference in room.pre.entries.keys() {
            self.presume_reference(*reference, now);
        }
        for (number, pass) in room.passes.all() {
            self.presume_pass(number, pass.session.is_some(), room.holds_owned_slot(number), now);
        }
    }
}
