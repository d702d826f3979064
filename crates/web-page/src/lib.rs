//! What the demo page and the tests in browsers call: programs, measurements, a show.
//!
//! Only for WebAssembly; `cargo xtask web` builds it.

#![cfg(target_arch = "wasm32")]

pub mod demo;
pub mod programs;
mod trace;
pub mod work;
