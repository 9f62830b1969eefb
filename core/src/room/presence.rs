//! Who is here. Presence and door-session touches change many times a second, so they are kept
//! beside the room's log and never in it: a decision reads them and records only its outcome, and
//! a replay does not need them. Hosts share them between instances in batches.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use hashbrown::HashMap;

use super::Room;
use super::event::{Event, Fact, Release};
use super::news::News;
use crate::time::TimeMs;

/// Tenths of a second since the room was made, plus one: 0 is "never seen". Four octets a ticket.
type Moment = u32;

/// An old value of who is here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Old {
    Seen(u64, Moment),
    Reference(u64, Option<Moment>),
    /// Whether the pair was among those who never learned.
    Unlearned((Moment, u64), bool),
    Touched(u64, Option<TimeMs>),
}

/// What to put back after a rehearsal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Undo {
    old: Vec<Old>,
    /// Moments that were forgotten, oldest first.
    forgotten: Vec<Moment>,
    seen_length: usize,
}

/// When owners were seen, which of them know of their pass, and when sessions were used.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    undo: Option<Box<Undo>>,
    /// What other instances have not heard yet; `None` when there are none.
    news: Option<Box<News>>,
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
            undo: None,
            news: None,
        }
    }

    /// The owner of a ticket was seen; `told_passed` when the answer tells of a pass.
    pub fn saw_ticket(&mut self, number: u64, now: TimeMs, told_passed: bool) {
        let before = self.seen_at(number);
        // Another instance's clock may be behind: nobody is seen less by being seen again.
        let moment = self.moment(now).max(before);
        if self.set_unlearned((before, number), false) && !told_passed {
            self.set_unlearned((moment, number), true);
        }
        self.set_seen(number, moment);
        if let Some(news) = &mut self.news {
            news.saw_ticket(number, now, told_passed);
        }
    }

    /// The owner of a pre-queue place was seen.
    pub fn saw_reference(&mut self, reference: u64, now: TimeMs) {
        let moment = self.moment(now);
        if let Some(seen) = self.seen_references.get(&reference).copied() {
            self.set_reference(reference, Some(moment.max(seen)));
            if let Some(news) = &mut self.news {
                news.saw_reference(reference, now);
            }
        }
    }

    /// A door session was used.
    pub fn touch(&mut self, number: u64, now: TimeMs) {
        if self.touched.get(&number).is_some_and(|last| *last < now) {
            self.set_touched(number, Some(now));
            if let Some(news) = &mut self.news {
                news.touched(number, now);
            }
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

    pub(super) fn presume_reference(&mut self, reference: u64, now: TimeMs) {
        let moment = self.moment(now);
        let seen = self.seen_references.get(&reference).copied().unwrap_or(0);
        self.set_reference(reference, Some(moment.max(seen)));
    }

    /// A pass is told anew, a session was used just now.
    pub(super) fn presume_pass(&mut self, number: u64, open: bool, owned_slot: bool, now: TimeMs) {
        if open {
            let last = self.last_touch(number).unwrap_or_default();
            self.set_touched(number, Some(now.max(last)));
        }
        let known = self.last_seen(number).is_some();
        self.saw_ticket(number, now, false);
        if !open && owned_slot && !known {
            self.set_unlearned((self.seen_at(number), number), true);
        }
    }

    /// From here on keeps what [`Presence::take_news`] gives to other instances.
    pub fn keep_news(&mut self) {
        self.news = Some(Box::default());
    }

    /// What was seen here since the last time.
    pub fn take_news(&mut self) -> News {
        self.news.as_mut().map(|news| core::mem::take(&mut **news)).unwrap_or_default()
    }

    /// Takes back news that could not be told.
    pub fn tell_later(&mut self, untold: &News) {
        if let Some(news) = &mut self.news {
            news.merge(untold);
        }
    }

    /// Follows what another instance saw. It is no news of this one.
    pub fn learn(&mut self, told: &News) {
        let own = self.news.take();
        for (number, at, told_passed) in told.tickets() {
            self.saw_ticket(number, at, told_passed);
        }
        told.references().for_each(|(reference, at)| self.saw_reference(reference, at));
        told.touches().for_each(|(number, at)| self.touch(number, at));
        self.news = own;
    }

    /// Follows an event that was just applied to `room`.
    pub fn follow(&mut self, room: &Room, event: &Event) {
        let moment = self.moment(event.at);
        match &event.fact {
            Fact::Join { n, .. } => self.set_seen(*n, moment),
            Fact::PreJoined { q, .. } => self.set_reference(*q, Some(moment)),
            Fact::PreLeft { q } => self.set_reference(*q, None),
            Fact::Drawn { entries, .. } => {
                for entry in entries {
                    let seen = self.seen_references.get(&entry.q).copied().unwrap_or(0);
                    self.set_reference(entry.q, None);
                    if let Some(number) = room.drawn_ticket(entry.q) {
                        self.set_seen(number, seen);
                    }
                }
            }
            Fact::Passed(release) | Fact::Flushed(release) => self.follow_release(room, release),
            Fact::SlotsReturned { ns } => ns.iter().for_each(|n| self.forget_unlearned(*n)),
            Fact::Admitted { n, .. } | Fact::Reclaimed { n, .. } => {
                self.forget_unlearned(*n);
                self.set_touched(*n, Some(event.at));
            }
            Fact::Purged => {
                let references: Vec<u64> = self.seen_references.keys().copied().collect();
                references.into_iter().for_each(|reference| self.set_reference(reference, None));
            }
            Fact::Forgotten { up_to } => {
                while self.dropped < *up_to
                    && let Some(moment) = self.seen.pop_front()
                {
                    self.dropped += 1;
                    if let Some(undo) = &mut self.undo {
                        undo.forgotten.push(moment);
                    }
                }
            }
            _ => event.fact.endings().for_each(|(n, _)| self.forget_pass(n)),
        }
    }

    fn follow_release(&mut self, room: &Room, release: &Release) {
        for (from, to) in &release.ranges {
            for number in *from..=*to {
                if room.holds_owned_slot(number) {
                    self.set_unlearned((self.seen_at(number), number), true);
                }
            }
        }
    }

    fn forget_unlearned(&mut self, number: u64) {
        self.set_unlearned((self.seen_at(number), number), false);
    }

    fn forget_pass(&mut self, number: u64) {
        self.forget_unlearned(number);
        self.set_touched(number, None);
    }

    // Every change goes through one of these four, which keep the old value for a rehearsal.

    /// Whether the pair was there.
    fn set_unlearned(&mut self, pair: (Moment, u64), present: bool) -> bool {
        let was = if present { !self.unlearned.insert(pair) } else { self.unlearned.remove(&pair) };
        if was != present {
            self.remember(Old::Unlearned(pair, was));
        }
        was
    }

    fn set_touched(&mut self, number: u64, at: Option<TimeMs>) {
        let old = match at {
            Some(at) => self.touched.insert(number, at),
            None => self.touched.remove(&number),
        };
        if let Some(old) = old {
            self.by_touch.remove(&(old, number));
        }
        if let Some(at) = at {
            self.by_touch.insert((at, number));
        }
        if old != at {
            self.remember(Old::Touched(number, old));
        }
    }

    fn set_reference(&mut self, reference: u64, moment: Option<Moment>) {
        let old = match moment {
            Some(moment) => self.seen_references.insert(reference, moment),
            None => self.seen_references.remove(&reference),
        };
        if old != moment {
            self.remember(Old::Reference(reference, old));
        }
    }

    fn remember(&mut self, old: Old) {
        if let Some(undo) = &mut self.undo {
            undo.old.push(old);
        }
    }

    /// From here on everything can be put back.
    pub(super) fn begin(&mut self) {
        let seen_length = self.seen.len();
        self.undo = Some(Box::new(Undo { old: Vec::new(), forgotten: Vec::new(), seen_length }));
    }

    /// Puts everything back as it was at [`Presence::begin`].
    pub(super) fn put_back(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        for moment in undo.forgotten.into_iter().rev() {
            self.seen.push_front(moment);
            self.dropped -= 1;
        }
        for old in undo.old.into_iter().rev() {
            match old {
                Old::Seen(number, moment) => self.set_seen(number, moment),
                Old::Reference(reference, moment) => self.set_reference(reference, moment),
                Old::Unlearned(pair, present) => drop(self.set_unlearned(pair, present)),
                Old::Touched(number, at) => self.set_touched(number, at),
            }
        }
        self.seen.truncate(undo.seen_length);
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
            let old = core::mem::replace(slot, moment);
            if old != moment {
                self.remember(Old::Seen(number, old));
            }
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.dropped + 1)?).ok()
    }
}

#[cfg(test)]
mod tests;
