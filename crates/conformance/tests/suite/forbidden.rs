//! Tests of `docs/FORBIDDEN.md`: it names a test for each rule on each host.

use asx_conformance::{C, Host, Model, Native, corpus, expressible, parse_str};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The first and the last id of each group, from chapter 14 of the contract.
const IDS: [(u32, u32); 4] = [(1, 15), (100, 104), (200, 203), (300, 304)];

/// The hosts of the table.
const HOSTS: [&str; 5] = ["model", "native", "lab", "web", "C"];

fn host(name: &str) -> Box<dyn Host> {
    match name {
        "native" => Box::new(Native::new()),
        "lab" => Box::new(Native::in_lab()),
        "web" => Box::new(Native::in_page()),
        "C" => Box::new(C::new()),
        _ => Box::new(Model::new()),
    }
}

/// The text of a file of the repository.
fn read(path: &str) -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

/// Returns the errors of a test that a row names.
fn fault(id: &str, on: &str, test: &str) -> Option<String> {
    let fixture = corpus().into_iter().find(|fixture| fixture.stem() == test);
    let text = match &fixture {
        Some(fixture) => Ok(fixture.text.clone()),
        None => read(test),
    };
    let text = match text {
        Ok(text) => text,
        Err(why) => return Some(why),
    };
    if !text.contains(id) {
        return Some(format!("{test} does not name the id"));
    }
    let fixture = fixture?;
    let scenario = Arc::new(parse_str(&fixture.file, &fixture.text).expect("a scenario"));
    let why = expressible(&*host(on), &scenario).err()?;
    Some(format!("{test} is not run on {on}: {why}"))
}

/// The cells of each row of an id. A row has three cells.
fn rows<'a>(text: &'a str, id: &str) -> Result<Vec<[&'a str; 3]>, String> {
    let start = format!("| {id} |");
    let cells = |line: &'a str| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let count = cells.len();
        <[&str; 3]>::try_from(cells).map_err(|_| format!("{count} cells"))
    };
    text.lines().filter(|line| line.starts_with(&start)).map(cells).collect()
}

/// The errors of one rule: of its row, and of the rows of its tests.
fn faults_of(id: &str, rules: &str, tests: &str) -> Result<Vec<String>, String> {
    match rows(rules, id)?[..] {
        [[_, behaviour, enforcement]] if !behaviour.is_empty() && !enforcement.is_empty() => {}
        [_] => return Err("no behaviour or enforcement".to_owned()),
        ref found => return Err(format!("{} rows of the rule", found.len())),
    }
    let mut faults = Vec::new();
    let mut tested = Vec::new();
    for [_, test, on] in rows(tests, id)? {
        let on: Vec<&str> = if on == "all" { HOSTS.to_vec() } else { on.split(", ").collect() };
        for host in on {
            let known = HOSTS.contains(&host).then_some(host);
            let known = known.ok_or_else(|| format!("unknown host {host}"))?;
            faults.extend(fault(id, known, test.trim_matches('`')));
            tested.push(known);
        }
    }
    let untested = HOSTS.iter().filter(|host| !tested.contains(*host));
    faults.extend(untested.map(|host| format!("no test on {host}")));
    Ok(faults)
}

/// The errors of the document.
fn faults(document: &str) -> Vec<String> {
    let (rules, tests) = document.split_once("\n## Tests\n").expect("a section of tests");
    let ids = IDS.into_iter().flat_map(|(first, last)| first..=last);
    let ids = ids.map(|number| format!("FB-{number:03}"));
    ids.flat_map(|id| {
        let faults = faults_of(&id, rules, tests).unwrap_or_else(|why| vec![why]);
        faults.into_iter().map(move |why| format!("{id}: {why}"))
    })
    .collect()
}

#[test]
fn every_forbidden_behaviour_has_an_enforcement_and_a_test_on_each_host() {
    let table = read("docs/FORBIDDEN.md").expect("the table");
    assert_eq!(faults(&table), Vec::<String>::new());
}

#[test]
fn errors_in_the_table_of_forbidden_behaviour_are_reported() {
    let table = read("docs/FORBIDDEN.md").expect("the table");
    let without = |start: &str| -> String {
        let rest = table.lines().filter(|line| !line.starts_with(start));
        rest.map(|line| format!("{line}\n")).collect()
    };
    let rules = without("| FB-104 | ");
    assert!(faults(&rules).contains(&"FB-104: 0 rows of the rule".to_owned()));
    let tests = without("| FB-100 | `limit-ready-queue`");
    assert!(faults(&tests).contains(&"FB-100: no test on model".to_owned()));
    for (from, to, found) in [
        ("`limit-ready-queue` | all", "`limit-ready-queue` | C", "FB-100: no test on model"),
        ("`limit-ready-queue` | all", "`limit-ready-queue` | D", "FB-100: unknown host D"),
        ("`limit-ready-queue` | all", "`limit-ready-queue`", "FB-100: 2 cells"),
        ("`limit-ready-queue`", "`limit-tasks`", "FB-100: limit-tasks does not name the id"),
        ("`limit-ready-queue`", "`no/such.rs`", "FB-100: no/such.rs: "),
        (
            "`tm-cancel-stale-001`",
            "`region-slot-lives-until-parent-closes`",
            "FB-010: region-slot-lives-until-parent-closes does not name the id",
        ),
        (
            "`crates/asx/tests/ui/group_borrows_from_body.rs`",
            "`region-lifecycle-008`",
            "FB-014: region-lifecycle-008 is not run on native: ",
        ),
    ] {
        assert!(table.contains(from), "{from}");
        let faults = faults(&table.replacen(from, to, 1));
        assert!(faults.iter().any(|fault| fault.starts_with(found)), "{found}: {faults:?}");
    }
}
