//! Harness.
fn main() {}
