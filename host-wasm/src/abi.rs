//! The C ABI: memory goes in and comes out as address and length. It needs `unsafe` because a
//! caller outside Rust hands over addresses; nothing else in this crate does.
//!
//! `qm_alloc(len)` gives memory for an input, `qm_call(op, ptr, len)` answers with address (high
//! half) and length (low half) of a UTF-8 JSON text, `qm_free(ptr, len)` takes either back.
#![expect(unsafe_code, reason = "addresses come from outside Rust; every use states its contract")]

use crate::call;

fn hand_out(bytes: Box<[u8]>) -> *mut u8 {
    Box::into_raw(bytes).cast()
}

/// Memory for `len` octets of input.
#[unsafe(no_mangle)]
extern "C" fn qm_alloc(len: usize) -> *mut u8 {
    hand_out(vec![0; len].into_boxed_slice())
}

/// Takes memory back that this module handed out.
///
/// # Safety
/// `ptr` and `len` are those of one `qm_alloc` or of one answer, not taken back before.
#[unsafe(no_mangle)]
unsafe extern "C" fn qm_free(ptr: *mut u8, len: usize) {
    // SAFETY: by the contract above this is the very allocation that `hand_out` let go.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(ptr, len)) });
}

/// Answers the question `op` about the JSON text at `ptr`.
///
/// # Safety
/// `ptr` and `len` are those of one `qm_alloc` that was filled by the caller.
#[unsafe(no_mangle)]
unsafe extern "C" fn qm_call(op: u32, ptr: *const u8, len: usize) -> u64 {
    // SAFETY: by the contract above these octets are initialised and nobody writes them meanwhile.
    let input = unsafe { std::slice::from_raw_parts(ptr, len) };
    let answer = call::answer(op, input).into_bytes().into_boxed_slice();
    let len = answer.len() as u64;
    (hand_out(answer) as usize as u64) << 32 | len
}
