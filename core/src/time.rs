//! Points in time as the core sees them: epoch milliseconds that a host passes in. Nothing in this
//! crate reads a clock; wall time is used throughout because tokens and drops outlive a process.

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TimeMs(pub u64);

impl TimeMs {
    /// The end of time: never reached, for comparisons with "no deadline".
    pub const MAX: Self = Self(u64::MAX);

    /// This point moved `ms` milliseconds later, stopping at the end of time.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This point moved `seconds` later, stopping at the end of time.
    #[must_use]
    pub const fn plus_seconds(self, seconds: u64) -> Self {
        self.plus_ms(seconds.saturating_mul(1000))
    }

    /// Milliseconds from `earlier` to this point; 0 when `earlier` is later.
    #[must_use]
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
