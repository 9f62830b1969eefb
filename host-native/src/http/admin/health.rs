//! `GET /api/admin/health`: settings in effect, storage, warnings and the counters of silent
//! mistakes (HEA-03 to HEA-08).

use hyper::Response;
use serde_json::{Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::health::facts;
use crate::config::Limit;
use crate::rooms::RoomHandle;

/// Answers with everything an operator should know about this instance.
#[must_use]
pub(super) fn health(app: &App) -> Response<Body> {
    let rooms = app.rooms.all();
    let open: Vec<&str> = rooms
        .iter()
        .filter(|handle| handle.look(|room, _, _| room.settings().names_no_site()))
        .map(|handle| handle.id().as_str())
        .collect();
    let warnings = warnings(app, &rooms);
    let mut body = facts(app);
    let more = json!({
        "config": config(app),
        "storage": storage(app, rooms.len()),
        "warnings": warnings,
        "unknownRoomChecks": app.metrics.unknown_room_checks.snapshot(),
        "refusedOriginChecks": app.metrics.refused_origin_checks.snapshot(),
        "refusedKeyChecks": app.metrics.refused_key_checks.snapshot(),
        "openOriginRooms": open,
        "access": { "sso": false },
        "clock": {
            "now": app.clock.now(),
            "source": if app.rooms.is_shared() { "valkey" } else { "system" },
            "offsetMs": app.clock.offset_ms(),
        },
        "fdLimit": app.descriptors,
    });
    if let Value::Object(more) = more {
        body.extend(more);
    }
    answer::json(&body)
}

fn storage(app: &App, rooms: usize) -> Value {
    if !app.rooms.is_shared() {
        return json!({ "memory": { "rooms": rooms } });
    }
    json!({
        "rooms": rooms,
        "valkey": { "up": app.store_health.valkey_is_up() },
        "postgres": { "up": app.store_health.postgres_is_up() },
    })
}

fn config(app: &App) -> Value {
    let config = &app.config;
    let limit = |limit: Limit| limit.number().map_or_else(|| Value::from("off"), Value::from);
    json!({
        "production": config.production,
        "tokenSignV2": config.tokens.sign_v2,
        "tokenMaxAgeSec": config.tokens.max_age_seconds,
        "queueCookieMaxAgeSec": config.tokens.cookie_max_age_seconds,
        "roomCookieCap": config.tokens.room_cookie_cap,
        "joinLimitPerMin": limit(config.limits.join_per_minute),
        "checkLimitPerMin": limit(config.limits.check_per_minute),
        "notifyLimitPerMin": limit(config.limits.notify_per_minute),
        "adminAuthFailPerMin": limit(config.limits.admin_auth_failures_per_minute),
        "sseMaxTotal": limit(config.limits.streams_total),
        "ssePerIp": limit(config.limits.streams_per_address),
        "maxConnections": limit(config.limits.connections),
        "prequeueMax": limit(config.limits.prequeue_per_room),
        "publicApiKeys": config.keys.public_api.len(),
        "edgeSecret": config.keys.edge.is_some(),
        "emailNotify": config.mail.is_some(),
        "publicOrigin": config.public_origin,
    })
}

fn warnings(app: &App, rooms: &[std::sync::Arc<RoomHandle>]) -> Vec<Value> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: &str, room: Option<&str>| {
        let mut warning = json!({ "code": code, "message": message });
        if let (Some(room), Some(object)) = (room, warning.as_object_mut()) {
            object.insert("roomId".into(), room.into());
        }
        warnings.push(warning);
    };
    if app.config.keys.admin_is_default {
        warn("default_admin_key", "ADMIN_KEY is the default; set your own before going live", None);
    }
    if app.config.keys.signing_is_random {
        warn(
            "random_secret",
            "SECRET is not set, so every place is lost when the server restarts; set SECRET",
            None,
        );
    }
    if !app.rooms.is_shared() {
        warn(
            "memory_store",
            "STORE=memory keeps the queue in this process only; a restart empties it",
            None,
        );
    }
    for handle in rooms {
        let (no_target, open) = handle.look(|room, _, _| {
            (room.settings().target_url.is_none(), room.settings().names_no_site())
        });
        let room = Some(handle.id().as_str());
        if open {
            warn(
                "open_origins",
                "the room names no site, so any page may read its check; set targetUrl",
                room,
            );
        } else if no_target {
            warn(
                "no_target_url",
                "released visitors without a return address stay here; set targetUrl",
                room,
            );
        }
    }
    warnings
}
