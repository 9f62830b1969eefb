//! Who may use the operators' routes: the holder of `ADMIN_KEY` (AUT-01, AUT-06).

use super::super::app::App;
use super::super::error::ApiError;
use super::super::request::Ask;
use crate::guard::auth::{Credential, bearer};

/// Lets the request through when it carries the admin key.
///
/// # Errors
/// `too_many_auth_failures` for a locked address, whatever it sends; `unauthorized` otherwise.
/// Asking without a credential is no failure that counts.
pub fn authorize(app: &App, ask: &Ask) -> Result<(), ApiError> {
    let group = ask.address.group();
    if let Some(seconds) = app.lock_out.check(&group, ask.now) {
        return Err(ApiError::too_many_auth_failures(seconds));
    }
    match bearer(&ask.headers) {
        Credential::Key(key) if app.admin_key.matches(key) => Ok(()),
        Credential::Absent => Err(ApiError::unauthorized()),
        Credential::Key(_) | Credential::Unusable => {
            if app.lock_out.record_failure(group, ask.now) {
                tracing::warn!(address = %ask.address, "locked out after too many wrong keys");
            }
            Err(ApiError::unauthorized())
        }
    }
}
