//! Reading one setting: text to a typed value, or one line that says what is wrong with it. The
//! values of secrets never reach such a line.

use std::collections::BTreeMap;
use std::fmt;

/// Where settings come from: the process environment in production, a map in tests.
pub trait Strings {
    /// The text of a variable, if it is set.
    fn text(&self, name: &str) -> Option<String>;

    /// The names of all variables that are set.
    fn names(&self) -> Vec<String>;
}

impl Strings for BTreeMap<String, String> {
    fn text(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// The environment of this process. Octets that are no UTF-8 become U+FFFD, which keys refuse.
#[derive(Clone, Copy, Debug)]
pub struct ProcessEnv;

impl Strings for ProcessEnv {
    fn text(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
    }

    fn names(&self) -> Vec<String> {
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }
}

/// A secret text. It is never printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; handle with care.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// One wrong setting: a single line that names variable, value (unless secret) and bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything wrong with the settings, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Reads settings and collects what is wrong with them, so that one start reports all of it.
pub(super) struct Reader<'a> {
    strings: &'a dyn Strings,
    pub(super) errors: Vec<ConfigError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(strings: &'a dyn Strings) -> Self {
        Self { strings, errors: Vec::new() }
    }

    /// The trimmed text of a variable. Compose files set unused variables to nothing, so an empty
    /// text counts as unset.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text = self.strings.text(name)?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A value read by `parse`; `bound` says in words what is accepted.
    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        default: T,
        bound: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let Some(text) = self.text(name) else { return default };
        parse(&text).unwrap_or_else(|| {
            self.refuse_value(name, &text, bound);
            default
        })
    }

    /// Like [`Self::parsed`] for texts that may hold a credential: the line omits the value.
    pub(super) fn secret<T>(
        &mut self,
        name: &'static str,
        bound: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(&text);
        if value.is_none() {
            self.refuse(name, bound);
        }
        value
    }

    pub(super) fn key(&mut self, name: &'static str) -> Option<Secret> {
        self.secret(name, "must be printable text without control characters", clean_secret)
    }

    pub(super) fn whole(&mut self, name: &'static str, default: u64, min: u64, max: u64) -> u64 {
        let bound = format!("must be a whole number from {min} to {max}");
        self.parsed(name, default, &bound, |text| whole_within(text, min, max))
    }

    pub(super) fn whole_u32(
        &mut self,
        name: &'static str,
        default: u32,
        min: u32,
        max: u32,
    ) -> u32 {
        let value = self.whole(name, default.into(), min.into(), max.into());
        u32::try_from(value).unwrap_or(max)
    }

    /// `1` or `0`.
    pub(super) fn switch(&mut self, name: &'static str) -> bool {
        self.parsed(name, false, "must be 0 or 1", |text| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })
    }

    pub(super) fn refuse(&mut self, name: &str, bound: &str) {
        self.errors.push(ConfigError(format!("{name}: {bound}")));
    }

    pub(super) fn refuse_value(&mut self, name: &str, value: &str, bound: &str) {
        // One line whatever the value holds, and not an endless one.
        let shown: String = value.chars().take(120).flat_map(char::escape_debug).collect();
        self.errors.push(ConfigError(format!("{name}={shown}: {bound}")));
    }

    /// A misspelled setting of ours must not be ignored silently (HOL-28).
    pub(super) fn refuse_unknown(&mut self, prefix: &str, known: &[&str]) {
        let mut unknown: Vec<String> = self.strings.names();
        unknown.retain(|name| name.starts_with(prefix) && !known.contains(&name.as_str()));
        unknown.sort();
        for name in unknown {
            let shown: String = name.chars().take(120).flat_map(char::escape_debug).collect();
            let known = known.join(", ");
            self.errors.push(ConfigError(format!(
                "{shown}: unknown variable, the {prefix} variables are {known}"
            )));
        }
    }
}

/// Digits only: no sign, no fraction, no exponent.
pub(super) fn whole_within(text: &str, min: u64, max: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = text.parse().ok().filter(|_| digits)?;
    (min..=max).contains(&value).then_some(value)
}

pub(super) fn clean_secret(text: &str) -> Option<Secret> {
    let clean = !text.is_empty() && !text.chars().any(|c| c.is_control() || c == '\u{fffd}');
    clean.then(|| Secret::new(text))
}
