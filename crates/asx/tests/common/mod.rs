//! Helpers for tests of programs.

#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Mutex;

use asx::Runtime;
use asx::prelude::*;

/// Runs a test on one worker and on two.
pub(crate) fn on_each(test: impl Fn(&Runtime)) {
    for workers in [1, 2] {
        test(&Runtime::builder().workers(workers).build().unwrap());
    }
}

/// A log of events in their order.
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

/// Waits for a cancel, cleans up for some polls, and logs the reason.
pub(crate) async fn until_cancelled(cx: &Cx, log: &Log, who: &str) -> Cancelled {
    let cancelled = cx.cancelled().await;
    for _ in 0..3 {
        cx.yield_now().await;
    }
    log.add(format!("{who} {:?}", cancelled.kind()));
    cancelled
}

/// Returns a generator of random numbers below a bound, from a seed.
pub(crate) fn draws(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |count| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % count
    }
}

/// Returns the outcomes that a search has seen, and whether it has seen all.
#[cfg(feature = "lab")]
pub(crate) fn outcomes<P: Clone + std::fmt::Debug, O: Ord>(
    program: &P,
    run: impl AsyncFn(Cx, P) -> O,
    how: asx::lab::How,
    runs: u64,
) -> (std::collections::BTreeSet<O>, bool) {
    let seen = Mutex::new(std::collections::BTreeSet::new());
    let report = asx::lab::check(async |cx: Cx| {
        let outcome = run(cx, program.clone()).await;
        seen.lock().unwrap().insert(outcome);
    })
    .how(how)
    .grain(asx::lab::Grain::Operation)
    .runs(runs)
    // The search must be complete, however busy the machine is.
    .time(std::time::Duration::from_secs(600))
    .run();
    assert!(report.failure.is_none(), "{program:?}: {report}");
    (seen.into_inner().unwrap(), report.proof.is_some() || report.nothing_shared)
}
