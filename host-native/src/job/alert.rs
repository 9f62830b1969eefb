//! Alerts: every few seconds the conditions of the contract are looked at. What begins is told to
//! the webhook once, with retries; what ended is cleared and may begin anew.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use qm_core::room::Room;
use qm_core::room::config::RoomState;
use qm_core::time::TimeMs;
use tokio::sync::{mpsc, watch};

use super::{Parts, next_tick, timer};
use crate::side::SideError;
use crate::side::alert::Alert;
use crate::telemetry::Webhook;

const EVERY: Duration = Duration::from_secs(5);
/// Calls waiting for the webhook; more are dropped with a line in the log.
const OUTBOX_MAX: usize = 256;
/// Pauses before each try.
const RETRIES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// Silent mistakes: this many since it was quiet raise an alert.
const GROWTH_MIN: u64 = 3;
/// A counter that stood still for so long is quiet again.
const QUIET_MS: u64 = 300_000;
/// A room that should release and does not is stalled after this.
const STALLED_MS: u64 = 60_000;
const QUEUE_LONG: u64 = 10_000;
const WAIT_LONG_SECONDS: u64 = 3600;

/// A condition that holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    kind: &'static str,
    level: &'static str,
    room: Option<String>,
    message: String,
}

impl Condition {
    fn new(kind: &'static str, level: &'static str, room: Option<&str>, message: String) -> Self {
        Self { kind, level, room: room.map(str::to_owned), message }
    }
}

/// What must be remembered between two looks.
#[derive(Default)]
struct Memory {
    counters: HashMap<(&'static str, String), Growth>,
    stalled_since: HashMap<String, TimeMs>,
    long: HashMap<(&'static str, String), ()>,
}

/// How a counter grows.
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    /// The count when it was last quiet.
    base: u64,
    seen: u64,
    grew_at: TimeMs,
}

impl Growth {
    /// Whether the counter grew enough to tell, and not too long ago.
    fn look(&mut self, count: u64, now: TimeMs) -> bool {
        if count != self.seen {
            (self.seen, self.grew_at) = (count, now);
        } else if now.ms_since(self.grew_at) >= QUIET_MS {
            self.base = self.seen;
        }
        self.seen.saturating_sub(self.base) >= GROWTH_MIN
    }
}

pub(super) async fn run(parts: Parts, mut stopping: watch::Receiver<bool>) {
    let (outbox, inbox) = mpsc::channel(OUTBOX_MAX);
    if let Some(webhook) = parts.webhook.clone() {
        tokio::spawn(deliver(webhook, inbox));
    }
    let mut memory = Memory::default();
    let mut storage_was_down = false;
    let mut timer = timer(EVERY);
    while next_tick(&mut timer, &mut stopping).await {
        let now = parts.clock.now();
        let conditions = conditions(&parts, &mut memory, now);
        let settled = settle(&parts, &outbox, conditions, now).await;
        if let Err(error) = &settled
            && !storage_was_down
        {
            // It cannot be stored, so it is told at once.
            let alert = Alert {
                kind: "storage_down",
                level: "critical",
                room: None,
                message: error.to_string(),
                at: now,
            };
            tell(&parts, &outbox, &alert);
        }
        storage_was_down = settled.is_err();
    }
}

/// Raises what began and clears what ended.
async fn settle(
    parts: &Parts,
    outbox: &mpsc::Sender<String>,
    conditions: Vec<Condition>,
    now: TimeMs,
) -> Result<(), SideError> {
    let mut current = Vec::with_capacity(conditions.len());
    for Condition { kind, level, room, message } in conditions {
        let alert = Alert { kind, level, room, message, at: now };
        current.push(alert.key());
        if parts.side.raise_alert(alert.clone()).await? {
            tracing::warn!(alert = kind, room = alert.room, "{}", alert.message);
            tell(parts, outbox, &alert);
        }
    }
    for raised in parts.side.alerts().await? {
        let key = raised.key();
        if !current.contains(&key) {
            parts.side.clear_alert(&key).await?;
            tracing::info!(alert = raised.kind, room = raised.room, "alert cleared");
        }
    }
    Ok(())
}

fn tell(parts: &Parts, outbox: &mpsc::Sender<String>, alert: &Alert) {
    if parts.webhook.is_none() {
        return;
    }
    if outbox.try_send(alert.text(&parts.server)).is_err() {
        tracing::error!(alert = alert.kind, "too many alerts wait for the webhook, one is dropped");
    }
}

async fn deliver(webhook: Webhook, mut inbox: mpsc::Receiver<String>) {
    while let Some(text) = inbox.recv().await {
        for (tried, pause) in RETRIES.iter().enumerate() {
            tokio::time::sleep(*pause).await;
            match webhook.call(text.clone()).await {
                Ok(()) => break,
                Err(error) => tracing::warn!(%error, tries = tried + 1, "an alert is not told yet"),
            }
        }
    }
}

fn conditions(parts: &Parts, memory: &mut Memory, now: TimeMs) -> Vec<Condition> {
    let mut all = counters(parts, memory, now);
    let rooms = parts.rooms.all();
    for handle in &rooms {
        let id = handle.id().as_str();
        handle.look(|room, _, now| memory.look_at_room(room, now, &mut all));
        if parts.origins.is_down(handle.id()) {
            let message = "the origin does not answer, too slowly, or with faults".to_owned();
            all.push(Condition::new("origin_down", "critical", Some(id), message));
        }
    }
    let lives = |id: &str| rooms.iter().any(|room| room.id().as_str() == id);
    memory.stalled_since.retain(|id, _| lives(id));
    memory.long.retain(|(_, id), ()| lives(id));
    all
}

/// The counters of silent mistakes.
fn counters(parts: &Parts, memory: &mut Memory, now: TimeMs) -> Vec<Condition> {
    let metrics = &parts.metrics;
    let mut all = Vec::new();
    let mut look =
        |kind, of: String, count| memory.counters.entry((kind, of)).or_default().look(count, now);
    // Strangers name these rooms, so all of them together make one alert.
    let unknown = metrics.unknown_room_checks.snapshot();
    if look("unknown_room_checks", String::new(), unknown.values().sum()) {
        let most = unknown.iter().max_by_key(|(_, count)| **count).map(|(room, _)| room.as_str());
        let message = "a page names a room that does not exist and is not protected".to_owned();
        all.push(Condition::new("unknown_room_checks", "critical", most, message));
    }
    for (room, count) in metrics.refused_key_checks.snapshot() {
        if look("refused_key_checks", room.clone(), count) {
            let message = "a connector sends no valid PUBLIC_API_KEY".to_owned();
            all.push(Condition::new("refused_key_checks", "critical", Some(&room), message));
        }
    }
    for (room, origins) in metrics.refused_origin_checks.snapshot() {
        if look("refused_origin_checks", room.clone(), origins.values().sum()) {
            let most: BTreeMap<_, _> = origins.iter().map(|(origin, n)| (n, origin)).collect();
            let origin = most.last_key_value().map_or("", |(_, origin)| origin);
            let message = format!("pages of {origin} are not among the room's tagOrigins");
            all.push(Condition::new("refused_origin_checks", "warning", Some(&room), message));
        }
    }
    if look("fail_open_checks", String::new(), metrics.fail_opens()) {
        let message = "visitors were let through because something was down".to_owned();
        all.push(Condition::new("fail_open_checks", "critical", None, message));
    }
    all
}

impl Memory {
    fn look_at_room(&mut self, room: &Room, now: TimeMs, all: &mut Vec<Condition>) {
        let id = room.id().as_str();
        let settings = room.settings();
        let rate = settings.rate.per_minute();
        let slots_left =
            settings.max_concurrent.is_none_or(|most| room.slots_used() < u64::from(most));
        // Slow rooms are given the time of several releases.
        let patience_ms = STALLED_MS.max(if rate > 0.0 { (180_000.0 / rate) as u64 } else { 0 });
        let should_release = settings.state == RoomState::Active
            && rate > 0.0
            && slots_left
            && !room.gate_closed(now)
            && room.waiting() > 0
            && room.passed_last_minute(now) == 0;
        if should_release {
            let since = *self.stalled_since.entry(id.to_owned()).or_insert(now);
            if now.ms_since(since) >= patience_ms {
                let message = format!("{} wait and nobody is released", room.waiting());
                all.push(Condition::new("room_stalled", "critical", Some(id), message));
            }
        } else {
            self.stalled_since.remove(id);
        }
        let waiting = room.waiting() + room.pre_queued();
        if self.is_long("queue_long", id, waiting, QUEUE_LONG) {
            let message = format!("{waiting} are in the queue");
            all.push(Condition::new("queue_long", "warning", Some(id), message));
        }
        let wait = room.wait_of_newcomer(now).map_or(0, |wait| wait.seconds);
        // Before an opening the wait is known to everybody.
        let wait = if room.gate_closed(now) || room.waiting() == 0 { 0 } else { wait };
        if self.is_long("est_wait_long", id, wait, WAIT_LONG_SECONDS) {
            let message = format!("who joins now waits about {} minutes", wait / 60);
            all.push(Condition::new("est_wait_long", "warning", Some(id), message));
        }
    }

    /// Long from the limit on, until below half of it.
    fn is_long(&mut self, kind: &'static str, room: &str, value: u64, limit: u64) -> bool {
        let key = (kind, room.to_owned());
        let was_long = self.long.contains_key(&key);
        let is_long = value >= if was_long { limit / 2 } else { limit };
        if is_long {
            self.long.insert(key, ());
        } else {
            self.long.remove(&key);
        }
        is_long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_raises_and_is_quiet_again() {
        let mut growth = Growth::default();
        for (seconds, count, expected) in [
            (0, 0, false),
            (5, 2, false),
            (10, 3, true),
            (15, 9, true),
            (314, 9, true),
            (315, 9, false),
            (320, 11, false),
            (325, 12, true),
        ] {
            let now = TimeMs(1_000_000 + seconds * 1000);
            assert_eq!(growth.look(count, now), expected, "{seconds} {count}");
        }
    }

    #[test]
    fn long_is_long_until_half_of_it() {
        let mut memory = Memory::default();
        for (value, expected) in [(99, false), (100, true), (60, true), (49, false), (60, false)] {
            assert_eq!(memory.is_long("queue_long", "r", value, 100), expected, "{value}");
        }
    }
}
