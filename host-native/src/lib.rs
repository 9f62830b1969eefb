//! The queue server.

pub mod client;
pub mod clock;
pub mod config;
pub mod connector;
pub mod guard;
pub mod http;
pub mod job;
pub mod log;
pub mod rooms;
pub mod side;
pub mod telemetry;
