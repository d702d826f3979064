//! The `asx` program.
fn main() {}
