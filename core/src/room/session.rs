//! Released tickets: passes until they are used, door sessions afterwards, and the `maxConcurrent`
//! slots that both hold. Storage and deadlines only; who may enter is decided in `door`.

use alloc::collections::BTreeSet;

use hashbrown::HashMap;

use super::event::Proof;
use crate::time::TimeMs;

/// A released ticket that is not over.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub(crate) passed_at: TimeMs,
    /// When the pass runs out unless it is used (ENG-08).
    pub(crate) expires_at: TimeMs,
    /// Whether it holds a slot (GHO-01).
    pub(crate) slot: bool,
    pub(crate) session: Option<Session>,
}

/// An open door session (CHK-07).
#[derive(Clone, Debug)]
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
}

impl Passes {
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
        self.slots_used += u64::from(slot);
        self.by_expiry.insert((expires_at, number));
        self.live.insert(number, Pass { passed_at, expires_at, slot, session: None });
    }

    /// Opens the session of a pass; a slotless one takes a slot now.
    pub(crate) fn admit(&mut self, number: u64, opened_at: TimeMs, proof: Proof) {
        if let Some(pass) = self.live.get_mut(&number) {
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
        self.live.get_mut(&number)?.session.as_mut()
    }

    pub(crate) fn return_slot(&mut self, number: u64) {
        if let Some(pass) = self.live.get_mut(&number) {
            self.slots_used = self.slots_used.saturating_sub(u64::from(pass.slot));
            pass.slot = false;
        }
    }

    pub(crate) fn end(&mut self, number: u64) {
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
}
