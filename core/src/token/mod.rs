//! Signed tokens: `base64url(JSON payload) . base64url(HMAC-SHA256 of the encoded payload)`, in the
//! legacy and the v2 form. Every host signs and verifies through a [`KeyRing`]; a token says which
//! place it names and nothing about that place's state, which the room engine knows.

mod key;
mod peek;
mod refresh;
mod short_code;
mod sign;
mod verifier;
mod verify;
mod visitor_key;
mod wire;

use core::fmt;

use crate::id::{Place, RoomId};
use crate::time::TimeMs;

pub use key::KeyRing;
pub use peek::Peek;
pub use refresh::RefreshRule;
pub use verifier::Verifier;
pub use visitor_key::VisitorKeys;
pub use wire::TOKEN_BYTES_MAX;

/// What a signed text is for. In v2 each purpose has a key of its own (TOK-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A visitor's place.
    Visitor,
    /// Read access to the console by link.
    Monitor,
    /// A console session.
    Session,
    /// An operator's key.
    Operator,
}

/// A visitor's place as a token names it (TOK-14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisitorToken {
    /// The room (`r`).
    pub room: RoomId,
    /// The ticket number (`n`) or the pre-queue reference (`q`).
    pub place: Place,
    /// The room's generation (`g`).
    pub generation: u64,
    /// When the token was signed (`iat`).
    pub issued_at: TimeMs,
}

/// Why a token is refused. For counters and logs; the visitor is told no reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    /// Not two parts of canonical base64url around a JSON object, or over-long.
    Malformed,
    /// The `kid` is of no key in the ring.
    UnknownKey,
    /// The signature is not that of the payload.
    BadSignature,
    /// Older than the maximum age.
    Expired,
    /// Issued more than a minute ahead of this clock.
    FromTheFuture,
    /// The payload is not that of this purpose.
    WrongShape,
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "malformed token",
            Self::UnknownKey => "token signed with an unknown key",
            Self::BadSignature => "token signature does not match",
            Self::Expired => "token expired",
            Self::FromTheFuture => "token issued in the future",
            Self::WrongShape => "token payload of another shape",
        })
    }
}

impl core::error::Error for TokenRefusal {}

#[cfg(test)]
mod tests;
