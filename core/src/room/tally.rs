//! How much happened lately: sixty buckets that forget by themselves. Fed by events only, so that a
//! replay counts the same.

use alloc::vec::Vec;

use super::fingerprint::Fingerprint;
use crate::time::TimeMs;

const BUCKETS: usize = 60;

/// Counts over the last sixty buckets of `bucket_ms` each.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    bucket_ms: u64,
    counts: [u32; BUCKETS],
    /// The newest bucket that was counted in.
    newest: u64,
}

impl Tally {
    pub(crate) const fn new(bucket_ms: u64) -> Self {
        Self { bucket_ms, counts: [0; BUCKETS], newest: 0 }
    }

    /// What [`Tally::of_parts`] makes a tally of: the newest bucket, and the counts.
    pub(crate) fn parts(&self) -> (u64, Vec<u32>) {
        (self.newest, self.counts.to_vec())
    }

    /// The tally that told of these parts.
    pub(crate) fn of_parts(bucket_ms: u64, (newest, counts): (u64, Vec<u32>)) -> Self {
        let mut tally = Self { newest, ..Self::new(bucket_ms) };
        tally.counts.iter_mut().zip(counts).for_each(|(to, from)| *to = from);
        tally
    }

    pub(crate) fn add(&mut self, at: TimeMs, count: u64) {
        let bucket = self.bucket(at);
        let stale = bucket.saturating_sub(self.newest);
        if stale >= BUCKETS as u64 {
            self.counts = [0; BUCKETS];
        } else {
            for skipped in 1..=stale {
                self.set(self.newest + skipped, 0);
            }
        }
        self.newest = self.newest.max(bucket);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.set(bucket, self.of(bucket).saturating_add(count));
    }

    fn of(&self, bucket: u64) -> u32 {
        self.counts.get(Self::index(bucket)).copied().unwrap_or(0)
    }

    fn set(&mut self, bucket: u64, count: u32) {
        if let Some(slot) = self.counts.get_mut(Self::index(bucket)) {
            *slot = count;
        }
    }

    /// The sum over the last sixty buckets as of `now`.
    pub(crate) fn sum(&self, now: TimeMs) -> u64 {
        let bucket = self.bucket(now).max(self.newest);
        let oldest = bucket.saturating_sub(BUCKETS as u64 - 1);
        (oldest..=self.newest).map(|bucket| u64::from(self.of(bucket))).sum()
    }

    pub(super) fn feed(&self, to: &mut Fingerprint) {
        to.number(self.newest);
        self.counts.iter().for_each(|count| to.number(u64::from(*count)));
    }

    fn bucket(&self, at: TimeMs) -> u64 {
        at.0 / self.bucket_ms.max(1)
    }

    fn index(bucket: u64) -> usize {
        usize::try_from(bucket % BUCKETS as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_bucket_by_bucket() {
        let mut tally = Tally::new(1000);
        tally.add(TimeMs(1_000_000), 3);
        tally.add(TimeMs(1_030_000), 4);
        for (now, sum) in [(1_030_500, 7), (1_059_999, 7), (1_060_000, 4), (1_090_000, 0)] {
            assert_eq!(tally.sum(TimeMs(now)), sum, "{now}");
        }
        tally.add(TimeMs(9_000_000), 1);
        assert_eq!(tally.sum(TimeMs(9_000_000)), 1);
    }
}
