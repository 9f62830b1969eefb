//! Checks of the vector files, shared by the native test and by runners on other targets. They take
//! the text of a file and return how many cases ran, or what differed.

use hmac::{Hmac, Mac};
use qm_core::id::{Place, RoomId};
use qm_core::target::{RuleSet, Scope};
use qm_core::time::TimeMs;
use qm_core::token::{KeyRing, Purpose, RefreshRule, VisitorToken};
use serde_json::{Value, json};
use sha2::Sha256;

/// Runs a token file: signing in both forms, the keys, and every accepted and refused token.
pub(crate) fn check_token(json: &str) -> Result<usize, String> {
    let file = parse(json)?;
    let (secret, previous) = (text(&file, "secret")?, text(&file, "previous")?);
    let ring = |v2| KeyRing::new(secret.as_bytes(), Some(previous.as_bytes()), v2);
    let (legacy, v2) = (ring(false), ring(true));
    equal("kid", v2.kid(), text(&file, "kid")?)?;
    let old = KeyRing::new(previous.as_bytes(), None, true);
    equal("kidPrevious", old.kid(), text(&file, "kidPrevious")?)?;
    check_purpose_keys(&file, &v2)?;
    for case in list(&file, "sign")? {
        let token = visitor_token(&case["payload"])?;
        equal("legacy", &legacy.sign_visitor(&token), text(case, "legacy")?)?;
        equal("v2", &v2.sign_visitor(&token), text(case, "v2")?)?;
    }
    let now = TimeMs(number(&file, "now")?);
    let max_age_ms = number(&file, "maxAgeSec")? * 1000;
    for case in list(&file, "cases")? {
        let got = v2.verify_visitor(text(case, "token")?, now, max_age_ms);
        let expected = &case["expect"];
        let same = match &got {
            Ok(token) => expected["ok"] == true && payload(token) == expected["payload"],
            Err(_) => expected["ok"] == false,
        };
        if !same {
            return Err(format!("{}: expected {expected}, got {got:?}", case["name"]));
        }
    }
    Ok(list(&file, "sign")?.len() + list(&file, "cases")?.len())
}

/// Each purpose signs with its own key, and only that purpose's reader accepts the result.
fn check_purpose_keys(file: &Value, ring: &KeyRing) -> Result<(), String> {
    let purposes = [
        ("visitor", Purpose::Visitor),
        ("monitor", Purpose::Monitor),
        ("session", Purpose::Session),
        ("operator", Purpose::Operator),
    ];
    for (name, purpose) in purposes {
        let signed = ring.sign(purpose, "{}");
        let (body, signature) = signed.split_once('.').ok_or("no dot")?;
        let key = unhex(text(&file["purposeKeysHex"], name)?)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|e| e.to_string())?;
        mac.update(body.as_bytes());
        equal(name, signature, &base64url(&mac.finalize().into_bytes()))?;
        for (other, reader) in purposes {
            if ring.verify(reader, &signed).is_ok() != (reader == purpose) {
                return Err(format!("{name} read as {other}"));
            }
        }
    }
    Ok(())
}

/// Runs a targeting file.
pub(crate) fn check_targeting(json: &str) -> Result<usize, String> {
    let file = parse(json)?;
    for case in list(&file, "cases")? {
        let patterns: Vec<&str> =
            list(case, "patterns")?.iter().filter_map(Value::as_str).collect();
        let rules = RuleSet::parse(patterns.iter().copied()).map_err(|e| format!("{case}: {e}"))?;
        let decision = rules.scope(case["url"].as_str());
        let decided = decision.rule.and_then(|index| rules.iter().nth(index));
        let mut got = json!({
            "scope": match decision.scope {
                Scope::In => "in",
                Scope::Out => "out",
                Scope::Unknown => "unknown",
            },
            "rule": decided.map(|(pattern, _)| pattern),
        });
        if let Some((_, action)) = decided {
            got["action"] = action.as_str().into();
        }
        if got != case["expect"] {
            return Err(format!("{case}: got {got}"));
        }
    }
    Ok(list(&file, "cases")?.len())
}

/// Runs a jitter file.
pub(crate) fn check_jitter(json: &str) -> Result<usize, String> {
    let file = parse(json)?;
    for case in list(&file, "cases")? {
        let token = visitor_token(&case["payload"])?;
        let rule = RefreshRule { refresh_after_ms: number(case, "refreshAfterMs")? };
        let (got, expected) = (rule.jitter_ms(&token), number(case, "jitterMs")?);
        if got != expected {
            return Err(format!("{case}: got {got}"));
        }
        let due = token.issued_at.plus_ms(rule.refresh_after_ms);
        if rule.close_at(&token) != due.plus_ms(expected) || !rule.is_due(token.issued_at, due) {
            return Err(format!("{case}: closes at {:?}", rule.close_at(&token)));
        }
    }
    Ok(list(&file, "cases")?.len())
}

fn visitor_token(payload: &Value) -> Result<VisitorToken, String> {
    let place = match (payload.get("n"), payload.get("q")) {
        (Some(_), None) => Place::Ticket(number(payload, "n")?),
        (None, Some(_)) => Place::Reference(number(payload, "q")?),
        _ => return Err(format!("{payload}: neither n nor q")),
    };
    Ok(VisitorToken {
        room: RoomId::parse(text(payload, "r")?).map_err(|e| e.to_string())?,
        place,
        generation: number(payload, "g")?,
        issued_at: TimeMs(number(payload, "iat")?),
    })
}

fn payload(token: &VisitorToken) -> Value {
    let mut payload =
        json!({"r": token.room.as_str(), "g": token.generation, "iat": token.issued_at.0});
    match token.place {
        Place::Ticket(number) => payload["n"] = number.into(),
        Place::Reference(number) => payload["q"] = number.into(),
    }
    payload
}

fn parse(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|e| e.to_string())
}

fn text<'a>(value: &'a Value, member: &str) -> Result<&'a str, String> {
    value[member].as_str().ok_or_else(|| format!("no text {member} in {value}"))
}

fn number(value: &Value, member: &str) -> Result<u64, String> {
    value[member].as_u64().ok_or_else(|| format!("no number {member} in {value}"))
}

fn list<'a>(value: &'a Value, member: &str) -> Result<&'a Vec<Value>, String> {
    value[member].as_array().ok_or_else(|| format!("no list {member}"))
}

fn equal(what: &str, got: &str, expected: &str) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: expected {expected}, got {got}")) }
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|e| e.to_string())).collect()
}

fn base64url(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}
