//! Why tokens are refused, other purposes' texts, refreshing and short codes. Byte-exact forms are
//! in the vectors.

use std::format;
use std::string::{String, ToString};

use super::*;

const NOW: TimeMs = TimeMs(1_800_000_000_000);
const DAY_MS: u64 = 86_400_000;

fn token(number: u64) -> VisitorToken {
    VisitorToken {
        room: RoomId::parse("spring-sale").unwrap(),
        place: Place::Ticket(number),
        generation: 3,
        issued_at: TimeMs(NOW.0 - 1000),
    }
}

fn ring(v2: bool) -> KeyRing {
    KeyRing::new(b"current secret", Some(b"previous secret"), v2)
}

#[test]
fn refusals() {
    use TokenRefusal::{BadSignature, Expired, FromTheFuture, Malformed, UnknownKey, WrongShape};
    let at = |ms: u64| VisitorToken { issued_at: TimeMs(ms), ..token(1) };
    let old = KeyRing::new(b"forgotten secret", None, true);
    for (text, expected) in [
        (ring(true).sign_visitor(&token(1)), None),
        (ring(false).sign_visitor(&at(NOW.0 - DAY_MS)), None),
        (ring(false).sign_visitor(&at(NOW.0 - DAY_MS - 1)), Some(Expired)),
        (ring(true).sign_visitor(&at(NOW.0 + 60_000)), None),
        (ring(true).sign_visitor(&at(NOW.0 + 60_001)), Some(FromTheFuture)),
        (old.sign_visitor(&token(1)), Some(UnknownKey)),
        (
            KeyRing::new(b"forgotten secret", None, false).sign_visitor(&token(1)),
            Some(BadSignature),
        ),
        (ring(true).sign(Purpose::Monitor, r#"{"r":"a","n":1,"g":1,"iat":1}"#), Some(BadSignature)),
        (ring(true).sign(Purpose::Visitor, r#"{"r":"a"}"#), Some(WrongShape)),
        (ring(true).sign(Purpose::Visitor, "[]"), Some(WrongShape)),
        ("undefined".into(), Some(Malformed)),
        ("A".repeat(TOKEN_BYTES_MAX + 1), Some(Malformed)),
    ] {
        assert_eq!(ring(true).verify_visitor(&text, NOW, DAY_MS).err(), expected, "{text}");
    }
}

#[test]
fn rotation() {
    let before = KeyRing::new(b"previous secret", None, false);
    for signed in [
        before.sign_visitor(&token(5)),
        KeyRing::new(b"previous secret", None, true).sign_visitor(&token(5)),
    ] {
        assert_eq!(ring(false).verify_visitor(&signed, NOW, DAY_MS), Ok(token(5)));
        let after = KeyRing::new(b"current secret", None, false);
        assert!(after.verify_visitor(&signed, NOW, DAY_MS).is_err());
    }
    assert_ne!(ring(true).kid(), before.kid());
    assert!(format!("{:?}", ring(true)).contains(ring(true).kid()));
    assert!(!format!("{:?}", ring(true)).contains("secret"));
}

#[test]
fn other_purposes() {
    let purposes = [Purpose::Visitor, Purpose::Monitor, Purpose::Session, Purpose::Operator];
    let payload = r#"{"mid":"m1","label":"wall","iat":1,"exp":{"x":[1]}}"#;
    for purpose in purposes {
        for payload in [payload, "{}", " { } "] {
            let expected: serde_json::Map<_, _> = serde_json::from_str(payload).unwrap();
            let signed = ring(true).sign(purpose, payload);
            for reader in purposes {
                let got = ring(false).verify(reader, &signed);
                let expected = expected.clone();
                match reader == purpose {
                    true => assert_eq!(got, Ok(expected), "{purpose:?}"),
                    false => assert_eq!(got, Err(TokenRefusal::BadSignature), "{purpose:?}"),
                }
            }
            let legacy = ring(false).sign(purpose, payload);
            assert_eq!(ring(true).verify(Purpose::Monitor, &legacy), Ok(expected));
        }
        for payload in ["[]", r#"{"a":1,"a":1}"#, r#"{"kid":1}"#, "", "{"] {
            let signed = ring(false).sign(purpose, payload);
            assert!(ring(false).verify(purpose, &signed).is_err(), "{payload}");
        }
    }
}

#[test]
fn every_changed_bit_is_refused() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
    for v2 in [false, true] {
        let ring = ring(v2);
        let signed = ring.sign_visitor(&token(42));
        let (payload, signature) = signed.split_once('.').unwrap();
        let parts = [payload, signature].map(|part| B64.decode(part).unwrap());
        for part in 0..2 {
            for bit in 0..parts[part].len() * 8 {
                let mut changed = parts.clone();
                changed[part][bit / 8] ^= 1 << (bit % 8);
                let text = format!("{}.{}", B64.encode(&changed[0]), B64.encode(&changed[1]));
                assert!(ring.verify_visitor(&text, NOW, DAY_MS).is_err(), "{part} {bit}");
            }
        }
        for at in 0..signed.len() {
            let text = format!("{}{}", &signed[..at], &signed[at + 1..]);
            assert!(ring.verify_visitor(&text, NOW, DAY_MS).is_err(), "dropped {at}");
        }
    }
}

#[test]
fn refresh_is_due_at_half_of_the_shorter_life() {
    for (token_seconds, cookie_seconds, expected) in [
        (86_400, 86_400, 43_200_000),
        (86_400, 3600, 1_800_000),
        (60, 86_400, 30_000),
        (61, 99, 30_500),
    ] {
        let rule = RefreshRule::new(token_seconds, cookie_seconds);
        assert_eq!(rule.refresh_after_ms, expected);
        assert!(!rule.is_due(NOW, TimeMs(NOW.0 + expected - 1)));
        assert!(rule.is_due(NOW, TimeMs(NOW.0 + expected)));
        assert!(!rule.is_due(NOW, TimeMs(0)), "a token from the future is not due");
        assert!(rule.jitter_ms(&token(1)) <= expected / 10);
    }
    let endless = RefreshRule::new(u64::MAX, u64::MAX);
    let late = VisitorToken { issued_at: TimeMs::MAX, ..token(1) };
    assert_eq!(endless.close_at(&late), TimeMs::MAX);
}

#[test]
fn short_codes() {
    let room = RoomId::parse("spring-sale").unwrap();
    let code = ring(false).short_code(&room, 3, 42);
    assert_eq!(code, ring(true).short_code(&room, 3, 42), "the token form does not matter");
    assert_eq!(KeyRing::parse_short_code(&code).as_ref(), Some(&code));
    for other in [
        ring(false).short_code(&room, 3, 43),
        ring(false).short_code(&room, 4, 42),
        ring(false).short_code(&RoomId::parse("spring-sal").unwrap(), 3, 42),
        KeyRing::new(b"another", None, false).short_code(&room, 3, 42),
    ] {
        assert_ne!(code, other);
    }
    for (typed, expected) in [
        ("ABCD-EFGH", Some("ABCD-EFGH")),
        (" abcd efgh ", Some("ABCD-EFGH")),
        ("abcdefgh", Some("ABCD-EFGH")),
        ("a-b-c-d\u{2013}e f\u{a0}g\u{2212}h", Some("ABCD-EFGH")),
        ("oOiI-lL01", Some("0011-1101")),
        ("ABCD-EFG", None),
        ("ABCD-EFGHJ", None),
        ("ABCD-EFGU", None),
        ("ABCD_EFGH", None),
        ("ＡBCD-EFGH", None),
        ("", None),
    ] {
        assert_eq!(KeyRing::parse_short_code(typed).as_deref(), expected, "{typed}");
    }
    assert_eq!(KeyRing::parse_short_code(&"-".repeat(65)), None);
}

#[test]
fn short_codes_decipher_to_their_ticket_and_never_collide() {
    let room = RoomId::parse("spring-sale").unwrap();
    let keys = ring(false);
    let mut seen = std::collections::BTreeSet::new();
    for ticket in (0..3000).chain([1 << 20, (1 << 40) - 1]) {
        let code = keys.short_code(&room, 7, ticket);
        assert_eq!(keys.tickets_of_short_code(&room, 7, &code).first(), Some(&ticket));
        assert!(seen.insert(code));
    }
    let rotated = KeyRing::new(b"new", Some(b"old"), false);
    let old_code = KeyRing::new(b"old", None, false).short_code(&room, 7, 42);
    assert!(rotated.tickets_of_short_code(&room, 7, &old_code).contains(&42));
}

#[test]
fn refusals_read_well() {
    assert_eq!(TokenRefusal::UnknownKey.to_string(), "token signed with an unknown key");
    let text: String = TokenRefusal::Expired.to_string();
    assert!(text.chars().all(|c| !c.is_uppercase()));
}
