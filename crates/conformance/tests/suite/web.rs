//! The runtime in a page, driven by the pump over an event loop that the script turns, says of
//! every fixture what the model says.

use asx_conformance::{Model, Native, Report, Scenario, corpus, parse_str, run_scenario};
use std::collections::{BTreeMap, BTreeSet};
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
fn every_fixture_a_page_can_express_passes_there() {
    let mut web = Native::in_page();
    let mut wrong = Vec::new();
    let mut passed = 0;
    let mut skipped = BTreeMap::<String, usize>::new();
    for scenario in scenarios() {
        let report = run_scenario(&mut web, &scenario);
        match &report.skipped {
            Some(why) => *skipped.entry(why.clone()).or_default() += 1,
            None => passed += 1,
        }
        wrong.extend(failures(&report));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Pinned, so that neither number can shrink or grow unnoticed.
    let skipped: Vec<_> = skipped.iter().map(|(why, count)| (why.as_str(), *count)).collect();
    let expected = [
        ("a handle keeps what it names: there is nothing to release", 1),
        ("a page has one thread", 8),
        ("regions own no storage: what tasks hold is theirs", 2),
    ];
    assert_eq!((passed, &skipped[..]), (274, &expected[..]));
}

/// The scenarios that compare a page with other hosts go through the pump: in each of them drains
/// end early and hand off, so that there are several of them, in several host turns.
#[test]
fn parity_scenarios_take_several_drains_and_host_turns() {
    let mut web = Native::in_page();
    let mut count = 0;
    for scenario in scenarios().into_iter().filter(|it| it.id.starts_with("parity-")) {
        let report = run_scenario(&mut web, &scenario);
        for run in &report.runs {
            let values = |field: &str| {
                let field = format!(" {field}=");
                let value = |line: &String| {
                    let (_, rest) = line.split_once(&field)?;
                    rest.split(' ').next().map(str::to_owned)
                };
                run.host_events.iter().filter_map(value).collect::<BTreeSet<_>>()
            };
            let (turns, batches) = (values("host_turn_id"), values("microtask_batch_id"));
            assert!(turns.len() > 1 && batches.len() > 1, "{}: {turns:?} {batches:?}", run.repro);
            let has = |kind: &str| run.host_events.iter().any(|line| line.starts_with(kind));
            assert!(has("scheduler_burst_limit_reached"), "{}", run.repro);
            assert!(has("scheduler_host_handoff"), "{}", run.repro);
        }
        count += 1;
    }
    assert_eq!(count, 5);
}

#[test]
fn every_journal_of_a_page_is_equal_to_the_models_line_by_line() {
    let mut web = Native::in_page();
    let mut model = Model::new();
    for scenario in scenarios() {
        let ours = run_scenario(&mut web, &scenario);
        if ours.skipped.is_some() {
            continue;
        }
        let theirs = run_scenario(&mut model, &ours.ran);
        for (own, other) in ours.runs.iter().zip(&theirs.runs) {
            assert_eq!(own.journal, other.journal, "{}", own.repro);
            if scenario.config.browser.is_some() {
                // The model has no host timer to set, so none is denied.
                let told = |events: &[String]| -> Vec<String> {
                    let timer = |line: &&String| !line.contains(" capability=timer ");
                    events.iter().filter(timer).cloned().collect()
                };
                assert_eq!(told(&own.host_events), told(&other.host_events), "{}", own.repro);
            }
        }
    }
}
