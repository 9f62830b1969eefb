//! The forms of a page's path and query that rules are compared with, and the same normalisation
//! for what a person types in a rule. All of it is ASCII afterwards, lower-cased within ASCII, so
//! no letter of another script ever folds onto one of a rule.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;

use crate::url::PageUrl;

/// One form of a page's path and query.
pub(super) struct Form {
    text: String,
    path_bytes: usize,
}

impl Form {
    fn new(path: &str, query: Option<&str>) -> Self {
        let query_bytes = query.map_or(0, |query| query.len() + 1);
        let mut text = String::with_capacity(path.len() + query_bytes);
        text.push_str(path);
        if let Some(query) = query {
            text.push('?');
            text.push_str(query);
        }
        text.make_ascii_lowercase();
        Self { text, path_bytes: path.len() }
    }

    /// What a rule is compared with: the path, and the query if the rule has one.
    pub(super) fn text(&self, with_query: bool) -> &[u8] {
        let text = self.text.as_bytes();
        if with_query { text } else { text.get(..self.path_bytes).unwrap_or(text) }
    }
}

/// The forms of one page. A form that would equal another is not made.
pub(super) struct Forms {
    as_parsed: Form,
    /// Encoded unreserved characters decoded, repeated slashes merged.
    decoded: Option<Form>,
    /// Path parameters (`;…`) cut from each segment as well.
    without_parameters: Option<Form>,
    /// What a server makes of dot segments that a browser cannot see, such as `/a/..;/checkout` or
    /// `/a/..%2Fcheckout`. Made only when there are any: such a URL asks for being misread.
    climbing: Option<Form>,
}

impl Forms {
    pub(super) fn of(page: &PageUrl) -> Self {
        let (path, query) = (page.path(), page.query());
        let plain_path = merge_slashes(decode_unreserved(path));
        let plain_query = query.map(decode_unreserved);
        let differs = plain_path != path || plain_query.as_deref() != query;
        let form = |path: &str| Form::new(path, plain_query.as_deref());
        let has_parameters = plain_path.contains(';');
        let may_climb = has_parameters || plain_path.contains('%');
        let (climbed, climbs) =
            if may_climb { as_server(&decode_separators(&plain_path)) } else { Default::default() };
        Self {
            as_parsed: Form::new(path, query),
            decoded: differs.then(|| form(&plain_path)),
            without_parameters: has_parameters.then(|| form(&as_server(&plain_path).0)),
            climbing: climbs.then(|| form(&climbed)),
        }
    }

    pub(super) fn for_inclusions(&self) -> impl Iterator<Item = &Form> {
        self.for_exceptions().chain(&self.without_parameters)
    }

    pub(super) fn for_exceptions(&self) -> impl Iterator<Item = &Form> {
        core::iter::once(&self.as_parsed).chain(&self.decoded).chain(&self.climbing)
    }
}

/// Decodes the encoded characters that mean the same either way (RFC 3986 § 2.3), once.
pub(super) fn decode_unreserved(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let decoded = after
            .get(..2)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .map(char::from)
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~'));
        match decoded {
            Some(c) => {
                out.push(c);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn merge_slashes(path: Cow<'_, str>) -> Cow<'_, str> {
    if !path.contains("//") {
        return path;
    }
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if !(c == '/' && out.ends_with('/')) {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Decodes encoded slashes and backslashes, as some servers do before they look at the path.
fn decode_separators(path: &str) -> String {
    ["%2f", "%2F", "%5c", "%5C"].iter().fold(path.to_owned(), |path, code| path.replace(code, "/"))
}

/// The path as a server that drops path parameters reads it: `;…` cut from each segment, then dot
/// segments resolved and slashes merged. Tells whether there were dot segments.
fn as_server(path: &str) -> (String, bool) {
    let mut kept: Vec<&str> = Vec::new();
    let mut climbs = false;
    let mut ends_in_slash = false;
    for segment in path.split('/') {
        let segment = segment.split(';').next().unwrap_or_default();
        ends_in_slash = matches!(segment, "" | "." | "..");
        climbs |= matches!(segment, "." | "..");
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut out = String::with_capacity(path.len());
    for segment in &kept {
        out.push('/');
        out.push_str(segment);
    }
    if ends_in_slash || kept.is_empty() {
        out.push('/');
    }
    (out, climbs)
}

/// Encodes a rule's path and query as a browser encodes what is typed into its address bar.
pub(super) fn encode_as_browser(path_and_query: &str) -> String {
    const HEX: &[char; 16] =
        &['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let mut out = String::with_capacity(path_and_query.len());
    let mut in_query = false;
    for byte in path_and_query.bytes() {
        let is_plain = match byte {
            b'"' | b'<' | b'>' => false,
            b'`' | b'{' | b'}' => in_query,
            b'\'' => !in_query,
            _ => byte.is_ascii_graphic(),
        };
        in_query |= byte == b'?';
        match (is_plain, byte) {
            (true, b'\\') if !in_query => out.push('/'),
            (true, _) => out.push(char::from(byte)),
            (false, _) => {
                out.push('%');
                out.extend([byte >> 4, byte & 15].iter().filter_map(|n| HEX.get(usize::from(*n))));
            }
        }
    }
    out
}
