//! Work that nobody asked for in a request: history, alerts, mail, automatic rates. Jobs read rooms
//! and write side data; they know nothing of HTTP routes.

mod history;

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::rooms::Rooms;
use crate::side::Side;

/// What jobs work with.
#[derive(Clone)]
pub struct Parts {
    /// The time.
    pub clock: Clock,
    /// The rooms.
    pub rooms: Arc<Rooms>,
    /// Side data.
    pub side: Arc<Side>,
    /// `HISTORY_RETAIN_DAYS`.
    pub history_retain_days: u32,
}

/// The running jobs.
pub struct Jobs {
    stop: watch::Sender<bool>,
    running: Vec<JoinHandle<()>>,
}

/// Starts all jobs.
#[must_use]
pub fn start(parts: &Parts) -> Jobs {
    let (stop, stopping) = watch::channel(false);
    let running = vec![tokio::spawn(history::run(parts.clone(), stopping))];
    Jobs { stop, running }
}

impl Jobs {
    /// Has every job write down what it holds and end.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        for job in self.running {
            if let Err(error) = job.await {
                tracing::error!(%error, "a job did not end in good order");
            }
        }
    }
}

/// Waits for the next tick; false when the process stops.
async fn next_tick(
    timer: &mut tokio::time::Interval,
    stopping: &mut watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        _ = timer.tick() => true,
        _ = stopping.wait_for(|stop| *stop) => false,
    }
}

fn timer(every: std::time::Duration) -> tokio::time::Interval {
    let mut timer = tokio::time::interval(every);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    timer
}
