//! The rules of the queue, written once and compiled into every host: tokens, URL targeting, the
//! door check and the room engine. Hosts pass in what they read from sockets, the time and
//! randomness; nothing here does IO, reads a clock, logs or awaits.

#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::unreachable
    )
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod address;
pub mod cookie;
pub mod digest;
pub mod door;
pub mod edge;
pub mod id;
pub mod reply;
pub mod room;
pub mod score;
pub mod target;
pub mod time;
pub mod token;
pub mod url;
