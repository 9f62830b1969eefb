//! The room's rules as last learned. They are used to leave a check out where they exclude the page
//! for certain, and never to let anybody pass who was to be checked: old ones count for nothing.

use alloc::string::{String, ToString};

use serde_json::Value;

use super::page::Page;
use crate::target::RuleSet;
use crate::time::TimeMs;
use crate::url::PageUrl;

/// Rules this old are asked for again, in the background.
const REFRESH_AFTER_MS: u64 = 5_000;

/// Rules this old are not used.
const STALE_AFTER_MS: u64 = 30_000;

/// What is known of the rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    rules: Option<RuleSet>,
    etag: Option<String>,
    learned_at: TimeMs,
    asked_at: Option<TimeMs>,
}

impl Known {
    /// Whether a check of the page may be left out.
    pub(super) fn skips(&self, page: &Page, now: TimeMs) -> bool {
        self.fresh(now).is_some_and(|rules| {
            PageUrl::parse(page.as_str()).is_some_and(|page| rules.surely_excludes(&page))
        })
    }

    /// Whether the page is known to be queued for.
    pub(super) fn surely_includes(&self, page: Option<&Page>, now: TimeMs) -> bool {
        use crate::target::Scope;
        self.fresh(now).is_some_and(|rules| rules.scope(page.map(Page::as_str)).scope == Scope::In)
    }

    fn fresh(&self, now: TimeMs) -> Option<&RuleSet> {
        self.rules.as_ref().filter(|_| now.ms_since(self.learned_at) <= STALE_AFTER_MS)
    }

    /// The entity tag to ask with, when it is time to ask.
    pub(super) fn ask_when_due(&mut self, now: TimeMs) -> Option<Option<String>> {
        if self.asked_at.is_some_and(|asked| now.ms_since(asked) < REFRESH_AFTER_MS) {
            return None;
        }
        self.asked_at = Some(now);
        Some(self.rules.as_ref().and(self.etag.clone()))
    }

    pub(super) fn learn(&mut self, status: u16, etag: Option<&str>, body: &str, now: TimeMs) {
        match status {
            304 if self.rules.is_some() => self.learned_at = now,
            200 => {
                self.rules = rules_of(body);
                self.etag = etag.map(ToString::to_string);
                self.learned_at = now;
            }
            404 => self.rules = None,
            // An outage: what is known grows stale by itself.
            _ => {}
        }
    }
}

/// The rules of an answer, `None` unless every one of them is understood.
fn rules_of(body: &str) -> Option<RuleSet> {
    let answer: Value = serde_json::from_str(body).ok()?;
    parse_patterns(answer.get("patterns")?)
}

/// Reads `[{pattern, action}]`.
pub(super) fn parse_patterns(patterns: &Value) -> Option<RuleSet> {
    let written = |entry: &Value| {
        let pattern = entry.get("pattern")?.as_str()?;
        match entry.get("action")?.as_str()? {
            "queue" => Some(pattern.to_string()),
            "ignore" => Some(alloc::format!("!{pattern}")),
            _ => None,
        }
    };
    let rules: alloc::vec::Vec<String> =
        patterns.as_array()?.iter().map(written).collect::<Option<_>>()?;
    RuleSet::parse(rules.iter().map(String::as_str)).ok()
}
