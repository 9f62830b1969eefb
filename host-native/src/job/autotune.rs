//! Automatic rates and states (HOL-43): every ten seconds the origin of each room that wants it is
//! looked at, every two seconds its arrivals are; what changes is audited with its reason.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::future::join_all;
use hyper::Method;
use qm_core::id::RoomId;
use qm_core::room::Command;
use qm_core::room::automatic::{Autotune, Mode};
use qm_core::room::patch::Patch;
use qm_core::room::tune::{Activator, Arrivals, OriginHealth, Tuner};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Parts, next_tick, timer};
use crate::client::Call;
use crate::rooms::RoomHandle;
use crate::side::audit::AuditEntry;

const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBE_TIME_MAX: Duration = Duration::from_secs(9);
const ARRIVALS_EVERY: Duration = Duration::from_secs(2);
/// Samples in ten seconds.
const ARRIVAL_SAMPLES: usize = 5;

/// Rooms are told apart by their generation: a new room of an old name starts afresh.
type RoomKey = (RoomId, u64);

fn key_of(room: &RoomHandle) -> RoomKey {
    (room.id().clone(), room.generation())
}

/// What a probe found, in words and as a verdict.
struct Finding {
    health: OriginHealth,
    words: String,
}

/// Adjusts rates until the process stops.
pub(super) async fn tune(parts: Parts, mut stopping: watch::Receiver<bool>) {
    let mut tuners: HashMap<RoomKey, Tuner> = HashMap::new();
    let mut timer = timer(PROBE_EVERY);
    while next_tick(&mut timer, &mut stopping).await {
        let rooms = parts.rooms.all();
        let wanted = rooms.iter().filter_map(|room| {
            let autotune = room.look(|room, _, _| room.settings().autotune.clone())?;
            (autotune.mode == Mode::On).then_some((room, autotune))
        });
        let probing = &parts;
        let probed = join_all(wanted.map(|(room, autotune)| async move {
            let finding = probe(probing, &autotune).await?;
            Some((room, autotune, finding))
        }));
        let mut kept = HashMap::new();
        for (room, autotune, finding) in probed.await.into_iter().flatten() {
            let key = key_of(room);
            parts.origins.note(room.id(), finding.health == OriginHealth::Healthy);
            let mut tuner = tuners.remove(&key).unwrap_or_default();
            adjust(&parts, room, &autotune, &finding, &mut tuner).await;
            kept.insert(key, tuner);
        }
        parts.origins.keep(|id| kept.keys().any(|(room, _)| room == id));
        tuners = kept;
    }
}

/// Reads the origin's health; `None` when the settings name nothing to read.
async fn probe(parts: &Parts, autotune: &Autotune) -> Option<Finding> {
    let url = autotune.probe_url.as_deref()?;
    let began = Instant::now();
    let call =
        Call { method: Method::GET, url, headers: vec![], json: None, time_max: PROBE_TIME_MAX };
    let answered = parts.client.send(call).await;
    let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (healthy, words) = match answered {
        Err(error) => (false, format!("the probe failed: {error}")),
        Ok(answered) if answered.status >= 500 => {
            (false, format!("the probe was answered {}", answered.status))
        }
        Ok(_) if latency_ms > u64::from(autotune.target_latency_ms) => {
            let target = autotune.target_latency_ms;
            (false, format!("the probe took {latency_ms} ms, the target is {target} ms"))
        }
        Ok(_) => (true, format!("the probe took {latency_ms} ms and people wait")),
    };
    let health = if healthy { OriginHealth::Healthy } else { OriginHealth::Unhealthy };
    Some(Finding { health, words })
}

async fn adjust(
    parts: &Parts,
    room: &RoomHandle,
    autotune: &Autotune,
    finding: &Finding,
    tuner: &mut Tuner,
) {
    let (rate, waits) = room.look(|room, _, _| (room.settings().rate, room.waiting() > 0));
    let Some(next) = tuner.next(autotune, rate, finding.health, waits, parts.clock.now()) else {
        return;
    };
    let patch = Patch { rate: Some(next), ..Patch::default() };
    let detail = json!({
        "before": { "rate": rate.to_json() },
        "after": { "rate": next.to_json() },
        "reason": format!("autotune: {}", finding.words),
    });
    change(parts, room, patch, "rate_tuned", detail).await;
}

async fn change(parts: &Parts, room: &RoomHandle, patch: Patch, action: &str, detail: Value) {
    if room.submit(Command::Configure(Box::new(patch))).await.is_err() {
        // Deleted meanwhile.
        return;
    }
    tracing::info!(room = %room.id(), action, %detail, "changed automatically");
    let entry = AuditEntry::of_system(parts.clock.now(), action, room.id(), detail);
    if let Err(error) = parts.side.add_audit(entry).await {
        tracing::error!(%error, action, "an audit entry is lost");
    }
}

#[derive(Default)]
struct Watched {
    activator: Activator,
    /// Arrivals counted at the latest looks.
    counts: VecDeque<u64>,
}

/// Starts and stops queues until the process stops.
pub(super) async fn activate(parts: Parts, mut stopping: watch::Receiver<bool>) {
    let mut watched: HashMap<RoomKey, Watched> = HashMap::new();
    let mut timer = timer(ARRIVALS_EVERY);
    while next_tick(&mut timer, &mut stopping).await {
        let mut kept = HashMap::new();
        for room in parts.rooms.all() {
            let Some(settings) = room.look(|room, _, _| room.settings().auto_activate) else {
                continue;
            };
            let key = key_of(&room);
            let mut of_room = watched.remove(&key).unwrap_or_default();
            let count = room.arrivals();
            of_room.counts.push_back(count);
            if of_room.counts.len() > ARRIVAL_SAMPLES + 1 {
                of_room.counts.pop_front();
            }
            let oldest = of_room.counts.front().copied().unwrap_or(count);
            let seen = room.look(|room, _, _| Arrivals {
                state: room.settings().state,
                last_ten_seconds: count.saturating_sub(oldest),
                someone_waits: room.waiting() + room.pre_queued() > 0,
            });
            if let Some(state) = of_room.activator.next(&settings, seen, parts.clock.now()) {
                let arrivals = seen.last_ten_seconds * 6;
                let detail = json!({
                    "before": { "state": seen.state.as_str() },
                    "after": { "state": state.as_str() },
                    "reason": format!("autoActivate: {arrivals} arrivals a minute"),
                });
                let patch = Patch { state: Some(state), ..Patch::default() };
                change(&parts, &room, patch, "state_switched", detail).await;
            }
            kept.insert(key, of_room);
        }
        watched = kept;
    }
}
