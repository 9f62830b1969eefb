//! Whose request it is: hands the headers that may tell the address to the core, which alone knows
//! which of them to believe.

use std::borrow::Cow;
use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::HeaderName;

pub use qm_core::address::{Address, AddressGroup, TrustProxy};
use qm_core::address::{Forwarding, client_address as decide};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const CF_CONNECTING_IP: HeaderName = HeaderName::from_static("cf-connecting-ip");
const CF_CONNECTING_IPV6: HeaderName = HeaderName::from_static("cf-connecting-ipv6");

/// The address of the client of a request that came from `peer`.
#[must_use]
pub fn client_address(headers: &HeaderMap, peer: IpAddr, trust: TrustProxy) -> Address {
    if trust == TrustProxy::None {
        return Address::from_ip(peer);
    }
    let forwarded_for = forwarded_for(headers);
    let forwarding = Forwarding {
        peer,
        forwarded_for: forwarded_for.as_deref(),
        cf_ip: single(headers, &CF_CONNECTING_IP),
        cf_ipv6: single(headers, &CF_CONNECTING_IPV6),
    };
    decide(trust, &forwarding)
}

/// The whole list: several lines mean the same as one line with commas (RFC 9110, 5.3). Octets that
/// are no text stay as entries that are no address, so that counting from the right holds.
#[must_use]
pub fn forwarded_for(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let mut lines = headers.get_all(X_FORWARDED_FOR).iter();
    let mut list = String::from_utf8_lossy(lines.next()?.as_bytes());
    for line in lines {
        let list = list.to_mut();
        list.push(',');
        list.push_str(&String::from_utf8_lossy(line.as_bytes()));
    }
    Some(list)
}

/// The edge sets this header exactly once; a repeated one was not made by it.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn headers_are_joined_before_counting() {
        let peer: IpAddr = "10.9.9.9".parse().unwrap();
        for (trust, lines, expected) in [
            ("0", vec!["203.0.113.1"], "10.9.9.9"),
            ("1", vec!["203.0.113.1"], "203.0.113.1"),
            ("1", vec!["198.51.100.1", "203.0.113.1"], "203.0.113.1"),
            ("2", vec!["198.51.100.1, 203.0.113.1", "10.0.0.1"], "203.0.113.1"),
            ("2", vec!["203.0.113.1", "\u{e9}"], "203.0.113.1"),
            ("1", vec!["203.0.113.1", "\u{e9}"], "10.9.9.9"),
            ("1", vec!["\u{e9}, 203.0.113.1"], "203.0.113.1"),
            ("1", vec![], "10.9.9.9"),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                let value = HeaderValue::from_bytes(line.as_bytes()).unwrap();
                headers.append(X_FORWARDED_FOR, value);
            }
            let trust = TrustProxy::parse(trust).unwrap();
            let expected = Address::from_ip(expected.parse().unwrap());
            assert_eq!(client_address(&headers, peer, trust), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_repeated_edge_header_is_nobodys_word() {
        let peer: IpAddr = "10.9.9.9".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.append(CF_CONNECTING_IP, HeaderValue::from_static("203.0.113.1"));
        let of = |headers: &HeaderMap| client_address(headers, peer, TrustProxy::Cloudflare);
        assert_eq!(of(&headers), Address::from_ip("203.0.113.1".parse().unwrap()));
        headers.append(CF_CONNECTING_IP, HeaderValue::from_static("203.0.113.2"));
        assert_eq!(of(&headers), Address::from_ip(peer));
    }
}
