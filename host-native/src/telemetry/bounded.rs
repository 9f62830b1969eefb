//! Counters whose labels are chosen by strangers: at most 200 distinct values are kept apart, the
//! rest is counted under `(other)`, and every label is logged once, when it is first counted.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

/// The label of everything beyond the bound.
pub const OTHER: &str = "(other)";

/// Counts by room.
#[derive(Debug)]
pub struct BoundedCounter {
    name: &'static str,
    help: &'static str,
    counts: RwLock<HashMap<Box<str>, AtomicU64>>,
    other: AtomicU64,
}

impl BoundedCounter {
    /// `name` without the prefix of the registry and without `_total`; `help` is also the text of
    /// the log line.
    #[must_use]
    pub fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, counts: RwLock::default(), other: AtomicU64::new(0) }
    }

    /// Counts one for `room`.
    pub fn increment(&self, room: &str) {
        self.increment_with(room, None);
    }

    /// Counts one for `room`; when that is logged, `sent` says how what was sent began.
    pub fn increment_with(&self, room: &str, sent: Option<&str>) {
        let counts = self.counts.read();
        if let Some(count) = counts.get(room) {
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // Strangers can send new names for ever; those beyond the bound take no exclusive lock.
        let full = counts.len() >= LABELS_MAX;
        drop(counts);
        if full || room.len() > LABEL_BYTES_MAX {
            return self.increment_other();
        }
        let mut counts = self.counts.write();
        if let Some(count) = counts.get(room) {
            count.fetch_add(1, Ordering::Relaxed);
        } else if counts.len() >= LABELS_MAX {
            self.increment_other();
        } else {
            counts.insert(room.into(), AtomicU64::new(1));
            drop(counts);
            tracing::warn!(room = ?room, sent, "{}", self.help);
        }
    }

    fn increment_other(&self) {
        if self.other.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(room = OTHER, "{}", self.help);
        }
    }

    /// Room to count.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<String, u64> {
        let counts = self.counts.read();
        let rooms = counts.iter().map(|(room, n)| (room.to_string(), n.load(Ordering::Relaxed)));
        let other = (OTHER.to_owned(), self.other.load(Ordering::Relaxed));
        rooms.chain((other.1 > 0).then_some(other)).collect()
    }
}

impl Collector for BoundedCounter {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.snapshot();
        encode_rows(
            encoder,
            self.name,
            self.help,
            rows.iter().map(|(room, n)| ([("room", &**room)], *n)),
        )
    }
}

/// Counts by room and origin; each of the two is bounded by itself.
#[derive(Debug)]
pub struct BoundedPairCounter {
    name: &'static str,
    help: &'static str,
    state: RwLock<Pairs>,
}

#[derive(Debug, Default)]
struct Pairs {
    counts: HashMap<Box<str>, HashMap<Box<str>, AtomicU64>>,
    origins: HashSet<Box<str>>,
}

impl BoundedPairCounter {
    /// `name` without the prefix of the registry and without `_total`; `help` is also the text of
    /// the log line.
    #[must_use]
    pub fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, state: RwLock::default() }
    }

    /// Counts one for `room` and `origin`.
    pub fn increment(&self, room: &str, origin: &str) {
        if self.state.read().add_to_known(room, origin) {
            return;
        }
        let mut state = self.state.write();
        if state.add_to_known(room, origin) {
            return;
        }
        let (room, origin) = state.labels(room, origin);
        if origin != OTHER {
            state.origins.insert(origin.into());
        }
        let of_room = state.counts.entry(room.into()).or_default();
        of_room.insert(origin.into(), AtomicU64::new(1));
        drop(state);
        tracing::warn!(room = ?room, origin = ?origin, "{}", self.help);
    }

    /// Room to origin to count.
    #[must_use]
    pub fn snapshot(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let state = self.state.read();
        let counted = |of: &HashMap<Box<str>, AtomicU64>| {
            of.iter().map(|(origin, n)| (origin.to_string(), n.load(Ordering::Relaxed))).collect()
        };
        state.counts.iter().map(|(room, of)| (room.to_string(), counted(of))).collect()
    }
}

impl Pairs {
    /// The labels under which a pair is counted.
    fn labels<'a>(&self, room: &'a str, origin: &'a str) -> (&'a str, &'a str) {
        let rooms = self.counts.len() - usize::from(self.counts.contains_key(OTHER));
        let room_fits = self.counts.contains_key(room) || rooms < LABELS_MAX;
        let origin_fits = self.origins.contains(origin) || self.origins.len() < LABELS_MAX;
        let bounded = |text: &'a str, fits: bool| {
            if fits && text.len() <= LABEL_BYTES_MAX { text } else { OTHER }
        };
        (bounded(room, room_fits), bounded(origin, origin_fits))
    }

    fn add_to_known(&self, room: &str, origin: &str) -> bool {
        let (room, origin) = self.labels(room, origin);
        let count = self.counts.get(room).and_then(|of| of.get(origin));
        count.map(|count| count.fetch_add(1, Ordering::Relaxed)).is_some()
    }
}

impl Collector for BoundedPairCounter {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.snapshot();
        let rows = rows.iter().flat_map(|(room, of)| {
            of.iter().map(move |(origin, n)| ([("room", &**room), ("origin", &**origin)], *n))
        });
        encode_rows(encoder, self.name, self.help, rows)
    }
}

fn encode_rows<'a, const N: usize>(
    mut encoder: DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: impl Iterator<Item = ([(&'a str, &'a str); N], u64)>,
) -> Result<(), fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, count) in rows {
        let no_exemplar: Option<&Exemplar<[(&str, &str); 0], u64>> = None;
        family.encode_family(&labels)?.encode_counter(&count, no_exemplar)?;
    }
    Ok(())
}

const LABELS_MAX: usize = 200;
/// Longer texts are nobody's room or origin.
const LABEL_BYTES_MAX: usize = 320;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_beyond_the_bound_share_one() {
        let counter = BoundedCounter::new("c", "counted");
        for n in 0..230 {
            counter.increment(&format!("r{n}"));
        }
        counter.increment("r0");
        counter.increment(&"x".repeat(400));
        let seen = counter.snapshot();
        assert_eq!((seen.len(), seen["r0"], seen["r199"], seen[OTHER]), (201, 2, 1, 31));
        assert!(!seen.contains_key("r200"));
    }

    #[test]
    fn both_labels_of_a_pair_are_bounded() {
        let counter = BoundedPairCounter::new("c", "counted");
        for n in 0..230 {
            counter.increment("room", &format!("https://o{n}.example"));
            counter.increment(&format!("r{n}"), "https://o0.example");
        }
        let seen = counter.snapshot();
        assert_eq!(seen["room"].len(), 201);
        assert_eq!(seen["room"][OTHER], 30);
        // "room" itself is one of the 200.
        assert_eq!((seen.len(), seen[OTHER]["https://o0.example"]), (201, 31));
    }
}
