//! Programs that also run on other platforms (`cargo xtask platforms`), under Valgrind and under
//! the thread sanitizer.
//!
//! This is a separate binary because each of these builds it anew, and it is a third of all tests.
//! The other tests are in `suite`.

mod basic;
#[path = "../suite/common/mod.rs"]
mod common;
mod guests;
mod net;
mod stop;
mod timers;
