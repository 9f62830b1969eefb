//! A cookie header is read without failing, and values are parts of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qm_core::cookie;

fuzz_target!(|header: &str| {
    for (name, value) in cookie::pairs(header) {
        assert!(header.contains(name) && header.contains(value));
        if let Some(room) = cookie::room_of_ticket_cookie(name) {
            assert_eq!(cookie::ticket_cookie(&room), name);
        }
    }
});
