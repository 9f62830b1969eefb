//! The lengths of the buckets that a room's history consists of. The counts of a stored bucket are
//! totals so far.

use qm_core::time::TimeMs;

pub use crate::telemetry::{Bucket, WaitSample};

/// The length of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grain {
    /// Ten seconds, kept for a quarter of an hour.
    TenSeconds,
    /// A minute, kept for a day.
    Minute,
    /// An hour, kept for `HISTORY_RETAIN_DAYS`.
    Hour,
}

impl Grain {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TenSeconds, Self::Minute, Self::Hour];

    /// The length in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        match self {
            Self::TenSeconds => 10_000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }

    /// The start of the bucket that `at` falls into.
    #[must_use]
    pub const fn start(self, at: TimeMs) -> TimeMs {
        TimeMs(at.0 - at.0 % self.ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_start_on_their_grain() {
        assert_eq!(Grain::Hour.start(TimeMs(7_300_001)), TimeMs(7_200_000));
        assert_eq!(Grain::TenSeconds.start(TimeMs(19_999)), TimeMs(10_000));
    }
}
