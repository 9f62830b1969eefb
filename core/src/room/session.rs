//! Released tickets: passes until they are used, door sessions afterwards, and the `maxConcurrent`
//! slots that both hold. Storage and deadlines only; who may enter is decided in `door`.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::event::Proof;
use super::fingerprint::Fingerprint;
use super::undo::OldPass;
use crate::time::TimeMs;

/// A released ticket that is not over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pass {
    pub(crate) passed_at: TimeMs,
    /// When the pass runs out unless it is used (ENG-08).
    pub(crate) expires_at: TimeMs,
    /// Whether it holds a slot (GHO-01).
    pub(crate) slot: bool,
    pub(crate) session: Option<Session>,
}

/// An open door session (CHK-07).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) opened_at: TimeMs,
    pub(crate) proof: Proof,
    /// Until when a fitting check may take the session over (HOL-23).
    pub(crate) reclaim_until: Option<TimeMs>,
}

/// All passes and sessions of a room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passes {
    live: HashMap<u64, Pass>,
    by_expiry: BTreeSet<(TimeMs, u64)>,
    by_opening: BTreeSet<(TimeMs, u64)>,
    slots_used: u64,
    /// What to put back; kept only while the room rehearses.
    undo: Option<Vec<OldPass>>,
}

impl Passes {
    fn remember(&mut self, number: u64) {
        if let Some(undo) = &mut self.undo {
            undo.push((number, self.live.get(&number).cloned()));
        }
    }

    /// From here on everything can be put back.
    pub(crate) fn begin(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Puts everything back as it was at [`Passes::begin`].
    pub(crate) fn put_back(&mut self) {
        for (number, old) in self.undo.take().into_iter().flatten().rev() {
            self.take(number);
            if let Some(pass) = old {
                self.insert(number, pass);
            }
        }
    }

    fn insert(&mut self, number: u64, pass: Pass) {
        self.slots_used += u64::from(pass.slot);
        match &pass.session {
            None => self.by_expiry.insert((pass.expires_at, number)),
            Some(session) => self.by_opening.insert((session.opened_at, number)),
        };
        self.live.insert(number, pass);
    }

    /// All passes and sessions.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Pass)> + '_ {
        self.live.iter().map(|(number, pass)| (*number, pass))
    }

    /// The passes of these tickets and no others.
    pub(crate) fn of_parts(live: Vec<(u64, Pass)>) -> Self {
        let mut passes = Self::default();
        live.into_iter().for_each(|(number, pass)| passes.insert(number, pass));
        passes
    }

    pub(crate) fn look_up(&self, number: u64) -> Option<&Pass> {
        self.live.get(&number)
    }

    /// Passes that were not used yet.
    pub(crate) fn unused(&self) -> u64 {
        u64::try_from(self.by_expiry.len()).unwrap_or(u64::MAX)
    }

    /// Open door sessions.
    pub(crate) fn sessions(&self) -> u64 {
        u64::try_from(self.by_opening.len()).unwrap_or(u64::MAX)
    }

    pub(crate) const fn slots_used(&self) -> u64 {
        self.slots_used
    }

    pub(crate) fn release(
        &mut self,
        number: u64,
        passed_at: TimeMs,
        expires_at: TimeMs,
        slot: bool,
    ) {
        self.remember(number);
        self.insert(number, Pass { passed_at, expires_at, slot, session: None });
    }

    /// Opens the session of a pass; a slotless one takes a slot now.
    pub(crate) fn admit(&mut self, number: u64, opened_at: TimeMs, proof: Proof) {
        self.remember(number);
        if let Some(pass) = self.live.get_mut(&number)
            && pass.session.is_none()
        {
            self.by_expiry.remove(&(pass.expires_at, number));
            self.slots_used += u64::from(!pass.slot);
            pass.slot = true;
            pass.session = Some(Session { opened_at, proof, reclaim_until: None });
            self.by_opening.insert((opened_at, number));
        }
    }

    pub(crate) fn offer_reclaim(&mut self, number: u64, until: TimeMs) {
        if let Some(session) = self.session_mut(number) {
            session.reclaim_until = Some(until);
        }
    }

    pub(crate) fn reclaim(&mut self, number: u64, proof: Proof) {
        if let Some(session) = self.session_mut(number) {
            session.proof = proof;
            session.reclaim_until = None;
        }
    }

    fn session_mut(&mut self, number: u64) -> Option<&mut Session> {
        self.remember(number);
        self.live.get_mut(&number)?.session.as_mut()
    }

    /// Takes the slot from a pass; a session keeps its own to the end (HOL-54).
    pub(crate) fn return_slot(&mut self, number: u64) {
        self.remember(number);
        if let Some(pass) = self.live.get_mut(&number)
            && pass.session.is_none()
        {
            self.slots_used = self.slots_used.saturating_sub(u64::from(pass.slot));
            pass.slot = false;
        }
    }

    pub(crate) fn end(&mut self, number: u64) {
        self.remember(number);
        self.take(number);
    }

    fn take(&mut self, number: u64) {
        if let Some(pass) = self.live.remove(&number) {
            self.slots_used = self.slots_used.saturating_sub(u64::from(pass.slot));
            self.by_expiry.remove(&(pass.expires_at, number));
            if let Some(session) = pass.session {
                self.by_opening.remove(&(session.opened_at, number));
            }
        }
    }

    /// Unused passes that run out at or before `now`, earliest first.
    pub(crate) fn expired(&self, now: TimeMs) -> impl Iterator<Item = u64> + '_ {
        self.by_expiry.iter().take_while(move |(at, _)| *at <= now).map(|(_, n)| *n)
    }

    /// Sessions opened at or before `horizon`, earliest first.
    pub(crate) fn opened_since(&self, horizon: TimeMs) -> impl Iterator<Item = u64> + '_ {
        self.by_opening.iter().take_while(move |(at, _)| *at <= horizon).map(|(_, n)| *n)
    }

    pub(crate) fn earliest_expiry(&self) -> Option<TimeMs> {
        self.by_expiry.first().map(|(at, _)| *at)
    }

    pub(crate) fn earliest_opening(&self) -> Option<TimeMs> {
        self.by_opening.first().map(|(at, _)| *at)
    }

    pub(super) fn feed(&self, to: &mut Fingerprint) {
        to.number(self.slots_used);
        to.sorted(self.live.iter(), |to, number, pass| {
            to.number(*number);
            to.number(pass.passed_at.0);
            to.number(pass.expires_at.0);
            to.number(u64::from(pass.slot));
            to.option(pass.session.as_ref().map(|session| session.opened_at.0));
            if let Some(session) = &pass.session {
                to.proof(session.proof);
                to.option(session.reclaim_until.map(|until| until.0));
            }
        });
        for deadlines in [&self.by_expiry, &self.by_opening] {
            to.sorted(deadlines.iter().map(|key| (*key, ())), |to, (at, number), ()| {
                to.number(at.0);
                to.number(number);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// A pass as the contract has it: when it runs out, its slot, when its session opened.
    type Plain = BTreeMap<u64, (u64, bool, Option<u64>)>;

    fn check(passes: &Passes, plain: &Plain, now: u64) -> Result<(), TestCaseError> {
        let slots = plain.values().filter(|(_, slot, _)| *slot).count();
        prop_assert_eq!(passes.slots_used(), slots as u64);
        let open = plain.values().filter_map(|(_, _, opened)| *opened);
        prop_assert_eq!(passes.sessions(), open.clone().count() as u64);
        prop_assert_eq!(passes.earliest_opening(), open.min().map(TimeMs));
        let unused = plain.iter().filter(|(_, (_, _, opened))| opened.is_none());
        prop_assert_eq!(passes.unused(), unused.clone().count() as u64);
        let mut expired: Vec<u64> =
            unused.filter(|(_, (at, _, _))| *at <= now).map(|(n, _)| *n).collect();
        expired.sort_unstable();
        let mut told: Vec<u64> = passes.expired(TimeMs(now)).collect();
        told.sort_unstable();
        prop_assert_eq!(told, expired);
        Ok(())
    }

    proptest! {
        #[test]
        fn agree_with_a_plain_map(
            steps in prop::collection::vec((0..5u8, 1..12u64, any::<bool>(), 0..50u64), 1..200),
        ) {
            let (mut passes, mut plain) = (Passes::default(), Plain::new());
            let mut released = 100;
            for (step, number, slot, time) in steps {
                match step {
                    0 => {
                        // A number is released once.
                        released += 1;
                        passes.release(released, TimeMs(time), TimeMs(time + 9), slot);
                        plain.insert(released, (time + 9, slot, None));
                    }
                    step => {
                        let number = released.saturating_sub(number);
                        let found = plain.get_mut(&number);
                        match (step, found) {
                            (1, found) => {
                                passes.admit(number, TimeMs(time), Proof::Channel);
                                if let Some(pass) = found.filter(|pass| pass.2.is_none()) {
                                    *pass = (pass.0, true, Some(time));
                                }
                            }
                            (2, found) => {
                                passes.return_slot(number);
                                if let Some(pass) = found.filter(|pass| pass.2.is_none()) {
                                    pass.1 = false;
                                }
                            }
                            _ => {
                                passes.end(number);
                                plain.remove(&number);
                            }
                        }
                    }
                }
                check(&passes, &plain, time)?;
            }
        }
    }
}
