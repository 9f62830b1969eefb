//! The HTTP front: sockets, bodies, errors and embedded files.

pub mod asset;
pub mod body;
pub mod connection;
pub mod error;
pub mod framing;
pub mod read_body;
pub mod server;
