//! The queue server.
