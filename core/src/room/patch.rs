//! What a request asks to change about a room: reading its body, and applying it to the settings.
//! A body is refused as a whole, and the order is fixed: a redacted body, then names that cannot
//! be written (ADM-35), then values. Called by the admin routes; nothing here decides who may.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::config::{
    AutoActivate, Autotune, Branding, OnBackendDown, Protection, Rate, RoomState, Settings,
};
pub use super::field::PatchError;
use super::field::{Field, Range, integer};
use crate::id::{INTEGER_MAX, RoomId};
use crate::target::RuleSet;
use crate::time::TimeMs;
use crate::url::Origin;

/// The settings a request changes; the inner `None` of a nullable one clears it.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "every field is the one of the same name in Settings")]
pub struct Patch {
    pub name: Option<String>,
    pub target_url: Option<Option<String>>,
    pub proxy_origin: Option<Option<String>>,
    pub rate: Option<Rate>,
    pub max_concurrent: Option<Option<u32>>,
    pub passed_ttl_seconds: Option<u32>,
    pub session_ttl_seconds: Option<u32>,
    pub session_max_seconds: Option<Option<u32>>,
    pub presence_seconds: Option<Option<u32>>,
    pub queue_max_per_address: Option<Option<u32>>,
    pub pre_queue_max_per_address: Option<Option<u32>>,
    pub opens_at: Option<Option<TimeMs>>,
    pub on_backend_down: Option<OnBackendDown>,
    /// Replaced as a whole; its `message_at` is set when the patch is applied.
    pub branding: Option<Branding>,
    pub return_origins: Option<Vec<Origin>>,
    pub tag_origins: Option<Option<Vec<Origin>>>,
    pub url_patterns: Option<RuleSet>,
    pub autotune: Option<Option<Autotune>>,
    pub protection: Option<Protection>,
    pub auto_activate: Option<Option<AutoActivate>>,
    pub state: Option<RoomState>,
}

impl Patch {
    /// Reads the body that edits a room, without its `id`.
    ///
    /// # Errors
    /// `redacted_shape`, `unknown_field`, `conflicting_field` or `invalid_<field>`.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, PatchError> {
        refuse_redacted(body)?;
        refuse_unknown(body, &FIELDS)?;
        Self::read(body)
    }

    /// Reads the body of the rate route.
    ///
    /// # Errors
    /// `unknown_field`, `conflicting_field` or `invalid_rate_per_minute`.
    pub fn parse_rate(body: &Map<String, Value>) -> Result<Self, PatchError> {
        refuse_unknown(body, &["rate", "ratePerMinute"])?;
        if body.is_empty() {
            RATE.rate(&Value::Null)?;
        }
        Self::read(body)
    }

    /// Reads the body of the state route.
    ///
    /// # Errors
    /// `unknown_field` or `invalid_state`.
    pub fn parse_state(body: &Map<String, Value>) -> Result<Self, PatchError> {
        refuse_unknown(body, &["state"])?;
        let state = body.get("state").unwrap_or(&Value::Null);
        Ok(Self { state: Some(read_state(state)?), ..Self::default() })
    }

    /// Reads the body of the schedule route (ADM-43 to ADM-46).
    ///
    /// # Errors
    /// `unknown_field`, `nothing_to_change`, `invalid_opens_at` or
    /// `invalid_pre_queue_max_per_ip`.
    pub fn parse_schedule(body: &Map<String, Value>) -> Result<Self, PatchError> {
        refuse_unknown(body, &["opensAt", "preQueueMaxPerIp"])?;
        if body.is_empty() {
            let message = "send opensAt, preQueueMaxPerIp or both; null clears either".to_string();
            return Err(PatchError { code: "nothing_to_change", message });
        }
        Self::read(body)
    }

    /// The settings after this change.
    ///
    /// # Errors
    /// `invalid_session_max_sec` or `invalid_session_ttl_sec` when a door session could be idle
    /// for longer than it may live: the code names the field that was sent.
    pub fn apply(&self, current: &Settings, now: TimeMs) -> Result<Settings, PatchError> {
        let mut next = current.clone();
        set(&mut next.name, self.name.as_ref());
        set(&mut next.target_url, self.target_url.as_ref());
        set(&mut next.proxy_origin, self.proxy_origin.as_ref());
        set(&mut next.rate, self.rate.as_ref());
        set(&mut next.max_concurrent, self.max_concurrent.as_ref());
        set(&mut next.passed_ttl_seconds, self.passed_ttl_seconds.as_ref());
        set(&mut next.session_ttl_seconds, self.session_ttl_seconds.as_ref());
        set(&mut next.session_max_seconds, self.session_max_seconds.as_ref());
        set(&mut next.presence_seconds, self.presence_seconds.as_ref());
        set(&mut next.queue_max_per_address, self.queue_max_per_address.as_ref());
        set(&mut next.pre_queue_max_per_address, self.pre_queue_max_per_address.as_ref());
        set(&mut next.opens_at, self.opens_at.as_ref());
        set(&mut next.on_backend_down, self.on_backend_down.as_ref());
        set(&mut next.return_origins, self.return_origins.as_ref());
        set(&mut next.tag_origins, self.tag_origins.as_ref());
        set(&mut next.autotune, self.autotune.as_ref());
        set(&mut next.protection, self.protection.as_ref());
        set(&mut next.auto_activate, self.auto_activate.as_ref());
        set(&mut next.state, self.state.as_ref());
        if let Some(branding) = &self.branding {
            next.branding = branding.clone().stamped(&current.branding, now);
        }
        if let Some(rules) = &self.url_patterns
            && *rules != current.url_patterns
        {
            next.url_patterns = rules.clone();
            next.targeting_rev = current.targeting_rev.saturating_add(1);
            next.targeting_updated_at = now;
        }
        self.refuse_session_bounds(&next)?;
        Ok(next)
    }

    fn refuse_session_bounds(&self, next: &Settings) -> Result<(), PatchError> {
        let ttl = next.session_ttl_seconds;
        match next.session_max_seconds {
            Some(max) if max < ttl && self.session_max_seconds.is_some() => {
                Err(SESSION_MAX
                    .refuse(format_args!("null or at least sessionTtlSec, which is {ttl}")))
            }
            Some(max) if max < ttl && self.session_ttl_seconds.is_some() => Err(SESSION_TTL
                .refuse(format_args!(
                    "at most sessionMaxSec, which is {max}; send both to raise it"
                ))),
            _ => Ok(()),
        }
    }

    /// Reads the values of a body whose names have been checked.
    fn read(body: &Map<String, Value>) -> Result<Self, PatchError> {
        let mut patch = Self::default();
        for (name, value) in body {
            patch.read_field(name, value)?;
        }
        Ok(patch)
    }

    fn read_field(&mut self, name: &str, value: &Value) -> Result<(), PatchError> {
        match name {
            "name" => self.name = Some(NAME.line(value, Range(1..=120))?),
            "targetUrl" => self.target_url = Some(nullable(value, |url| TARGET_URL.web_url(url))?),
            "proxyOrigin" => {
                self.proxy_origin =
                    Some(nullable(value, |origin| PROXY_ORIGIN.web_origin(origin))?);
            }
            "rate" | "ratePerMinute" => self.read_rate(value)?,
            "maxConcurrent" => {
                self.max_concurrent =
                    Some(MAX_CONCURRENT.whole_or_null(value, Range(1..=10_000_000))?);
            }
            "passedTtlSec" => {
                self.passed_ttl_seconds = Some(PASSED_TTL.whole(value, Range(1..=86_400))?);
            }
            "sessionTtlSec" => {
                self.session_ttl_seconds = Some(SESSION_TTL.whole(value, Range(1..=86_400))?);
            }
            "sessionMaxSec" => {
                self.session_max_seconds =
                    Some(SESSION_MAX.whole_or_null(value, Range(1..=604_800))?);
            }
            "presenceSec" => {
                self.presence_seconds = Some(PRESENCE.whole_or_null(value, Range(5..=3600))?);
            }
            "queueMaxPerIp" => {
                self.queue_max_per_address =
                    Some(QUEUE_MAX.whole_or_null(value, Range(1..=100_000))?);
            }
            "preQueueMaxPerIp" => {
                self.pre_queue_max_per_address =
                    Some(PRE_QUEUE_MAX.whole_or_null(value, Range(1..=100_000))?);
            }
            "opensAt" => self.opens_at = Some(nullable(value, |time| OPENS_AT.time(time))?),
            "onBackendDown" => self.on_backend_down = Some(read_on_backend_down(value)?),
            "branding" => self.branding = Some(Branding::parse(value)?),
            "returnOrigins" => self.return_origins = Some(RETURN_ORIGINS.origins(value)?),
            "tagOrigins" => {
                self.tag_origins = Some(nullable(value, |list| TAG_ORIGINS.origins(list))?);
            }
            "urlPatterns" => self.url_patterns = Some(read_rules(value)?),
            "autotune" => self.autotune = Some(Autotune::parse(value)?),
            "protection" => self.protection = Some(read_protection(value)?),
            "autoActivate" => self.auto_activate = Some(AutoActivate::parse(value)?),
            "state" => self.state = Some(read_state(value)?),
            // The id is read by the caller.
            _ => {}
        }
        Ok(())
    }

    /// Either name of the rate (ADM-33, ADM-34).
    fn read_rate(&mut self, value: &Value) -> Result<(), PatchError> {
        let rate = RATE.rate(value)?;
        if self.rate.is_some_and(|other| other != rate) {
            let message = "rate and ratePerMinute are one field and must not differ".to_string();
            return Err(PatchError { code: "conflicting_field", message });
        }
        self.rate = Some(rate);
        Ok(())
    }
}

/// Reads the body that creates or edits a room. Whether a new room may take the id is the
/// caller's to ask of [`RoomId::is_reserved`].
///
/// # Errors
/// `redacted_shape`, `unknown_field`, `invalid_room_id`, `conflicting_field` or `invalid_<field>`.
pub fn parse_room_body(body: &Map<String, Value>) -> Result<(RoomId, Patch), PatchError> {
    refuse_redacted(body)?;
    refuse_unknown(body, &["id"].iter().chain(&FIELDS).copied().collect::<Vec<_>>())?;
    let id = body.get("id").and_then(Value::as_str).and_then(|id| RoomId::parse(id).ok());
    let id = id.ok_or_else(|| ID.refuse("1 to 64 characters of a-z, A-Z, 0-9, _ and -"))?;
    Ok((id, Patch::read(body)?))
}

/// Reads the body of the flush route: how many to release.
///
/// # Errors
/// `unknown_field` or `invalid_count`.
pub fn parse_flush_count(body: &Map<String, Value>) -> Result<u64, PatchError> {
    parse_number(body, "count", COUNT)
}

/// Reads the body of the eject route: the ticket number.
///
/// # Errors
/// `unknown_field` or `invalid_ticket`.
pub fn parse_ticket(body: &Map<String, Value>) -> Result<u64, PatchError> {
    parse_number(body, "ticket", TICKET)
}

fn parse_number(body: &Map<String, Value>, name: &str, field: Field) -> Result<u64, PatchError> {
    refuse_unknown(body, &[name])?;
    let number = body.get(name).and_then(integer).filter(|number| *number > 0);
    number.ok_or_else(|| field.refuse(format_args!("a whole number from 1 to {INTEGER_MAX}")))
}

/// A body read through a shared monitor link lacks fields and would clear them (ADM-32).
fn refuse_redacted(body: &Map<String, Value>) -> Result<(), PatchError> {
    if body.get("redacted") != Some(&Value::Bool(true)) {
        return Ok(());
    }
    let message = "this room was read through a monitor link, without its internal address, \
                   origins and URL rules; writing it back would clear them"
        .to_string();
    Err(PatchError { code: "redacted_shape", message })
}

fn refuse_unknown(body: &Map<String, Value>, known: &[&str]) -> Result<(), PatchError> {
    let Some(name) = body.keys().find(|name| !known.contains(&&***name)) else { return Ok(()) };
    let shown: String = name.chars().take(64).collect();
    let message = alloc::format!("{shown:?} is not a field here; known are {}", known.join(", "));
    Err(PatchError { code: "unknown_field", message })
}

fn set<T: Clone>(slot: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        slot.clone_from(value);
    }
}

fn nullable<T>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, PatchError>,
) -> Result<Option<T>, PatchError> {
    if value.is_null() { Ok(None) } else { read(value).map(Some) }
}

fn read_state(value: &Value) -> Result<RoomState, PatchError> {
    STATE.word(value, RoomState::parse, RoomState::WORDS)
}

fn read_on_backend_down(value: &Value) -> Result<OnBackendDown, PatchError> {
    ON_BACKEND_DOWN.word(value, OnBackendDown::parse, OnBackendDown::WORDS)
}

fn read_protection(value: &Value) -> Result<Protection, PatchError> {
    if value.is_null() {
        return Ok(Protection::Off);
    }
    let mode = PROTECTION.object(value, &["mode"])?.get("mode").unwrap_or(&Value::Null);
    PROTECTION_MODE.word(mode, Protection::parse, Protection::WORDS)
}

fn read_rules(value: &Value) -> Result<RuleSet, PatchError> {
    let written = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
    let written: Vec<&str> = written.ok_or_else(|| URL_PATTERNS.refuse("a list of rules"))?;
    RuleSet::parse(written.iter().copied())
        .map_err(|invalid| URL_PATTERNS.refuse(format_args!("a list of rules: {invalid}")))
}

/// The fields of [`Patch`] as a body names them, with the alias of the rate.
const FIELDS: [&str; 22] = [
    "name",
    "state",
    "targetUrl",
    "proxyOrigin",
    "ratePerMinute",
    "rate",
    "maxConcurrent",
    "passedTtlSec",
    "sessionTtlSec",
    "sessionMaxSec",
    "presenceSec",
    "queueMaxPerIp",
    "preQueueMaxPerIp",
    "opensAt",
    "onBackendDown",
    "branding",
    "returnOrigins",
    "tagOrigins",
    "urlPatterns",
    "autotune",
    "protection",
    "autoActivate",
];

const ID: Field = Field::new("id", "invalid_room_id");
const NAME: Field = Field::new("name", "invalid_name");
const STATE: Field = Field::new("state", "invalid_state");
const TARGET_URL: Field = Field::new("targetUrl", "invalid_target_url");
const PROXY_ORIGIN: Field = Field::new("proxyOrigin", "invalid_proxy_origin");
const RATE: Field = Field::new("ratePerMinute", "invalid_rate_per_minute");
const MAX_CONCURRENT: Field = Field::new("maxConcurrent", "invalid_max_concurrent");
const PASSED_TTL: Field = Field::new("passedTtlSec", "invalid_passed_ttl_sec");
const SESSION_TTL: Field = Field::new("sessionTtlSec", "invalid_session_ttl_sec");
const SESSION_MAX: Field = Field::new("sessionMaxSec", "invalid_session_max_sec");
const PRESENCE: Field = Field::new("presenceSec", "invalid_presence_sec");
const QUEUE_MAX: Field = Field::new("queueMaxPerIp", "invalid_queue_max_per_ip");
const PRE_QUEUE_MAX: Field = Field::new("preQueueMaxPerIp", "invalid_pre_queue_max_per_ip");
const OPENS_AT: Field = Field::new("opensAt", "invalid_opens_at");
const ON_BACKEND_DOWN: Field = Field::new("onBackendDown", "invalid_on_backend_down");
const RETURN_ORIGINS: Field = Field::new("returnOrigins", "invalid_return_origins");
const TAG_ORIGINS: Field = Field::new("tagOrigins", "invalid_tag_origins");
const URL_PATTERNS: Field = Field::new("urlPatterns", "invalid_url_patterns");
const PROTECTION: Field = Field::new("protection", "invalid_protection");
const PROTECTION_MODE: Field = Field::new("protection.mode", "invalid_protection");
const COUNT: Field = Field::new("count", "invalid_count");
const TICKET: Field = Field::new("ticket", "invalid_ticket");

#[cfg(test)]
mod tests;
