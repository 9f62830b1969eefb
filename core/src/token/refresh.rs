//! When a token is signed anew, and when a stream opened with it closes so that the browser comes
//! back for the new one (TOK-28, EVT-09). The wait in a room can outlast a token's life.

use alloc::format;

use sha2::{Digest, Sha256};

use super::VisitorToken;
use crate::id::Place;
use crate::time::TimeMs;

/// The age from which tokens are signed anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshRule {
    /// That age.
    pub refresh_after_ms: u64,
}

impl RefreshRule {
    /// Half of the shorter of the two lives.
    #[must_use]
    pub const fn new(token_max_age_seconds: u64, cookie_max_age_seconds: u64) -> Self {
        let seconds = if token_max_age_seconds < cookie_max_age_seconds {
            token_max_age_seconds
        } else {
            cookie_max_age_seconds
        };
        Self { refresh_after_ms: seconds.saturating_mul(1000) / 2 }
    }

    /// Whether a token issued then is due.
    #[must_use]
    pub const fn is_due(&self, issued_at: TimeMs, now: TimeMs) -> bool {
        now.ms_since(issued_at) >= self.refresh_after_ms
    }

    /// How long past its due time a stream stays open: up to a tenth of the interval, fixed per
    /// place, so that people who joined together do not come back together.
    #[must_use]
    pub fn jitter_ms(&self, token: &VisitorToken) -> u64 {
        let VisitorToken { room, place, generation, issued_at } = token;
        // A member the token lacks reads as JavaScript prints it (EVT-10).
        let members = match place {
            Place::Ticket(number) => format!("{number}|undefined"),
            Place::Reference(number) => format!("undefined|{number}"),
        };
        let text = format!("{room}|{members}|{generation}|{}", issued_at.0);
        let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(text));
        u64::from(u32::from_be_bytes([a, b, c, d])) % (self.refresh_after_ms / 10 + 1)
    }

    /// When a stream opened with this token closes.
    #[must_use]
    pub fn close_at(&self, token: &VisitorToken) -> TimeMs {
        token.issued_at.plus_ms(self.refresh_after_ms).plus_ms(self.jitter_ms(token))
    }
}
