//! What tests of programs share.
#![allow(dead_code, unreachable_pub)]

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

/// Runs a test on runtimes of several sizes.
pub fn on_each(test: impl Fn(&Runtime)) {
    for workers in [1, 2, 4] {
        test(&Runtime::builder().workers(workers).build().unwrap());
    }
}
