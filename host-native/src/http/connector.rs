//! Checking an installation before it goes live (VER-01 to VER-11) and the registry of what can be
//! installed from this server (VER-12 to VER-19).

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use qm_core::digest::hex;
use qm_core::id::RoomId;
use qm_core::room::Settings;
use qm_core::room::config::RoomState;
use qm_core::target::Scope;
use qm_core::url::{Origin, PageUrl};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::answer::{add_header, json as json_answer};
use super::app::{App, VERSION};
use super::asset::snippet_bytes;
use super::body::Body;
use super::error::ApiError;
use super::request::Ask;
use super::visitor::status::take_quota;
use crate::guard::auth::{Credential, bearer};

/// The snippet's own version stands in its first lines.
static SNIPPET_VERSION: LazyLock<&'static str> = LazyLock::new(|| {
    let head = std::str::from_utf8(snippet_bytes()).unwrap_or_default();
    let is_version = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.split('.').count() == 3
    };
    let words = head.lines().take(8).flat_map(str::split_whitespace);
    words
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .find(is_version)
        .unwrap_or(VERSION)
});

static SNIPPET_DIGEST: LazyLock<[u8; 32]> =
    LazyLock::new(|| Sha256::digest(snippet_bytes()).into());

/// One point of a verification.
struct Check {
    id: &'static str,
    status: &'static str,
    title: String,
    fix: Option<String>,
}

impl Check {
    fn new(id: &'static str, status: &'static str, title: impl Into<String>) -> Self {
        Self { id, status, title: title.into(), fix: None }
    }

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn to_json(&self) -> Value {
        let mut check = json!({ "id": self.id, "status": self.status, "title": self.title });
        if let (Some(fix), Some(object)) = (&self.fix, check.as_object_mut()) {
            object.insert("fix".into(), fix.as_str().into());
        }
        check
    }
}

/// `GET /api/verify`.
///
/// # Errors
/// `rate_limited`, `invalid_room_id`.
pub fn verify(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "verify")?;
    let checks = checks(app, ask)?;
    let ok = checks.iter().all(|check| check.status != "fail");
    let list: Vec<Value> = checks.iter().map(Check::to_json).collect();
    let mut response = json_answer(&json!({
        "ok": ok,
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
pub fn verify_pixel(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "verify.gif")?;
    let checks = checks(app, ask)?;
    let failed: Vec<&Check> = checks.iter().filter(|check| check.status == "fail").collect();
    let ids: Vec<&str> = failed.iter().map(|check| check.id).collect();
    let mut response = if failed.is_empty() {
        let mut response = Response::new(Body::from(PIXEL.to_vec()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("image/gif"));
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

fn checks(app: &App, ask: &Ask) -> Result<Vec<Check>, ApiError> {
    let id = ask.parameter("roomId").unwrap_or_default();
    let id = RoomId::parse(&id).map_err(|_| ApiError::invalid_room_id())?;
    let mut checks = Vec::new();
    if let Some(room) = app.rooms.find(&id) {
        checks.push(Check::new("room_exists", "pass", format!("room \"{id}\" exists")));
        room.look(|room, _, _| check_room(ask, room.settings(), &mut checks));
    } else {
        let title = format!("there is no room \"{id}\" on this server");
        checks.push(Check::new("room_exists", "fail", title).fix("use a room id of the console"));
    }
    checks.push(check_key(app, ask));
    checks.push(Check::new("server_version", "info", format!("server {VERSION}, API v1")));
    Ok(checks)
}

fn check_room(ask: &Ask, settings: &Settings, checks: &mut Vec<Check>) {
    checks.push(match settings.state {
        RoomState::Active => Check::new("room_state", "pass", "the room is active"),
        RoomState::Paused => Check::new("room_state", "warn", "the room is paused: nobody passes"),
        RoomState::Bypass => Check::new("room_state", "warn", "the room is in bypass: all pass"),
    });
    let url = ask.parameter("url");
    let origin = match ask.parameter("origin").filter(|origin| !origin.is_empty()) {
        Some(text) => Origin::parse(&text),
        None => match url.as_deref().and_then(PageUrl::parse) {
            Some(page) => Some(page.origin()),
            None => ask.origin().and_then(Origin::from_header),
        },
    };
    check_origins(settings, origin.as_ref(), ask.parameter("origin").is_some(), checks);
    let has_site = !settings.known_origins().is_empty();
    checks.push(if has_site {
        Check::new("return_policy", "pass", "released visitors have somewhere to go")
    } else {
        Check::new("return_policy", "fail", "released visitors have nowhere to go")
            .fix("set targetUrl of the room")
    });
    if let Some(url) = url.filter(|_| !settings.url_patterns.is_empty()) {
        checks.push(match settings.url_patterns.scope(Some(&url)).scope {
            Scope::In => Check::new("url_scope", "pass", "the page is queued by the room's rules"),
            Scope::Out => Check::new("url_scope", "warn", "the room's rules leave this page out"),
            Scope::Unknown => Check::new("url_scope", "warn", "url is no page address"),
        });
    }
}

fn check_origins(
    settings: &Settings,
    origin: Option<&Origin>,
    was_sent: bool,
    checks: &mut Vec<Check>,
) {
    let Some(origin) = origin else {
        let status = if was_sent { "fail" } else { "info" };
        let title = "no site was named, so its origin was not checked";
        checks
            .push(Check::new("tag_origins", status, title).fix("send origin=https://<your-site>"));
        return;
    };
    if !settings.names_no_site() && !settings.tag_origin_allowed(origin) {
        let title = format!("pages of {origin} may not read the check, so their tag lets all pass");
        checks.push(Check::new("tag_origins", "fail", title).fix("add it to tagOrigins"));
        return;
    }
    checks.push(Check::new("tag_origins", "pass", format!("pages of {origin} may read the check")));
    checks.push(if settings.return_origin_allowed(origin) {
        Check::new("return_origin", "pass", format!("visitors may be returned to {origin}"))
    } else {
        let title = format!("visitors are not returned to {origin}");
        Check::new("return_origin", "warn", title).fix("add it to returnOrigins")
    });
    if !origin.as_str().starts_with("https:") {
        checks.push(Check::new("https", "warn", format!("{origin} is not https")));
    }
}

fn check_key(app: &App, ask: &Ask) -> Check {
    if ask.parameter("key").is_some() {
        return Check::new("public_key", "fail", "a key was sent in the URL, where it gets logged")
            .fix("send it as Authorization: Bearer");
    }
    match bearer(&ask.headers) {
        Credential::Absent => Check::new("public_key", "info", "no key was sent, none was checked"),
        Credential::Key(key) if app.public_keys.matches(key) => {
            Check::new("public_key", "pass", "the public key is right")
        }
        Credential::Key(_) | Credential::Unusable => {
            Check::new("public_key", "fail", "the public key is wrong")
                .fix("use the server's PUBLIC_API_KEY")
        }
    }
}

/// `GET /api/connectors`: what this server offers to install.
///
/// # Errors
/// `rate_limited`.
pub fn registry(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    take_quota(app, ask, "connectors")?;
    let server = public_origin(app, ask);
    let (digest, version) = (*SNIPPET_DIGEST, *SNIPPET_VERSION);
    let integrity = format!("sha256-{}", STANDARD.encode(digest));
    let tag = |more: &str| {
        format!(
            "<script async src=\"{server}/snippet/qm.js\"{more} data-qm-server=\"{server}\" \
             data-qm-room=\"<roomId>\"></script>"
        )
    };
    let install = tag("");
    let pinned = tag(&format!(" integrity=\"{integrity}\" crossorigin=\"anonymous\""));
    let document = json!({
        "serverVersion": VERSION,
        "apiVersion": "v1",
        "connectors": [{
            "id": "snippet",
            "sha256": hex(&digest),
            "integrity": integrity,
            "name": "qm.js",
            "kind": "browser-tag",
            "version": version,
            "platform": "Any site that takes a script tag",
            "install": install,
            "installPinned": pinned,
            "selfHostedInstall": install,
            "published": false,
            "upgrade": install,
            "verifyCommand": format!(
                "curl -fsS '{server}/api/v1/verify?roomId=<roomId>&origin=https://<your-site>'"
            ),
            "download": format!("{server}/snippet/qm.js"),
            "docs": format!("{server}/docs/integration#installable-connectors"),
            "bytes": snippet_bytes().len(),
            "notes": "One script tag, no build step; served by this server.",
        }],
    });
    let text = serde_json::to_string_pretty(&document).expect("the registry is plain JSON");
    let mut response = Response::new(Body::from(text));
    let json_type = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, json_type);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    add_header(&mut response, "access-control-allow-origin", "*");
    Ok(response)
}

/// The origin under which visitors reach this server (HOL-28): configured, or from the request.
pub(super) fn public_origin(app: &App, ask: &Ask) -> String {
    if let Some(origin) = &app.config.public_origin {
        return origin.clone();
    }
    ask.own_origin().map_or_else(
        || format!("{}://localhost", if ask.is_https { "https" } else { "http" }),
        |origin| origin.as_str().to_owned(),
    )
}
