//! URL targeting: which pages of a site a room's rules cover (TGT-*). Rules are compiled when they
//! are saved or loaded, because every check asks [`RuleSet::scope`]. A page whose URL is unclear is
//! never out of scope. Nothing here counts or remembers.

mod form;
mod glob;
mod rule;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::url::PageUrl;
use form::Forms;

pub use rule::{InvalidRules, PATTERN_CHARS_MAX, RULES_MAX, Rule, RuleProblem, WILDCARDS_MAX};

/// What a rule does with a page it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Visitors queue for it.
    Queue,
    /// It is an exception: visitors do not queue for it.
    Ignore,
}

impl Action {
    /// The action's name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Ignore => "ignore",
        }
    }
}

/// Whether a page is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Visitors queue for the page.
    In,
    /// They do not.
    Out,
    /// There is no page URL to tell by, so they queue.
    Unknown,
}

impl Scope {
    /// The scope's name in answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A scope and the index of the rule that decided it, if one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeDecision {
    /// The scope.
    pub scope: Scope,
    /// The index into [`RuleSet::iter`].
    pub rule: Option<usize>,
}

/// The rules of one room.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

impl RuleSet {
    /// Reads rules as written; a repeated one is kept once.
    ///
    /// # Errors
    /// [`InvalidRules`] with the first rule that is out of bounds.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidRules> {
        let mut kept: Vec<Rule> = Vec::new();
        for (index, text) in rules.into_iter().enumerate() {
            let invalid = |problem| InvalidRules { rule: Some(index), problem };
            let rule = Rule::parse(text).map_err(invalid)?;
            if kept.iter().any(|known| known.is_same_text(&rule)) {
                continue;
            }
            if kept.len() == RULES_MAX {
                return Err(InvalidRules { rule: None, problem: RuleProblem::TooMany });
            }
            kept.push(rule);
        }
        Ok(Self { rules: kept })
    }

    /// Whether there are no rules, which covers every page (TGT-14).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// The rules as answers list them: without `!`, with the action.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, Action)> {
        self.rules.iter().map(|rule| (rule.pattern(), rule.action()))
    }

    /// The rules as a person writes them.
    pub fn as_written(&self) -> impl ExactSizeIterator<Item = String> {
        self.rules.iter().map(Rule::as_written)
    }

    /// Whether the page at `url` is covered. An exception wins in whatever order they stand; with
    /// exceptions only, everything else is covered.
    #[must_use]
    pub fn scope(&self, url: Option<&str>) -> ScopeDecision {
        if self.is_empty() {
            return ScopeDecision { scope: Scope::In, rule: None };
        }
        url.and_then(PageUrl::parse)
            .map_or(ScopeDecision { scope: Scope::Unknown, rule: None }, |page| {
                self.scope_of(&page)
            })
    }

    /// Whether a connector may leave the check of this page out. A rule that pins an origin says
    /// nothing about other spellings of it, and the server knows the room's sites: then it decides.
    #[must_use]
    pub fn surely_excludes(&self, page: &PageUrl) -> bool {
        let mut pinned = self.rules.iter().filter(|rule| rule.action() == Action::Queue);
        let pinned_elsewhere = pinned.clone().any(Rule::is_pinned)
            && !pinned.any(|rule| rule.is_pinned() && rule.is_for_origin(page));
        !self.is_empty() && !pinned_elsewhere && self.scope_of(page).scope == Scope::Out
    }

    fn scope_of(&self, page: &PageUrl) -> ScopeDecision {
        let forms = Forms::of(page);
        let first = |action: Action| {
            self.rules.iter().position(|rule| rule.action() == action && rule.covers(page, &forms))
        };
        let rule = first(Action::Ignore);
        if rule.is_some() {
            return ScopeDecision { scope: Scope::Out, rule };
        }
        let rule = first(Action::Queue);
        let has_inclusions = self.rules.iter().any(|rule| rule.action() == Action::Queue);
        let scope = if rule.is_some() || !has_inclusions { Scope::In } else { Scope::Out };
        ScopeDecision { scope, rule }
    }
}

impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for RuleSet {}

#[cfg(test)]
mod tests;
