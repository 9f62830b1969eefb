//! The line itself: every ticket of the current generation by number, who waits, whose ticket it is
//! and how many places an address holds. Storage only: the rules are in `decide` and `apply`.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use hashbrown::{HashMap, HashTable};
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::undo::QueueUndo;
use super::waiting::Waiting;
use crate::address::{AddressDigest, AgentDigest};
use crate::digest::Digest16;
use crate::time::TimeMs;

/// The network a visitor was seen on: one address of each family is remembered (CHK-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, by its /64.
    V6,
}

/// What binds a place to the browser that took it (CHK-24, CHK-26).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The family of the address.
    pub family: Family,
    /// The digest of the address, or of the /64.
    pub address: AddressDigest,
    /// The digest of the User-Agent.
    pub agent: AgentDigest,
}

impl Client {
    pub(super) fn feed(&self, to: &mut Fingerprint) {
        to.number(u64::from(self.family == Family::V6));
        to.number(self.address.0);
        to.number(self.agent.0);
    }
}

/// Why a place is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The pass was not used within `passedTtlSec` (HOL-56).
    PassExpired,
    /// The door session ended (HOL-55).
    SessionEnded,
    /// An operator ejected the visitor.
    Ejected,
    /// An operator purged the room.
    Purged,
    /// The visitor gave the place up.
    Left,
    /// The place belongs to an earlier generation, or the room is gone.
    RoomReset,
}

impl EndReason {
    /// The word for status frames (HOL-56).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PassExpired => "pass_expired",
            Self::SessionEnded => "session_ended",
            Self::Ejected => "ejected",
            Self::Purged => "purged",
            Self::Left => "left",
            Self::RoomReset => "room_reset",
        }
    }

    /// What the waiting page says was lost: `expired`, `reset` or nothing (WAI-08).
    #[must_use]
    pub const fn lapsed(self) -> Option<&'static str> {
        match self {
            Self::PassExpired | Self::SessionEnded => Some("expired"),
            Self::Ejected | Self::Purged | Self::RoomReset => Some("reset"),
            Self::Left => None,
        }
    }
}

/// Where a ticket stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Stage {
    Waiting,
    Passed,
    Ended(EndReason),
}

/// One ticket. Kept small: a room holds a million of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ticket {
    /// Nobody owns tickets of engine-internal callers (ENG-13).
    pub(crate) owner: Option<Digest16>,
    /// Address seen last, one a family; 0 is none.
    pub(crate) addresses: [AddressDigest; 2],
    pub(crate) agent: AgentDigest,
    /// The address whose cap this place counts against.
    pub(crate) counted: AddressDigest,
    pub(crate) joined_at: TimeMs,
    /// When it was over; means nothing before.
    pub(crate) ended_at: TimeMs,
    pub(crate) stage: Stage,
}

impl Ticket {
    pub(crate) fn knows_address(&self, client: &Client) -> bool {
        self.addresses.get(slot_of(client.family)) == Some(&client.address)
    }
}

pub(crate) const fn slot_of(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

/// The two remembered addresses with one of them filled in.
pub(crate) fn addresses_of(client: &Client) -> [AddressDigest; 2] {
    let mut addresses = [AddressDigest(0); 2];
    if let Some(slot) = addresses.get_mut(slot_of(client.family)) {
        *slot = client.address;
    }
    addresses
}

/// Places an address holds; an entry exists only while it is above zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressCounts(HashMap<AddressDigest, u32>);

impl AddressCounts {
    pub(crate) fn of(&self, address: AddressDigest) -> u32 {
        self.0.get(&address).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, address: AddressDigest) {
        *self.0.entry(address).or_insert(0) += 1;
    }

    pub(crate) fn remove(&mut self, address: AddressDigest) {
        if let Some(count) = self.0.get_mut(&address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(&address);
            }
        }
    }

    pub(super) fn feed(&self, to: &mut Fingerprint) {
        to.sorted(self.0.iter(), |to, address, count| {
            to.number(address.0);
            to.number(u64::from(*count));
        });
    }
}

/// Tickets a chunk: growth never copies what is there, and the front is dropped chunk by chunk.
const CHUNK: u64 = 1024;

/// All tickets of a generation, densely numbered from 1.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    chunks: VecDeque<Vec<Ticket>>,
    /// Number of the first ticket still kept, less one.
    dropped: u64,
    next: u64,
    owners: HashTable<u64>,
    pub(crate) waiting: Waiting,
    pub(crate) per_address: AddressCounts,
    /// What to put back; kept only while the room rehearses.
    undo: Option<Box<QueueUndo>>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            dropped: 0,
            next: 1,
            owners: HashTable::new(),
            waiting: Waiting::default(),
            per_address: AddressCounts::default(),
            undo: None,
        }
    }

    /// The number the next ticket gets.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn ticket(&self, number: u64) -> Option<&Ticket> {
        let (chunk, index) = self.position(number)?;
        self.chunks.get(chunk)?.get(index)
    }

    pub(crate) fn ticket_mut(&mut self, number: u64) -> Option<&mut Ticket> {
        let (chunk, index) = self.position(number)?;
        let ticket = self.chunks.get_mut(chunk)?.get_mut(index)?;
        if let Some(undo) = &mut self.undo {
            undo.changed.push((number, ticket.clone()));
        }
        Some(ticket)
    }

    fn position(&self, number: u64) -> Option<(usize, usize)> {
        let offset = number.checked_sub(self.dropped + 1)?;
        Some((usize::try_from(offset / CHUNK).ok()?, usize::try_from(offset % CHUNK).ok()?))
    }

    /// Puts a waiting ticket at the back.
    pub(crate) fn push(&mut self, ticket: Ticket) {
        let number = self.next;
        self.next += 1;
        self.waiting.push(number);
        let owner = ticket.owner;
        if owner.is_some() {
            self.per_address.add(ticket.counted);
        }
        if self.chunks.back().is_none_or(|chunk| is_full(chunk)) {
            self.chunks.push_back(Vec::with_capacity(usize::try_from(CHUNK).unwrap_or(0)));
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.push(ticket);
        }
        if let Some(owner) = owner {
            self.index_owner(owner, number);
        }
    }

    fn index_owner(&mut self, owner: Digest16, number: u64) {
        let (chunks, dropped) = (&self.chunks, self.dropped);
        self.owners.insert_unique(owner.prefix(), number, |other| {
            owner_at(chunks, dropped, *other).map_or(0, |digest| digest.prefix())
        });
    }

    fn forget_owner(&mut self, owner: Digest16, number: u64) {
        if let Ok(entry) = self.owners.find_entry(owner.prefix(), |other| *other == number) {
            entry.remove();
        }
    }

    /// The live ticket of an owner.
    pub(crate) fn owned_by(&self, owner: &Digest16) -> Option<u64> {
        let same = |number: &u64| self.ticket(*number).and_then(|t| t.owner) == Some(*owner);
        self.owners.find(owner.prefix(), same).copied()
    }

    /// Moves a ticket from waiting to passed; false when it was not waiting.
    pub(crate) fn pass(&mut self, number: u64) -> bool {
        if !self.waiting.remove(number) {
            return false;
        }
        if let Some(ticket) = self.ticket_mut(number) {
            ticket.stage = Stage::Passed;
            let (owner, counted) = (ticket.owner, ticket.counted);
            self.leave_line(owner, counted);
        }
        true
    }

    /// Ownerless tickets are outside the cap, so they count against nobody (GHO-09).
    fn leave_line(&mut self, owner: Option<Digest16>, counted: AddressDigest) {
        if owner.is_some() {
            self.per_address.remove(counted);
        }
    }

    /// Ends a ticket, whatever it was; false when there is none or it had ended.
    pub(crate) fn end(&mut self, number: u64, reason: EndReason, at: TimeMs) -> bool {
        let Some(ticket) = self.ticket_mut(number) else { return false };
        let (was, owner, counted) = (ticket.stage, ticket.owner, ticket.counted);
        if matches!(was, Stage::Ended(_)) {
            return false;
        }
        ticket.stage = Stage::Ended(reason);
        ticket.ended_at = at;
        if self.waiting.remove(number) {
            self.leave_line(owner, counted);
        }
        if let Some(owner) = owner {
            self.forget_owner(owner, number);
        }
        true
    }

    /// The last number of the oldest full chunk when all of its tickets ended before `horizon`: it
    /// may be forgotten, no valid token can name it any more, for a place is signed anew only while
    /// it lives.
    pub(crate) fn forgettable(&self, horizon: TimeMs) -> Option<u64> {
        let chunk = self.chunks.front().filter(|chunk| is_full(chunk))?;
        let over = |t: &Ticket| matches!(t.stage, Stage::Ended(_)) && t.ended_at < horizon;
        chunk.iter().all(over).then_some(self.dropped + CHUNK)
    }

    /// Forgets whole chunks up to `number`.
    pub(crate) fn forget(&mut self, number: u64) {
        while self.dropped + CHUNK <= number
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.dropped += CHUNK;
            if let Some(undo) = &mut self.undo {
                undo.forgotten.push(chunk);
            }
        }
    }

    /// From here on everything can be put back.
    pub(crate) fn begin(&mut self) {
        self.undo = Some(Box::new(QueueUndo::at(self.next)));
    }

    /// Puts everything back as it was at [`Queue::begin`].
    pub(crate) fn put_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for chunk in undo.forgotten.into_iter().rev() {
            self.chunks.push_front(chunk);
            self.dropped = self.dropped.saturating_sub(CHUNK);
        }
        for (number, ticket) in undo.changed.into_iter().rev() {
            self.replace(number, ticket);
        }
        while self.next > undo.next {
            self.pop();
        }
    }

    /// Makes a ticket what it was, in the indices too.
    fn replace(&mut self, number: u64, old: Ticket) {
        let Some((chunk, index)) = self.position(number) else { return };
        self.unindex(number);
        let (owner, counted, stage) = (old.owner, old.counted, old.stage);
        if let Some(slot) = self.chunks.get_mut(chunk).and_then(|chunk| chunk.get_mut(index)) {
            *slot = old;
        }
        if stage == Stage::Waiting {
            self.waiting.push(number);
            if owner.is_some() {
                self.per_address.add(counted);
            }
        }
        if let Some(owner) = owner.filter(|_| !matches!(stage, Stage::Ended(_))) {
            self.index_owner(owner, number);
        }
    }

    /// Takes the newest ticket back.
    fn pop(&mut self) {
        self.next -= 1;
        self.unindex(self.next);
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.pop();
            if chunk.is_empty() {
                self.chunks.pop_back();
            }
        }
    }

    fn unindex(&mut self, number: u64) {
        let Some(ticket) = self.ticket(number) else { return };
        let (owner, counted) = (ticket.owner, ticket.counted);
        if self.waiting.remove(number) {
            self.leave_line(owner, counted);
        }
        if let Some(owner) = owner {
            self.forget_owner(owner, number);
        }
    }

    /// All tickets kept, with the number of the last one forgotten.
    pub(crate) fn tickets(&self) -> (u64, impl Iterator<Item = &Ticket> + '_) {
        (self.dropped, self.chunks.iter().flatten())
    }

    /// The line that [`Queue::tickets`] told of.
    pub(crate) fn of_tickets(dropped: u64, tickets: Vec<Ticket>) -> Self {
        let mut queue = Self { dropped, next: dropped + 1, ..Self::new() };
        for ticket in tickets {
            let (number, stage, owner, counted) =
                (queue.next, ticket.stage, ticket.owner, ticket.counted);
            queue.push(ticket);
            if stage != Stage::Waiting {
                queue.waiting.remove(number);
                queue.leave_line(owner, counted);
            }
            if let Some(owner) = owner.filter(|_| matches!(stage, Stage::Ended(_))) {
                queue.forget_owner(owner, number);
            }
        }
        queue
    }

    /// The last number that was forgotten; 0 when none was.
    pub(crate) const fn forgotten(&self) -> u64 {
        self.dropped
    }

    /// Whether the ticket existed and is already forgotten.
    pub(crate) const fn was_forgotten(&self, number: u64) -> bool {
        number >= 1 && number <= self.dropped
    }

    pub(super) fn feed(&self, to: &mut Fingerprint) {
        to.number(self.dropped);
        to.number(self.next);
        for ticket in self.chunks.iter().flatten() {
            to.owner(ticket.owner.as_ref());
            ticket.addresses.iter().for_each(|address| to.number(address.0));
            to.number(ticket.agent.0);
            to.number(ticket.counted.0);
            to.number(ticket.joined_at.0);
            to.number(ticket.ended_at.0);
            to.octets(match ticket.stage {
                Stage::Waiting => b"waiting",
                Stage::Passed => b"passed",
                Stage::Ended(reason) => reason.as_str().as_bytes(),
            });
        }
        to.sorted(self.owners.iter().map(|n| (*n, ())), |to, n, ()| to.number(n));
        to.sorted(self.waiting.iter().map(|n| (n, ())), |to, n, ()| to.number(n));
        self.per_address.feed(to);
    }
}

/// By its length: the capacity of a vector may be more than asked for, and that of a copy is less.
fn is_full(chunk: &[Ticket]) -> bool {
    u64::try_from(chunk.len()) == Ok(CHUNK)
}

fn owner_at(chunks: &VecDeque<Vec<Ticket>>, dropped: u64, number: u64) -> Option<Digest16> {
    let offset = number.checked_sub(dropped + 1)?;
    let chunk = chunks.get(usize::try_from(offset / CHUNK).ok()?)?;
    chunk.get(usize::try_from(offset % CHUNK).ok()?)?.owner
}
