//! What one instance saw of visitors and tells the others: presence and session touches, in batches
//! and beside the log. Telling twice or out of order changes nothing.

use alloc::vec::Vec;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::time::TimeMs;

/// Who was seen, and which door sessions were used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    tickets: HashMap<u64, (TimeMs, bool)>,
    references: HashMap<u64, TimeMs>,
    touches: HashMap<u64, TimeMs>,
}

/// The same as lists, for the wire.
#[derive(Serialize, Deserialize)]
struct Wire {
    /// Ticket, when its owner was seen, whether they were told of a pass.
    t: Vec<(u64, TimeMs, bool)>,
    /// Pre-queue places.
    q: Vec<(u64, TimeMs)>,
    /// Door sessions.
    s: Vec<(u64, TimeMs)>,
}

impl News {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tickets.is_empty() && self.references.is_empty() && self.touches.is_empty()
    }

    /// Notes a ticket whose owner was seen.
    pub fn saw_ticket(&mut self, number: u64, at: TimeMs, told_passed: bool) {
        let seen = self.tickets.entry(number).or_insert((at, told_passed));
        *seen = (seen.0.max(at), seen.1 || told_passed);
    }

    /// Notes a pre-queue place whose owner was seen.
    pub fn saw_reference(&mut self, reference: u64, at: TimeMs) {
        let seen = self.references.entry(reference).or_insert(at);
        *seen = at.max(*seen);
    }

    /// Notes a door session that was used.
    pub fn touched(&mut self, number: u64, at: TimeMs) {
        let last = self.touches.entry(number).or_insert(at);
        *last = at.max(*last);
    }

    /// Tickets whose owners were seen, when, and whether they were told of a pass.
    pub fn tickets(&self) -> impl Iterator<Item = (u64, TimeMs, bool)> + '_ {
        self.tickets.iter().map(|(number, (at, told))| (*number, *at, *told))
    }

    /// Pre-queue places whose owners were seen, and when.
    pub fn references(&self) -> impl Iterator<Item = (u64, TimeMs)> + '_ {
        self.references.iter().map(|(reference, at)| (*reference, *at))
    }

    /// Door sessions that were used, and when.
    pub fn touches(&self) -> impl Iterator<Item = (u64, TimeMs)> + '_ {
        self.touches.iter().map(|(number, at)| (*number, *at))
    }

    /// Adds what another batch says.
    pub fn merge(&mut self, other: &Self) {
        other.tickets().for_each(|(number, at, told)| self.saw_ticket(number, at, told));
        other.references().for_each(|(reference, at)| self.saw_reference(reference, at));
        other.touches().for_each(|(number, at)| self.touched(number, at));
    }
}

impl Serialize for News {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            t: self.tickets().collect(),
            q: self.references().collect(),
            s: self.touches().collect(),
        };
        wire.serialize(to)
    }
}

impl<'de> Deserialize<'de> for News {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(from)?;
        let mut news = Self::default();
        wire.t.into_iter().for_each(|(number, at, told)| news.saw_ticket(number, at, told));
        wire.q.into_iter().for_each(|(reference, at)| news.saw_reference(reference, at));
        wire.s.into_iter().for_each(|(number, at)| news.touched(number, at));
        Ok(news)
    }
}
