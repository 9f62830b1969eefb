//! A request as routes see it: the path and query, the visitor's address, and headers as text.
//! Read once; nothing here decides.

use std::borrow::Cow;
use std::net::IpAddr;

use hyper::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN, REFERER, USER_AGENT};
use hyper::{HeaderMap, Method, Uri};
use qm_core::address::{Address, TrustProxy, agent_digest};
use qm_core::room::{Client, Family};
use qm_core::time::TimeMs;
use qm_core::url::Origin;

use super::app::App;
use crate::guard::address::client_address;

/// One request without its body.
pub struct Ask {
    /// The method; `HEAD` included.
    pub method: Method,
    /// The request target.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The address of the visitor, through trusted proxies.
    pub address: Address,
    /// The socket's other end.
    pub peer: IpAddr,
    /// Whether the visitor came over https.
    pub is_https: bool,
    /// When the request was read.
    pub now: TimeMs,
}

impl Ask {
    /// Reads a request head.
    #[must_use]
    pub fn new(app: &App, method: Method, uri: Uri, headers: HeaderMap, peer: IpAddr) -> Self {
        let address = client_address(&headers, peer, app.config.trust_proxy);
        let is_https = match &app.config.public_origin {
            Some(origin) => origin.starts_with("https:"),
            None => app.config.trust_proxy != TrustProxy::None && last_proto_is_https(&headers),
        };
        Self { method, uri, headers, address, peer, is_https, now: app.clock.now() }
    }

    /// The path, as sent.
    #[must_use]
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// The query, as sent; empty when there is none.
    #[must_use]
    pub fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    /// The first value of a query parameter.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut pairs = url::form_urlencoded::parse(self.query().as_bytes());
        pairs.find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// The first value of a header, when it is text.
    #[must_use]
    pub fn header(&self, name: impl Into<HeaderName>) -> Option<&str> {
        self.headers.get(name.into())?.to_str().ok()
    }

    /// All cookies as one header text. Octets of other cookies that are no text cost none of ours.
    #[must_use]
    pub fn cookies(&self) -> Cow<'_, str> {
        let mut lines = self.headers.get_all(COOKIE).iter();
        let first = lines.next().map_or(Cow::Borrowed(""), lossy);
        lines.fold(first, |all, next| (all.into_owned() + "; " + &lossy(next)).into())
    }

    /// The `User-Agent` header, whatever its octets.
    #[must_use]
    pub fn user_agent(&self) -> Option<Cow<'_, str>> {
        self.headers.get(USER_AGENT).map(lossy)
    }

    /// Whether the target and the `Host` header agree on one host (C072).
    #[must_use]
    pub fn names_one_host(&self) -> bool {
        let mut hosts = self.headers.get_all(HOST).iter();
        let host = hosts.next();
        if hosts.next().is_some() {
            return false;
        }
        let (Some(host), Some(target)) = (host, self.uri.authority()) else { return true };
        let plain = |text: &str| text.trim_end_matches(":80").to_ascii_lowercase();
        host.to_str().is_ok_and(|host| plain(host) == plain(target.as_str()))
    }

    /// Whether a browser fetches ahead of the visitor, who may never come.
    #[must_use]
    pub fn is_prefetch(&self) -> bool {
        ["sec-purpose", "purpose", "x-moz"].into_iter().any(|name| {
            let text = self.headers.get(name).and_then(|value| value.to_str().ok());
            text.is_some_and(|text| text.to_ascii_lowercase().contains("prefetch"))
        })
    }

    /// The origin under which the visitor reached this server.
    #[must_use]
    pub fn own_origin(&self) -> Option<Origin> {
        let scheme = if self.is_https { "https" } else { "http" };
        Origin::parse(&format!("{scheme}://{}", self.header(HOST)?))
    }

    /// The `Origin` header.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.headers.get(ORIGIN).map(|value| value.to_str().unwrap_or("null"))
    }

    /// The `Referer` header.
    #[must_use]
    pub fn referer(&self) -> Option<&str> {
        self.header(REFERER)
    }

    /// What binds a place to this browser.
    #[must_use]
    pub fn client(&self) -> Client {
        let agent = self.headers.get(USER_AGENT).map_or(&[][..], |value| value.as_bytes());
        client_of(self.address, agent)
    }

    /// Whether the request asks for the head of the answer only; such a one changes nothing.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }
}

fn lossy(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// The digests of an address and a User-Agent.
#[must_use]
pub fn client_of(address: Address, agent: &[u8]) -> Client {
    let family = if address.is_v4() { Family::V4 } else { Family::V6 };
    Client { family, address: address.digest(), agent: agent_digest(agent) }
}

fn last_proto_is_https(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all("x-forwarded-proto").iter();
    let last = values.next_back().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let nearest = last.rsplit(',').next().unwrap_or_default();
    nearest.trim().eq_ignore_ascii_case("https")
}
