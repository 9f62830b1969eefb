//! Runs the connectors' shared table of door situations through the core.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use qm_core::edge::{Answer, Ask, Edge, Facts, Step, Written};
use qm_core::reply::Reply;
use qm_core::time::TimeMs;
use serde_json::{Value, json};

/// Replaces `${name}` and `${text*count}`.
fn expand(text: &str, tokens: &Value) -> String {
    let mut parts = text.split("${");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap();
        match name.split_once('*') {
            Some((piece, count)) => out.push_str(&piece.repeat(count.parse().unwrap())),
            None => out.push_str(tokens[name].as_str().expect(name)),
        }
        out.push_str(rest);
    }
    out
}

fn expanded(value: &Value, tokens: &Value) -> Value {
    match value {
        Value::String(text) => expand(text, tokens).into(),
        Value::Array(list) => list.iter().map(|value| expanded(value, tokens)).collect(),
        Value::Object(map) => {
            map.iter().map(|(name, value)| (name.clone(), expanded(value, tokens))).collect()
        }
        other => other.clone(),
    }
}

/// The members of `over` laid over those of `base`.
fn laid_over(base: &Value, over: &Value) -> Value {
    let mut all = base.as_object().unwrap().clone();
    all.extend(over.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
    all.into()
}

fn edge(settings: &Value, rules: &Value, now: TimeMs) -> Edge {
    let text = |name: &str| settings[name].as_str().unwrap_or_default();
    let (mut edge, _) = Edge::new(&Written {
        server: text("server"),
        room: text("room"),
        public_api_key: text("publicApiKey"),
        gate: text("gate"),
        visitor_key: text("visitorKey"),
        trust_proxy: "cf",
        passes_server_host: true,
        ..Written::default()
    });
    if let Some(rules) = rules.as_array() {
        let entry = |rule: &Value| {
            let rule = rule.as_str().unwrap();
            match rule.strip_prefix('!') {
                Some(pattern) => json!({ "pattern": pattern, "action": "ignore" }),
                None => json!({ "pattern": rule, "action": "queue" }),
            }
        };
        let patterns: Vec<Value> = rules.iter().map(entry).collect();
        assert!(edge.rules_query(now).is_some(), "the rules are asked for");
        let body = json!({ "patterns": patterns }).to_string();
        edge.learn_rules(200, Some("\"1\""), &body, now);
    }
    edge
}

fn first_step(edge: &Edge, request: &Value, now: TimeMs) -> Step {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        headers.push((name.to_lowercase(), value.as_str().unwrap().to_owned()));
    }
    if let Some(address) = request["address"].as_str() {
        headers.push(("cf-connecting-ip".into(), address.into()));
    }
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let facts = Facts {
        method: request["method"].as_str().unwrap(),
        url: request["url"].as_str().unwrap(),
        headers: &headers,
        peer: None::<IpAddr>,
        address: None,
    };
    edge.plan(&facts, now)
}

/// What differs between a question and what the row says was sent.
fn compare_question(ask: &Ask, settings: &Value, sent: &Value) -> String {
    let mut faults = String::new();
    let (target, query) = ask.query.url.split_once('?').unwrap();
    let server = settings["server"].as_str().unwrap().trim().trim_end_matches('/');
    if target != format!("{server}/api/v1/check") {
        writeln!(faults, "asked {target}").unwrap();
    }
    let bytes = ask.query.url.len() - server.len();
    if bytes > 4096 {
        writeln!(faults, "a target of {bytes} bytes").unwrap();
    }
    let header = |name: &str| {
        ask.query.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    };
    let key = settings["publicApiKey"].as_str().unwrap().trim();
    if header("authorization") != Some(&format!("Bearer {key}")) {
        writeln!(faults, "authorization {:?}", header("authorization")).unwrap();
    }
    let pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let room = json!({ "roomId": settings["room"].as_str().unwrap().trim() });
    let wanted = laid_over(&room, sent);
    for (name, value) in wanted.as_object().unwrap() {
        let mut values = pairs.iter().filter(|(found, _)| found == name);
        let got = match name.as_str() {
            "key" => header("x-qm-session"),
            _ => values.next().map(|(_, value)| value.as_str()),
        };
        if got != value.as_str() || values.next().is_some() {
            writeln!(faults, "sent {name}={got:?}, not {value}").unwrap();
        }
    }
    faults
}

fn conclude(edge: &Edge, ask: Ask, answer: &Value) -> Step {
    let body = match &answer["body"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let answer = match answer["failure"].as_str() {
        Some("timeout") => Answer::Timeout,
        Some(_) => Answer::Unreachable,
        None => {
            let status = answer["status"].as_u64().unwrap().try_into().unwrap();
            Answer::Http { status, body: &body }
        }
    };
    // The pending check survives the way through JSON, as hosts in JavaScript carry it.
    let pending = serde_json::to_string(&ask.pending).unwrap();
    edge.conclude(serde_json::from_str(&pending).unwrap(), &answer, false)
}

/// The cookie lines a row expects.
fn cookies(expect: &Value, settings: &Value) -> Vec<String> {
    let name = format!("qm_{}", settings["room"].as_str().unwrap().trim());
    let (value, age) = match &expect["cookie"] {
        Value::Null => return Vec::new(),
        Value::String(_) => ("", 0),
        set => (set["set"].as_str().unwrap(), 86_400),
    };
    let secure = if expect["cookie"]["secure"] == false { "" } else { "; Secure" };
    vec![format!("{name}={value}; Max-Age={age}; Path=/; SameSite=Lax; HttpOnly{secure}")]
}

fn outcome_of_reply(reply: &Reply, expect: &Value) -> Value {
    let header = |name: &str| {
        reply.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| &**value)
    };
    assert_eq!(header("cache-control"), Some("no-store"));
    let location = header("location");
    let kind = match (reply.status, location) {
        (302, Some(location)) if location.contains("/w/") => "waiting",
        (302, Some(_)) => "strip",
        (503, None) => "refuse",
        other => panic!("answered {other:?}"),
    };
    let mut got = json!({ "outcome": kind });
    if kind == "waiting" {
        let (base, query) = location.unwrap().split_once('?').unwrap_or((location.unwrap(), ""));
        let mut base = base.to_owned();
        got["returnTo"] = Value::Null;
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "qm_return" => got["returnTo"] = value.into(),
                _ => write!(base, "?{name}={value}").unwrap(),
            }
        }
        got["location"] = base.into();
    } else if kind == "strip" {
        got["location"] = location.into();
    }
    assert!(location.is_none_or(|text| text.len() < 4096 + 64), "{expect}");
    got
}

fn run(table: &Value, row: &Value) -> Result<(), String> {
    let now = TimeMs(table["now"].as_u64().unwrap());
    let settings = laid_over(&table["settings"], &row["settings"]);
    let request = laid_over(&table["request"], &row["request"]);
    let edge = edge(&settings, &row["rules"], now);
    let mut step = first_step(&edge, &request, now);
    for (index, exchange) in row["server"].as_array().unwrap().iter().enumerate() {
        let Step::Ask(ask) = step else { return Err(format!("no question {index}: {step:?}")) };
        let faults = compare_question(&ask, &settings, &exchange["sent"]);
        if !faults.is_empty() {
            return Err(faults);
        }
        step = conclude(&edge, ask, &exchange["answer"]);
    }
    let mut expect = row["expect"].clone();
    let wanted_cookies = cookies(&expect, &settings);
    expect.as_object_mut().unwrap().remove("cookie");
    let (got, got_cookies) = match step {
        Step::Ask(ask) => return Err(format!("one question too many: {}", ask.query.url)),
        Step::Forward(forward) => {
            let mut got = json!({ "outcome": "forward" });
            forward.failover.into_iter().for_each(|value| got["failover"] = value.into());
            forward.url.into_iter().for_each(|url| got["url"] = url.into());
            (got, forward.cookies)
        }
        Step::Respond(respond) => {
            let set = respond.reply.headers.iter().filter(|(name, _)| *name == "set-cookie");
            let cookies = set.map(|(_, value)| value.to_string()).collect();
            (outcome_of_reply(&respond.reply, &expect), cookies)
        }
    };
    if expect["outcome"] == "waiting" && expect.get("location").is_none() {
        let server = settings["server"].as_str().unwrap().trim().trim_end_matches('/');
        expect["location"] = format!("{server}/w/checkout").into();
    }
    if got != expect || got_cookies != wanted_cookies {
        return Err(format!("{got} {got_cookies:?}\n  not {expect} {wanted_cookies:?}"));
    }
    Ok(())
}

#[test]
fn every_row_comes_out_as_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../connectors/behaviour.json");
    let table: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert!(rows.len() >= 100, "the table shrank to {}", rows.len());
    let mut faults = String::new();
    for row in rows {
        let row = expanded(row, &table["tokens"]);
        if let Err(fault) = run(&table, &row) {
            writeln!(faults, "{}: {fault}", row["name"]).unwrap();
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}
