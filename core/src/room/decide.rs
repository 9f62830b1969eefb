//! The rules of the queue: what a command does to a room, as events. Pure: time, entropy and
//! presence are arguments, and nothing changes here.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::command::{Claim, Command, Join, Outcome, Refusal};
use super::config::{RoomState, Settings};
use super::draw::DrawEntry;
use super::event::{Fact, Proof};
use super::patch::Patch;
use super::prequeue::Entry;
use super::presence::Presence;
use super::queue::Client;
use super::release;
use super::{Room, Standing};
use crate::digest::Digest16;
use crate::door::{self, Channel, Knock, Verdict};
use crate::id::{INTEGER_MAX, Place};
use crate::time::TimeMs;

/// Endings written in one tick, so that a tick stays short; the next one goes on.
const ENDINGS_MAX: usize = 5000;

/// What a command comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What happens, in order.
    pub facts: Vec<Fact>,
    /// The answer once that happened.
    pub outcome: Outcome,
}

impl Decision {
    fn of(facts: Vec<Fact>, outcome: Outcome) -> Self {
        Self { facts, outcome }
    }
}

/// Decides `command` on `room` at `now`. `entropy` is 32 random octets, fresh for every call.
///
/// # Errors
/// A [`Refusal`] when the rules forbid it; nothing happens then.
pub fn decide(
    room: &Room,
    presence: &Presence,
    command: &Command,
    now: TimeMs,
    entropy: &[u8; 32],
) -> Result<Decision, Refusal> {
    if room.is_closed() {
        return Err(Refusal::Closed);
    }
    match command {
        Command::Join(join) => decide_join(room, presence, join, now, entropy),
        Command::Leave(claim) => decide_leave(room, presence, claim, now),
        Command::Enter { knock, fresh_key } => {
            Ok(decide_enter(room, presence, knock, *fresh_key, now))
        }
        Command::Tick { retain_ms } => {
            let facts = decide_tick(room, presence, *retain_ms, now, entropy);
            Ok(Decision::of(facts, Outcome::Done))
        }
        Command::Flush { count } => {
            let plan = release::flush(room, presence, *count, now);
            let facts = if plan.count == 0 { vec![] } else { vec![Fact::Flushed(plan.release)] };
            Ok(Decision::of(facts, Outcome::Released(plan.count)))
        }
        Command::Eject { ticket } => match room.standing(Place::Ticket(*ticket), presence, now) {
            Standing::Waiting { n } | Standing::Passed { n, .. } | Standing::Admitted { n, .. } => {
                Ok(Decision::of(vec![Fact::Ejected { n }], Outcome::Ejected))
            }
            _ => Err(Refusal::NoSuchTicket),
        },
        Command::Purge => {
            let (waiting, pre_queue) = (room.waiting(), room.pre_queued());
            let facts = if waiting + pre_queue == 0 { vec![] } else { vec![Fact::Purged] };
            Ok(Decision::of(facts, Outcome::Purged { waiting, pre_queue }))
        }
        Command::Configure(patch) => decide_configure(room, patch, now, entropy),
        Command::SetState(state) => {
            let changed = *state != room.settings.state;
            let facts = if changed { vec![Fact::StateChanged { state: *state }] } else { vec![] };
            Ok(Decision::of(facts, Outcome::Done))
        }
        Command::Close => Ok(Decision::of(vec![Fact::RoomClosed], Outcome::Done)),
    }
}

fn decide_join(
    room: &Room,
    presence: &Presence,
    join: &Join,
    now: TimeMs,
    entropy: &[u8; 32],
) -> Result<Decision, Refusal> {
    if let Some((place, owner_index)) = own_live_place(room, presence, &join.claim, now) {
        let facts = return_facts(room, presence, place, &join.client, now);
        return Ok(Decision::of(facts, Outcome::Placed { place, owner_index: Some(owner_index) }));
    }
    if room.is_bypass() {
        return Ok(Decision::of(
            vec![],
            Outcome::Placed { place: Place::Ticket(0), owner_index: None },
        ));
    }
    let (fact, place) = if room.gate_closed(now) {
        pre_join(room, join, entropy)?
    } else {
        take_ticket(room, join)?
    };
    Ok(Decision::of(vec![fact], Outcome::Placed { place, owner_index: None }))
}

fn take_ticket(room: &Room, join: &Join) -> Result<(Fact, Place), Refusal> {
    let limit = room.settings.queue_max_per_address.filter(|_| join.fresh_owner.is_some());
    if limit.is_some_and(|most| room.queue.per_address.of(join.client.address) >= most) {
        return Err(Refusal::QueueAddressLimit);
    }
    let n = room.next_ticket();
    Ok((Fact::Join { n, owner: join.fresh_owner, client: join.client }, Place::Ticket(n)))
}

fn pre_join(room: &Room, join: &Join, entropy: &[u8; 32]) -> Result<(Fact, Place), Refusal> {
    if room.pre_queued() >= join.pre_queue_max {
        return Err(Refusal::PreQueueFull);
    }
    let limit = room.settings.pre_queue_max_per_address.filter(|_| join.fresh_owner.is_some());
    if limit.is_some_and(|most| room.pre.per_address.of(join.client.address) >= most) {
        return Err(Refusal::PreQueueAddressLimit);
    }
    let q = free_reference(room, entropy);
    Ok((Fact::PreJoined { q, owner: join.fresh_owner, client: join.client }, Place::Reference(q)))
}

/// A reference that reveals nothing (PRE-02): 52 random bits, moved on while taken.
fn free_reference(room: &Room, entropy: &[u8; 32]) -> u64 {
    let random = entropy.iter().take(8).fold(0, |sum: u64, octet| (sum << 8) | u64::from(*octet));
    let mut reference = (random >> 12).max(1);
    while room.pre.is_taken(reference) {
        reference = if reference >= INTEGER_MAX { 1 } else { reference + 1 };
    }
    reference
}

/// The live place whose owner is presented: one the tokens name, else the one the owner proof finds
/// by itself, so that nobody who can prove a place loses it with a token.
fn own_live_place(
    room: &Room,
    presence: &Presence,
    claim: &Claim,
    now: TimeMs,
) -> Option<(Place, usize)> {
    let resolve = |place| match room.standing(place, presence, now) {
        Standing::Waiting { n } | Standing::Passed { n, .. } | Standing::Admitted { n, .. } => {
            Some(Place::Ticket(n))
        }
        Standing::PreQueued { q } => Some(Place::Reference(q)),
        Standing::Ended(_) | Standing::Unknown => None,
    };
    let owner_of = |place| claim.owners.iter().position(|owner| room.is_owner(place, owner));
    let named = claim.places.iter().find_map(|place| {
        let place = resolve(*place)?;
        Some((place, owner_of(place)?))
    });
    named.or_else(|| {
        claim.owners.iter().enumerate().find_map(|(index, owner)| {
            let ticket = room.queue.owned_by(owner).map(Place::Ticket);
            let place = ticket.or_else(|| room.pre.owned_by(owner).map(Place::Reference))?;
            Some((resolve(place)?, index))
        })
    })
}

/// What the return of an owner to the waiting page leaves in the log.
fn return_facts(
    room: &Room,
    presence: &Presence,
    place: Place,
    client: &Client,
    now: TimeMs,
) -> Vec<Fact> {
    let mut facts = vec![];
    let Place::Ticket(n) = place else { return facts };
    let ticket = room.queue.ticket(n);
    if ticket.is_some_and(|ticket| !ticket.knows_address(client) || ticket.agent != client.agent) {
        facts.push(Fact::Bound { n, client: *client });
    }
    let admitted = matches!(room.standing(place, presence, now), Standing::Admitted { .. });
    let offered = room
        .passes
        .look_up(n)
        .and_then(|pass| pass.session.as_ref())
        .and_then(|session| session.reclaim_until)
        .is_some_and(|until| now < until);
    if admitted && !offered {
        facts.push(Fact::ReclaimOffered { n });
    }
    facts
}

fn decide_leave(
    room: &Room,
    presence: &Presence,
    claim: &Claim,
    now: TimeMs,
) -> Result<Decision, Refusal> {
    if let Some((place, _)) = own_live_place(room, presence, claim, now) {
        let fact = match place {
            Place::Ticket(n) => Fact::Left { n },
            Place::Reference(q) => Fact::PreLeft { q },
        };
        return Ok(Decision::of(vec![fact], Outcome::Left));
    }
    let owns = |place: &Place| claim.owners.iter().any(|owner| room.is_owner(*place, owner));
    let over = |place: &Place| {
        matches!(room.standing(*place, presence, now), Standing::Ended(_))
            && (owns(place) || matches!(place, Place::Reference(_)))
    };
    if claim.places.iter().any(over) {
        // Already over: leaving twice is no error.
        return Ok(Decision::of(vec![], Outcome::Left));
    }
    Err(Refusal::NotOwner)
}

fn decide_enter(
    room: &Room,
    presence: &Presence,
    knock: &Knock,
    fresh_key: Digest16,
    now: TimeMs,
) -> Decision {
    let verdict = door::decide_place(room, presence, knock, now);
    let keyed = matches!(knock.channel, Channel::Direct { .. });
    let proof = if keyed { Proof::Key(fresh_key) } else { Proof::Channel };
    let facts = match verdict {
        Verdict::Admit { n } => vec![Fact::Admitted { n, proof }],
        Verdict::Reclaim { n } => vec![Fact::Reclaimed { n, proof }],
        _ => vec![],
    };
    let key_issued = keyed && !facts.is_empty();
    Decision::of(facts, Outcome::Door { verdict, key_issued })
}

fn decide_configure(
    room: &Room,
    patch: &Patch,
    now: TimeMs,
    entropy: &[u8; 32],
) -> Result<Decision, Refusal> {
    let settings = patch.apply(&room.settings, now).map_err(Refusal::Settings)?;
    let opens_now = settings.opens_at.is_none_or(|opens_at| opens_at <= now);
    let mut facts = vec![];
    if let Some(fact) = settings_fact(&room.settings, settings) {
        facts.push(fact);
    }
    if opens_now && !room.pre.is_empty() {
        facts.push(draw_fact(room, entropy));
    }
    Ok(Decision::of(facts, Outcome::Done))
}

/// The narrowest event that tells the difference; `None` when there is none.
fn settings_fact(old: &Settings, new: Settings) -> Option<Fact> {
    if *old == new {
        return None;
    }
    let state_only = Settings { state: new.state, ..old.clone() } == new;
    let rate_only = Settings { rate: new.rate, ..old.clone() } == new;
    Some(if state_only {
        Fact::StateChanged { state: new.state }
    } else if rate_only {
        Fact::RateChanged { rate: new.rate }
    } else {
        Fact::RoomConfigured { settings: Box::new(new) }
    })
}

fn decide_tick(
    room: &Room,
    presence: &Presence,
    retain_ms: u64,
    now: TimeMs,
    entropy: &[u8; 32],
) -> Vec<Fact> {
    let mut facts = vec![];
    let expired: Vec<u64> = room.passes.expired(now).take(ENDINGS_MAX).collect();
    let ended = sessions_over(room, presence, now);
    let unaware: Vec<u64> = room.settings.presence_seconds.map_or_else(Vec::new, |window| {
        let still_out = |n: &u64| room.passes.look_up(*n).is_some_and(|pass| pass.expires_at > now);
        presence.unaware(window, now).take(ENDINGS_MAX).filter(still_out).collect()
    });
    let holds_slot = |n: &&u64| room.passes.look_up(**n).is_some_and(|pass| pass.slot);
    let over = expired.iter().chain(&ended).chain(&unaware);
    let freed = u64::try_from(over.filter(holds_slot).count()).unwrap_or(0);
    if !expired.is_empty() {
        facts.push(Fact::Expired { ns: expired });
    }
    if !ended.is_empty() {
        facts.push(Fact::SessionEnded { ns: ended });
    }
    if !unaware.is_empty() {
        facts.push(Fact::SlotsReturned { ns: unaware });
    }
    if room.draw_is_due(now) {
        // Releases start with the next tick, when the drawn tickets are there.
        facts.push(draw_fact(room, entropy));
        return facts;
    }
    let plan = release::timed(room, presence, freed, now);
    if plan.count > 0 {
        facts.push(Fact::Passed(plan.release));
    }
    let horizon = TimeMs(now.0.saturating_sub(retain_ms));
    if let Some(up_to) = room.queue.forgettable(horizon) {
        facts.push(Fact::Forgotten { up_to });
    }
    facts
}

fn sessions_over(room: &Room, presence: &Presence, now: TimeMs) -> Vec<u64> {
    let before = |seconds: u32| TimeMs(now.0.saturating_sub(u64::from(seconds) * 1000));
    let idle = presence.idle_since(before(room.settings.session_ttl_seconds));
    let old = room.settings.session_max_seconds.map(|most| room.passes.opened_since(before(most)));
    let mut over: Vec<u64> = idle.take(ENDINGS_MAX).collect();
    over.extend(old.into_iter().flatten().take(ENDINGS_MAX));
    over.sort_unstable();
    over.dedup();
    over
}

fn draw_fact(room: &Room, entropy: &[u8; 32]) -> Fact {
    let frozen = |(q, entry): (&u64, &Entry)| DrawEntry { q: *q, user: entry.client.address };
    let mut entries: Vec<DrawEntry> = room.pre.entries.iter().map(frozen).collect();
    entries.sort_unstable_by_key(|entry| entry.q);
    Fact::Drawn { seed: *entropy, entries, first_ticket: room.next_ticket() }
}

/// Milliseconds until time makes something due in `room`; `None` when nothing ever will.
#[must_use]
pub fn ms_until_due(room: &Room, presence: &Presence, now: TimeMs) -> Option<u64> {
    let settings = &room.settings;
    let wait = |at: TimeMs| at.ms_since(now);
    let session_ttl = u64::from(settings.session_ttl_seconds);
    let session_end = presence.oldest_touch().map(|at| at.plus_seconds(session_ttl));
    let session_max = settings
        .session_max_seconds
        .and_then(|most| room.passes.earliest_opening().map(|at| at.plus_seconds(u64::from(most))));
    let unaware = settings.presence_seconds.and_then(|window| {
        presence.oldest_unlearned().map(|at| at.plus_seconds(u64::from(window)))
    });
    let draw = settings.opens_at.filter(|at| now < *at || !room.pre.is_empty());
    let deadlines = [room.passes.earliest_expiry(), session_end, session_max, unaware, draw];
    let releasing = settings.state == RoomState::Active
        && !settings.rate.is_zero()
        && room.waiting() > 0
        && !room.gate_closed(now);
    let release = releasing.then(|| {
        let next = room.outflow.ms_until_next(settings.rate, now).unwrap_or(u64::MAX);
        // Slots and absences change without an event, so a releasing room is looked at often.
        if room.free_slots() == 0 { TICK_MS } else { next.min(TICK_MS) }
    });
    deadlines.into_iter().flatten().map(wait).chain(release).min()
}

/// A tick runs at least this often while people wait to be released (HOL-54).
const TICK_MS: u64 = 100;
