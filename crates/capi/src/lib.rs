//! The kernel's world as a C library: explicit, bounded, deterministic.
//!
//! There are no threads and no globals in here. A program creates a runtime from a configuration,
//! spawns tasks (a callback and a context pointer each), and steps the runtime whenever it likes;
//! every law is the kernel's. `include/asx.h` is made from these sources.
//!
//! ```text
//!  C caller -- asx_*(rt, ..) --> export!: pointers, handles, thread (guard) --> Core --> World
//!                 ^                                                              |
//!                 |      effects after the call: drop callbacks, ghost reports   |
//!                 +--------------------------------------------------------------+
//!  asx_step: begin (Core) -> callback, with nothing borrowed -> finish (Core) -> effects -> ..
//!  asx_external_wake: any thread, any signal handler -> mailbox -> drained by asx_step
//! ```
//!
//! `unsafe` beside the declarations is in `guard`, `channel`, `structs`, `handles`, `step`,
//! `effects`, `recover`, `transfer`, `mailbox`, `storage`, `wheel`, `pool` and `memory`; each block
//! cites a numbered rule of its module or of `guard`. Functions are declared with `export!`, which
//! makes the checks.

#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

#[macro_use]
pub mod error;
#[macro_use]
mod guard;

pub mod abi;
mod ahead;
mod arguments;
pub mod channel;
pub mod config;
pub mod cx;
mod effects;
pub mod ghost;
mod handles;
mod holdings;
mod info;
pub mod journal;
pub mod last_error;
mod mailbox;
pub mod memory;
pub mod obligation;
mod pool;
pub mod recover;
pub mod region;
pub mod replay;
pub mod runtime;
mod state;
pub mod status;
mod step;
pub mod storage;
mod store;
mod structs;
mod sync;
pub mod task;
pub mod timer;
pub mod transfer;
pub mod wheel;
pub mod witness;
mod words;

pub use abi::*;
