//! The routes of installations: verification, the registry, and the released files. What they say
//! is decided in [`crate::connector`].

use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use qm_core::address::TrustProxy;
use qm_core::id::RoomId;
use qm_core::url::Origin;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{add_header, json as json_answer};
use super::app::{App, VERSION};
use super::body::Body;
use super::error::ApiError;
use super::request::Ask;
use super::visitor::status::take_quota;
use crate::connector::checkin;
use crate::connector::registry::{registry as registry_document, wordpress_update};
use crate::connector::verify::{Check, Inquiry, KeyShown, Site, Status, checks};
use crate::guard::auth::{Credential, bearer};

/// `GET /api/verify`.
///
/// # Errors
/// `rate_limited`, `invalid_room_id`.
pub async fn verify(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "verify")?;
    let checks = check_installation(app, ask).await?;
    let list: Vec<Value> = checks.iter().map(Check::to_json).collect();
    let mut response = json_answer(&json!({
        "ok": is_ok(&checks),
        "serverVersion": VERSION,
        "apiVersion": "v1",
        "checks": list,
    }));
    add_header(&mut response, "access-control-allow-origin", "*");
    Ok(response)
}

/// The smallest transparent GIF.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\0\0\0!\xf9\x04\x01\0\0\0\0\
    ,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// `GET /api/verify.gif`: the same verdict as a status.
///
/// # Errors
/// `rate_limited`, `invalid_room_id`.
pub async fn verify_pixel(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "verify.gif")?;
    let checks = check_installation(app, ask).await?;
    let failed = checks.iter().filter(|check| check.status == Status::Fail);
    let ids: Vec<&str> = failed.map(|check| check.id).collect();
    let mut response = if ids.is_empty() {
        let mut response = Response::new(Body::from(PIXEL.to_vec()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("image/gif"));
        add_header(&mut response, "x-content-type-options", "nosniff");
        response
    } else {
        let list: Vec<Value> = checks.iter().map(Check::to_json).collect();
        let mut response = json_answer(&json!({
            "ok": false,
            "error": "verify_failed",
            "code": "verify_failed",
            "checks": list,
        }));
        *response.status_mut() = hyper::StatusCode::FAILED_DEPENDENCY;
        response
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add_header(&mut response, "x-qm-verify", &ids.join(","));
    add_header(&mut response, "access-control-allow-origin", "*");
    Ok(response)
}

fn is_ok(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.status != Status::Fail)
}

/// Verifies what the request describes and records that somebody did (VER-05).
async fn check_installation(app: &App, ask: &Ask) -> Result<Vec<Check>, ApiError> {
    let id = ask.parameter("roomId").unwrap_or_default();
    let id = RoomId::parse(&id).map_err(|_| ApiError::invalid_room_id())?;
    let origin = ask.parameter("origin");
    let url = ask.parameter("url").filter(|url| !url.is_empty());
    let (connector, version) = (ask.parameter("connector"), ask.parameter("version"));
    let inquiry = Inquiry {
        room: &id,
        site: Site::find(origin.as_deref(), url.as_deref(), ask.origin()),
        url: url.as_deref(),
        connector: connector.as_deref().filter(|connector| !connector.is_empty()),
        version: version.as_deref(),
        key: key_shown(app, ask),
        server_version: VERSION,
        server_is_https: ask.is_https,
    };
    let found = app.rooms.find(&id);
    let checks = match &found {
        Some(room) => room.look(|room, _, _| checks(&inquiry, Some(room.settings()))),
        None => checks(&inquiry, None),
    };
    if !ask.is_head() {
        checkin::note(&app.side, &inquiry, is_ok(&checks), ask.now).await;
    }
    Ok(checks)
}

fn key_shown(app: &App, ask: &Ask) -> KeyShown {
    if ask.parameter("key").is_some() {
        return KeyShown::InQuery;
    }
    match bearer(&ask.headers) {
        Credential::Absent => KeyShown::None,
        Credential::Key(key) if app.public_keys.matches(key) => KeyShown::Right,
        Credential::Key(_) | Credential::Unusable => KeyShown::Wrong,
    }
}

/// `GET /api/connectors`: what this server offers to install.
///
/// # Errors
/// `rate_limited`.
pub fn registry(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "connectors")?;
    Ok(document(&registry_document(&public_origin(app, ask), VERSION)))
}

/// `GET /api/connectors/wordpress/update`.
///
/// # Errors
/// `rate_limited`; `not_found` while there is no plugin.
pub fn wordpress(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "connectors")?;
    let update = wordpress_update(&public_origin(app, ask)).ok_or_else(ApiError::not_found)?;
    Ok(document(&update))
}

/// A document for people and programs to read: two spaces deep, revalidated, open to every origin.
fn document(value: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_string_pretty(value).expect("documents have text keys");
    let mut response = json_answer(&Value::Null);
    *response.body_mut() = Body::from(text);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    add_header(&mut response, "access-control-allow-origin", "*");
    response
}

/// The origin under which visitors reach this server (HOL-28): configured, or from the request and,
/// behind a configured proxy, from what the nearest proxy forwards.
#[must_use]
pub fn public_origin(app: &App, ask: &Ask) -> String {
    if let Some(origin) = &app.config.public_origin {
        return origin.clone();
    }
    let scheme = if ask.is_https { "https" } else { "http" };
    let forwarded = ask
        .headers
        .get_all("x-forwarded-host")
        .iter()
        .next_back()
        .filter(|_| app.config.trust_proxy != TrustProxy::None)
        .and_then(|value| value.to_str().ok()?.rsplit(',').next())
        .and_then(|host| Origin::parse(&format!("{scheme}://{}", host.trim())));
    forwarded
        .or_else(|| ask.own_origin())
        .map_or_else(|| format!("{scheme}://localhost"), |origin| origin.as_str().to_owned())
}
