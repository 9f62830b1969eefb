//! What a customer installs in front of a site: the released files built into this binary, the
//! registry that describes them, and the check of an installation before it goes live.
//! HTTP routes call it; it knows rooms' settings and nothing of requests.

pub mod checkin;
pub mod registry;
pub mod release;
pub mod verify;
