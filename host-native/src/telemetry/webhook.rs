//! Calls to `ALERT_WEBHOOK_URL`: JSON with a signature that the receiver can check.

use std::fmt;
use std::time::Duration;

use hmac::{Hmac, Mac};
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use qm_core::digest::hex;
use sha2::Sha256;

use crate::client::{Call, CallError, Client};
use crate::config::Secret;

/// `sha256=` and the hex HMAC-SHA256 of the body under the signing key.
const SIGNATURE_HEADER: &str = "x-qm-signature";

/// The receiver of alerts.
#[derive(Clone)]
pub struct Webhook {
    url: Secret,
    key: String,
    client: Client,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook(..)")
    }
}

/// Why a call did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookError {
    /// It answered with this status.
    Refused(u16),
    /// It could not be reached.
    Unreachable(CallError),
}

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(status) => write!(f, "the webhook answered {status}"),
            Self::Unreachable(error) => write!(f, "the webhook was not reached: {error}"),
        }
    }
}

impl std::error::Error for WebhookError {}

impl Webhook {
    /// A webhook whose calls are signed with `key`.
    #[must_use]
    pub const fn new(url: Secret, key: String, client: Client) -> Self {
        Self { url, key, client }
    }

    /// The key that the receiver checks signatures with.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Calls it once.
    ///
    /// # Errors
    /// [`WebhookError`].
    pub async fn call(&self, json: String) -> Result<(), WebhookError> {
        let signature = signature(&self.key, json.as_bytes());
        let value = HeaderValue::from_str(&signature).expect("hex is header text");
        let call = Call {
            method: Method::POST,
            url: self.url.reveal(),
            headers: vec![(HeaderName::from_static(SIGNATURE_HEADER), value)],
            json: Some(json),
            time_max: TIME_MAX,
        };
        match self.client.send(call).await {
            Ok(answered) if (200..300).contains(&answered.status) => Ok(()),
            Ok(answered) => Err(WebhookError::Refused(answered.status)),
            Err(error) => Err(WebhookError::Unreachable(error)),
        }
    }
}

fn signature(key: &str, body: &[u8]) -> String {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key.as_bytes())
        .expect("HMAC takes keys of any length");
    mac.update(body);
    format!("sha256={}", hex(&mac.finalize().into_bytes()))
}

const TIME_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_a_plain_hmac() {
        // RFC 4231, test case 2.
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", b"what do ya want for nothing?"), expected);
    }
}
