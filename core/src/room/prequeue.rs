//! Places before the doors open (PRE-*): kept by a reference that tells no order, until the draw
//! turns them into tickets. After the draw the references stay readable as the drawn tickets.

use alloc::vec::Vec;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::queue::{AddressCounts, Client, EndReason};
use super::undo::OldReference;
use crate::digest::Digest16;
use crate::time::TimeMs;

/// One place in the pre-queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) owner: Option<Digest16>,
    pub(crate) client: Client,
    pub(crate) joined_at: TimeMs,
}

/// Ended references told apart from ones never given out, so that taking places and leaving them in
/// a loop costs no memory. Whoever is past it is asked to queue again without being told why.
const ENDED_MAX: usize = 100_000;

/// What a reference stands for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    Waiting,
    Drawn(u64),
    Ended(EndReason),
}

/// The pre-queue of a room.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreQueue {
    pub(crate) entries: HashMap<u64, Entry>,
    owners: HashMap<Digest16, u64>,
    pub(crate) per_address: AddressCounts,
    pub(crate) drawn: HashMap<u64, u64>,
    pub(crate) ended: HashMap<u64, EndReason>,
    /// What to put back; kept only while the room rehearses.
    undo: Option<Vec<OldReference>>,
}

impl PreQueue {
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.entries.len()).unwrap_or(u64::MAX)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a reference was ever given out in this generation.
    pub(crate) fn is_taken(&self, reference: u64) -> bool {
        self.look_up(reference).is_some()
    }

    pub(crate) fn look_up(&self, reference: u64) -> Option<Reference> {
        if self.entries.contains_key(&reference) {
            return Some(Reference::Waiting);
        }
        let drawn = self.drawn.get(&reference).map(|number| Reference::Drawn(*number));
        drawn.or_else(|| self.ended.get(&reference).map(|reason| Reference::Ended(*reason)))
    }

    pub(crate) fn owned_by(&self, owner: &Digest16) -> Option<u64> {
        self.owners.get(owner).copied()
    }

    pub(crate) fn push(&mut self, reference: u64, entry: Entry) {
        self.remember(reference);
        self.insert(reference, entry);
    }

    fn insert(&mut self, reference: u64, entry: Entry) {
        if let Some(owner) = entry.owner {
            // Ownerless places are outside the cap, so they count against nobody (GHO-09).
            self.per_address.add(entry.client.address);
            self.owners.insert(owner, reference);
        }
        self.entries.insert(reference, entry);
    }

    pub(crate) fn end(&mut self, reference: u64, reason: EndReason) -> bool {
        self.remember(reference);
        let found = self.take(reference).is_some();
        if found && self.ended.len() < ENDED_MAX {
            self.ended.insert(reference, reason);
        }
        found
    }

    /// Forgets references of tickets up to `number`, which were forgotten themselves.
    pub(crate) fn forget(&mut self, number: u64) {
        let undo = &mut self.undo;
        self.drawn.retain(|reference, drawn| {
            let keep = *drawn > number;
            if let Some(undo) = undo.as_mut().filter(|_| !keep) {
                let (reference, drawn) = (*reference, Some(*drawn));
                undo.push(OldReference { reference, entry: None, drawn, ended: None });
            }
            keep
        });
    }

    /// Takes an entry out to become ticket `number`.
    pub(crate) fn draw(&mut self, reference: u64, number: u64) -> Option<Entry> {
        self.remember(reference);
        let entry = self.take(reference)?;
        self.drawn.insert(reference, number);
        Some(entry)
    }

    fn take(&mut self, reference: u64) -> Option<Entry> {
        let entry = self.entries.remove(&reference)?;
        if let Some(owner) = &entry.owner {
            self.per_address.remove(entry.client.address);
            self.owners.remove(owner);
        }
        if self.entries.is_empty() {
            // A drop of two million leaves no empty tables behind.
            self.entries.shrink_to_fit();
            self.owners.shrink_to_fit();
        }
        Some(entry)
    }

    fn remember(&mut self, reference: u64) {
        if let Some(undo) = &mut self.undo {
            undo.push(OldReference {
                reference,
                entry: self.entries.get(&reference).cloned(),
                drawn: self.drawn.get(&reference).copied(),
                ended: self.ended.get(&reference).copied(),
            });
        }
    }

    /// From here on everything can be put back.
    pub(crate) fn begin(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Puts everything back as it was at [`PreQueue::begin`].
    pub(crate) fn put_back(&mut self) {
        for old in self.undo.take().into_iter().flatten().rev() {
            self.take(old.reference);
            self.drawn.remove(&old.reference);
            self.ended.remove(&old.reference);
            if let Some(entry) = old.entry {
                self.insert(old.reference, entry);
            }
            if let Some(drawn) = old.drawn {
                self.drawn.insert(old.reference, drawn);
            }
            if let Some(ended) = old.ended {
                self.ended.insert(old.reference, ended);
            }
        }
    }

    /// The pre-queue that has these entries and no others.
    pub(crate) fn of_parts(
        entries: Vec<(u64, Entry)>,
        drawn: Vec<(u64, u64)>,
        ended: Vec<(u64, EndReason)>,
    ) -> Self {
        let mut pre = Self::default();
        for (reference, entry) in entries {
            pre.insert(reference, entry);
        }
        pre.drawn.extend(drawn);
        pre.ended.extend(ended);
        pre
    }

    pub(super) fn feed(&self, to: &mut Fingerprint) {
        to.sorted(self.entries.iter(), |to, reference, entry| {
            to.number(*reference);
            to.owner(entry.owner.as_ref());
            entry.client.feed(to);
            to.number(entry.joined_at.0);
        });
        to.sorted(self.owners.iter(), |to, owner, reference| {
            to.owner(Some(owner));
            to.number(*reference);
        });
        self.per_address.feed(to);
        to.sorted(self.drawn.iter(), |to, reference, number| {
            to.number(*reference);
            to.number(*number);
        });
        to.sorted(self.ended.iter(), |to, reference, reason| {
            to.number(*reference);
            to.octets(reason.as_str().as_bytes());
        });
    }
}
