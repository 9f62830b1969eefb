//! Verifying: the form, then the key the payload names, then the signature in constant time, then
//! the payload of the purpose. The current and the previous secret verify both forms at all times.

use alloc::string::String;

use hmac::Mac as _;
use serde_json::{Map, Value};

use super::key::{KeyedMac, Keys};
use super::wire::{Claims, Parts, VisitorClaims};
use super::{KeyRing, Purpose, TokenRefusal, VisitorToken};
use crate::id::Place;
use crate::time::TimeMs;

/// How far a token may be issued ahead of this clock (TOK-23): servers' clocks differ.
pub(super) const AHEAD_MS_MAX: u64 = 60_000;

impl KeyRing {
    /// Reads a visitor token.
    ///
    /// # Errors
    /// [`TokenRefusal`] when the text is not a token of this ring that is alive at `now`.
    pub fn verify_visitor(
        &self,
        text: &str,
        now: TimeMs,
        max_age_ms: u64,
    ) -> Result<VisitorToken, TokenRefusal> {
        let parts = Parts::split(text)?;
        let claims = VisitorClaims::parse(&parts.payload)?;
        self.check_signature(Purpose::Visitor, &parts, claims.kid.as_deref())?;
        let (Some(room), Some(generation), Some(issued_at)) = (claims.r, claims.g, claims.iat)
        else {
            return Err(TokenRefusal::WrongShape);
        };
        let place = match (claims.n, claims.q) {
            (Some(number), None) => Place::Ticket(number),
            (None, Some(number)) if number >= 1 => Place::Reference(number),
            _ => return Err(TokenRefusal::WrongShape),
        };
        if generation < 1 {
            return Err(TokenRefusal::WrongShape);
        }
        let issued_at = TimeMs(issued_at);
        if issued_at.ms_since(now) > AHEAD_MS_MAX {
            return Err(TokenRefusal::FromTheFuture);
        }
        if now.ms_since(issued_at) > max_age_ms {
            return Err(TokenRefusal::Expired);
        }
        Ok(VisitorToken { room, place, generation, issued_at })
    }

    /// Reads the members of a signed payload, `kid` aside. The caller checks that they are those of
    /// the purpose: legacy keys are shared by all purposes (TOK-05).
    ///
    /// # Errors
    /// [`TokenRefusal`] when the text is not signed by this ring for `purpose`.
    pub fn verify(&self, purpose: Purpose, text: &str) -> Result<Map<String, Value>, TokenRefusal> {
        let parts = Parts::split(text)?;
        let Claims { kid, members } = Claims::parse(&parts.payload)?;
        self.check_signature(purpose, &parts, kid.as_deref())?;
        Ok(members)
    }

    fn check_signature(
        &self,
        purpose: Purpose,
        parts: &Parts<'_>,
        kid: Option<&str>,
    ) -> Result<(), TokenRefusal> {
        let mut rings = core::iter::once(&self.current).chain(&self.previous);
        let Some(kid) = kid else {
            let signed = rings.any(|keys| is_signed(&keys.legacy, parts));
            return if signed { Ok(()) } else { Err(TokenRefusal::BadSignature) };
        };
        let keys: &Keys = rings.find(|keys| keys.kid == kid).ok_or(TokenRefusal::UnknownKey)?;
        let signed = is_signed(keys.of(purpose), parts);
        if signed { Ok(()) } else { Err(TokenRefusal::BadSignature) }
    }
}

fn is_signed(key: &KeyedMac, parts: &Parts<'_>) -> bool {
    key.clone().chain_update(parts.signed).verify_slice(&parts.signature).is_ok()
}
