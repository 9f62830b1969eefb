//! What is stored of a key instead of the key: an HMAC under a key of the purpose, with the `kid`
//! of the secret it was made with, so that a rotation of `SECRET` can be followed.

use alloc::string::String;

use super::key::{Keys, mac};
use super::{KeyRing, Purpose};
use crate::digest::hex;

/// The stored form of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verifier {
    /// The secret it was made with.
    pub kid: String,
    /// The HMAC, in lower-case hex.
    pub mac: String,
}

impl KeyRing {
    /// The verifier of `key` under the current secret.
    #[must_use]
    pub fn verifier(&self, purpose: Purpose, key: &str) -> Verifier {
        of(&self.current, purpose, key)
    }

    /// The verifier of `key` under the previous secret, while a rotation lasts.
    #[must_use]
    pub fn previous_verifier(&self, purpose: Purpose, key: &str) -> Option<Verifier> {
        self.previous.as_ref().map(|keys| of(keys, purpose, key))
    }

    /// The key that signs calls of this server to a webhook, in lower-case hex: receivers are given
    /// this one, never `SECRET`.
    #[must_use]
    pub fn webhook_key(&self) -> String {
        hex(&mac(self.current.of(Purpose::Operator), b"webhook"))
    }
}

fn of(keys: &Keys, purpose: Purpose, key: &str) -> Verifier {
    let mac = mac(keys.of(purpose), key.as_bytes());
    Verifier { kid: keys.kid.clone(), mac: hex(&mac) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_follows_secret_purpose_and_key() {
        let old = KeyRing::new(b"one", None, true);
        let new = KeyRing::new(b"two", Some(b"one"), true);
        let stored = old.verifier(Purpose::Operator, "qmo_key");
        assert_eq!(new.previous_verifier(Purpose::Operator, "qmo_key"), Some(stored.clone()));
        assert_eq!(old.previous_verifier(Purpose::Operator, "qmo_key"), None);
        for other in [
            new.verifier(Purpose::Operator, "qmo_key"),
            old.verifier(Purpose::Session, "qmo_key"),
            old.verifier(Purpose::Operator, "qmo_kez"),
        ] {
            assert_ne!(other, stored);
        }
        assert_eq!(old.webhook_key().len(), 64);
        assert_ne!(old.webhook_key(), new.webhook_key());
    }
}
