//! A host that cannot express a line skips it, names it, and runs the rest.

use asx_conformance::{
    C, Expressible, Host, Model, Native, Report, corpus, expressible, parse_str, run_scenario,
    without_ops,
};
use asx_kernel::journal::EventKind;
use asx_kernel::obligation::ObligationState;
use std::sync::Arc;

fn run(host: &mut dyn Host, text: &str) -> Report {
    let head = "schema = 1\nid = \"x\"\ntitle = \"t\"\narea = \"a\"\n";
    let scenario = parse_str("x.toml", &format!("{head}{text}"));
    run_scenario(host, &Arc::new(scenario.unwrap_or_else(|errors| panic!("{errors:?}"))))
}

/// The skipped lines: where, and why.
fn lines(report: &Report) -> Vec<(usize, &str)> {
    report.skipped_lines.iter().map(|skipped| (skipped.line, &*skipped.why)).collect()
}

fn failures(report: &Report) -> Vec<String> {
    let all = report.runs.iter().flat_map(|run| &run.failures);
    all.map(|failure| format!("line {}: {failure}", failure.line)).collect()
}

const SLOTS: &str = "a handle keeps what it names: there is nothing to release";
const STORAGE: &str = "regions own no storage: what tasks hold is theirs";
const STALE: &str = "a handle keeps what it names: none goes stale";
const DEPENDS: &str = "it depends on a skipped line";

#[test]
fn a_line_the_host_cannot_express_is_skipped_and_the_rest_is_run() {
    let text = r#"
steps = [
  { op = "open", as = "r" },
  { op = "end", region = "r" },
  { op = "release", region = "r" },
  { op = "check", region = "r", expect = "STALE_HANDLE" },
  { op = "check", region = "root", state = "Open" },
]
"#;
    for mut host in [Native::new(), Native::in_lab(), Native::in_page()] {
        let report = run(&mut host, text);
        assert_eq!(lines(&report), [(9, SLOTS), (10, STALE)]);
        assert_eq!((report.skipped.clone(), failures(&report)), (None, Vec::new()));
        assert_eq!(report.ran.steps.len(), 3);
    }
    assert_eq!(lines(&run(&mut Model::new(), text)), []);
}

#[test]
fn a_wrong_line_fails_although_another_line_is_skipped() {
    let text = r#"
steps = [
  { op = "storage", region = "root" },
  { op = "check", region = "root", state = "Closed" },
]
[expect]
quiescent = true
"#;
    let report = run(&mut Native::new(), text);
    assert_eq!(lines(&report), [(7, STORAGE)]);
    let failures = failures(&report);
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(failures[0].starts_with("line 8: op \"check\": state: expected Closed, got Open"));
    assert!(failures[1].starts_with("line 10: quiescent"), "{failures:?}");
}

#[test]
fn lines_that_hold_only_together_with_a_skipped_line_are_skipped_and_named() {
    // Without the storage there is room for the region, whose event is then there.
    let text = r#"
steps = [
  { op = "storage", region = "root", bytes = 100 },
  { op = "open", as = "r", expect = "RESOURCE_EXHAUSTED" },
  { op = "check", region = "root", state = "Open", children = 0 },
]
[config]
limits.memory = 600
[expect]
events = ["resource_exhausted what=memory"]
fingerprint = "0000000000000000"
"#;
    let report = run(&mut Native::new(), text);
    assert_eq!(
        lines(&report),
        [(7, STORAGE), (8, DEPENDS), (14, DEPENDS)],
        "{:?}",
        failures(&report)
    );
    assert_eq!(report.skipped_lines[2].what, "events `resource_exhausted what=memory`");
    assert_eq!(report.skipped_lines[2].offset, None);
    assert_eq!(failures(&report), Vec::<String>::new());
}

#[test]
fn lines_that_name_what_a_skipped_line_would_make_are_skipped_and_named() {
    let text = r#"
setup = [
  { op = "spawn", task = "t", as = "a", pinned = true },
  { op = "spawn", task = "t", as = "g", count = 2, pinned = true },
  { op = "spawn", task = "t", as = "b" },
]
steps = [
  { op = "wake", task = "a" },
  { op = "cancel", task = "g*" },
  { op = "arm", timer = "x", after = 5, wakes = "a" },
  { op = "check", timer = "x", active = true },
  { op = "run" },
  { op = "check", task = "b", outcome = "Ok" },
]
[tasks.t]
body = []
[expect]
outcomes = { a = "Ok", b = "Ok" }
"#;
    let report = run(&mut C::new(), text);
    let pinned = "tasks are not pinned: there is one thread";
    let needs = |what: &str| format!("it needs the {what}, which a skipped line makes");
    let [a, g, x] = ["task `a`", "task `g*`", "timer `x`"].map(needs);
    assert_eq!(
        lines(&report),
        [(7, pinned), (8, pinned), (12, &a), (13, &g), (14, &a), (15, &x), (22, DEPENDS)]
    );
    assert_eq!(failures(&report), Vec::<String>::new());
}

#[test]
fn a_file_is_skipped_only_if_it_says_that_it_needs_what_the_host_has_not() {
    let report = run(&mut Native::new(), "needs = [\"storage\"]\n");
    assert_eq!(report.skipped.as_deref(), Some(STORAGE));
    let report = run(&mut Native::new(), "needs = [\"slots\"]\n");
    assert_eq!(report.skipped.as_deref(), Some(SLOTS));
    assert_eq!(run(&mut C::new(), "needs = [\"slots\", \"storage\"]\n").skipped, None);
    let errors = parse_str("x.toml", "schema = 1\nneeds = [\"wings\"]\n").unwrap_err();
    assert!(errors.iter().any(|error| error.to_string().contains("x.toml:2: needs")), "{errors:?}");
}

#[test]
fn ops_are_left_out_by_their_place_in_the_file() {
    let text = "schema = 1\nid = \"x\"\ntitle = \"t\"\narea = \"a\"\n\
                steps = [{ op = \"repeat\", times = 2, body = [{ op = \"fire\" }, \
                { op = \"advance\", by = 1 }] }, { op = \"fire\" }]\n";
    let scenario = parse_str("x.toml", text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut offsets = Vec::new();
    scenario.visit(&mut |step| {
        if step.name == "fire" {
            offsets.push(step.offset);
        }
    });
    assert_eq!(offsets.len(), 2);
    assert!(text[offsets[0]..].starts_with("{ op = \"fire\" }"));
    let mut left = Vec::new();
    without_ops(&scenario, &offsets).visit(&mut |step| left.push(step.name));
    assert_eq!(left, ["repeat", "advance"]);
}

#[test]
fn fixtures_of_leaks_and_closed_regions_run_on_hosts_of_rust() {
    let fixture = |id: &str| {
        let fixture = corpus().into_iter().find(|fixture| fixture.stem() == id).expect("built in");
        Arc::new(parse_str(&fixture.file, &fixture.text).expect("a scenario"))
    };
    for mut host in [Native::new(), Native::in_lab(), Native::in_page()] {
        let name = host.name();
        // FB-003 to FB-006: of permits the second resolution is forbidden by types.
        let report = run_scenario(&mut host, &fixture("ch-obligation-leak-001"));
        assert_eq!((report.skipped.clone(), report.skipped_lines.len()), (None, 2), "{name}");
        let leaks = report.runs[0].record.events.iter().filter(|event| {
            let leaked = ObligationState::Leaked;
            matches!(event.kind, EventKind::ObligationResolved { to, .. } if to == leaked)
        });
        assert_eq!(leaks.count(), 2, "{name}");
        // FB-002: an obligation is refused by a region that is not Open.
        let Expressible { scenario, skipped } =
            expressible(&host, &fixture("obligation-lifecycle-010")).expect("in part");
        assert_eq!(skipped.len(), 2, "{name}: {skipped:?}");
        let mut refused = 0;
        scenario.visit(&mut |step| {
            let is_refused = step.expect.is_some_and(|status| status.name() == "REGION_NOT_OPEN");
            refused += usize::from(step.name == "oblige" && is_refused);
        });
        assert!(refused >= 3, "{name}: {refused}");
    }
}
