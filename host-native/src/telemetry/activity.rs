//! What happens in a room over a span of time: counts, and the waits of those who passed as a
//! sample of bounded size (ADM-05 to ADM-07). Rooms fill buckets, the history keeps them.

use qm_core::time::TimeMs;

/// How many waits a sample holds.
const SAMPLE_MAX: usize = 256;

/// The waits of those who passed: all of them while they are few, then a fair sample of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitSample {
    /// How many passed.
    pub seen: u64,
    /// Seconds waited.
    pub seconds: Vec<u32>,
}

impl WaitSample {
    /// Takes note of a wait; `random` decides which one of a full sample it replaces.
    pub fn offer(&mut self, seconds: u32, weight: u64, random: u64) {
        self.seen += weight;
        if self.seconds.len() < SAMPLE_MAX {
            self.seconds.push(seconds);
            return;
        }
        let slot = random % (self.seen / weight.max(1)).max(1);
        if let Some(slot) = usize::try_from(slot).ok().and_then(|i| self.seconds.get_mut(i)) {
            *slot = seconds;
        }
    }

    /// Adds another sample, keeping each in proportion to how many it stands for.
    pub fn merge(&mut self, other: &Self) {
        let all = self.seen + other.seen;
        if self.seconds.len() + other.seconds.len() <= SAMPLE_MAX || all == 0 {
            self.seconds.extend(&other.seconds);
        } else {
            let size = SAMPLE_MAX as u64;
            let own = usize::try_from(size * self.seen / all).unwrap_or(SAMPLE_MAX);
            let mut kept = spread(&self.seconds, own.min(self.seconds.len()));
            kept.extend(spread(&other.seconds, SAMPLE_MAX - kept.len()));
            self.seconds = kept;
        }
        self.seen = all;
    }

    /// The wait that a share of a hundred did not exceed; `None` when nobody passed.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<u32> {
        let mut sorted = self.seconds.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

/// Evenly spread members of a list in no particular order.
fn spread(list: &[u32], count: usize) -> Vec<u32> {
    let count = count.min(list.len());
    (0..count).map(|i| list[i * list.len() / count]).collect()
}

/// What happened within one bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// When it starts.
    pub start: TimeMs,
    /// Places taken.
    pub joins: u64,
    /// Tickets released.
    pub passes: u64,
    /// First admissions at the door.
    pub admitted: u64,
    /// Places given up by their visitors.
    pub abandoned: u64,
    /// Passes that ran out unused.
    pub expired: u64,
    /// The most that waited at one time.
    pub peak_waiting: u64,
    /// How many waited at the end.
    pub waiting: u64,
    /// Open door sessions at the end.
    pub sessions: u64,
    /// The waits of those who passed.
    pub waits: WaitSample,
}

impl Bucket {
    /// Whether there is nothing to tell: no event, and nobody there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self { start: self.start, ..Self::default() }
    }

    /// Adds what happened later within the same bucket.
    pub fn add(&mut self, later: &Self) {
        self.joins += later.joins;
        self.passes += later.passes;
        self.admitted += later.admitted;
        self.abandoned += later.abandoned;
        self.expired += later.expired;
        self.peak_waiting = self.peak_waiting.max(later.peak_waiting);
        (self.waiting, self.sessions) = (later.waiting, later.sessions);
        self.waits.merge(&later.waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_sample() {
        let mut sample = WaitSample::default();
        assert_eq!(sample.percentile(50), None);
        for seconds in 1..=100 {
            sample.offer(seconds, 1, 0);
        }
        for (percent, expected) in [(50, 50), (90, 90), (99, 99), (100, 100)] {
            assert_eq!(sample.percentile(percent), Some(expected));
        }
    }

    #[test]
    fn a_sample_stays_small_and_fair() {
        let (mut short, mut long) = (WaitSample::default(), WaitSample::default());
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        for _ in 0..9_000 {
            short.offer(10, 1, random());
        }
        for _ in 0..1_000 {
            long.offer(100, 1, random());
        }
        short.merge(&long);
        assert_eq!((short.seen, short.seconds.len()), (10_000, SAMPLE_MAX));
        assert_eq!((short.percentile(85), short.percentile(95)), (Some(10), Some(100)));
    }
}
