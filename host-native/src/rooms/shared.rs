//! One room at work in the shared store. Its task rehearses a batch on the replica, appends it,
//! records it, folds it in and only then answers. Another instance may have been first: then the
//! replica catches up and the batch is decided again.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;
use qm_core::room::{Command, Event, Fact, Refusal, run};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::replica::{Asked, FeedItem, Replica, Want};
use super::runtime::{Answer, Job, SubmitError, WAKE_EVERY, count, show};
use crate::log::row::Row;
use crate::log::{Down, NotRecorded, Settle, SharedLog};
use crate::telemetry::RoomMetrics;

/// Commands appended together.
const BATCH_MAX: usize = 1024;

/// Commands are refused when they could not be recorded within this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between attempts while the store does not answer.
const RETRY: Duration = Duration::from_millis(200);

/// Whoever waits for another instance's batch asks again after this time at the latest.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A quiet room asks the log this often whether something was missed or orphaned.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Events between snapshots.
const SNAPSHOT_EVERY: u64 = 100_000;

/// 32 random octets, fresh for every call.
pub(super) type Entropy = Box<dyn FnMut() -> [u8; 32] + Send>;

pub(super) struct SharedTask<L> {
    pub(super) replica: Replica<L>,
    pub(super) metrics: RoomMetrics,
    pub(super) outflow_lag: Histogram,
    pub(super) retain_ms: u64,
    pub(super) entropy: Entropy,
    /// Told when the room is over.
    pub(super) over: mpsc::UnboundedSender<std::sync::Arc<super::RoomHandle>>,
}

/// What a batch would do.
struct Tried {
    events: Vec<Event>,
    answers: Vec<Answer>,
}

/// What became of a batch that stands.
enum Written {
    Done,
    Again,
    Failed,
}

impl<L: SharedLog> SharedTask<L> {
    pub(super) async fn work(
        mut self,
        mut inbox: mpsc::Receiver<Job>,
        mut feed: mpsc::UnboundedReceiver<FeedItem>,
    ) {
        let mut jobs = VecDeque::with_capacity(BATCH_MAX);
        let mut received = Vec::with_capacity(BATCH_MAX);
        let mut last_wake = Instant::now();
        let mut look_at = Instant::now();
        let mut tick_from = Instant::now();
        let mut gate_was_closed = false;
        while !self.is_over() {
            let (due, gate_closed) = self.replica.room.look_ahead();
            let not_before = if self.replica.doubt.is_some() { look_at } else { tick_from };
            let due = due.max(not_before);
            self.replica.has_changed |= gate_closed != gate_was_closed;
            gate_was_closed = gate_closed;
            let wake = self.replica.has_changed.then(|| last_wake + WAKE_EVERY);
            let next = [Some(due), Some(look_at), wake].into_iter().flatten().min();
            // Losing the race loses nothing: received jobs stay in `received`.
            tokio::select! {
                biased;
                item = feed.recv() => self.hear(item, &mut look_at),
                some = inbox.recv_many(&mut received, BATCH_MAX) => if some == 0 { break },
                () = tokio::time::sleep_until(next.unwrap_or(due)) => {}
            }
            jobs.extend(received.drain(..));
            let now = Instant::now();
            if look_at <= now {
                look_at = now + if self.look().await.is_ok() { LOOK_EVERY } else { RETRY };
            }
            if self.replica.doubt.is_some() {
                refuse(&mut jobs, &SubmitError::Unavailable);
            }
            if self.replica.doubt.is_none() && (!jobs.is_empty() || due <= now) {
                let done = self.batch(&mut jobs, due, &mut inbox, &mut feed).await;
                if done.is_err() {
                    refuse(&mut jobs, &SubmitError::Unavailable);
                    look_at = now + RETRY;
                    tick_from = now + RETRY;
                }
            }
            let now = Instant::now();
            if self.replica.has_changed && now >= last_wake + WAKE_EVERY {
                last_wake = now;
                self.wake();
            }
        }
        self.wake();
        refuse(&mut jobs, &Refusal::Closed.into());
        let _ = self.over.send(std::sync::Arc::clone(&self.replica.room));
    }

    fn is_over(&self) -> bool {
        self.replica.room.state.room.read().is_closed()
    }

    fn wake(&mut self) {
        self.replica.has_changed = false;
        show(&self.metrics, &self.replica.room.state.room.read());
        self.replica.room.changes.wake();
    }

    fn hear(&mut self, item: Option<FeedItem>, look_at: &mut Instant) {
        let complete = match item {
            Some(FeedItem::Settled { from, rows }) => self.replica.hear(from, &rows),
            Some(FeedItem::Missed) => false,
            None => true,
        };
        if !complete {
            *look_at = Instant::now();
        }
    }

    /// Settles what is open, and asks whether something is new.
    async fn look(&mut self) -> Result<(), Down> {
        if self.replica.doubt.is_some() && self.replica.settle.is_some() {
            // The others must hear that callers were refused before they take it for an orphan.
            self.replica.ask(None).await?;
        }
        if let Some((id, rows)) = self.replica.doubt.take() {
            let want = Want::Void(rows);
            if self.replica.resolve(&want).await.is_err() {
                if let Want::Void(rows) = want {
                    self.replica.doubt = Some((id, rows));
                }
                return Err(Down);
            }
            self.replica.settle = Some(Settle::Drop(id));
        }
        if self.replica.catch_up().await? == Asked::Gone {
            self.close();
        }
        Ok(())
    }

    /// The room of this generation is over, whatever its last event was.
    fn close(&mut self) {
        let mut room = self.replica.room.state.room.write();
        let (seq, at) = (room.head(), room.last_at());
        room.apply(&Event { seq, at, fact: Fact::RoomClosed });
    }

    async fn batch(
        &mut self,
        jobs: &mut VecDeque<Job>,
        due: Instant,
        inbox: &mut mpsc::Receiver<Job>,
        feed: &mut mpsc::UnboundedReceiver<FeedItem>,
    ) -> Result<(), Down> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            while jobs.len() < BATCH_MAX
                && let Ok(job) = inbox.try_recv()
            {
                jobs.push_back(job);
            }
            let tried = self.rehearse(jobs, due);
            if tried.events.is_empty() {
                answer(jobs, tried.answers);
                return self.settle_now().await;
            }
            let rows = Row::chain(&self.replica.tail, tried.events);
            let (id, to) = (self.replica.next_batch(), rows.last().map_or(0, |row| row.event.seq));
            match self.replica.ask(Some((id.clone(), to, Row::join(&rows)))).await? {
                Asked::Appended => match self.write(id, &rows).await {
                    Written::Done => {
                        self.note(&rows, due);
                        answer(jobs, tried.answers);
                        return if inbox.is_empty() { self.settle_now().await } else { Ok(()) };
                    }
                    Written::Again => {}
                    Written::Failed => return Err(Down),
                },
                Asked::Gone => {
                    self.close();
                    return Ok(());
                }
                Asked::Busy => self.wait_turn(feed).await,
                Asked::Current | Asked::Moved => {}
            }
            if self.is_over() {
                return Ok(());
            }
            if Instant::now() >= give_up {
                return Err(Down);
            }
        }
    }

    /// What the jobs would do, if nobody else is first.
    fn rehearse(&mut self, jobs: &VecDeque<Job>, due: Instant) -> Tried {
        let state = &self.replica.room.state;
        let mut room = state.room.write();
        let mut presence = state.presence.lock();
        let now = self.replica.room.clock.now();
        let (entropy, retain_ms) = (&mut self.entropy, self.retain_ms);
        room.rehearse(&mut presence, |room, presence| {
            let mut events = Vec::new();
            if Instant::now() >= due {
                events = run(room, presence, &Command::Tick { retain_ms }, now, &entropy()).events;
            }
            let mut answers = Vec::with_capacity(jobs.len());
            for job in jobs {
                let ran = run(room, presence, &job.command, now, &entropy());
                events.extend(ran.events);
                answers.push(ran.result.map_err(SubmitError::from));
            }
            Tried { events, answers }
        })
    }

    /// Records a batch that stands in the log, and folds it in.
    async fn write(&mut self, id: String, rows: &[Row]) -> Written {
        let (room, generation) = (self.replica.room.id(), self.replica.room.generation());
        match self.replica.log.record(room, generation, rows).await {
            Ok(()) => {
                self.replica.apply(rows);
                self.replica.settle = Some(Settle::Keep(id));
                Written::Done
            }
            Err(NotRecorded::Refused) => {
                self.replica.settle = Some(Settle::Drop(id));
                let _ = self.replica.ask(None).await;
                Written::Failed
            }
            Err(NotRecorded::Unknown) => {
                self.replica.settle = Some(Settle::Refuse(id.clone()));
                self.replica.doubt = Some((id, rows.to_vec()));
                let _ = self.replica.ask(None).await;
                Written::Failed
            }
            Err(NotRecorded::Taken) => {
                // The log knew less than the journal, or somebody took this batch for an orphan.
                self.replica.settle = Some(Settle::Drop(id));
                if self.replica.resolve(&Want::Seal).await.is_err() {
                    return Written::Failed;
                }
                let Some(last) = rows.last() else { return Written::Again };
                match self.replica.stands(last).await {
                    Ok(true) => Written::Done,
                    Ok(false) => Written::Again,
                    Err(Down) => Written::Failed,
                }
            }
        }
    }

    /// Lets the others know at once, since no batch of ours follows.
    async fn settle_now(&mut self) -> Result<(), Down> {
        if self.replica.settle.is_some() {
            // What was answered stays true: the log hears of it later.
            let _ = self.replica.ask(None).await;
        }
        Ok(())
    }

    async fn wait_turn(&mut self, feed: &mut mpsc::UnboundedReceiver<FeedItem>) {
        let mut look_at = Instant::now();
        tokio::select! {
            biased;
            item = feed.recv() => self.hear(item, &mut look_at),
            () = tokio::time::sleep(ASK_AGAIN) => {}
        }
        while let Ok(item) = feed.try_recv() {
            self.hear(Some(item), &mut look_at);
        }
    }

    /// Counts what this instance did, and keeps a snapshot now and then.
    fn note(&self, rows: &[Row], due: Instant) {
        count(&self.metrics, rows.iter().map(|row| &row.event));
        if rows.iter().any(|row| matches!(row.event.fact, Fact::Passed(_))) {
            let late = Instant::now().saturating_duration_since(due);
            self.outflow_lag.observe(late.as_secs_f64());
        }
        let (head, newest) = (self.replica.head(), &self.replica.snapshot);
        if head < newest.load(Ordering::Relaxed) + SNAPSHOT_EVERY {
            return;
        }
        if self.replica.is_keeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let room = self.replica.room.state.room.read().clone();
        let (log, hash) = (std::sync::Arc::clone(&self.replica.log), self.replica.tail);
        let newest = std::sync::Arc::clone(newest);
        let is_keeping = std::sync::Arc::clone(&self.replica.is_keeping);
        tokio::spawn(async move {
            if log.keep_snapshot(room, hash).await.is_ok() {
                newest.store(head, Ordering::Relaxed);
            }
            is_keeping.store(false, Ordering::Relaxed);
        });
    }
}

fn answer(jobs: &mut VecDeque<Job>, answers: Vec<Answer>) {
    for (job, answer) in jobs.drain(..).zip(answers) {
        // The asker may have hung up; the place stays theirs to prove.
        let _ = job.answer.send(answer);
    }
}

fn refuse(jobs: &mut VecDeque<Job>, error: &SubmitError) {
    for job in jobs.drain(..) {
        let _ = job.answer.send(Err(error.clone()));
    }
}
