//! The table of forbidden behaviour names a test for each rule on each host.

use asx_conformance::{C, Host, Model, Native, corpus, expressible, parse_str};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Chapter 14 of the contract: the first and the last id of each group.
const IDS: [(u32, u32); 4] = [(1, 15), (100, 104), (200, 203), (300, 304)];

/// The columns of the table behind the id, the behaviour and its enforcement.
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

/// What is wrong with a test that a row names.
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

/// The cells of the row of an id.
fn row(table: &str, id: &str) -> Result<Vec<String>, String> {
    let start = format!("| {id} |");
    let mut rows = table.lines().filter(|line| line.starts_with(&start));
    let row = rows.next().ok_or("there is no row")?;
    let cells = row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned());
    let cells: Vec<_> = cells.collect();
    match (rows.next(), cells.len()) {
        (Some(_), _) => Err("there are two rows".to_owned()),
        (None, len) if len != 3 + HOSTS.len() => Err(format!("{len} cells")),
        _ => Ok(cells),
    }
}

/// What is wrong with the table.
fn faults(table: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for number in IDS.into_iter().flat_map(|(first, last)| first..=last) {
        let id = format!("FB-{number:03}");
        let cells = match row(table, &id) {
            Ok(cells) => cells,
            Err(why) => {
                faults.push(format!("{id}: {why}"));
                continue;
            }
        };
        if cells[1].is_empty() || cells[2].is_empty() {
            faults.push(format!("{id}: no behaviour or enforcement"));
        }
        for (on, cell) in HOSTS.iter().zip(&cells[3..]) {
            let tests: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
            if tests.is_empty() {
                faults.push(format!("{id}: no test on {on}"));
            }
            let wrong = tests.iter().filter_map(|test| fault(&id, on, test));
            faults.extend(wrong.map(|why| format!("{id}: {why}")));
        }
    }
    faults
}

#[test]
fn every_forbidden_behaviour_has_an_enforcement_and_a_test_on_each_host() {
    let table = read("docs/FORBIDDEN.md").expect("the table");
    assert_eq!(faults(&table), Vec::<String>::new());
}

#[test]
fn a_gap_in_the_table_of_forbidden_behaviour_is_found() {
    let table = read("docs/FORBIDDEN.md").expect("the table");
    let others = table.lines().filter(|line| !line.starts_with("| FB-104"));
    let without: String = others.map(|line| format!("{line}\n")).collect();
    assert!(faults(&without).contains(&"FB-104: there is no row".to_owned()));
    for (from, to, found) in [
        ("`limit-ready-queue` | `limit-ready", "- | `limit-ready", "FB-100: no test on model"),
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
        let faults = faults(&table.replacen(from, to, 1));
        assert!(faults.iter().any(|fault| fault.starts_with(found)), "{found}: {faults:?}");
    }
}
