//! Programs on the native host, one module per subject.
//!
//! One binary: linking a test takes longer than running it.

mod admission;
mod basic;
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
mod guests;
mod lanes;
mod limits;
mod local;
mod net;
mod pinned;
mod program;
mod stale;
mod start;
mod starvation;
mod stop;
mod supervise;
mod timers;
mod unheeded;
