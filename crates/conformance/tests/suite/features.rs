//! The interpreter's features: scenarios that must pass, and expectations that must be able to
//! fail.

use asx_conformance::corpus::load;
use asx_conformance::{Failure, Model, parse_str, run_scenario};
use std::path::Path;
use std::sync::Arc;

fn run(file: &str, text: &str) -> Vec<Failure> {
    let scenario = parse_str(file, text).unwrap_or_else(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        panic!("{}", errors.join("\n"))
    });
    let report = run_scenario(&mut Model::new(), &Arc::new(scenario));
    report.runs.into_iter().flat_map(|run| run.failures).collect()
}

#[test]
fn every_feature_works() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/features");
    let fixtures = load(&folder).expect("the folder is there");
    assert!(fixtures.len() >= 10);
    for fixture in fixtures {
        let failures = run(&fixture.file, &fixture.text);
        assert!(failures.is_empty(), "{}\n{failures:#?}", fixture.file);
    }
}

/// A run of two tasks with one right expectation of everything.
const RUN: &str = r#"
schema = 1
id = "x"
title = "t"
area = "a"
steps = [
  { op = "spawn", task = "a" },
  { op = "spawn", task = "b" },
  { op = "run", steps = 2 },
]
[tasks.a]
body = [{ op = "is_cancelled", value = false }]
[tasks.b]
body = [{ op = "fail", message = "no" }]
[expect]
order = ["a", "b"]
events = ["task_ended task=a", "task_ended task=b outcome=Err"]
never = ["task_ended outcome=Panicked"]
outcomes = { a = "Ok", b = "Err" }
quiescent = false
replay = true
"#;

/// What is changed in the run, what is then reported, and in which line.
const WRONG: &[(&str, &str, &str, usize)] = &[
    ("steps = 2", "steps = 3", "op \"run\": steps: expected 3, got 2", 9),
    (
        "order = [\"a\", \"b\"]",
        "order = [\"b\", \"a\"]",
        "order of dispatch: expected b, a, got a, b",
        15,
    ),
    ("\"task_ended task=a\",", "", "", 0),
    ("\"task_ended task=a\",", "\"sent\",", "events: expected sent, got no such event", 17),
    (
        "outcome=Err",
        "outcome=Ok",
        "events: expected task_ended task=b outcome=Ok, got no such event after `",
        17,
    ),
    (
        "outcome=Panicked",
        "outcome=Ok",
        "never `task_ended outcome=Ok`: expected no such event, got ",
        18,
    ),
    ("b = \"Err\"", "b = \"Ok\"", "outcome of `b`: expected Ok, got Err", 19),
    (
        "quiescent = false",
        "quiescent = true",
        "quiescent: expected true, got false REGIONS_NOT_CLOSED",
        15,
    ),
    (
        "replay = true",
        "exactly = true",
        "events: expected task_ended task=a, got 0 0ns region_opened",
        17,
    ),
    (
        "replay = true",
        "fingerprint = \"0123456789abcdef\"",
        "fingerprint: expected 0123456789abcdef, got ",
        15,
    ),
    (
        "value = false",
        "value = true",
        "task `a`, op \"is_cancelled\": value: expected true, got false",
        12,
    ),
    (
        "value = false",
        "expect = \"CANCELLED\"",
        "task `a`, op \"is_cancelled\": expected CANCELLED, got OK",
        12,
    ),
    (
        "{ op = \"is_cancelled\", value = false }",
        "{ op = \"end\", region = \"root\", expect = \"FULL\" }",
        "expected FULL, got OK",
        12,
    ),
    ("steps = 2", "expect = \"FULL\"", "op \"run\": expected FULL, got OK", 9),
    (
        "replay = true",
        "host_events = [\"scheduler_step_decision\"]",
        "host_events: expected scheduler_step_decision, got no such host event",
        21,
    ),
];

#[test]
fn each_expectation_can_fail_and_says_where() {
    assert_eq!(run("x", RUN), []);
    for (from, to, expected, line) in WRONG {
        let text = RUN.replacen(from, to, 1);
        assert_ne!(text, RUN);
        let failures = run("x", &text);
        if expected.is_empty() {
            assert_eq!(failures, [], "{to}");
            continue;
        }
        let found = failures.iter().any(|f| f.line == *line && f.to_string().contains(expected));
        assert!(found, "{from} -> {to}\n{failures:#?}");
    }
}

#[test]
fn a_poll_or_a_run_that_does_not_end_is_stopped() {
    let head = "schema = 1\nid = \"x\"\ntitle = \"t\"\narea = \"a\"\n";
    let step =
        "steps = [{ op = \"spawn\", task = \"a\" }, { op = \"run\", max_steps = 10 }]\n[tasks.a]\n";
    let again = "{ op = \"repeat\", times = 100000, body = [BODY] }";
    let nested = again.replace("BODY", &again.replace("BODY", "{ op = \"check\", clock = true }"));
    let failures = run("x", &format!("{head}{step}body = [{nested}]\n"));
    assert!(failures.iter().any(|f| f.got == "a poll that does not end"), "{failures:?}");
    let failures = run("x", &format!("{head}{step}body = [{{ op = \"work\", polls = 11 }}]\n"));
    assert!(
        failures.iter().any(|f| f.got.contains("still running after 10 steps")),
        "{failures:?}"
    );
}
