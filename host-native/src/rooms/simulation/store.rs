//! The simulated stores: `append.lua` in Rust, and a journal whose key lets a row be written once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use qm_core::id::RoomId;
use qm_core::room::{Event, Fact, Room};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::replica::FeedItem;
use crate::log::row::{Hash, Row};
use crate::log::{Ask, Down, NotRecorded, ORPHAN_AFTER, Reply, Settle, SharedLog};

/// A bug that is put in on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    Nothing,
    /// A row that is taken counts as written.
    ConflictIgnored,
    /// Rows whose callers were refused are kept.
    CompensationForgotten,
    /// A batch whose instance is gone is never repaired.
    OrphanIgnored,
    /// One instance does not know the limit of slots.
    SlotsUnlimited,
}

/// xorshift64*: enough to spread choices, the same on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn octets(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| (self.next() & 255) as u8)
    }
}

struct Waiting {
    id: String,
    from: u64,
    to: u64,
    rows: String,
    at: Instant,
    refused: bool,
}

#[derive(Default)]
struct Valkey {
    seq: Option<u64>,
    waiting: Option<Waiting>,
    stream: BTreeMap<u64, String>,
}

pub(super) struct State {
    valkey: Valkey,
    pub(super) journal: BTreeMap<u64, Row>,
    pub(super) random: Random,
    pub(super) feeds: Vec<mpsc::UnboundedSender<FeedItem>>,
    pub(super) valkey_back: Instant,
    pub(super) postgres_back: Instant,
    /// Chances of lost messages, in percent.
    pub(super) trouble: u64,
    pub(super) plant: Plant,
    /// How often what happened.
    pub(super) seen: BTreeMap<&'static str, u64>,
}

impl State {
    pub(super) fn new(seed: u64, plant: Plant, first: Row) -> Self {
        Self {
            valkey: Valkey::default(),
            journal: BTreeMap::from([(1, first)]),
            random: Random::new(seed),
            feeds: Vec::new(),
            valkey_back: Instant::now(),
            postgres_back: Instant::now(),
            trouble: 3,
            plant,
            seen: BTreeMap::new(),
        }
    }

    pub(super) fn empty_valkey(&mut self) {
        self.valkey = Valkey::default();
    }

    fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn publish(&self, from: u64, rows: &str) {
        for feed in &self.feeds {
            let _ = feed.send(FeedItem::Settled { from, rows: rows.to_owned() });
        }
    }

    fn settle(&mut self, settle: &Settle) {
        let (Settle::Keep(id) | Settle::Drop(id) | Settle::Refuse(id)) = settle;
        if self.valkey.waiting.as_ref().is_none_or(|waiting| waiting.id != *id) {
            return;
        }
        match settle {
            Settle::Keep(_) => {
                let Some(batch) = self.valkey.waiting.take() else { return };
                self.valkey.seq = Some(batch.to);
                self.publish(batch.from, &batch.rows);
                self.valkey.stream.insert(batch.from, batch.rows);
            }
            Settle::Drop(_) => self.valkey.waiting = None,
            Settle::Refuse(_) => {
                if let Some(waiting) = &mut self.valkey.waiting {
                    waiting.refused = true;
                }
            }
        }
    }

    /// What `append.lua` does, but for the line.
    fn ask(&mut self, ask: &Ask) -> Reply {
        let Some(seq) = self.valkey.seq else {
            self.valkey.seq = Some(ask.head);
            self.saw("fresh");
            return Reply::Fresh;
        };
        let mut seq = seq;
        if let Some(settle) = &ask.settle {
            self.settle(settle);
            seq = self.valkey.seq.unwrap_or(seq);
        }
        if self.valkey.waiting.as_ref().is_some_and(|waiting| waiting.from <= ask.head) {
            self.valkey.waiting = None;
        }
        if ask.head > seq && self.valkey.waiting.is_none() {
            seq = ask.head;
            self.valkey.seq = Some(seq);
            self.publish(seq, "");
        }
        if ask.head < seq {
            let after: Vec<_> = self.valkey.stream.range(ask.head + 1..).take(64).collect();
            if after.first().map(|(from, _)| **from) != Some(ask.head + 1) {
                self.saw("lost");
                return Reply::Lost(seq);
            }
            let rows = after.into_iter().map(|(_, rows)| rows.clone()).collect();
            self.saw("behind");
            return Reply::Behind(rows);
        }
        if let Some(waiting) = &self.valkey.waiting {
            let (id, refused) = (waiting.id.clone(), waiting.refused);
            if waiting.at.elapsed() >= ORPHAN_AFTER && self.plant != Plant::OrphanIgnored {
                let (from, rows) = (waiting.from, waiting.rows.clone());
                self.saw(if refused { "orphan refused" } else { "orphan" });
                return Reply::Orphan { id, from, rows, refused };
            }
            if ask.batch.is_some() {
                self.saw("busy");
                return Reply::Busy(id);
            }
            return Reply::Current(id);
        }
        let Some((id, to, rows)) = ask.batch.clone() else { return Reply::Current(String::new()) };
        let (from, at) = (ask.head + 1, Instant::now());
        self.valkey.waiting = Some(Waiting { id, from, to, rows, at, refused: false });
        Reply::Appended
    }

    fn record(&mut self, rows: &[Row]) -> Result<(), NotRecorded> {
        if rows.iter().any(|row| self.journal.contains_key(&row.event.seq)) {
            self.saw("taken");
            let is_ours = self.plant == Plant::ConflictIgnored;
            return if is_ours { Ok(()) } else { Err(NotRecorded::Taken) };
        }
        for row in rows {
            let row = match row.voids() {
                Some((from, to, _)) if from <= to => {
                    self.saw("voided");
                    if self.plant == Plant::CompensationForgotten { kept(row) } else { row.clone() }
                }
                _ => row.clone(),
            };
            self.journal.insert(row.event.seq, row);
        }
        Ok(())
    }

    /// The journal's rows, those that never happened marked.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.journal.values().cloned().collect();
        Row::mark_void(&mut rows);
        rows
    }

    /// The room as the journal has it.
    pub(super) fn fold(&self, mut each: impl FnMut(&Room)) -> Room {
        let rows = self.rows();
        let mut room = Room::open(&rows[0].event).unwrap();
        for row in &rows[1..] {
            room.apply(&row.effect());
            each(&room);
        }
        room
    }
}

fn kept(row: &Row) -> Row {
    let (seq, at) = (row.event.seq, row.event.at);
    let fact = Fact::Voided { from_seq: seq, to_seq: seq - 1 };
    Row { event: Event { seq, at, fact }, ..row.clone() }
}

/// The way of one instance to the stores.
#[derive(Clone)]
pub(super) struct SimulatedLog(pub(super) Arc<Mutex<State>>);

impl SimulatedLog {
    fn draw(&self, chance: u64) -> bool {
        let mut state = self.0.lock();
        let trouble = state.trouble;
        trouble > 0 && state.random.percent(chance * trouble / 3)
    }

    async fn pause(&self, most_ms: u64) {
        let ms = self.0.lock().random.below(most_ms);
        tokio::time::sleep_until(Instant::now() + Duration::from_millis(ms)).await;
    }
}

impl SharedLog for SimulatedLog {
    async fn ask(&self, _: &RoomId, ask: &Ask) -> Result<Reply, Down> {
        self.pause(3).await;
        if Instant::now() < self.0.lock().valkey_back || self.draw(2) {
            self.pause(900).await;
            return Err(Down);
        }
        let reply = self.0.lock().ask(ask);
        self.pause(3).await;
        if self.draw(2) {
            self.0.lock().saw("answer lost");
            self.pause(900).await;
            return Err(Down);
        }
        Ok(reply)
    }

    async fn record(&self, _: &RoomId, _: u64, rows: &[Row]) -> Result<(), NotRecorded> {
        self.pause(6).await;
        if Instant::now() < self.0.lock().postgres_back {
            return Err(NotRecorded::Refused);
        }
        if self.draw(2) {
            // It may never come, or come late.
            let (late, world, rows) = (self.draw(50), self.clone(), rows.to_vec());
            tokio::spawn(async move {
                world.pause(4000).await;
                if late && world.0.lock().record(&rows).is_ok() {
                    world.0.lock().saw("late commit");
                }
            });
            self.pause(2000).await;
            return Err(NotRecorded::Unknown);
        }
        let result = self.0.lock().record(rows);
        if result.is_ok() && self.draw(2) {
            self.0.lock().saw("commit unheard");
            return Err(NotRecorded::Unknown);
        }
        self.pause(3).await;
        result
    }

    async fn rows(
        &self,
        _: &RoomId,
        _: u64,
        after: (u64, Hash),
        up_to: u64,
    ) -> Result<Vec<Row>, Down> {
        self.pause(4).await;
        if Instant::now() < self.0.lock().postgres_back || self.draw(1) {
            return Err(Down);
        }
        let rows = self.0.lock().rows();
        let wanted = |row: &Row| row.event.seq > after.0 && row.event.seq <= up_to;
        Ok(rows.into_iter().filter(wanted).take(40).collect())
    }

    async fn keep_snapshot(&self, _: Room, _: Hash) -> Result<(), Down> {
        Ok(())
    }
}
