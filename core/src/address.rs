//! Who a request comes from: which address counts behind proxies (HOL-29), what quotas and bindings
//! group by (HOL-32), and the digests kept in place of addresses and user agents. Hosts hand in what
//! they read from the socket and the headers; whatever a visitor writes there, nothing here fails.

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

fn cloudflare_address(forwarding: &Forwarding<'_>) -> Option<Address> {
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
