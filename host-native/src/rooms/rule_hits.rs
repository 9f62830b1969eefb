//! How often each URL rule of a room decided (TGT-16). Counted beside the log: a lost count is no
//! unfairness.

use std::collections::HashMap;

use parking_lot::Mutex;
use qm_core::time::TimeMs;

/// Rules remembered, so that editing them for ever costs no memory.
const RULES_MAX: usize = 200;

/// Senders of checks without a URL remembered (TGT-15).
const SENDERS_MAX: usize = 20;

/// Characters kept of a sender.
const SENDER_CHARS_MAX: usize = 200;

/// The counts of one room.
#[derive(Debug, Default)]
pub struct RuleHits(Mutex<Counts>);

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// By rule as written: how often, and when last.
    pub rules: HashMap<String, (u64, TimeMs)>,
    /// Checks of pages that no rule decided.
    pub no_rule: u64,
    /// Checks that named no page.
    pub no_url: u64,
    /// Who sent those, and how often.
    pub no_url_senders: HashMap<String, u64>,
}

impl RuleHits {
    /// Counts a check that `rule` decided, or none.
    pub fn count(&self, rule: Option<&str>, now: TimeMs) {
        let mut counts = self.0.lock();
        let Some(rule) = rule else {
            counts.no_rule += 1;
            return;
        };
        if let Some((count, last)) = counts.rules.get_mut(rule) {
            *count += 1;
            *last = now;
        } else if counts.rules.len() < RULES_MAX {
            counts.rules.insert(rule.to_owned(), (1, now));
        }
    }

    /// Counts a check that named no page.
    pub fn count_without_url(&self, sender: &str) {
        let mut counts = self.0.lock();
        counts.no_url += 1;
        let sender: String = sender.chars().take(SENDER_CHARS_MAX).collect();
        if let Some(count) = counts.no_url_senders.get_mut(&sender) {
            *count += 1;
        } else if counts.no_url_senders.len() < SENDERS_MAX {
            counts.no_url_senders.insert(sender, 1);
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn snapshot(&self) -> Counts {
        self.0.lock().clone()
    }
}
