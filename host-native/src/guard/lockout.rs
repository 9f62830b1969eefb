//! Guessing admin keys: an address that fails too often within a minute is locked out for a minute
//! after its last failure, before any credential of it is read (AUT-06).

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use parking_lot::Mutex;
use qm_core::time::TimeMs;

use super::address::AddressGroup;
use crate::config::Limit;

/// Failures by address group.
///
/// At most 100,000 addresses are kept. At that size the ones with no failure within the last minute
/// are dropped, then the one whose last failure is oldest among a few.
#[derive(Debug)]
pub struct LockOut<K = AddressGroup> {
    limit: Option<u32>,
    entries: Mutex<HashMap<K, Failures>>,
}

#[derive(Debug, Default)]
struct Failures {
    /// The failures of the last minute, oldest first.
    at: VecDeque<TimeMs>,
    locked: bool,
}

impl Failures {
    fn last(&self) -> TimeMs {
        self.at.back().copied().unwrap_or_default()
    }

    fn over(&self, now: TimeMs) -> bool {
        now.ms_since(self.last()) >= MINUTE_MS
    }
}

impl<K: Eq + Hash + Copy> LockOut<K> {
    /// Nobody is locked out yet.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limit: limit.number(), entries: Mutex::new(HashMap::new()) }
    }

    /// Seconds of lock left, 1 to 60; `None` when the address may try.
    #[must_use]
    pub fn check(&self, key: &K, now: TimeMs) -> Option<u32> {
        self.limit?;
        let entries = self.entries.lock();
        let failures = entries.get(key).filter(|f| f.locked && !f.over(now))?;
        let left_ms = MINUTE_MS - now.ms_since(failures.last());
        u32::try_from(left_ms.div_ceil(1000)).ok()
    }

    /// Records a wrong credential. Returns whether this one locked the address.
    pub fn record_failure(&self, key: K, now: TimeMs) -> bool {
        let Some(limit) = self.limit else { return false };
        let mut entries = self.entries.lock();
        if entries.len() >= ADDRESSES_MAX && !entries.contains_key(&key) {
            make_room(&mut entries, now);
        }
        let failures = entries.entry(key).or_default();
        if failures.over(now) {
            failures.locked = false;
        }
        while failures.at.front().is_some_and(|at| now.ms_since(*at) >= MINUTE_MS) {
            failures.at.pop_front();
        }
        failures.at.push_back(now);
        let locks = !failures.locked && failures.at.len() >= limit as usize;
        failures.locked |= locks;
        if failures.locked {
            // Locked is locked: only the last failure matters from here on.
            failures.at.drain(..failures.at.len() - 1);
        }
        locks
    }
}

fn make_room<K: Eq + Hash + Copy>(entries: &mut HashMap<K, Failures>, now: TimeMs) {
    entries.retain(|_, failures| !failures.over(now));
    if entries.len() >= ADDRESSES_MAX {
        let oldest = entries.iter().take(8).min_by_key(|(_, f)| f.last()).map(|(key, _)| *key);
        if let Some(key) = oldest {
            entries.remove(&key);
        }
    }
}

const MINUTE_MS: u64 = 60_000;
const ADDRESSES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> TimeMs {
        TimeMs(1_700_000_000_000 + ms)
    }

    #[test]
    fn locks_from_the_last_failure() {
        let lock = LockOut::new(Limit::At(3));
        for (ms, locks) in [(0, false), (30_000, false), (61_000, false), (62_000, true)] {
            assert_eq!(lock.check(&1, at(ms)), None);
            assert_eq!(lock.record_failure(1, at(ms)), locks, "{ms}");
        }
        for (ms, left) in
            [(62_000, Some(60)), (62_001, Some(60)), (100_000, Some(22)), (121_999, Some(1))]
        {
            assert_eq!(lock.check(&1, at(ms)), left, "{ms}");
        }
        assert_eq!(lock.check(&2, at(62_000)), None, "another address");
        assert_eq!(lock.check(&1, at(122_000)), None);
        assert!(!lock.record_failure(1, at(122_000)), "starts afresh");
        assert_eq!(lock.check(&1, at(122_000)), None);
    }

    #[test]
    fn a_failure_that_was_on_its_way_extends_the_lock() {
        let lock = LockOut::new(Limit::At(1));
        assert!(lock.record_failure(1, at(0)));
        assert!(!lock.record_failure(1, at(20_000)));
        assert_eq!(lock.check(&1, at(70_000)), Some(10));
    }

    #[test]
    fn off_never_locks() {
        let lock = LockOut::new(Limit::Off);
        assert!((0..100).all(|_| !lock.record_failure(1, at(0))));
        assert_eq!(lock.check(&1, at(0)), None);
    }
}
