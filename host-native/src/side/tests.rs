//! What every side store does, run against each of them.

use qm_core::id::Place;
use serde_json::json;

use super::credential::{CredentialId, Role};
use super::notice::masked;
use super::*;

fn stores() -> Vec<Side> {
    vec![Side::Memory(MemorySide::default())]
}

fn verifier(kid: &str, mac: &str) -> Verifier {
    Verifier { kid: kid.into(), mac: mac.into() }
}

fn operator(id: &str) -> Operator {
    Operator {
        id: id.into(),
        name: id.to_uppercase(),
        role: Role::Operator,
        created_at: TimeMs(1),
        verifier: verifier("old", id),
        past_kids: vec![],
    }
}

#[tokio::test]
async fn a_verifier_follows_a_rotation_and_never_goes_back() {
    for side in stores() {
        side.add_operator(operator("a")).await.unwrap();
        let (old, new) = (verifier("old", "a"), verifier("new", "x"));
        assert!(side.renew_verifier("a", &old, new.clone()).await.unwrap());
        assert!(!side.renew_verifier("a", &old, new.clone()).await.unwrap(), "changed meanwhile");
        assert!(!side.renew_verifier("a", &new, old.clone()).await.unwrap(), "never back");
        assert_eq!(side.operator_by_verifier(&old).await.unwrap(), None);
        let found = side.operator_by_verifier(&new).await.unwrap().unwrap();
        assert_eq!((&*found.id, found.past_kids), ("a", vec!["old".to_owned()]));
    }
}

#[tokio::test]
async fn an_operator_goes_with_its_sessions() {
    for side in stores() {
        for id in ["a", "b"] {
            side.add_operator(operator(id)).await.unwrap();
            let holder = CredentialId::Operator(id.into());
            let session = ConsoleSession { id: id.into(), holder, expires_at: TimeMs(100) };
            side.add_session(session).await.unwrap();
        }
        assert_eq!(side.remove_operator("a").await.unwrap().unwrap().name, "A");
        assert_eq!(side.remove_operator("a").await.unwrap(), None);
        assert!(side.session("a", TimeMs(1)).await.unwrap().is_none());
        assert!(side.session("b", TimeMs(99)).await.unwrap().is_some());
        assert!(side.session("b", TimeMs(100)).await.unwrap().is_none(), "ran out");
        assert_eq!(side.operators().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn links_and_tickets_run_out_and_tickets_are_used_once() {
    for side in stores() {
        for (id, at) in [("a", 10), ("b", 20), ("c", 30)] {
            let link = MonitorLink { id: id.into(), label: id.into(), expires_at: TimeMs(at) };
            side.add_link(link).await.unwrap();
        }
        assert!(side.link("a", TimeMs(9)).await.unwrap().is_some());
        assert!(side.link("a", TimeMs(10)).await.unwrap().is_none());
        assert_eq!(side.links(TimeMs(10)).await.unwrap().len(), 2);
        assert!(side.remove_link("b").await.unwrap() && !side.remove_link("b").await.unwrap());
        assert_eq!(side.remove_links().await.unwrap(), 1);
        for digest in ["x", "y"] {
            let credential = CredentialId::Link("c".into());
            let ticket = StreamTicket { digest: digest.into(), credential, expires_at: TimeMs(50) };
            side.add_stream_ticket(ticket).await.unwrap();
        }
        assert!(side.take_stream_ticket("x", TimeMs(49)).await.unwrap().is_some());
        assert!(side.take_stream_ticket("x", TimeMs(49)).await.unwrap().is_none());
        assert!(side.take_stream_ticket("y", TimeMs(50)).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn the_audit_trail_is_numbered_and_paged() {
    for side in stores() {
        let room = RoomId::parse("r").unwrap();
        for n in 0..5_u64 {
            let entry = AuditEntry::of_system(TimeMs(n), "tested", &room, json!({ "n": n }));
            assert_eq!(side.add_audit(entry).await.unwrap(), n + 1);
        }
        let ids = |entries: Vec<AuditEntry>| entries.iter().map(|e| e.id).collect::<Vec<_>>();
        assert_eq!(ids(side.audit(None, 2).await.unwrap()), [5, 4]);
        assert_eq!(ids(side.audit(Some(4), 2).await.unwrap()), [3, 2]);
        assert_eq!(ids(side.audit(Some(2), 9).await.unwrap()), [1]);
    }
}

fn key(place: Place) -> NoticeKey {
    NoticeKey { room: RoomId::parse("r").unwrap(), generation: 1, place }
}

fn notice(place: Place) -> Notice {
    Notice {
        key: key(place),
        email: "someone@example.com".into(),
        language: "en".into(),
        owner: None,
        requested_at: TimeMs(10),
        delivery: Delivery::Pending,
    }
}

#[tokio::test]
async fn a_notice_moves_is_claimed_once_and_goes_with_its_room() {
    for side in stores() {
        let room = RoomId::parse("r").unwrap();
        for place in [Place::Reference(1), Place::Ticket(3), Place::Ticket(8)] {
            side.put_notice(notice(place)).await.unwrap();
        }
        let pending = side.pending_notices(&room, 1, 5, 10).await.unwrap();
        let places: Vec<Place> = pending.iter().map(|notice| notice.key.place).collect();
        assert_eq!(places, [Place::Ticket(3), Place::Reference(1)]);
        assert!(side.claim_notice(&key(Place::Ticket(3))).await.unwrap());
        assert!(!side.claim_notice(&key(Place::Ticket(3))).await.unwrap());
        side.settle_notice(&key(Place::Ticket(3)), Delivery::Sent).await.unwrap();
        let (from, to) = (key(Place::Reference(1)), key(Place::Ticket(4)));
        assert!(side.move_notice(&from, to.clone()).await.unwrap());
        assert!(!side.move_notice(&from, to.clone()).await.unwrap());
        assert!(side.notice(&to).await.unwrap().is_some());
        assert_eq!(side.remove_room_notices(&room, 1).await.unwrap(), 2);
        let sent = side.notice(&key(Place::Ticket(3))).await.unwrap().unwrap();
        assert_eq!(sent.delivery, Delivery::Sent);
        assert_eq!(side.prune_notices(TimeMs(11)).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn history_is_replaced_by_bucket_and_pruned_by_grain() {
    for side in stores() {
        let room = RoomId::parse("r").unwrap();
        let bucket = |start, joins| Bucket { start: TimeMs(start), joins, ..Bucket::default() };
        side.save_history(&room, Grain::Minute, vec![bucket(0, 1), bucket(60, 2)]).await.unwrap();
        side.save_history(&room, Grain::Minute, vec![bucket(60, 3)]).await.unwrap();
        side.prune_history(Grain::Hour, TimeMs(100)).await.unwrap();
        let joins = |list: Vec<Bucket>| list.iter().map(|b| b.joins).collect::<Vec<_>>();
        assert_eq!(joins(side.history(&room, Grain::Minute, TimeMs(0)).await.unwrap()), [1, 3]);
        side.prune_history(Grain::Minute, TimeMs(60)).await.unwrap();
        assert_eq!(joins(side.history(&room, Grain::Minute, TimeMs(0)).await.unwrap()), [3]);
        assert!(side.history(&room, Grain::Hour, TimeMs(0)).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_alert_is_raised_once_until_cleared() {
    for side in stores() {
        let alert = |room: Option<&str>| Alert {
            kind: "queue_long",
            level: "warning",
            room: room.map(Into::into),
            message: "long".into(),
            at: TimeMs(1),
        };
        assert!(side.raise_alert(alert(Some("a"))).await.unwrap());
        assert!(!side.raise_alert(alert(Some("a"))).await.unwrap());
        assert!(side.raise_alert(alert(None)).await.unwrap());
        assert!(side.clear_alert(&alert(Some("a")).key()).await.unwrap());
        assert!(!side.clear_alert(&alert(Some("a")).key()).await.unwrap());
        assert!(side.raise_alert(alert(Some("a"))).await.unwrap());
        assert_eq!(side.alerts().await.unwrap().len(), 2);
    }
}

#[test]
fn addresses_are_masked() {
    for (email, expected) in [
        ("alice@example.com", "a***@e***.com"),
        ("b@shop.example.co.th", "b***@s***.th"),
        ("c@localhost", "c***@l***"),
    ] {
        assert_eq!(masked(email), expected);
    }
}
