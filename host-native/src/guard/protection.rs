//! What bot protection saw: scores by room, the signals behind them, and refusals by code (ADM-04).

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use qm_core::id::RoomId;
use qm_core::score::{Signals, score};

use super::cadence::Cadence;

/// Scores and refusals of this process.
#[derive(Debug, Default)]
pub struct Protection {
    rooms: Mutex<HashMap<RoomId, Scores>>,
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    /// How regularly addresses join.
    pub cadence: Cadence,
}

/// The scores of one room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// Joins scored.
    pub scored: u64,
    /// Joins refused for their score.
    pub refused: u64,
    /// How many scores fell into 0–9, 10–19, …, 90–100.
    pub histogram: [u64; 10],
    /// How often each signal was there.
    pub signals: BTreeMap<&'static str, u64>,
}

impl Protection {
    /// Counts a scored join.
    pub fn count(&self, room: &RoomId, signals: &Signals, refused: bool) {
        let mut rooms = self.rooms.lock();
        if !rooms.contains_key(room) {
            rooms.insert(room.clone(), Scores::default());
        }
        let Some(scores) = rooms.get_mut(room) else { return };
        scores.scored += 1;
        scores.refused += u64::from(refused);
        let bin = usize::from(score(signals) / 10).min(scores.histogram.len() - 1);
        scores.histogram[bin] += 1;
        for name in signals.names() {
            *scores.signals.entry(name).or_default() += 1;
        }
    }

    /// The scores of a room so far.
    #[must_use]
    pub fn scores(&self, room: &RoomId) -> Scores {
        self.rooms.lock().get(room).cloned().unwrap_or_default()
    }

    /// Forgets a deleted room.
    pub fn forget(&self, room: &RoomId) {
        self.rooms.lock().remove(room);
    }

    /// Counts a refusal by its code.
    pub fn count_refusal(&self, code: &'static str) {
        *self.refusals.lock().entry(code).or_default() += 1;
    }

    /// Refusals so far.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<&'static str, u64> {
        self.refusals.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_is_in_one_bin() {
        let (protection, room) = (Protection::default(), RoomId::parse("r").unwrap());
        let bot = Signals {
            declared_automation: true,
            no_user_agent: true,
            no_accept_language: true,
            bare_accept: true,
            missing_sec_fetch: true,
            ..Signals::default()
        };
        protection.count(&room, &Signals::default(), false);
        protection.count(&room, &bot, true);
        let scores = protection.scores(&room);
        assert_eq!((scores.scored, scores.refused), (2, 1));
        assert_eq!((scores.histogram[0], scores.histogram[9]), (1, 1), "100 is in the last bin");
        assert_eq!(scores.signals["no_user_agent"], 1);
        protection.forget(&room);
        assert_eq!(protection.scores(&room), Scores::default());
    }
}
