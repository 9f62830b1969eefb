//! Where the events of a room go before anybody is told of them. This build has the memory log
//! only: it keeps nothing, so what it is given counts as recorded at once (HOL-18).

pub mod memory;
