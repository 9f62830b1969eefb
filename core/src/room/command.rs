//! What a host asks of a room, and what the room answers. Commands carry only what was verified
//! outside the room: places from signed tokens of this generation, digests instead of secrets.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::config::RoomState;
use super::patch::{Patch, PatchError};
use super::queue::Client;
use crate::digest::Digest16;
use crate::door::{Knock, Verdict};
use crate::id::Place;

/// Something a room is asked to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Give a visitor a place, or their own place back.
    Join(Join),
    /// Give a place up.
    Leave(Claim),
    /// Let a visitor through the door, if the door decides so now.
    Enter {
        /// Who knocks, with what.
        knock: Knock,
        /// The digest of the key to give out, should a keyed session open.
        fresh_key: Digest16,
    },
    /// Do what time makes due: expiries, the draw, timed releases.
    Tick {
        /// Tickets that joined longer ago than this and are over may be forgotten.
        retain_ms: u64,
    },
    /// Release this many from the front now.
    Flush {
        /// How many at most.
        count: u64,
    },
    /// End one ticket.
    Eject {
        /// Its number.
        ticket: u64,
    },
    /// Drop everybody who waits.
    Purge,
    /// Change settings.
    Configure(Box<Patch>),
    /// Change the configured state.
    SetState(RoomState),
    /// Delete the room.
    Close,
}

/// What a visitor presents: places their tokens name, and owner proofs.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// Places of verified tokens of this generation.
    pub places: Vec<Place>,
    /// Digests of the session ids presented.
    pub owners: Vec<Digest16>,
}

/// A visitor who wants a place.
#[derive(Clone, Debug)]
pub struct Join {
    /// What the visitor presents.
    pub claim: Claim,
    /// The digest of the session id a new place is bound to; `None` makes an ownerless ticket,
    /// which only callers inside the server may do (ENG-13).
    pub fresh_owner: Option<Digest16>,
    /// The browser.
    pub client: Client,
    /// The most places the pre-queue may hold (`PREQUEUE_MAX`).
    pub pre_queue_max: u64,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The visitor stands at this place. In a room in bypass it may be ticket 0.
    Placed {
        /// The place.
        place: Place,
        /// The owner proof presented is that of the place; otherwise `fresh_owner` is.
        owner_index: Option<usize>,
    },
    /// The place was given up, or was over already.
    Left,
    /// What the door decided, and whether a session opened by it.
    Door {
        /// The verdict.
        verdict: Verdict,
        /// The door session was opened or taken over with the fresh key.
        key_issued: bool,
    },
    /// This many were released.
    Released(u64),
    /// The ticket was ended.
    Ejected,
    /// This many were dropped.
    Purged {
        /// From the queue.
        waiting: u64,
        /// From the pre-queue.
        pre_queue: u64,
    },
    /// Done, nothing to tell.
    Done,
}

/// Why a command was not done. The visitor's or operator's doing: nothing changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The address holds `queueMaxPerIp` places (GHO-08).
    QueueAddressLimit,
    /// The address holds `preQueueMaxPerIp` places (PRE-08).
    PreQueueAddressLimit,
    /// The pre-queue is full (PRE-09).
    PreQueueFull,
    /// No owner proof for the place (COO-04).
    NotOwner,
    /// No such ticket, or it is over.
    NoSuchTicket,
    /// The settings do not fit.
    Settings(PatchError),
    /// The room is gone.
    Closed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = match self {
            Self::QueueAddressLimit => {
                "this address holds as many places as the room allows".into()
            }
            Self::PreQueueAddressLimit => {
                "this address holds as many pre-queue places as the room allows".into()
            }
            Self::PreQueueFull => "the pre-queue is full".into(),
            Self::NotOwner => "the place belongs to another browser".into(),
            Self::NoSuchTicket => "no such ticket is alive".into(),
            Self::Settings(error) => error.message.as_str().into(),
            Self::Closed => "the room is gone".into(),
        };
        f.write_str(&text)
    }
}
