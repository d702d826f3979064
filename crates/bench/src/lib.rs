//! What the benchmark programs share: how cases are measured, compared and chosen.

pub mod harness;
pub mod options;
