//! One digest of everything a room is, in a defined order: for tests, and for verifying that a
//! rebuild from the log gives the room it should. Takes time in the room's length; never on a
//! request's way.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use super::Room;
use super::event::Proof;
use crate::digest::Digest16;

/// Collects the parts of a room's state.
pub(super) struct Fingerprint(Sha256);

impl Fingerprint {
    pub(super) fn number(&mut self, number: u64) {
        self.0.update(number.to_be_bytes());
    }

    /// The octets with their length in front, so that neighbours cannot be confused.
    pub(super) fn octets(&mut self, octets: &[u8]) {
        self.number(u64::try_from(octets.len()).unwrap_or(u64::MAX));
        self.0.update(octets);
    }

    pub(super) fn option(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        self.number(number.unwrap_or(0));
    }

    pub(super) fn owner(&mut self, owner: Option<&Digest16>) {
        self.octets(owner.map_or(&[][..], |owner| &owner.0));
    }

    pub(super) fn proof(&mut self, proof: Proof) {
        match proof {
            Proof::Key(digest) => self.octets(&digest.0),
            Proof::Channel => self.octets(&[]),
        }
    }

    /// Members of an unordered collection, by rising key.
    pub(super) fn sorted<K: Ord, V>(
        &mut self,
        members: impl Iterator<Item = (K, V)>,
        mut feed: impl FnMut(&mut Self, K, V),
    ) {
        let mut members: Vec<(K, V)> = members.collect();
        members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.number(u64::try_from(members.len()).unwrap_or(u64::MAX));
        members.into_iter().for_each(|(key, value)| feed(self, key, value));
    }
}

impl Room {
    /// A digest of the whole state: equal for rooms that the same events made, on any machine of
    /// this version. O(n); for tests and for verifying a rebuild.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut to = Fingerprint(Sha256::new());
        to.octets(self.id.as_str().as_bytes());
        for number in [self.generation, self.created_at.0, self.head, self.last_at.0] {
            to.number(number);
        }
        to.number(u64::from(self.closed));
        // Settings hold no maps, so their JSON has one order.
        to.octets(&serde_json::to_vec(&self.settings).unwrap_or_default());
        self.queue.feed(&mut to);
        self.pre.feed(&mut to);
        self.passes.feed(&mut to);
        self.outflow.feed(&mut to);
        for tally in
            [&self.joined_last_minute, &self.passed_last_minute, &self.passed_last_five_minutes]
        {
            tally.feed(&mut to);
        }
        to.0.finalize().into()
    }
}
