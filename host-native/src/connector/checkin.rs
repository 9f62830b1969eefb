//! Who verified an installation against this server, for the console's list (VER-05): the last time
//! and how often, for each connector, version, room and site. What is recorded was chosen by
//! strangers, so it is bounded in length and number; the one seen longest ago makes room.

use std::collections::HashMap;

use parking_lot::Mutex;
use qm_core::time::TimeMs;
use serde_json::{Value, json};

/// Who checked in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CheckinKey {
    /// The connector's registry id as sent; empty when none was.
    pub connector: String,
    /// The connector's version as sent; empty when none was.
    pub version: String,
    /// The room asked about, existing or not.
    pub room: String,
    /// The site's origin; empty when none was named.
    pub origin: String,
}

impl CheckinKey {
    /// A key of texts cut to a sane length.
    #[must_use]
    pub fn new(connector: &str, version: &str, room: &str, origin: &str) -> Self {
        let cut = |text: &str| text.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect();
        Self {
            connector: cut(connector),
            version: cut(version),
            room: cut(room),
            origin: cut(origin),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    ok: bool,
    last_at: TimeMs,
    count: u64,
}

/// The check-ins of this process.
#[derive(Debug, Default)]
pub struct Checkins {
    seen: Mutex<HashMap<CheckinKey, Seen>>,
}

impl Checkins {
    /// Records one verification.
    pub fn record(&self, key: CheckinKey, ok: bool, now: TimeMs) {
        let mut seen = self.seen.lock();
        if !seen.contains_key(&key) && seen.len() >= CHECKINS_MAX {
            let oldest = seen.iter().min_by_key(|(_, entry)| entry.last_at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                seen.remove(&oldest);
            }
        }
        let entry = seen.entry(key).or_insert(Seen { ok, last_at: now, count: 0 });
        entry.ok = ok;
        entry.last_at = now;
        entry.count += 1;
    }

    /// All of them, the latest first.
    #[must_use]
    pub fn list(&self) -> Vec<Value> {
        let seen = self.seen.lock();
        let mut entries: Vec<_> = seen.iter().map(|(key, entry)| (key.clone(), *entry)).collect();
        drop(seen);
        entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.last_at));
        let to_json = |(key, entry): (CheckinKey, Seen)| {
            json!({
                "connector": key.connector,
                "version": key.version,
                "roomId": key.room,
                "origin": key.origin,
                "ok": entry.ok,
                "lastAt": entry.last_at.0,
                "count": entry.count,
            })
        };
        entries.into_iter().map(to_json).collect()
    }
}

const CHECKINS_MAX: usize = 500;
const TEXT_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(room: &str) -> CheckinKey {
        CheckinKey::new("node", "1.3.1", room, "https://shop.example.com")
    }

    #[test]
    fn the_same_installation_is_one_entry() {
        let checkins = Checkins::default();
        checkins.record(key("shop"), true, TimeMs(1));
        checkins.record(key("other"), true, TimeMs(2));
        checkins.record(key("shop"), false, TimeMs(3));
        let list = checkins.list();
        assert_eq!(list.len(), 2);
        let expected = json!({
            "connector": "node", "version": "1.3.1", "roomId": "shop",
            "origin": "https://shop.example.com", "ok": false, "lastAt": 3, "count": 2,
        });
        assert_eq!(list[0], expected);
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let checkins = Checkins::default();
        for i in 0..CHECKINS_MAX as u64 * 3 {
            checkins.record(key(&format!("{i}\n{}", "x".repeat(9999))), true, TimeMs(i));
        }
        let list = checkins.list();
        assert_eq!(list.len(), CHECKINS_MAX);
        let room = list[0]["roomId"].as_str().unwrap();
        assert!(room.starts_with("1499x") && room.len() == TEXT_MAX, "{room}");
    }
}
