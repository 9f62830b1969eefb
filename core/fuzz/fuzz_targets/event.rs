//! An event that is read is written and read again as itself, and any log of events, however
//! senseless, folds without failing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qm_core::id::RoomId;
use qm_core::room::{Event, Fact, Presence, Room, Settings, ms_until_due};
use qm_core::time::TimeMs;

fuzz_target!(|text: &str| {
    let id = RoomId::parse("room").expect("a room id");
    let settings = Box::new(Settings::new(&id, TimeMs(0)));
    let fact = Fact::RoomOpened { room: id, generation: 1, settings };
    let mut room = Room::open(&Event { seq: 1, at: TimeMs(0), fact }).expect("opens a room");
    let mut presence = Presence::new(TimeMs(0));
    for line in text.lines() {
        let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
        let written = serde_json::to_string(&event).expect("an event is JSON");
        assert_eq!(serde_json::from_str::<Event>(&written).expect("its own JSON"), event);
        // A range is decided by the engine and never spans more than the line.
        if let Fact::Passed(release) | Fact::Flushed(release) = &event.fact
            && release.ranges.iter().any(|(from, to)| to.saturating_sub(*from) > 10_000)
        {
            continue;
        }
        room.apply(&event);
        presence.follow(&room, &event);
    }
    let _ = ms_until_due(&room, &presence, room.last_at());
    let _ = room.fingerprint();
});
