//! Whatever a visitor or the queue server sends, a connector's door comes to an end, keeps its
//! questions within bounds, and opens only where the server or an outage opens it.

use proptest::prelude::*;
use qm_core::edge::{Answer, Edge, Facts, Step, Written};
use qm_core::time::TimeMs;

const TOKEN: &str = "eyJyIjoiY2hlY2tvdXQiLCJuIjo0MiwiZyI6MSwiaWF0IjoxNzAwMDAwMDAwMDAwfQ\
    .Xxm6lvwgvVEYcODZ-VaePsymHFrWl_V9IzkWz3NVYTk";
const QUEUE: &str = r#"{"action":"queue","waitingRoomUrl":"/w/checkout"}"#;
const QUEUE_AND_CLEAR: &str = r#"{"action":"queue","clearToken":true}"#;

fn edge() -> Edge {
    let (edge, faults) = Edge::new(&Written {
        server: "https://queue.example.com",
        room: "checkout",
        public_api_key: "pk_test_1",
        gate: "all",
        trust_proxy: "cf",
        ..Written::default()
    });
    assert!(faults.is_empty());
    edge
}

fn get<'a>(url: &'a str, headers: &'a [(&'a str, &'a str)]) -> Facts<'a> {
    Facts { method: "GET", url, headers, peer: None, address: None }
}

/// Takes steps until the end; the answer of each question is the same.
fn run(edge: &Edge, facts: &Facts<'_>, answer: &Answer<'_>) -> Step {
    let mut step = edge.plan(facts, TimeMs(1_700_000_001_000));
    for _ in 0..4 {
        let Step::Ask(ask) = step else { return step };
        let target = ask.query.url.strip_prefix("https://queue.example.com").unwrap();
        assert!(target.len() <= 4096, "a target of {} bytes", target.len());
        assert!(target.bytes().all(|b| b.is_ascii_graphic()), "{target}");
        step = edge.conclude(ask.pending, answer, false);
    }
    panic!("asks for ever: {step:?}");
}

fn check_reply(step: &Step) {
    let Step::Respond(respond) = step else { return };
    for (name, value) in &respond.reply.headers {
        assert!(value.bytes().all(|b| (32..127).contains(&b)), "{name}: {value}");
    }
}

/// Texts with the pieces that matter among noise.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[a-z0-9/?&=;,.%:\" -]{0,40}",
        Just(TOKEN.to_owned()),
        Just("qm_checkout=".to_owned()),
        Just("?qm_token=".to_owned()),
        Just("&qm%5Ftoken=".to_owned()),
        (0usize..5000).prop_map(|n| "%41".repeat(n / 3)),
        (0usize..9000).prop_map(|n| "a".repeat(n)),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn url() -> impl Strategy<Value = String> {
    prop_oneof![text(), text().prop_map(|rest| format!("https://shop.example.com/{rest}"))]
}

proptest! {
    #[test]
    fn no_request_opens_a_door_that_is_shut(
        url in url(), cookie in text(), agent in text(), purpose in text(), clears in any::<bool>(),
    ) {
        let headers = [
            ("cookie", cookie.as_str()),
            ("user-agent", agent.as_str()),
            ("sec-purpose", purpose.as_str()),
            ("x-forwarded-for", agent.as_str()),
            ("cf-connecting-ip", "203.0.113.7"),
        ];
        let facts = get(&url, &headers);
        let body = if clears { QUEUE_AND_CLEAR } else { QUEUE };
        let step = run(&edge(), &facts, &Answer::Http { status: 200, body });
        let is_shut = matches!(step, Step::Respond(_));
        prop_assert!(is_shut, "{step:?}");
        check_reply(&step);
    }

    #[test]
    fn no_answer_loops_or_breaks(
        url in url(), cookie in text(), status in 100u16..600, body in text(),
    ) {
        let headers = [("cookie", cookie.as_str()), ("cf-connecting-ip", "203.0.113.7")];
        let facts = get(&url, &headers);
        let named = serde_json::json!({ "action": "queue", "waitingRoomUrl": body }).to_string();
        for body in [&body, &named] {
            check_reply(&run(&edge(), &facts, &Answer::Http { status, body }));
        }
        let step = run(&edge(), &facts, &Answer::Http { status: 200, body: &named });
        if let Step::Respond(respond) = &step && respond.reply.status == 302 {
            let (_, location) = &respond.reply.headers[0];
            prop_assert!(location.starts_with("https://queue.example.com/"), "{location}");
        }
    }

    #[test]
    fn no_visitor_invents_an_address(ip in text()) {
        let headers = [("cf-connecting-ip", ip.as_str())];
        let url = "https://shop.example.com/";
        let facts = get(url, &headers);
        let step = run(&edge(), &facts, &Answer::Http { status: 200, body: QUEUE });
        prop_assert!(matches!(step, Step::Respond(_)), "{step:?}");
    }
}
