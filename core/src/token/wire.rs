//! The text form of a token. Strict, so that two readers can never differ: canonical unpadded
//! base64url, one JSON object, no repeated member at its top, plain non-negative integers.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::TokenRefusal;
use crate::id::{INTEGER_MAX, RoomId};

/// The longest token looked at; one of a 64-character room id has about 220 bytes.
pub const TOKEN_BYTES_MAX: usize = 1024;

/// A token taken apart, nothing verified.
pub(super) struct Parts<'a> {
    pub(super) signed: &'a [u8],
    pub(super) payload: Vec<u8>,
    pub(super) signature: [u8; 32],
}

impl<'a> Parts<'a> {
    pub(super) fn split(text: &'a str) -> Result<Self, TokenRefusal> {
        let malformed = TokenRefusal::Malformed;
        if text.len() > TOKEN_BYTES_MAX {
            return Err(malformed);
        }
        let (signed, signature) = text.split_once('.').ok_or(malformed)?;
        // The engine refuses padding, other alphabets and trailing bits that are not zero.
        let payload = URL_SAFE_NO_PAD.decode(signed).map_err(|_| malformed)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed)?;
        let signature = signature.try_into().map_err(|_| malformed)?;
        Ok(Self { signed: signed.as_bytes(), payload, signature })
    }
}

/// The members of a visitor token's payload, each read at most once.
#[derive(Default)]
pub(super) struct VisitorClaims {
    pub(super) r: Option<RoomId>,
    pub(super) n: Option<u64>,
    pub(super) q: Option<u64>,
    pub(super) g: Option<u64>,
    pub(super) iat: Option<u64>,
    pub(super) kid: Option<String>,
}

/// The members of any payload.
pub(super) struct Claims {
    pub(super) kid: Option<String>,
    pub(super) members: Map<String, Value>,
}

impl VisitorClaims {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, TokenRefusal> {
        parse(payload)
    }
}

impl Claims {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, TokenRefusal> {
        parse(payload)
    }
}

fn parse<'de, T: Deserialize<'de>>(payload: &'de [u8]) -> Result<T, TokenRefusal> {
    serde_json::from_slice(payload).map_err(|error| match error.is_data() {
        true => TokenRefusal::WrongShape,
        false => TokenRefusal::Malformed,
    })
}

/// Fills a member, or refuses its second appearance.
fn fill<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    match slot.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(A::Error::custom("repeated member")),
    }
}

fn fill_integer<'de, A: MapAccess<'de>>(
    slot: &mut Option<u64>,
    map: &mut A,
) -> Result<(), A::Error> {
    fill(slot, map)?;
    match slot {
        Some(number) if *number > INTEGER_MAX => Err(A::Error::custom("integer too large")),
        _ => Ok(()),
    }
}

impl<'de> Deserialize<'de> for VisitorClaims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = VisitorClaims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a payload object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VisitorClaims, A::Error> {
                let mut claims = VisitorClaims::default();
                let mut others: Vec<String> = Vec::new();
                while let Some(name) = map.next_key::<Name>()? {
                    match name {
                        Name::Room => fill(&mut claims.r, &mut map)?,
                        Name::Ticket => fill_integer(&mut claims.n, &mut map)?,
                        Name::Reference => fill_integer(&mut claims.q, &mut map)?,
                        Name::Generation => fill_integer(&mut claims.g, &mut map)?,
                        Name::IssuedAt => fill_integer(&mut claims.iat, &mut map)?,
                        Name::KeyId => fill(&mut claims.kid, &mut map)?,
                        Name::Other(name) if others.contains(&name) => {
                            return Err(A::Error::custom("repeated member"));
                        }
                        // A later version may add members (TOK-16 did); they mean nothing here.
                        Name::Other(name) => {
                            others.push(name);
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(claims)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A member's name, with escapes resolved.
enum Name {
    Room,
    Ticket,
    Reference,
    Generation,
    IssuedAt,
    KeyId,
    Other(String),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "r" => Name::Room,
                    "n" => Name::Ticket,
                    "q" => Name::Reference,
                    "g" => Name::Generation,
                    "iat" => Name::IssuedAt,
                    "kid" => Name::KeyId,
                    _ => Name::Other(name.into()),
                })
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Claims;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a payload object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Claims, A::Error> {
                let mut claims = Claims { kid: None, members: Map::new() };
                while let Some(name) = map.next_key::<String>()? {
                    if name == "kid" {
                        fill(&mut claims.kid, &mut map)?;
                    } else if claims.members.insert(name, map.next_value()?).is_some() {
                        return Err(A::Error::custom("repeated member"));
                    }
                }
                Ok(claims)
            }
        }
        deserializer.deserialize_map(Members)
    }
}
