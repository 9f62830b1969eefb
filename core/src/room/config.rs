//! What an operator can set about a room (ADM-16): the types, their defaults, the sites a room
//! names, and the settings part of the room as the admin list shows it. Values come in through
//! [`super::patch`], which checks the bounds; events carry [`Settings`] as they are.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::field::{object, words};
use crate::id::RoomId;
use crate::target::RuleSet;
use crate::time::TimeMs;
use crate::url::{Origin, PageUrl};

pub use super::automatic::{AutoActivate, Autotune, Mode};
pub use super::branding::Branding;
pub use super::rate::Rate;

/// Everything an operator can set about a room, with the revision of its URL rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The name people read.
    pub name: String,
    /// Where released visitors go when nothing better is known.
    pub target_url: Option<String>,
    /// The internal address an inline room forwards to (ADM-22).
    pub proxy_origin: Option<String>,
    /// How many visitors are released a minute.
    pub rate: Rate,
    /// How many passes may be out at once; `None` is no limit.
    pub max_concurrent: Option<u32>,
    /// How long a pass can be used at the door.
    pub passed_ttl_seconds: u32,
    /// How long a door session lives without a check.
    pub session_ttl_seconds: u32,
    /// How long a door session lives at most; `None` is no limit.
    pub session_max_seconds: Option<u32>,
    /// How long a silent visitor counts as present; `None` turns the rule off (GHO-03).
    pub presence_seconds: Option<u32>,
    /// Waiting places one address may hold; `None` is no limit (GHO-07).
    pub queue_max_per_address: Option<u32>,
    /// Pre-queue places one address may hold; `None` is no limit (PRE-07).
    pub pre_queue_max_per_address: Option<u32>,
    /// When the scheduled drop opens.
    pub opens_at: Option<TimeMs>,
    /// What the door does while the store is out of reach.
    pub on_backend_down: OnBackendDown,
    /// How the waiting page looks, and the message on it.
    pub branding: Branding,
    /// Sites a released visitor may be sent to, besides that of `target_url`.
    #[serde(with = "origin_list")]
    pub return_origins: Vec<Origin>,
    /// Sites whose pages may read a check; `None` is the list above (ORI-03).
    #[serde(with = "origin_list_or_none")]
    pub tag_origins: Option<Vec<Origin>>,
    /// Which URLs of the site queue.
    #[serde(with = "rule_list")]
    pub url_patterns: RuleSet,
    /// The automatic release rate.
    pub autotune: Option<Autotune>,
    /// The bot-scoring mode.
    pub protection: Protection,
    /// When the room starts and stops queueing by itself.
    pub auto_activate: Option<AutoActivate>,
    /// What the operator set the room to.
    pub state: RoomState,
    /// Rises with every change of `url_patterns` and with nothing else (TGT-04).
    pub targeting_rev: u64,
    /// When `url_patterns` changed last.
    pub targeting_updated_at: TimeMs,
}

impl Settings {
    /// The settings of a room created with nothing but its id (HOL-19, HOL-27).
    #[must_use]
    pub fn new(id: &RoomId, now: TimeMs) -> Self {
        Self {
            name: id.as_str().to_string(),
            target_url: None,
            proxy_origin: None,
            rate: Rate::DEFAULT,
            max_concurrent: None,
            passed_ttl_seconds: 600,
            session_ttl_seconds: 1800,
            session_max_seconds: Some(43_200),
            presence_seconds: Some(30),
            queue_max_per_address: Some(16),
            pre_queue_max_per_address: Some(16),
            opens_at: None,
            on_backend_down: OnBackendDown::Closed,
            branding: Branding::default(),
            return_origins: Vec::new(),
            tag_origins: None,
            url_patterns: RuleSet::default(),
            autotune: None,
            protection: Protection::Off,
            auto_activate: None,
            state: RoomState::Active,
            targeting_rev: 1,
            targeting_updated_at: now,
        }
    }

    /// The site of `target_url`.
    #[must_use]
    pub fn target_origin(&self) -> Option<Origin> {
        PageUrl::parse(self.target_url.as_deref()?).map(|url| url.origin())
    }

    /// The sites a visitor may be sent to, that of `target_url` first (ORI-02).
    #[must_use]
    pub fn known_origins(&self) -> Vec<Origin> {
        self.with_target_origin(&self.return_origins)
    }

    /// The sites whose pages may read a check, that of `target_url` first (ORI-01 to ORI-03).
    #[must_use]
    pub fn known_tag_origins(&self) -> Vec<Origin> {
        self.with_target_origin(self.tag_list())
    }

    /// Whether a visitor may be sent to this site; a room that names no site allows none (ORI-10).
    #[must_use]
    pub fn return_origin_allowed(&self, origin: &Origin) -> bool {
        self.return_origins.contains(origin) || self.target_origin().as_ref() == Some(origin)
    }

    /// Whether pages of this site may read a check; a room that names no site is open (ORI-09).
    #[must_use]
    pub fn tag_origin_allowed(&self, origin: &Origin) -> bool {
        self.names_no_site()
            || self.tag_list().contains(origin)
            || self.target_origin().as_ref() == Some(origin)
    }

    /// Whether the room has neither `target_url` nor `return_origins` (ORI-09).
    #[must_use]
    pub fn names_no_site(&self) -> bool {
        self.target_url.is_none() && self.return_origins.is_empty()
    }

    fn tag_list(&self) -> &[Origin] {
        self.tag_origins.as_ref().unwrap_or(&self.return_origins)
    }

    fn with_target_origin(&self, list: &[Origin]) -> Vec<Origin> {
        let target = self.target_origin();
        let others = list.iter().filter(|origin| target.as_ref() != Some(origin)).cloned();
        target.iter().cloned().chain(others).collect()
    }

    /// Writes the settings part of the room as the admin list shows it (HOL-41).
    pub fn write_list_fields(&self, out: &mut Map<String, Value>) {
        let fields = [
            ("name", self.name.as_str().into()),
            ("state", self.state.as_str().into()),
            ("targetUrl", self.target_url.as_deref().into()),
            ("proxyOrigin", self.proxy_origin.as_deref().into()),
            ("rate", self.rate.to_json()),
            ("maxConcurrent", self.max_concurrent.into()),
            ("passedTtlSec", self.passed_ttl_seconds.into()),
            ("sessionTtlSec", self.session_ttl_seconds.into()),
            ("sessionMaxSec", self.session_max_seconds.into()),
            ("presenceSec", self.presence_seconds.into()),
            ("queueMaxPerIp", self.queue_max_per_address.into()),
            ("preQueueMaxPerIp", self.pre_queue_max_per_address.into()),
            ("opensAt", self.opens_at.map(|at| at.0).into()),
            ("onBackendDown", self.on_backend_down.as_str().into()),
            ("branding", self.branding.to_json()),
            ("returnOrigins", origins_to_json(&self.return_origins)),
            ("tagOrigins", self.tag_origins.as_deref().map_or(Value::Null, origins_to_json)),
            ("urlPatterns", self.url_patterns.as_written().collect()),
            ("targetingRev", self.targeting_rev.into()),
            ("autotune", self.autotune.as_ref().map_or(Value::Null, Autotune::to_json)),
            ("protection", object([("mode", self.protection.as_str().into())])),
            ("autoActivate", self.auto_activate.map_or(Value::Null, AutoActivate::to_json)),
        ];
        out.extend(fields.map(|(name, value)| (name.to_string(), value)));
    }
}

words! {
    /// What an operator sets a room to (ADM-28).
    RoomState {
        /// Visitors queue and are released.
        Active = "active",
        /// Visitors queue and nobody is released by time.
        Paused = "paused",
        /// Every visitor passes.
        Bypass = "bypass",
    }
}

words! {
    /// What the door does while the store is out of reach (ADM-29).
    OnBackendDown {
        /// Visitors keep waiting.
        Closed = "closed",
        /// Visitors pass.
        Open = "open",
    }
}

words! {
    /// The bot-scoring mode (ADM-25).
    Protection {
        /// Nothing is scored.
        Off = "off",
        /// Scores are counted and nobody is refused.
        Monitor = "monitor",
        /// High scores are refused.
        Enforce = "enforce",
    }
}

fn origins_to_json(origins: &[Origin]) -> Value {
    origins.iter().map(Origin::as_str).collect()
}

/// Origins are carried as the text they are written as.
mod origin_list {
    use alloc::string::String;
    use alloc::vec::Vec;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::url::Origin;

    pub(super) fn serialize<S: Serializer>(list: &[Origin], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(Origin::as_str))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Origin>, D::Error> {
        parse(&Vec::<String>::deserialize(from)?)
    }

    pub(super) fn parse<E: serde::de::Error>(list: &[String]) -> Result<Vec<Origin>, E> {
        let parse_one =
            |text: &String| Origin::parse(text).ok_or_else(|| E::custom("not an origin"));
        list.iter().map(parse_one).collect()
    }
}

mod origin_list_or_none {
    use alloc::string::String;
    use alloc::vec::Vec;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::url::Origin;

    pub(super) fn serialize<S: Serializer>(
        list: &Option<Vec<Origin>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let list = list.as_ref().map(|list| list.iter().map(Origin::as_str).collect::<Vec<_>>());
        list.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Vec<Origin>>, D::Error> {
        let list = Option::<Vec<String>>::deserialize(from)?;
        list.map(|list| super::origin_list::parse(&list)).transpose()
    }
}

mod rule_list {
    use alloc::string::String;
    use alloc::vec::Vec;

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    use crate::target::RuleSet;

    pub(super) fn serialize<S: Serializer>(rules: &RuleSet, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(rules.as_written())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RuleSet, D::Error> {
        let written = Vec::<String>::deserialize(from)?;
        RuleSet::parse(written.iter().map(String::as_str)).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    fn origin(text: &str) -> Origin {
        Origin::parse(text).unwrap()
    }

    #[test]
    fn allowed_sites() {
        let shop = Some("https://Shop.example.com:443/sale?x=1");
        let partner = vec![origin("https://partner.example.com")];
        let landing = Some(vec![origin("https://landing.example.com:8443")]);
        // Site, then whether it may read a check and whether a visitor may be sent to it.
        let target_and_lists = [
            ("https://shop.example.com", true, true),
            ("http://shop.example.com", false, false),
            ("https://shop.example.com:8443", false, false),
            ("https://www.shop.example.com", false, false),
            ("https://partner.example.com", false, true),
            ("https://landing.example.com:8443", true, false),
            ("https://landing.example.com", false, false),
        ];
        let target_and_inherited =
            [("https://shop.example.com", true, true), ("https://partner.example.com", true, true)];
        let target_and_no_tags = [
            ("https://shop.example.com", true, true),
            ("https://partner.example.com", false, true),
        ];
        let nothing = [("https://shop.example.com", true, false)];
        let lists_only = [
            ("https://shop.example.com", false, false),
            ("https://partner.example.com", true, true),
        ];
        for (target, returns, tags, rows) in [
            (shop, partner.clone(), landing, &target_and_lists[..]),
            (shop, partner.clone(), None, &target_and_inherited[..]),
            (shop, partner.clone(), Some(vec![]), &target_and_no_tags[..]),
            (None, vec![], None, &nothing[..]),
            (None, partner, None, &lists_only[..]),
        ] {
            let mut room = Settings::new(&RoomId::parse("room").unwrap(), TimeMs(0));
            room.target_url = target.map(ToString::to_string);
            room.return_origins = returns;
            room.tag_origins = tags;
            for (site, tag, back) in rows {
                let site = origin(site);
                assert_eq!(room.tag_origin_allowed(&site), *tag, "tag {site} {room:?}");
                assert_eq!(room.return_origin_allowed(&site), *back, "return {site} {room:?}");
                assert_eq!(room.known_origins().contains(&site), *back, "known {site} {room:?}");
                assert!(room.names_no_site() || room.known_tag_origins().contains(&site) == *tag);
            }
        }
    }

    #[test]
    fn the_list_item_has_the_documented_keys_and_defaults() {
        let room = Settings::new(&RoomId::parse("bare").unwrap(), TimeMs(0));
        let mut listed = Map::new();
        room.write_list_fields(&mut listed);
        let want = serde_json::json!({
            "name": "bare", "state": "active", "targetUrl": null, "proxyOrigin": null, "rate": 60,
            "maxConcurrent": null, "passedTtlSec": 600, "sessionTtlSec": 1800,
            "sessionMaxSec": 43200, "presenceSec": 30, "queueMaxPerIp": 16,
            "preQueueMaxPerIp": 16, "opensAt": null, "onBackendDown": "closed", "branding": {},
            "returnOrigins": [], "tagOrigins": null, "urlPatterns": [], "targetingRev": 1,
            "autotune": null, "protection": {"mode": "off"}, "autoActivate": null,
        });
        assert_eq!(Value::Object(listed), want);
    }

    #[test]
    fn a_log_with_impossible_settings_is_refused() {
        let room = Settings::new(&RoomId::parse("room").unwrap(), TimeMs(0));
        let good = serde_json::to_value(&room).unwrap();
        for (key, value) in [
            ("rate", serde_json::json!(-1)),
            ("rate", serde_json::json!(null)),
            ("state", serde_json::json!("open")),
            ("returnOrigins", serde_json::json!(["a"])),
            ("tagOrigins", serde_json::json!([7])),
        ] {
            let mut bad = good.clone();
            bad[key] = value.clone();
            assert!(serde_json::from_value::<Settings>(bad).is_err(), "{key}={value}");
        }
        assert_eq!(serde_json::from_value::<Settings>(good).unwrap(), room);
    }
}
