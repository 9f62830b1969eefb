//! No text makes the token reader fail, and no text that the fuzzer writes is a signed token.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qm_core::time::TimeMs;
use qm_core::token::{KeyRing, Purpose};

fuzz_target!(|text: &str| {
    let keys = KeyRing::new(b"a secret that no corpus file was signed with", None, true);
    assert!(keys.verify_visitor(text, TimeMs(1_700_000_000_000), u64::MAX).is_err());
    assert!(keys.verify(Purpose::Monitor, text).is_err());
});
