//! Who a request comes from: which address counts behind proxies (HOL-29), what quotas and bindings
//! group by (HOL-32), and the digests kept in place of addresses and user agents. Hosts hand in
//! what they read from the socket and the headers; whatever a visitor writes there, nothing here
//! fails.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A client address in its one normal form: IPv4-mapped IPv6 is the IPv4 address it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(IpAddr);

impl Address {
    /// Normalises an address, whatever spelling it was read from.
    #[must_use]
    pub const fn from_ip(ip: IpAddr) -> Self {
        Self(ip.to_canonical())
    }

    /// Reads an address a connector vouches for: textual IPv4 or IPv6 and nothing else. Blanks
    /// around it are trimmed; ports, brackets, zones, lists and octal spellings are refused, since
    /// two readers could disagree about them.
    #[must_use]
    pub fn parse_voucher(text: &str) -> Option<Self> {
        trim_blanks(text).parse().ok().map(Self::from_ip)
    }

    /// Reads an entry of a forwarding header, where proxies also write ports and brackets.
    #[must_use]
    pub fn parse_forwarded(text: &str) -> Option<Self> {
        let text = trim_blanks(text);
        if let Some(rest) = text.strip_prefix('[') {
            let (ip, tail) = rest.split_once(']')?;
            let ip: Ipv6Addr = ip.parse().ok()?;
            let tail_is_fine = tail.is_empty() || tail.strip_prefix(':').is_some_and(is_port);
            return tail_is_fine.then(|| Self::from_ip(ip.into()));
        }
        if let Ok(ip) = text.parse() {
            return Some(Self::from_ip(ip));
        }
        let (ip, port) = text.rsplit_once(':')?;
        let ip: Ipv4Addr = ip.parse().ok()?;
        is_port(port).then(|| Self::from_ip(ip.into()))
    }

    /// Whether this is an IPv4 address, mapped ones included.
    #[must_use]
    pub const fn is_v4(self) -> bool {
        self.0.is_ipv4()
    }

    /// What caps, quotas, bindings and fingerprints count as one address (HOL-32).
    #[must_use]
    pub const fn group(self) -> AddressGroup {
        AddressGroup(match self.0 {
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !(u64::MAX as u128))),
        })
    }

    /// The digest of the address's group, for places that must not keep the address itself.
    #[must_use]
    pub fn digest(self) -> AddressDigest {
        self.group().digest()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One IPv4 address, or one /64 of IPv6: a household changes its address inside it at will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressGroup(IpAddr);

impl AddressGroup {
    /// The digest of the group.
    #[must_use]
    pub fn digest(self) -> AddressDigest {
        let mut sink = HashSink(Sha256::new_with_prefix(b"qm:address|"));
        // Hashing never fails, so neither does writing into it.
        let _ = fmt::Write::write_fmt(&mut sink, format_args!("{self}"));
        AddressDigest(leading_u64(&sink.0))
    }
}

impl fmt::Display for AddressGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(ip) => ip.fmt(f),
            IpAddr::V6(ip) => write!(f, "{ip}/64"),
        }
    }
}

/// The first 64 bits of a digest of an [`AddressGroup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AddressDigest(pub u64);

/// The first 64 bits of a digest of a normalised user agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentDigest(pub u64);

impl fmt::Display for AddressDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for AgentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How many bytes of a user agent count; connectors cut at the same length.
pub const AGENT_BYTES_MAX: usize = 256;

/// Digests a user agent so that the browser's own request and a connector's voucher agree: blanks
/// trimmed, cut to [`AGENT_BYTES_MAX`] bytes. An absent one is the empty one.
#[must_use]
pub fn agent_digest(user_agent: &[u8]) -> AgentDigest {
    let trimmed = user_agent.trim_ascii();
    let cut = trimmed.get(..AGENT_BYTES_MAX).unwrap_or(trimmed);
    // A cut can end in a blank, which a connector that sends the cut value loses on the way.
    let mut hash = Sha256::new_with_prefix(b"qm:agent|");
    hash.update(cut.trim_ascii_end());
    AgentDigest(leading_u64(&hash))
}

/// Which forwarding header is believed (`TRUST_PROXY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustProxy {
    /// No header: the socket's peer is the client.
    #[default]
    None,
    /// That many proxies of ours stand in front, the peer included.
    Hops(u8),
    /// Cloudflare stands in front.
    Cloudflare,
}

impl TrustProxy {
    /// The largest number of proxies.
    pub const HOPS_MAX: u8 = 32;

    /// Reads the setting: `0`, `1` to `32`, or `cf`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "0" => Some(Self::None),
            "cf" => Some(Self::Cloudflare),
            _ if text.starts_with(['0', '+']) => None,
            _ => text.parse().ok().filter(|hops| *hops <= Self::HOPS_MAX).map(Self::Hops),
        }
    }

    /// How many entries of `X-Forwarded-For` our own proxies account for.
    #[must_use]
    pub const fn hops(self) -> usize {
        match self {
            Self::None => 0,
            Self::Hops(hops) => hops as usize,
            Self::Cloudflare => 1,
        }
    }
}

/// What a request says about where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Forwarding<'a> {
    /// The socket's peer.
    pub peer: IpAddr,
    /// All values of `X-Forwarded-For`, joined by `, ` in the order received.
    pub forwarded_for: Option<&'a str>,
    /// `CF-Connecting-IP`.
    pub cf_ip: Option<&'a str>,
    /// `CF-Connecting-IPv6`.
    pub cf_ipv6: Option<&'a str>,
}

impl Forwarding<'_> {
    /// How many entries `X-Forwarded-For` has, for [`crate::score::RequestFacts`].
    #[must_use]
    pub fn entries(&self) -> usize {
        self.forwarded_for.map_or(0, |list| {
            list.split(',').filter(|entry| !trim_blanks(entry).is_empty()).count()
        })
    }
}

/// What Cloudflare reports for a Worker's own request in place of a visitor.
const CLOUDFLARE_PLACEHOLDER: IpAddr =
    IpAddr::V6(Ipv6Addr::new(0x2a06, 0x98c0, 0x3600, 0, 0, 0, 0, 0x103));

/// The client's address (HOL-29): what the trusted proxies say, else the socket's peer. Entries to
/// the left of the trusted ones are the visitor's own word and never count.
#[must_use]
pub fn client_address(trust: TrustProxy, forwarding: &Forwarding<'_>) -> Address {
    let said = match trust {
        TrustProxy::None => None,
        TrustProxy::Hops(hops) => forwarding
            .forwarded_for
            .and_then(|list| list.rsplit(',').nth(usize::from(hops).saturating_sub(1)))
            .and_then(Address::parse_forwarded),
        TrustProxy::Cloudflare => cloudflare_address(forwarding),
    };
    said.unwrap_or_else(|| Address::from_ip(forwarding.peer))
}

/// The address Cloudflare reports; `None` when it reports none of a visitor.
pub(crate) fn cloudflare_address(forwarding: &Forwarding<'_>) -> Option<Address> {
    let said = Address::parse_voucher(forwarding.cf_ip?)?;
    // 240.0.0.0/4 is "pseudo IPv4": a hash of an IPv6 address that changes with every one of them.
    let is_pseudo = matches!(said.0, IpAddr::V4(ip) if ip.octets()[0] >= 240);
    let real = forwarding
        .cf_ipv6
        .filter(|_| is_pseudo)
        .and_then(Address::parse_voucher)
        .filter(|address| !address.is_v4());
    Some(real.unwrap_or(said)).filter(|address| address.0 != CLOUDFLARE_PLACEHOLDER)
}

fn trim_blanks(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_digit())
        && text.parse::<u16>().is_ok()
}

struct HashSink(Sha256);

impl fmt::Write for HashSink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

fn leading_u64(hash: &Sha256) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.clone().finalize());
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn vouched_addresses_are_strict() {
        for (text, expected) in [
            ("203.0.113.7", Some("203.0.113.7")),
            (" \t203.0.113.7 ", Some("203.0.113.7")),
            ("2001:DB8:1:2::7", Some("2001:db8:1:2::7")),
            ("::ffff:203.0.113.7", Some("203.0.113.7")),
            ("::FFFF:cb00:7107", Some("203.0.113.7")),
            ("0:0:0:0:0:ffff:cb00:7107", Some("203.0.113.7")),
            ("::203.0.113.7", Some("::cb00:7107")),
            ("203.0.113.7:51234", None),
            ("[2001:db8:1:2::7]:443", None),
            ("[2001:db8:1:2::7]", None),
            ("fe80::1%eth0", None),
            ("unknown", None),
            ("", None),
            (" ", None),
            ("203.0.113.7, 10.0.0.1", None),
            ("203.0.113.007", None),
            ("0xcb007107", None),
            ("3405803783", None),
            ("203.0.113", None),
            ("203.0.113.7\n", None),
            ("203.0.113.256", None),
        ] {
            let got = Address::parse_voucher(text).map(|address| address.to_string());
            assert_eq!(got.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn forwarded_addresses_may_have_ports_and_brackets() {
        for (text, expected) in [
            ("203.0.113.7", Some("203.0.113.7")),
            (" 203.0.113.7:4711 ", Some("203.0.113.7")),
            ("[2001:db8::7]", Some("2001:db8::7")),
            ("[2001:db8::7]:443", Some("2001:db8::7")),
            ("[::ffff:203.0.113.7]:1", Some("203.0.113.7")),
            ("2001:db8::7", Some("2001:db8::7")),
            ("203.0.113.7:", None),
            ("203.0.113.7:65536", None),
            ("203.0.113.7:+80", None),
            ("203.0.113.7:80:80", None),
            ("[203.0.113.7]", None),
            ("[2001:db8::7", None),
            ("[2001:db8::7]443", None),
            ("[2001:db8::7]:", None),
            ("_hidden", None),
            ("", None),
        ] {
            let got = Address::parse_forwarded(text).map(|address| address.to_string());
            assert_eq!(got.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn groups() {
        let group = |text: &str| Address::parse_voucher(text).unwrap().group();
        for (a, b, same) in [
            ("2001:db8:1:2::7", "2001:db8:1:2:aaaa:bbbb:cccc:dddd", true),
            ("2001:db8:1:2::7", "2001:db8:1:3::7", false),
            ("2001:db8:1:2::", "2001:db8:1:20::", false),
            ("203.0.113.7", "203.0.113.8", false),
            ("203.0.113.7", "::ffff:203.0.113.7", true),
        ] {
            assert_eq!(group(a) == group(b), same, "{a} {b}");
            assert_eq!(group(a).digest() == group(b).digest(), same, "{a} {b}");
        }
        assert_eq!(group("2001:db8:1:2::7").to_string(), "2001:db8:1:2::/64");
        // Pinned: stored digests outlive a release.
        assert_eq!(group("203.0.113.7").digest().to_string(), PINNED_V4);
        assert_eq!(group("2001:db8:1:2::7").digest().to_string(), PINNED_V6);
    }

    const PINNED_V4: &str = "c6a8191f606406b0";
    const PINNED_V6: &str = "8428fa6177732bfa";

    #[test]
    fn agents_agree_whoever_sends_them() {
        let digest = |text: &[u8]| agent_digest(text);
        assert_eq!(digest(b""), digest(b"  \t"));
        assert_eq!(digest(b" Mozilla/5.0 "), digest(b"Mozilla/5.0"));
        assert_ne!(digest(b"Mozilla/5.0"), digest(b"mozilla/5.0"));
        let long = [b'a'; 5000];
        assert_eq!(digest(&long), digest(&long[..AGENT_BYTES_MAX]));
        assert_ne!(digest(&long), digest(&long[..AGENT_BYTES_MAX - 1]));
        // The cut falls on a blank: a connector's header loses it.
        let mut blank = [b'a'; 300];
        blank[AGENT_BYTES_MAX - 1] = b' ';
        assert_eq!(digest(&blank), digest(&blank[..AGENT_BYTES_MAX - 1]));
        assert_eq!(digest(b"\xe0\xb8"), digest(b"\xe0\xb8"));
        assert_eq!(digest(b"Mozilla/5.0").to_string(), PINNED_AGENT);
    }

    const PINNED_AGENT: &str = "1505f9e0866d0053";

    #[test]
    fn trust_settings() {
        for (text, expected) in [
            ("0", Some(TrustProxy::None)),
            ("1", Some(TrustProxy::Hops(1))),
            ("32", Some(TrustProxy::Hops(32))),
            ("cf", Some(TrustProxy::Cloudflare)),
            ("33", None),
            ("-1", None),
            ("+1", None),
            ("01", None),
            ("1.5", None),
            ("yes", None),
            ("CF", None),
            ("", None),
            ("300", None),
        ] {
            assert_eq!(TrustProxy::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn client_addresses() {
        let (none, cf) = (TrustProxy::None, TrustProxy::Cloudflare);
        let hops = TrustProxy::Hops;
        for (trust, list, cf_ip, cf_ipv6, expected) in [
            (none, "203.0.113.1", "203.0.113.2", "", "192.0.2.1"),
            (hops(1), "203.0.113.1", "203.0.113.2", "", "203.0.113.1"),
            (hops(1), "10.0.0.1, 203.0.113.1:4711", "", "", "203.0.113.1"),
            (hops(1), "203.0.113.1, ", "", "", "192.0.2.1"),
            (hops(1), "203.0.113.1, nonsense", "", "", "192.0.2.1"),
            (hops(1), "::FFFF:203.0.113.1", "", "", "203.0.113.1"),
            (hops(2), "203.0.113.1, 10.0.0.1", "", "", "203.0.113.1"),
            (hops(2), "198.51.100.1,203.0.113.1,10.0.0.1", "", "", "203.0.113.1"),
            (hops(2), "203.0.113.1", "", "", "192.0.2.1"),
            (hops(0), "203.0.113.1", "", "", "203.0.113.1"),
            (cf, "203.0.113.1", "", "", "192.0.2.1"),
            (cf, "203.0.113.1", "203.0.113.2", "2001:db8::1", "203.0.113.2"),
            (cf, "", "240.1.2.3", "2001:db8::1", "2001:db8::1"),
            (cf, "", "::ffff:240.1.2.3", "2001:db8::1", "2001:db8::1"),
            (cf, "", "255.1.2.3", "nonsense", "255.1.2.3"),
            (cf, "", "240.1.2.3", "::ffff:203.0.113.9", "240.1.2.3"),
            (cf, "", "2a06:98c0:3600::103", "", "192.0.2.1"),
        ] {
            let given = |text: &'static str| Some(text).filter(|text| !text.is_empty());
            let forwarding = Forwarding {
                peer: ip("::ffff:192.0.2.1"),
                forwarded_for: given(list),
                cf_ip: given(cf_ip),
                cf_ipv6: given(cf_ipv6),
            };
            let got = client_address(trust, &forwarding).to_string();
            assert_eq!(got, expected, "{trust:?} {list} {cf_ip} {cf_ipv6}");
        }
    }

    #[test]
    fn forwarding_entries_are_counted() {
        for (list, expected) in [(None, 0), (Some(""), 0), (Some("a"), 1), (Some("a, b,,c"), 3)] {
            let forwarding = Forwarding {
                peer: ip("192.0.2.1"),
                forwarded_for: list,
                cf_ip: None,
                cf_ipv6: None,
            };
            assert_eq!(forwarding.entries(), expected, "{list:?}");
        }
    }
}
