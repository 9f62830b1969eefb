//! A connector's settings, read once from what an operator wrote. What cannot be used is told in
//! words that name the setting and its value; a connector then lets everybody pass, loudly.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::gate::Gate;
use crate::address::TrustProxy;
use crate::id::RoomId;
use crate::token::VisitorKeys;
use crate::url::Origin;

/// The settings as written; blank ones are absent ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written<'a> {
    /// `QM_SERVER`: origin of the queue server.
    pub server: &'a str,
    /// `QM_ROOM`.
    pub room: &'a str,
    /// `QM_PUBLIC_API_KEY`.
    pub public_api_key: &'a str,
    /// `QM_GATE`.
    pub gate: &'a str,
    /// `QM_VISITOR_KEY`: `kid:hex`, optional.
    pub visitor_key: &'a str,
    /// `QM_TOKEN_MAX_AGE_SEC` of the server, for local verdicts; a day when blank.
    pub token_max_age_seconds: &'a str,
    /// `cf`, or how many proxies stand in front; `0` when blank.
    pub trust_proxy: &'a str,
    /// The check goes out in the visitor's own name, without the key (the Node package's
    /// `vouch: false`).
    pub unvouched: bool,
    /// Whether cookies are `Secure`; `None` decides by the page's scheme.
    pub secure_cookie: Option<bool>,
    /// Requests for the queue server's own host go through untouched: it can be on the same route.
    pub passes_server_host: bool,
}

/// Settings that work.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The queue server's origin, canonical.
    pub server: Origin,
    /// The room.
    pub room: RoomId,
    /// The key; `None` when unvouched.
    pub key: Option<String>,
    /// Which requests are checked.
    pub gate: Gate,
    pub(super) visitor_keys: Option<VisitorKeys>,
    pub(super) trust_proxy: TrustProxy,
    pub(super) secure_cookie: Option<bool>,
    pub(super) passes_server_host: bool,
}

/// A day: the server's own default.
const TOKEN_AGE_SECONDS: u64 = 86_400;

impl Settings {
    /// Reads settings. The list tells what is wrong; without settings, nothing can be checked.
    #[must_use]
    pub fn read(written: &Written<'_>) -> (Option<Self>, Vec<String>) {
        let mut faults = Vec::new();
        let server = Origin::parse(written.server.trim());
        if server.is_none() {
            let value = shown(written.server);
            faults.push(format!("QM_SERVER is {value}: not an origin like https://queue.example"));
        }
        let room = RoomId::parse(written.room.trim()).ok();
        if room.is_none() {
            faults.push(format!("QM_ROOM is {}: not a room id", shown(written.room)));
        }
        let key = key(written, &mut faults);
        let gate = Gate::parse(written.gate).unwrap_or_else(|| {
            let value = shown(written.gate);
            faults.push(format!("QM_GATE is {value}: navigations, documents or all; navigations"));
            Gate::default()
        });
        let trust_proxy = match written.trust_proxy.trim() {
            "" => Some(TrustProxy::None),
            text => TrustProxy::parse(text),
        };
        if trust_proxy.is_none() {
            faults.push(format!("trustProxy is {}: 0..32 or cf", shown(written.trust_proxy)));
        }
        let visitor_keys = visitor_keys(written, &mut faults);
        let (Some(server), Some(room), Some(key)) = (server, room, key) else {
            return (None, faults);
        };
        let settings = Self {
            server,
            room,
            key,
            gate,
            visitor_keys,
            trust_proxy: trust_proxy.unwrap_or_default(),
            secure_cookie: written.secure_cookie,
            passes_server_host: written.passes_server_host,
        };
        (Some(settings), faults)
    }
}

/// The key to vouch with: `Some(None)` when none is needed, `None` when one is missing.
fn key(written: &Written<'_>, faults: &mut Vec<String>) -> Option<Option<String>> {
    if written.unvouched {
        return Some(None);
    }
    let key = written.public_api_key.trim();
    // The value itself is never told.
    if key.is_empty() {
        faults.push("QM_PUBLIC_API_KEY is not set: nothing is checked".into());
        return None;
    }
    if !key.bytes().all(|b| b.is_ascii_graphic()) {
        faults.push("QM_PUBLIC_API_KEY has characters no key has: nothing is checked".into());
        return None;
    }
    Some(Some(key.into()))
}

fn visitor_keys(written: &Written<'_>, faults: &mut Vec<String>) -> Option<VisitorKeys> {
    let text = written.visitor_key.trim();
    if text.is_empty() {
        return None;
    }
    let age = match written.token_max_age_seconds.trim() {
        "" => Some(TOKEN_AGE_SECONDS),
        text => text.parse().ok(),
    };
    let keys = age.and_then(|age| VisitorKeys::parse(text, age.saturating_mul(1000)));
    if keys.is_none() {
        faults.push("QM_VISITOR_KEY is not kid:hex: every token is asked about".into());
    }
    keys
}

fn shown(value: &str) -> String {
    let value: String = value.chars().take(80).collect();
    match value.is_empty() {
        true => "not set".to_string(),
        false => format!("{value:?}"),
    }
}
