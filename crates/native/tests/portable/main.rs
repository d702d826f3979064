//! Programs that also run on other platforms (`cargo xtask platforms`), under Valgrind and under the
//! thread sanitizer.
//!
//! A separate binary: each of those builds it anew, and it is a third of [`suite`](../suite/main.rs).

mod basic;
#[path = "../suite/common/mod.rs"]
mod common;
mod guests;
mod net;
mod stop;
mod timers;
