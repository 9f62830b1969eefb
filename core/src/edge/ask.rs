//! The questions to the queue server, bounded so that nothing a visitor sends makes the server
//! refuse them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use ::url::form_urlencoded::Serializer;
use serde_json::Value;

use super::page::{Fit, TARGET_BYTES_MAX};
use super::settings::Settings;
use super::{Ask, Pending};
use crate::address::AGENT_BYTES_MAX;

/// A GET to the queue server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The absolute address.
    pub url: String,
    /// The request headers.
    pub headers: Vec<(&'static str, String)>,
}

/// The check of one thing shown, or of nothing.
pub(super) fn check(settings: &Settings, mut pending: Pending) -> Ask {
    let mut query = Serializer::new(String::new());
    query.append_pair("roomId", settings.room.as_str());
    if let Some(shown) = &pending.asked {
        query.append_pair("token", &shown.token);
    }
    if settings.key.is_some()
        && let Some(ip) = &pending.ip
    {
        query.append_pair("ip", ip);
        query.append_pair("agent", cut_agent(&pending.agent));
    }
    let mut query = query.finish();
    let page = pending.page.as_deref().filter(|_| !pending.omit_url);
    if let Some(page) = page {
        let used = query.len() + "/api/v1/check?&url=&targeting=1".len();
        let fit = Fit::into(page, TARGET_BYTES_MAX.saturating_sub(used));
        // The answer to a cut address lists the rules: one of them may be about the query.
        pending.was_cut = matches!(fit, Fit::WithoutQuery(_));
        if let Some(text) = fit.text() {
            query = Serializer::new(query).append_pair("url", text).finish();
        }
        if pending.was_cut {
            query.push_str("&targeting=1");
        }
    }
    let mut headers = headers(settings);
    if let Some(key) = &pending.door_key {
        headers.push(("x-qm-session", key.clone()));
    }
    let url = format!("{}/api/v1/check?{query}", settings.server);
    Ask { query: Query { url, headers }, pending }
}

/// The room's rules.
pub(super) fn rules(settings: &Settings, etag: Option<&str>) -> Query {
    let mut headers = headers(settings);
    if let Some(etag) = etag {
        headers.push(("if-none-match", etag.to_string()));
    }
    Query { url: format!("{}/api/v1/targeting?roomId={}", settings.server, settings.room), headers }
}

/// Whether the installation is right.
pub(super) fn verify(
    settings: &Settings,
    origin: Option<&str>,
    connector: &str,
    version: &str,
) -> Query {
    let mut query = Serializer::new(String::new());
    query.append_pair("roomId", settings.room.as_str());
    query.append_pair("connector", connector).append_pair("version", version);
    if let Some(origin) = origin {
        query.append_pair("origin", origin);
    }
    let url = format!("{}/api/v1/verify?{}", settings.server, query.finish());
    Query { url, headers: headers(settings) }
}

/// One line for each failed point of a verification's answer; `None` when it is no such answer.
#[must_use]
pub fn failed_checks(body: &str) -> Option<Vec<String>> {
    let answer: Value = serde_json::from_str(body).ok()?;
    let text = |check: &Value, name: &str| {
        check.get(name).and_then(Value::as_str).unwrap_or_default().to_string()
    };
    let failed = answer.get("checks")?.as_array()?.iter();
    let failed = failed.filter(|check| text(check, "status") == "fail");
    Some(
        failed
            .map(|check| {
                let (id, title, fix) =
                    (text(check, "id"), text(check, "title"), text(check, "fix"));
                let fix = if fix.is_empty() { fix } else { format!(" ({fix})") };
                format!("{id}: {title}{fix}")
            })
            .collect(),
    )
}

fn headers(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut headers = vec![("accept", "application/json".to_string())];
    if let Some(key) = &settings.key {
        headers.push(("authorization", format!("Bearer {key}")));
    }
    headers
}

/// The agent as the server counts it: blanks trimmed, cut to its length.
fn cut_agent(agent: &str) -> &str {
    let agent = agent.trim_ascii();
    let end = (0..=AGENT_BYTES_MAX.min(agent.len())).rev().find(|at| agent.is_char_boundary(*at));
    agent.get(..end.unwrap_or(0)).unwrap_or_default().trim_ascii_end()
}
