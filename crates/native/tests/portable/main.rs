//! Programs that also run on other platforms (`cargo xtask platforms`), under Valgrind and the
//! thread sanitizer.
//!
//! A separate binary: each of those builds it anew, and it is a third of the whole. The rest is in
//! `suite`.

mod basic;
#[path = "../suite/common/mod.rs"]
mod common;
mod guests;
mod net;
mod stop;
mod timers;
