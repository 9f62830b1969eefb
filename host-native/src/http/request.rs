//! A request as routes see it: the path and query, the visitor's address, and headers as text.
//! Read once; nothing here decides.

use std::borrow::Cow;
use std::net::IpAddr;

use hyper::header::{COOKIE, HeaderName, ORIGIN, REFERER, USER_AGENT};
use hyper::{HeaderMap, Method, Uri};
use qm_core::address::{Address, TrustProxy, agent_digest};
use qm_core::room::{Client, Family};
use qm_core::time::TimeMs;

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

    /// All cookies as one header text.
    #[must_use]
    pub fn cookies(&self) -> Cow<'_, str> {
        let mut values = self.headers.get_all(COOKIE).iter().filter_map(|v| v.to_str().ok());
        let first = values.next().unwrap_or_default();
        values.next().map_or(Cow::Borrowed(first), |second| {
            let rest = values.fold(format!("{first}; {second}"), |all, next| all + "; " + next);
            Cow::Owned(rest)
        })
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
