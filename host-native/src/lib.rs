//! The queue server.

pub mod cli;
pub mod clock;
pub mod config;
pub mod guard;
pub mod http;
pub mod log;
pub mod rooms;
pub mod telemetry;
