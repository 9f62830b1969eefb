//! The audit trail (ADM-03): who did what, when and from where. Append-only.

use qm_core::id::RoomId;
use qm_core::time::TimeMs;
use serde_json::{Value, json};

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Its number, rising; set when it is appended.
    pub id: u64,
    /// When.
    pub at: TimeMs,
    /// Who, by name.
    pub actor: String,
    /// With which role.
    pub role: String,
    /// How: `key`, `session`, `link` or `system`.
    pub via: String,
    /// From which address; empty for the server itself.
    pub address: String,
    /// What was done.
    pub action: String,
    /// In which room.
    pub room: Option<RoomId>,
    /// `{before, after}`, or what else explains it.
    pub detail: Value,
}

impl AuditEntry {
    /// An entry of something the server did by itself.
    #[must_use]
    pub fn of_system(at: TimeMs, action: &str, room: &RoomId, detail: Value) -> Self {
        Self {
            id: 0,
            at,
            actor: "server".into(),
            role: "system".into(),
            via: "system".into(),
            address: String::new(),
            action: action.into(),
            room: Some(room.clone()),
            detail,
        }
    }

    /// The entry as answers show it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut entry = json!({
            "id": self.id,
            "at": self.at,
            "actor": self.actor,
            "role": self.role,
            "via": self.via,
            "address": self.address,
            "action": self.action,
            "detail": self.detail,
        });
        if let (Some(room), Some(entry)) = (&self.room, entry.as_object_mut()) {
            entry.insert("roomId".into(), room.as_str().into());
        }
        entry
    }
}
