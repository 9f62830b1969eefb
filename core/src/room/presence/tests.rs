//! Presence against plain maps, following the events of a real room.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::address::{AddressDigest, AgentDigest};
use crate::digest::Digest16;
use crate::id::RoomId;
use crate::room::{Client, Family, Proof, Settings};

const START: TimeMs = TimeMs(1_000_000);
const WINDOW: u32 = 5;

/// The last sighting, the last touch, and whether the owner may still learn of a slotted pass.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    seen: Option<u64>,
    touched: Option<TimeMs>,
    unlearned: bool,
}

struct Pair {
    room: Room,
    presence: Presence,
    plain: BTreeMap<u64, Plain>,
}

impl Pair {
    fn new() -> Self {
        let id = RoomId::parse("room").unwrap();
        let settings = Box::new(Settings::new(&id, START));
        let fact = Fact::RoomOpened { room: id, generation: 1, settings };
        let room = Room::open(&Event { seq: 1, at: START, fact }).unwrap();
        Self { room, presence: Presence::new(START), plain: BTreeMap::new() }
    }

    fn happen(&mut self, at: TimeMs, fact: Fact) {
        let event = Event { seq: self.room.head() + 1, at, fact };
        self.room.apply(&event);
        self.presence.follow(&self.room, &event);
    }

    fn step(&mut self, kind: u8, pick: u64, flag: bool, now: TimeMs) {
        let n = pick % self.room.next_ticket().max(1);
        let tenth = now.ms_since(START) / 100;
        match kind {
            0 | 1 => {
                let owner = flag.then(|| Digest16::of_owner(&alloc::format!("{now:?}{pick}")));
                let (address, agent) = (AddressDigest(1), AgentDigest(1));
                let client = Client { family: Family::V4, address, agent };
                let n = self.room.next_ticket();
                self.happen(now, Fact::Join { n, owner, client });
                self.plain.insert(n, Plain { seen: Some(tenth), ..Plain::default() });
            }
            2 if self.room.position(n).is_some() => {
                let owned = self.room.ticket(n).is_some_and(|ticket| ticket.owner.is_some());
                let ns = if flag { vec![] } else { vec![n] };
                self.happen(now, Fact::Passed(Release { ranges: vec![(n, n)], ns }));
                if let Some(plain) = self.plain.get_mut(&n) {
                    plain.unlearned = owned && flag;
                }
            }
            3 if self.plain.contains_key(&n) => {
                self.presence.saw_ticket(n, now, flag);
                if let Some(plain) = self.plain.get_mut(&n) {
                    plain.seen = plain.seen.max(Some(tenth));
                    plain.unlearned &= !flag;
                }
            }
            4 if self.room.passes.look_up(n).is_some_and(|pass| pass.session.is_none()) => {
                self.happen(now, Fact::Admitted { n, proof: Proof::Channel });
                if let Some(plain) = self.plain.get_mut(&n) {
                    (plain.touched, plain.unlearned) = (Some(now), false);
                }
            }
            5 => {
                self.presence.touch(n, now);
                if let Some(plain) = self.plain.get_mut(&n) {
                    plain.touched = plain.touched.map(|at| at.max(now));
                }
            }
            6 => {
                self.happen(now, Fact::Ejected { n });
                if let Some(plain) = self.plain.get_mut(&n) {
                    (plain.touched, plain.unlearned) = (None, false);
                }
            }
            7 => {
                self.happen(now, Fact::SlotsReturned { ns: vec![n] });
                if let Some(plain) = self.plain.get_mut(&n) {
                    plain.unlearned = false;
                }
            }
            _ => {}
        }
    }

    fn check(&self, now: TimeMs) -> Result<(), TestCaseError> {
        let at = |tenth: u64| START.plus_ms(tenth * 100);
        for (n, plain) in &self.plain {
            prop_assert_eq!(self.presence.last_seen(*n), plain.seen.map(at));
            prop_assert_eq!(self.presence.last_touch(*n), plain.touched);
            let here = plain.seen.is_some_and(|seen| now < at(seen).plus_seconds(5));
            prop_assert_eq!(self.presence.is_present(*n, Some(WINDOW), now), here);
            prop_assert!(self.presence.is_present(*n, None, now));
        }
        let sorted = |list: &mut dyn Iterator<Item = u64>| {
            let mut list: Vec<u64> = list.collect();
            list.sort_unstable();
            list
        };
        let gone = |plain: &Plain| plain.seen.is_none_or(|seen| now >= at(seen).plus_seconds(5));
        let lost = self.plain.iter().filter(|(_, plain)| plain.unlearned && gone(plain));
        prop_assert_eq!(
            sorted(&mut self.presence.unaware(WINDOW, now)),
            sorted(&mut lost.map(|(n, _)| *n))
        );
        let idle = self.plain.iter().filter(|(_, plain)| plain.touched.is_some_and(|at| at <= now));
        prop_assert_eq!(
            sorted(&mut self.presence.idle_since(now)),
            sorted(&mut idle.map(|(n, _)| *n))
        );
        let oldest = self.plain.values().filter(|plain| plain.unlearned);
        let oldest = oldest.filter_map(|plain| plain.seen).min().map(at);
        prop_assert_eq!(self.presence.oldest_unlearned(), oldest);
        Ok(())
    }
}

proptest! {
    #[test]
    fn agrees_with_plain_maps(
        steps in prop::collection::vec((0..8u8, any::<u64>(), any::<bool>(), 0..20_000u64), 1..120),
    ) {
        let mut pair = Pair::new();
        let mut events_at = START;
        for (kind, pick, flag, after) in steps {
            // Sightings and touches may lag; events never run back.
            let now = START.plus_ms(after);
            events_at = events_at.max(now);
            let lags = matches!(kind, 3 | 5);
            pair.step(kind, pick, flag, if lags { now } else { events_at });
            pair.check(now)?;
            pair.check(events_at)?;
        }
    }
}
