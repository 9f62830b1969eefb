//! Keys: where a request carries one, and whether it is the right one. Comparisons take the same
//! time for every wrong key, and no type here prints a key.

use std::fmt;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

pub use super::lockout::LockOut;
use crate::config::Secret;

/// What the `Authorization` header says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// There is no such header.
    Absent,
    /// Another scheme, an empty key, no text, or more than one header: nothing to compare, and the
    /// request is judged by the header all the same (AUT-13).
    Unusable,
    /// A Bearer key.
    Key(&'a str),
}

impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "Absent",
            Self::Unusable => "Unusable",
            Self::Key(_) => "Key(..)",
        })
    }
}

/// Reads the `Authorization` header, the only place a key is accepted from (AUT-07).
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Credential<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Credential::Absent };
    if values.next().is_some() {
        return Credential::Unusable;
    }
    let Ok(text) = value.to_str() else { return Credential::Unusable };
    match text.trim().split_once([' ', '\t']) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Credential::Key(key.trim()),
        _ => Credential::Unusable,
    }
}

/// One key, kept as a digest: comparing digests tells neither where two keys differ nor how long
/// the right one is.
#[derive(Clone)]
pub struct AdminKey([u8; 32]);

/// The secret that an edge in front adds to every request (HOL-30).
pub type EdgeSecret = AdminKey;

impl AdminKey {
    /// Keeps the digest of a key.
    #[must_use]
    pub fn new(key: &Secret) -> Self {
        Self(digest(key.reveal().as_bytes()))
    }

    /// Whether `presented` is the key.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        self.choice(&digest(presented.as_bytes())).into()
    }

    fn choice(&self, presented: &[u8; 32]) -> Choice {
        self.0.ct_eq(presented)
    }
}

impl fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminKey(..)")
    }
}

/// The keys of `PUBLIC_API_KEY`; which of them was used makes no difference.
#[derive(Clone)]
pub struct PublicKeys(Vec<AdminKey>);

impl PublicKeys {
    /// Keeps the digests of the keys.
    #[must_use]
    pub fn new(keys: &[Secret]) -> Self {
        Self(keys.iter().map(AdminKey::new).collect())
    }

    /// Whether `presented` is one of the keys; every key is compared, whichever fits.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        let presented = digest(presented.as_bytes());
        let any = self.0.iter().fold(Choice::from(0), |any, key| any | key.choice(&presented));
        any.into()
    }

    /// Whether no key is configured.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for PublicKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKeys({})", self.0.len())
    }
}

/// Whether the request came through the edge: exactly one `X-QM-Edge` header with the secret.
#[must_use]
pub fn came_through_edge(headers: &HeaderMap, secret: &EdgeSecret) -> bool {
    let mut values = headers.get_all(X_QM_EDGE).iter();
    let first = values.next().map(|value| digest(value.as_bytes()));
    let alone = values.next().is_none();
    first.is_some_and(|presented| secret.choice(&presented).into()) && alone
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

const X_QM_EDGE: HeaderName = HeaderName::from_static("x-qm-edge");

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn bearer_keys() {
        for (values, expected) in [
            (&[][..], Credential::Absent),
            (&["Bearer abc"], Credential::Key("abc")),
            (&["bEARER  \t abc  "], Credential::Key("abc")),
            (&["  Bearer abc"], Credential::Key("abc")),
            (&["Bearer a b"], Credential::Key("a b")),
            (&["Bearer "], Credential::Unusable),
            (&["Bearer"], Credential::Unusable),
            (&[""], Credential::Unusable),
            (&["Basic abc"], Credential::Unusable),
            (&["abc"], Credential::Unusable),
            (&["Bearerabc"], Credential::Unusable),
            (&["Bearer \u{e9}"], Credential::Unusable),
            (&["Bearer abc", "Bearer abc"], Credential::Unusable),
        ] {
            assert!(bearer(&headers(AUTHORIZATION, values)) == expected, "{values:?}");
        }
    }

    #[test]
    fn keys_match_only_themselves() {
        let key = AdminKey::new(&Secret::new("one"));
        let keys = PublicKeys::new(&[Secret::new("one"), Secret::new("two")]);
        for (presented, admin, public) in [
            ("one", true, true),
            ("two", false, true),
            ("on", false, false),
            ("onee", false, false),
            ("", false, false),
            ("one,two", false, false),
        ] {
            assert_eq!((key.matches(presented), keys.matches(presented)), (admin, public));
        }
        assert!(!PublicKeys::new(&[]).matches(""));
        let shown = format!("{key:?} {keys:?} {:?}", Credential::Key("one"));
        assert_eq!(shown, "AdminKey(..) PublicKeys(2) Key(..)");
    }

    #[test]
    fn the_edge_header_stands_alone() {
        let secret = EdgeSecret::new(&Secret::new("plugh"));
        for (values, expected) in [
            (&[][..], false),
            (&["plugh"], true),
            (&["plug"], false),
            (&["plughx"], false),
            (&[""], false),
            (&["plugh", "plugh"], false),
        ] {
            assert_eq!(came_through_edge(&headers(X_QM_EDGE, values), &secret), expected);
        }
    }
}
