//! Subcommands of the binary that are not serving: they read the same settings, report on standard
//! error and end with an exit code.

pub mod journal;
