//! `POST /api/join`: a place, or one's own place back (JOI-*).

use hyper::Response;
use hyper::header::{ACCEPT, ACCEPT_LANGUAGE, HeaderName, HeaderValue, USER_AGENT};
use qm_core::digest::Digest16;
use qm_core::door::gate::allowed_origin;
use qm_core::id::RoomId;
use qm_core::room::config::Protection;
use qm_core::room::view::Frame;
use qm_core::room::{Command, Join, Outcome, Refusal, Room};
use qm_core::score::{ENFORCE_AT, RequestFacts, score, signals_of};
use serde_json::{Map, Value};

use super::super::answer::{add_header, json, set_cookies};
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::claim::{Held, claim_of, cookie_tokens, hear_of_places, session_ids, verify};
use super::place::tell_joined;
use super::session::{fresh_session_id, place_cookies};
use crate::guard::address::forwarded_for;
use crate::rooms::{RoomHandle, SubmitError};

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
    let room = room_named(body)?;
    take_quota(app, ask, "join")?;
    hear_of_places(app, ask, token).await;
    let room = app.rooms.find(&room).ok_or_else(ApiError::room_not_found)?;
    let joined = take_place(app, ask, &room, token).await;
    let origin = room.look(|room, _, _| allowed_origin(room.settings(), ask.origin()));
    let protection = room.look(|room, _, _| protection_header(ask, app, room));
    let mut response = match joined {
        Ok(joined) => {
            app.metrics.join_seconds.observe(started.elapsed().as_secs_f64());
            let mut response = json(&joined.frame);
            set_cookies(&mut response, &joined.cookies);
            response
        }
        Err(error) => error.into_response(),
    };
    if let Some((_, header)) = protection {
        response.headers_mut().insert(PROTECTION.clone(), header);
    }
    add_header(&mut response, "vary", "Origin");
    if let Some(origin) = origin {
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
    let refused = room.look(|room, _, _| {
        let score = protection_header(ask, app, room)?;
        let enforced = room.settings().protection == Protection::Enforce;
        (enforced && score.0 >= ENFORCE_AT).then(ApiError::blocked_by_protection)
    });
    if let Some(error) = refused {
        return Err(error);
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

/// The error answer to a command that was not done.
#[must_use]
pub fn refusal(error: SubmitError) -> ApiError {
    let SubmitError::Refused(refusal) = error else { return ApiError::storage_unavailable() };
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

/// The score of a request in a protected room, with the header that tells it (HOL-39).
fn protection_header(ask: &Ask, app: &App, room: &Room) -> Option<(u8, HeaderValue)> {
    let mode = match room.settings().protection {
        Protection::Off => return None,
        Protection::Monitor => "monitor",
        Protection::Enforce => "enforce",
    };
    let entries = forwarded_for(&ask.headers).map_or(0, |list| list.split(',').count());
    let value = score(&signals_of(&RequestFacts {
        user_agent: ask.header(USER_AGENT),
        accept_language: ask.header(ACCEPT_LANGUAGE),
        accept: ask.header(ACCEPT),
        has_sec_fetch: ask.headers.contains_key("sec-fetch-site"),
        is_navigation: ask.header(HeaderName::from_static("sec-fetch-mode")) == Some("navigate"),
        forwarded_entries: entries,
        trusted_proxies: app.config.trust_proxy.hops(),
        regular_cadence: false,
    }));
    let header = HeaderValue::from_str(&format!("score={value}; mode={mode}")).ok()?;
    Some((value, header))
}
