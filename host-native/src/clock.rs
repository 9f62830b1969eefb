//! The one clock of the process: wall time at the start plus monotonic time since, moved to the
//! time that all instances share. Hosts read it and pass the result to the core; a step of the system
//! clock cannot make it run backwards, and within a room the core never lets time run back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qm_core::time::TimeMs;
use tokio::time::Instant;

/// A clock that never runs backwards. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall_at_start: TimeMs,
    started: Instant,
    /// Milliseconds to the shared time; one for the life of the process.
    offset: &'static AtomicI64,
}

impl Clock {
    /// Starts from the system's wall clock.
    #[must_use]
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::start_at(TimeMs(millis(since_epoch)))
    }

    /// Starts from a given wall time, for tests.
    #[must_use]
    pub fn start_at(wall: TimeMs) -> Self {
        let offset = Box::leak(Box::new(AtomicI64::new(0)));
        Self { wall_at_start: wall, started: Instant::now(), offset }
    }

    /// Moves to the shared time: `then` is what it was when this clock showed `here`.
    pub fn adjust(&self, here: TimeMs, then: TimeMs) {
        let signed = |time: TimeMs| i64::try_from(time.0).unwrap_or(i64::MAX);
        self.offset.fetch_add(signed(then) - signed(here), Ordering::Relaxed);
    }

    /// Milliseconds that this clock was moved.
    #[must_use]
    pub fn offset_ms(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> TimeMs {
        let own = self.wall_at_start.plus_ms(millis(self.started.elapsed()));
        TimeMs(own.0.saturating_add_signed(self.offset_ms()))
    }

    /// Time since the start.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_is_the_start_plus_what_passed() {
        let clock = Clock::start_at(TimeMs(1_700_000_000_000));
        assert_eq!(clock.now(), TimeMs(1_700_000_000_000));
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(clock.now(), TimeMs(1_700_000_001_500));
        assert_eq!(clock.uptime(), Duration::from_millis(1500));
        let copy = clock;
        clock.adjust(TimeMs(1_700_000_001_500), TimeMs(1_699_999_971_500));
        assert_eq!((copy.now(), copy.offset_ms()), (TimeMs(1_699_999_971_500), -30_000));
    }
}
