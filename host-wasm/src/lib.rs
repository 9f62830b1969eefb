//! The edge host.
