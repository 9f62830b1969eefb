//! Rooms as operators work with them (ADM-10 to ADM-55).

use std::sync::Arc;

use hyper::Response;
use qm_core::room::patch::{Patch, PatchError, parse_flush_count, parse_room_body, parse_ticket};
use qm_core::room::{Command, Outcome};
use qm_core::target::{Action, Scope};
use qm_core::token::KeyRing;
use serde_json::{Map, Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::super::visitor::join::refusal;
use crate::rooms::{RoomHandle, SaveError};

type Answer = Result<Response<Body>, ApiError>;

fn bad_setting(error: PatchError) -> ApiError {
    ApiError::invalid_field(error.code, error.message)
}

fn not_saved(error: SaveError) -> ApiError {
    match error {
        SaveError::Setting(error) => bad_setting(error),
        SaveError::Unavailable => ApiError::storage_unavailable(),
    }
}

/// The room as the list shows it.
fn item(room: &RoomHandle) -> Value {
    room.look(|room, _, now| room.list_item(now)).into()
}

fn done(room: &RoomHandle, more: Value) -> Response<Body> {
    let mut body = json!({ "ok": true });
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
        body.insert("stats".into(), item(room));
    }
    answer::json(&body)
}

/// `GET /rooms`.
pub(super) fn list(app: &App) -> Response<Body> {
    let rooms: Vec<Value> = app.rooms.all().iter().map(|room| item(room)).collect();
    answer::json(&json!({ "rooms": rooms, "now": app.clock.now() }))
}

/// `POST /rooms`: makes or edits a room.
pub(super) async fn save(app: &App, body: &Map<String, Value>) -> Answer {
    let (id, patch) = parse_room_body(body).map_err(bad_setting)?;
    if id.is_reserved() && app.rooms.find(&id).is_none() {
        return Err(ApiError::invalid_room_id().with_message("this room id is reserved"));
    }
    let (room, created) = app.rooms.save(&id, patch).await.map_err(not_saved)?;
    Ok(answer::json(&json!({ "ok": true, "created": created, "room": item(&room) })))
}

/// `DELETE /rooms/:id`.
pub(super) async fn delete(app: &App, id: &qm_core::id::RoomId) -> Answer {
    if app.rooms.delete(id).await.map_err(refusal)? {
        Ok(answer::json(&json!({ "ok": true })))
    } else {
        Err(ApiError::room_not_found())
    }
}

/// Reads the body of `state`.
pub(super) fn state_patch(body: &Map<String, Value>) -> Result<Patch, ApiError> {
    Patch::parse_state(body).map_err(bad_setting)
}

/// Reads the body of `rate`.
pub(super) fn rate_patch(body: &Map<String, Value>) -> Result<Patch, ApiError> {
    Patch::parse_rate(body).map_err(bad_setting)
}

/// Reads the body of `schedule`.
pub(super) fn schedule_patch(body: &Map<String, Value>) -> Result<Patch, ApiError> {
    Patch::parse_schedule(body).map_err(bad_setting)
}

/// `POST /rooms/:id/state`, `rate` and `schedule`.
pub(super) async fn change(room: &RoomHandle, patch: Patch) -> Answer {
    room.submit(Command::Configure(Box::new(patch))).await.map_err(refusal)?;
    Ok(done(room, json!({})))
}

/// `POST /rooms/:id/flush`.
pub(super) async fn flush(room: &RoomHandle, body: &Map<String, Value>) -> Answer {
    let count = parse_flush_count(body).map_err(bad_setting)?;
    match room.submit(Command::Flush { count }).await.map_err(refusal)? {
        Outcome::Released(released) => Ok(done(room, json!({ "released": released }))),
        _ => Err(ApiError::internal()),
    }
}

/// `POST /rooms/:id/eject`.
pub(super) async fn eject(room: &RoomHandle, body: &Map<String, Value>) -> Answer {
    let ticket = parse_ticket(body).map_err(bad_setting)?;
    room.submit(Command::Eject { ticket }).await.map_err(refusal)?;
    Ok(done(room, json!({ "ejected": ticket })))
}

/// `POST /rooms/:id/purge`.
pub(super) async fn purge(room: &RoomHandle) -> Answer {
    match room.submit(Command::Purge).await.map_err(refusal)? {
        Outcome::Purged { waiting, pre_queue } => {
            Ok(done(room, json!({ "purged": waiting + pre_queue, "preQueue": pre_queue })))
        }
        _ => Err(ApiError::internal()),
    }
}

/// `GET /rooms/:id/visitors?ticket=` or `?ref=` (ADM-52, ADM-53).
pub(super) fn visitors(app: &App, ask: &Ask, room: &Arc<RoomHandle>) -> Answer {
    let (ticket, code) = (ask.parameter("ticket"), ask.parameter("ref"));
    let tickets: Vec<u64> = match (ticket, code) {
        (Some(text), None) => {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|number| digits && *number > 0);
            vec![number.ok_or_else(ApiError::invalid_ticket)?]
        }
        (None, Some(text)) => {
            let code = KeyRing::parse_short_code(&text).ok_or_else(|| {
                ApiError::invalid_ticket().with_message("ref must be a code XXXX-XXXX")
            })?;
            app.keys.tickets_of_short_code(room.id(), room.generation(), &code)
        }
        _ => return Err(ApiError::invalid_ticket().with_message("send either ticket or ref")),
    };
    let found: Vec<Value> = room.look(|state, presence, now| {
        let tell = |number: &u64| {
            let mut visitor = state.visitor(*number, presence, now)?;
            let code = app.keys.short_code(room.id(), room.generation(), *number);
            visitor.as_object_mut()?.insert("ref".into(), code.into());
            Some(visitor)
        };
        tickets.iter().filter_map(tell).collect()
    });
    match found.len() {
        0 => Err(ApiError::ticket_not_found()),
        1 => Ok(answer::json(&found[0])),
        _ => Ok(answer::json(&json!({ "candidates": found }))),
    }
}

/// `GET /rooms/:id/targeting` (ADM-54, ADM-55).
pub(super) fn targeting(ask: &Ask, room: &RoomHandle) -> Response<Body> {
    let counts = room.rule_hits.snapshot();
    let asked = ask.parameter("url");
    let body = room.look(|state, _, _| {
        let rules = &state.settings().url_patterns;
        let patterns: Vec<Value> = rules
            .iter()
            .zip(rules.as_written())
            .map(|((pattern, action), written)| {
                let hits = counts.rules.get(&written);
                json!({
                    "pattern": pattern,
                    "action": action.as_str(),
                    "matchCount": hits.map_or(0, |(count, _)| *count),
                    "lastMatchedAt": hits.map(|(_, last)| *last),
                })
            })
            .collect();
        let mut body = json!({
            "roomId": room.id().as_str(),
            "rev": state.settings().targeting_rev,
            "scoped": !rules.is_empty(),
            "patterns": patterns,
            "noRuleChecks": counts.no_rule,
            "noUrlChecks": counts.no_url,
            "noUrlSenders": counts.no_url_senders,
        });
        if let (Some(url), Some(body)) = (asked.as_deref(), body.as_object_mut()) {
            body.insert("test".into(), dry_run(state.settings(), url));
        }
        body
    });
    answer::json(&body)
}

/// Which rule would win, without counting (TGT-18).
fn dry_run(settings: &qm_core::room::Settings, url: &str) -> Value {
    let rules = &settings.url_patterns;
    let decision = rules.scope(Some(url));
    let decided: Option<(&str, Action)> = decision.rule.and_then(|index| rules.iter().nth(index));
    let mut test = json!({
        "scope": decision.scope.as_str(),
        "rule": decided.map(|(pattern, _)| pattern),
        "queued": decision.scope != Scope::Out,
    });
    if let (Some((_, action)), Some(test)) = (decided, test.as_object_mut()) {
        test.insert("action".into(), action.as_str().into());
    }
    test
}
