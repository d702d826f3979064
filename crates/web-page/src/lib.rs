//! What the demo page and the tests in browsers call: fixtures, measurements, a show.
//!
//! Only for WebAssembly; `cargo xtask web` builds it.

#![cfg(target_arch = "wasm32")]

pub mod demo;
pub mod fixtures;
pub mod programs;
mod trace;
pub mod work;
