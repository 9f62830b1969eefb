//! What stands in front of every route: who asks, how often, and with which key.

pub mod address;
pub mod auth;
pub mod cadence;
pub mod lockout;
pub mod protection;
pub mod random;
pub mod rate;
