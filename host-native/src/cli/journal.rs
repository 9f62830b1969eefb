//! `journal verify` and `rebuild`: proves that the journal is whole, and folds it from its first
//! row. Neither changes a row; a rebuild writes snapshots that the next start uses.

use std::time::Instant;

use qm_core::id::RoomId;
use qm_core::room::{Event, Room};

use crate::log::Down;
use crate::log::journal::{Journal, RawRow};
use crate::log::row::{GENESIS, Hash, Row, chained};

/// Rows between two lines of progress.
const PROGRESS_EVERY: u64 = 200_000;

/// What was found in one generation of a room.
#[derive(Debug, Default)]
struct Found {
    rows: u64,
    faults: Vec<String>,
}

/// Follows the chain of one generation.
struct Chain {
    last: Hash,
    next: u64,
    found: Found,
}

impl Chain {
    fn new() -> Self {
        Self { last: GENESIS, next: 1, found: Found::default() }
    }

    /// Checks a row; what it says, when it can be read.
    fn check(&mut self, raw: &RawRow) -> Option<Row> {
        self.found.rows += 1;
        if raw.seq != self.next {
            self.fault(format!("row {} where {} belongs", raw.seq, self.next));
        }
        self.next = raw.seq + 1;
        let Ok(event) = serde_json::from_str::<Event>(&raw.body) else {
            self.fault(format!("row {} cannot be read", raw.seq));
            self.last = raw.hash;
            return None;
        };
        let text = serde_json::to_string(&event).unwrap_or_default();
        if event.seq != raw.seq || event.fact.name() != raw.event {
            self.fault(format!("row {} is filed under another name or number", raw.seq));
        }
        if chained(&self.last, &text) != raw.hash {
            self.fault(format!(
                "row {} does not fit its hash: it or its neighbour changed",
                raw.seq
            ));
        }
        // From here on the chain is followed as it is written, so that one fault is told once.
        self.last = raw.hash;
        Some(Row { event, text, hash: raw.hash, void: false })
    }

    fn fault(&mut self, what: String) {
        const FAULTS_MAX: usize = 100;
        if self.found.faults.len() < FAULTS_MAX {
            self.found.faults.push(what);
        }
    }
}

/// Reads every row of every generation; true when all is well.
///
/// # Errors
/// [`Down`] when Postgres cannot be read.
pub async fn verify(journal: &Journal) -> Result<bool, Down> {
    let (mut is_whole, mut rows) = (true, 0);
    for (room, generation) in journal.generations().await? {
        let mut chain = Chain::new();
        let mut told = 0;
        loop {
            let part = journal.raw_rows(&room, generation, chain.next - 1).await?;
            if part.is_empty() {
                break;
            }
            part.iter().for_each(|raw| drop(chain.check(raw)));
            if chain.found.rows >= told + PROGRESS_EVERY {
                told = chain.found.rows;
                tracing::info!(room, generation, rows = told, "verifying");
            }
        }
        rows += chain.found.rows;
        is_whole &= report(&room, generation, &chain.found);
    }
    tracing::info!(rows, whole = is_whole, "journal verified");
    Ok(is_whole)
}

fn report(room: &str, generation: u64, found: &Found) -> bool {
    for fault in &found.faults {
        tracing::error!(room, generation, "{fault}");
    }
    found.faults.is_empty()
}

/// Folds every open room from its first row and keeps the result as a snapshot; true when all is
/// well. A damaged room gets none.
///
/// # Errors
/// [`Down`] when Postgres cannot be used.
pub async fn rebuild(journal: &Journal) -> Result<bool, Down> {
    let mut is_whole = true;
    for entry in journal.register().await?.into_iter().filter(|entry| entry.open) {
        is_whole &= rebuild_room(journal, &entry.room, entry.generation).await?;
    }
    Ok(is_whole)
}

async fn rebuild_room(journal: &Journal, id: &RoomId, generation: u64) -> Result<bool, Down> {
    let began = Instant::now();
    let voided = journal.voided(id.as_str(), generation).await?;
    let mut chain = Chain::new();
    let mut room: Option<Room> = None;
    loop {
        let part = journal.raw_rows(id.as_str(), generation, chain.next - 1).await?;
        if part.is_empty() {
            break;
        }
        for raw in &part {
            let Some(mut row) = chain.check(raw) else { continue };
            row.void = voided.iter().any(|(from, to, at)| {
                row.event.seq >= *from && row.event.seq <= *to && row.event.seq < *at
            });
            match &mut room {
                Some(room) => room.apply(&row.effect()),
                None => room = Room::open(&row.event),
            }
        }
        tracing::info!(room = %id, generation, rows = chain.found.rows, "rebuilding");
    }
    let Some(room) = room.filter(|_| report(id.as_str(), generation, &chain.found)) else {
        tracing::error!(room = %id, generation, "not rebuilt");
        return Ok(false);
    };
    let (rows, ms) = (chain.found.rows, began.elapsed().as_millis());
    tracing::info!(room = %id, generation, rows, waiting = room.waiting(), ms, "rebuilt");
    journal.keep_snapshot(room, chain.last).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use qm_core::room::{Fact, Settings};
    use qm_core::time::TimeMs;

    use super::*;

    fn rows() -> Vec<RawRow> {
        let room = RoomId::parse("sale").unwrap();
        let settings = Box::new(Settings::new(&room, TimeMs(5)));
        let opened = Fact::RoomOpened { room, generation: 1, settings };
        let facts = [opened, Fact::Purged, Fact::Flushed(Default::default()), Fact::RoomClosed];
        let events =
            facts.into_iter().zip(1..).map(|(fact, seq)| Event { seq, at: TimeMs(9), fact });
        let raw = |row: Row| RawRow {
            seq: row.event.seq,
            event: row.event.fact.name().to_owned(),
            body: row.text,
            hash: row.hash,
        };
        Row::chain(&GENESIS, events.collect()).into_iter().map(raw).collect()
    }

    fn faults(rows: &[RawRow]) -> usize {
        let mut chain = Chain::new();
        rows.iter().for_each(|raw| drop(chain.check(raw)));
        chain.found.faults.len()
    }

    #[test]
    fn loss_order_and_change_are_found() {
        assert_eq!(faults(&rows()), 0);
        let mut lost = rows();
        lost.remove(1);
        assert!(faults(&lost) > 0);
        let mut swapped = rows();
        swapped.swap(1, 2);
        assert!(faults(&swapped) > 0);
        let mut changed = rows();
        changed[2].body = changed[2].body.replace("\"at\":9", "\"at\":8");
        assert!(faults(&changed) > 0);
        let mut renamed = rows();
        renamed[1].event = "drawn".to_owned();
        assert_eq!(faults(&renamed), 1);
    }
}
