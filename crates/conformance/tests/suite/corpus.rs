//! Every fixture passes on the model under every seed, and says the same twice.

use asx_conformance::{Model, Report, Scenario, corpus, parse_str, run_scenario};
use std::collections::BTreeSet;
use std::sync::Arc;

fn scenarios() -> Vec<(String, Arc<Scenario>)> {
    let read = |fixture: asx_conformance::Fixture| {
        let scenario = parse_str(&fixture.file, &fixture.text).unwrap_or_else(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            panic!("{}", errors.join("\n"))
        });
        (fixture.stem().to_owned(), Arc::new(scenario))
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
fn every_fixture_passes_on_the_model_and_twice_the_same() {
    let mut model = Model::new();
    let mut wrong = Vec::new();
    for (_, scenario) in scenarios() {
        let first = run_scenario(&mut model, &scenario);
        let second = run_scenario(&mut model, &scenario);
        assert_eq!(first.runs.len(), scenario.seeds.len());
        wrong.extend(failures(&first));
        for (a, b) in first.runs.iter().zip(&second.runs) {
            assert_eq!((a.fingerprint, &a.journal), (b.fingerprint, &b.journal), "{}", a.repro);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fixture_has_its_own_id_its_files_name_and_a_fingerprint() {
    let mut ids = BTreeSet::new();
    for (stem, scenario) in scenarios() {
        assert_eq!(stem, scenario.id);
        assert!(ids.insert(stem), "{} is there twice", scenario.id);
        assert!(!scenario.expect.fingerprints.is_empty(), "{} has no fingerprint", scenario.id);
    }
    assert!(!ids.is_empty());
}
