//! Properties over arbitrary input: parsers never panic and stay inside their bounds, tokens
//! survive a round trip and nothing else. A failing case prints its seed and is kept beside this
//! file.

use core::net::IpAddr;

use proptest::prelude::*;
use qm_core::address::{Address, Forwarding, TrustProxy, agent_digest, client_address};
use qm_core::cookie::{self, PAIRS_MAX};
use qm_core::id::{INTEGER_MAX, Place, RoomId};
use qm_core::score::{RequestFacts, score, signals_of};
use qm_core::target::{RuleSet, Scope};
use qm_core::time::TimeMs;
use qm_core::token::{KeyRing, Purpose, RefreshRule, VisitorToken};
use qm_core::url::{Origin, PageUrl, return_destination, with_query_parameter};

const LIFE_MS: u64 = 86_400_000;

fn ring(v2: bool) -> KeyRing {
    KeyRing::new(b"property secret", Some(b"property secret before"), v2)
}

fn tokens() -> impl Strategy<Value = VisitorToken> {
    let places = prop_oneof![
        (0..=INTEGER_MAX).prop_map(Place::Ticket),
        (1..=INTEGER_MAX).prop_map(Place::Reference)
    ];
    ("[A-Za-z0-9_-]{1,64}", places, 1..=INTEGER_MAX, 0..=INTEGER_MAX).prop_map(
        |(room, place, generation, issued_at)| VisitorToken {
            room: RoomId::parse(&room).unwrap(),
            place,
            generation,
            issued_at: TimeMs(issued_at),
        },
    )
}

/// Text with what the parsers look for in it.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        any::<String>(),
        "[ -~]{0,40}",
        "(https?://)?[a-zA-Z0-9.@:\\[\\]%*!#?/\\\\;-]{0,60}",
        "[;=\" ,qms_dkab1.:/%]{0,60}",
    ];
    proptest::collection::vec(pieces, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn tokens_survive_a_round_trip(token in tokens(), v2: bool, age in 0..=LIFE_MS) {
        let signed = ring(v2).sign_visitor(&token);
        let now = token.issued_at.plus_ms(age);
        prop_assert_eq!(ring(!v2).verify_visitor(&signed, now, LIFE_MS), Ok(token.clone()));
        let late = token.issued_at.plus_ms(LIFE_MS + 1);
        prop_assert!(ring(v2).verify_visitor(&signed, late, LIFE_MS).is_err());
        prop_assert!(ring(v2).verify(Purpose::Visitor, &signed).is_ok());
        prop_assert_eq!(ring(v2).verify(Purpose::Session, &signed).is_ok(), !v2);
    }

    #[test]
    fn a_mutated_token_is_refused(
        token in tokens(), v2: bool, at: prop::sample::Index, put in any::<char>(), kind in 0..3,
    ) {
        let signed = ring(v2).sign_visitor(&token);
        let at = at.index(signed.len());
        let rest = if kind == 0 { at } else { at + 1 };
        let put = if kind == 1 { String::new() } else { put.to_string() };
        let mutated = format!("{}{put}{}", &signed[..at], &signed[rest..]);
        prop_assume!(mutated != signed);
        prop_assert!(ring(v2).verify_visitor(&mutated, token.issued_at, LIFE_MS).is_err());
    }

    #[test]
    fn token_readers_take_anything(text in texts(), payload in texts()) {
        let ring = ring(true);
        prop_assert!(ring.verify_visitor(&text, TimeMs(0), u64::MAX).is_err());
        prop_assert!(ring.verify(Purpose::Monitor, &text).is_err());
        // Signed junk gets as far as the payload reader.
        let signed = self::ring(false).sign(Purpose::Visitor, &payload);
        let _ = ring.verify_visitor(&signed, TimeMs(0), u64::MAX);
        let _ = ring.verify(Purpose::Visitor, &signed);
        if let Some(code) = KeyRing::parse_short_code(&text) {
            prop_assert_eq!(KeyRing::parse_short_code(&code), Some(code.clone()));
        }
    }

    #[test]
    fn short_codes_read_back(token in tokens(), ticket: u64) {
        let code = ring(false).short_code(&token.room, token.generation, ticket);
        let spoken = code.to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
        prop_assert_eq!(KeyRing::parse_short_code(&spoken), Some(code));
    }

    #[test]
    fn jitter_stays_below_a_tenth(token in tokens(), refresh_after_ms: u64) {
        let rule = RefreshRule { refresh_after_ms };
        prop_assert!(rule.jitter_ms(&token) <= refresh_after_ms / 10);
    }

    #[test]
    fn addresses_take_anything(
        text in texts(),
        other in texts(),
        bytes: Vec<u8>,
        hops: u8,
        ip: u128,
    ) {
        let read = [Address::parse_voucher(&text), Address::parse_forwarded(&text)];
        for address in read.into_iter().flatten() {
            prop_assert_eq!(Address::parse_voucher(&address.to_string()), Some(address));
        }
        let forwarding = Forwarding {
            peer: IpAddr::from(ip.to_be_bytes()),
            forwarded_for: Some(&text),
            cf_ip: Some(&other),
            cf_ipv6: Some(&text),
        };
        for trust in [TrustProxy::None, TrustProxy::Hops(hops), TrustProxy::Cloudflare] {
            let _ = client_address(trust, &forwarding).digest();
        }
        let _ = (forwarding.entries(), TrustProxy::parse(&text));
        let sent_on = bytes.trim_ascii();
        let cut = sent_on.get(..256).unwrap_or(sent_on).trim_ascii();
        prop_assert_eq!(agent_digest(&bytes), agent_digest(cut));
    }

    #[test]
    fn every_spelling_of_an_address_is_one(v4: u32) {
        let plain = Address::from_ip(IpAddr::from(v4.to_be_bytes()));
        let mapped = core::net::Ipv6Addr::from_bits(0xffff_0000_0000 | u128::from(v4));
        prop_assert_eq!(Address::from_ip(mapped.into()), plain);
        let hex = format!("0:0:0:0:0:FFFF:{:x}:{:x}", v4 >> 16, v4 & 0xffff);
        prop_assert_eq!(Address::parse_voucher(&hex), Some(plain));
        prop_assert_eq!(Address::parse_forwarded(&format!("[{mapped}]:1")), Some(plain));
        prop_assert!(plain.is_v4());
    }

    #[test]
    fn cookies_take_anything(
        header in texts(),
        name in texts(),
        value in texts(),
        cap in 0..4_usize,
    ) {
        prop_assert!(cookie::pairs(&header).count() <= PAIRS_MAX);
        let _ = cookie::values(&header, &name).count();
        let room = RoomId::parse("a").unwrap();
        let issued_at = |_: &RoomId, value: &str| value.parse().ok().map(TimeMs);
        let over = cookie::rooms_over_cap(&header, &room, cap, issued_at);
        prop_assert!(!over.contains(&room));
        let set = cookie::SetCookie {
            name: "qm_a",
            value: &value,
            max_age_seconds: 1,
            http_only: true,
            secure: true,
            path: "/",
            same_site: cookie::SameSite::Lax,
        };
        let set = set.header_value();
        prop_assert_eq!(set.split(';').count(), 6);
        prop_assert!(set.bytes().all(|b| (0x20..0x7f).contains(&b)));
    }

    #[test]
    fn addresses_of_pages_take_anything(text in texts(), name in texts()) {
        let site = Origin::parse("https://a.example").unwrap();
        if let Some(origin) = Origin::parse(&text) {
            prop_assert_eq!(Origin::from_header(origin.as_str()), Some(origin.clone()));
        }
        if let Some(page) = PageUrl::parse(&text) {
            prop_assert!(page.is_at(&page.origin()));
            let again = PageUrl::parse(page.as_str()).map(|page| page.origin());
            prop_assert_eq!(again, Some(page.origin()));
        }
        if let Some(back) = return_destination(&text, core::slice::from_ref(&site)) {
            prop_assert!(back.starts_with("https://a.example/"));
        }
        if let Some(url) = with_query_parameter(&text, &name, &text) {
            prop_assert_eq!(with_query_parameter(&url, &name, &text), Some(url));
        }
    }

    #[test]
    fn targeting_takes_anything(
        rules in proptest::collection::vec(texts(), 0..6), starts in 0..4_usize, url in texts(),
    ) {
        let rules: Vec<String> =
            rules.iter().map(|rule| format!("{}{rule}", ["", "/", "!/", "*"][starts])).collect();
        let Ok(set) = RuleSet::parse(rules.iter().map(String::as_str)) else { return Ok(()) };
        let decision = set.scope(Some(&url));
        prop_assert!(decision.rule.is_none_or(|rule| rule < set.len()));
        let unclear = !set.is_empty() && PageUrl::parse(&url).is_none();
        prop_assert_eq!(decision.scope == Scope::Unknown, unclear);
        let written: Vec<String> = set.as_written().collect();
        let again = RuleSet::parse(written.iter().map(String::as_str)).unwrap();
        prop_assert_eq!(again.scope(Some(&url)), decision);
    }

    #[test]
    fn an_exact_rule_covers_its_own_page(path in "[ -\"$-)+->@-~กà]{0,40}") {
        let url = format!("https://a.example/{path}");
        let Some(page) = PageUrl::parse(&url) else { return Ok(()) };
        // What a browser shows for the page is a rule for the page.
        let set = RuleSet::parse([page.path()]).unwrap();
        prop_assert_eq!(set.scope(Some(&url)).scope, Scope::In);
    }

    #[test]
    fn scores_take_anything(agent in texts(), language in texts(), entries: usize, known: bool) {
        let facts = RequestFacts {
            user_agent: Some(&agent),
            accept_language: Some(&language),
            forwarded_entries: entries,
            has_sec_fetch: known,
            ..RequestFacts::default()
        };
        prop_assert!(score(&signals_of(&facts)) <= 100);
    }
}
