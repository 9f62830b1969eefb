//! Questions and answers as JSON: what the C ABI carries. Each operation is one function of the
//! core; unusable input answers `{"error":…}` and never traps.

use qm_core::id::{Place, RoomId};
use qm_core::target::RuleSet;
use qm_core::time::TimeMs;
use qm_core::token::{KeyRing, RefreshRule, VisitorToken};
use serde_json::{Value, json};

use crate::edge;

/// Answers the question `op` about a JSON text.
#[must_use]
pub fn answer(op: u32, input: &[u8]) -> String {
    let Ok(input) = serde_json::from_slice::<Value>(input) else {
        return json!({ "error": "the input is not JSON" }).to_string();
    };
    let answer = match op {
        1 => verify(&input),
        2 => sign(&input),
        3 => scope(&input),
        4 => jitter(&input),
        10 => edge::open(&input),
        11 => edge::plan(&input),
        12 => edge::conclude(&input),
        13 => edge::rules_query(&input),
        14 => edge::learn_rules(&input),
        15 => edge::verify_query(&input),
        16 => edge::verify_failures(&input),
        _ => None,
    };
    answer.unwrap_or_else(|| json!({ "error": "the input does not fit the operation" })).to_string()
}

fn keys(input: &Value, sign_v2: bool) -> Option<KeyRing> {
    let secret = input.get("secret")?.as_str()?;
    let previous = input.get("previous").and_then(Value::as_str).map(str::as_bytes);
    Some(KeyRing::new(secret.as_bytes(), previous, sign_v2))
}

fn payload(input: &Value) -> Option<VisitorToken> {
    let payload = input.get("payload")?;
    let number = |name: &str| payload.get(name).and_then(Value::as_u64);
    let place = match (number("n"), number("q")) {
        (Some(n), None) => Place::Ticket(n),
        (None, Some(q)) => Place::Reference(q),
        _ => return None,
    };
    Some(VisitorToken {
        room: RoomId::parse(payload.get("r")?.as_str()?).ok()?,
        place,
        generation: number("g")?,
        issued_at: TimeMs(number("iat")?),
    })
}

fn verify(input: &Value) -> Option<Value> {
    let now = TimeMs(input.get("now")?.as_u64()?);
    let max_age_ms = input.get("maxAgeSec")?.as_u64()?.saturating_mul(1000);
    let text = input.get("token")?.as_str()?;
    let Ok(token) = keys(input, false)?.verify_visitor(text, now, max_age_ms) else {
        return Some(json!({ "ok": false }));
    };
    let mut payload = json!({
        "r": token.room.as_str(),
        "g": token.generation,
        "iat": token.issued_at,
    });
    let (name, number) = match token.place {
        Place::Ticket(number) => ("n", number),
        Place::Reference(number) => ("q", number),
    };
    payload.as_object_mut()?.insert(name.into(), number.into());
    Some(json!({ "ok": true, "payload": payload }))
}

fn sign(input: &Value) -> Option<Value> {
    let sign_v2 = input.get("v2")?.as_bool()?;
    Some(json!({ "token": keys(input, sign_v2)?.sign_visitor(&payload(input)?) }))
}

fn scope(input: &Value) -> Option<Value> {
    let patterns = input.get("patterns")?.as_array()?.iter().filter_map(Value::as_str);
    let rules = RuleSet::parse(patterns).ok()?;
    let decision = rules.scope(input.get("url")?.as_str());
    let decided = decision.rule.and_then(|index| rules.iter().nth(index));
    let mut answer = json!({
        "scope": decision.scope.as_str(),
        "rule": decided.map(|(pattern, _)| pattern),
    });
    if let Some((_, action)) = decided {
        answer.as_object_mut()?.insert("action".into(), action.as_str().into());
    }
    Some(answer)
}

fn jitter(input: &Value) -> Option<Value> {
    let rule = RefreshRule { refresh_after_ms: input.get("refreshAfterMs")?.as_u64()? };
    Some(json!({ "jitterMs": rule.jitter_ms(&payload(input)?) }))
}
