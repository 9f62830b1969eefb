//! The door at the edge as JSON, for hosts in JavaScript: they keep a handle, carry `pending` from
//! question to answer without looking into it, and do what each step says.

use std::cell::RefCell;

use qm_core::edge::{Answer, Edge, Facts, Note, Query, Step, Written, failed_checks};
use qm_core::time::TimeMs;
use serde_json::{Value, json};

thread_local! {
    /// The doors opened in this instance; a handle is an index.
    static DOORS: RefCell<Vec<Edge>> = const { RefCell::new(Vec::new()) };
}

/// Opens a door: `{settings}` gives `{handle, usable, faults}`.
pub(crate) fn open(input: &Value) -> Option<Value> {
    let settings = input.get("settings")?;
    let text = |name: &str| settings.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| settings.get(name).and_then(Value::as_bool);
    let (edge, faults) = Edge::new(&Written {
        server: text("server"),
        room: text("room"),
        public_api_key: text("publicApiKey"),
        gate: text("gate"),
        visitor_key: text("visitorKey"),
        token_max_age_seconds: text("tokenMaxAgeSec"),
        trust_proxy: text("trustProxy"),
        unvouched: flag("unvouched").unwrap_or(false),
        secure_cookie: flag("secureCookie"),
        passes_server_host: flag("passesServerHost").unwrap_or(false),
    });
    let usable = edge.settings().is_some();
    let handle = DOORS.with_borrow_mut(|doors| {
        doors.push(edge);
        doors.len() - 1
    });
    Some(json!({ "handle": handle, "usable": usable, "faults": faults }))
}

/// The first step: `{handle, now, method, url, headers, peer?, address?}`.
pub(crate) fn plan(input: &Value) -> Option<Value> {
    let headers: Vec<(&str, &str)> = input
        .get("headers")?
        .as_object()?
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let facts = Facts {
        method: text("method")?,
        url: text("url")?,
        headers: &headers,
        peer: text("peer").and_then(|peer| peer.parse().ok()),
        address: text("address"),
    };
    let now = now(input)?;
    with_door(input, |edge| Some(step(edge.plan(&facts, now))))
}

/// The step after an answer: `{handle, pending, answer:{status, body} | {failure}, keyIsFresh?}`.
pub(crate) fn conclude(input: &Value) -> Option<Value> {
    let pending = serde_json::from_value(input.get("pending")?.clone()).ok()?;
    let answer = input.get("answer")?;
    let answer = match answer.get("failure").and_then(Value::as_str) {
        Some("timeout") => Answer::Timeout,
        Some("unreadable") => Answer::Unreadable,
        Some(_) => Answer::Unreachable,
        None => Answer::Http {
            status: answer.get("status")?.as_u64()?.try_into().ok()?,
            body: answer.get("body")?.as_str()?,
        },
    };
    let key_is_fresh = input.get("keyIsFresh").and_then(Value::as_bool).unwrap_or(false);
    with_door(input, |edge| Some(step(edge.conclude(pending, &answer, key_is_fresh))))
}

/// `{handle, now}` gives `{query}`: the question for the rules, or null when it is not time.
pub(crate) fn rules_query(input: &Value) -> Option<Value> {
    let now = now(input)?;
    with_door(input, |edge| Some(json!({ "query": edge.rules_query(now).map(query) })))
}

/// `{handle, now, status, etag?, body}`: what came back for the rules.
pub(crate) fn learn_rules(input: &Value) -> Option<Value> {
    let now = now(input)?;
    let status = input.get("status")?.as_u64()?.try_into().ok()?;
    let body = input.get("body")?.as_str()?;
    let etag = input.get("etag").and_then(Value::as_str);
    with_door(input, |edge| {
        edge.learn_rules(status, etag, body, now);
        Some(json!({}))
    })
}

/// `{handle, url, connector, version}` gives `{query}`: the question whether the set-up is right.
pub(crate) fn verify_query(input: &Value) -> Option<Value> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let (url, connector, version) = (text("url")?, text("connector")?, text("version")?);
    with_door(input, |edge| {
        Some(json!({ "query": edge.verify_query(url, connector, version).map(query) }))
    })
}

/// `{body}` gives `{failed}`: a line for each failed point, null when it is no verification.
pub(crate) fn verify_failures(input: &Value) -> Option<Value> {
    Some(json!({ "failed": failed_checks(input.get("body")?.as_str()?) }))
}

fn now(input: &Value) -> Option<TimeMs> {
    input.get("now")?.as_u64().map(TimeMs)
}

fn with_door(input: &Value, ask: impl FnOnce(&mut Edge) -> Option<Value>) -> Option<Value> {
    let handle = usize::try_from(input.get("handle")?.as_u64()?).ok()?;
    DOORS.with_borrow_mut(|doors| ask(doors.get_mut(handle)?))
}

fn query(query: Query) -> Value {
    json!({ "url": query.url, "headers": query.headers })
}

fn step(step: Step) -> Value {
    match step {
        Step::Forward(forward) => json!({
            "do": "forward",
            "failover": forward.failover,
            "url": forward.url,
            "cookies": forward.cookies,
            "note": note(forward.note),
            "doorKey": forward.door_key,
        }),
        Step::Respond(respond) => json!({
            "do": "respond",
            "status": respond.reply.status,
            "headers": respond.reply.headers,
            "body": respond.reply.body,
            "note": note(respond.note),
            "doorKey": respond.door_key,
        }),
        Step::Ask(ask) => json!({
            "do": "ask",
            "url": ask.query.url,
            "headers": ask.query.headers,
            "pending": serde_json::to_value(&ask.pending).unwrap_or(Value::Null),
        }),
    }
}

fn note(note: Option<Note>) -> Value {
    serde_json::to_value(note).unwrap_or(Value::Null)
}
