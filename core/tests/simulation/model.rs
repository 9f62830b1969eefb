//! What one room must do, written from the contract with plain maps and whole numbers. It shares
//! no data structure and no rule with the engine; only the draw's documented shuffle is taken over.

use std::collections::BTreeMap;

use qm_core::address::{AddressDigest, AgentDigest};
use qm_core::digest::Digest16;
use qm_core::id::Place;
use qm_core::room::config::{Rate, RoomState, Settings};
use qm_core::room::draw::{DrawEntry, drawn_order};
use qm_core::room::{Client, EndReason, Family, Proof, Standing};
use qm_core::time::TimeMs;

/// One release in the unit of credit: a millionth of a visitor a minute, for a millisecond.
const RELEASE: u128 = 60_000 * 1_000_000;
/// A billionth of a release: what the engine forgives a float.
const SLACK: u128 = RELEASE / 1_000_000_000;
/// Absent owners a tick passes over at most.
const ABSENT_MAX: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stage {
    Waiting,
    Passed { expires_at: TimeMs, slot: bool, aware: bool },
    Inside { opened_at: TimeMs, touched_at: TimeMs, proof: Proof, offered_until: Option<TimeMs> },
    Ended(EndReason),
}

#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) owner: Option<Digest16>,
    pub(crate) counted: AddressDigest,
    pub(crate) addresses: [Option<AddressDigest>; 2],
    pub(crate) agent: AgentDigest,
    pub(crate) joined_at: TimeMs,
    /// Tenths of a second since the room was made: presence is kept no finer.
    pub(crate) seen: u64,
    pub(crate) stage: Stage,
}

impl Ticket {
    pub(crate) fn bind(&mut self, client: &Client) {
        self.addresses[family(client)] = Some(client.address);
        self.agent = client.agent;
    }

    pub(crate) fn knows(&self, client: &Client) -> bool {
        self.addresses[family(client)] == Some(client.address)
    }
}

fn family(client: &Client) -> usize {
    usize::from(client.family == Family::V6)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PreStage {
    Waiting,
    Drawn(u64),
    Ended(EndReason),
}

#[derive(Clone, Debug)]
pub(crate) struct PrePlace {
    pub(crate) owner: Option<Digest16>,
    pub(crate) client: Client,
    pub(crate) joined_at: TimeMs,
    pub(crate) seen: u64,
    pub(crate) stage: PreStage,
}

pub(crate) struct Model {
    origin: TimeMs,
    pub(crate) rules: Settings,
    pub(crate) tickets: BTreeMap<u64, Ticket>,
    pub(crate) pre: BTreeMap<u64, PrePlace>,
    pub(crate) forgotten: u64,
    credit: u128,
    credit_at: TimeMs,
}

impl Model {
    pub(crate) fn new(rules: Settings, now: TimeMs) -> Self {
        let credit = capacity(rules.rate);
        let (tickets, pre) = (BTreeMap::new(), BTreeMap::new());
        Self { origin: now, rules, tickets, pre, forgotten: 0, credit, credit_at: now }
    }

    pub(crate) fn gate_closed(&self, now: TimeMs) -> bool {
        self.rules.opens_at.is_some_and(|at| now < at)
    }

    pub(crate) fn draw_due(&self, now: TimeMs) -> bool {
        self.pre_waiting() > 0 && !self.gate_closed(now)
    }

    fn count(&self, which: impl Fn(&Ticket) -> bool) -> u64 {
        self.tickets.values().filter(|ticket| which(ticket)).count() as u64
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.count(|ticket| ticket.stage == Stage::Waiting)
    }

    pub(crate) fn unused(&self) -> u64 {
        self.count(|ticket| matches!(ticket.stage, Stage::Passed { .. }))
    }

    pub(crate) fn inside(&self) -> u64 {
        self.count(|ticket| matches!(ticket.stage, Stage::Inside { .. }))
    }

    pub(crate) fn slots_used(&self) -> u64 {
        self.count(|ticket| {
            matches!(ticket.stage, Stage::Passed { slot: true, .. } | Stage::Inside { .. })
        })
    }

    pub(crate) fn pre_waiting(&self) -> u64 {
        self.pre.values().filter(|place| place.stage == PreStage::Waiting).count() as u64
    }

    pub(crate) fn next_ticket(&self) -> u64 {
        self.tickets.len() as u64 + 1
    }

    pub(crate) fn front(&self) -> Option<u64> {
        let waits = |(_, ticket): &(&u64, &Ticket)| ticket.stage == Stage::Waiting;
        self.tickets.iter().find(waits).map(|(n, _)| *n)
    }

    pub(crate) fn position(&self, number: u64) -> Option<u64> {
        let waits = |n: &u64| self.tickets[n].stage == Stage::Waiting;
        let held = self.tickets.contains_key(&number) && waits(&number);
        held.then(|| self.tickets.range(..=number).filter(|(n, _)| waits(n)).count() as u64)
    }

    /// Owned places of an address that wait in line.
    pub(crate) fn held_in_line(&self, address: AddressDigest) -> u64 {
        self.count(|ticket| {
            ticket.stage == Stage::Waiting && ticket.counted == address && ticket.owner.is_some()
        })
    }

    /// Owned places of an address that wait for the doors to open.
    pub(crate) fn held_before(&self, address: AddressDigest) -> u64 {
        let held = |place: &&PrePlace| {
            place.stage == PreStage::Waiting
                && place.client.address == address
                && place.owner.is_some()
        };
        self.pre.values().filter(held).count() as u64
    }

    pub(crate) fn session_end(&self, opened_at: TimeMs, touched_at: TimeMs) -> TimeMs {
        let idle = touched_at.plus_seconds(u64::from(self.rules.session_ttl_seconds));
        match self.rules.session_max_seconds {
            Some(most) => idle.min(opened_at.plus_seconds(u64::from(most))),
            None => idle,
        }
    }

    pub(crate) fn standing(&self, place: Place, now: TimeMs) -> Standing {
        let n = match place {
            Place::Ticket(n) => n,
            Place::Reference(q) => match self.pre.get(&q).map(|place| place.stage) {
                Some(PreStage::Waiting) => return Standing::PreQueued { q },
                Some(PreStage::Ended(reason)) => return Standing::Ended(reason),
                Some(PreStage::Drawn(n)) => n,
                None => return Standing::Unknown,
            },
        };
        if n >= 1 && n <= self.forgotten {
            return Standing::Ended(EndReason::PassExpired);
        }
        match self.tickets.get(&n).map(|ticket| ticket.stage) {
            None => Standing::Unknown,
            Some(Stage::Waiting) => Standing::Waiting { n },
            Some(Stage::Ended(reason)) => Standing::Ended(reason),
            Some(Stage::Passed { expires_at, .. }) if now < expires_at => {
                Standing::Passed { n, expires_at }
            }
            Some(Stage::Passed { .. }) => Standing::Ended(EndReason::PassExpired),
            Some(Stage::Inside { opened_at, touched_at, .. }) => {
                let expires_at = self.session_end(opened_at, touched_at);
                if now < expires_at {
                    Standing::Admitted { n, expires_at }
                } else {
                    Standing::Ended(EndReason::SessionEnded)
                }
            }
        }
    }

    pub(crate) fn owner_of(&self, place: Place) -> Option<Digest16> {
        match place {
            Place::Ticket(n) => self.tickets.get(&n)?.owner,
            Place::Reference(q) => match self.pre.get(&q)?.stage {
                PreStage::Drawn(n) => self.tickets.get(&n)?.owner,
                _ => self.pre.get(&q)?.owner,
            },
        }
    }

    // Time.

    fn tenth(&self, now: TimeMs) -> u64 {
        now.ms_since(self.origin) / 100
    }

    fn unseen_since(&self, ticket: &Ticket, now: TimeMs) -> bool {
        self.rules.presence_seconds.is_some_and(|window| {
            let seen = self.origin.plus_ms(ticket.seen * 100);
            ticket.owner.is_some() && now >= seen.plus_seconds(u64::from(window))
        })
    }

    /// The owner of a place was seen, and told whether it passed.
    pub(crate) fn saw(&mut self, place: Place, now: TimeMs, told_passed: bool) {
        let tenth = self.tenth(now);
        match place {
            Place::Ticket(n) => {
                let Some(ticket) = self.tickets.get_mut(&n) else { return };
                ticket.seen = ticket.seen.max(tenth);
                if let Stage::Passed { aware, .. } = &mut ticket.stage {
                    *aware |= told_passed;
                }
            }
            Place::Reference(q) => {
                if let Some(place) = self.pre.get_mut(&q) {
                    place.seen = place.seen.max(tenth);
                }
            }
        }
    }

    /// What a tick does up to the draw; `seed` is that of the draw, should there be one.
    pub(crate) fn tick(&mut self, now: TimeMs, seed: Option<[u8; 32]>) -> Result<(), String> {
        self.end_due(now);
        match (self.draw_due(now), seed) {
            (true, Some(seed)) => self.draw(&seed),
            (false, None) => self.release_due(now),
            (due, _) => return Err(format!("draw due: {due}, drawn: {}", !due)),
        }
        Ok(())
    }

    fn end_due(&mut self, now: TimeMs) {
        let numbers: Vec<u64> = self.tickets.keys().copied().collect();
        for n in numbers.into_iter().filter(|n| *n > self.forgotten) {
            let standing = self.standing(Place::Ticket(n), now);
            let unseen = self.unseen_since(&self.tickets[&n], now);
            let Some(ticket) = self.tickets.get_mut(&n) else { continue };
            if let Standing::Ended(reason) = standing {
                ticket.stage = Stage::Ended(reason);
            }
            if let Stage::Passed { slot, aware: false, .. } = &mut ticket.stage
                && unseen
            {
                *slot = false;
            }
        }
    }

    pub(crate) fn draw(&mut self, seed: &[u8; 32]) {
        let waits = |place: &&PrePlace| place.stage == PreStage::Waiting;
        let frozen = self.pre.iter().filter(|(_, place)| waits(place));
        let entries: Vec<DrawEntry> =
            frozen.map(|(q, place)| DrawEntry { q: *q, user: place.client.address }).collect();
        for q in drawn_order(seed, &entries) {
            let n = self.next_ticket();
            let Some(place) = self.pre.get_mut(&q) else { continue };
            place.stage = PreStage::Drawn(n);
            let place = place.clone();
            self.take_ticket(place.owner, &place.client, place.joined_at);
            if let Some(ticket) = self.tickets.get_mut(&n) {
                ticket.seen = place.seen;
            }
        }
    }

    pub(crate) fn take_ticket(
        &mut self,
        owner: Option<Digest16>,
        client: &Client,
        joined_at: TimeMs,
    ) {
        let (n, seen) = (self.next_ticket(), self.tenth(joined_at));
        let mut ticket = Ticket {
            owner,
            counted: client.address,
            addresses: [None; 2],
            agent: client.agent,
            joined_at,
            seen,
            stage: Stage::Waiting,
        };
        ticket.bind(client);
        self.tickets.insert(n, ticket);
    }

    pub(crate) fn take_reference(
        &mut self,
        q: u64,
        owner: Option<Digest16>,
        client: Client,
        now: TimeMs,
    ) {
        let (seen, stage) = (self.tenth(now), PreStage::Waiting);
        self.pre.insert(q, PrePlace { owner, client, joined_at: now, seen, stage });
    }

    // Releases.

    fn credit_now(&self, now: TimeMs) -> u128 {
        let earned = u128::from(now.ms_since(self.credit_at)) * millionths(self.rules.rate);
        (self.credit + earned).min(capacity(self.rules.rate))
    }

    pub(crate) fn change_rules(&mut self, rules: Settings, now: TimeMs) {
        self.credit = self.credit_now(now).min(capacity(rules.rate));
        self.credit_at = now;
        self.rules = rules;
    }

    fn free_slots(&self) -> u64 {
        let most = self.rules.max_concurrent.map_or(u64::MAX, u64::from);
        most.saturating_sub(self.slots_used())
    }

    fn line(&self) -> Vec<u64> {
        let waits = |(n, ticket): (&u64, &Ticket)| (ticket.stage == Stage::Waiting).then_some(*n);
        self.tickets.iter().filter_map(waits).collect()
    }

    fn pass(&mut self, n: u64, now: TimeMs, slot: bool) {
        let expires_at = now.plus_seconds(u64::from(self.rules.passed_ttl_seconds));
        if let Some(ticket) = self.tickets.get_mut(&n) {
            ticket.stage = Stage::Passed { expires_at, slot, aware: false };
        }
    }

    fn release_due(&mut self, now: TimeMs) {
        let rules = &self.rules;
        if rules.state != RoomState::Active || rules.rate.is_zero() || self.gate_closed(now) {
            return;
        }
        let credit = self.credit_now(now);
        let (mut free, mut absent, mut used) = (self.free_slots(), 0, 0);
        for n in self.line() {
            if self.unseen_since(&self.tickets[&n], now) {
                absent += 1;
                if absent > ABSENT_MAX {
                    break;
                }
                self.pass(n, now, false);
            } else if (used + 1) * RELEASE <= credit + SLACK && free > 0 {
                (used, free) = (used + 1, free - 1);
                self.pass(n, now, true);
            } else {
                break;
            }
        }
        if used > 0 {
            self.credit = credit.saturating_sub(used * RELEASE);
            self.credit_at = now;
        }
    }

    pub(crate) fn flush(&mut self, count: u64, now: TimeMs) -> u64 {
        let (mut free, mut released) = (self.free_slots(), 0);
        for n in self.line() {
            let here = !self.unseen_since(&self.tickets[&n], now);
            if released == count || (here && free == 0) {
                break;
            }
            self.pass(n, now, here);
            released += 1;
            free -= u64::from(here);
        }
        released
    }

    pub(crate) fn end(&mut self, place: Place, reason: EndReason) {
        match place {
            Place::Ticket(n) => {
                if let Some(ticket) = self.tickets.get_mut(&n) {
                    ticket.stage = Stage::Ended(reason);
                }
            }
            Place::Reference(q) => {
                if let Some(place) = self.pre.get_mut(&q) {
                    place.stage = PreStage::Ended(reason);
                }
            }
        }
    }

    pub(crate) fn purge(&mut self) {
        for n in self.line() {
            self.end(Place::Ticket(n), EndReason::Purged);
        }
        for place in self.pre.values_mut().filter(|place| place.stage == PreStage::Waiting) {
            place.stage = PreStage::Ended(EndReason::Purged);
        }
    }
}

fn millionths(rate: Rate) -> u128 {
    (rate.per_minute() * 1_000_000.0).round() as u128
}

/// One second's worth, and at least one release.
fn capacity(rate: Rate) -> u128 {
    (millionths(rate) * 1000).max(RELEASE)
}
