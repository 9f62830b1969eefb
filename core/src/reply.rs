//! An HTTP answer as data. Both hosts convert it to their own types and add nothing, so that edge
//! and server answer alike.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Status, headers and body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Header names in lower case with their values, in order. Most values are fixed texts.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The body, UTF-8.
    pub body: String,
}

impl Reply {
    /// A JSON answer that no cache keeps.
    #[must_use]
    pub fn json(status: u16, body: String) -> Self {
        Self {
            status,
            headers: vec![
                ("content-type", "application/json; charset=utf-8".into()),
                ("cache-control", "no-store".into()),
                ("x-content-type-options", "nosniff".into()),
            ],
            body,
        }
    }

    /// An answer without a body that no cache keeps.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            headers: vec![
                ("cache-control", "no-store".into()),
                ("x-content-type-options", "nosniff".into()),
            ],
            body: String::new(),
        }
    }

    /// Adds a header.
    pub fn header(&mut self, name: &'static str, value: impl Into<Cow<'static, str>>) {
        self.headers.push((name, value.into()));
    }
}
