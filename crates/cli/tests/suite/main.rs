//! The `asx` program, one module per command.
//!
//! One binary: linking a test takes longer than running it.

mod folder;
mod parity;
mod program;
mod replay;
mod sockets;
mod trace;
