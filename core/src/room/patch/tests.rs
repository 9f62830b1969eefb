//! One table row per value: the code it is refused with, or that it is accepted.

use std::{format, vec};

use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOW: TimeMs = TimeMs(1_800_000_000_000);

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn new_room() -> Settings {
    Settings::new(&RoomId::parse("room").unwrap(), NOW)
}

fn edit(current: &Settings, body: Value) -> Result<Settings, PatchError> {
    Patch::parse(&map(body))?.apply(current, NOW.plus_ms(1))
}

fn listed(settings: &Settings) -> Map<String, Value> {
    let mut out = Map::new();
    settings.write_list_fields(&mut out);
    out
}

fn field(name: &str, value: Value) -> Value {
    let mut body = Map::new();
    body.insert(name.to_string(), value);
    Value::Object(body)
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Origins or rules of a list of this length.
fn many(length: usize, item: impl Fn(usize) -> String) -> Value {
    (0..length).map(item).collect()
}

fn sites(length: usize) -> Value {
    many(length, |i| format!("https://s{i}.example.com"))
}

fn accepted_numbers() -> Vec<(&'static str, Value)> {
    vec![
        ("ratePerMinute", json!(0)),
        ("ratePerMinute", json!(0.5)),
        ("ratePerMinute", json!(1_000_000)),
        ("maxConcurrent", json!(1)),
        ("maxConcurrent", json!(10_000_000)),
        ("maxConcurrent", json!(null)),
        ("passedTtlSec", json!(1)),
        ("passedTtlSec", json!(86_400)),
        ("sessionMaxSec", json!(null)),
        ("sessionTtlSec", json!(86_400)),
        ("sessionTtlSec", json!(1)),
        ("sessionMaxSec", json!(1)),
        ("sessionMaxSec", json!(604_800)),
        ("presenceSec", json!(5)),
        ("presenceSec", json!(3600)),
        ("presenceSec", json!(null)),
        ("queueMaxPerIp", json!(1)),
        ("queueMaxPerIp", json!(100_000)),
        ("queueMaxPerIp", json!(null)),
        ("preQueueMaxPerIp", json!(1)),
        ("preQueueMaxPerIp", json!(100_000)),
        ("preQueueMaxPerIp", json!(null)),
    ]
}

fn accepted_others() -> Vec<(&'static str, Value)> {
    let long_url = format!("https://shop.example.com/{}", "x".repeat(2048 - 25));
    vec![
        ("name", json!("x")),
        ("name", json!("\u{0e04}\u{0e34}\u{0e27}".repeat(40))),
        ("targetUrl", json!(long_url)),
        ("targetUrl", json!("HTTP://Shop.example.com:80/a?b=@#c")),
        ("targetUrl", json!(null)),
        ("proxyOrigin", json!("http://127.0.0.1:9")),
        ("proxyOrigin", json!("http://[::1]:8080")),
        ("proxyOrigin", json!(null)),
        ("returnOrigins", sites(50)),
        ("returnOrigins", json!([])),
        ("tagOrigins", json!(["https://landing.example.com:8443"])),
        ("tagOrigins", json!([])),
        ("tagOrigins", sites(50)),
        ("tagOrigins", json!(null)),
        ("urlPatterns", many(25, |i| format!("/p{i}"))),
        ("urlPatterns", json!([format!("/{}", "x".repeat(299))])),
        ("urlPatterns", json!([format!("/{}", "\u{0e01}".repeat(299))])),
        ("urlPatterns", json!([format!("/{}", "a*".repeat(10))])),
        ("urlPatterns", json!(["/checkout*", "!/checkout/thank-you", "https://a.example/b"])),
        ("urlPatterns", json!([])),
        ("opensAt", json!(0)),
        ("opensAt", json!(INTEGER_MAX)),
        ("opensAt", json!(null)),
        ("onBackendDown", json!("open")),
        ("onBackendDown", json!("closed")),
        ("state", json!("paused")),
        ("state", json!("bypass")),
        ("state", json!("active")),
        ("protection", json!({"mode": "monitor"})),
        ("protection", json!({"mode": "enforce"})),
        ("protection", json!({"mode": "off"})),
        ("autotune", json!({"mode": "off", "minRate": 10, "maxRate": 200, "targetLatencyMs": 800})),
        (
            "autotune",
            json!({"mode": "on", "minRate": 1, "maxRate": 6.2, "targetLatencyMs": 1,
                   "probeUrl": "http://10.0.0.1/health"}),
        ),
        ("autotune", json!(null)),
        ("autoActivate", json!({"mode": "on", "arrivalsPerMin": 500, "quietMin": 5})),
        ("autoActivate", json!(null)),
        (
            "branding",
            json!({"title": "Please wait", "accent": "#a04", "background": "#AA0044",
                   "logoUrl": "https://cdn.example.com/l.svg"}),
        ),
        ("branding", json!({})),
    ]
}

#[test]
fn accepted_values_read_back_as_written() {
    let mut room = new_room();
    for (name, value) in accepted_numbers().into_iter().chain(accepted_others()) {
        let note = format!("{name}={value}");
        room = edit(&room, field(name, value.clone())).unwrap_or_else(|e| panic!("{note}: {e}"));
        let key = if name == "ratePerMinute" { "rate" } else { name };
        assert_eq!(listed(&room).get(key), Some(&value), "{note}");
    }
}

#[test]
fn other_accepted_forms() {
    for (body, key, want) in [
        (json!({"rate": 25}), "rate", json!(25)),
        (json!({"rate": 30, "ratePerMinute": 30.0}), "rate", json!(30)),
        (json!({"ratePerMinute": -0.0}), "rate", json!(0)),
        (json!({"maxConcurrent": 4e2}), "maxConcurrent", json!(400)),
        (
            json!({"proxyOrigin": "HTTP://Origin.internal:80/"}),
            "proxyOrigin",
            json!("http://origin.internal"),
        ),
        (json!({"opensAt": "2099-01-01T02:00:00+02:00"}), "opensAt", json!(4_070_908_800_000_u64)),
        (json!({"protection": null}), "protection", json!({"mode": "off"})),
        (json!({"autotune": {"mode": "off"}}), "autotune", json!(null)),
        (json!({"autoActivate": {"mode": "off"}}), "autoActivate", json!(null)),
        (
            json!({"returnOrigins": [
                "https://a.example",
                "https://A.example:443",
                "https://b.example",
            ]}),
            "returnOrigins",
            json!(["https://a.example", "https://b.example"]),
        ),
        (
            json!({"branding": {"title": "", "message": "", "logoUrl": null, "messageAt": 5}}),
            "branding",
            json!({}),
        ),
    ] {
        let room = edit(&new_room(), body.clone()).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert_eq!(listed(&room).get(key), Some(&want), "{body}");
    }
}

/// A field, a value it refuses, and what its text must mention.
type Refused = (&'static str, Value, &'static str);

fn refused_numbers() -> Vec<Refused> {
    vec![
        ("ratePerMinute", json!(-0.1), "from 0"),
        ("ratePerMinute", json!(1_000_001), "1000000"),
        ("ratePerMinute", json!("60"), ""),
        ("ratePerMinute", json!(null), ""),
        ("ratePerMinute", json!(true), ""),
        ("ratePerMinute", json!([60]), ""),
        ("maxConcurrent", json!(0), "1"),
        ("maxConcurrent", json!(10_000_001), "10000000, or null"),
        ("maxConcurrent", json!(1.5), ""),
        ("maxConcurrent", json!("5"), ""),
        ("passedTtlSec", json!(0), "1"),
        ("passedTtlSec", json!(86_401), "86400"),
        ("passedTtlSec", json!(null), ""),
        ("passedTtlSec", json!("1h"), ""),
        ("sessionTtlSec", json!(0), "1"),
        ("sessionTtlSec", json!(86_401), "86400"),
        ("sessionTtlSec", json!({}), ""),
        ("sessionTtlSec", json!(null), ""),
        ("sessionMaxSec", json!(0), "1"),
        ("sessionMaxSec", json!(604_801), "604800"),
        ("sessionMaxSec", json!("never"), ""),
        ("presenceSec", json!(4), "5"),
        ("presenceSec", json!(3601), "3600"),
        ("presenceSec", json!(true), ""),
        ("queueMaxPerIp", json!(0), "1"),
        ("queueMaxPerIp", json!(100_001), "100000"),
        ("queueMaxPerIp", json!(4_294_967_297_u64), "100000"),
        ("queueMaxPerIp", json!("all"), ""),
        ("preQueueMaxPerIp", json!(0), "1"),
        ("preQueueMaxPerIp", json!(100_001), "100000"),
        ("preQueueMaxPerIp", json!(2.5), ""),
    ]
}

fn refused_texts() -> Vec<Refused> {
    let long_url = format!("https://shop.example.com/{}", "x".repeat(2048));
    vec![
        ("name", json!(""), "1"),
        ("name", json!("x".repeat(121)), "120"),
        ("name", json!("a\nb"), "control"),
        ("name", json!("a\u{85}b"), "control"),
        ("name", json!(5), ""),
        ("name", json!(null), ""),
        ("name", json!(["a"]), ""),
        ("targetUrl", json!(7), ""),
        ("targetUrl", json!(""), ""),
        ("targetUrl", json!(long_url), "2048"),
        ("targetUrl", json!("ftp://shop.example.com/"), "http"),
        ("targetUrl", json!("javascript://shop.example.com/%0aalert(1)"), "http"),
        ("targetUrl", json!("//shop.example.com/"), ""),
        ("targetUrl", json!("https:shop.example.com"), ""),
        ("targetUrl", json!("https:///shop.example.com"), ""),
        ("targetUrl", json!("https://a@shop.example.com/"), "user name"),
        ("targetUrl", json!("https://@shop.example.com/"), "user name"),
        ("targetUrl", json!("https://shop.example.com/\r\nSet-Cookie: a"), ""),
        ("targetUrl", json!("https://shop.example.com\\@evil.example/"), ""),
        ("targetUrl", json!(" https://shop.example.com/"), ""),
        ("targetUrl", json!("https://shop.example.com:99999/"), ""),
        ("proxyOrigin", json!(7), ""),
        ("proxyOrigin", json!("http://127.0.0.1:9/app"), "path"),
        ("proxyOrigin", json!("http://127.0.0.1:9?a"), ""),
        ("proxyOrigin", json!("http://127.0.0.1:9#a"), ""),
        ("proxyOrigin", json!("http://u:p@127.0.0.1:9"), "password"),
        ("proxyOrigin", json!("127.0.0.1:9"), "scheme"),
    ]
}

fn refused_lists() -> Vec<Refused> {
    vec![
        ("branding", json!("blue"), "object"),
        ("branding", json!(null), "object"),
        ("branding", json!({"colour": "#fff"}), "accent"),
        ("branding", json!({"message": 7}), "2000"),
        ("branding", json!({"message": "x".repeat(2001)}), "2000"),
        ("branding", json!({"title": "x".repeat(121)}), "120"),
        ("branding", json!({"accent": "red"}), "#rrggbb"),
        ("branding", json!({"accent": "#ffff"}), "#rrggbb"),
        ("branding", json!({"background": "#ggg"}), "#rrggbb"),
        ("branding", json!({"background": "#fff;"}), "#rrggbb"),
        ("branding", json!({"logoUrl": "data:image/png;base64,"}), "http"),
        ("returnOrigins", json!("https://a.example.com"), "list"),
        ("returnOrigins", json!([7]), ""),
        ("returnOrigins", json!(null), ""),
        ("returnOrigins", json!(["*"]), ""),
        ("returnOrigins", json!(["ftp://a.example.com"]), ""),
        ("returnOrigins", sites(51), "50"),
        ("tagOrigins", json!({}), "list"),
        ("tagOrigins", json!([null]), ""),
        ("tagOrigins", sites(51), "50"),
        ("urlPatterns", json!("/checkout"), "list"),
        ("urlPatterns", json!(null), "list"),
        ("urlPatterns", json!([7]), "list"),
    ]
}

fn refused_modes() -> Vec<Refused> {
    let tune = |name: &str, value: Value| {
        let mut object =
            map(json!({"mode": "on", "minRate": 1, "maxRate": 9, "targetLatencyMs": 500}));
        object.insert(name.to_string(), value);
        Value::Object(object)
    };
    let activate = |name: &str, value: Value| {
        let mut object = map(json!({"mode": "on", "arrivalsPerMin": 500, "quietMin": 5}));
        object.insert(name.to_string(), value);
        Value::Object(object)
    };
    vec![
        ("opensAt", json!("someday"), "RFC 3339"),
        ("opensAt", json!(true), ""),
        ("opensAt", json!(-1), "from 0"),
        ("opensAt", json!(1.5), ""),
        ("opensAt", json!(9_007_199_254_740_992_u64), "9007199254740991"),
        ("opensAt", json!("4070908800000"), ""),
        ("state", json!("scheduled"), "active, paused, bypass"),
        ("state", json!("open"), ""),
        ("state", json!(null), ""),
        ("onBackendDown", json!("pass"), "closed, open"),
        ("onBackendDown", json!(null), ""),
        ("onBackendDown", json!(true), ""),
        ("protection", json!("enforce"), "object"),
        ("protection", json!({}), "off, monitor, enforce"),
        ("protection", json!({"mode": "on"}), "off, monitor, enforce"),
        ("protection", json!({"mode": "off", "x": 1}), "mode"),
        ("autotune", json!("on"), "object"),
        ("autotune", json!({}), "off, on"),
        ("autotune", json!({"mode": "on"}), "minRate"),
        ("autotune", tune("mode", json!("fast")), "off, on"),
        ("autotune", tune("minRate", json!(10)), "maxRate"),
        ("autotune", tune("minRate", json!("1")), "1000000"),
        ("autotune", tune("maxRate", json!(1_000_001)), "1000000"),
        ("autotune", tune("targetLatencyMs", json!(0)), "600000"),
        ("autotune", tune("targetLatencyMs", json!(600_001)), "600000"),
        ("autotune", tune("probeUrl", json!("file:///etc/passwd")), "http"),
        ("autotune", tune("speed", json!(1)), "probeUrl"),
        ("autoActivate", json!(7), "object"),
        ("autoActivate", json!({"mode": "maybe"}), "off, on"),
        ("autoActivate", json!({"mode": "on"}), "arrivalsPerMin"),
        ("autoActivate", activate("arrivalsPerMin", json!(0)), "100000000"),
        ("autoActivate", activate("quietMin", json!(1441)), "1440"),
        ("autoActivate", activate("quietMin", json!(0.5)), "1440"),
        ("autoActivate", activate("other", json!(1)), "quietMin"),
    ]
}

fn refused_values() -> impl Iterator<Item = Refused> {
    [refused_numbers(), refused_texts(), refused_lists(), refused_modes()].into_iter().flatten()
}

#[test]
fn refused_values_name_the_field_and_the_bound() {
    for (name, value, mentions) in refused_values() {
        let note = format!("{name}={value}");
        let error = edit(&new_room(), field(name, value)).expect_err(&note);
        assert_eq!(error.code, format!("invalid_{}", snake(name)), "{note}");
        assert!(error.message.starts_with(name), "{note}: {error}");
        assert!(error.message.contains(mentions), "{note}: {error}");
    }
}

#[test]
fn refused_rules_name_the_bound() {
    for (rules, mentions) in [
        (many(26, |i| format!("/p{i}")), "25"),
        (json!([format!("/{}", "x".repeat(300))]), "300"),
        (json!([format!("/{}", "a*".repeat(11))]), "10"),
        (json!(["checkout"]), ""),
        (json!(["!checkout"]), ""),
        (json!(["/checkout#top"]), ""),
    ] {
        let error = edit(&new_room(), field("urlPatterns", rules.clone())).expect_err("refused");
        assert_eq!(error.code, "invalid_url_patterns", "{rules}");
        assert!(error.message.contains(mentions), "{rules}: {error}");
    }
}

#[test]
fn refused_bodies() {
    for (body, code) in [
        (json!({"redacted": true}), "redacted_shape"),
        (json!({"redacted": true, "g": 1, "name": 7}), "redacted_shape"),
        (json!({"redacted": false}), "unknown_field"),
        (json!({"redacted": 1}), "unknown_field"),
        (json!({"g": 1, "name": 7}), "unknown_field"),
        (json!({"id": "room"}), "unknown_field"),
        (json!({"Name": "a"}), "unknown_field"),
        (json!({"__proto__": {}}), "unknown_field"),
        (json!({"targetingRev": 1}), "unknown_field"),
        (json!({"rate": 31, "ratePerMinute": 32}), "conflicting_field"),
        (json!({"rate": -1}), "invalid_rate_per_minute"),
        (json!({"rate": 1, "ratePerMinute": "1"}), "invalid_rate_per_minute"),
    ] {
        assert_eq!(Patch::parse(&map(body.clone())).expect_err("refused").code, code, "{body}");
    }
}

#[test]
fn room_bodies() {
    let (id, patch) = parse_room_body(&map(json!({"id": "dk_x", "name": "n"}))).unwrap();
    assert!(id.is_reserved() && patch.name.as_deref() == Some("n"));
    for (body, code) in [
        (json!({}), "invalid_room_id"),
        (json!({"id": 7, "name": 7}), "invalid_room_id"),
        (json!({"id": "a b"}), "invalid_room_id"),
        (json!({"id": "", "nmae": 1}), "unknown_field"),
        (json!({"id": "a", "g": 1, "redacted": true}), "redacted_shape"),
        (json!({"id": "a", "name": 7}), "invalid_name"),
    ] {
        assert_eq!(parse_room_body(&map(body.clone())).expect_err("refused").code, code, "{body}");
    }
}

#[test]
fn action_bodies() {
    type Parse = fn(&Map<String, Value>) -> Result<(), PatchError>;
    let rate: Parse = |body| Patch::parse_rate(body).map(drop);
    let state: Parse = |body| Patch::parse_state(body).map(drop);
    let schedule: Parse = |body| Patch::parse_schedule(body).map(drop);
    let flush: Parse = |body| parse_flush_count(body).map(drop);
    let ticket: Parse = |body| parse_ticket(body).map(drop);
    for (parse, body, code) in [
        (rate, json!({"rate": 7, "ratePerMinute": 7}), ""),
        (rate, json!({"ratePerMinute": 0.25}), ""),
        (rate, json!({"rate": 7, "ratePerMinute": 8}), "conflicting_field"),
        (rate, json!({"rate": "fast"}), "invalid_rate_per_minute"),
        (rate, json!({}), "invalid_rate_per_minute"),
        (rate, json!({"rate": 7, "name": "n"}), "unknown_field"),
        (state, json!({"state": "paused"}), ""),
        (state, json!({"state": ""}), "invalid_state"),
        (state, json!({}), "invalid_state"),
        (state, json!({"state": "paused", "id": "a"}), "unknown_field"),
        (schedule, json!({"opensAt": null}), ""),
        (schedule, json!({"preQueueMaxPerIp": 3}), ""),
        (schedule, json!({}), "nothing_to_change"),
        (schedule, json!({"opensAt": "soon", "preQueueMaxPerIp": 9}), "invalid_opens_at"),
        (schedule, json!({"opensAt": null, "preQueueMaxPerIp": 0}), "invalid_pre_queue_max_per_ip"),
        (schedule, json!({"opensAt": 1, "state": "active"}), "unknown_field"),
        (flush, json!({"count": 1}), ""),
        (flush, json!({"count": 0}), "invalid_count"),
        (flush, json!({"count": 1.5}), "invalid_count"),
        (flush, json!({"count": "3"}), "invalid_count"),
        (flush, json!({"count": null}), "invalid_count"),
        (flush, json!({}), "invalid_count"),
        (flush, json!({"count": 1, "__proto__": 2}), "unknown_field"),
        (ticket, json!({"ticket": INTEGER_MAX}), ""),
        (ticket, json!({"ticket": 0}), "invalid_ticket"),
        (ticket, json!({"ticket": "1"}), "invalid_ticket"),
        (ticket, json!({"ref": 1}), "unknown_field"),
    ] {
        let got = parse(&map(body.clone())).err().map_or("", |error| error.code);
        assert_eq!(got, code, "{body}");
    }
    assert_eq!(parse_flush_count(&map(json!({"count": 3}))), Ok(3));
}

#[test]
fn session_bounds_blame_the_field_that_was_sent() {
    let room = new_room();
    for (body, code) in [
        (json!({"sessionMaxSec": 1799}), "invalid_session_max_sec"),
        (json!({"sessionMaxSec": 1800}), ""),
        (json!({"sessionTtlSec": 43_201}), "invalid_session_ttl_sec"),
        (json!({"sessionTtlSec": 300, "sessionMaxSec": 299}), "invalid_session_max_sec"),
        (json!({"sessionTtlSec": 86_400, "sessionMaxSec": null}), ""),
        (json!({"sessionTtlSec": 86_400, "sessionMaxSec": 86_400}), ""),
    ] {
        let got = edit(&room, body.clone()).err().map_or("", |error| error.code);
        assert_eq!(got, code, "{body}");
    }
}

#[test]
fn the_message_is_stamped_only_when_it_changes() {
    let at = |ms| TimeMs(NOW.0 + ms);
    let write =
        |room: &Settings, body, now| Patch::parse(&map(body)).unwrap().apply(room, now).unwrap();
    let first = write(&new_room(), json!({"branding": {"message": "First"}}), at(1));
    assert_eq!(first.branding.message_at, Some(at(1)));
    let same = write(
        &first,
        json!({"branding": {"message": "First", "title": "t", "messageAt": 9}}),
        at(2),
    );
    assert_eq!(same.branding.message_at, Some(at(1)));
    assert_eq!(write(&same, json!({"name": "n"}), at(3)).branding, same.branding);
    let second = write(&same, json!({"branding": {"message": "Second"}}), at(4));
    assert_eq!((second.branding.message_at, second.branding.title.clone()), (Some(at(4)), None));
    let cleared = write(&second, json!({"branding": {"message": ""}}), at(5));
    assert_eq!(cleared.branding, Branding::default());
}

#[test]
fn the_rules_have_a_revision() {
    let room = new_room();
    let with = edit(&room, json!({"urlPatterns": ["/a"]})).unwrap();
    assert_eq!(with.targeting_rev, room.targeting_rev + 1);
    assert_eq!(with.targeting_updated_at, NOW.plus_ms(1));
    let same = edit(&with, json!({"urlPatterns": ["/a"], "name": "n"})).unwrap();
    assert_eq!((same.targeting_rev, same.targeting_updated_at), (2, NOW.plus_ms(1)));
    assert_eq!(edit(&with, json!({"urlPatterns": []})).unwrap().targeting_rev, 3);
}

#[test]
fn a_room_read_back_is_accepted_and_changes_nothing() {
    let full = json!({
        "name": "Everything", "targetUrl": "https://shop.example.com/sale",
        "proxyOrigin": "http://127.0.0.1:9", "ratePerMinute": 90.5, "maxConcurrent": 400,
        "passedTtlSec": 120, "sessionTtlSec": 300, "sessionMaxSec": 900, "presenceSec": 45,
        "branding": {"title": "Please wait", "message": "Soon"},
        "returnOrigins": ["https://www.shop.example.com"], "tagOrigins": [],
        "autotune": {"mode": "off", "minRate": 10, "maxRate": 200, "targetLatencyMs": 800},
        "protection": {"mode": "monitor"}, "queueMaxPerIp": 9, "preQueueMaxPerIp": 4,
        "autoActivate": {"mode": "off", "arrivalsPerMin": 500, "quietMin": 5},
        "urlPatterns": ["/checkout*", "!/checkout/thank-you"], "opensAt": 1_900_000_000_000_u64,
        "state": "paused", "onBackendDown": "open",
    });
    for room in [new_room(), edit(&new_room(), full).unwrap()] {
        let mut body = listed(&room);
        body.remove("targetingRev");
        let again = Patch::parse(&body).unwrap().apply(&room, NOW.plus_seconds(9)).unwrap();
        assert_eq!(again, room);
        let text = serde_json::to_string(&room).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), room, "{text}");
    }
}

/// Arbitrary JSON, with numbers and words near those that fields accept.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0_u32..100_002).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "(https?://)?[a-z@:./*!#\\\\ 0-9]{0,12}".prop_map(Value::from),
        "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-9:.]{0,12}(Z|[+-][0-9:]{5})".prop_map(Value::from),
        proptest::sample::select(vec![
            "on",
            "off",
            "open",
            "paused",
            "#fff",
            "/a",
            "https://a.example"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let name = proptest::sample::select(vec![
            "mode",
            "message",
            "title",
            "accent",
            "logoUrl",
            "messageAt",
            "minRate",
            "maxRate",
            "targetLatencyMs",
            "arrivalsPerMin",
            "quietMin",
            "other",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(String::from), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_body_is_read_or_refused_and_applies_once(
        fields in prop::collection::btree_map(
            proptest::sample::select(FIELDS.to_vec()),
            any_json(),
            0..3,
        ),
        stray in prop::option::of((any::<String>(), any_json())),
    ) {
        let mut body: Map<String, Value> =
            fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        body.extend(stray);
        let _ = (parse_room_body(&body), parse_ticket(&body), parse_flush_count(&body));
        if let Ok(patch) = Patch::parse(&body)
            && let Ok(once) = patch.apply(&new_room(), NOW)
        {
            prop_assert_eq!(&patch.apply(&once, NOW.plus_seconds(60)).unwrap(), &once);
            let text = serde_json::to_string(&once).unwrap();
            prop_assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), once);
        }
    }
}
