//! One event as it is written down: its text, and the hash that chains it to the row before, so
//! that a row lost or changed in the middle is found. The log and the journal carry the same rows.

use qm_core::room::{Event, Fact};
use qm_core::time::TimeMs;
use sha2::{Digest as _, Sha256};

/// The hash of a row.
pub type Hash = [u8; 32];

/// What the first row of a generation is chained to.
pub const GENESIS: Hash = [0; 32];

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The event.
    pub event: Event,
    /// The event as written.
    pub text: String,
    /// The hash over the row before and the text.
    pub hash: Hash,
    /// A later row voids this one: it stands in the chain and never happened.
    pub void: bool,
}

/// Why rows cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl Row {
    /// The row of an event after the row with the hash `before`.
    #[must_use]
    pub fn after(before: &Hash, event: Event) -> Self {
        let text = serde_json::to_string(&event).expect("an event is always JSON");
        let hash = chained(before, &text);
        Self { event, text, hash, void: false }
    }

    /// The rows of events that follow each other.
    #[must_use]
    pub fn chain(before: &Hash, events: Vec<Event>) -> Vec<Self> {
        let mut last = *before;
        let row = |event| {
            let row = Self::after(&last, event);
            last = row.hash;
            row
        };
        events.into_iter().map(row).collect()
    }

    /// The rows that [`Row::join`] wrote.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn split(before: &Hash, rows: &str) -> Result<Vec<Self>, Unreadable> {
        let mut last = *before;
        let read = |text: &str| {
            let event = serde_json::from_str(text).map_err(|_| Unreadable)?;
            last = chained(&last, text);
            Ok(Self { event, text: text.to_owned(), hash: last, void: false })
        };
        rows.lines().map(read).collect()
    }

    /// The rows as one text, a line each.
    #[must_use]
    pub fn join(rows: &[Self]) -> String {
        let mut text = String::with_capacity(rows.iter().map(|row| row.text.len() + 1).sum());
        for row in rows {
            text.push_str(&row.text);
            text.push('\n');
        }
        text
    }

    /// Marks the rows that later ones of `rows` void.
    pub fn mark_void(rows: &mut [Self]) {
        let ranges: Vec<(u64, u64, u64)> = rows.iter().filter_map(Self::voids).collect();
        for row in rows {
            let seq = row.event.seq;
            row.void |= ranges.iter().any(|(from, to, at)| seq >= *from && seq <= *to && seq < *at);
        }
    }

    /// The range a row voids, and where it stands.
    #[must_use]
    pub fn voids(&self) -> Option<(u64, u64, u64)> {
        match self.event.fact {
            Fact::Voided { from_seq, to_seq } => Some((from_seq, to_seq, self.event.seq)),
            _ => None,
        }
    }

    /// The event as a replica folds it: a void one only moves the head.
    #[must_use]
    pub fn effect(&self) -> std::borrow::Cow<'_, Event> {
        if !self.void {
            return std::borrow::Cow::Borrowed(&self.event);
        }
        let nothing = Fact::Voided { from_seq: 1, to_seq: 0 };
        // Time of what never happened does not hold the room's clock up.
        let (seq, at) = (self.event.seq, TimeMs(0));
        std::borrow::Cow::Owned(Event { seq, at, fact: nothing })
    }
}

/// The hash of a text after a row.
#[must_use]
pub fn chained(before: &Hash, text: &str) -> Hash {
    Sha256::new().chain_update(before).chain_update(text).finalize().into()
}
