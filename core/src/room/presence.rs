//! Who is here. Presence and door-session touches change many times a second, so they are kept
//! beside the room's log and never in it: a decision reads them and records only its outcome, and
//! a replay does not need them. Hosts share them between instances in batches.

use alloc::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;

use super::Room;
use super::event::{Event, Fact, Release};
use crate::time::TimeMs;

/// Tenths of a second since the room was made, plus one: 0 is "never seen". Four octets a ticket.
type Moment = u32;

/// When owners were seen, which of them know of their pass, and when sessions were used.
#[derive(Clone, Debug)]
pub struct Presence {
    origin: TimeMs,
    seen: VecDeque<Moment>,
    /// The number of the first ticket in `seen`, less one.
    dropped: u64,
    seen_references: HashMap<u64, Moment>,
    /// Passes that hold a slot and whose owners never learned of them (GHO-06).
    unlearned: BTreeSet<(Moment, u64)>,
    touched: HashMap<u64, TimeMs>,
    by_touch: BTreeSet<(TimeMs, u64)>,
}

impl Presence {
    /// Nobody was seen yet in a room made at `origin`.
    #[must_use]
    pub fn new(origin: TimeMs) -> Self {
        Self {
            origin,
            seen: VecDeque::new(),
            dropped: 0,
            seen_references: HashMap::new(),
            unlearned: BTreeSet::new(),
            touched: HashMap::new(),
            by_touch: BTreeSet::new(),
        }
    }

    /// The owner of a ticket was seen; `told_passed` when the answer tells of a pass.
    pub fn saw_ticket(&mut self, number: u64, now: TimeMs, told_passed: bool) {
        let before = self.seen_at(number);
        // Another instance's clock may be behind: nobody is seen less by being seen again.
        let moment = self.moment(now).max(before);
        if self.unlearned.remove(&(before, number)) && !told_passed {
            self.unlearned.insert((moment, number));
        }
        self.set_seen(number, moment);
    }

    /// The owner of a pre-queue place was seen.
    pub fn saw_reference(&mut self, reference: u64, now: TimeMs) {
        let moment = self.moment(now);
        if let Some(seen) = self.seen_references.get_mut(&reference) {
            *seen = moment.max(*seen);
        }
    }

    /// A door session was used.
    pub fn touch(&mut self, number: u64, now: TimeMs) {
        if let Some(last) = self.touched.get_mut(&number)
            && *last < now
        {
            self.by_touch.remove(&(*last, number));
            *last = now;
            self.by_touch.insert((now, number));
        }
    }

    /// When the owner of a ticket was seen last.
    #[must_use]
    pub fn last_seen(&self, number: u64) -> Option<TimeMs> {
        let moment = self.seen_at(number).checked_sub(1)?;
        Some(self.origin.plus_ms(u64::from(moment) * 100))
    }

    /// When a door session was used last.
    #[must_use]
    pub fn last_touch(&self, number: u64) -> Option<TimeMs> {
        self.touched.get(&number).copied()
    }

    /// Whether the owner was seen within the presence window (GHO-01, GHO-03).
    pub(crate) fn is_present(&self, number: u64, window: Option<u32>, now: TimeMs) -> bool {
        let Some(seconds) = window else { return true };
        self.last_seen(number).is_some_and(|seen| now < seen.plus_seconds(u64::from(seconds)))
    }

    /// Slot-holding passes nobody learned of within the window, oldest first (GHO-06).
    pub(crate) fn unaware(&self, window: u32, now: TimeMs) -> impl Iterator<Item = u64> + '_ {
        let horizon = self.moment(now).saturating_sub(window.saturating_mul(10));
        self.unlearned.iter().take_while(move |(seen, _)| *seen <= horizon).map(|(_, n)| *n)
    }

    /// Sessions last used at or before `horizon`, oldest first.
    pub(crate) fn idle_since(&self, horizon: TimeMs) -> impl Iterator<Item = u64> + '_ {
        self.by_touch.iter().take_while(move |(at, _)| *at <= horizon).map(|(_, n)| *n)
    }

    pub(crate) fn oldest_touch(&self) -> Option<TimeMs> {
        self.by_touch.first().map(|(at, _)| *at)
    }

    pub(crate) fn oldest_unlearned(&self) -> Option<TimeMs> {
        let (moment, _) = self.unlearned.first()?;
        // "Never seen" is as long ago as it gets.
        let seen = moment.checked_sub(1).map(|tenth| self.origin.plus_ms(u64::from(tenth) * 100));
        Some(seen.unwrap_or(TimeMs(0)))
    }

    /// Follows an event that was just applied to `room`.
    pub fn follow(&mut self, room: &Room, event: &Event) {
        let moment = self.moment(event.at);
        match &event.fact {
            Fact::Join { n, .. } => self.set_seen(*n, moment),
            Fact::PreJoined { q, .. } => {
                self.seen_references.insert(*q, moment);
            }
            Fact::PreLeft { q } => {
                self.seen_references.remove(q);
            }
            Fact::Drawn { entries, .. } => {
                for entry in entries {
                    let seen = self.seen_references.remove(&entry.q).unwrap_or(0);
                    if let Some(number) = room.drawn_ticket(entry.q) {
                        self.set_seen(number, seen);
                    }
                }
            }
            Fact::Passed(release) | Fact::Flushed(release) => self.follow_release(room, release),
            Fact::SlotsReturned { ns } => ns.iter().for_each(|n| self.forget_unlearned(*n)),
            Fact::Admitted { n, .. } | Fact::Reclaimed { n, .. } => {
                self.forget_pass(*n);
                self.touched.insert(*n, event.at);
                self.by_touch.insert((event.at, *n));
            }
            Fact::Purged => self.seen_references.clear(),
            Fact::Forgotten { up_to } => {
                while self.dropped < *up_to && self.seen.pop_front().is_some() {
                    self.dropped += 1;
                }
            }
            _ => event.fact.endings().for_each(|(n, _)| self.forget_pass(n)),
        }
    }

    fn follow_release(&mut self, room: &Room, release: &Release) {
        for (from, to) in &release.ranges {
            for number in *from..=*to {
                if room.holds_owned_slot(number) {
                    self.unlearned.insert((self.seen_at(number), number));
                }
            }
        }
    }

    fn forget_unlearned(&mut self, number: u64) {
        self.unlearned.remove(&(self.seen_at(number), number));
    }

    fn forget_pass(&mut self, number: u64) {
        self.forget_unlearned(number);
        if let Some(at) = self.touched.remove(&number) {
            self.by_touch.remove(&(at, number));
        }
    }

    fn moment(&self, now: TimeMs) -> Moment {
        Moment::try_from(now.ms_since(self.origin) / 100).unwrap_or(Moment::MAX).saturating_add(1)
    }

    fn seen_at(&self, number: u64) -> Moment {
        self.index(number).and_then(|index| self.seen.get(index)).copied().unwrap_or(0)
    }

    fn set_seen(&mut self, number: u64, moment: Moment) {
        let Some(index) = self.index(number) else { return };
        if index >= self.seen.len() {
            self.seen.resize(index + 1, 0);
        }
        if let Some(slot) = self.seen.get_mut(index) {
            *slot = moment;
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.dropped + 1)?).ok()
    }
}

#[cfg(test)]
mod tests;
