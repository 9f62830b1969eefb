//! One-way digests that bind a place to its visitor: the owner cookie's session id and the door
//! key are kept only as these. Written as lower-case hex wherever an event is written down.

use alloc::string::String;
use core::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The first 16 octets of SHA-256 over a domain label and a secret of the visitor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest16(pub [u8; 16]);

impl Digest16 {
    fn of(label: &str, secret: &[u8]) -> Self {
        let full =
            Sha256::new().chain_update(label).chain_update([0]).chain_update(secret).finalize();
        let mut short = [0; 16];
        for (to, from) in short.iter_mut().zip(full) {
            *to = from;
        }
        Self(short)
    }

    /// The digest of a session id of `qms_<room>` (COO-03).
    #[must_use]
    pub fn of_owner(session_id: &str) -> Self {
        Self::of("qm:owner", session_id.as_bytes())
    }

    /// The digest of a door-session key (CHK-07).
    #[must_use]
    pub fn of_door_key(key: &str) -> Self {
        Self::of("qm:door", key.as_bytes())
    }

    /// The first eight octets as a number: uniformly spread, so it serves as a hash by itself.
    #[must_use]
    pub fn prefix(&self) -> u64 {
        self.0.iter().take(8).fold(0, |sum, octet| (sum << 8) | u64::from(*octet))
    }

    /// Lower-case hex, 32 characters.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

/// Lower-case hex of `octets`.
#[must_use]
pub fn hex(octets: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    octets.iter().flat_map(|octet| [digit(octet >> 4), digit(octet & 15)]).collect()
}

/// Reads exactly `N` octets of hex, either case.
#[must_use]
pub fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut digits = text.chars().map(|digit| digit.to_digit(16));
    let mut octets = [0; N];
    for octet in &mut octets {
        let (high, low) = (digits.next()??, digits.next()??);
        *octet = u8::try_from((high << 4) | low).ok()?;
    }
    digits.next().is_none().then_some(octets)
}

impl fmt::Debug for Digest16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl Serialize for Digest16 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Digest16 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_hex(&text).map(Self).ok_or_else(|| D::Error::custom("not 32 hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_refuses() {
        let digest = Digest16::of_owner("a session id");
        assert_eq!(parse_hex(&digest.to_hex()), Some(digest.0));
        for bad in ["", "0", "zz", &digest.to_hex()[1..], "00112233445566778899aabbccddeeff00"] {
            assert_eq!(parse_hex::<16>(bad), None, "{bad}");
        }
        assert_ne!(digest, Digest16::of_door_key("a session id"), "labels keep uses apart");
    }
}
