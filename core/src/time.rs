//! Points in time as the core sees them: epoch milliseconds that a host passes in. Nothing in this
//! crate reads a clock; wall time is used throughout because tokens and drops outlive a process.

use alloc::format;
use alloc::string::String;

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

    /// The point as people read it in UTC, to the minute: `2026-01-31 18:05`.
    #[must_use]
    pub fn to_utc_minutes(self) -> String {
        let minutes = self.0 / 60_000;
        let (year, month, day) = date_of(minutes / 1440);
        let (hour, minute) = (minutes / 60 % 24, minutes % 60);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
    }

    /// Milliseconds from `earlier` to this point; 0 when `earlier` is later.
    #[must_use]
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads an RFC 3339 date and time (`2026-07-01T10:00:00.5+07:00`). Fractions beyond
    /// milliseconds are cut; leap seconds and times before the epoch are not times here.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let &[
            y1,
            y2,
            y3,
            y4,
            b'-',
            o1,
            o2,
            b'-',
            d1,
            d2,
            b'T' | b't',
            h1,
            h2,
            b':',
            m1,
            m2,
            b':',
            s1,
            s2,
            ref rest @ ..,
        ] = text.as_bytes()
        else {
            return None;
        };
        let days =
            days_since_epoch(digits(&[y1, y2, y3, y4])?, digits(&[o1, o2])?, digits(&[d1, d2])?)?;
        let second = digits(&[s1, s2]).filter(|second| *second < 60)?;
        let (fraction_ms, zone) = fraction(rest)?;
        let minutes = days * 1440 + minutes_of(&[h1, h2], &[m1, m2])? - offset_minutes(zone)?;
        u64::try_from((minutes * 60 + second) * 1000 + fraction_ms).ok().map(Self)
    }
}

/// A number written in decimal digits only.
fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

/// Minutes since midnight, of an hour and a minute within their bounds.
fn minutes_of(hour: &[u8], minute: &[u8]) -> Option<i64> {
    let hour = digits(hour).filter(|hour| *hour < 24)?;
    let minute = digits(minute).filter(|minute| *minute < 60)?;
    Some(hour * 60 + minute)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; earlier dates are negative.
fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // The year is counted from March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

/// The milliseconds of an optional `.digits`, and what follows it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', rest)) = text.split_first() else { return Some((0, text)) };
    let length = rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
    let (fraction, zone) =
        rest.split_at_checked(length).filter(|(digits, _)| !digits.is_empty())?;
    let padded = fraction.iter().copied().chain(core::iter::repeat(b'0')).take(3);
    let ms = padded.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0'));
    Some((ms, zone))
}

/// The minutes that a written zone is ahead of UTC.
fn offset_minutes(zone: &[u8]) -> Option<i64> {
    match *zone {
        [b'Z' | b'z'] => Some(0),
        [b'+', h1, h2, b':', m1, m2] => minutes_of(&[h1, h2], &[m1, m2]),
        [b'-', h1, h2, b':', m1, m2] => minutes_of(&[h1, h2], &[m1, m2]).map(|minutes| -minutes),
        _ => None,
    }
}

/// The civil date of a day since the epoch: counted in eras of 400 years that begin in March, so
/// that the leap day is the last of its year.
fn date_of(day: u64) -> (u64, u64, u64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:30:00-01:00", Some(1_800_000)),
            ("1970-01-01T00:00:00+00:01", None),
            ("1969-12-31T23:59:59Z", None),
            ("0000-01-01T00:00:00Z", None),
            ("2099-01-01T02:00:00+02:00", Some(4_070_908_800_000)),
            ("2026-07-01t10:00:00.5z", Some(1_782_900_000_500)),
            ("2026-07-01T10:00:00.123999999999999999999Z", Some(1_782_900_000_123)),
            ("2026-07-01T10:00:00.007-00:00", Some(1_782_900_000_007)),
            ("2000-02-29T00:00:00Z", Some(951_782_400_000)),
            ("2024-02-29T12:00:00Z", Some(1_709_208_000_000)),
            ("2024-03-01T00:00:00Z", Some(1_709_251_200_000)),
            ("2024-12-31T23:59:59.999Z", Some(1_735_689_599_999)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799_000)),
            ("2023-02-29T00:00:00Z", None),
            ("2100-02-29T00:00:00Z", None),
            ("2026-04-31T00:00:00Z", None),
            ("2026-00-01T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-00T00:00:00Z", None),
            ("2026-01-01T24:00:00Z", None),
            ("2026-01-01T00:60:00Z", None),
            ("2016-12-31T23:59:60Z", None),
            ("2026-01-01T00:00:00+24:00", None),
            ("2026-01-01T00:00:00+00:60", None),
            ("2026-01-01T00:00:00+0100", None),
            ("2026-01-01T00:00:00", None),
            ("2026-01-01T00:00:00.Z", None),
            ("2026-01-01T00:00:00,5Z", None),
            ("2026-01-01T00:00Z", None),
            ("2026-01-01 00:00:00Z", None),
            ("2026-01-01T00:00:00Z ", None),
            ("+026-01-01T00:00:00Z", None),
            ("2026-1-01T00:00:00Z", None),
            ("2026-01-01", None),
            ("someday", None),
            ("", None),
        ] {
            assert_eq!(TimeMs::parse_rfc3339(text), ms.map(TimeMs), "{text}");
        }
    }

    #[test]
    fn utc_minutes_read_back() {
        for text in ["1970-01-01 00:00", "2000-02-29 23:59", "2026-12-31 18:05", "2100-03-01 00:00"]
        {
            let (date, time) = text.split_once(' ').unwrap();
            let parsed = TimeMs::parse_rfc3339(&format!("{date}T{time}:59Z")).unwrap();
            assert_eq!(parsed.to_utc_minutes(), text);
        }
    }
}
