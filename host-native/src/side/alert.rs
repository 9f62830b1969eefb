//! Alerts that are raised: each is told once until it is cleared (HOL-41).

use qm_core::time::TimeMs;
use serde_json::{Value, json};

/// A raised alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// What is wrong, one of the kinds of the contract.
    pub kind: &'static str,
    /// `warning` or `critical`.
    pub level: &'static str,
    /// The room it is about.
    pub room: Option<String>,
    /// The text for people.
    pub message: String,
    /// Since when.
    pub at: TimeMs,
}

impl Alert {
    /// What tells alerts apart: the kind and the room.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{} {}", self.kind, self.room.as_deref().unwrap_or_default())
    }

    /// The alert as the state and the webhook tell it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut alert = json!({
            "alert": self.kind,
            "level": self.level,
            "message": self.message,
            "at": self.at,
        });
        if let (Some(room), Some(alert)) = (&self.room, alert.as_object_mut()) {
            alert.insert("roomId".into(), room.as_str().into());
        }
        alert
    }
}
