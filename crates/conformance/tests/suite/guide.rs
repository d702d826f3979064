//! Tests of `docs/SCENARIOS.md`: its examples run, its tables are complete.

use asx_conformance::parse::op_names;
use asx_conformance::scenario::Scenario;
use asx_conformance::{Model, parse_str, run_scenario};
use asx_kernel::journal::EventKind;
use std::sync::Arc;

const GUIDE: &str = include_str!("../../../../docs/SCENARIOS.md");
const HEAD: &str = "schema = 1\nid = \"fragment\"\ntitle = \"t\"\narea = \"a\"\n";

fn examples() -> Vec<String> {
    let blocks = GUIDE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole = |block: &str| match block.starts_with("schema") {
        true => block.to_owned(),
        false => format!("{HEAD}{block}"),
    };
    blocks.map(whole).collect()
}

fn read(text: &str) -> Scenario {
    parse_str("SCENARIOS.md", text).unwrap_or_else(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", errors.join("\n"))
    })
}

#[test]
fn every_example_runs_as_it_says() {
    let examples = examples();
    assert!(examples.len() >= 6);
    for text in examples {
        let mut scenario = read(&text);
        // The fingerprint of the second example is a placeholder.
        scenario.expect.fingerprints.clear();
        let report = run_scenario(&mut Model::new(), &Arc::new(scenario));
        let failures: Vec<_> = report.runs.iter().flat_map(|run| &run.failures).collect();
        assert!(failures.is_empty(), "{failures:#?}\n{text}");
    }
}

#[test]
fn every_op_and_every_event_kind_is_in_the_guide() {
    // Scenarios have no sockets.
    for name in op_names().chain(EventKind::NAMES_WITHOUT_SOCKETS.iter().copied()) {
        assert!(GUIDE.contains(&format!("`{name}`")), "`{name}` is not in the guide");
    }
}
