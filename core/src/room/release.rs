//! Which tickets pass next. The head of the line is looked at in order: absent owners pass without
//! a slot and without using the rate, present ones need both (GHO-04, GHO-05, HOL-54).

use alloc::vec::Vec;

use super::Room;
use super::config::RoomState;
use super::event::Release;
use super::presence::Presence;
use crate::time::TimeMs;

/// Absent owners passed over in one tick, so that a tick stays short.
const ABSENT_MAX: usize = 1000;

/// Present owners released in one event; the next tick goes on where this one stopped.
const RELEASE_MAX: u64 = 20_000;

impl Release {
    /// How many the release passes, given that all of its numbers wait.
    fn add(&mut self, number: u64) {
        match self.ranges.last_mut() {
            Some((_, to)) if to.checked_add(1) == Some(number) => *to = number,
            _ => self.ranges.push((number, number)),
        }
    }
}

/// What a release takes and how many it passes.
pub(super) struct Plan {
    pub(super) release: Release,
    pub(super) count: u64,
}

impl Plan {
    const fn empty() -> Self {
        Self { release: Release { ranges: Vec::new(), ns: Vec::new() }, count: 0 }
    }

    fn take(&mut self, number: u64, slot: bool) {
        self.release.add(number);
        self.count += 1;
        if !slot {
            self.release.ns.push(number);
        }
    }
}

fn owner_is_here(room: &Room, presence: &Presence, number: u64, now: TimeMs) -> bool {
    let owned = room.queue.ticket(number).is_some_and(|ticket| ticket.owner.is_some());
    !owned || presence.is_present(number, room.settings.presence_seconds, now)
}

/// The timed release due at `now`, given `freed` slots that this tick gives back first.
pub(super) fn timed(room: &Room, presence: &Presence, freed: u64, now: TimeMs) -> Plan {
    let mut plan = Plan::empty();
    let rate = room.settings.rate;
    if room.settings.state != RoomState::Active || rate.is_zero() || room.gate_closed(now) {
        return plan;
    }
    let mut allowance = room.outflow.allowance(rate, now).min(RELEASE_MAX);
    let mut slots = slots_after(room, freed);
    for number in room.queue.waiting.iter() {
        if !owner_is_here(room, presence, number, now) {
            if plan.release.ns.len() >= ABSENT_MAX {
                break;
            }
            plan.take(number, false);
        } else if allowance > 0 && slots > 0 {
            plan.take(number, true);
            allowance -= 1;
            slots -= 1;
        } else {
            break;
        }
    }
    plan
}

/// The release of up to `count` tickets now, whatever the rate says (ADM-42).
pub(super) fn flush(room: &Room, presence: &Presence, count: u64, now: TimeMs) -> Plan {
    let mut plan = Plan::empty();
    let mut slots = room.free_slots();
    for number in room.queue.waiting.iter() {
        if plan.count >= count {
            break;
        }
        let here = owner_is_here(room, presence, number, now);
        if here && slots == 0 {
            break;
        }
        plan.take(number, here);
        slots = slots.saturating_sub(u64::from(here));
    }
    plan
}

/// Sessions above the limit (slotless passes used at the door) are paid back before slots are free.
fn slots_after(room: &Room, freed: u64) -> u64 {
    let most = room.settings.max_concurrent.map_or(u64::MAX, u64::from);
    most.saturating_sub(room.passes.slots_used().saturating_sub(freed))
}
