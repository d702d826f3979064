//! The native runtime, stepped, says of every fixture what the model says.

use asx_conformance::{Model, Native, Report, Scenario, corpus, parse_str, run_scenario};
use std::collections::BTreeMap;
use std::sync::Arc;

fn scenarios() -> Vec<Arc<Scenario>> {
    let read = |fixture: asx_conformance::Fixture| {
        let scenario = parse_str(&fixture.file, &fixture.text);
        Arc::new(scenario.unwrap_or_else(|errors| panic!("{}: {errors:?}", fixture.file)))
    };
    corpus().into_iter().map(read).collect()
}

fn failures(report: &Report) -> Vec<String> {
    let of_run = |run: &asx_conformance::SeedRun| {
        let repro = run.repro.clone();
        let show = move |f: &asx_conformance::Failure| format!("line {}: {f} ({repro})", f.line);
        run.failures.iter().map(show).collect::<Vec<_>>()
    };
    report.runs.iter().flat_map(of_run).collect()
}

#[test]
fn every_fixture_the_runtime_can_express_passes_on_workers_of_threads() {
    every_fixture_passes(Native::new(), 273);
}

#[test]
fn every_fixture_the_runtime_can_express_passes_on_workers_of_the_lab() {
    every_fixture_passes(Native::in_lab(), 273);
}

fn every_fixture_passes(mut native: Native, count: usize) {
    let mut wrong = Vec::new();
    let mut passed = 0;
    let mut skipped = BTreeMap::<String, usize>::new();
    let mut in_part = [0; 2];
    for scenario in scenarios() {
        let report = run_scenario(&mut native, &scenario);
        in_part[0] += usize::from(!report.skipped_lines.is_empty());
        in_part[1] += report.skipped_lines.len();
        match &report.skipped {
            Some(why) => *skipped.entry(why.clone()).or_default() += 1,
            None => passed += 1,
        }
        wrong.extend(failures(&report));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Pinned, so that neither number can shrink or grow unnoticed.
    let skipped: Vec<_> = skipped.iter().map(|(why, count)| (why.as_str(), *count)).collect();
    let expected = vec![
        ("a handle keeps what it names: there is nothing to release", 1),
        ("it is about the browser's event loop", 9),
        ("regions own no storage: what tasks hold is theirs", 2),
    ];
    assert_eq!((passed, skipped), (count, expected));
    assert_eq!(in_part, [25, 82], "fixtures that are run in part, and their skipped lines");
}

#[test]
fn every_journal_of_the_runtime_is_equal_to_the_models_line_by_line() {
    let mut native = Native::new();
    let mut lab = Native::in_lab();
    let mut model = Model::new();
    for scenario in scenarios() {
        for host in [&mut native, &mut lab] {
            let ours = run_scenario(host, &scenario);
            if ours.skipped.is_some() {
                continue;
            }
            let theirs = run_scenario(&mut model, &ours.ran);
            for (own, other) in ours.runs.iter().zip(&theirs.runs) {
                assert_eq!(own.journal, other.journal, "{}", own.repro);
            }
        }
    }
}
