//! What the tests of programs share.

#![allow(dead_code, reason = "not all tests use all of it")]

use std::sync::Mutex;

use asx::Runtime;
use asx::prelude::*;

/// On one worker and on two.
pub(crate) fn on_each(test: impl Fn(&Runtime)) {
    for workers in [1, 2] {
        test(&Runtime::builder().workers(workers).build().unwrap());
    }
}

/// What happened, in order.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<String>>);

impl Log {
    pub(crate) fn add(&self, what: impl ToString) {
        self.0.lock().unwrap().push(what.to_string());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Waits to be cancelled, cleans up for some polls, and logs why.
pub(crate) async fn until_cancelled(cx: &Cx, log: &Log, who: &str) -> Cancelled {
    let cancelled = cx.cancelled().await;
    for _ in 0..3 {
        cx.yield_now().await;
    }
    log.add(format!("{who} {:?}", cancelled.kind()));
    cancelled
}
