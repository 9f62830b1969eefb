//! A body that edits a room is read or refused, and what it sets survives being written down.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qm_core::room::patch::parse_room_body;
use qm_core::room::Settings;
use qm_core::time::TimeMs;
use serde_json::{Map, Value};

fuzz_target!(|text: &str| {
    let Ok(body) = serde_json::from_str::<Map<String, Value>>(text) else { return };
    let Ok((id, patch)) = parse_room_body(&body) else { return };
    let now = TimeMs(1_700_000_000_000);
    let Ok(settings) = patch.apply(&Settings::new(&id, now), now) else { return };
    let written = serde_json::to_string(&settings).expect("settings are JSON");
    assert_eq!(serde_json::from_str::<Settings>(&written).expect("its own JSON"), settings);
});
