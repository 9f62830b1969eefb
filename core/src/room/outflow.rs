//! The release rate as a token bucket (HOL-54): refilled continuously, holding at most one second's
//! worth and at least one release, so that an idle or paused room saves up no burst.

use serde::{Deserialize, Serialize};

use super::config::Rate;
use super::fingerprint::Fingerprint;
use crate::time::TimeMs;

/// Credit for timed releases at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outflow {
    credit: f64,
    as_of: TimeMs,
}

/// Rounding slack: a release due now by the exact sum is not put off by a float's last bits.
const SLACK: f64 = 1e-9;

impl Outflow {
    /// A full bucket: the first visitor of an idle room passes at once.
    pub(crate) fn new(rate: Rate, now: TimeMs) -> Self {
        Self { credit: capacity(rate), as_of: now }
    }

    /// Credit at `now`, in releases.
    pub(crate) fn credit(&self, rate: Rate, now: TimeMs) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an elapsed time is far below 2^53 ms")]
        let elapsed = now.ms_since(self.as_of) as f64;
        (self.credit + elapsed * rate.per_ms()).min(capacity(rate))
    }

    /// Whole releases the bucket allows at `now`.
    pub(crate) fn allowance(&self, rate: Rate, now: TimeMs) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a second's worth of the highest rate"
        )]
        let whole = (self.credit(rate, now) + SLACK) as u64;
        whole
    }

    /// Milliseconds until one release is allowed; `None` at rate 0.
    pub(crate) fn ms_until_next(&self, rate: Rate, now: TimeMs) -> Option<u64> {
        if rate.is_zero() {
            return None;
        }
        let missing = (1.0 - SLACK - self.credit(rate, now)).max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturating is what a far future needs"
        )]
        let wait = ceil(missing / rate.per_ms()) as u64;
        Some(wait)
    }

    /// Uses credit for `count` releases at `now`.
    pub(crate) fn spend(&mut self, rate: Rate, now: TimeMs, count: u64) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let spent = count as f64;
        *self = Self { credit: (self.credit(rate, now) - spent).max(0.0), as_of: now };
    }

    /// Settles what was earned at the old rate before another one applies (ENG-15).
    pub(crate) fn change_rate(&mut self, old: Rate, new: Rate, now: TimeMs) {
        *self = Self { credit: self.credit(old, now).min(capacity(new)), as_of: now };
    }

    pub(super) fn feed(&self, to: &mut Fingerprint) {
        to.number(self.credit.to_bits());
        to.number(self.as_of.0);
    }
}

fn capacity(rate: Rate) -> f64 {
    (rate.per_minute() / 60.0).max(1.0)
}

/// `f64::ceil` is not in `core`.
pub(crate) fn ceil(value: f64) -> f64 {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.is_nan() || value.abs() >= EXACT {
        return value;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "the magnitude is below 2^53"
    )]
    let whole = (value as i64) as f64;
    if whole < value { whole + 1.0 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_minute: f64) -> Rate {
        Rate::new(per_minute).unwrap()
    }

    #[test]
    fn a_second_saves_a_seconds_worth_and_an_hour_no_more() {
        let r = rate(600.0);
        let mut outflow = Outflow::new(r, TimeMs(0));
        assert_eq!(outflow.allowance(r, TimeMs(0)), 10);
        outflow.spend(r, TimeMs(0), 10);
        assert_eq!(outflow.allowance(r, TimeMs(99)), 0);
        assert_eq!(outflow.allowance(r, TimeMs(100)), 1);
        assert_eq!(outflow.ms_until_next(r, TimeMs(40)), Some(60));
        assert_eq!(outflow.allowance(r, TimeMs(3_600_000)), 10);
    }

    #[test]
    fn slow_and_zero_rates() {
        let r = rate(0.5);
        let mut outflow = Outflow::new(r, TimeMs(0));
        outflow.spend(r, TimeMs(0), 1);
        assert_eq!(outflow.allowance(r, TimeMs(119_999)), 0);
        assert_eq!(outflow.allowance(r, TimeMs(120_000)), 1);
        assert_eq!(outflow.ms_until_next(rate(0.0), TimeMs(0)), None);
    }

    #[test]
    fn a_higher_rate_does_not_lend_credit() {
        let (slow, fast) = (rate(60.0), rate(6000.0));
        let mut outflow = Outflow::new(slow, TimeMs(0));
        outflow.spend(slow, TimeMs(0), 1);
        outflow.change_rate(slow, fast, TimeMs(0));
        assert_eq!(outflow.allowance(fast, TimeMs(0)), 0);
        assert_eq!(outflow.allowance(fast, TimeMs(10)), 1);
    }

    #[test]
    fn ceiling() {
        for (value, expected) in [(0.0, 0.0), (0.1, 1.0), (1.0, 1.0), (-0.5, 0.0), (1e300, 1e300)] {
            assert!((ceil(value) - expected).abs() < f64::EPSILON, "{value}");
        }
    }
}
