//! Work that nobody asked for in a request: history, alerts, mail, automatic rates. Jobs read rooms
//! and write side data; they know nothing of HTTP routes.

mod alert;
mod autotune;
mod history;
mod mail;
mod mail_text;
mod origins;

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::clock::Clock;
use crate::config::MailSettings;
use crate::rooms::Rooms;
use crate::side::Side;
use crate::telemetry::{Metrics, Webhook};

pub use self::origins::Origins;

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
    /// The counters of this process.
    pub metrics: Arc<Metrics>,
    /// Calls others.
    pub client: Client,
    /// `ALERT_WEBHOOK_URL`.
    pub webhook: Option<Webhook>,
    /// Where this server is, for links and in alerts.
    pub server: String,
    /// How the origins of rooms fare.
    pub origins: Arc<Origins>,
    /// Mail, when it is on.
    pub mail: Option<MailSettings>,
    /// How long a notice can matter: as long as a token.
    pub notice_retain_ms: u64,
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
    let mut running = vec![
        tokio::spawn(history::run(parts.clone(), stopping.clone())),
        tokio::spawn(alert::run(parts.clone(), stopping.clone())),
        tokio::spawn(autotune::tune(parts.clone(), stopping.clone())),
        tokio::spawn(autotune::activate(parts.clone(), stopping.clone())),
    ];
    if let Some(mail) = parts.mail.clone() {
        running.push(tokio::spawn(mail::run(parts.clone(), mail, stopping)));
    }
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
