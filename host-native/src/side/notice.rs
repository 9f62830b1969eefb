//! Mail notices: who wants to hear when their turn comes (NOT-*). A notice belongs to a place.

use qm_core::id::{Place, RoomId};
use qm_core::time::TimeMs;
use serde_json::{Value, json};

/// The place a notice belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NoticeKey {
    /// The room.
    pub room: RoomId,
    /// Its generation.
    pub generation: u64,
    /// The place.
    pub place: Place,
}

/// How the delivery stands (HOL-38).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing was sent yet.
    Pending,
    /// Taken for sending; told as pending.
    Sending,
    /// The mail server took it.
    Sent,
    /// The mail server refused it, or could not be reached for too long.
    Failed,
}

impl Delivery {
    /// The word in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending | Self::Sending => "pending",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

/// A notice.
#[derive(Clone, PartialEq, Eq)]
pub struct Notice {
    /// The place it belongs to.
    pub key: NoticeKey,
    /// Where to.
    pub email: String,
    /// The language of the mail.
    pub language: String,
    /// The digest of the session id that owns the place, in hex: only its holder moves the notice.
    pub owner: Option<String>,
    /// When it was asked for.
    pub requested_at: TimeMs,
    /// How the delivery stands.
    pub delivery: Delivery,
}

impl std::fmt::Debug for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A visitor's address belongs in no log.
        f.debug_struct("Notice").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Notice {
    /// The notice as its visitor is told.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "emailMasked": masked(&self.email),
            "requestedAt": self.requested_at,
            "delivery": self.delivery.as_str(),
        })
    }
}

/// `alice@example.com` as `a***@e***.com`.
#[must_use]
pub fn masked(email: &str) -> String {
    let (local, domain) = email.rsplit_once('@').unwrap_or((email, ""));
    let first = |text: &str| text.chars().next().map(String::from).unwrap_or_default();
    let ending = domain.rsplit_once('.').map_or("", |(_, ending)| ending);
    let dot = if ending.is_empty() { "" } else { "." };
    format!("{}***@{}***{dot}{ending}", first(local), first(domain))
}
