//! Monitor links (ADM-63, ADM-64): read-only tokens for screens, kept in the fragment of a URL.

use hyper::Response;
use qm_core::token::Purpose;
use serde_json::{Map, Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::auth::{Principal, unavailable};
use super::operators::{name_in, refuse_unknown};
use super::trail;
use crate::guard::random::random_text;
use crate::side::credential::MonitorLink;

/// `GET /monitor-token`: the links still valid, without their tokens.
pub(super) async fn list(app: &App) -> Result<Response<Body>, ApiError> {
    let links = app.side.links(app.clock.now()).await.map_err(unavailable)?;
    let tell = |link: &MonitorLink| {
        let MonitorLink { id, label, expires_at, .. } = link;
        json!({ "id": id, "label": label, "expiresAt": expires_at })
    };
    let links: Vec<Value> = links.iter().map(tell).collect();
    Ok(answer::json(&json!({ "links": links })))
}

/// `POST /monitor-token`.
pub(super) async fn add(
    app: &App,
    ask: &Ask,
    who: &Principal,
    body: &Map<String, Value>,
) -> Result<Response<Body>, ApiError> {
    refuse_unknown(body, &["label", "ttlSec"])?;
    let label = name_in(body, "label", "invalid_label")?.unwrap_or_else(|| "monitor".into());
    let seconds = match body.get("ttlSec") {
        None | Some(Value::Null) => TTL_DEFAULT,
        Some(value) => value.as_u64().filter(|ttl| TTL.contains(ttl)).ok_or_else(|| {
            ApiError::invalid_field("invalid_ttl_sec", "ttlSec must be 60 to 31536000 seconds")
        })?,
    };
    let now = app.clock.now();
    let id = format!("mon_{}", random_text(9));
    let expires_at = now.plus_seconds(seconds);
    let payload = json!({ "mid": id, "label": label, "iat": now, "exp": expires_at });
    let token = app.keys.sign(Purpose::Monitor, &payload.to_string());
    let link = MonitorLink { id: id.clone(), label: label.clone(), expires_at };
    app.side.add_link(link).await.map_err(unavailable)?;
    let after = json!({ "id": id, "label": label, "expiresAt": expires_at });
    let detail = json!({ "before": null, "after": after });
    trail::record(app, ask, who, "monitor_link_created", None, detail).await;
    let url = format!("/#monitor={token}");
    Ok(answer::json(&json!({
        "ok": true, "id": id, "token": token, "url": url, "expiresAt": expires_at,
    })))
}

/// `DELETE /monitor-token?id=` or `?all=1`.
pub(super) async fn remove(
    app: &App,
    ask: &Ask,
    who: &Principal,
) -> Result<Response<Body>, ApiError> {
    let (action, count, before) = if ask.parameter("all").as_deref() == Some("1") {
        let count = app.side.remove_links().await.map_err(unavailable)?;
        ("monitor_links_revoked", count, json!({ "all": count }))
    } else {
        let id = ask.parameter("id").unwrap_or_default();
        if id.is_empty() {
            return Err(ApiError::invalid_field("invalid_id", "send id=<link> or all=1"));
        }
        let removed = app.side.remove_link(&id).await.map_err(unavailable)?;
        if !removed {
            return Err(ApiError::not_found().with_message("no such link"));
        }
        ("monitor_link_revoked", 1, json!({ "id": id }))
    };
    app.board.revoked();
    let detail = json!({ "before": before, "after": null });
    trail::record(app, ask, who, action, None, detail).await;
    Ok(answer::json(&json!({ "ok": true, "revoked": count })))
}

const TTL: std::ops::RangeInclusive<u64> = 60..=31_536_000;
const TTL_DEFAULT: u64 = 30 * 86_400;
