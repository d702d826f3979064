//! The corpus with the settings that programs get by default: workers on the fast path with the
//! default governor, pages that read the clock every 32 steps, with events and without.

use asx_conformance::scenario::Op;
use asx_conformance::{Host, Model, Native, Report, Scenario, corpus, parse_str, run_scenario};
use std::sync::Arc;

fn scenarios() -> impl Iterator<Item = Arc<Scenario>> {
    corpus().into_iter().map(|fixture| {
        let scenario = parse_str(&fixture.file, &fixture.text);
        Arc::new(scenario.unwrap_or_else(|errors| panic!("{}: {errors:?}", fixture.file)))
    })
}

fn failures(report: &Report) -> Vec<String> {
    let of_run = |run: &asx_conformance::SeedRun| {
        let repro = run.repro.clone();
        let show = move |f: &asx_conformance::Failure| format!("line {}: {f} ({repro})", f.line);
        run.failures.iter().map(show).collect::<Vec<_>>()
    };
    report.runs.iter().flat_map(of_run).collect()
}

/// Whether a task is a finalizer: it has no handle that tells how it ended.
fn is_finalizer(scenario: &Scenario, task: &str) -> bool {
    scenario.any_step(|step| match &step.op {
        Op::Defer { name, .. } | Op::Finalizer { name, .. } => &**name == task,
        _ => false,
    })
}

/// Runs the corpus: how many fixtures were run, and which of them in another order.
fn run_all(host: &mut Native) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    let mut other_order = Vec::new();
    let mut passed = 0;
    for scenario in scenarios() {
        let report = run_scenario(host, &scenario);
        wrong.extend(failures(&report));
        passed += usize::from(report.skipped.is_none());
        if report.runs.iter().any(|run| run.other_order) {
            other_order.push(report.id);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    (passed, other_order)
}

#[test]
fn every_fixture_passes_with_the_default_governor() {
    let (passed, other_order) = run_all(&mut Native::with_default_governor());
    assert_eq!(passed, 273);
    // Pinned: in these a crowd of cancels makes the governor double their streak.
    assert_eq!(other_order, ["parity-cancel-pressure", "sc-cancel-streak-001"]);
}

#[test]
fn every_fixture_passes_in_a_page_with_the_default_clock_interval() {
    let (passed, other_order) = run_all(&mut Native::in_default_page());
    assert_eq!((passed, other_order), (274, Vec::new()));
}

#[test]
fn every_fixture_passes_in_a_page_without_events() {
    let mut page = Native::in_silent_page();
    let (passed, other_order) = run_all(&mut page);
    assert_eq!((passed, other_order), (273, Vec::new()));
    // Nothing was recorded, and all named tasks ended as on the model.
    let mut model = Model::new();
    let mut compared = 0;
    for scenario in scenarios() {
        let ours = run_scenario(&mut page, &scenario);
        let theirs = run_scenario(&mut model, &ours.ran);
        for (own, other) in ours.runs.iter().zip(&theirs.runs) {
            assert!(own.journal.is_empty(), "{}", own.repro);
            assert_eq!(own.record.not_quiescent, other.record.not_quiescent, "{}", own.repro);
            let outcomes = own.record.outcomes.iter();
            let outcomes = outcomes.filter(|(task, _)| !is_finalizer(&ours.ran, task));
            for (task, outcome) in outcomes {
                assert_eq!(Some(outcome), other.record.outcomes.get(task), "{task}: {}", own.repro);
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn events_of_a_page_with_the_default_clock_interval_are_the_models() {
    let mut page = Native::in_default_page();
    let mut model = Model::new();
    let mut compared = 0;
    for scenario in scenarios() {
        let ours = run_scenario(&mut page, &scenario);
        let theirs = run_scenario(&mut model, &ours.ran);
        for (own, other) in ours.runs.iter().zip(&theirs.runs) {
            assert_eq!(own.journal, other.journal, "{}", own.repro);
            if scenario.config.browser.is_some() {
                // The model has no host timer to set, so none is denied.
                let kept = |line: &&String| !line.contains(" capability=timer ");
                let [own_events, others] = [own, other]
                    .map(|run| run.host_events.iter().filter(kept).cloned().collect::<Vec<_>>());
                assert_eq!(own_events, others, "{}", own.repro);
                compared += own_events.len();
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn hosts_with_defaults_have_names_of_their_own() {
    let names = [
        Native::with_default_governor().name(),
        Native::in_default_page().name(),
        Native::in_silent_page().name(),
    ];
    assert_eq!(names, ["native-defaults", "web-defaults", "web-silent"]);
}
