//! Named operators (ADM-01, ADM-02): a key is shown once and stored as a verifier.

use hyper::Response;
use qm_core::token::Purpose;
use serde_json::{Map, Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::auth::{OPERATOR_PREFIX, Principal, unavailable};
use super::trail;
use crate::guard::random::random_text;
use crate::side::credential::{Operator, Role};

/// `GET /operators`.
pub(super) async fn list(app: &App) -> Result<Response<Body>, ApiError> {
    let operators = app.side.operators().await.map_err(unavailable)?;
    let tell = |operator: &Operator| {
        json!({
            "id": operator.id,
            "name": operator.name,
            "role": operator.role.as_str(),
            "createdAt": operator.created_at,
        })
    };
    let operators: Vec<Value> = operators.iter().map(tell).collect();
    Ok(answer::json(&json!({ "operators": operators })))
}

/// `POST /operators`.
pub(super) async fn add(
    app: &App,
    ask: &Ask,
    who: &Principal,
    body: &Map<String, Value>,
) -> Result<Response<Body>, ApiError> {
    refuse_unknown(body, &["name", "role"])?;
    let name = name_in(body, "name", "invalid_name")?;
    let name = name.ok_or_else(|| ApiError::invalid_field("invalid_name", NAME_BOUND))?;
    let role = body.get("role").and_then(Value::as_str).and_then(Role::parse);
    let role = role.ok_or_else(ApiError::invalid_role)?;
    let key = format!("{OPERATOR_PREFIX}{}", random_text(30));
    let operator = Operator {
        id: format!("op_{}", random_text(9)),
        name: name.clone(),
        role,
        created_at: app.clock.now(),
        verifier: app.keys.verifier(Purpose::Operator, &key),
        past_kids: vec![],
    };
    let id = operator.id.clone();
    app.side.add_operator(operator).await.map_err(unavailable)?;
    let after = json!({ "id": id, "name": name, "role": role.as_str() });
    let detail = json!({ "before": null, "after": after });
    trail::record(app, ask, who, "operator_created", None, detail).await;
    Ok(answer::json(&json!({
        "ok": true, "id": id, "name": name, "role": role.as_str(), "key": key,
    })))
}

/// `DELETE /operators/:id`.
pub(super) async fn remove(
    app: &App,
    ask: &Ask,
    who: &Principal,
    id: &str,
) -> Result<Response<Body>, ApiError> {
    let removed = app.side.remove_operator(id).await.map_err(unavailable)?;
    let removed = removed.ok_or_else(ApiError::operator_not_found)?;
    app.board.revoked();
    let before = json!({ "id": id, "name": removed.name, "role": removed.role.as_str() });
    let detail = json!({ "before": before, "after": null });
    trail::record(app, ask, who, "operator_revoked", None, detail).await;
    Ok(answer::json(&json!({ "ok": true })))
}

/// Refuses members that a route does not have (ADM-35).
pub(super) fn refuse_unknown(body: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match body.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let name: String = name.chars().take(60).collect();
            Err(ApiError::unknown_field(format!("{name:?} is no field of this route")))
        }
    }
}

/// A short text for people; `None` when it is absent or null.
pub(super) fn name_in(
    body: &Map<String, Value>,
    member: &str,
    code: &'static str,
) -> Result<Option<String>, ApiError> {
    match body.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let text = text.trim();
            let fits = (1..=NAME_CHARS_MAX).contains(&text.chars().count());
            if !fits || text.chars().any(char::is_control) {
                return Err(ApiError::invalid_field(code, NAME_BOUND));
            }
            Ok(Some(text.to_owned()))
        }
        Some(_) => Err(ApiError::invalid_field(code, NAME_BOUND)),
    }
}

const NAME_CHARS_MAX: usize = 120;
const NAME_BOUND: &str = "must be 1 to 120 characters without control characters";
