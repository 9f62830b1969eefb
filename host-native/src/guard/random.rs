//! Texts that nobody can guess: ids of sessions, keys and tickets.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng as _;

/// `octets` random octets as base64url.
#[must_use]
pub fn random_text(octets: usize) -> String {
    let mut random = vec![0; octets];
    rand::rng().fill_bytes(&mut random);
    URL_SAFE_NO_PAD.encode(random)
}
