//! Traces: codecs, verification, replay.
//!
//! One binary: linking a test takes longer than running it.

mod codecs;
mod common;
mod guide;
mod monitor;
mod sockets;
mod tamper;
