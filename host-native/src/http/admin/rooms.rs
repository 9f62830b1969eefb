//! Rooms as operators work with them (ADM-10 to ADM-55).

use std::sync::Arc;

use hyper::Response;
use qm_core::id::{Place, RoomId};
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
use super::auth::{Principal, unavailable};
use super::trail;
use crate::rooms::RoomHandle;
use crate::side::credential::Role;
use crate::side::notice::NoticeKey;

type Answer = Result<Response<Body>, ApiError>;

fn bad_setting(error: PatchError) -> ApiError {
    ApiError::invalid_field(error.code, error.message)
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
pub(super) fn list(app: &App, who: &Principal) -> Response<Body> {
    let tell = |room: &Arc<RoomHandle>| {
        let mut item = room.look(|room, _, now| room.list_item(now));
        if who.role == Role::Monitor {
            redact(&mut item);
        }
        Value::from(item)
    };
    let rooms: Vec<Value> = app.rooms.all().iter().map(tell).collect();
    answer::json(&json!({ "rooms": rooms, "now": app.clock.now() }))
}

/// Takes out what a monitor link must not tell (ADM-32): internal addresses, lists of origins and
/// URL rules.
pub(super) fn redact(item: &mut Map<String, Value>) {
    for name in ["proxyOrigin", "returnOrigins", "tagOrigins", "urlPatterns"] {
        item.remove(name);
    }
    if let Some(autotune) = item.get_mut("autotune").and_then(Value::as_object_mut) {
        autotune.remove("probeUrl");
    }
    item.insert("redacted".into(), true.into());
}

/// `POST /rooms`: makes or edits a room.
pub(super) async fn save(
    app: &App,
    ask: &Ask,
    who: &Principal,
    body: &Map<String, Value>,
) -> Answer {
    let (id, patch) = parse_room_body(body).map_err(bad_setting)?;
    let existing = app.rooms.find(&id);
    if id.is_reserved() && existing.is_none() {
        return Err(ApiError::invalid_room_id().with_message("this room id is reserved"));
    }
    let before = existing.map_or_else(Map::new, |room| settings_map(&room));
    let (room, created) = app.rooms.save(&id, patch).await.map_err(bad_setting)?;
    let action = if created { "room_created" } else { "room_edited" };
    let detail = trail::difference(&before, &settings_map(&room));
    trail::record(app, ask, who, action, Some(&id), detail).await;
    Ok(answer::json(&json!({ "ok": true, "created": created, "room": item(&room) })))
}

/// `DELETE /rooms/:id`.
pub(super) async fn delete(app: &App, ask: &Ask, who: &Principal, id: &RoomId) -> Answer {
    let room = app.rooms.find(id).ok_or_else(ApiError::room_not_found)?;
    let before = settings_map(&room);
    if !app.rooms.delete(id).await {
        return Err(ApiError::room_not_found());
    }
    app.protection.forget(id);
    let detail = json!({ "before": before, "after": null });
    trail::record(app, ask, who, "room_deleted", Some(id), detail).await;
    Ok(answer::json(&json!({ "ok": true })))
}

fn settings_map(room: &RoomHandle) -> Map<String, Value> {
    room.look(|room, _, _| trail::settings_of(room))
}

/// One change of a room: who asked, and of which room.
pub(super) struct Work<'a> {
    pub(super) app: &'a App,
    pub(super) ask: &'a Ask,
    pub(super) who: &'a Principal,
    pub(super) room: &'a Arc<RoomHandle>,
}

impl Work<'_> {
    async fn record(&self, action: &str, detail: Value) {
        trail::record(self.app, self.ask, self.who, action, Some(self.room.id()), detail).await;
    }

    async fn change(&self, action: &str, patch: Patch) -> Answer {
        let before = settings_map(self.room);
        self.room.submit(Command::Configure(Box::new(patch))).await.map_err(refusal)?;
        self.record(action, trail::difference(&before, &settings_map(self.room))).await;
        Ok(done(self.room, json!({})))
    }

    /// `POST /rooms/:id/state`.
    pub(super) async fn set_state(&self, body: &Map<String, Value>) -> Answer {
        self.change("state_set", Patch::parse_state(body).map_err(bad_setting)?).await
    }

    /// `POST /rooms/:id/rate`.
    pub(super) async fn set_rate(&self, body: &Map<String, Value>) -> Answer {
        self.change("rate_set", Patch::parse_rate(body).map_err(bad_setting)?).await
    }

    /// `POST /rooms/:id/schedule`.
    pub(super) async fn schedule(&self, body: &Map<String, Value>) -> Answer {
        self.change("schedule_set", Patch::parse_schedule(body).map_err(bad_setting)?).await
    }

    /// `POST /rooms/:id/flush`.
    pub(super) async fn flush(&self, body: &Map<String, Value>) -> Answer {
        let count = parse_flush_count(body).map_err(bad_setting)?;
        let outcome = self.room.submit(Command::Flush { count }).await.map_err(refusal)?;
        let Outcome::Released(released) = outcome else { return Err(ApiError::internal()) };
        let after = json!({ "count": count, "released": released });
        self.record("flushed", json!({ "before": null, "after": after })).await;
        Ok(done(self.room, json!({ "released": released })))
    }

    /// `POST /rooms/:id/eject`.
    pub(super) async fn eject(&self, body: &Map<String, Value>) -> Answer {
        let ticket = parse_ticket(body).map_err(bad_setting)?;
        self.room.submit(Command::Eject { ticket }).await.map_err(refusal)?;
        let key = NoticeKey {
            room: self.room.id().clone(),
            generation: self.room.generation(),
            place: Place::Ticket(ticket),
        };
        self.app.side.remove_notice(&key).await.map_err(unavailable)?;
        self.record("ejected", json!({ "before": { "ticket": ticket }, "after": null })).await;
        Ok(done(self.room, json!({ "ejected": ticket })))
    }

    /// `POST /rooms/:id/purge`.
    pub(super) async fn purge(&self) -> Answer {
        let outcome = self.room.submit(Command::Purge).await.map_err(refusal)?;
        let Outcome::Purged { waiting, pre_queue } = outcome else {
            return Err(ApiError::internal());
        };
        let (id, generation) = (self.room.id(), self.room.generation());
        self.app.side.remove_room_notices(id, generation).await.map_err(unavailable)?;
        let before = json!({ "waiting": waiting, "preQueue": pre_queue });
        self.record("purged", json!({ "before": before, "after": null })).await;
        Ok(done(self.room, json!({ "purged": waiting + pre_queue, "preQueue": pre_queue })))
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
