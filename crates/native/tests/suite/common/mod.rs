//! Helpers for tests of programs.
#![allow(dead_code, unreachable_pub)]

pub mod limited;

use asx_native::Runtime;
use asx_runtime::Cancelled;

#[derive(Debug, PartialEq)]
pub enum AppError {
    Cancelled,
    Bad(u32),
}

impl From<Cancelled> for AppError {
    fn from(_: Cancelled) -> Self {
        AppError::Cancelled
    }
}

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Runs a test on runtimes with 1, 2 and 4 workers.
pub fn on_each(test: impl Fn(&Runtime)) {
    for workers in [1, 2, 4] {
        test(&Runtime::builder().workers(workers).build().unwrap());
    }
}

/// Runs a test and fails if it does not end.
pub fn ends(test: impl FnOnce() + Send + 'static) {
    let (done, over) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    // Every test takes much less.
    if over.recv_timeout(std::time::Duration::from_secs(120)).is_err() && !thread.is_finished() {
        panic!("the test does not end");
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
