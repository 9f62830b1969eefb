//! Verifying visitor tokens with the derived `qm:visitor` key alone, for connectors that may hold
//! that key and never the secret. Legacy tokens are signed with the secret itself, so nothing can
//! be said about them here.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use hmac::Mac as _;

use super::key::{KeyedMac, keyed};
use super::peek::Peek;
use super::verify::AHEAD_MS_MAX;
use super::wire::Parts;
use crate::digest::parse_hex;
use crate::id::RoomId;
use crate::time::TimeMs;

/// The visitor keys of the current and the previous secret, by `kid`.
#[derive(Clone)]
pub struct VisitorKeys {
    keys: Vec<(String, KeyedMac)>,
    max_age_ms: u64,
}

impl VisitorKeys {
    /// Reads `kid:hex`, or two of them with a comma between while a secret is being rotated.
    #[must_use]
    pub fn parse(text: &str, max_age_ms: u64) -> Option<Self> {
        let key = |entry: &str| {
            let (kid, hex) = entry.trim().split_once(':')?;
            parse_hex::<4>(kid)?;
            Some((kid.to_string(), keyed(&parse_hex::<32>(hex)?)))
        };
        let keys: Vec<_> = text.split(',').map(key).collect::<Option<_>>()?;
        Some(Self { keys, max_age_ms })
    }

    /// Whether the token is certainly none for the room: of another room, signed wrongly, or too
    /// old. What cannot be told is not refused: the server will.
    #[must_use]
    pub fn refuse(&self, text: &str, room: &RoomId, now: TimeMs) -> bool {
        let Some(peek) = Peek::at(text) else { return true };
        if peek.room != *room {
            return true;
        }
        let Some((_, key)) =
            self.keys.iter().find(|(kid, _)| Some(kid.as_str()) == peek.key_id.as_deref())
        else {
            return false;
        };
        let Ok(parts) = Parts::split(text) else { return true };
        let signed = key.clone().chain_update(parts.signed).verify_slice(&parts.signature).is_ok();
        !signed
            || now.ms_since(peek.issued_at) > self.max_age_ms
            || peek.issued_at.ms_since(now) > AHEAD_MS_MAX
    }
}

impl fmt::Debug for VisitorKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(kid, _)| kid)).finish()
    }
}
