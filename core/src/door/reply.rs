//! The answer of a door check: status, headers and body, the same from every host (design: the
//! reply is shared, not only the verdict).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::id::RoomId;
use crate::reply::Reply;
use crate::room::Settings;
use crate::target::{Action, ScopeDecision};

/// What a check answers.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckAnswer {
    /// The visitor goes on.
    Pass {
        /// One of HOL-35.
        reason: &'static str,
        /// The door session this pass has, if any.
        session: Option<OpenSession>,
    },
    /// The visitor goes to the waiting page.
    Queue {
        /// One of HOL-35.
        reason: &'static str,
        /// What the integration stored is dead (CHK-14).
        clear_token: bool,
    },
}

/// The door session behind a pass (CHK-10 to CHK-12).
#[derive(Clone, Debug, PartialEq)]
pub struct OpenSession {
    /// The idle lifetime in seconds; told when the session opens.
    pub ttl_seconds: Option<u32>,
    /// The key, on the one check that issues it.
    pub key: Option<String>,
}

impl CheckAnswer {
    /// `pass` or `queue`.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Pass { .. } => "pass",
            Self::Queue { .. } => "queue",
        }
    }

    /// The reason word.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Pass { reason, .. } | Self::Queue { reason, .. } => reason,
        }
    }
}

/// The `targeting` member of an answer; `None` for a room without rules (CHK-33).
#[must_use]
pub fn targeting(
    settings: &Settings,
    decision: Option<ScopeDecision>,
    with_rules: bool,
) -> Option<Value> {
    let (rules, decision) = (&settings.url_patterns, decision?);
    if rules.is_empty() {
        return None;
    }
    let mut member = Map::new();
    member.insert("rev".into(), settings.targeting_rev.into());
    member.insert("rules".into(), rules.len().into());
    member.insert("scope".into(), decision.scope.as_str().into());
    let decided = decision.rule.and_then(|index| rules.iter().nth(index));
    member.insert("rule".into(), decided.map_or(Value::Null, |(pattern, _)| pattern.into()));
    if let Some((_, action)) = decided {
        member.insert("action".into(), action.as_str().into());
    }
    if with_rules {
        member.insert("patterns".into(), patterns(settings));
    }
    Some(member.into())
}

/// The rules as integrations read them (TGT-01, TGT-02).
#[must_use]
pub fn patterns(settings: &Settings) -> Value {
    let entry = |(pattern, action): (&str, Action)| {
        let action = action.as_str();
        json!({ "pattern": pattern, "action": action })
    };
    settings.url_patterns.iter().map(entry).collect::<Vec<_>>().into()
}

/// The body of an answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_token: Option<bool>,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sess: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    targeting: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_sec: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_room_url: Option<String>,
}

/// Builds the answer. `page_base` is what the waiting page's path starts with on this host.
#[must_use]
pub fn check_reply(
    answer: &CheckAnswer,
    room: &RoomId,
    page_base: &str,
    targeting: Option<Value>,
    allow_origin: Option<Cow<'static, str>>,
) -> Reply {
    let session = match answer {
        CheckAnswer::Pass { session, .. } => session.as_ref(),
        CheckAnswer::Queue { .. } => None,
    };
    let is_queued = matches!(answer, CheckAnswer::Queue { .. });
    let body = Body {
        action: answer.action(),
        clear_token: matches!(answer, CheckAnswer::Queue { clear_token: true, .. }).then_some(true),
        reason: answer.reason(),
        sess: session.and_then(|session| session.key.as_deref()),
        session: session.map(|_| true),
        targeting,
        ttl_sec: session.and_then(|session| session.ttl_seconds),
        waiting_room_url: is_queued.then(|| format!("{page_base}/w/{room}")),
    };
    // Text keys and no floats but those JSON has: there is nothing to fail at.
    let text = serde_json::to_string(&body).unwrap_or_default();
    let mut reply = Reply::json(200, text);
    reply.header("vary", "Origin");
    if let Some(origin) = allow_origin {
        reply.header("access-control-allow-origin", origin);
    }
    reply
}

/// The answer to a preflight: the same decision as the real call (API-09).
#[must_use]
pub fn preflight_reply(methods: &'static str, allow_origin: Option<Cow<'static, str>>) -> Reply {
    let mut reply = Reply::empty(204);
    reply.header("vary", "Origin");
    if let Some(origin) = allow_origin {
        reply.header("access-control-allow-origin", origin);
        reply.header("access-control-allow-methods", methods);
        reply.header("access-control-allow-headers", "X-QM-Session, Content-Type");
        reply.header("access-control-max-age", "600");
    }
    reply
}
