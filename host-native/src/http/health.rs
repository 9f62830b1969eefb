//! Readiness and version (HEA-01, HEA-02).

use std::sync::atomic::Ordering;

use hyper::{Response, StatusCode};
use serde_json::{Map, Value};

use super::answer::json;
use super::app::{App, VERSION};
use super::body::Body;

/// What both routes tell.
#[must_use]
pub fn facts(app: &App) -> Map<String, Value> {
    let draining = app.draining.load(Ordering::Relaxed);
    let ready = !draining && app.rooms.is_ready() && app.store_health.is_up();
    let facts: [(&str, Value); 8] = [
        ("ok", ready.into()),
        ("ready", ready.into()),
        ("version", VERSION.into()),
        ("apiVersion", "v1".into()),
        ("uptimeSec", app.clock.uptime().as_secs().into()),
        ("store", app.config.stores.store.as_str().into()),
        ("sidestore", app.config.stores.side_store.as_str().into()),
        ("draining", draining.into()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// 200 while this instance can record joins, 503 otherwise.
#[must_use]
pub fn health(app: &App) -> Response<Body> {
    let facts = facts(app);
    let ready = facts.get("ready") == Some(&Value::Bool(true));
    let mut response = json(&facts);
    if !ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// The same data, always 200.
#[must_use]
pub fn version(app: &App) -> Response<Body> {
    json(&facts(app))
}
