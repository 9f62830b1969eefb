//! Everything that is not the live queue: operators, sessions, links, the audit trail, history,
//! notices, check-ins and alerts. Admin routes and jobs call it; it calls nobody. A store is one
//! variant of [`Side`], and every store passes the same tests.

pub mod alert;
pub mod audit;
pub mod check_in;
pub mod credential;
pub mod history;
mod memory;
pub mod notice;

use std::fmt;
use std::future::Future;

use qm_core::id::RoomId;
use qm_core::time::TimeMs;
use qm_core::token::Verifier;

use self::alert::Alert;
use self::audit::AuditEntry;
use self::check_in::{CheckIn, Seen};
use self::credential::{ConsoleSession, MonitorLink, Operator, StreamTicket};
use self::history::{Bucket, Grain};
pub use self::memory::MemorySide;
use self::notice::{Delivery, Notice, NoticeKey};

/// The store cannot be reached. A fault of ours: logged where it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideError(pub String);

impl fmt::Display for SideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to reach the side store: {}", self.0)
    }
}

impl std::error::Error for SideError {}

macro_rules! side_store {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        /// What a store of side data can do. Every call is atomic.
        pub trait SideStore: Send + Sync {
            $(
                $(#[$doc])*
                fn $name(&self, $($arg: $type),*)
                    -> impl Future<Output = Result<$out, SideError>> + Send;
            )*
        }

        impl Side {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`SideError`] when the store cannot be reached.
                pub async fn $name(&self, $($arg: $type),*) -> Result<$out, SideError> {
                    match self {
                        Self::Memory(side) => side.$name($($arg),*).await,
                    }
                }
            )*
        }
    };
}

/// The side store in use.
#[derive(Debug)]
pub enum Side {
    /// In this process; gone when it ends.
    Memory(MemorySide),
}

side_store! {
    /// Adds an operator.
    fn add_operator(operator: Operator) -> ();
    /// All operators, in the order they were made.
    fn operators() -> Vec<Operator>;
    /// One operator by id.
    fn operator(id: &str) -> Option<Operator>;
    /// The operator whose key has this verifier.
    fn operator_by_verifier(verifier: &Verifier) -> Option<Operator>;
    /// Stores an operator's key under a newer secret, unless it was changed meanwhile or has been
    /// under that secret before: a verifier never goes back.
    fn renew_verifier(id: &str, old: &Verifier, new: Verifier) -> bool;
    /// Removes an operator with all sessions; gives what was removed.
    fn remove_operator(id: &str) -> Option<Operator>;

    /// Opens a console session.
    fn add_session(session: ConsoleSession) -> ();
    /// A console session that has not run out.
    fn session(id: &str, now: TimeMs) -> Option<ConsoleSession>;
    /// Ends a console session; whether there was one.
    fn remove_session(id: &str) -> bool;

    /// Adds a monitor link.
    fn add_link(link: MonitorLink) -> ();
    /// The links that have not run out, oldest first.
    fn links(now: TimeMs) -> Vec<MonitorLink>;
    /// One link that has not run out.
    fn link(id: &str, now: TimeMs) -> Option<MonitorLink>;
    /// Revokes a link; whether there was one.
    fn remove_link(id: &str) -> bool;
    /// Revokes all links; how many.
    fn remove_links() -> u64;

    /// Keeps a ticket for the admin stream.
    fn add_stream_ticket(ticket: StreamTicket) -> ();
    /// Uses a ticket up, if it is alive.
    fn take_stream_ticket(digest: &str, now: TimeMs) -> Option<StreamTicket>;

    /// Appends an entry to the audit trail and gives its number.
    fn add_audit(entry: AuditEntry) -> u64;
    /// Entries older than number `before`, newest first.
    fn audit(before: Option<u64>, limit: usize) -> Vec<AuditEntry>;

    /// Notes that an installation was verified.
    fn check_in(seen: Seen) -> ();
    /// The installations that were verified, latest first.
    fn check_ins() -> Vec<CheckIn>;

    /// Sets a notice for a place, replacing an earlier one.
    fn put_notice(notice: Notice) -> ();
    /// The notice of a place.
    fn notice(key: &NoticeKey) -> Option<Notice>;
    /// Deletes the notice of a place; whether there was one.
    fn remove_notice(key: &NoticeKey) -> bool;
    /// Deletes the notices that were not sent yet in a generation of a room.
    fn remove_room_notices(room: &RoomId, generation: u64) -> u64;
    /// Moves a notice to another place and arms it again.
    fn move_notice(from: &NoticeKey, to: NoticeKey) -> bool;
    /// Notices not sent yet of a room: all references, and the tickets below `front`, at most
    /// `limit` of each.
    fn pending_notices(room: &RoomId, generation: u64, front: u64, limit: usize) -> Vec<Notice>;
    /// Takes a notice for sending: true for exactly one caller.
    fn claim_notice(key: &NoticeKey) -> bool;
    /// Notes how a delivery went.
    fn settle_notice(key: &NoticeKey, delivery: Delivery) -> ();
    /// Forgets notices requested before a time.
    fn prune_notices(before: TimeMs) -> u64;

    /// Stores buckets of a room's history, replacing those of the same start.
    fn save_history(room: &RoomId, grain: Grain, buckets: Vec<Bucket>) -> ();
    /// Buckets of a room from a time on, oldest first.
    fn history(room: &RoomId, grain: Grain, from: TimeMs) -> Vec<Bucket>;
    /// Forgets history before a time.
    fn prune_history(grain: Grain, before: TimeMs) -> ();

    /// The alerts raised and not cleared, oldest first.
    fn alerts() -> Vec<Alert>;
    /// Raises an alert; true unless it was raised already.
    fn raise_alert(alert: Alert) -> bool;
    /// Clears an alert; whether it was raised.
    fn clear_alert(key: &str) -> bool;
}

#[cfg(test)]
mod tests;
