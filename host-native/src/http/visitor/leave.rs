//! `POST /api/leave`: the owner gives a place up.

use hyper::Response;
use qm_core::room::Command;
use serde_json::{Map, Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::claim::{claim_of, cookie_tokens, hear_of_places, named_token, session_ids};
use super::join::{refusal, take_quota};

/// Answers a leave whose body was read.
///
/// # Errors
/// `rate_limited`, `invalid_token_field`, `invalid_token` without the owner cookie.
pub async fn leave(
    app: &App,
    ask: &Ask,
    body: &Map<String, Value>,
) -> Result<Response<Body>, ApiError> {
    let token = match body.get("token") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(_) => return Err(ApiError::invalid_token_field()),
    };
    let room = match body.get("roomId") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.as_str()),
        Some(_) => return Err(ApiError::invalid_room_id()),
    };
    take_quota(app, ask, "leave")?;
    hear_of_places(app, ask, token).await;
    let held = named_token(app, ask, token, room)?;
    let room = app.rooms.find(&held.token.room);
    if let Some(room) = room.filter(|room| room.generation() == held.token.generation) {
        let ids = session_ids(ask, room.id());
        let mut all = vec![held];
        if token.is_none() {
            all.extend(cookie_tokens(app, ask, room.id()));
        }
        let claim = claim_of(&all, &ids, room.generation());
        room.submit(Command::Leave(claim)).await.map_err(refusal)?;
    }
    Ok(answer::json(&json!({ "ok": true })))
}
