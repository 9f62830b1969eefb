//! The operators' routes below `/api/admin`, the metrics and the console page. Every route asks for
//! a credential first, and a locked-out address is refused before any is read (AUT-06).

mod alerts;
pub mod auth;
pub mod board;
mod events;
mod health;
mod links;
mod numbers;
mod operators;
mod rooms;
pub mod route;
mod security;
mod session;
mod trail;

use std::sync::Arc;

use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use qm_core::id::RoomId;
use serde_json::{Map, Value, json};

use self::auth::{Principal, authorize};
use self::route::Endpoint;
pub use self::route::{knows, methods};
use super::answer;
use super::app::App;
use super::asset::{CONSOLE_HTML, asset_path};
use super::body::Body;
use super::error::ApiError;
use super::read_body::{parse_json_object, read_json_body};
use super::request::Ask;
use super::server::Draining;
use super::template::{fill, page};
use crate::telemetry::CONTENT_TYPE as METRICS_TYPE;

/// Answers an operator's request.
///
/// # Errors
/// The codes of AUT-* and ADM-*.
pub async fn respond(
    app: &Arc<App>,
    ask: &Ask,
    rest: &str,
    body: Incoming,
    draining: Draining,
) -> Result<Response<Body>, ApiError> {
    let (row, id) = route::find(rest, &ask.method).ok_or_else(ApiError::not_found)?;
    if row.endpoint == Endpoint::SessionOpen {
        session::before_body(app, ask)?;
        return session::open(app, ask, &read_object(body).await?).await;
    }
    let who = &authorize(app, ask, row).await?;
    match row.endpoint {
        Endpoint::Health => health::health(app).await,
        Endpoint::RoomList => Ok(rooms::list(app, who)),
        Endpoint::RoomSave => rooms::save(app, ask, who, &read_object(body).await?).await,
        Endpoint::OperatorList => operators::list(app).await,
        Endpoint::OperatorAdd => operators::add(app, ask, who, &read_object(body).await?).await,
        Endpoint::OperatorRemove => operators::remove(app, ask, who, id).await,
        Endpoint::LinkList => links::list(app).await,
        Endpoint::LinkAdd => links::add(app, ask, who, &read_optional(body).await?).await,
        Endpoint::LinkRemove => links::remove(app, ask, who).await,
        Endpoint::SessionClose => session::close(app, ask, who).await,
        Endpoint::StreamTicket => session::ticket(app, who).await,
        Endpoint::Events => Ok(events::events(app, ask, who, draining)),
        Endpoint::Audit => trail::audit(app, ask).await,
        Endpoint::Series => numbers::series(app, ask).await,
        Endpoint::Reports => numbers::reports(app, ask).await,
        Endpoint::Security => Ok(security::security(app)),
        Endpoint::AlertState => alerts::state(app, who).await,
        Endpoint::AlertTest => alerts::test(app, ask, who).await,
        Endpoint::CheckIns => check_ins(app).await,
        Endpoint::Shutdown => Ok(shutdown(app, ask, who).await),
        Endpoint::Metrics | Endpoint::SessionOpen => Err(ApiError::not_found()),
        of_room => {
            let id = RoomId::parse(id).map_err(|_| ApiError::invalid_room_id())?;
            respond_of_room(app, ask, who, of_room, &id, body).await
        }
    }
}

async fn respond_of_room(
    app: &App,
    ask: &Ask,
    who: &Principal,
    endpoint: Endpoint,
    id: &RoomId,
    body: Incoming,
) -> Result<Response<Body>, ApiError> {
    if endpoint == Endpoint::RoomDelete {
        return rooms::delete(app, ask, who, id).await;
    }
    let room = app.rooms.find(id).ok_or_else(ApiError::room_not_found)?;
    let work = rooms::Work { app, ask, who, room: &room };
    match endpoint {
        Endpoint::Visitor => rooms::visitors(app, ask, &room),
        Endpoint::Targeting => Ok(rooms::targeting(ask, &room)),
        Endpoint::Purge => work.purge().await,
        Endpoint::Flush => work.flush(&read_object(body).await?).await,
        Endpoint::Eject => work.eject(&read_object(body).await?).await,
        Endpoint::SetState => work.set_state(&read_object(body).await?).await,
        Endpoint::SetRate => work.set_rate(&read_object(body).await?).await,
        Endpoint::Schedule => work.schedule(&read_object(body).await?).await,
        _ => Err(ApiError::not_found()),
    }
}

async fn read_object(body: Incoming) -> Result<Map<String, Value>, ApiError> {
    parse_json_object(&read_json_body(body).await?)
}

/// A body that may be left out.
async fn read_optional(body: Incoming) -> Result<Map<String, Value>, ApiError> {
    let octets = read_json_body(body).await?;
    if octets.is_empty() { Ok(Map::new()) } else { parse_json_object(&octets) }
}

/// `GET /connectors`: installations that checked in (VER-05).
async fn check_ins(app: &App) -> Result<Response<Body>, ApiError> {
    let all = app.side.check_ins().await.map_err(auth::unavailable)?;
    let all: Vec<Value> = all.iter().map(crate::side::check_in::CheckIn::to_json).collect();
    Ok(answer::json(&json!({ "checkins": all })))
}

/// `POST /shutdown` (ADM-09).
async fn shutdown(app: &App, ask: &Ask, who: &Principal) -> Response<Body> {
    trail::record(app, ask, who, "shutdown_ordered", None, Value::Null).await;
    let uptime = app.clock.uptime().as_secs();
    app.stop.notify_one();
    answer::json(&json!({ "ok": true, "stopping": true, "uptimeSec": uptime }))
}

/// `GET /metrics` (OPS-20).
///
/// # Errors
/// Those of [`authorize`].
pub async fn metrics(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    authorize(app, ask, &route::METRICS).await?;
    let mut response = Response::new(Body::from(app.metrics.encode()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
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
