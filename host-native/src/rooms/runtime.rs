//! One room at work. A single task takes its commands in batches, runs them through the core in
//! order, records the events and only then answers; it also ticks when the core says something is
//! due. Readers look at the same state under a shared lock and never wait for the log.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use prometheus_client::metrics::histogram::Histogram;
use qm_core::id::RoomId;
use qm_core::room::{
    Command, Event, Fact, Outcome, Presence, Refusal, Release, Room, ms_until_due, run,
};
use qm_core::time::TimeMs;
use rand::Rng as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::changes::Changes;
use super::replica::FeedItem;
use super::rule_hits::RuleHits;
use crate::clock::Clock;
use crate::log::memory::MemoryLog;
use crate::telemetry::RoomMetrics;

/// Commands waiting for the room's task; more wait in their requests.
const INBOX_MAX: usize = 8192;

/// Commands run before anybody is answered.
const BATCH_MAX: usize = 256;

/// Readers are woken at most this often.
pub(super) const WAKE_EVERY: Duration = Duration::from_millis(100);

/// A room that nothing is due in is looked at this often all the same.
pub(super) const IDLE_LOOK: Duration = Duration::from_secs(60);

/// What a command came to.
pub(super) type Answer = Result<Outcome, SubmitError>;

/// Why a command was not done.
#[derive(Clone, Debug, PartialEq)]
pub enum SubmitError {
    /// The rules forbid it.
    Refused(Refusal),
    /// It could not be recorded; nothing happened.
    Unavailable,
}

impl From<Refusal> for SubmitError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What a batch did, before anybody is told.
struct Batch {
    events: Vec<Event>,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    closed: bool,
}

/// A command on its way, and who waits for it.
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// A live room: send it commands, read its state, watch it change.
pub struct RoomHandle {
    id: RoomId,
    generation: u64,
    inbox: mpsc::Sender<Job>,
    /// What other instances did; nothing in the memory store.
    pub(super) feed: Option<mpsc::UnboundedSender<FeedItem>>,
    pub(super) state: State,
    /// What streams watch.
    pub changes: Changes,
    /// Which URL rules decided how often.
    pub rule_hits: RuleHits,
    pub(super) clock: Clock,
}

pub(super) struct State {
    // Always locked in this order.
    pub(super) room: RwLock<Room>,
    pub(super) presence: Mutex<Presence>,
}

impl RoomHandle {
    pub(super) fn start(
        room: Room,
        presence: Presence,
        log: MemoryLog,
        clock: Clock,
        metrics: RoomMetrics,
        outflow_lag: Histogram,
        retain_ms: u64,
    ) -> Arc<Self> {
        let (handle, inbox) = Self::new(room, presence, clock, None);
        let task = Task { room: Arc::clone(&handle), log, metrics, outflow_lag, retain_ms };
        tokio::spawn(task.work(inbox));
        handle
    }

    /// A room that nobody works for yet, and its commands.
    pub(super) fn new(
        room: Room,
        presence: Presence,
        clock: Clock,
        feed: Option<mpsc::UnboundedSender<FeedItem>>,
    ) -> (Arc<Self>, mpsc::Receiver<Job>) {
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        let handle = Arc::new(Self {
            id: room.id().clone(),
            generation: room.generation(),
            inbox: sender,
            feed,
            state: State { room: RwLock::new(room), presence: Mutex::new(presence) },
            changes: Changes::new(),
            rule_hits: RuleHits::default(),
            clock,
        });
        (handle, inbox)
    }

    /// The room's id.
    #[must_use]
    pub const fn id(&self) -> &RoomId {
        &self.id
    }

    /// The generation this handle serves.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Has the room do something; answers when that is recorded.
    ///
    /// Dropping the future does not undo a command that was taken: an answer that cannot be
    /// delivered leaves the place, which its owner can prove on the next try.
    ///
    /// # Errors
    /// The [`Refusal`] of the core; [`Refusal::Closed`] when the room is gone;
    /// [`SubmitError::Unavailable`] when it could not be recorded.
    pub async fn submit(&self, command: Command) -> Answer {
        let (answer, answered) = oneshot::channel();
        if self.inbox.send(Job { command, answer }).await.is_err() {
            return Err(self.unanswered());
        }
        answered.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Nobody works for the room any more: it is over, or this process stops.
    fn unanswered(&self) -> SubmitError {
        if self.state.room.read().is_closed() {
            Refusal::Closed.into()
        } else {
            SubmitError::Unavailable
        }
    }

    /// When something is due next, and whether the gate is closed now.
    pub(super) fn look_ahead(&self) -> (Instant, bool) {
        self.look(|room, presence, now| {
            let wait = ms_until_due(room, presence, now).map(Duration::from_millis);
            (
                Instant::now() + wait.map_or(IDLE_LOOK, |wait| wait.min(IDLE_LOOK)),
                room.gate_closed(now),
            )
        })
    }

    /// Looks at the room as of now.
    pub fn look<T>(&self, read: impl FnOnce(&Room, &mut Presence, TimeMs) -> T) -> T {
        let room = self.state.room.read();
        let now = self.clock.now().max(room.last_at());
        read(&room, &mut self.state.presence.lock(), now)
    }
}

/// The room's own task.
struct Task {
    room: Arc<RoomHandle>,
    log: MemoryLog,
    metrics: RoomMetrics,
    outflow_lag: Histogram,
    retain_ms: u64,
}

impl Task {
    async fn work(self, mut inbox: mpsc::Receiver<Job>) {
        let mut jobs = Vec::with_capacity(BATCH_MAX);
        let mut wake_due: Option<Instant> = None;
        let mut last_wake = Instant::now();
        let mut gate_was_closed = false;
        loop {
            let (due, gate_closed) = self.room.look_ahead();
            let next = wake_due.map_or(due, |at| due.min(at));
            // Losing the race to the timer loses nothing: received jobs stay in `jobs`.
            tokio::select! {
                count = inbox.recv_many(&mut jobs, BATCH_MAX) => if count == 0 { return },
                () = tokio::time::sleep_until(next) => {}
            }
            let Batch { events, answers, closed } = self.run_batch(&mut jobs, due);
            self.log.append(self.room.id(), &events);
            count(&self.metrics, &events);
            for (to, answer) in answers {
                // The asker may have hung up; the place stays theirs to prove.
                let _ = to.send(answer);
            }
            let changed = self.room.changes.note(&self.room.state.room.read(), &events);
            if changed || gate_closed != gate_was_closed {
                gate_was_closed = gate_closed;
                wake_due.get_or_insert(last_wake + WAKE_EVERY);
            }
            let now = Instant::now();
            if wake_due.is_some_and(|at| at <= now || closed) {
                (wake_due, last_wake) = (None, now);
                self.room.changes.wake();
            }
            if closed {
                return;
            }
        }
    }

    fn run_batch(&self, jobs: &mut Vec<Job>, due: Instant) -> Batch {
        let state = &self.room.state;
        let mut room = state.room.write();
        let mut presence = state.presence.lock();
        let now = self.room.clock.now();
        let mut entropy = [0; 32];
        let mut events = Vec::new();
        let mut random = rand::rng();
        let late = Instant::now().saturating_duration_since(due);
        if Instant::now() >= due {
            random.fill_bytes(&mut entropy);
            let tick = Command::Tick { retain_ms: self.retain_ms };
            events = run(&mut room, &mut presence, &tick, now, &entropy).events;
            if events.iter().any(|event| matches!(event.fact, Fact::Passed(_))) {
                self.outflow_lag.observe(late.as_secs_f64());
            }
        }
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs.drain(..) {
            random.fill_bytes(&mut entropy);
            let ran = run(&mut room, &mut presence, &job.command, now, &entropy);
            events.extend(ran.events);
            answers.push((job.answer, ran.result.map_err(SubmitError::from)));
        }
        show(&self.metrics, &room);
        Batch { events, answers, closed: room.is_closed() }
    }
}

/// Sets the gauges of a room.
pub(super) fn show(metrics: &RoomMetrics, room: &Room) {
    metrics.waiting.set(gauge(room.waiting()));
    metrics.prequeue.set(gauge(room.pre_queued()));
    metrics.sessions.set(gauge(room.sessions()));
    metrics.slots_used.set(gauge(room.slots_used()));
}

/// Counts what this instance did.
pub(super) fn count<'a>(metrics: &RoomMetrics, events: impl IntoIterator<Item = &'a Event>) {
    for event in events {
        match &event.fact {
            Fact::Join { .. } | Fact::PreJoined { .. } => {
                metrics.joins.inc();
            }
            Fact::Passed(release) | Fact::Flushed(release) => {
                metrics.passes.inc_by(numbers_in(release));
            }
            Fact::Admitted { .. } => {
                metrics.admissions.inc();
            }
            _ => {}
        }
    }
}

/// Ranges hold no other numbers than those that passed, but for ones that ended before.
fn numbers_in(release: &Release) -> u64 {
    release.ranges.iter().map(|(from, to)| to - from + 1).sum()
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
