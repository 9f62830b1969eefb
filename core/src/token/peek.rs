//! What a connector without the secret can tell about a token: which room it names and when it was
//! issued. Nothing of it is proven; it only chooses what to show to the server.

use serde_json::Value;

use super::wire::{Claims, Parts};
use crate::id::RoomId;
use crate::time::TimeMs;

/// The claims of a token that nobody verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The room it names.
    pub room: RoomId,
    /// When it says it was issued; zero when it does not say.
    pub issued_at: TimeMs,
    /// The key it says it is signed with; `None` in the legacy form.
    pub key_id: Option<alloc::string::String>,
}

impl Peek {
    /// Reads a token without verifying it; `None` when it is none in form.
    #[must_use]
    pub fn at(text: &str) -> Option<Self> {
        let parts = Parts::split(text).ok()?;
        let Claims { kid, members } = Claims::parse(&parts.payload).ok()?;
        let room = RoomId::parse(members.get("r")?.as_str()?).ok()?;
        let issued_at = members.get("iat").and_then(Value::as_u64).unwrap_or(0);
        Some(Self { room, issued_at: TimeMs(issued_at), key_id: kid })
    }
}
