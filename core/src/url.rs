//! Addresses of pages and sites, read as a browser reads them (WHATWG): origins that settings and
//! `Origin` headers name, page URLs for targeting, the check of `qm_return` and the place of the
//! pass in the address a visitor is sent to.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use ::url::{Url, form_urlencoded};

/// The longest address looked at, in bytes.
pub const URL_BYTES_MAX: usize = 4096;

/// The origin of a site: canonical ASCII text such as `https://shop.example.com:8443`, without a
/// default port, http or https only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(String);

impl Origin {
    /// Reads what an operator writes: scheme and host, a port if need be, at most one `/` behind.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
        let is_bare = !authority.contains(|c: char| c.is_ascii_control() || " /\\?#@*".contains(c));
        if !is_web || !is_bare {
            return None;
        }
        PageUrl::parse(text).map(|url| url.origin())
    }

    /// Reads a browser's `Origin` header, which is canonical or not a browser's.
    #[must_use]
    pub fn from_header(text: &str) -> Option<Self> {
        Self::parse(text).filter(|origin| origin.0 == text)
    }

    /// The origin as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An absolute http(s) address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageUrl(Url);

impl PageUrl {
    /// Reads an address as a browser would; `None` when it is no page's, or is over-long.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > URL_BYTES_MAX {
            return None;
        }
        let url = Url::parse(text).ok()?;
        (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(Self(url))
    }

    /// The origin.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin(self.0.origin().ascii_serialization())
    }

    /// Whether the origin is this one, without building its text.
    #[must_use]
    pub fn is_at(&self, origin: &Origin) -> bool {
        let Some((scheme, authority)) = origin.0.split_once("://") else { return false };
        let Some(rest) = authority.strip_prefix(self.0.host_str().unwrap_or_default()) else {
            return false;
        };
        // `port` is `None` for the default port, as in the canonical text.
        let same_port = match self.0.port() {
            None => rest.is_empty(),
            Some(port) => rest.strip_prefix(':').and_then(|text| text.parse().ok()) == Some(port),
        };
        scheme == self.0.scheme() && same_port
    }

    /// The path, percent-encoded, starting with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query without its `?`; empty for a bare `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// The whole address in canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether the address carries a user name or a password.
    #[must_use]
    pub fn has_userinfo(&self) -> bool {
        !self.0.username().is_empty() || self.0.password().is_some()
    }
}

/// The address a `qm_return` sends the visitor to, in canonical text, or `None` when it is dropped
/// (WAI-02): its origin must be an allowed one. Forms that make readers disagree about the host
/// (control characters, blanks around, backslashes, user names, a missing `//`) are dropped too.
/// The caller keeps the queue's own paths out.
#[must_use]
pub fn return_destination(text: &str, allowed: &[Origin]) -> Option<String> {
    let (scheme, _) = text.split_once("://")?;
    let is_plain = scheme.bytes().all(|b| b.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && !text.contains(|c: char| c.is_ascii_control() || c == '\\');
    let url = PageUrl::parse(text).filter(|url| is_plain && !url.has_userinfo())?;
    allowed.iter().any(|origin| url.is_at(origin)).then(|| url.as_str().to_owned())
}

/// The address with a query parameter set, before the fragment and in place of earlier ones of that
/// name; everything else keeps its text.
#[must_use]
pub fn with_query_parameter(url: &str, name: &str, value: &str) -> Option<String> {
    let mut url = PageUrl::parse(url)?.0;
    let old = url.query().filter(|query| !query.is_empty());
    let is_other =
        |part: &&str| form_urlencoded::parse(part.as_bytes()).all(|(found, _)| found != name);
    let mut parts: Vec<&str> =
        old.into_iter().flat_map(|q| q.split('&')).filter(is_other).collect();
    let mut pair = form_urlencoded::Serializer::new(String::new());
    let pair = pair.append_pair(name, value).finish();
    parts.push(&pair);
    let query = parts.join("&");
    url.set_query(Some(&query));
    Some(url.to_string())
}
