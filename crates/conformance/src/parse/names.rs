//! Every name that is used is made somewhere; tasks, regions and channels are made once.

use super::reading::{Mention, Reading};
use super::suggest;
use crate::events::Named;
use crate::pattern::{Pattern, named};
use crate::scenario::{Name, Scenario};
use asx_kernel::journal::EventKind;
use asx_trace::SCHEDULER_KINDS;
use std::collections::{BTreeMap, BTreeSet};

/// Event kinds only hosts have.
const HOST_KINDS: [&str; SCHEDULER_KINDS.len()] = {
    let mut names = [""; SCHEDULER_KINDS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = SCHEDULER_KINDS[at].name;
        at += 1;
    }
    names
};

pub(super) fn check(reading: &Reading, scenario: &Scenario) {
    let made = reading.made.take();
    let mut known: BTreeSet<(Named, Name)> = BTreeSet::from([(Named::Region, "root".into())]);
    let mut first: BTreeMap<(Named, Name), usize> = BTreeMap::new();
    for Mention { kind, name, line, key } in made {
        let once = matches!(kind, Named::Task | Named::Region | Named::Channel);
        let earlier = first.get(&(kind, name.clone())).copied();
        if let (true, Some(earlier)) = (once, earlier) {
            let word = kind.word();
            let what = format!("the {word} `{name}` is made twice (first in line {earlier})");
            reading.error(line, key, what);
        }
        first.entry((kind, name.clone())).or_insert(line);
        if kind == Named::Region && &*name == "root" {
            reading.error(line, key, "`root` is the root region: expected another name");
        }
        known.insert((kind, name));
    }
    known.extend(scenario.tasks.keys().map(|name| (Named::Definition, name.clone())));
    for Mention { kind, name, line, key } in reading.used.take() {
        look_up(reading, &known, scenario, (kind, &name, line, key));
    }
    let expect = &scenario.expect;
    for pattern in expect.events.iter().chain(&expect.never) {
        check_pattern(reading, &known, pattern, EventKind::NAMES_WITHOUT_SOCKETS);
    }
    for pattern in expect.host_events.iter().chain(&expect.host_never) {
        check_pattern(reading, &known, pattern, &HOST_KINDS);
    }
    let tasks = expect.orders.iter().flatten().map(|name| (expect.line, name, "order"));
    let outcomes = expect.outcomes.iter().map(|(line, name, _)| (*line, name, "outcomes"));
    for (line, name, key) in tasks.chain(outcomes) {
        look_up(reading, &known, scenario, (Named::Task, name, line, key));
    }
}

type Known = BTreeSet<(Named, Name)>;

fn look_up(
    reading: &Reading,
    known: &Known,
    scenario: &Scenario,
    (kind, name, line, key): (Named, &Name, usize, &str),
) {
    if let Some(group) = name.strip_suffix('*') {
        if !scenario.groups.contains_key(group) {
            let near = suggest::near(group, scenario.groups.keys().map(|name| &**name));
            reading.error(line, key, format!("there is no group `{group}` made by `count`{near}"));
        }
        return;
    }
    if !is_known(known, kind, name) {
        unknown(reading, known, kind, name, (line, key));
    }
}

/// A body's own things may be named with their task in front.
fn is_known(known: &Known, kind: Named, name: &str) -> bool {
    let has = |name: &str| known.contains(&(kind, Name::from(name)));
    let own = matches!(kind, Named::Permit | Named::Obligation | Named::Timer);
    has(name) || own && name.rsplit_once('.').is_some_and(|(_, own)| has(own))
}

fn unknown(reading: &Reading, known: &Known, kind: Named, name: &str, (line, key): (usize, &str)) {
    if reading.is_doubtful(name) {
        return;
    }
    let same = known.iter().filter(|(other, _)| *other == kind);
    let near = suggest::near(name, same.map(|(_, name)| &**name));
    let word = kind.word();
    reading.error(line, key, format!("there is no {word} `{name}` in this file{near}"));
}

fn check_pattern(reading: &Reading, known: &Known, pattern: &Pattern, kinds: &[&str]) {
    let kind = &pattern.kind;
    if kind != "*" && !kinds.iter().any(|name| name.eq_ignore_ascii_case(kind)) {
        let near = suggest::near(kind, kinds.iter().copied());
        reading.error(pattern.line, kind, format!("there is no event kind `{kind}`{near}"));
    }
    for (key, value) in &pattern.words {
        let literal = value.parse::<u64>().is_ok() || value.eq_ignore_ascii_case("null");
        if let (Some(kind), false) = (named(key), literal)
            && !is_known(known, kind, value)
        {
            unknown(reading, known, kind, value, (pattern.line, key));
        }
    }
}
