//! The one clock of the process: wall time at the start plus monotonic time since. Hosts read it
//! and pass the result to the core; a step of the system clock cannot make it run backwards.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qm_core::time::TimeMs;
use tokio::time::Instant;

/// A clock that never runs backwards. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall_at_start: TimeMs,
    started: Instant,
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
        Self { wall_at_start: wall, started: Instant::now() }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> TimeMs {
        self.wall_at_start.plus_ms(millis(self.started.elapsed()))
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
    }
}
