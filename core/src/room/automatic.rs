//! What a room does by itself when its operator lets it (HOL-43): the settings only.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::field::{object, words};
use super::rate::Rate;

words! {
    /// Whether something automatic runs.
    Mode {
        /// It does not.
        Off = "off",
        /// It does.
        On = "on",
    }
}

/// The automatic release rate (HOL-43).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Autotune {
    /// Whether it runs.
    pub mode: Mode,
    /// The lowest rate it sets.
    pub min_rate: Rate,
    /// The highest rate it sets.
    pub max_rate: Rate,
    /// The latency above which the origin is unhealthy.
    pub target_latency_ms: u32,
    /// What is read to learn the origin's health, unless the room is inline.
    pub probe_url: Option<String>,
}

impl Autotune {
    /// The object as answers print it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let fields = [
            ("mode", self.mode.as_str().into()),
            ("minRate", self.min_rate.to_json()),
            ("maxRate", self.max_rate.to_json()),
            ("targetLatencyMs", self.target_latency_ms.into()),
        ];
        let probe = self.probe_url.as_deref().map(|url| ("probeUrl", url.into()));
        object(fields.into_iter().chain(probe))
    }
}

/// When a room starts and stops queueing by itself (HOL-43).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoActivate {
    /// Whether it does.
    pub mode: Mode,
    /// Arrivals a minute above which a bypass room turns active.
    pub arrivals_per_minute: u32,
    /// Minutes below half of that after which it turns back.
    pub quiet_minutes: u32,
}

impl AutoActivate {
    /// The object as answers print it.
    #[must_use]
    pub fn to_json(self) -> Value {
        object([
            ("mode", self.mode.as_str().into()),
            ("arrivalsPerMin", self.arrivals_per_minute.into()),
            ("quietMin", self.quiet_minutes.into()),
        ])
    }
}
