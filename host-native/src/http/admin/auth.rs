//! Who asks: a lock-out before anything is read (AUT-06), then the `Authorization` header, which
//! alone decides when it is there (AUT-13), then a ticket of the stream or the console cookie. The
//! same credential can be looked up again later, so that a revoked one is dead at once.

use hyper::Method;
use qm_core::cookie::values;
use qm_core::digest::hex;
use qm_core::token::{Purpose, Verifier};
use sha2::{Digest as _, Sha256};

use super::super::app::App;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::route::{Endpoint, Row};
use super::trail;
use crate::guard::auth::{Credential, bearer};
use crate::side::SideError;
use crate::side::credential::{CredentialId, Operator, Role};

/// The console's cookie (COO-10).
pub const CONSOLE_COOKIE: &str = "qm_console";

/// A known caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The name in the audit trail.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// How it came: `key`, `session` or `link`.
    pub via: &'static str,
    /// The credential it came with.
    pub credential: CredentialId,
}

impl Principal {
    fn admin(verifier: Verifier) -> Self {
        let credential = CredentialId::Admin(verifier);
        Self { name: ADMIN_NAME.into(), role: Role::Owner, via: "key", credential }
    }

    fn operator(operator: Operator) -> Self {
        let credential = CredentialId::Operator(operator.id);
        Self { name: operator.name, role: operator.role, via: "key", credential }
    }
}

/// Lets the request through when its credential may use the route.
///
/// # Errors
/// `too_many_auth_failures` for a locked address, whatever it sends; `csrf_required`,
/// `unauthorized` or `insufficient_role`. Asking without a credential is no failure that counts.
pub async fn authorize(app: &App, ask: &Ask, row: &Row) -> Result<Principal, ApiError> {
    refuse_locked(app, ask)?;
    let principal = identify(app, ask, row).await?;
    if !row.access.allows(principal.role) {
        trail::refused(app, ask, Some(&principal), "access_refused", row.path).await;
        return Err(ApiError::insufficient_role());
    }
    Ok(principal)
}

/// Refuses a locked-out address.
///
/// # Errors
/// `too_many_auth_failures`.
pub fn refuse_locked(app: &App, ask: &Ask) -> Result<(), ApiError> {
    match app.lock_out.check(&ask.address.group(), ask.now) {
        Some(seconds) => Err(ApiError::too_many_auth_failures(seconds)),
        None => Ok(()),
    }
}

/// Counts a wrong key.
pub async fn failed(app: &App, ask: &Ask, action: &str) -> ApiError {
    if app.lock_out.record_failure(ask.address.group(), ask.now) {
        tracing::warn!(address = %ask.address, "locked out after too many wrong keys");
    }
    trail::refused(app, ask, None, action, "").await;
    ApiError::unauthorized()
}

async fn identify(app: &App, ask: &Ask, row: &Row) -> Result<Principal, ApiError> {
    match bearer(&ask.headers) {
        Credential::Key(key) => match by_key(app, ask, key).await.map_err(unavailable)? {
            Some(principal) => Ok(principal),
            None => Err(failed(app, ask, "key_refused").await),
        },
        Credential::Unusable => Err(failed(app, ask, "key_refused").await),
        Credential::Absent => {
            if row.endpoint == Endpoint::Events
                && let Some(ticket) = ask.parameter("ticket")
            {
                return by_ticket(app, ask, &ticket).await;
            }
            by_cookie(app, ask).await
        }
    }
}

async fn by_key(app: &App, ask: &Ask, key: &str) -> Result<Option<Principal>, SideError> {
    if let Some(principal) = owner_of_key(app, key).await? {
        return Ok(Some(principal));
    }
    // A monitor link's token; every other signed text has other members.
    let Ok(members) = app.keys.verify(Purpose::Monitor, key) else { return Ok(None) };
    match members.get("mid").and_then(serde_json::Value::as_str) {
        Some(id) => recognise(app, ask, &CredentialId::Link(id.to_owned())).await,
        None => Ok(None),
    }
}

/// The holder of `ADMIN_KEY` or of an operator's key; only these two sign in to the console.
///
/// # Errors
/// [`SideError`].
pub async fn owner_of_key(app: &App, key: &str) -> Result<Option<Principal>, SideError> {
    if app.admin_key.matches(key) {
        let verifier = app.keys.verifier(Purpose::Operator, key);
        return Ok(Some(Principal::admin(verifier)));
    }
    if !key.starts_with(OPERATOR_PREFIX) {
        return Ok(None);
    }
    let current = app.keys.verifier(Purpose::Operator, key);
    if let Some(operator) = app.side.operator_by_verifier(&current).await? {
        return Ok(Some(Principal::operator(operator)));
    }
    let Some(previous) = app.keys.previous_verifier(Purpose::Operator, key) else {
        return Ok(None);
    };
    let Some(operator) = app.side.operator_by_verifier(&previous).await? else { return Ok(None) };
    // The rotation of SECRET is followed at the first use of each key.
    app.side.renew_verifier(&operator.id, &previous, current).await?;
    Ok(Some(Principal::operator(operator)))
}

async fn by_ticket(app: &App, ask: &Ask, ticket: &str) -> Result<Principal, ApiError> {
    let taken = app.side.take_stream_ticket(&digest(ticket), ask.now).await.map_err(unavailable)?;
    let taken = taken.ok_or_else(ApiError::unauthorized)?;
    let found = recognise(app, ask, &taken.credential).await.map_err(unavailable)?;
    found.ok_or_else(ApiError::unauthorized)
}

/// The form under which a ticket is stored.
#[must_use]
pub fn digest(ticket: &str) -> String {
    hex(&Sha256::digest(ticket.as_bytes()))
}

async fn by_cookie(app: &App, ask: &Ask) -> Result<Principal, ApiError> {
    let cookies = ask.cookies();
    let mut sent = values(&cookies, CONSOLE_COOKIE).take(COOKIES_MAX).peekable();
    if sent.peek().is_none() {
        return Err(ApiError::unauthorized());
    }
    let is_read = matches!(ask.method, Method::GET | Method::HEAD);
    if !is_read && !has_csrf_header(ask) {
        return Err(ApiError::csrf_required());
    }
    for text in sent {
        // A session cannot be guessed, and an old cookie must not lock its owner out: no failure
        // that counts.
        let Ok(members) = app.keys.verify(Purpose::Session, text) else { continue };
        let Some(id) = members.get("sid").and_then(serde_json::Value::as_str) else { continue };
        let session = CredentialId::Session(id.to_owned());
        if let Some(principal) = recognise(app, ask, &session).await.map_err(unavailable)? {
            return Ok(principal);
        }
    }
    Err(ApiError::unauthorized())
}

/// Whether the request carries `X-QM-CSRF`, which no foreign page can send.
#[must_use]
pub fn has_csrf_header(ask: &Ask) -> bool {
    ask.headers.get("x-qm-csrf").is_some_and(|value| !value.is_empty())
}

/// Looks a credential up as of now; `None` when it was revoked or ran out.
///
/// # Errors
/// [`SideError`].
pub async fn recognise(
    app: &App,
    ask: &Ask,
    credential: &CredentialId,
) -> Result<Option<Principal>, SideError> {
    recognise_at(app, app.clock.now().max(ask.now), credential).await
}

/// As [`recognise`], for streams that outlive their request.
///
/// # Errors
/// [`SideError`].
pub async fn recognise_at(
    app: &App,
    now: qm_core::time::TimeMs,
    credential: &CredentialId,
) -> Result<Option<Principal>, SideError> {
    let (holder, via) = match credential {
        CredentialId::Session(id) => match app.side.session(id, now).await? {
            Some(session) => (session.holder, "session"),
            None => return Ok(None),
        },
        other => (other.clone(), "key"),
    };
    let found = match &holder {
        CredentialId::Admin(verifier) => is_admin(app, verifier).then(|| {
            // The key of this very process: nothing can have revoked it.
            Principal::admin(verifier.clone())
        }),
        CredentialId::Operator(id) => app.side.operator(id).await?.map(Principal::operator),
        CredentialId::Link(id) => app.side.link(id, now).await?.map(|link| Principal {
            name: link.label,
            role: Role::Monitor,
            via: "link",
            credential: holder.clone(),
        }),
        // A session is held by a key, never by another session.
        CredentialId::Session(_) => None,
    };
    Ok(found.map(|principal| match via {
        "session" => Principal { via, credential: credential.clone(), ..principal },
        _ => principal,
    }))
}

/// Whether the verifier is of the `ADMIN_KEY` in effect, under the present or the previous secret.
fn is_admin(app: &App, verifier: &Verifier) -> bool {
    let key = app.config.keys.admin.reveal();
    *verifier == app.keys.verifier(Purpose::Operator, key)
        || app.keys.previous_verifier(Purpose::Operator, key).as_ref() == Some(verifier)
}

/// The answer when credentials cannot be looked up.
#[must_use]
pub fn unavailable(error: SideError) -> ApiError {
    tracing::error!(%error, "side data cannot be read or written");
    ApiError::storage_unavailable().with_message("the server cannot reach its data, try again")
}

/// The name of the holder of `ADMIN_KEY` in the audit trail.
const ADMIN_NAME: &str = "admin";
/// What every operator key begins with (HOL-46).
pub const OPERATOR_PREFIX: &str = "qmo_";
/// The cookie is set for two paths; more copies than these are nobody's.
const COOKIES_MAX: usize = 4;
