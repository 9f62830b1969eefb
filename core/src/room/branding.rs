//! How the waiting page of a room looks, and what its operator tells those who wait.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::field::object;
use crate::time::TimeMs;

/// How the waiting page looks, and the message on it. An absent member is the page's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Branding {
    /// Address of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    /// Colour of what moves, `#rgb` or `#rrggbb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accent: Option<String>,
    /// Colour of the page, `#rgb` or `#rrggbb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// Heading of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the operator tells those who wait; never empty (ADM-37).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When `message` changed last; there is none without a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_at: Option<TimeMs>,
}

impl Branding {
    /// The members that are set, as an object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let text = |name, member: &Option<String>| Some((name, member.as_deref()?.into()));
        let members = [
            text("logoUrl", &self.logo_url),
            text("accent", &self.accent),
            text("background", &self.background),
            text("title", &self.title),
            text("message", &self.message),
            self.message_at.map(|at| ("messageAt", at.0.into())),
        ];
        object(members.into_iter().flatten())
    }
}
