//! Quotas by address: a token bucket for each, holding one minute's calls and refilled evenly.
//! Memory is bounded, and buckets that are full again are dropped before any other.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};

use parking_lot::Mutex;
use qm_core::time::TimeMs;

use super::address::AddressGroup;
use crate::config::Limit;

/// A refusal: whole seconds until one call is back, 1 to 60.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfterSeconds(pub u32);

/// A quota of calls a minute for each key, usually an address group.
///
/// At most 102,400 buckets are kept. A new key at that size first drops the buckets that are full
/// again, which changes no decision; if none is, the fullest of a few is dropped, so that somebody
/// with very many addresses gains little and other visitors lose nothing.
#[derive(Debug)]
pub struct Quota<K = AddressGroup> {
    /// Nanoseconds in which one call comes back; `None` when switched off.
    interval_ns: Option<u64>,
    shards: Box<[Mutex<Shard<K>>]>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Shard<K> {
    /// The point at which the bucket is full again, in nanoseconds since the epoch. This one number
    /// is the whole bucket: what is missing now is (that point − now) / interval.
    full_at_ns: HashMap<K, u64>,
    /// No bucket is full before this, so looking for one is in vain.
    sweep_after_ns: u64,
}

impl<K: Eq + Hash + Copy> Quota<K> {
    /// A quota with full buckets.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        let shard = || Mutex::new(Shard { full_at_ns: HashMap::new(), sweep_after_ns: 0 });
        Self {
            interval_ns: limit.number().map(|n| CAPACITY_NS / u64::from(n.max(1))),
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Takes one call from the key's bucket.
    ///
    /// # Errors
    /// [`RetryAfterSeconds`] when the bucket is empty; nothing is taken then.
    pub fn take(&self, key: K, now: TimeMs) -> Result<(), RetryAfterSeconds> {
        let Some(interval_ns) = self.interval_ns else { return Ok(()) };
        let now_ns = now.0.saturating_mul(NS_PER_MS);
        let index = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or_default();
        let mut shard = self.shards[index].lock();
        if let Some(full_at_ns) = shard.full_at_ns.get_mut(&key) {
            let next = (*full_at_ns).max(now_ns).saturating_add(interval_ns);
            let missing_ns = next - now_ns;
            if missing_ns > CAPACITY_NS {
                let seconds = (missing_ns - CAPACITY_NS).div_ceil(NS_PER_SECOND).clamp(1, 60);
                return Err(RetryAfterSeconds(u32::try_from(seconds).unwrap_or(60)));
            }
            *full_at_ns = next;
            return Ok(());
        }
        shard.make_room(now_ns);
        shard.full_at_ns.insert(key, now_ns.saturating_add(interval_ns));
        Ok(())
    }

    /// How many buckets are held.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().full_at_ns.len()).sum()
    }
}

impl<K: Eq + Hash + Copy> Shard<K> {
    fn make_room(&mut self, now_ns: u64) {
        if self.full_at_ns.len() < BUCKETS_PER_SHARD_MAX {
            return;
        }
        if now_ns >= self.sweep_after_ns {
            self.full_at_ns.retain(|_, full_at_ns| *full_at_ns > now_ns);
            // A pause between sweeps keeps their cost away from single calls.
            let earliest = self.full_at_ns.values().min().copied().unwrap_or(0);
            self.sweep_after_ns = earliest.max(now_ns.saturating_add(SWEEP_PAUSE_NS));
        }
        if self.full_at_ns.len() >= BUCKETS_PER_SHARD_MAX {
            let few = self.full_at_ns.iter().take(EVICTION_SAMPLE);
            if let Some(key) = few.min_by_key(|(_, full_at_ns)| **full_at_ns).map(|(key, _)| *key) {
                self.full_at_ns.remove(&key);
            }
        }
    }
}

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_SECOND: u64 = 1_000_000_000;
/// A full bucket holds a minute's calls, whatever their number.
const CAPACITY_NS: u64 = 60 * NS_PER_SECOND;
const SHARDS: usize = 64;
const BUCKETS_PER_SHARD_MAX: usize = 1600;
const EVICTION_SAMPLE: usize = 8;
const SWEEP_PAUSE_NS: u64 = 100 * NS_PER_MS;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: TimeMs = TimeMs(1_700_000_000_000);

    fn taken(quota: &Quota<u32>, key: u32, at_ms: u64, calls: usize) -> usize {
        (0..calls).filter(|_| quota.take(key, NOW.plus_ms(at_ms)).is_ok()).count()
    }

    #[test]
    fn a_bucket_holds_a_minute_and_refills_evenly() {
        for (limit, steps) in [
            (60, &[(0, 60), (999, 0), (1000, 1), (1999, 0), (3000, 2), (603_000, 60)][..]),
            (4, &[(0, 4), (14_999, 0), (15_000, 1), (45_000, 2), (200_000, 4)]),
            (1, &[(0, 1), (59_999, 0), (60_000, 1)]),
            (1_000_000, &[(0, 1_000_000), (1, 16), (2, 17)]),
        ] {
            let quota = Quota::new(Limit::At(limit));
            for (at_ms, expected) in steps {
                let got = taken(&quota, 1, *at_ms, expected + 50);
                assert_eq!(got, *expected, "{limit} a minute, at {at_ms} ms");
            }
            assert_eq!(taken(&quota, 2, 0, 1), 1, "another key");
        }
    }

    #[test]
    fn a_refusal_says_when_one_call_is_back() {
        for (limit, at_ms, expected) in
            [(60, 0, 1), (4, 0, 15), (4, 14_001, 1), (4, 5_000, 10), (1, 0, 60), (1_000_000, 0, 1)]
        {
            let quota = Quota::new(Limit::At(limit));
            taken(&quota, 1, 0, limit as usize);
            let refusal = quota.take(1, NOW.plus_ms(at_ms)).unwrap_err();
            assert_eq!(refusal, RetryAfterSeconds(expected), "{limit} at {at_ms}");
        }
    }

    #[test]
    fn off_never_refuses() {
        assert_eq!(taken(&Quota::new(Limit::Off), 1, 0, 10_000), 10_000);
    }

    #[test]
    fn memory_is_bounded_and_full_buckets_go_first() {
        let bound = u32::try_from(SHARDS * BUCKETS_PER_SHARD_MAX).unwrap();
        let quota = Quota::new(Limit::At(2));
        taken(&quota, u32::MAX, 20_000, 2);
        // The first lot is full again when the second comes, the bucket taken from twice is not.
        for (at_ms, keys) in [(0, 0..bound), (31_000, bound..2 * bound)] {
            for key in keys {
                assert!(quota.take(key, NOW.plus_ms(at_ms)).is_ok());
            }
            assert!(quota.buckets() <= bound as usize);
        }
        // Had it been dropped, it would hold two calls again; 11 s gave back none.
        assert_eq!(taken(&quota, u32::MAX, 31_000, 1), 0);
    }
}
