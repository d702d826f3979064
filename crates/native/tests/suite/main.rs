//! Programs on the native host, one module per subject.
//!
//! One binary: linking a test takes longer than running it.

mod admission;
mod blocking;
mod budget;
mod cleanup;
mod common;
mod contexts;
mod coop;
mod deep;
mod fairness;
mod finalizers;
mod governor;
mod lanes;
mod limits;
mod local;
mod pinned;
mod program;
mod stale;
mod start;
mod starvation;
mod supervise;
mod unheeded;
