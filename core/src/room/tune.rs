//! What the automatic settings of a room decide (HOL-43): pure, so that a simulation can show where
//! they lead. The host measures, and applies what comes out.

use super::automatic::{AutoActivate, Autotune, Mode};
use super::config::RoomState;
use super::rate::Rate;
use crate::time::TimeMs;

/// What a look at the origin found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginHealth {
    /// It answers in time.
    Healthy,
    /// It answers too late, with a fault of its own, or not at all.
    Unhealthy,
}

/// Adjusts one room's rate. It remembers the rate at which the origin fell ill and stays below it
/// for a while: without that the rate would climb into the same illness again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tuner {
    ceiling: Option<(f64, TimeMs)>,
}

/// How long a ceiling holds.
const CEILING_MS: u64 = 300_000;

impl Tuner {
    /// The rate to set now; `None` to leave it.
    pub fn next(
        &mut self,
        autotune: &Autotune,
        rate: Rate,
        health: OriginHealth,
        someone_waits: bool,
        now: TimeMs,
    ) -> Option<Rate> {
        if autotune.mode == Mode::Off {
            return None;
        }
        let (low, high) = (autotune.min_rate.per_minute(), autotune.max_rate.per_minute());
        let current = rate.per_minute();
        let wanted = match health {
            OriginHealth::Unhealthy => {
                self.ceiling = Some((current, now.plus_ms(CEILING_MS)));
                current * 0.8
            }
            OriginHealth::Healthy if someone_waits => {
                self.ceiling = self.ceiling.filter(|(_, until)| now < *until);
                let raised = current * 1.05;
                match self.ceiling {
                    Some((ill_at, _)) if raised > ill_at * 0.95 => return None,
                    _ => raised,
                }
            }
            OriginHealth::Healthy => return None,
        };
        let next = Rate::new(wanted.clamp(low, high.max(low)))?;
        (next != rate).then_some(next)
    }
}

/// Starts and stops the queue of one room by its arrivals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activator {
    /// It was this that started the queue; what an operator started, an operator stops.
    active: bool,
    quiet_since: Option<TimeMs>,
}

/// A room as the activator sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    /// The state that is set.
    pub state: RoomState,
    /// Visitors who came within the last ten seconds.
    pub last_ten_seconds: u64,
    /// Whether anybody is in line or waits for an opening.
    pub someone_waits: bool,
}

impl Activator {
    /// The state to set now; `None` to leave it.
    pub fn next(
        &mut self,
        settings: &AutoActivate,
        seen: Arrivals,
        now: TimeMs,
    ) -> Option<RoomState> {
        if settings.mode == Mode::Off {
            *self = Self::default();
            return None;
        }
        let a_minute = seen.last_ten_seconds.saturating_mul(6);
        let threshold = u64::from(settings.arrivals_per_minute);
        match seen.state {
            RoomState::Bypass => {
                *self = Self { active: a_minute > threshold, quiet_since: None };
                self.active.then_some(RoomState::Active)
            }
            RoomState::Active if self.active => {
                if seen.someone_waits || a_minute.saturating_mul(2) >= threshold {
                    self.quiet_since = None;
                    return None;
                }
                let since = *self.quiet_since.get_or_insert(now);
                let quiet_ms = u64::from(settings.quiet_minutes) * 60_000;
                if now.ms_since(since) < quiet_ms {
                    return None;
                }
                *self = Self::default();
                Some(RoomState::Bypass)
            }
            RoomState::Active | RoomState::Paused => {
                *self = Self::default();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn autotune(low: f64, high: f64) -> Autotune {
        Autotune {
            mode: Mode::On,
            min_rate: Rate::new(low).unwrap(),
            max_rate: Rate::new(high).unwrap(),
            target_latency_ms: 500,
            probe_url: None,
        }
    }

    #[test]
    fn one_step() {
        use OriginHealth::{Healthy, Unhealthy};
        for (rate, low, high, health, waits, expected) in [
            (100.0, 10.0, 1000.0, Unhealthy, true, Some(80.0)),
            (100.0, 90.0, 1000.0, Unhealthy, false, Some(90.0)),
            (10.0, 10.0, 1000.0, Unhealthy, false, None),
            (6.0, 1.0, 1000.0, Healthy, true, Some(6.3)),
            (6.0, 1.0, 6.2, Healthy, true, Some(6.2)),
            (6.2, 1.0, 6.2, Healthy, true, None),
            (6.0, 1.0, 1000.0, Healthy, false, None),
            (2000.0, 1.0, 1000.0, Healthy, true, Some(1000.0)),
            (0.0, 1.0, 1000.0, Healthy, true, Some(1.0)),
        ] {
            let rate = Rate::new(rate).unwrap();
            let next = Tuner::default().next(&autotune(low, high), rate, health, waits, TimeMs(0));
            assert_eq!(next.map(Rate::per_minute), expected, "{rate:?} {health:?} {waits}");
        }
    }

    /// Origins that bear some rate fall ill above it; two hours of ten-second steps.
    #[test]
    fn it_settles_below_what_the_origin_bears_and_keeps_its_bounds() {
        for bears in [20.0, 95.0, 400.0, 5000.0] {
            let (settings, mut tuner) = (autotune(10.0, 1000.0), Tuner::default());
            let mut rate = Rate::new(100.0).unwrap();
            let mut ill = 0;
            let mut rates = Vec::new();
            for step in 0..720_u64 {
                let health = if rate.per_minute() > bears {
                    ill += 1;
                    OriginHealth::Unhealthy
                } else {
                    OriginHealth::Healthy
                };
                let now = TimeMs(step * 10_000);
                if let Some(next) = tuner.next(&settings, rate, health, true, now) {
                    rate = next;
                }
                assert!((10.0..=1000.0).contains(&rate.per_minute()));
                rates.push(rate.per_minute());
            }
            // At most one look in five minutes finds it ill again, after the first descent.
            assert!(ill <= 8 + 720 / 30, "{bears}: ill at {ill} looks");
            let lowest = rates.iter().skip(360).fold(f64::MAX, |low, rate| low.min(*rate));
            let bound = f64::min(bears, 1000.0);
            assert!(lowest >= bound * 0.7, "{bears}: fell to {lowest}");
        }
    }

    #[test]
    fn the_queue_starts_in_a_rush_and_stops_when_it_is_quiet() {
        let settings = AutoActivate { mode: Mode::On, arrivals_per_minute: 60, quiet_minutes: 1 };
        let mut activator = Activator::default();
        let mut next = |state, last_ten_seconds, someone_waits, seconds: u64| {
            let seen = Arrivals { state, last_ten_seconds, someone_waits };
            activator.next(&settings, seen, TimeMs(seconds * 1000))
        };
        use RoomState::{Active, Bypass, Paused};
        assert_eq!(next(Bypass, 10, false, 0), None, "not above the threshold");
        assert_eq!(next(Bypass, 11, false, 10), Some(Active));
        assert_eq!(next(Active, 0, true, 100), None, "somebody waits");
        assert_eq!(next(Active, 5, false, 200), None, "half of it is not below half");
        assert_eq!(next(Active, 1, false, 300), None);
        assert_eq!(next(Active, 9, false, 330), None, "a rush in between starts anew");
        assert_eq!(next(Active, 1, false, 340), None);
        assert_eq!(next(Active, 1, false, 399), None);
        assert_eq!(next(Active, 1, false, 400), Some(Bypass));
        assert_eq!(next(Active, 0, false, 900), None, "an operator started it");
        assert_eq!(next(Paused, 99, false, 910), None);
    }
}
