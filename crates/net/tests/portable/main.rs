//! Socket tests that also run on other platforms (`cargo xtask platforms`).
//!
//! A separate binary, because each platform builds it again. The other tests are in `suite`.

#[path = "../common/mod.rs"]
mod common;
mod fd;
mod serve;
mod tcp;
mod udp;
mod unix;
