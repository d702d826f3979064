//! Sockets on the native host, one module per subject.
//!
//! One binary: linking a test takes longer than running it.

mod adapters;
mod buffers;
mod cancel;
#[path = "../common/mod.rs"]
mod common;
mod frames;
mod lookup;
mod record;
mod urgent;
