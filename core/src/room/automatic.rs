//! What a room does by itself when its operator lets it (HOL-43): the settings only.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::field::{Field, PatchError, Range, object, words};
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
    /// Reads the object of a request body; null and a bare `{"mode":"off"}` are nothing.
    pub(super) fn parse(value: &Value) -> Result<Option<Self>, PatchError> {
        let members = ["mode", "minRate", "maxRate", "targetLatencyMs", "probeUrl"];
        let Some((mode, body)) = read_mode(AUTOTUNE, AUTOTUNE_MODE, value, &members)? else {
            return Ok(None);
        };
        let probe_url = body.get("probeUrl").filter(|url| !url.is_null());
        let autotune = Self {
            mode,
            min_rate: MIN_RATE.rate(member(body, "minRate"))?,
            max_rate: MAX_RATE.rate(member(body, "maxRate"))?,
            target_latency_ms: TARGET_LATENCY_MS
                .whole(member(body, "targetLatencyMs"), Range(1..=600_000))?,
            probe_url: probe_url.map(|url| PROBE_URL.web_url(url)).transpose()?,
        };
        if autotune.min_rate > autotune.max_rate {
            return Err(MIN_RATE.refuse("at most autotune.maxRate"));
        }
        Ok(Some(autotune))
    }

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
    /// Reads the object of a request body; null and a bare `{"mode":"off"}` are nothing.
    pub(super) fn parse(value: &Value) -> Result<Option<Self>, PatchError> {
        let members = ["mode", "arrivalsPerMin", "quietMin"];
        let Some((mode, body)) = read_mode(AUTO_ACTIVATE, AUTO_ACTIVATE_MODE, value, &members)?
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            mode,
            arrivals_per_minute: ARRIVALS_PER_MIN
                .whole(member(body, "arrivalsPerMin"), Range(1..=100_000_000))?,
            quiet_minutes: QUIET_MIN.whole(member(body, "quietMin"), Range(1..=1440))?,
        }))
    }

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

const AUTOTUNE: Field = Field::new("autotune", "invalid_autotune");
const AUTOTUNE_MODE: Field = Field::new("autotune.mode", "invalid_autotune");
const MIN_RATE: Field = Field::new("autotune.minRate", "invalid_autotune");
const MAX_RATE: Field = Field::new("autotune.maxRate", "invalid_autotune");
const TARGET_LATENCY_MS: Field = Field::new("autotune.targetLatencyMs", "invalid_autotune");
const PROBE_URL: Field = Field::new("autotune.probeUrl", "invalid_autotune");
const AUTO_ACTIVATE: Field = Field::new("autoActivate", "invalid_auto_activate");
const AUTO_ACTIVATE_MODE: Field = Field::new("autoActivate.mode", "invalid_auto_activate");
const ARRIVALS_PER_MIN: Field = Field::new("autoActivate.arrivalsPerMin", "invalid_auto_activate");
const QUIET_MIN: Field = Field::new("autoActivate.quietMin", "invalid_auto_activate");

/// A member of an object; an absent one reads as null.
fn member<'a>(body: &'a Map<String, Value>, name: &str) -> &'a Value {
    body.get(name).unwrap_or(&Value::Null)
}

type Members = Map<String, Value>;

/// The mode and the object, unless they say no more than that it is off.
fn read_mode<'a>(
    field: Field,
    mode_field: Field,
    value: &'a Value,
    members: &[&str],
) -> Result<Option<(Mode, &'a Members)>, PatchError> {
    if value.is_null() {
        return Ok(None);
    }
    let body = field.object(value, members)?;
    let mode = mode_field.word(member(body, "mode"), Mode::parse, Mode::WORDS)?;
    let bare = mode == Mode::Off && body.len() == 1;
    Ok((!bare).then_some((mode, body)))
}
