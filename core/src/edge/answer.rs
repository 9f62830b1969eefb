//! What the server's answer makes of a request.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value;

use super::page::waiting_location;
use super::rules::parse_patterns;
use super::settings::Settings;
use super::show::door_key_cookie;
use super::{
    ANSWER_BYTES_MAX, Forward, Note, NoteKind, Pending, Respond, Step, ask, note, redirect,
};
use crate::cookie::{SameSite, SetCookie, ticket_cookie};

/// What came back from the queue server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Nothing within [`super::BUDGET_MS`].
    Timeout,
    /// No connection, or a broken one.
    Unreachable,
    /// An answer that could not be read as text.
    Unreadable,
    /// An answer.
    Http {
        /// The status.
        status: u16,
        /// The body.
        body: &'a str,
    },
}

/// An answer, understood.
enum Verdict {
    Pass {
        reason: String,
        body: Value,
    },
    Queue {
        named: Option<String>,
        clear: bool,
    },
    Busy,
    /// The server could not use what the visitor sent.
    Unusable,
    Failed(String, Note),
}

pub(super) fn conclude(
    settings: &Settings,
    mut pending: Pending,
    answer: &Answer<'_>,
    key_is_fresh: bool,
) -> Step {
    match understand(answer) {
        Verdict::Pass { reason, body } => pass(settings, pending, &reason, &body),
        Verdict::Queue { named, clear } => {
            let from_url = pending.asked.as_ref().is_some_and(|shown| shown.from_url);
            pending.clear |= clear && pending.asked.is_some() && !from_url;
            if !pending.left.is_empty() && (clear || from_url) {
                pending.show_next();
                return Step::Ask(ask::check(settings, pending));
            }
            to_waiting(settings, &pending, named.as_deref(), None)
        }
        Verdict::Busy => {
            let note = note(NoteKind::Busy, "the queue server is busy: visitors wait");
            if key_is_fresh && pending.door_key.is_some() {
                return Step::Forward(Forward { note, ..Forward::default() });
            }
            let pending = Pending { clear: false, ..pending };
            to_waiting(settings, &pending, None, note)
        }
        Verdict::Unusable => to_waiting(settings, &pending, None, None),
        Verdict::Failed(failover, note) => Step::Forward(Forward {
            failover: Some(failover),
            note: Some(note),
            ..Forward::default()
        }),
    }
}

fn understand(answer: &Answer<'_>) -> Verdict {
    let (status, body) = match *answer {
        Answer::Timeout => return failed("timeout", "the queue server did not answer in time"),
        Answer::Unreachable => {
            return failed("unreachable", "the queue server cannot be reached");
        }
        Answer::Unreadable => return invalid(),
        Answer::Http { status, body } => (status, body),
    };
    let json: Option<Value> =
        if body.len() > ANSWER_BYTES_MAX { None } else { serde_json::from_str(body).ok() };
    let text = |name: &str| json.as_ref()?.get(name)?.as_str();
    match status {
        200 => match (text("action"), &json) {
            (Some("pass"), Some(body)) => Verdict::Pass {
                reason: text("reason").unwrap_or_default().to_string(),
                body: body.clone(),
            },
            (Some("queue"), Some(body)) => Verdict::Queue {
                named: text("waitingRoomUrl").map(ToString::to_string),
                clear: body.get("clearToken").and_then(Value::as_bool).unwrap_or(false),
            },
            _ => invalid(),
        },
        201..=299 => invalid(),
        429 => Verdict::Busy,
        503 if text("code") == Some("server_saturated") => Verdict::Busy,
        400 | 413 | 414 => Verdict::Unusable,
        401 | 403 => Verdict::Failed(
            format!("http-{status}"),
            Note {
                kind: NoteKind::KeyRefused,
                text: format!(
                    "the queue server refuses our key ({status}): THE ROOM IS OPEN, everybody \
                     passes; set QM_PUBLIC_API_KEY to the server's PUBLIC_API_KEY"
                ),
            },
        ),
        300..=399 => failed(
            &format!("http-{status}"),
            "the queue server redirects: set QM_SERVER to the origin it redirects to",
        ),
        _ => failed(&format!("http-{status}"), &format!("the queue server answered {status}")),
    }
}

fn invalid() -> Verdict {
    failed("invalid-response", "the queue server's answer cannot be read")
}

fn failed(failover: &str, text: &str) -> Verdict {
    let text = format!("{text}: a visitor passes unchecked ({failover})");
    Verdict::Failed(failover.to_string(), Note { kind: NoteKind::Failover, text })
}

fn pass(settings: &Settings, mut pending: Pending, reason: &str, body: &Value) -> Step {
    let note = match reason {
        "no_room" => note(
            NoteKind::NoRoom,
            &format!("the queue server has no room {}: everybody passes", settings.room),
        ),
        _ => None,
    };
    let shown_in_url = pending.asked.as_ref().filter(|shown| shown.from_url);
    if reason == "out_of_scope" {
        if pending.was_cut && has_query_rule(body) {
            pending.omit_url = true;
            return Step::Ask(ask::check(settings, pending));
        }
        if shown_in_url.is_none() {
            // Not this room's page, so another room's pass in its address is not ours to take.
            return Step::Forward(Forward::default());
        }
    }
    let mut cookies = Vec::new();
    if let Some(shown) = shown_in_url {
        let name = ticket_cookie(&settings.room);
        cookies.push(cookie(settings, &pending, &name, &shown.token, DAY_SECONDS));
    }
    let issued = body.get("sess").and_then(Value::as_str).filter(|_| settings.key.is_none());
    if let Some(key) = issued {
        let name = door_key_cookie(&settings.room);
        cookies.push(cookie(settings, &pending, &name, key, DAY_SECONDS));
    }
    let door_key = issued.map(ToString::to_string);
    let clean = pending.page.filter(|_| pending.had_token);
    match clean {
        Some(page) if pending.is_safe => {
            let mut reply = redirect(page);
            reply.headers.extend(cookies.into_iter().map(|cookie| ("set-cookie", cookie.into())));
            Step::Respond(Respond { reply, note, door_key })
        }
        url => Step::Forward(Forward { failover: None, url, cookies, note, door_key }),
    }
}

/// Whether a rule of the answer is about the query that was cut from the question.
fn has_query_rule(body: &Value) -> bool {
    let patterns = body.get("targeting").and_then(|targeting| targeting.get("patterns"));
    let Some(rules) = patterns.and_then(parse_patterns) else { return true };
    rules.iter().any(|(pattern, _)| pattern.contains('?'))
}

/// To the waiting page, with the way back.
pub(super) fn to_waiting(
    settings: &Settings,
    pending: &Pending,
    named: Option<&str>,
    note: Option<Note>,
) -> Step {
    let (server, room) = (settings.server.as_str(), settings.room.as_str());
    let mut reply = redirect(waiting_location(server, room, named, pending.page.as_deref()));
    if pending.clear {
        let name = ticket_cookie(&settings.room);
        reply.header("set-cookie", cookie(settings, pending, &name, "", 0));
        if pending.door_key.is_some() {
            let name = door_key_cookie(&settings.room);
            reply.header("set-cookie", cookie(settings, pending, &name, "", 0));
        }
    }
    Step::Respond(Respond { reply, note, door_key: None })
}

/// What a pass or a door key is kept for.
const DAY_SECONDS: u64 = 86_400;

fn cookie(
    settings: &Settings,
    pending: &Pending,
    name: &str,
    value: &str,
    max_age_seconds: u64,
) -> String {
    SetCookie {
        name,
        value,
        max_age_seconds,
        http_only: true,
        secure: settings.secure_cookie.unwrap_or(pending.is_https),
        path: "/",
        same_site: SameSite::Lax,
    }
    .header_value()
}
