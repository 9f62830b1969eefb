//! `GET /api/status`: where a place stands (STA-*).

use std::borrow::Cow;
use std::sync::Arc;

use hyper::Response;
use qm_core::door::gate::allowed_origin;
use qm_core::id::RoomId;
use qm_core::room::EndReason;
use qm_core::room::view::Frame;

use super::super::answer::{add_header, json, set_cookies};
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::claim::{Held, named_token, owners, session_ids};
use super::place::{Told, tell};
use super::session::place_cookies;
use crate::rooms::RoomHandle;

/// A held token with the room it names, when that is the room's present generation.
pub struct Standing {
    /// The token.
    pub held: Held,
    /// The room; `None` when the token's queue is no more (ENG-12).
    pub room: Option<Arc<RoomHandle>>,
    /// Whether the request proved it owns the place.
    pub is_owner: bool,
}

/// Finds what the request is about.
///
/// # Errors
/// Those of [`named_token`].
pub fn standing(app: &App, ask: &Ask) -> Result<Standing, ApiError> {
    let (sent, room) = (ask.parameter("token"), ask.parameter("roomId"));
    let held = named_token(app, ask, sent.as_deref(), room.as_deref())?;
    let room = app.rooms.find(&held.token.room);
    let room = room.filter(|room| room.generation() == held.token.generation);
    let is_owner = room.as_ref().is_some_and(|handle| {
        let owners = owners(ask, handle.id());
        handle.look(|room, _, _| owners.iter().any(|o| room.is_owner(held.token.place, o)))
    });
    Ok(Standing { held, room, is_owner })
}

impl Standing {
    /// What the visitor is told now.
    ///
    /// # Errors
    /// `invalid_token` for a place the room never gave out.
    pub fn tell(&self, app: &App) -> Result<Told, ApiError> {
        let Some(room) = &self.room else {
            return Ok(Told { frame: Frame::ended(EndReason::RoomReset), fresh: None });
        };
        let told = room
            .look(|room, presence, now| tell(app, room, presence, &self.held, self.is_owner, now));
        told.ok_or_else(ApiError::invalid_token)
    }

    /// The cookies that a freshly signed token needs; the session id stays (TOK-30).
    #[must_use]
    pub fn refreshed_cookies(&self, app: &App, ask: &Ask, told: &Told) -> Vec<String> {
        let (Some(token), Some(handle)) = (&told.fresh, &self.room) else { return vec![] };
        let ids = session_ids(ask, handle.id());
        let own = handle.look(|room, _, _| {
            let owner = |id: &&String| {
                let digest = qm_core::digest::Digest16::of_owner(id);
                room.is_owner(self.held.token.place, &digest)
            };
            ids.iter().find(owner).cloned()
        });
        own.map_or_else(Vec::new, |id| place_cookies(app, ask, handle.id(), token, &id))
    }
}

/// Uses one call of the bucket that check, status, targeting, verify and the registry share.
///
/// # Errors
/// `rate_limited`.
pub fn take_quota(app: &App, ask: &Ask, route: &'static str) -> Result<(), ApiError> {
    app.check_quota.take(ask.address.group(), ask.now).map_err(|wait| {
        app.metrics.count_rate_limited(route);
        ApiError::rate_limited(wait.0)
    })
}

/// Answers a status request.
///
/// # Errors
/// `rate_limited`, `invalid_token`, `invalid_room_id`.
pub fn status(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "status")?;
    app.metrics.status.inc();
    let standing = standing(app, ask)?;
    let told = standing.tell(app)?;
    let mut response = json(&told.frame);
    set_cookies(&mut response, &standing.refreshed_cookies(app, ask, &told));
    add_header(&mut response, "vary", "Origin");
    if let Some(origin) = standing.room.as_ref().and_then(|room| readers_of(room, ask)) {
        add_header(&mut response, "access-control-allow-origin", &origin);
    }
    Ok(response)
}

/// Who may read an answer about the room in `roomId` across origins; no room, nobody.
#[must_use]
pub fn readers(app: &App, ask: &Ask) -> Option<Cow<'static, str>> {
    let room = RoomId::parse(&ask.parameter("roomId")?).ok()?;
    readers_of(&*app.rooms.find(&room)?, ask)
}

/// Who may read an answer about this room across origins (HOL-58).
#[must_use]
pub fn readers_of(room: &RoomHandle, ask: &Ask) -> Option<Cow<'static, str>> {
    room.look(|room, _, _| allowed_origin(room.settings(), ask.origin()))
}
