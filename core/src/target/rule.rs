//! One rule: what may be written (TGT-05, TGT-06), what it compiles to, and whether it covers a
//! page.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;

use super::Action;
use super::form::{Forms, decode_unreserved, encode_as_browser};
use super::glob::Glob;
use crate::url::{Origin, PageUrl};

/// At most this many rules a room.
pub const RULES_MAX: usize = 25;

/// At most this many characters a rule, a leading `!` included.
pub const PATTERN_CHARS_MAX: usize = 300;

/// At most this many `*` a rule.
pub const WILDCARDS_MAX: usize = 10;

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pattern: String,
    action: Action,
    /// The origin a full `https://` rule pins.
    origin: Option<Origin>,
    /// Whether the query takes part in the comparison (TGT-10).
    with_query: bool,
    typed: Glob,
    /// The same with encoded unreserved characters decoded, where that differs: `/%63art` is what
    /// somebody copied from an address bar, and means `/cart`.
    decoded: Option<Glob>,
}

/// Which rule cannot be saved, and why. Rules are counted from 1 in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRules {
    /// The index of the rule; none when the list as a whole is at fault.
    pub rule: Option<usize>,
    /// What is wrong.
    pub problem: RuleProblem,
}

/// What is wrong with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleProblem {
    /// More rules than [`RULES_MAX`].
    TooMany,
    /// More characters than [`PATTERN_CHARS_MAX`].
    TooLong,
    /// More `*` than [`WILDCARDS_MAX`].
    TooManyWildcards,
    /// It starts with neither `/`, `*` nor `https://`.
    Start,
    /// It contains `#`: fragments are not compared, so it could never match.
    Fragment,
    /// It contains a control character, which no URL does.
    ControlCharacter,
    /// A full rule for http; a path rule covers such pages.
    PlainHttp,
    /// The host of a full rule is none, or has a wildcard, a user name or a query in it.
    Host,
    /// A full rule without a path.
    NoPath,
}

impl fmt::Display for InvalidRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.rule {
            write!(f, "rule {}: ", index.saturating_add(1))?;
        }
        match self.problem {
            RuleProblem::TooMany => write!(f, "at most {RULES_MAX} rules"),
            RuleProblem::TooLong => write!(f, "at most {PATTERN_CHARS_MAX} characters"),
            RuleProblem::TooManyWildcards => write!(f, "at most {WILDCARDS_MAX} *"),
            RuleProblem::Start => f.write_str("must start with /, * or https:// (after !)"),
            RuleProblem::Fragment => f.write_str("must not contain #, which is never compared"),
            RuleProblem::ControlCharacter => f.write_str("must not contain control characters"),
            RuleProblem::PlainHttp => f.write_str("must be https://, or start with / or *"),
            RuleProblem::Host => f.write_str("must name one host after https://"),
            RuleProblem::NoPath => f.write_str("must have a path after the host, such as /*"),
        }
    }
}

impl core::error::Error for InvalidRules {}

impl Rule {
    /// Reads a rule as written.
    ///
    /// # Errors
    /// [`RuleProblem`] when it is out of bounds.
    pub fn parse(text: &str) -> Result<Self, RuleProblem> {
        // Four bytes a character at most: counted only when the answer is not clear already.
        if text.len() > PATTERN_CHARS_MAX && text.chars().count() > PATTERN_CHARS_MAX {
            return Err(RuleProblem::TooLong);
        }
        let (action, pattern) = match text.strip_prefix('!') {
            Some(rest) => (Action::Ignore, rest),
            None => (Action::Queue, text),
        };
        if pattern.matches('*').count() > WILDCARDS_MAX {
            return Err(RuleProblem::TooManyWildcards);
        }
        if pattern.contains(char::is_control) {
            return Err(RuleProblem::ControlCharacter);
        }
        let (origin, path) = split_origin(pattern)?;
        if pattern.contains('#') {
            return Err(RuleProblem::Fragment);
        }
        let typed = encode_as_browser(path);
        let decoded = decode_unreserved(&typed);
        Ok(Self {
            pattern: pattern.to_owned(),
            action,
            origin,
            with_query: path.contains('?'),
            decoded: (decoded != typed).then(|| Glob::compile(&decoded)),
            typed: Glob::compile(&typed),
        })
    }

    /// The rule without its `!`.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// What it does.
    #[must_use]
    pub const fn action(&self) -> Action {
        self.action
    }

    /// The rule as a person writes it.
    #[must_use]
    pub fn as_written(&self) -> String {
        match self.action {
            Action::Queue => self.pattern.clone(),
            Action::Ignore => format!("!{}", self.pattern),
        }
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.origin.is_some()
    }

    pub(super) fn is_for_origin(&self, page: &PageUrl) -> bool {
        self.origin.as_ref().is_none_or(|origin| page.is_at(origin))
    }

    pub(super) fn is_same_text(&self, other: &Self) -> bool {
        self.action == other.action && self.pattern == other.pattern
    }

    /// Whether the rule matches the page. Readers of a URL disagree about encodings, slashes and
    /// `;…`: an inclusion needs one form to match, an exception needs every one.
    pub(super) fn covers(&self, page: &PageUrl, forms: &Forms) -> bool {
        if !self.is_for_origin(page) {
            return false;
        }
        match self.action {
            Action::Queue => {
                forms.for_inclusions().any(|form| self.matches(form.text(self.with_query)))
            }
            Action::Ignore => {
                forms.for_exceptions().all(|form| self.matches(form.text(self.with_query)))
            }
        }
    }

    fn matches(&self, text: &[u8]) -> bool {
        self.matches_counted(text, &mut 0)
    }

    pub(super) fn matches_counted(&self, text: &[u8], steps: &mut usize) -> bool {
        self.typed.matches(text, steps)
            || self.decoded.as_ref().is_some_and(|glob| glob.matches(text, steps))
    }
}

/// The origin a full rule pins, and the path that follows.
fn split_origin(pattern: &str) -> Result<(Option<Origin>, &str), RuleProblem> {
    if pattern.starts_with(['/', '*']) {
        return Ok((None, pattern));
    }
    let (scheme, rest) = pattern.split_once("://").ok_or(RuleProblem::Start)?;
    if scheme.eq_ignore_ascii_case("http") {
        return Err(RuleProblem::PlainHttp);
    }
    if !scheme.eq_ignore_ascii_case("https") {
        return Err(RuleProblem::Start);
    }
    let host_end = rest.find('/').ok_or(RuleProblem::NoPath)?;
    let (host, path) = rest.split_at_checked(host_end).ok_or(RuleProblem::NoPath)?;
    let origin = Origin::parse(&format!("https://{host}")).ok_or(RuleProblem::Host)?;
    Ok((Some(origin), path))
}
