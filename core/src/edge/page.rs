//! The address of the page being opened: the pass in its query taken out, and cut to what the
//! server and the waiting page accept, so that no visitor can provoke a refusal with it.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::url::{Url, form_urlencoded};

use crate::url::Origin;

/// The longest request target the server accepts is 4096 bytes; some are left for proxies.
pub(super) const TARGET_BYTES_MAX: usize = 4000;

/// The longest page address looked at.
const PAGE_BYTES_MAX: usize = 65_536;

/// The parameter a released visitor brings.
const TOKEN_PARAMETER: &str = "qm_token";

/// A page's address without the pass, fragment and user name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    url: Url,
    /// The values of `qm_token`, as sent.
    pub(super) tokens: Vec<String>,
}

impl Page {
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.len() > PAGE_BYTES_MAX {
            return None;
        }
        let mut url = Url::parse(text).ok()?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return None;
        }
        url.set_fragment(None);
        // Neither can fail for an address with a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let mut tokens = Vec::new();
        let mut kept: Vec<&str> = Vec::new();
        let query = url.query().unwrap_or_default().to_owned();
        for part in query.split('&') {
            match token_of(part) {
                Some(token) => tokens.push(token),
                None => kept.push(part),
            }
        }
        if !tokens.is_empty() {
            let rest = kept.join("&");
            url.set_query((!rest.is_empty()).then_some(&rest));
        }
        Some(Self { url, tokens })
    }

    pub(super) fn as_str(&self) -> &str {
        self.url.as_str()
    }

    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Whether the page is on the host of this origin, whatever the scheme.
    pub(super) fn is_on_host_of(&self, origin: &Origin) -> bool {
        let Ok(other) = Url::parse(origin.as_str()) else { return false };
        self.url.host() == other.host() && self.url.port() == other.port()
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }
}

fn token_of(part: &str) -> Option<String> {
    let (name, value) = form_urlencoded::parse(part.as_bytes()).next()?;
    (name == TOKEN_PARAMETER).then(|| value.into_owned())
}

/// What is left of an address that had to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit<'a> {
    /// All of it.
    Whole(&'a str),
    /// Without its query.
    WithoutQuery(&'a str),
    /// Nothing: the path alone is too long, and a part of a path is another page.
    Nothing,
}

impl<'a> Fit<'a> {
    /// Cuts an address so that it takes at most `room_bytes` as a parameter's value.
    pub(super) fn into(page: &'a str, room_bytes: usize) -> Self {
        if encoded_bytes(page) <= room_bytes {
            return Self::Whole(page);
        }
        match page.split_once('?') {
            Some((path, _)) if encoded_bytes(path) <= room_bytes => Self::WithoutQuery(path),
            _ => Self::Nothing,
        }
    }

    pub(super) const fn text(self) -> Option<&'a str> {
        match self {
            Self::Whole(text) | Self::WithoutQuery(text) => Some(text),
            Self::Nothing => None,
        }
    }
}

fn encoded_bytes(text: &str) -> usize {
    form_urlencoded::byte_serialize(text.as_bytes()).map(str::len).sum()
}

/// The waiting page's address with the way back to `page`. It stays on the queue server, whatever
/// an answer names.
pub(super) fn waiting_location(
    server: &str,
    room: &str,
    named: Option<&str>,
    page: Option<&str>,
) -> String {
    let own = alloc::format!("{server}/w/{room}");
    let named = named.and_then(|text| Url::parse(server).ok()?.join(text).ok());
    let on_server = named.filter(|url| url.origin().ascii_serialization() == server);
    let Some(mut url) = on_server.or_else(|| Url::parse(&own).ok()) else { return own };
    url.set_fragment(None);
    let used = url.as_str().len().saturating_sub(server.len()) + "?qm_return=".len();
    let fit = page.map(|page| Fit::into(page, TARGET_BYTES_MAX.saturating_sub(used)));
    if let Some(way_back) = fit.and_then(Fit::text) {
        url.query_pairs_mut().append_pair("qm_return", way_back);
    }
    url.to_string()
}
