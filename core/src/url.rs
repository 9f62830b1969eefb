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

    /// The host, with its port unless that is the default.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, host)| host)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_as_written() {
        for (text, expected) in [
            ("https://shop.example.com", Some("https://shop.example.com")),
            ("https://shop.example.com/", Some("https://shop.example.com")),
            ("HTTPS://Shop.Example.com:443", Some("https://shop.example.com")),
            ("https://shop.example.com:8443", Some("https://shop.example.com:8443")),
            ("http://shop.example.com:443", Some("http://shop.example.com:443")),
            ("http://localhost:3000/", Some("http://localhost:3000")),
            ("https://bücher.example", Some("https://xn--bcher-kva.example")),
            ("https://[2001:DB8::1]:8443", Some("https://[2001:db8::1]:8443")),
            ("https://shop.example.com.", Some("https://shop.example.com.")),
            ("shop.example.com", None),
            ("https:shop.example.com", None),
            ("https:/shop.example.com", None),
            ("https:///shop.example.com", None),
            ("https://shop.example.com//", None),
            ("https://shop.example.com/x", None),
            ("https://shop.example.com?x", None),
            ("https://shop.example.com#x", None),
            ("https://user@shop.example.com", None),
            ("https://shop.example.com\\", None),
            ("https://*.example.com", None),
            (" https://shop.example.com", None),
            ("https://shop.exam\tple.com", None),
            ("https://", None),
            ("https:///", None),
            ("https://shop.example.com:99999", None),
            ("ftp://shop.example.com", None),
            ("javascript://shop.example.com", None),
            ("null", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(Origin::parse(text).as_ref().map(Origin::as_str), expected, "{text}");
        }
    }

    #[test]
    fn origin_headers_are_canonical() {
        for (text, ok) in [
            ("https://shop.example.com", true),
            ("https://shop.example.com:8443", true),
            ("https://shop.example.com:443", false),
            ("https://shop.example.com/", false),
            ("https://Shop.example.com", false),
            ("https://bücher.example", false),
            ("null", false),
            ("", false),
            ("https://shop.example.com, https://evil.example", false),
            ("chrome-extension://abc", false),
        ] {
            assert_eq!(Origin::from_header(text).is_some(), ok, "{text}");
        }
    }

    #[test]
    fn pages() {
        let url = PageUrl::parse("HTTPS://a:b@Shop.example.com:443/A/../B?x=1#y").unwrap();
        assert_eq!(url.origin().as_str(), "https://shop.example.com");
        assert_eq!((url.path(), url.query()), ("/B", Some("x=1")));
        assert!(url.has_userinfo());
        assert!(!PageUrl::parse("https://shop.example.com").unwrap().has_userinfo());
        assert_eq!(PageUrl::parse("https://h.example?").unwrap().query(), Some(""));
        for text in ["", "/x", "//h.example/", "ftp://h.example/", "about:blank", "data:,x"] {
            assert_eq!(PageUrl::parse(text), None, "{text}");
        }
        let page = |bytes: usize| std::format!("https://h.example/{}", "a".repeat(bytes - 18));
        assert!(PageUrl::parse(&page(URL_BYTES_MAX)).is_some());
        assert!(PageUrl::parse(&page(URL_BYTES_MAX + 1)).is_none());
    }

    #[test]
    fn pages_at_an_origin() {
        let sites = [
            "https://shop.example.com",
            "http://shop.example.com",
            "https://shop.example.com:8443",
            "https://shop.example.co",
            "https://shop.example.com.",
            "https://[2001:db8::1]",
            "https://[2001:db8::1]:8443",
        ];
        for page in sites {
            let url = PageUrl::parse(&std::format!("{page}/x")).unwrap();
            for site in sites {
                assert_eq!(url.is_at(&Origin::parse(site).unwrap()), page == site, "{page} {site}");
            }
        }
    }

    #[test]
    fn return_destinations() {
        let allowed = ["https://shop.example.com", "https://staging.example.com:8443"]
            .map(|text| Origin::parse(text).unwrap());
        for (text, expected) in [
            ("https://shop.example.com/checkout?step=2&x=a%2Fb", ""),
            ("https://shop.example.com/", ""),
            ("https://staging.example.com:8443/p#top", ""),
            ("https://shop.example.com/%0d%0aSet-Cookie:a=b", ""),
            ("https://shop.example.com/x?u=https://a@b", ""),
            ("HTTPS://SHOP.example.com:443/A", "https://shop.example.com/A"),
            ("https://shop.example.com:/x", "https://shop.example.com/x"),
            ("https://shop。example。com/x", "https://shop.example.com/x"),
            ("https://shop.example.com/a b", "https://shop.example.com/a%20b"),
        ] {
            let expected = if expected.is_empty() { text } else { expected };
            assert_eq!(return_destination(text, &allowed).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "https://evil.example/",
            "http://shop.example.com/",
            "https://shop.example.com:8443/",
            "https://staging.example.com/",
            "https://www.shop.example.com/",
            "https://shop.example.com./x",
            "https://shop.example.com.evil.example/",
            "https://shop.example.com@evil.example/",
            "https://evil.example\\@shop.example.com/",
            "https://evil@shop.example.com/",
            "https://:pw@shop.example.com/",
            "https:shop.example.com/",
            "https:/shop.example.com/",
            "https:/\\shop.example.com/",
            "//shop.example.com/",
            "/x",
            " https://shop.example.com/",
            "https://shop.example.com/ ",
            "\thttps://shop.example.com/",
            "https://shop.exa\tmple.com/",
            "https://shop.example.com/\r\nSet-Cookie:a=b",
            "https://shop.example.com/\0",
            "https://shop.example.com\\x",
            "java\tscript:alert(1)//https://shop.example.com",
            "javascript://shop.example.com/%0aalert(1)",
            "data:text/html,<script>alert(1)</script>",
            "blob:https://shop.example.com/1",
            "view-source:https://shop.example.com/",
            "https://shop.example.com%2eevil.example/",
            "https://shop.example.com\u{3002}evil.example/",
            "https://xn--shop.example.com/",
            "https://[::1]/",
            "",
        ] {
            assert_eq!(return_destination(text, &allowed), None, "{text:?}");
            assert_eq!(return_destination(text, &[]), None, "{text:?}");
        }
    }

    #[test]
    fn query_parameter() {
        for (url, expected) in [
            ("/buy", "/buy?qm_token=T.1"),
            ("/buy?", "/buy?qm_token=T.1"),
            ("/buy?x=1#/step/2", "/buy?x=1&qm_token=T.1#/step/2"),
            ("/buy?qm_token=OLD&x=1", "/buy?x=1&qm_token=T.1"),
            ("/buy?qm%5Ftoken=OLD&x=1&qm_token", "/buy?x=1&qm_token=T.1"),
            ("/buy?x=1&x=2&y", "/buy?x=1&x=2&y&qm_token=T.1"),
            ("/buy?&x=1&&", "/buy?&x=1&&&qm_token=T.1"),
            ("/buy?q=%E0%B8%81&r=a+b", "/buy?q=%E0%B8%81&r=a+b&qm_token=T.1"),
            ("/buy#qm_token=z", "/buy?qm_token=T.1#qm_token=z"),
            ("/buy?xqm_token=1&qm_tokens=2", "/buy?xqm_token=1&qm_tokens=2&qm_token=T.1"),
        ] {
            let url = std::format!("https://shop.example.com{url}");
            let got = with_query_parameter(&url, "qm_token", "T.1").unwrap();
            assert_eq!(got, std::format!("https://shop.example.com{expected}"), "{url}");
        }
        let got = with_query_parameter("https://h.example/", "a b", "c&d=e#").unwrap();
        assert_eq!(got, "https://h.example/?a+b=c%26d%3De%23");
        assert_eq!(with_query_parameter("mailto:a@b", "a", "b"), None);
    }
}
