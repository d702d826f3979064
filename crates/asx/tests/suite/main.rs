//! The public API, one module per subject.
//!
//! One binary: linking a test takes longer than running it.

mod abandon;
mod attempts;
mod cleanup;
mod closing;
#[path = "../common/mod.rs"]
mod common;
mod dumps;
mod errors;
mod examples;
mod foreign;
mod group;
mod join;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "net")]
mod net;
mod program;
mod quiescence;
mod race;
#[cfg(all(feature = "lab", feature = "net"))]
mod readme;
mod select;
#[cfg(all(feature = "lab", feature = "stream"))]
mod streams;
