//! What the package for JavaScript declares is what there is: the names of events, of kinds of
//! cancels and of capabilities.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use asx_kernel::cancel::Kind;
use asx_kernel::journal::EventKind;
use asx_kernel::quiescence::Census;
use asx_web::Capability;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The names of a union type of the declarations; each is said something about.
fn union(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(file("../web-js/pkg/asx.d.ts")).unwrap();
    let begin = text.find(&format!("export type {name} =")).unwrap_or_else(|| panic!("no {name}"));
    let body = text[begin..].split("\";\n").next().unwrap();
    let names = body.lines().filter_map(|line| line.trim().strip_prefix("| \""));
    names.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_event_of_the_journal_is_declared() {
    assert_eq!(union("JournalEventName"), set(EventKind::NAMES_WITHOUT_SOCKETS.iter().copied()));
}

#[test]
fn every_host_event_is_declared() {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(file("src")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let told = text.split("tell(\"").skip(1);
        names.extend(told.map(|rest| rest.split('"').next().unwrap().to_owned()));
    }
    assert!(names.contains("scheduler_trapped"), "{names:?}");
    assert_eq!(union("HostEventName"), names);
}

#[test]
fn every_code_of_the_quiescence_check_is_declared() {
    let one = Census { tasks: 1, obligations: 1, regions: 1, timers: 1, channels: 1 };
    let all = one.check().unwrap_err().all();
    assert_eq!(union("QuiescenceCode"), set(all.iter().map(|code| code.name())));
}

#[test]
fn every_kind_of_cancel_and_every_capability_is_declared() {
    assert_eq!(union("CancelKind"), set(Kind::ALL.map(Kind::name)));
    assert_eq!(union("CapabilityName"), set(Capability::ALL.map(Capability::name)));
}
