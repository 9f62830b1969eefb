//! Signing in to the console (AUT-10 to AUT-12) and tickets for its stream (AUT-08).

use hyper::Response;
use qm_core::cookie::{SameSite, SetCookie};
use qm_core::token::Purpose;
use serde_json::{Map, Value, json};

use super::super::answer::{self, set_cookies};
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::auth::{
    CONSOLE_COOKIE, Principal, digest, failed, has_csrf_header, owner_of_key, refuse_locked,
    unavailable,
};
use super::operators::refuse_unknown;
use super::trail;
use crate::guard::random::random_text;
use crate::side::credential::{ConsoleSession, CredentialId, StreamTicket};

/// Refuses a sign-in before its body is read.
pub(super) fn before_body(app: &App, ask: &Ask) -> Result<(), ApiError> {
    refuse_locked(app, ask)?;
    if has_csrf_header(ask) { Ok(()) } else { Err(ApiError::csrf_required()) }
}

/// `POST /session {key}`.
pub(super) async fn open(
    app: &App,
    ask: &Ask,
    body: &Map<String, Value>,
) -> Result<Response<Body>, ApiError> {
    refuse_unknown(body, &["key"])?;
    let Some(key) = body.get("key").and_then(Value::as_str) else {
        return Err(ApiError::invalid_field("invalid_key", "key must be a text"));
    };
    let Some(who) = owner_of_key(app, key.trim()).await.map_err(unavailable)? else {
        return Err(failed(app, ask, "sign_in_refused").await);
    };
    let now = app.clock.now();
    let session = ConsoleSession {
        id: random_text(24),
        holder: who.credential.clone(),
        expires_at: now.plus_seconds(SESSION_SECONDS),
    };
    let payload = json!({
        "sid": session.id,
        "role": who.role.as_str(),
        "name": who.name,
        "iat": now,
        "exp": session.expires_at,
    });
    let value = app.keys.sign(Purpose::Session, &payload.to_string());
    app.side.add_session(session).await.map_err(unavailable)?;
    trail::record(app, ask, &who, "signed_in", None, Value::Null).await;
    let mut response = answer::json(&json!({
        "ok": true,
        "name": who.name,
        "role": who.role.as_str(),
        "expiresInSec": SESSION_SECONDS,
    }));
    set_cookies(&mut response, &cookies(ask, &value, SESSION_SECONDS));
    Ok(response)
}

/// `DELETE /session`: ends the session on the server too.
pub(super) async fn close(
    app: &App,
    ask: &Ask,
    who: &Principal,
) -> Result<Response<Body>, ApiError> {
    if let CredentialId::Session(id) = &who.credential {
        app.side.remove_session(id).await.map_err(unavailable)?;
        app.board.revoked();
        trail::record(app, ask, who, "signed_out", None, Value::Null).await;
    }
    let mut response = answer::json(&json!({ "ok": true }));
    set_cookies(&mut response, &cookies(ask, "", 0));
    Ok(response)
}

/// The cookie for both spellings of the admin path (HOL-20).
fn cookies(ask: &Ask, value: &str, max_age_seconds: u64) -> [String; 2] {
    ["/api/admin", "/api/v1/admin"].map(|path| {
        SetCookie {
            name: CONSOLE_COOKIE,
            value,
            max_age_seconds,
            http_only: true,
            secure: ask.is_https,
            path,
            same_site: SameSite::Strict,
        }
        .header_value()
    })
}

/// `POST /sse-ticket`.
pub(super) async fn ticket(app: &App, who: &Principal) -> Result<Response<Body>, ApiError> {
    let ticket = random_text(24);
    let kept = StreamTicket {
        digest: digest(&ticket),
        credential: who.credential.clone(),
        expires_at: app.clock.now().plus_seconds(TICKET_SECONDS),
    };
    app.side.add_stream_ticket(kept).await.map_err(unavailable)?;
    Ok(answer::json(&json!({ "ticket": ticket, "expiresInSec": TICKET_SECONDS })))
}

const SESSION_SECONDS: u64 = 43_200;
const TICKET_SECONDS: u64 = 30;
