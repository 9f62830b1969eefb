//! The audit trail (ADM-03): one entry for each change with who, how, from where and what; refused
//! attempts too, as far as a flood of them does not fill the trail.

use hyper::Response;
use qm_core::id::RoomId;
use qm_core::room::Room;
use serde_json::{Map, Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::auth::{Principal, unavailable};
use crate::side::audit::AuditEntry;

/// Appends an entry of a change that was made. A trail that cannot be written is an error for the
/// log: the change is done.
pub(super) async fn record(
    app: &App,
    ask: &Ask,
    who: &Principal,
    action: &str,
    room: Option<&RoomId>,
    detail: Value,
) {
    let entry = AuditEntry {
        id: 0,
        at: app.clock.now(),
        actor: who.name.clone(),
        role: who.role.as_str().into(),
        via: who.via.into(),
        address: ask.address.to_string(),
        action: action.into(),
        room: room.cloned(),
        detail,
    };
    append(app, entry).await;
}

/// Appends an entry of an attempt that was refused.
pub(super) async fn refused(
    app: &App,
    ask: &Ask,
    who: Option<&Principal>,
    action: &str,
    path: &str,
) {
    // A flood of wrong keys is in the log and in the counters; the trail stays readable.
    if app.refused_trail.take((), ask.now).is_err() {
        return;
    }
    let entry = AuditEntry {
        id: 0,
        at: app.clock.now(),
        actor: who.map(|who| who.name.clone()).unwrap_or_default(),
        role: who.map(|who| who.role.as_str().to_owned()).unwrap_or_default(),
        via: who.map_or("key", |who| who.via).into(),
        address: ask.address.to_string(),
        action: action.into(),
        room: None,
        detail: json!({ "method": ask.method.as_str(), "route": path }),
    };
    append(app, entry).await;
}

async fn append(app: &App, entry: AuditEntry) {
    let action = entry.action.clone();
    if let Err(error) = app.side.add_audit(entry).await {
        tracing::error!(%error, %action, "an audit entry is lost");
    }
}

/// A room's settings, to be compared after a change.
#[must_use]
pub(super) fn settings_of(room: &Room) -> Map<String, Value> {
    let mut fields = Map::new();
    room.settings().write_list_fields(&mut fields);
    fields
}

/// `{before, after}` of the members that differ.
#[must_use]
pub(super) fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Value {
    let changed = |name: &&String| before.get(*name) != after.get(*name);
    let names: Vec<&String> = after.keys().filter(changed).collect();
    let pick = |from: &Map<String, Value>| -> Map<String, Value> {
        let picked =
            names.iter().filter_map(|name| Some(((*name).clone(), from.get(*name)?.clone())));
        picked.collect()
    };
    json!({ "before": pick(before), "after": pick(after) })
}

/// `GET /audit?before=&limit=`: newest first.
///
/// # Errors
/// `invalid_before`, `invalid_limit`, `storage_unavailable`.
pub(super) async fn audit(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    let number = |name: &str, code: &'static str, most: u64| match ask.parameter(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
            _ => Err(ApiError::invalid_field(code, format!("{name} must be 1 to {most}"))),
        },
    };
    let before = number("before", "invalid_before", qm_core::id::INTEGER_MAX)?;
    let limit = number("limit", "invalid_limit", LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // One more than asked tells whether there is a next page.
    let mut entries = app.side.audit(before, limit + 1).await.map_err(unavailable)?;
    let has_more = entries.len() > limit;
    entries.truncate(limit);
    let next = entries.last().filter(|_| has_more).map(|entry| entry.id);
    let entries: Vec<Value> = entries.iter().map(AuditEntry::to_json).collect();
    Ok(answer::json(&json!({ "entries": entries, "next": next })))
}

const LIMIT_DEFAULT: u64 = 50;
const LIMIT_MAX: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_changed_only() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let before = map(json!({ "name": "a", "rate": 1, "opensAt": null }));
        let after = map(json!({ "name": "a", "rate": 2, "opensAt": null }));
        let expected = json!({ "before": { "rate": 1 }, "after": { "rate": 2 } });
        assert_eq!(difference(&before, &after), expected);
    }
}
