//! The keys tokens are signed and verified with, derived once from `SECRET` and `SECRET_PREVIOUS`.
//! A keyed HMAC state is kept per key and cloned per use: keying anew would double the hashing.

use alloc::string::String;
use core::fmt::{self, Write as _};

use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::Purpose;

pub(super) type KeyedMac = Hmac<Sha256>;

/// The current secret's keys, and the previous one's while a rotation lasts (TOK-11).
#[derive(Clone)]
pub struct KeyRing {
    pub(super) current: Keys,
    pub(super) previous: Option<Keys>,
    pub(super) sign_v2: bool,
}

/// All keys of one secret.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) legacy: KeyedMac,
    pub(super) kid: String,
    pub(super) short_code: KeyedMac,
    visitor: KeyedMac,
    monitor: KeyedMac,
    session: KeyedMac,
    operator: KeyedMac,
}

impl KeyRing {
    /// Derives the keys. New tokens are signed with `secret`, in the v2 form if `sign_v2`.
    #[must_use]
    pub fn new(secret: &[u8], previous: Option<&[u8]>, sign_v2: bool) -> Self {
        Self { current: Keys::derive(secret), previous: previous.map(Keys::derive), sign_v2 }
    }

    /// The `kid` of the current secret.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.current.kid
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("kid", &self.current.kid).finish_non_exhaustive()
    }
}

impl Keys {
    fn derive(secret: &[u8]) -> Self {
        let hkdf = Hkdf::<Sha256>::new(None, secret);
        let purpose = |info: &str| keyed(&expand::<32>(&hkdf, info));
        let mut kid = String::with_capacity(8);
        for byte in expand::<4>(&hkdf, "qm:kid") {
            // Writing to a string cannot fail.
            let _ = write!(kid, "{byte:02x}");
        }
        Self {
            legacy: keyed(secret),
            kid,
            short_code: purpose("qm:ref"),
            visitor: purpose("qm:visitor"),
            monitor: purpose("qm:monitor"),
            session: purpose("qm:session"),
            operator: purpose("qm:operator"),
        }
    }

    pub(super) const fn of(&self, purpose: Purpose) -> &KeyedMac {
        match purpose {
            Purpose::Visitor => &self.visitor,
            Purpose::Monitor => &self.monitor,
            Purpose::Session => &self.session,
            Purpose::Operator => &self.operator,
        }
    }
}

fn expand<const N: usize>(hkdf: &Hkdf<Sha256>, info: &str) -> [u8; N] {
    let mut out = [0; N];
    // Fails only above 255 blocks of output; one block is the most asked for here.
    let expanded = hkdf.expand(info.as_bytes(), &mut out);
    debug_assert!(expanded.is_ok(), "HKDF output of at most one block");
    out
}

/// HMAC keyed as RFC 2104 § 2 says for keys of any length.
pub(super) fn keyed(key: &[u8]) -> KeyedMac {
    let mut block = [0; 64];
    if key.len() > block.len() {
        let digest = Sha256::digest(key);
        block.iter_mut().zip(digest).for_each(|(slot, byte)| *slot = byte);
    } else {
        block.iter_mut().zip(key).for_each(|(slot, byte)| *slot = *byte);
    }
    <KeyedMac as hmac::digest::KeyInit>::new(&block.into())
}

/// The signature of a text.
pub(super) fn mac(keyed: &KeyedMac, text: &[u8]) -> [u8; 32] {
    keyed.clone().chain_update(text).finalize().into_bytes().into()
}
