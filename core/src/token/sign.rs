//! Signing: always with the current secret, in the form the ring is set to.

use alloc::format;
use alloc::string::String;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::key::mac;
use super::{KeyRing, Purpose, VisitorToken};
use crate::id::Place;

impl KeyRing {
    /// Signs a visitor token. Members in the order `r`, `n` or `q`, `g`, `iat`, `kid`.
    #[must_use]
    pub fn sign_visitor(&self, token: &VisitorToken) -> String {
        let VisitorToken { room, place, generation, issued_at } = token;
        let (member, number) = match place {
            Place::Ticket(number) => ('n', number),
            Place::Reference(number) => ('q', number),
        };
        // The alphabet of room ids needs no escaping in JSON.
        let payload = format!(
            r#"{{"r":"{room}","{member}":{number},"g":{generation},"iat":{}}}"#,
            issued_at.0
        );
        self.sign(Purpose::Visitor, &payload)
    }

    /// Signs a payload, the text of a JSON object without `kid`, which v2 adds as last member.
    #[must_use]
    pub fn sign(&self, purpose: Purpose, payload_json: &str) -> String {
        let keys = &self.current;
        if !self.sign_v2 {
            return seal(&keys.legacy, payload_json);
        }
        let members = payload_json.trim_end();
        let members = members.strip_suffix('}').unwrap_or(members).trim_end();
        let comma = if members.ends_with('{') { "" } else { "," };
        seal(keys.of(purpose), &format!(r#"{members}{comma}"kid":"{}"}}"#, keys.kid))
    }
}

fn seal(key: &super::key::KeyedMac, payload: &str) -> String {
    let mut text = String::with_capacity(payload.len().saturating_mul(4) / 3 + 48);
    URL_SAFE_NO_PAD.encode_string(payload, &mut text);
    let signature = mac(key, text.as_bytes());
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut text);
    text
}
