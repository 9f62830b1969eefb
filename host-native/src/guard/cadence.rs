//! Whether an address joins as regularly as a machine (HOL-39): people behind one address come at
//! uneven times, a script with a timer does not.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use parking_lot::Mutex;
use qm_core::time::TimeMs;

use super::address::AddressGroup;

/// The latest joins by address.
#[derive(Debug)]
pub struct Cadence<K = AddressGroup>(Mutex<HashMap<K, VecDeque<TimeMs>>>);

impl<K: Eq + Hash + Copy> Default for Cadence<K> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Eq + Hash + Copy> Cadence<K> {
    /// Takes note of a join; whether the latest ones of this address are evenly spaced.
    pub fn note(&self, key: K, now: TimeMs) -> bool {
        let mut all = self.0.lock();
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&key) {
            all.retain(|_, times| {
                times.back().is_some_and(|last| now.ms_since(*last) < FORGOTTEN_AFTER_MS)
            });
            if all.len() >= ADDRESSES_MAX
                && let Some(some) = all.keys().next().copied()
            {
                all.remove(&some);
            }
        }
        let times = all.entry(key).or_default();
        if times.back().is_some_and(|last| now.ms_since(*last) >= FORGOTTEN_AFTER_MS) {
            times.clear();
        }
        times.push_back(now);
        if times.len() > JOINS {
            times.pop_front();
        }
        times.len() == JOINS && is_regular(times)
    }
}

/// Gaps that differ by less than a tenth of their mean. Very short gaps are a burst, which quotas
/// see to, and too coarse at a millisecond's resolution.
fn is_regular(times: &VecDeque<TimeMs>) -> bool {
    let gaps = || times.iter().zip(times.iter().skip(1)).map(|(a, b)| b.ms_since(*a));
    let (shortest, longest) = (gaps().min().unwrap_or(0), gaps().max().unwrap_or(0));
    shortest >= GAP_MS_MIN && (longest - shortest) * 10 < shortest
}

const JOINS: usize = 8;
const GAP_MS_MIN: u64 = 100;
const FORGOTTEN_AFTER_MS: u64 = 600_000;
const ADDRESSES_MAX: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_regular_and_people_are_not() {
        for (gaps, expected) in [
            (&[1000; 7][..], true),
            (&[1000, 1010, 1030, 990, 1000, 1020, 1000], true),
            (&[1000, 1200, 700, 1500, 900, 1100, 1000], false),
            (&[5; 7], false),
            (&[1000; 6], false),
        ] {
            let cadence = Cadence::default();
            let mut now = TimeMs(1_000_000);
            let mut regular = cadence.note(1, now);
            for gap in gaps {
                now = now.plus_ms(*gap);
                regular = cadence.note(1, now);
            }
            assert_eq!(regular, expected, "{gaps:?}");
            assert!(!cadence.note(2, now), "another address");
        }
    }
}
