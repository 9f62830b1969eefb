//! Honest waits: a number only where the room can stand behind it (HOL-34, ADM-12 to ADM-15).

use super::Room;
use super::config::RoomState;
use super::outflow::ceil;
use crate::time::TimeMs;

/// A wait told to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Whole seconds, rounded up.
    pub seconds: u64,
    /// The real wait is at least this long: the draw decides how much longer (PRE-14).
    pub is_floor: bool,
}

/// How long the measured rate looks back, in seconds.
const MEASURED_SECONDS: f64 = 300.0;

impl Room {
    /// Releases a second that a wait can be built on; `None` when the room releases nobody.
    ///
    /// While every slot is taken the configured rate says nothing, so what was measured counts.
    fn releases_per_second(&self, now: TimeMs) -> Option<f64> {
        let settings = self.settings();
        if settings.state == RoomState::Paused || settings.rate.is_zero() {
            return None;
        }
        let configured = settings.rate.per_minute() / 60.0;
        if self.free_slots() > 0 {
            return Some(configured);
        }
        #[expect(clippy::cast_precision_loss, reason = "counts and ages far below 2^53")]
        let (passed, age) = (
            self.passed_last_five_minutes.sum(now) as f64,
            now.ms_since(self.created_at()) as f64 / 1000.0,
        );
        let measured = passed / age.clamp(1.0, MEASURED_SECONDS);
        (measured > 0.0).then(|| measured.min(configured))
    }

    /// How long until the ticket at `position` (1 is the front) passes.
    #[must_use]
    pub fn wait_at(&self, position: u64, now: TimeMs) -> Option<u64> {
        let per_second = self.releases_per_second(now)?;
        let start = self.settings().opens_at.map_or(now, |opens_at| opens_at.max(now));
        let credit = if self.free_slots() > 0 {
            self.outflow.credit(self.settings().rate, start)
        } else {
            0.0
        };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let (ahead, closed) = (position as f64 - credit, start.ms_since(now) as f64 / 1000.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative; saturating suits a far future"
        )]
        let seconds = ceil(closed + (ahead / per_second).max(0.0)) as u64;
        Some(seconds)
    }

    /// The wait of a visitor who would join now (ADM-12).
    #[must_use]
    pub fn wait_of_newcomer(&self, now: TimeMs) -> Option<Wait> {
        if self.is_bypass() {
            return Some(Wait { seconds: 0, is_floor: false });
        }
        let is_floor = self.gate_closed(now);
        let position = self.waiting() + u64::from(!is_floor);
        Some(Wait { seconds: self.wait_at(position, now)?, is_floor })
    }
}
