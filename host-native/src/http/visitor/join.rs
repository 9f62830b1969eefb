//! `POST /api/join`: a place, or one's own place back (JOI-*).

use hyper::Response;
use hyper::header::{ACCEPT, ACCEPT_LANGUAGE, HeaderName, HeaderValue};
use qm_core::digest::Digest16;
use qm_core::id::RoomId;
use qm_core::room::config::Protection;
use qm_core::room::view::Frame;
use qm_core::room::{Command, Join, Outcome, Refusal, Room};
use qm_core::score::{ENFORCE_AT, RequestFacts, Signals, score, signals_of};
use serde_json::{Map, Value};

use super::super::answer::{add_header, json, set_cookies};
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::claim::{Held, claim_of, cookie_tokens, session_ids, verify};
use super::place::tell_joined;
use super::session::{fresh_session_id, place_cookies};
use super::status::readers_of;
use crate::guard::address::forwarded_for;
use crate::rooms::RoomHandle;

static PROTECTION: HeaderName = HeaderName::from_static("x-qm-protection");

/// A place taken or taken back.
pub struct Joined {
    /// What the visitor is told.
    pub frame: Frame,
    /// The cookies that keep the place.
    pub cookies: Vec<String>,
}

/// Answers a join whose body was read.
///
/// # Errors
/// The codes of JOI-04 to JOI-12.
pub async fn join(
    app: &App,
    ask: &Ask,
    body: &Map<String, Value>,
) -> Result<Response<Body>, ApiError> {
    let started = std::time::Instant::now();
    let token = match body.get("token") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(_) => return Err(ApiError::invalid_token_field()),
    };
    let room = app.rooms.find(&room_named(body)?);
    let scored = room.as_ref().and_then(|handle| handle.look(|room, _, _| scored(app, ask, room)));
    let joined = match (take_quota(app, ask, "join"), &room) {
        (Err(error), _) => Err(error),
        (Ok(()), None) => Err(ApiError::room_not_found()),
        (Ok(()), Some(room)) => take_scored_place(app, ask, room, token, scored.as_ref()).await,
    };
    let mut response = match joined {
        Ok(joined) => {
            app.metrics.join_seconds.observe(started.elapsed().as_secs_f64());
            let mut response = json(&joined.frame);
            set_cookies(&mut response, &joined.cookies);
            response
        }
        Err(error) => {
            app.protection.count_refusal(error.code);
            error.into_response()
        }
    };
    if let Some(header) = scored.and_then(|scored| scored.header()) {
        response.headers_mut().insert(PROTECTION.clone(), header);
    }
    add_header(&mut response, "vary", "Origin");
    if let Some(origin) = room.and_then(|room| readers_of(&room, ask)) {
        add_header(&mut response, "access-control-allow-origin", &origin);
    }
    Ok(response)
}

/// Reads `roomId` of a body.
///
/// # Errors
/// `invalid_room_id` when it is missing, no string or no id.
pub fn room_named(body: &Map<String, Value>) -> Result<RoomId, ApiError> {
    let id = body.get("roomId").and_then(Value::as_str).unwrap_or_default();
    RoomId::parse(id).map_err(|_| ApiError::invalid_room_id())
}

/// Uses one call of the join quota, which leaving draws on too.
///
/// # Errors
/// `rate_limited`.
pub fn take_quota(app: &App, ask: &Ask, route: &'static str) -> Result<(), ApiError> {
    app.join_quota.take(ask.address.group(), ask.now).map_err(|wait| {
        app.metrics.count_rate_limited(route);
        ApiError::rate_limited(wait.0)
    })
}

/// Gives the visitor a place in `room`, or the one the request proves.
///
/// # Errors
/// The refusals of JOI-07 to JOI-12.
pub async fn take_place(
    app: &App,
    ask: &Ask,
    room: &RoomHandle,
    token: Option<&str>,
) -> Result<Joined, ApiError> {
    let scored = room.look(|room, _, _| scored(app, ask, room));
    take_scored_place(app, ask, room, token, scored.as_ref()).await
}

async fn take_scored_place(
    app: &App,
    ask: &Ask,
    room: &RoomHandle,
    token: Option<&str>,
    scored: Option<&Scored>,
) -> Result<Joined, ApiError> {
    if let Some(scored) = scored {
        app.protection.count(room.id(), &scored.signals, scored.is_refused());
        if scored.is_refused() {
            return Err(ApiError::blocked_by_protection());
        }
    }
    let mut held: Vec<Held> = token.and_then(|text| verify(app, ask, text)).into_iter().collect();
    held.retain(|held| held.token.room == *room.id());
    held.extend(cookie_tokens(app, ask, room.id()));
    let ids = session_ids(ask, room.id());
    let fresh_id = fresh_session_id();
    let command = Command::Join(Join {
        claim: claim_of(&held, &ids, room.generation()),
        fresh_owner: Some(Digest16::of_owner(&fresh_id)),
        client: ask.client(),
        pre_queue_max: app.config.limits.prequeue_per_room.number().map_or(u64::MAX, u64::from),
    });
    let outcome = room.submit(command).await.map_err(refusal)?;
    let Outcome::Placed { place, owner_index } = outcome else { return Err(ApiError::internal()) };
    let frame = room.look(|room, presence, now| tell_joined(app, room, presence, place, now));
    let id = owner_index.and_then(|index| ids.get(index)).unwrap_or(&fresh_id);
    let token = frame.token.as_deref().unwrap_or_default();
    let cookies = place_cookies(app, ask, room.id(), token, id);
    Ok(Joined { frame, cookies })
}

/// The error answer to a refusal of the core.
#[must_use]
pub fn refusal(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::QueueAddressLimit => ApiError::queue_identity_limit(),
        Refusal::PreQueueAddressLimit => ApiError::prequeue_identity_limit(),
        Refusal::PreQueueFull => ApiError::prequeue_full(),
        Refusal::NotOwner => ApiError::invalid_token(),
        Refusal::NoSuchTicket => ApiError::ticket_not_found(),
        Refusal::Settings(error) => ApiError::invalid_field(error.code, error.message),
        Refusal::Closed => ApiError::room_not_found(),
    }
}

/// What speaks against a request in a protected room (HOL-39).
struct Scored {
    signals: Signals,
    mode: Protection,
}

impl Scored {
    fn is_refused(&self) -> bool {
        self.mode == Protection::Enforce && score(&self.signals) >= ENFORCE_AT
    }

    fn header(&self) -> Option<HeaderValue> {
        let (value, mode) = (score(&self.signals), self.mode.as_str());
        HeaderValue::from_str(&format!("score={value}; mode={mode}")).ok()
    }
}

/// Scores a request; `None` in a room without protection.
fn scored(app: &App, ask: &Ask, room: &Room) -> Option<Scored> {
    let mode = room.settings().protection;
    if mode == Protection::Off {
        return None;
    }
    let entries = forwarded_for(&ask.headers).map_or(0, |list| list.split(',').count());
    let agent = ask.user_agent();
    let signals = signals_of(&RequestFacts {
        user_agent: agent.as_deref(),
        accept_language: ask.header(ACCEPT_LANGUAGE),
        accept: ask.header(ACCEPT),
        has_sec_fetch: has_sec_fetch(ask),
        is_navigation: ask.header(HeaderName::from_static("sec-fetch-mode")) == Some("navigate"),
        forwarded_entries: entries,
        trusted_proxies: app.config.trust_proxy.hops(),
        regular_cadence: app.protection.cadence.note(ask.address.group(), ask.now),
    });
    Some(Scored { signals, mode })
}

/// Browsers send `Sec-Fetch-*` to https and to their own machine only: elsewhere none is missing.
fn has_sec_fetch(ask: &Ask) -> bool {
    let is_trustworthy = ask.is_https
        || ask.own_origin().is_some_and(|own| {
            ["localhost", "127.", "[::1]"].iter().any(|local| own.host().starts_with(local))
        });
    !is_trustworthy || ask.headers.contains_key("sec-fetch-site")
}
