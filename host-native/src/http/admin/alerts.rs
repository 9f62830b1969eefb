//! The state of alerts, and a test of the webhook (ADM-08).

use hyper::Response;
use serde_json::{Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::auth::{Principal, unavailable};
use super::trail;
use crate::side::alert::Alert;
use crate::side::credential::Role;

/// `GET /alerts`. Owners also read the key that receivers check signatures with.
pub(super) async fn state(app: &App, who: &Principal) -> Result<Response<Body>, ApiError> {
    let active = app.side.alerts().await.map_err(unavailable)?;
    let active: Vec<Value> = active.iter().map(Alert::to_json).collect();
    let mut body = json!({ "enabled": app.webhook.is_some(), "active": active });
    if let (Some(webhook), Some(body)) = (&app.webhook, body.as_object_mut())
        && who.role == Role::Owner
    {
        body.insert("signingKey".into(), webhook.key().into());
    }
    Ok(answer::json(&body))
}

/// `POST /alerts`: calls the webhook once, before it answers.
pub(super) async fn test(
    app: &App,
    ask: &Ask,
    who: &Principal,
) -> Result<Response<Body>, ApiError> {
    let Some(webhook) = &app.webhook else { return Err(ApiError::alerts_disabled()) };
    let alert = Alert {
        kind: "test",
        level: "info",
        room: None,
        message: format!("test alert ordered by {}", who.name),
        at: app.clock.now(),
    };
    let outcome = webhook.call(app.alert_text(&alert)).await;
    let told = outcome.as_ref().err().map(ToString::to_string);
    let detail = json!({ "before": null, "after": { "error": told } });
    trail::record(app, ask, who, "alert_tested", None, detail).await;
    match outcome {
        Ok(()) => Ok(answer::json(&json!({ "ok": true }))),
        Err(error) => Err(ApiError::webhook_failed().with_message(error.to_string())),
    }
}
