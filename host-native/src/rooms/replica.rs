//! This instance's copy of a room in the shared store. It folds only what is settled: events that
//! stand in the log and in the journal, in order, so nothing ever has to be taken back. What the
//! journal holds beyond that is settled by the row that follows it (docs/decisions/0003).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use qm_core::room::{Event, Fact};

use super::runtime::RoomHandle;
use crate::log::row::{Hash, Row};
use crate::log::{Ask, Down, NotRecorded, Reply, Settle, SharedLog};

/// No batch has more rows: a task takes 1,024 commands at once, and none but a tick has more than
/// two events.
const BATCH_ROWS_MAX: usize = 8192;

/// What other instances did.
pub(super) enum FeedItem {
    /// A batch was settled, from this seq on; without rows: look.
    Settled { from: u64, rows: String },
    /// Something may have been missed.
    Missed,
}

/// What became of asking the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The batch stands.
    Appended,
    /// Nothing is new.
    Current,
    /// The replica moved, or the log did: decide again.
    Moved,
    /// Others go first.
    Busy,
    /// The room was made anew: this generation is over.
    Gone,
}

/// What should become of rows in doubt.
pub(super) enum Want {
    /// Whatever the journal says.
    Seal,
    /// That they happened.
    Keep(Vec<Row>),
    /// That they did not: their callers were refused.
    Void(Vec<Row>),
}

pub(super) struct Replica<L> {
    pub(super) room: Arc<RoomHandle>,
    pub(super) log: Arc<L>,
    /// The hash of the last row folded.
    pub(super) tail: Hash,
    /// This instance, in the log.
    pub(super) caller: String,
    /// What the log must hear of the batch before.
    pub(super) settle: Option<Settle>,
    /// The batch whose rows may be in the journal although its callers were refused.
    pub(super) doubt: Option<(String, Vec<Row>)>,
    /// The seq of the newest snapshot this instance knows.
    pub(super) snapshot: Arc<AtomicU64>,
    /// A snapshot is being written.
    pub(super) is_keeping: Arc<AtomicBool>,
    pub(super) batches: u64,
    /// Readers should be woken.
    pub(super) has_changed: bool,
}

impl<L: SharedLog> Replica<L> {
    pub(super) fn new(room: Arc<RoomHandle>, log: Arc<L>, tail: Hash, caller: String) -> Self {
        let snapshot = room.state.room.read().head();
        Self {
            room,
            log,
            tail,
            caller,
            settle: None,
            doubt: None,
            // Seq 1 is the opening, which no snapshot is needed for.
            snapshot: Arc::new(AtomicU64::new(if snapshot > 1 { snapshot } else { 0 })),
            is_keeping: Arc::default(),
            batches: 0,
            has_changed: true,
        }
    }

    pub(super) fn head(&self) -> u64 {
        self.room.state.room.read().head()
    }

    /// A name that no other batch has.
    pub(super) fn next_batch(&mut self) -> String {
        self.batches += 1;
        format!("{}:{}", self.caller, self.batches)
    }

    fn is_lost(&self, batch: &str) -> bool {
        self.is_own(batch) && self.doubt.as_ref().is_none_or(|(doubt, _)| doubt != batch)
    }

    fn is_own(&self, batch: &str) -> bool {
        batch.strip_prefix(self.caller.as_str()).is_some_and(|rest| rest.starts_with(':'))
    }

    /// Folds settled rows in.
    pub(super) fn apply(&mut self, rows: &[Row]) {
        let Some(last) = rows.last() else { return };
        let mut room = self.room.state.room.write();
        let mut presence = self.room.state.presence.lock();
        for row in rows {
            let event = row.effect();
            room.apply(&event);
            presence.follow(&room, &event);
        }
        drop(presence);
        let events = rows.iter().filter(|row| !row.void).map(|row| &row.event);
        self.has_changed |= self.room.changes.note(&room, events);
        self.tail = last.hash;
    }

    /// Tells the log what is to be told, and asks it to append a batch.
    pub(super) async fn ask(
        &mut self,
        batch: Option<(String, u64, String)>,
    ) -> Result<Asked, Down> {
        let ask = Ask {
            generation: self.room.generation(),
            head: self.head(),
            caller: self.caller.clone(),
            settle: self.settle.clone(),
            batch,
            trim: self.snapshot.load(Ordering::Relaxed),
        };
        let reply = self.log.ask(self.room.id(), &ask).await?;
        self.settle = None;
        match reply {
            Reply::Appended => return Ok(Asked::Appended),
            // Of a batch of ours that waits, the answer to the append was lost: nothing of it was
            // recorded. Unless it is the one in doubt.
            Reply::Current(id) if self.is_lost(&id) => self.settle = Some(Settle::Drop(id)),
            Reply::Current(_) => return Ok(Asked::Current),
            Reply::Newer => return Ok(Asked::Gone),
            Reply::Behind(batches) => self.follow(&batches)?,
            Reply::Lost(seq) => self.read_up_to(seq).await?,
            Reply::Fresh => self.resolve(&Want::Seal).await?,
            Reply::Busy(id) if self.is_lost(&id) => self.settle = Some(Settle::Drop(id)),
            Reply::Busy(_) => return Ok(Asked::Busy),
            Reply::Orphan { id, .. } if self.is_lost(&id) => {
                self.settle = Some(Settle::Drop(id));
            }
            Reply::Orphan { id, .. } if self.is_own(&id) => return Ok(Asked::Current),
            Reply::Orphan { id, rows, refused, .. } => {
                let rows = Row::split(&self.tail, &rows).map_err(|_| Down)?;
                tracing::warn!(room = %self.room.id(), batch = id, refused, "settling an orphan");
                let want = if refused { Want::Void(rows) } else { Want::Keep(rows) };
                self.resolve(&want).await?;
                self.settle = Some(Settle::Drop(id));
            }
        }
        Ok(Asked::Moved)
    }

    /// Asks until nothing is new.
    pub(super) async fn catch_up(&mut self) -> Result<Asked, Down> {
        loop {
            match self.ask(None).await? {
                Asked::Moved => {}
                other => return Ok(other),
            }
        }
    }

    /// Follows a message of the feed; false when something before it is missing.
    pub(super) fn hear(&mut self, from: u64, rows: &str) -> bool {
        let head = self.head();
        if from <= head && !rows.is_empty() {
            return true;
        }
        from == head + 1 && !rows.is_empty() && self.follow(&[rows]).is_ok()
    }

    fn follow(&mut self, batches: &[impl AsRef<str>]) -> Result<(), Down> {
        for batch in batches {
            let mut rows = Row::split(&self.tail, batch.as_ref()).map_err(|_| Down)?;
            if rows.first().map(|row| row.event.seq) != Some(self.head() + 1) {
                return Ok(());
            }
            Row::mark_void(&mut rows);
            self.apply(&rows);
        }
        Ok(())
    }

    /// Reads what the journal has up to a settled seq.
    async fn read_up_to(&mut self, seq: u64) -> Result<(), Down> {
        while self.head() < seq {
            let (room, generation) = (self.room.id(), self.room.generation());
            let after = (self.head(), self.tail);
            let rows = self.log.rows(room, generation, after, seq).await?;
            if rows.first().map(|row| row.event.seq) != Some(after.0 + 1) {
                tracing::error!(%room, after = after.0, seq, "the journal lacks settled rows");
                return Err(Down);
            }
            self.apply(&rows);
        }
        Ok(())
    }

    /// Folds what is certain of the journal's rows beyond the replica, and returns the rest: its
    /// last part, whose fate may still be open.
    async fn read_beyond(&mut self) -> Result<Vec<Row>, Down> {
        let mut held: Vec<Row> = Vec::new();
        loop {
            let after =
                held.last().map_or((self.head(), self.tail), |row| (row.event.seq, row.hash));
            let (room, generation) = (self.room.id(), self.room.generation());
            let rows = self.log.rows(room, generation, after, u64::MAX).await?;
            if rows.is_empty() {
                return Ok(held);
            }
            held.extend(rows);
            // The row that voids others may have come between two reads.
            Row::mark_void(&mut held);
            if held.len() >= 2 * BATCH_ROWS_MAX {
                // Rows of another batch follow these, so these stand.
                let open = held.split_off(held.len() - BATCH_ROWS_MAX);
                self.apply(&held);
                held = open;
            }
        }
    }

    /// Brings the replica to the end of the journal and settles rows in doubt on the way. Whoever
    /// writes the row that follows them decides; the journal's key lets only one do so.
    pub(super) async fn resolve(&mut self, want: &Want) -> Result<(), Down> {
        loop {
            let mut beyond = self.read_beyond().await?;
            let last = beyond.last();
            if last.is_some_and(|row| row.voids().is_some()) {
                self.apply(&beyond);
                return Ok(());
            }
            let end = last.map_or((self.head(), self.tail), |row| (row.event.seq, row.hash));
            let at = self.room.clock.now().max(self.room.state.room.read().last_at());
            let after = |end: (u64, Hash), from_seq, to_seq| {
                let fact = Fact::Voided { from_seq, to_seq };
                Row::after(&end.1, Event { seq: end.0 + 1, at, fact })
            };
            let kept = |end: (u64, Hash)| after(end, end.0 + 1, end.0);
            let next = Some(end.0 + 1);
            let attempt = match want {
                Want::Seal if beyond.is_empty() => return Ok(()),
                // Settled rows stand in their place: they never came into the journal.
                Want::Keep(rows) | Want::Void(rows)
                    if beyond.is_empty() && rows.first().map(|row| row.event.seq) != next =>
                {
                    return Ok(());
                }
                Want::Keep(rows) if beyond.is_empty() => {
                    let end = rows.last().map_or(end, |row| (row.event.seq, row.hash));
                    rows.iter().cloned().chain([kept(end)]).collect()
                }
                Want::Void(rows) if beyond.is_empty() || same(&beyond, rows) => {
                    let range = (rows.first(), rows.last());
                    let seq = |row: Option<&Row>| row.map_or(end.0 + 1, |row| row.event.seq);
                    vec![after(end, seq(range.0), seq(range.1))]
                }
                _ => vec![kept(end)],
            };
            match self.log.record(self.room.id(), self.room.generation(), &attempt).await {
                Ok(()) => {
                    beyond.extend(attempt);
                    Row::mark_void(&mut beyond);
                    self.apply(&beyond);
                    return Ok(());
                }
                Err(NotRecorded::Taken) => {}
                Err(NotRecorded::Refused | NotRecorded::Unknown) => return Err(Down),
            }
        }
    }

    /// Whether a row of this instance was folded: it is the one at its place in the chain.
    pub(super) async fn stands(&self, row: &Row) -> Result<bool, Down> {
        let seq = row.event.seq;
        // Only whether the text is the same matters here, not the chain before it.
        let after = (seq - 1, self.tail);
        let found = self.log.rows(self.room.id(), self.room.generation(), after, u64::MAX).await?;
        Ok(found.first().is_some_and(|found| found.text == row.text && !found.void))
    }
}

fn same(a: &[Row], b: &[Row]) -> bool {
    a.len() == b.len() && a.last().map(|row| row.hash) == b.last().map(|row| row.hash)
}
