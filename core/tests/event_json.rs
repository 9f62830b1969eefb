//! Every event comes back from JSON as it was written: journals and streams keep events as text.

use proptest::prelude::*;
use qm_core::address::{AddressDigest, AgentDigest};
use qm_core::digest::Digest16;
use qm_core::id::RoomId;
use qm_core::room::config::{Autotune, Mode, Protection, Rate, RoomState, Settings};
use qm_core::room::draw::DrawEntry;
use qm_core::room::{Client, Event, Fact, Family, Proof, Release};
use qm_core::target::RuleSet;
use qm_core::time::TimeMs;
use qm_core::url::Origin;

fn digest() -> impl Strategy<Value = Digest16> {
    any::<[u8; 16]>().prop_map(Digest16)
}

fn client() -> impl Strategy<Value = Client> {
    (any::<bool>(), any::<u64>(), any::<u64>()).prop_map(|(v4, address, agent)| Client {
        family: if v4 { Family::V4 } else { Family::V6 },
        address: AddressDigest(address),
        agent: AgentDigest(agent),
    })
}

fn rate() -> impl Strategy<Value = Rate> {
    (0.0..=1e6f64).prop_map(|per_minute| Rate::new(per_minute).unwrap())
}

fn state() -> impl Strategy<Value = RoomState> {
    prop::sample::select(vec![RoomState::Active, RoomState::Paused, RoomState::Bypass])
}

fn settings() -> impl Strategy<Value = Box<Settings>> {
    let names = prop::sample::select(vec!["sale", "ก \"quoted\" \\ \u{1F600}", "event", "seq"]);
    (names, rate(), rate(), state(), any::<Option<u32>>(), any::<Option<u64>>(), any::<bool>())
        .prop_map(|(name, rate, other, state, number, time, lists)| {
            let mut settings = Settings::new(&RoomId::parse("sale").unwrap(), TimeMs(5));
            settings.name = name.to_owned();
            settings.rate = rate;
            settings.state = state;
            settings.max_concurrent = number;
            settings.session_max_seconds = number;
            settings.opens_at = time.map(TimeMs);
            settings.branding.message = lists.then(|| name.to_owned());
            settings.branding.message_at = time.map(TimeMs);
            settings.protection = if lists { Protection::Enforce } else { Protection::Monitor };
            if lists {
                let origin = Origin::parse("https://shop.example.com").unwrap();
                settings.return_origins = vec![origin];
                settings.tag_origins = Some(vec![]);
                settings.url_patterns = RuleSet::parse(["/sale/*", "!/sale/terms"]).unwrap();
                settings.autotune = Some(Autotune {
                    mode: Mode::On,
                    min_rate: rate,
                    max_rate: other,
                    target_latency_ms: 250,
                    probe_url: Some("https://shop.example.com/health".into()),
                });
            }
            Box::new(settings)
        })
}

fn release() -> impl Strategy<Value = Release> {
    let ranges = prop::collection::vec((any::<u64>(), any::<u64>()), 0..4);
    (ranges, prop::collection::vec(any::<u64>(), 0..4))
        .prop_map(|(ranges, ns)| Release { ranges, ns })
}

fn proof() -> impl Strategy<Value = Proof> {
    prop_oneof![digest().prop_map(Proof::Key), Just(Proof::Channel)]
}

fn entries() -> impl Strategy<Value = Vec<DrawEntry>> {
    let entry = (any::<u64>(), any::<u64>())
        .prop_map(|(q, user)| DrawEntry { q, user: AddressDigest(user) });
    prop::collection::vec(entry, 0..5)
}

fn visitor_fact() -> impl Strategy<Value = Fact> {
    let owner = || prop::option::of(digest());
    let number = any::<u64>;
    prop_oneof![
        (number(), owner(), client()).prop_map(|(n, owner, client)| Fact::Join {
            n,
            owner,
            client
        }),
        (number(), owner(), client()).prop_map(|(q, owner, client)| Fact::PreJoined {
            q,
            owner,
            client
        }),
        (number(), client()).prop_map(|(n, client)| Fact::Bound { n, client }),
        (number(), proof()).prop_map(|(n, proof)| Fact::Admitted { n, proof }),
        number().prop_map(|n| Fact::ReclaimOffered { n }),
        (number(), proof()).prop_map(|(n, proof)| Fact::Reclaimed { n, proof }),
        number().prop_map(|n| Fact::Ejected { n }),
        number().prop_map(|n| Fact::Left { n }),
        number().prop_map(|q| Fact::PreLeft { q }),
    ]
}

fn room_fact() -> impl Strategy<Value = Fact> {
    let numbers = || prop::collection::vec(any::<u64>(), 0..5);
    let id = || RoomId::parse("sale").unwrap();
    prop_oneof![
        (any::<u64>(), settings()).prop_map(move |(generation, settings)| Fact::RoomOpened {
            room: id(),
            generation,
            settings
        }),
        settings().prop_map(|settings| Fact::RoomConfigured { settings }),
        state().prop_map(|state| Fact::StateChanged { state }),
        rate().prop_map(|rate| Fact::RateChanged { rate }),
        (any::<[u8; 32]>(), entries(), any::<u64>()).prop_map(|(seed, entries, first_ticket)| {
            Fact::Drawn { seed, entries, first_ticket }
        }),
        release().prop_map(Fact::Passed),
        release().prop_map(Fact::Flushed),
        numbers().prop_map(|ns| Fact::SlotsReturned { ns }),
        numbers().prop_map(|ns| Fact::Expired { ns }),
        numbers().prop_map(|ns| Fact::SessionEnded { ns }),
        any::<u64>().prop_map(|up_to| Fact::Forgotten { up_to }),
        Just(Fact::Purged),
        Just(Fact::RoomClosed),
    ]
}

/// The name of the variant as Rust prints it, in the spelling of the journal.
fn snake_case(debug: &str) -> String {
    let mut name = String::new();
    for letter in debug.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

proptest! {
    #[test]
    fn every_event_round_trips(
        fact in prop_oneof![visitor_fact(), room_fact()],
        seq in any::<u64>(),
        at in any::<u64>(),
    ) {
        let event = Event { seq, at: TimeMs(at), fact };
        let text = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Event>(&text).unwrap(), &event, "{}", text);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(value["event"].as_str(), Some(event.fact.name()));
        let name = snake_case(&format!("{:?}", event.fact));
        prop_assert_eq!(event.fact.name(), name.as_str());
        // A store that keeps JSON as a tree (jsonb) gives back the same event.
        prop_assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    }
}
