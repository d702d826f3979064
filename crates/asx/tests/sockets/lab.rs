//! The suite in the lab, over the simulated network: every case under many schedules.

use asx::lab::{How, check};
use asx::prelude::*;

use crate::{Case, Exception, cases_of, check_exceptions};

/// Cases that do not hold in the lab, and the reasons.
const EXCEPTIONS: &[Exception] = &[];

/// The number of random schedules of each case, in which any runnable task may be next.
const RANDOM: u64 = 200;
/// The number of random schedules of two virtual workers.
const OF_WORKERS: u64 = 50;
/// The number of schedules of a case in a search for one of each class.
const CLASSES: u64 = 500;
/// The limit of polls in a run: bytes of a large transfer come in many pieces.
const STEPS: u64 = 200_000;

/// Runs a group under random schedules, then under one of each class if these are few. Reports
/// every case that fails.
fn run(group: &str) {
    let mut failures = Vec::new();
    let mut proved = 0;
    let mut cases = 0;
    for case in cases_of(group, EXCEPTIONS) {
        cases += 1;
        match look_at(case) {
            Ok(is_proved) => proved += u64::from(is_proved),
            Err(failure) => failures.push(format!("{}: {failure}", case.name)),
        }
    }
    println!("{group}: {cases} cases, {proved} of them under all classes of schedules");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Returns whether all classes of schedules were run, or the failure in one.
fn look_at(case: &Case) -> Result<bool, String> {
    let run = case.run;
    let program = || check(move |cx: Cx| async move { run(&cx).await });
    let program = || program().name(case.name).steps(STEPS);
    for report in [
        program().how(How::Random).runs(RANDOM).run(),
        program().how(How::Random).workers(2).runs(OF_WORKERS).run(),
    ] {
        if report.failure.is_some() {
            return Err(format!("the rule: {}\n{report}", case.rule));
        }
    }
    let report = program().how(How::Mixed).runs(CLASSES).run();
    match report.failure {
        None => Ok(report.proof.is_some()),
        Some(_) => Err(format!("the rule: {}\n{report}", case.rule)),
    }
}

#[test]
fn exceptions_are_about_cases() {
    check_exceptions(EXCEPTIONS);
}

group_tests!();
