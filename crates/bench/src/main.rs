//! Side-by-side benchmarks: every figure is a ratio to a peer measured in the same run.

mod channel;
mod harness;
mod lanes;
mod wheel;

fn main() {}
