//! How the waiting page of a room looks, and what its operator tells those who wait.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::field::{Field, PatchError, Range, object};
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
    /// Reads the object of a request body. An empty member is an absent one, and a `messageAt`
    /// that comes back from a read is not the operator's to set.
    pub(super) fn parse(value: &Value) -> Result<Self, PatchError> {
        let members = BRANDING.object(value, &MEMBERS)?;
        let set = |name: &str| {
            members.get(name).filter(|value| !value.is_null() && value.as_str() != Some(""))
        };
        Ok(Self {
            logo_url: set("logoUrl").map(|value| LOGO_URL.web_url(value)).transpose()?,
            accent: set("accent").map(|value| colour(ACCENT, value)).transpose()?,
            background: set("background").map(|value| colour(BACKGROUND, value)).transpose()?,
            title: set("title").map(|value| TITLE.line(value, Range(1..=120))).transpose()?,
            message: set("message").map(|value| MESSAGE.message(value, 2000)).transpose()?,
            message_at: None,
        })
    }

    /// This branding in place of `before`: the message keeps its time as long as it is the same.
    pub(super) fn stamped(mut self, before: &Self, now: TimeMs) -> Self {
        let same = self.message == before.message;
        let changed_at = if same { before.message_at } else { Some(now) };
        self.message_at = self.message.as_ref().and(changed_at);
        self
    }

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

const MEMBERS: [&str; 6] = ["logoUrl", "accent", "background", "title", "message", "messageAt"];

const CODE: &str = "invalid_branding";
const BRANDING: Field = Field::new("branding", CODE);
const LOGO_URL: Field = Field::new("branding.logoUrl", CODE);
const ACCENT: Field = Field::new("branding.accent", CODE);
const BACKGROUND: Field = Field::new("branding.background", CODE);
const TITLE: Field = Field::new("branding.title", CODE);
const MESSAGE: Field = Field::new("branding.message", CODE);

fn colour(field: Field, value: &Value) -> Result<String, PatchError> {
    let written = |text: &&str| {
        text.strip_prefix('#').is_some_and(|hex| {
            matches!(hex.len(), 3 | 6) && hex.bytes().all(|octet| octet.is_ascii_hexdigit())
        })
    };
    let text = value.as_str().filter(written);
    text.map(String::from).ok_or_else(|| field.refuse("a colour written #rgb or #rrggbb"))
}
