//! Connectors that checked in: every verification of an installation, by what and where (VER-05).

use qm_core::time::TimeMs;
use serde_json::{Value, json};

/// What tells installations apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Installation {
    /// The connector's registry id.
    pub connector: String,
    /// Its version.
    pub version: String,
    /// The room it names.
    pub room: String,
    /// The site.
    pub origin: String,
}

/// One verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Of what.
    pub installation: Installation,
    /// Whether nothing failed.
    pub ok: bool,
    /// When.
    pub at: TimeMs,
}

/// An installation with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckIn {
    /// Which.
    pub installation: Installation,
    /// How the last verification went.
    pub ok: bool,
    /// When it was.
    pub last_at: TimeMs,
    /// How many there were.
    pub count: u64,
}

impl CheckIn {
    /// The installation as answers show it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Installation { connector, version, room, origin } = &self.installation;
        json!({
            "connector": connector,
            "version": version,
            "roomId": room,
            "origin": origin,
            "ok": self.ok,
            "lastAt": self.last_at,
            "count": self.count,
        })
    }
}
