//! `POST /api/notify` while this server sends no mail.

use super::super::app::App;
use super::super::error::ApiError;
use super::super::request::Ask;

/// Answers a notification request: there is no mail to send (NOT-05).
#[must_use]
pub fn notify(app: &App, ask: &Ask) -> ApiError {
    match app.notify_quota.take(ask.address.group(), ask.now) {
        Ok(()) => ApiError::email_notify_disabled(),
        Err(wait) => {
            app.metrics.count_rate_limited("notify");
            ApiError::rate_limited(wait.0)
        }
    }
}
