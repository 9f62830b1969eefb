//! The visitor's routes: a place, its status, its stream, the door, the waiting page.

pub mod check;
pub mod claim;
pub mod events;
pub mod join;
pub mod language;
pub mod leave;
pub mod notify;
pub mod page;
pub mod place;
pub mod session;
pub mod status;
pub mod streams;
pub mod targeting;
