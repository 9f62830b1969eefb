//! Reading single values of a request body, for every part of the settings, and writing objects.
//! Every refusal is `invalid_<field>` with a text that names the field and its bound.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display};
use core::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::rate::{Rate, whole};
use crate::id::INTEGER_MAX;
use crate::time::TimeMs;
use crate::url::{Origin, PageUrl};

/// The longest address, in bytes (HOL-19).
const URL_BYTES_MAX: usize = 2048;
/// The most origins in one list (HOL-19).
const ORIGINS_MAX: usize = 50;

/// Why a body is refused: all are answered 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// The stable code of the answer.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for PatchError {}

/// A field of a body, or a member of one, with the code of its refusals.
#[derive(Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    code: &'static str,
}

impl Field {
    pub(super) const fn new(name: &'static str, code: &'static str) -> Self {
        Self { name, code }
    }

    /// The refusal of a value that is not what the field must be.
    pub(super) fn refuse(self, must_be: impl Display) -> PatchError {
        let message = alloc::format!("{} must be {must_be}", self.name);
        PatchError { code: self.code, message }
    }

    /// A number without a fraction.
    pub(super) fn whole(self, value: &Value, range: Range) -> Result<u32, PatchError> {
        range.read(value).ok_or_else(|| self.refuse(range))
    }

    /// A number without a fraction, or null.
    pub(super) fn whole_or_null(
        self,
        value: &Value,
        range: Range,
    ) -> Result<Option<u32>, PatchError> {
        if value.is_null() {
            return Ok(None);
        }
        range.read(value).map(Some).ok_or_else(|| self.refuse(format_args!("{range}, or null")))
    }

    /// A number of visitors a minute.
    pub(super) fn rate(self, value: &Value) -> Result<Rate, PatchError> {
        let refusal = || self.refuse(format_args!("a number from 0 to {}", Rate::MAX));
        value.as_f64().and_then(Rate::new).ok_or_else(refusal)
    }

    /// Text of a bounded number of characters, without control characters.
    pub(super) fn line(self, value: &Value, length: Range) -> Result<String, PatchError> {
        let text = value.as_str().filter(|text| !text.chars().any(char::is_control));
        text.filter(|text| length.holds(text.chars().count())).map(ToString::to_string).ok_or_else(
            || {
                let (least, most) = (length.0.start(), length.0.end());
                self.refuse(format_args!(
                    "text of {least} to {most} characters without control characters"
                ))
            },
        )
    }

    /// Text of at most this many characters, line ends and all.
    pub(super) fn message(self, value: &Value, length_max: usize) -> Result<String, PatchError> {
        let text = value.as_str().filter(|text| text.chars().count() <= length_max);
        text.map(ToString::to_string)
            .ok_or_else(|| self.refuse(format_args!("text of at most {length_max} characters")))
    }

    /// One of a few words.
    pub(super) fn word<T>(
        self,
        value: &Value,
        parse: impl Fn(&str) -> Option<T>,
        words: &[&str],
    ) -> Result<T, PatchError> {
        let refusal = || self.refuse(format_args!("one of {}", words.join(", ")));
        value.as_str().and_then(parse).ok_or_else(refusal)
    }

    /// An address of the web, kept as written.
    pub(super) fn web_url(self, value: &Value) -> Result<String, PatchError> {
        let text = value.as_str().filter(|text| parse_web_url(text).is_some());
        text.map(ToString::to_string).ok_or_else(|| {
            self.refuse(format_args!(
                "an http or https address of at most {URL_BYTES_MAX} bytes, without spaces, \
                 user name or password"
            ))
        })
    }

    /// The scheme, host and port of a site, and nothing else.
    pub(super) fn web_origin(self, value: &Value) -> Result<String, PatchError> {
        let bare = |text: &&str| !text.contains(['?', '#']);
        let url = value.as_str().filter(bare).and_then(parse_web_url);
        url.filter(|url| url.path() == "/").map(|url| url.origin().to_string()).ok_or_else(|| {
            self.refuse(format_args!(
                "an http or https origin (scheme, host and port) of at most {URL_BYTES_MAX} \
                 bytes, without path, user name or password"
            ))
        })
    }

    /// A list of sites; one that is repeated counts once.
    pub(super) fn origins(self, value: &Value) -> Result<Vec<Origin>, PatchError> {
        let refusal = || {
            self.refuse(format_args!(
                "a list of at most {ORIGINS_MAX} origins like https://shop.example.com"
            ))
        };
        let list = value.as_array().filter(|list| list.len() <= ORIGINS_MAX).ok_or_else(refusal)?;
        let mut origins = Vec::with_capacity(list.len());
        for value in list {
            let origin = value.as_str().and_then(Origin::parse).ok_or_else(refusal)?;
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        Ok(origins)
    }

    /// A point in time: epoch milliseconds or RFC 3339.
    pub(super) fn time(self, value: &Value) -> Result<TimeMs, PatchError> {
        let time = match value {
            Value::String(text) => TimeMs::parse_rfc3339(text),
            _ => integer(value).map(TimeMs),
        };
        time.ok_or_else(|| {
            self.refuse(format_args!(
                "a time: epoch milliseconds from 0 to {INTEGER_MAX}, RFC 3339 text, or null"
            ))
        })
    }

    /// An object with no other members than these.
    pub(super) fn object<'a>(
        self,
        value: &'a Value,
        members: &[&str],
    ) -> Result<&'a Map<String, Value>, PatchError> {
        let known = |map: &&Map<String, Value>| map.keys().all(|name| members.contains(&&**name));
        value.as_object().filter(known).ok_or_else(|| {
            self.refuse(format_args!("an object with no other members than {}", members.join(", ")))
        })
    }
}

/// The bounds of a whole number, both inside.
#[derive(Clone)]
pub(super) struct Range(pub(super) RangeInclusive<u32>);

impl Range {
    fn read(&self, value: &Value) -> Option<u32> {
        let number = u32::try_from(integer(value)?).ok()?;
        self.0.contains(&number).then_some(number)
    }

    fn holds(&self, count: usize) -> bool {
        u32::try_from(count).is_ok_and(|count| self.0.contains(&count))
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.0.start(), self.0.end())
    }
}

/// A JSON number without a fraction, from 0 to what JavaScript reads exactly.
pub(super) fn integer(value: &Value) -> Option<u64> {
    match value.as_u64() {
        Some(number) => (number <= INTEGER_MAX).then_some(number),
        None => value.as_f64().and_then(whole),
    }
}

/// Reads an address strictly: the parser alone forgives what a `Location` header or a person
/// reading it would not (line ends, spaces, backslashes, a missing `//`).
fn parse_web_url(text: &str) -> Option<PageUrl> {
    let (scheme, rest) = text.split_once("://")?;
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let authority = rest.split(['/', '?', '#']).next()?;
    let strange = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    let fits = web
        && !authority.is_empty()
        && !authority.contains('@')
        && text.len() <= URL_BYTES_MAX
        && !text.contains(strange);
    if fits { PageUrl::parse(text) } else { None }
}

/// A JSON object of these members.
pub(super) fn object(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// Declares an enum that is one of a few words in JSON.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The words, in the order an error text lists them.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Reads one of the words.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

pub(super) use words;
