//! What happened in a room (HOL-45). A room's state is the fold of its events; everything a replay
//! needs is in them, and nothing that changes many times a second.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::config::{RoomState, Settings};
use super::draw::DrawEntry;
use super::queue::{Client, EndReason};
use crate::digest::Digest16;
use crate::id::RoomId;
use crate::time::TimeMs;

/// One event with its place in the room's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Rises by one within a generation, from 1 (STK-09).
    pub seq: u64,
    /// When it happened; never earlier than the event before.
    pub at: TimeMs,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact {
    /// The room came into being: always the first event of a generation.
    RoomOpened {
        /// The room.
        room: RoomId,
        /// The generation it opens.
        generation: u64,
        /// Its first settings.
        settings: Box<Settings>,
    },
    /// Settings other than state or rate changed.
    RoomConfigured {
        /// All settings from now on.
        settings: Box<Settings>,
    },
    /// The configured state changed.
    StateChanged {
        /// The state from now on.
        state: RoomState,
    },
    /// The release rate changed.
    RateChanged {
        /// Releases a minute from now on.
        rate: super::config::Rate,
    },
    /// A visitor took the next ticket.
    Join {
        /// The ticket's number.
        n: u64,
        /// Who owns it; nobody for engine-internal callers (ENG-13).
        owner: Option<Digest16>,
        /// The browser that took it.
        client: Client,
    },
    /// A visitor took a place before the doors open.
    PreJoined {
        /// The reference.
        q: u64,
        /// Who owns it.
        owner: Option<Digest16>,
        /// The browser that took it.
        client: Client,
    },
    /// The owner of a place was seen on another network or browser (CHK-25, WAI-23).
    Bound {
        /// The ticket.
        n: u64,
        /// What the waiting page saw.
        client: Client,
    },
    /// The doors opened: the pre-queue became tickets, in the order that the seed gives.
    Drawn {
        /// 32 octets of entropy, lower-case hex.
        #[serde(with = "hex_seed")]
        seed: [u8; 32],
        /// The frozen entries, by rising reference.
        entries: Vec<DrawEntry>,
        /// The number of the first ticket drawn.
        first_ticket: u64,
    },
    /// Tickets were released by time.
    Passed(Release),
    /// Tickets were released by an operator, regardless of the rate.
    Flushed(Release),
    /// A pass opened the door.
    Admitted {
        /// The ticket.
        n: u64,
        /// What later checks must prove.
        proof: Proof,
    },
    /// The owner asked for the door session at the waiting page; the next fitting check gets it.
    ReclaimOffered {
        /// The ticket.
        n: u64,
    },
    /// A check took the door session over; the old proof is void (HOL-23).
    Reclaimed {
        /// The ticket.
        n: u64,
        /// What later checks must prove.
        proof: Proof,
    },
    /// Passes whose owners never learned of them gave their slots back (GHO-06).
    SlotsReturned {
        /// The tickets.
        ns: Vec<u64>,
    },
    /// Passes ran out unused.
    Expired {
        /// The tickets.
        ns: Vec<u64>,
    },
    /// Door sessions ended.
    SessionEnded {
        /// The tickets.
        ns: Vec<u64>,
    },
    /// An operator ejected a visitor.
    Ejected {
        /// The ticket.
        n: u64,
    },
    /// A visitor gave a ticket up.
    Left {
        /// The ticket.
        n: u64,
    },
    /// A visitor gave a pre-queue place up.
    PreLeft {
        /// The reference.
        q: u64,
    },
    /// An operator dropped everybody who waits, and the pre-queue.
    Purged,
    /// Ended tickets that no valid token can name any more were forgotten.
    Forgotten {
        /// All tickets up to this one.
        up_to: u64,
    },
    /// Settles what became of events whose record was in doubt: those of the range that stand
    /// before this one never happened. An empty range says that they all did.
    Voided {
        /// The first of them.
        from_seq: u64,
        /// The last of them.
        to_seq: u64,
    },
    /// The room was deleted: always the last event of a generation.
    RoomClosed,
}

/// Tickets released together. The numbers that waited within the ranges passed, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Inclusive ranges of ticket numbers.
    pub ranges: Vec<(u64, u64)>,
    /// Those of them that passed without a slot: their owners were absent (ENG-25).
    pub ns: Vec<u64>,
}

/// What proves a door session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The door key whose digest this is.
    Key(Digest16),
    /// The authenticated channel of a connector (CHK-21).
    Channel,
}

impl Fact {
    /// The event's name in the journal.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RoomOpened { .. } => "room_opened",
            Self::RoomConfigured { .. } => "room_configured",
            Self::StateChanged { .. } => "state_changed",
            Self::RateChanged { .. } => "rate_changed",
            Self::Join { .. } => "join",
            Self::PreJoined { .. } => "pre_joined",
            Self::Bound { .. } => "bound",
            Self::Drawn { .. } => "drawn",
            Self::Passed(_) => "passed",
            Self::Flushed(_) => "flushed",
            Self::Admitted { .. } => "admitted",
            Self::ReclaimOffered { .. } => "reclaim_offered",
            Self::Reclaimed { .. } => "reclaimed",
            Self::SlotsReturned { .. } => "slots_returned",
            Self::Expired { .. } => "expired",
            Self::SessionEnded { .. } => "session_ended",
            Self::Ejected { .. } => "ejected",
            Self::Left { .. } => "left",
            Self::PreLeft { .. } => "pre_left",
            Self::Purged => "purged",
            Self::Forgotten { .. } => "forgotten",
            Self::Voided { .. } => "voided",
            Self::RoomClosed => "room_closed",
        }
    }

    /// The tickets this event ended one by one, with the reason.
    pub(crate) fn endings(&self) -> impl Iterator<Item = (u64, EndReason)> + '_ {
        let (many, one): (&[u64], Option<u64>) = match self {
            Self::Expired { ns } | Self::SessionEnded { ns } => (ns, None),
            Self::Ejected { n } | Self::Left { n } => (&[], Some(*n)),
            _ => (&[], None),
        };
        let reason = match self {
            Self::Expired { .. } => EndReason::PassExpired,
            Self::SessionEnded { .. } => EndReason::SessionEnded,
            Self::Ejected { .. } => EndReason::Ejected,
            _ => EndReason::Left,
        };
        many.iter().copied().chain(one).map(move |n| (n, reason))
    }
}

/// The events of a log that happened: those without the ones that a later event voids. A log must
/// be folded through this.
pub fn effective(events: &[Event]) -> impl Iterator<Item = &Event> + '_ {
    let void = |event: &Event| match event.fact {
        Fact::Voided { from_seq, to_seq } if from_seq <= to_seq => {
            Some((from_seq, to_seq, event.seq))
        }
        _ => None,
    };
    let ranges: Vec<_> = events.iter().filter_map(void).collect();
    events.iter().filter(move |event| {
        let hit = |(from, to, at): &(u64, u64, u64)| {
            event.seq >= *from && event.seq <= *to && event.seq < *at
        };
        !ranges.iter().any(hit)
    })
}

mod hex_seed {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(seed: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&crate::digest::hex(seed))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = alloc::string::String::deserialize(from)?;
        crate::digest::parse_hex(&text).ok_or_else(|| D::Error::custom("not 64 hex digits"))
    }
}
