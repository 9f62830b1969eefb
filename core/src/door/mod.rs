//! The door check: one function from (what the request shows, the room, now) to a verdict, for the
//! server and every edge host. `gate` reads the request and settles what needs no place; this
//! module decides about the place; `reply` writes the answer.

pub mod gate;
pub mod reply;

use alloc::vec::Vec;

use crate::digest::Digest16;
use crate::id::Place;
use crate::room::config::RoomState;
use crate::room::{Client, EndReason, Presence, Proof, Room, Standing};
use crate::time::TimeMs;

/// Somebody at the door of a room: the place shown and what proves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Knock {
    /// What the token names.
    pub shown: Shown,
    /// Digests of the `qms_` session ids that came along.
    pub owners: Vec<Digest16>,
    /// How the check reached us.
    pub channel: Channel,
}

/// What a token at the door comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// No token was sent.
    Nothing,
    /// A token was sent that is none: unreadable, foreign, dead, or a bypass pass (HOL-10, HOL-53).
    Useless,
    /// A token of an earlier generation.
    Outdated,
    /// A token of this generation.
    Place(Place),
}

/// How a check reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// From the visitor's browser.
    Direct {
        /// The browser, as this request shows it.
        client: Client,
        /// The digest of the door key sent.
        key: Option<Digest16>,
    },
    /// From a connector that vouches for the visitor (CHK-17). It never reads the key (CHK-27).
    Vouched {
        /// The visitor vouched for.
        client: Client,
    },
}

/// What the door decides about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The pass opens the door: to be recorded before it is answered (CHK-06).
    Admit {
        /// The ticket.
        n: u64,
    },
    /// The owner takes the session back: to be recorded before it is answered.
    Reclaim {
        /// The ticket.
        n: u64,
    },
    /// The session is open and proven.
    Session {
        /// The ticket.
        n: u64,
    },
    /// To the waiting page.
    Queue {
        /// The reason, one of HOL-35.
        reason: &'static str,
        /// The integration must delete what it stored (CHK-14).
        clear_token: bool,
    },
}

const fn queue(reason: &'static str) -> Verdict {
    Verdict::Queue { reason, clear_token: false }
}

const fn queue_and_clear(reason: &'static str) -> Verdict {
    Verdict::Queue { reason, clear_token: true }
}

/// Decides about the place shown at the door of an active or paused room.
#[must_use]
pub fn decide_place(room: &Room, presence: &Presence, knock: &Knock, now: TimeMs) -> Verdict {
    match look_at_place(room, presence, knock.shown, now) {
        Looked::Decided(verdict) => verdict,
        Looked::Passed { n } if fits_binding(room, n, knock) => Verdict::Admit { n },
        Looked::Passed { .. } => queue("bound_to_other_client"),
        Looked::Admitted { n } => decide_session(room, n, knock, now),
    }
}

/// The verdict, when it does not depend on who knocks: so for everybody who waits. Spares the host
/// the digests of a [`Knock`] on nearly all checks of a busy room.
#[must_use]
pub fn decide_without_proof(
    room: &Room,
    presence: &Presence,
    shown: Shown,
    now: TimeMs,
) -> Option<Verdict> {
    match look_at_place(room, presence, shown, now) {
        Looked::Decided(verdict) => Some(verdict),
        Looked::Passed { .. } | Looked::Admitted { .. } => None,
    }
}

/// What the place shown comes to before anybody proves it.
enum Looked {
    Decided(Verdict),
    Passed { n: u64 },
    Admitted { n: u64 },
}

fn look_at_place(room: &Room, presence: &Presence, shown: Shown, now: TimeMs) -> Looked {
    let place = match shown {
        Shown::Nothing => return Looked::Decided(queue("no_token")),
        Shown::Useless | Shown::Place(Place::Ticket(0)) => {
            return Looked::Decided(queue_and_clear("no_token"));
        }
        Shown::Outdated => return Looked::Decided(queue_and_clear("room_reset")),
        Shown::Place(place) => place,
    };
    Looked::Decided(match room.standing(place, presence, now) {
        Standing::Waiting { .. } => queue(waiting_reason(room, now)),
        Standing::PreQueued { .. } => queue("scheduled"),
        Standing::Passed { n, .. } => return Looked::Passed { n },
        Standing::Admitted { n, .. } => return Looked::Admitted { n },
        Standing::Ended(reason) => queue_and_clear(door_word(reason)),
        Standing::Unknown => queue_and_clear("no_token"),
    })
}

fn waiting_reason(room: &Room, now: TimeMs) -> &'static str {
    if room.gate_closed(now) {
        "scheduled"
    } else if room.settings().state == RoomState::Paused {
        "paused"
    } else {
        "waiting"
    }
}

/// The word at the door for a place that is over (HOL-35).
const fn door_word(reason: EndReason) -> &'static str {
    match reason {
        EndReason::SessionEnded => "session_expired",
        other => other.as_str(),
    }
}

/// Fingerprints are no proof (CHK-15): attempts without one leave the session as it is.
fn decide_session(room: &Room, n: u64, knock: &Knock, now: TimeMs) -> Verdict {
    let Some(session) = room.session(n) else { return queue_and_clear("no_token") };
    let proven = match (session.proof, knock.channel) {
        (Proof::Key(digest), Channel::Direct { key, .. }) => key == Some(digest),
        (Proof::Channel, Channel::Vouched { .. }) => true,
        (Proof::Key(_), Channel::Vouched { .. }) | (Proof::Channel, Channel::Direct { .. }) => {
            false
        }
    };
    if proven {
        return Verdict::Session { n };
    }
    let offered = session.reclaim_until.is_some_and(|until| now < until);
    if offered && fits_binding(room, n, knock) {
        return Verdict::Reclaim { n };
    }
    let sent_wrong_key = matches!(knock.channel, Channel::Direct { key: Some(_), .. });
    if is_owner(room, n, knock) && !sent_wrong_key {
        return Verdict::Session { n };
    }
    queue_and_clear("session_elsewhere")
}

/// Whether the check comes from the client that queued: the owner cookie proves it by itself; a
/// connector vouches for an address; a browser shows address and agent (CHK-24, CHK-26).
fn fits_binding(room: &Room, n: u64, knock: &Knock) -> bool {
    let Some(ticket) = room.ticket(n) else { return false };
    if ticket.owner.is_none() || is_owner(room, n, knock) {
        return true;
    }
    match knock.channel {
        Channel::Vouched { client } => ticket.knows_address(&client),
        Channel::Direct { client, .. } => {
            ticket.knows_address(&client) && ticket.agent == client.agent
        }
    }
}

fn is_owner(room: &Room, n: u64, knock: &Knock) -> bool {
    knock.owners.iter().any(|owner| room.is_owner(Place::Ticket(n), owner))
}
