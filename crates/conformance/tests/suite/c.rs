//! The C library says of every fixture what the model says, event by event.

use asx_conformance::{C, Model, Scenario, corpus, parse_str, run_scenario};
use std::collections::BTreeMap;
use std::sync::Arc;

fn scenarios() -> Vec<Arc<Scenario>> {
    let read = |fixture: asx_conformance::Fixture| {
        let scenario = parse_str(&fixture.file, &fixture.text);
        Arc::new(scenario.unwrap_or_else(|errors| panic!("{}: {errors:?}", fixture.file)))
    };
    corpus().into_iter().map(read).collect()
}

#[test]
fn every_fixture_the_library_can_express_is_the_models() {
    is_the_models("c");
}

#[test]
fn the_embedded_profile_runs_the_same_corpus() {
    is_the_models("c-embedded");
}

#[test]
fn the_hft_profile_runs_the_same_corpus() {
    is_the_models("c-hft");
}

#[test]
fn the_automotive_profile_runs_the_same_corpus() {
    is_the_models("c-automotive");
}

fn is_the_models(host: &str) {
    let mut c = C::named(host).unwrap();
    let mut model = Model::new();
    let mut passed = 0;
    let mut skipped = BTreeMap::<String, usize>::new();
    let mut wrong = Vec::new();
    for scenario in scenarios() {
        let ours = run_scenario(&mut c, &scenario);
        if let Some(why) = &ours.skipped {
            *skipped.entry(why.clone()).or_default() += 1;
            continue;
        }
        passed += 1;
        let theirs = run_scenario(&mut model, &scenario);
        for (own, other) in ours.runs.iter().zip(&theirs.runs) {
            let failed = |f: &asx_conformance::Failure| format!("{}: {f}", scenario.file);
            wrong.extend(own.failures.iter().map(failed));
            if own.journal != other.journal || own.fingerprint != other.fingerprint {
                wrong.push(format!("{}: another journal", scenario.file));
            }
        }
    }
    assert!(wrong.is_empty(), "{} failures:\n{}", wrong.len(), wrong.join("\n"));
    // Pinned, so that neither number can shrink or grow unnoticed.
    let skipped: Vec<_> = skipped.iter().map(|(why, count)| (why.as_str(), *count)).collect();
    let expected = [
        ("it grants and revokes capabilities: a C runtime has hooks set at creation", 2),
        ("it is about several workers: a C runtime is stepped by its owner", 8),
        ("it is about the browser's event loop", 8),
    ];
    assert_eq!((passed, &skipped[..]), (267, &expected[..]));
}
