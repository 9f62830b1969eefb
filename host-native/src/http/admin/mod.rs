//! The operators' routes below `/api/admin`, the metrics and the console page. Every route asks for
//! a credential first, and a locked-out address is refused before any is read (AUT-06).

pub mod auth;
mod health;
mod rooms;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response};
use qm_core::id::RoomId;

use self::auth::authorize;
use super::app::App;
use super::asset::{CONSOLE_HTML, asset_path};
use super::body::Body;
use super::error::ApiError;
use super::read_body::{parse_json_object, read_json_body};
use super::request::Ask;
use super::template::{fill, page};
use crate::telemetry::CONTENT_TYPE as METRICS_TYPE;

/// A route below `/api/admin/`.
#[derive(Clone, Copy)]
enum Route<'a> {
    Health,
    Rooms,
    Room(&'a str),
    Action(&'a str, Action),
}

#[derive(Clone, Copy)]
enum Action {
    State,
    Rate,
    Flush,
    Schedule,
    Eject,
    Purge,
    Visitors,
    Targeting,
}

fn route(rest: &str) -> Option<Route<'_>> {
    match rest {
        "health" => return Some(Route::Health),
        "rooms" => return Some(Route::Rooms),
        _ => {}
    }
    let rest = rest.strip_prefix("rooms/").filter(|rest| !rest.is_empty())?;
    let Some((id, action)) = rest.split_once('/') else { return Some(Route::Room(rest)) };
    let action = match action {
        "state" => Action::State,
        "rate" => Action::Rate,
        "flush" => Action::Flush,
        "schedule" => Action::Schedule,
        "eject" => Action::Eject,
        "purge" => Action::Purge,
        "visitors" => Action::Visitors,
        "targeting" => Action::Targeting,
        _ => return None,
    };
    (!id.is_empty()).then_some(Route::Action(id, action))
}

/// Whether there is such a route.
#[must_use]
pub fn knows(rest: &str) -> bool {
    route(rest).is_some()
}

/// The methods of a route, as `Allow` lists them.
#[must_use]
pub fn methods(rest: &str) -> &'static str {
    match route(rest) {
        Some(Route::Rooms) => "GET, HEAD, POST",
        Some(Route::Room(_)) => "DELETE",
        Some(Route::Action(_, Action::Visitors | Action::Targeting)) => "GET, HEAD",
        Some(Route::Action(..)) => "POST",
        Some(Route::Health) | None => "GET, HEAD",
    }
}

/// Answers an operator's request.
///
/// # Errors
/// The codes of AUT-* and ADM-*.
pub async fn respond(
    app: &App,
    ask: &Ask,
    rest: &str,
    body: Incoming,
) -> Result<Response<Body>, ApiError> {
    authorize(app, ask)?;
    let route = route(rest).ok_or_else(ApiError::not_found)?;
    let room = |id: &str| RoomId::parse(id).map_err(|_| ApiError::invalid_room_id());
    match route {
        Route::Health => Ok(health::health(app)),
        Route::Rooms if ask.method == Method::POST => {
            let body = parse_json_object(&read_json_body(body).await?)?;
            rooms::save(app, &body).await
        }
        Route::Rooms => Ok(rooms::list(app)),
        Route::Room(id) => rooms::delete(app, &room(id)?).await,
        Route::Action(id, action) => {
            let id = room(id)?;
            let room = app.rooms.find(&id).ok_or_else(ApiError::room_not_found)?;
            match action {
                Action::Visitors => rooms::visitors(app, ask, &room),
                Action::Targeting => Ok(rooms::targeting(ask, &room)),
                Action::Purge => rooms::purge(&room).await,
                _ => {
                    let body = parse_json_object(&read_json_body(body).await?)?;
                    match action {
                        Action::Flush => rooms::flush(&room, &body).await,
                        Action::Eject => rooms::eject(&room, &body).await,
                        Action::State => rooms::change(&room, rooms::state_patch(&body)?).await,
                        Action::Rate => rooms::change(&room, rooms::rate_patch(&body)?).await,
                        _ => rooms::change(&room, rooms::schedule_patch(&body)?).await,
                    }
                }
            }
        }
    }
}

/// `GET /metrics` (OPS-20).
///
/// # Errors
/// Those of [`authorize`].
pub fn metrics(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    authorize(app, ask)?;
    let mut response = Response::new(Body::from(app.metrics.encode()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
    Ok(response)
}

/// The console page.
#[must_use]
pub fn console() -> Response<Body> {
    let values =
        [("lang", "en"), ("css", asset_path("console.css")), ("js", asset_path("console.js"))];
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                  connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    page(200, fill(CONSOLE_HTML, &values), policy)
}
