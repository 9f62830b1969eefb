//! What happened in a room since somebody last asked, for its history. Filled by the room's task
//! after a batch; the job that keeps the history takes it out.

use parking_lot::Mutex;
use qm_core::room::{Event, Fact, Release, Room};
use rand::Rng as _;

use crate::telemetry::Bucket;

/// Waits looked at in one release; a larger one is sampled.
const WAITS_PER_RELEASE: u64 = 64;

/// The activity of one room.
#[derive(Debug, Default)]
pub struct Activity(Mutex<Bucket>);

impl Activity {
    /// Takes note of events just applied to `room`.
    pub(super) fn note(&self, room: &Room, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let mut now = self.0.lock();
        for event in events {
            match &event.fact {
                Fact::Join { .. } | Fact::PreJoined { .. } => now.joins += 1,
                Fact::Passed(release) | Fact::Flushed(release) => {
                    now.passes += numbers_in(release);
                    note_waits(&mut now, room, release, event);
                }
                Fact::Admitted { .. } => now.admitted += 1,
                Fact::Left { .. } | Fact::PreLeft { .. } => now.abandoned += 1,
                Fact::Expired { ns } => now.expired += ns.len() as u64,
                _ => {}
            }
        }
        now.waiting = room.waiting();
        now.sessions = room.sessions();
        now.peak_waiting = now.peak_waiting.max(now.waiting);
    }

    /// What happened since the last call.
    pub fn take(&self) -> Bucket {
        let mut now = self.0.lock();
        let (waiting, sessions) = (now.waiting, now.sessions);
        let rest = Bucket { waiting, sessions, peak_waiting: waiting, ..Bucket::default() };
        std::mem::replace(&mut *now, rest)
    }
}

fn note_waits(bucket: &mut Bucket, room: &Room, release: &Release, event: &Event) {
    let all = numbers_in(release);
    let step = all.div_ceil(WAITS_PER_RELEASE).max(1);
    let numbers = release.ranges.iter().flat_map(|(from, to)| *from..=*to);
    let step_size = usize::try_from(step).unwrap_or(usize::MAX);
    let mut random = rand::rng();
    for number in numbers.step_by(step_size) {
        let Some(joined_at) = room.joined_at(number) else { continue };
        let seconds = u32::try_from(event.at.ms_since(joined_at) / 1000).unwrap_or(u32::MAX);
        bucket.waits.offer(seconds, step, random.next_u64());
    }
}

/// Ranges hold no other numbers than those that passed, but for ones that ended before.
pub(super) fn numbers_in(release: &Release) -> u64 {
    release.ranges.iter().map(|(from, to)| to - from + 1).sum()
}
