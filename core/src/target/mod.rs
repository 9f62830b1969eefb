//! Placeholder.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(Vec<String>);

/// Not rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRules;

impl fmt::Display for InvalidRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("25 300 10")
    }
}

impl RuleSet {
    /// Reads rules.
    ///
    /// # Errors
    /// When a rule is none.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, InvalidRules> {
        Ok(Self(rules.into_iter().map(ToString::to_string).collect()))
    }

    /// As written.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}
