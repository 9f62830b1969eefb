//! The room: what an operator sets about it, and how a request changes that.

pub mod automatic;
pub mod branding;
pub mod config;
mod field;
pub mod patch;
pub mod rate;
