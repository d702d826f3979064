//! The suite on threads, over the loopback interface.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use asx::Runtime;
use asx::prelude::*;

use crate::{Case, Exception, cases_of, check_exceptions};

/// None: the behaviour of the loopback interface is the rule.
const EXCEPTIONS: &[Exception] = &[];

/// Runs a group with one, two and four workers. Reports every case that fails.
fn run(group: &str) {
    let mut failures = Vec::new();
    for workers in [1, 2, 4] {
        for case in cases_of(group, EXCEPTIONS) {
            if let Some(failure) = failure(case, workers) {
                failures.push(format!("{} with {workers} workers: {failure}", case.name));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Returns the failure of a case, if any. A case that hangs fails after a while.
fn failure(case: &Case, workers: usize) -> Option<String> {
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        runtime.block_on(async |cx: Cx| {
            cx.timeout(Duration::from_secs(120), |cx: &Cx| (case.run)(cx)).await
        })
    }));
    match ended {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error}; the rule: {}", case.rule)),
        // The message has been printed.
        Err(_) => Some(format!("it panicked; the rule: {}", case.rule)),
    }
}

#[test]
fn exceptions_are_about_cases() {
    check_exceptions(EXCEPTIONS);
}

group_tests!();
