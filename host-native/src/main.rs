//! The queue server binary.

fn main() {}
