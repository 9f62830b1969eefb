//! What the admin stream shows, computed once for all watchers: every two seconds one tick with the
//! rooms, what changed, and a sample for the sparklines. Watchers share the finished octets.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use qm_core::id::RoomId;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::super::app::App;
use super::rooms::redact;

/// The board of this instance.
#[derive(Debug)]
pub struct Board {
    ticks: watch::Sender<Option<Arc<Tick>>>,
    sparks: Mutex<HashMap<(RoomId, u64), VecDeque<u64>>>,
    /// Moves whenever a credential was revoked here.
    revocations: watch::Sender<u64>,
}

/// Which shape a watcher sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Everything.
    Whole,
    /// Without what a monitor link must not tell (ADM-32).
    Redacted,
}

/// The rooms at one moment.
#[derive(Debug)]
pub struct Tick {
    number: u64,
    items: Vec<Map<String, Value>>,
    /// What differs from the tick before; `None` when a delta cannot say it.
    delta: Option<Delta>,
    common: Map<String, Value>,
    octets: [OnceLock<Bytes>; 4],
}

#[derive(Debug, PartialEq, Eq)]
struct Delta {
    changed: Vec<usize>,
    removed: Vec<String>,
}

/// What a watcher has been sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress(Option<u64>);

impl Default for Board {
    fn default() -> Self {
        Self {
            ticks: watch::Sender::new(None),
            sparks: Mutex::default(),
            revocations: watch::Sender::new(0),
        }
    }
}

impl Board {
    /// Ticks for as long as the process runs.
    pub async fn run(app: Arc<App>) {
        let mut timer = tokio::time::interval(TICK);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut number = 0;
        loop {
            timer.tick().await;
            number += 1;
            app.board.tick(&app, number);
        }
    }

    fn tick(&self, app: &App, number: u64) {
        self.sample(app);
        if self.ticks.receiver_count() == 0 {
            // Nobody looks: the next watcher starts from a full frame anyway.
            self.ticks.send_replace(None);
            return;
        }
        let items = items(app);
        let last = self.ticks.borrow().clone();
        let delta = last.and_then(|last| difference(&last.items, &items));
        let common = self.common(app, &items);
        let octets = Default::default();
        self.ticks.send_replace(Some(Arc::new(Tick { number, items, delta, common, octets })));
    }

    fn sample(&self, app: &App) {
        let mut sparks = self.sparks.lock();
        let mut kept = HashMap::with_capacity(sparks.len());
        for room in app.rooms.all() {
            let key = (room.id().clone(), room.generation());
            let mut samples = sparks.remove(&key).unwrap_or_default();
            if samples.len() >= SAMPLES {
                samples.pop_front();
            }
            samples.push_back(room.look(|room, _, _| room.waiting()));
            kept.insert(key, samples);
        }
        *sparks = kept;
    }

    /// The members besides the rooms.
    fn common(&self, app: &App, items: &[Map<String, Value>]) -> Map<String, Value> {
        let sum = |name: &str| -> u64 {
            items.iter().filter_map(|item| item.get(name).and_then(Value::as_u64)).sum()
        };
        let sparks = self.sparks.lock();
        let spark: Map<String, Value> = sparks
            .iter()
            .map(|((room, _), samples)| (room.to_string(), samples.iter().copied().collect()))
            .collect();
        let totals = json!({
            "waiting": sum("waiting"),
            "passedLastMin": sum("passedLastMin"),
            "joinedLastMin": sum("joinedLastMin"),
            "sessions": sum("sessions"),
            "streams": app.metrics.sse_streams.get(),
        });
        let mut common = Map::new();
        common.insert("totals".into(), totals);
        common.insert("spark".into(), spark.into());
        common.insert("now".into(), app.clock.now().0.into());
        common
    }

    /// The frame of this moment, for a watcher who just came.
    #[must_use]
    pub fn first_frame(&self, app: &App, shape: Shape) -> Bytes {
        let items = items(app);
        let common = self.common(app, &items);
        full_frame(&items, &common, shape)
    }

    /// Wakes with every tick.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<Tick>>> {
        self.ticks.subscribe()
    }

    /// Wakes when a credential was revoked.
    #[must_use]
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.revocations.subscribe()
    }

    /// Has all streams look whether their credential is still good.
    pub fn revoked(&self) {
        self.revocations.send_modify(|count| *count += 1);
    }
}

impl Tick {
    /// The next frame of a watcher: a delta when it has the tick before, else a full frame.
    #[must_use]
    pub fn frame(&self, progress: &mut Progress, shape: Shape) -> Bytes {
        let follows = progress.0.is_some_and(|last| last + 1 == self.number);
        progress.0 = Some(self.number);
        let slot = |delta: bool| 2 * usize::from(delta) + usize::from(shape == Shape::Redacted);
        match &self.delta {
            Some(delta) if follows => self.octets[slot(true)]
                .get_or_init(|| delta_frame(&self.items, delta, &self.common, shape))
                .clone(),
            _ => self.octets[slot(false)]
                .get_or_init(|| full_frame(&self.items, &self.common, shape))
                .clone(),
        }
    }
}

fn items(app: &App) -> Vec<Map<String, Value>> {
    app.rooms.all().iter().map(|room| room.look(|room, _, now| room.list_item(now))).collect()
}

fn id_of(item: &Map<String, Value>) -> &str {
    item.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// What a client has to replace, append and drop; `None` when that would not give the right order.
fn difference(last: &[Map<String, Value>], now: &[Map<String, Value>]) -> Option<Delta> {
    let before: HashMap<&str, &Map<String, Value>> =
        last.iter().map(|item| (id_of(item), item)).collect();
    let after: HashMap<&str, ()> = now.iter().map(|item| (id_of(item), ())).collect();
    let removed: Vec<String> =
        last.iter().map(id_of).filter(|id| !after.contains_key(id)).map(str::to_owned).collect();
    // The client's list after replacing, appending and dropping.
    let kept = last.iter().map(id_of).filter(|id| after.contains_key(id));
    let fresh = now.iter().map(id_of).filter(|id| !before.contains_key(id));
    if !kept.chain(fresh).eq(now.iter().map(id_of)) {
        return None;
    }
    let differs =
        |item: &Map<String, Value>| before.get(id_of(item)).is_none_or(|old| *old != item);
    let changed = (0..now.len()).filter(|index| differs(&now[*index])).collect();
    Some(Delta { changed, removed })
}

fn shaped(item: &Map<String, Value>, shape: Shape) -> Value {
    let mut item = item.clone();
    if shape == Shape::Redacted {
        redact(&mut item);
    }
    item.into()
}

fn full_frame(items: &[Map<String, Value>], common: &Map<String, Value>, shape: Shape) -> Bytes {
    let mut frame = common.clone();
    frame.insert("rooms".into(), items.iter().map(|item| shaped(item, shape)).collect());
    event(frame)
}

fn delta_frame(
    items: &[Map<String, Value>],
    delta: &Delta,
    common: &Map<String, Value>,
    shape: Shape,
) -> Bytes {
    let mut frame = common.clone();
    let changed = delta.changed.iter().map(|index| shaped(&items[*index], shape));
    frame.insert("delta".into(), true.into());
    frame.insert("rooms".into(), changed.collect());
    frame.insert("removed".into(), delta.removed.clone().into());
    event(frame)
}

fn event(frame: Map<String, Value>) -> Bytes {
    Bytes::from(format!("data: {}\n\n", Value::from(frame)))
}

const TICK: Duration = Duration::from_secs(2);
/// Samples of a sparkline, one a tick.
const SAMPLES: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn room(id: &str, waiting: u64) -> Map<String, Value> {
        json!({ "id": id, "waiting": waiting }).as_object().cloned().unwrap()
    }

    #[test]
    fn a_delta_says_what_changed_or_nothing_fits() {
        let last = [room("a", 1), room("b", 1), room("c", 1)];
        let delta = |changed: &[usize], removed: &[&str]| {
            let removed = removed.iter().map(|id| (*id).to_owned()).collect();
            Some(Delta { changed: changed.to_vec(), removed })
        };
        for (now, expected) in [
            (vec![room("a", 1), room("b", 1), room("c", 1)], delta(&[], &[])),
            (vec![room("a", 1), room("b", 2), room("c", 1)], delta(&[1], &[])),
            (vec![room("a", 1), room("c", 1), room("d", 0)], delta(&[2], &["b"])),
            (vec![room("b", 1), room("a", 1), room("c", 1)], None),
            (vec![room("b", 1), room("c", 1), room("a", 1)], None),
            (vec![], delta(&[], &["a", "b", "c"])),
        ] {
            assert_eq!(difference(&last, &now), expected, "{now:?}");
        }
    }

    #[test]
    fn a_watcher_who_missed_a_tick_gets_a_full_frame() {
        let tick = |number| Tick {
            number,
            items: vec![room("a", 1)],
            delta: Some(Delta { changed: vec![], removed: vec![] }),
            common: Map::new(),
            octets: Default::default(),
        };
        let is_delta = |bytes: &Bytes| String::from_utf8_lossy(bytes).contains("\"delta\":true");
        let mut progress = Progress::default();
        for (number, delta) in [(5, false), (6, true), (8, false), (9, true)] {
            let frame = tick(number).frame(&mut progress, Shape::Whole);
            assert_eq!(is_delta(&frame), delta, "{number}");
        }
    }
}
