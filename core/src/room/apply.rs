//! Folds one event into a room: total and deterministic. Whether something may happen was decided
//! before; here it has happened. An event that does not fit the state changes what it can and
//! nothing else.

use alloc::vec::Vec;

use super::draw::{DrawEntry, drawn_order};
use super::event::{Event, Fact, Release};
use super::prequeue::Entry;
use super::queue::{Client, EndReason, Stage, Ticket, addresses_of, slot_of};
use super::{Room, Settings};
use crate::digest::Digest16;
use crate::time::TimeMs;

/// Folds `event` into `room`.
pub(super) fn apply(room: &mut Room, event: &Event) {
    let at = event.at;
    room.head = event.seq;
    room.last_at = room.last_at.max(at);
    match &event.fact {
        // What is void never reaches a replica, so there is nothing to take back.
        Fact::RoomOpened { .. } | Fact::Voided { .. } => {}
        Fact::RoomConfigured { settings } => configure(room, (**settings).clone(), at),
        Fact::StateChanged { state } => room.settings.state = *state,
        Fact::RateChanged { rate } => {
            let mut settings = room.settings.clone();
            settings.rate = *rate;
            configure(room, settings, at);
        }
        Fact::Join { owner, client, .. } => {
            push_ticket(room, *owner, client, at);
            room.joined_last_minute.add(at, 1);
        }
        Fact::PreJoined { q, owner, client } => {
            room.pre.push(*q, Entry { owner: *owner, client: *client, joined_at: at });
            room.joined_last_minute.add(at, 1);
        }
        Fact::Bound { n, client } => bind(room, *n, client),
        Fact::Drawn { seed, entries, .. } => draw(room, seed, entries),
        Fact::Passed(release) => {
            let timed = pass_all(room, release, at);
            room.outflow.spend(room.settings.rate, at, timed);
        }
        Fact::Flushed(release) => {
            pass_all(room, release, at);
        }
        Fact::Admitted { n, proof } => room.passes.admit(*n, at, *proof),
        Fact::ReclaimOffered { n } => {
            let window = u64::from(room.settings.passed_ttl_seconds);
            room.passes.offer_reclaim(*n, at.plus_seconds(window));
        }
        Fact::Reclaimed { n, proof } => room.passes.reclaim(*n, *proof),
        Fact::SlotsReturned { ns } => ns.iter().for_each(|n| room.passes.return_slot(*n)),
        Fact::Expired { .. }
        | Fact::SessionEnded { .. }
        | Fact::Ejected { .. }
        | Fact::Left { .. } => {
            for (number, reason) in event.fact.endings() {
                room.queue.end(number, reason, at);
                room.passes.end(number);
            }
        }
        Fact::PreLeft { q } => {
            room.pre.end(*q, EndReason::Left);
        }
        Fact::Purged => purge(room, at),
        Fact::Forgotten { up_to } => room.queue.forget(*up_to),
        Fact::RoomClosed => room.closed = true,
    }
}

fn configure(room: &mut Room, settings: Settings, at: TimeMs) {
    room.outflow.change_rate(room.settings.rate, settings.rate, at);
    room.settings = settings;
}

fn push_ticket(room: &mut Room, owner: Option<Digest16>, client: &Client, joined_at: TimeMs) {
    room.queue.push(Ticket {
        owner,
        addresses: addresses_of(client),
        agent: client.agent,
        counted: client.address,
        joined_at,
        ended_at: TimeMs::MAX,
        stage: Stage::Waiting,
    });
}

fn bind(room: &mut Room, number: u64, client: &Client) {
    if let Some(ticket) = room.queue.ticket_mut(number) {
        if let Some(address) = ticket.addresses.get_mut(slot_of(client.family)) {
            *address = client.address;
        }
        ticket.agent = client.agent;
    }
}

/// Tickets keep the time their owners came, so that waits are told from there.
fn draw(room: &mut Room, seed: &[u8; 32], entries: &[DrawEntry]) {
    room.pre.forget(room.queue.forgotten());
    for reference in drawn_order(seed, entries) {
        let number = room.queue.next();
        if let Some(entry) = room.pre.draw(reference, number) {
            push_ticket(room, entry.owner, &entry.client, entry.joined_at);
        }
    }
}

/// Passes every waiting ticket of the ranges; how many of them count against the rate (GHO-05).
fn pass_all(room: &mut Room, release: &Release, at: TimeMs) -> u64 {
    let expires_at = at.plus_seconds(u64::from(room.settings.passed_ttl_seconds));
    let (mut passed, mut timed, mut slotless) = (0, 0, release.ns.iter().copied().peekable());
    for (from, to) in &release.ranges {
        for number in *from..=(*to).min(room.queue.next()) {
            while slotless.next_if(|marked| *marked < number).is_some() {}
            let slot = slotless.peek() != Some(&number);
            if room.queue.pass(number) {
                room.passes.release(number, at, expires_at, slot);
                passed += 1;
                timed += u64::from(slot);
            }
        }
    }
    room.passed_last_minute.add(at, passed);
    room.passed_last_five_minutes.add(at, passed);
    timed
}

/// Ends every waiting place, in time that grows with their number: an operator's rare act.
fn purge(room: &mut Room, at: TimeMs) {
    let waiting: Vec<u64> = room.queue.waiting.iter().collect();
    for number in waiting {
        room.queue.end(number, EndReason::Purged, at);
    }
    let references: Vec<u64> = room.pre.entries.keys().copied().collect();
    for reference in references {
        room.pre.end(reference, EndReason::Purged);
    }
}
