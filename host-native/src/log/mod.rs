//! Where the events of a room go before anybody is told of them: the memory log keeps nothing, the
//! shared log orders batches in Valkey and records them in Postgres (HOL-18).

pub mod journal;
pub mod memory;
pub mod migration;
pub mod row;
pub mod store;
pub mod valkey;

use std::future::Future;
use std::time::Duration;

use qm_core::id::RoomId;

use self::row::{Hash, Row};

/// A batch that waits for its journal rows for this long is an orphan: whoever appended it is gone.
pub const ORPHAN_AFTER: Duration = Duration::from_secs(3);

/// A store that did not answer, or answered that it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Down;

/// Why rows were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRecorded {
    /// They are not in the journal and will never be.
    Refused,
    /// The answer was lost: they may be in the journal, or come into it yet.
    Unknown,
    /// Another row is where one of them belongs.
    Taken,
}

/// What to do with the batch that was appended before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Its rows are in the journal.
    Keep(String),
    /// It never happened, or the journal tells of it otherwise.
    Drop(String),
    /// Its callers were refused, and whether it is in the journal is unknown.
    Refuse(String),
}

/// A call of the append function.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The generation of the caller's room.
    pub generation: u64,
    /// Where the caller's replica stands.
    pub head: u64,
    /// Who asks.
    pub caller: String,
    /// What became of the batch before.
    pub settle: Option<Settle>,
    /// The batch to append: its id, last seq and rows.
    pub batch: Option<(String, u64, String)>,
    /// Settled batches below this seq are not needed any more.
    pub trim: u64,
}

/// Answers of the append function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The batch stands, and waits for its rows.
    Appended,
    /// Nothing to append, nothing new; the id of the batch that waits, if one does.
    Current(String),
    /// Settled batches the caller does not know, in order.
    Behind(Vec<String>),
    /// The caller is too far behind this store: the journal has what happened up to this seq.
    Lost(u64),
    /// The store knew nothing of the room.
    Fresh,
    /// Another batch waits for its rows, or another caller came first.
    Busy(String),
    /// A batch waits for too long.
    Orphan {
        /// Its id.
        id: String,
        /// Its first seq.
        from: u64,
        /// Its rows.
        rows: String,
        /// Whether its callers were refused.
        refused: bool,
    },
    /// The room was made anew.
    Newer,
}

/// The shared log of all rooms, as a room's task uses it.
pub trait SharedLog: Send + Sync + 'static {
    /// Settles and appends.
    fn ask(&self, room: &RoomId, ask: &Ask) -> impl Future<Output = Result<Reply, Down>> + Send;

    /// Writes rows to the journal, all of them or none.
    fn record(
        &self,
        room: &RoomId,
        generation: u64,
        rows: &[Row],
    ) -> impl Future<Output = Result<(), NotRecorded>> + Send;

    /// Reads rows after `seq` up to `up_to`, a part of them when they are many.
    fn rows(
        &self,
        room: &RoomId,
        generation: u64,
        after: (u64, Hash),
        up_to: u64,
    ) -> impl Future<Output = Result<Vec<Row>, Down>> + Send;

    /// Keeps a whole state. Best effort: the journal alone is enough.
    fn keep_snapshot(
        &self,
        room: qm_core::room::Room,
        hash: Hash,
    ) -> impl Future<Output = Result<(), Down>> + Send;
}
