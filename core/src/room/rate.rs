//! The release rate of a room, in visitors a minute.

use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::id::INTEGER_MAX;

/// A number of visitors a minute: finite, from 0 to [`Rate::MAX`], with at most six decimals. A
/// longer fraction may come back from JSON as its neighbour, and replicas would differ.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(f64);

// No rate is NaN, so equality is total.
impl Eq for Rate {}

impl Rate {
    /// The rate of a room whose creation named none.
    pub const DEFAULT: Self = Self(60.0);
    /// The largest rate, in visitors a minute.
    pub const MAX: u32 = 1_000_000;

    /// Makes a rate of a number of visitors a minute within the bounds, rounded to six decimals.
    #[must_use]
    pub fn new(per_minute: f64) -> Option<Self> {
        if !(0.0..=f64::from(Self::MAX)).contains(&per_minute) {
            return None;
        }
        let millionths = (per_minute * 1_000_000.0 + 0.5) as u64;
        Some(Self(millionths as f64 / 1_000_000.0))
    }

    /// Visitors a minute.
    #[must_use]
    pub const fn per_minute(self) -> f64 {
        self.0
    }

    /// Visitors a millisecond.
    #[must_use]
    pub fn per_ms(self) -> f64 {
        self.0 / 60_000.0
    }

    /// Whether nobody is released by time.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }

    /// The rate as answers print it: a whole number has no fraction.
    #[must_use]
    pub fn to_json(self) -> Value {
        match whole(self.0) {
            Some(number) => number.into(),
            None => Number::from_f64(self.0).map_or(Value::Null, Value::Number),
        }
    }
}

impl TryFrom<f64> for Rate {
    type Error = InvalidRate;

    fn try_from(per_minute: f64) -> Result<Self, InvalidRate> {
        Self::new(per_minute).ok_or(InvalidRate)
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> Self {
        rate.0
    }
}

/// The number is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRate;

impl fmt::Display for InvalidRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a rate is a number from 0 to {}", Rate::MAX)
    }
}

/// The whole number that a float is, when it is one that JavaScript reads exactly.
pub(super) fn whole(number: f64) -> Option<u64> {
    // The cast saturates, and the way back shows whether it lost anything.
    let cast = number as u64;
    let same = cast as f64 == number;
    (same && cast <= INTEGER_MAX).then_some(cast)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_print() {
        for (per_minute, printed) in [
            (0.0, Some("0")),
            (-0.0, Some("0")),
            (60.0, Some("60")),
            (90.5, Some("90.5")),
            (5e-324, Some("0")),
            (0.000_001, Some("1e-6")),
            (1.0 / 3.0, Some("0.333333")),
            (999_999.999_999_9, Some("1000000")),
            (1_000_000.0, Some("1000000")),
            (1_000_000.1, None),
            (-5e-324, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            let text = Rate::new(per_minute).map(|rate| std::format!("{}", rate.to_json()));
            assert_eq!(text.as_deref(), printed, "{per_minute}");
        }
        assert!(Rate::new(-0.0).is_some_and(Rate::is_zero));
        assert_eq!(Rate::DEFAULT.per_ms() * 1000.0, 1.0);
    }

    #[test]
    fn a_rate_is_the_same_after_json() {
        let mut per_minute = 1_000_000.0;
        while let Some(rate) = Rate::new(per_minute).filter(|rate| !rate.is_zero()) {
            let text = serde_json::to_string(&rate).unwrap();
            assert_eq!(serde_json::from_str::<Rate>(&text).unwrap(), rate, "{text}");
            assert_eq!(Rate::new(rate.per_minute()), Some(rate), "{text}");
            per_minute *= 0.987_654_321;
        }
    }

    #[test]
    fn whole_numbers() {
        for (number, want) in [
            (0.0, Some(0)),
            (1.5, None),
            (-1.0, None),
            (f64::NAN, None),
            (9_007_199_254_740_991.0, Some(INTEGER_MAX)),
            (9_007_199_254_740_992.0, None),
            (1e300, None),
        ] {
            assert_eq!(whole(number), want, "{number}");
        }
    }
}
