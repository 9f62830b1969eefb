//! Ids that cross every boundary: room ids, ticket numbers, generations and places. Parsing is the
//! only way to make a [`RoomId`] from text, so code that holds one need not check it again.

use alloc::boxed::Box;
use core::fmt;

use serde::{Deserialize, Serialize};

/// The id of a room: 1 to 64 characters of `a-z A-Z 0-9 _ -` (ADM-19).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "Box<str>")]
pub struct RoomId(Box<str>);

/// The text is not a room id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRoomId;

impl fmt::Display for InvalidRoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a room id is 1 to 64 characters of a-z, A-Z, 0-9, _ and -")
    }
}

/// Prefixes that would make a room's cookie collide with a name the queue already uses (ADM-20).
const RESERVED_PREFIXES: [&str; 4] = ["dk_", "meta_", "notify_", "email_"];

/// Names under which pages keep their own state (ADM-20).
const RESERVED_NAMES: [&str; 12] = [
    "console",
    "theme",
    "lang",
    "admin_key",
    "autotune",
    "autotune_cfg",
    "wait_samples",
    "hidden_series",
    "selected_room",
    "alerts",
    "offline_attempts",
    "origin_down_attempts",
];

impl RoomId {
    /// Reads a room id.
    ///
    /// # Errors
    /// [`InvalidRoomId`] when the length or an octet is outside the alphabet.
    pub fn parse(text: &str) -> Result<Self, InvalidRoomId> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fits { Ok(Self(text.into())) } else { Err(InvalidRoomId) }
    }

    /// Whether a new room may not take this id (ADM-20, ADM-21).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        RESERVED_PREFIXES.iter().any(|prefix| self.0.starts_with(prefix))
            || RESERVED_NAMES.contains(&&*self.0)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<Box<str>> for RoomId {
    type Error = InvalidRoomId;

    fn try_from(text: Box<str>) -> Result<Self, InvalidRoomId> {
        Self::parse(&text)
    }
}

impl From<RoomId> for Box<str> {
    fn from(id: RoomId) -> Self {
        id.0
    }
}

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A place in line or before it, as a visitor token names it (TOK-14 to TOK-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// A ticket number; 0 is the bypass pass that reserved no place (TOK-18).
    #[serde(rename = "n")]
    Ticket(u64),
    /// A pre-queue reference, which tells no order (TOK-19).
    #[serde(rename = "q")]
    Reference(u64),
}

/// The largest integer a token or an answer may carry: what JavaScript reads exactly.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ids() {
        for (text, ok) in [
            ("a", true),
            ("-", true),
            ("__proto__", true),
            ("Console", true),
            (&"x".repeat(64) as &str, true),
            ("", false),
            (&"x".repeat(65) as &str, false),
            ("a b", false),
            ("a.b", false),
            ("ก", false),
        ] {
            assert_eq!(RoomId::parse(text).is_ok(), ok, "{text}");
        }
        for (text, reserved) in
            [("dk_x", true), ("email_", true), ("console", true), ("Console", false), ("dk", false)]
        {
            assert_eq!(RoomId::parse(text).unwrap().is_reserved(), reserved, "{text}");
        }
    }
}
