//! Keeps the history of every room: takes what happened every few seconds and adds it to the
//! running buckets, so that reports and series are never older than that.

use std::collections::HashMap;
use std::time::Duration;

use qm_core::id::RoomId;
use qm_core::time::TimeMs;
use tokio::sync::watch;

use super::{Parts, next_tick, timer};
use crate::side::SideError;
use crate::side::history::{Bucket, Grain};

const EVERY: Duration = Duration::from_secs(5);
const PRUNE_EVERY_MS: u64 = 60_000;

/// Buckets that are still being filled.
#[derive(Default)]
struct Running(HashMap<(RoomId, Grain), Bucket>);

pub(super) async fn run(parts: Parts, mut stopping: watch::Receiver<bool>) {
    let mut running = Running::default();
    let mut timer = timer(EVERY);
    let mut pruned_at = TimeMs::default();
    loop {
        let goes_on = next_tick(&mut timer, &mut stopping).await;
        let now = parts.clock.now();
        for room in parts.rooms.all() {
            let lately = room.activity.take();
            if let Err(error) = running.add(&parts, room.id(), &lately, now).await {
                tracing::error!(%error, room = %room.id(), "history is not written");
            }
        }
        running.0.retain(|(id, _), _| parts.rooms.find(id).is_some());
        if now.ms_since(pruned_at) >= PRUNE_EVERY_MS {
            pruned_at = now;
            prune(&parts, now).await;
        }
        if !goes_on {
            return;
        }
    }
}

impl Running {
    async fn add(
        &mut self,
        parts: &Parts,
        room: &RoomId,
        lately: &Bucket,
        now: TimeMs,
    ) -> Result<(), SideError> {
        for grain in Grain::ALL {
            let start = grain.start(now);
            let key = (room.clone(), grain);
            let is_running = self.0.get(&key).is_some_and(|bucket| bucket.start == start);
            if !is_running {
                // After a restart the bucket goes on where it was left.
                let stored = parts.side.history(room, grain, start).await?;
                let stored = stored.into_iter().find(|bucket| bucket.start == start);
                let fresh = || Bucket { start, ..Bucket::default() };
                self.0.insert(key.clone(), stored.unwrap_or_else(fresh));
            }
            let Some(bucket) = self.0.get_mut(&key) else { continue };
            bucket.add(lately);
            // A room in which nothing happens costs no memory.
            if !bucket.is_empty() {
                parts.side.save_history(room, grain, vec![bucket.clone()]).await?;
            }
        }
        Ok(())
    }
}

async fn prune(parts: &Parts, now: TimeMs) {
    const HOUR_MS: u64 = 3_600_000;
    let days = u64::from(parts.history_retain_days);
    for (grain, kept_ms) in [
        (Grain::TenSeconds, HOUR_MS / 2),
        (Grain::Minute, 25 * HOUR_MS),
        (Grain::Hour, days * 24 * HOUR_MS),
    ] {
        let before = TimeMs(now.0.saturating_sub(kept_ms));
        if let Err(error) = parts.side.prune_history(grain, before).await {
            tracing::error!(%error, "old history is not forgotten");
        }
    }
}
