//! From text to a [`Scenario`], or to everything that is wrong with it.
//!
//! serde reads tables into the types of `scenario` (through `node`, which knows lines and how
//! values may be written); `ops` reads op by op, so that an author sees what is wrong with each of
//! them at once; `names` checks that every name that is used is made. No input panics.

mod expect;
mod names;
mod node;
mod ops;
mod reading;
mod results;
mod span;
pub mod suggest;
pub(crate) mod words;

pub(crate) use ops::made;
pub use ops::op_names;
pub use reading::SchemaError;
pub(crate) use span::span;

use crate::scenario::{Definition, Expect, Name, Scenario, Settings, expand};
use crate::snapshot;
use node::Node;
use ops::{Where, read_ops};
use reading::Reading;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// The version of the format.
pub const SCHEMA: u64 = 1;

/// The keys of a scenario.
const KEYS: &[&str] = &[
    "schema", "id", "title", "area", "sources", "seeds", "needs", "config", "tasks", "expect",
    "setup", "steps", "scenario",
];

/// Reads a scenario. `file` is for messages.
pub fn parse_str(file: &str, text: &str) -> Result<Scenario, Vec<SchemaError>> {
    let reading = Reading::new(file, text);
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| reading.line(span));
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            reading.error(line, "TOML", message);
            return Err(reading.into_errors());
        }
    };
    let scenario = read_scenario(&reading, file, table.get_ref());
    names::check(&reading, &scenario);
    if reading.has_errors() { Err(reading.into_errors()) } else { Ok(scenario) }
}

fn read_scenario(reading: &Reading, file: &str, table: &DeTable<'_>) -> Scenario {
    let key = |key| Node::of_key(reading, table, key);
    reading.only(table, KEYS, "a scenario");
    let schema: Option<u64> = reading.required(table, "schema", "a scenario");
    if schema.is_some_and(|schema| schema != SCHEMA) {
        let line = key("schema").map_or(1, |node| node.line);
        let what = format!("expected schema version {SCHEMA}; this build reads no other");
        reading.error(line, "schema", what);
    }
    let is_line = |text: &str| !text.is_empty() && !text.contains('\n');
    let is_id = |text: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !text.is_empty() && text.chars().all(fits)
    };
    let text = |key, expected: &str, fits: &dyn Fn(&str) -> bool| {
        let text: String = reading.required(table, key, "a scenario").unwrap_or_default();
        if let Some(node) = Node::of_key(reading, table, key).filter(|_| !fits(&text)) {
            reading.error(node.line, key, format!("expected {expected}"));
        }
        text
    };
    let id = text("id", "an id of letters, digits, `-`, `_`, `.`", &is_id);
    let title = text("title", "one line of text", &is_line);
    let area = text("area", "one line of text", &is_line);
    let seeds: Vec<u64> = reading.optional(table, "seeds").unwrap_or_else(|| vec![0]);
    if let Some(node) = key("seeds").filter(|_| !(1..=1000).contains(&seeds.len())) {
        reading.error(node.line, "seeds", "expected a list of 1 to 1000 seeds");
    }
    // Where the scenario comes from: for readers only.
    let _: Option<Vec<u64>> = reading.optional(table, "sources");
    let needs = reading.optional(table, "needs").unwrap_or_default();
    let config = key("config").map(|node| read_config(node)).unwrap_or_default();
    let tasks = key("tasks").map(|node| read_tasks(node)).unwrap_or_default();
    let (setup, steps) = find_script(reading, table);
    let initial = snapshot::encode(&config, setup.map(|node| node.value));
    let value = |name| key(name).map(|node| node.value);
    let steps_value = steps.map(|node| node.value);
    let digest =
        snapshot::scenario_digest(&id, &initial, value("tasks"), steps_value, value("expect"));
    let place = Where { in_body: false, depth: 0 };
    let setup = setup.map(|node| read_ops(node, place)).unwrap_or_default();
    let steps = steps.map(|node| read_ops(node, place)).unwrap_or_default();
    let expect = key("expect").map_or_else(Expect::default, |node| expect::read(node, seeds.len()));
    let groups = reading.groups.take();
    let written_out = |(name, task): (Name, Definition)| {
        let body = expand(&task.body, &groups);
        let on_cancel = expand(&task.on_cancel, &groups);
        (name, Definition { body, on_cancel })
    };
    Scenario {
        file: file.to_owned(),
        id,
        title,
        area,
        seeds,
        needs,
        config,
        tasks: tasks.into_iter().map(written_out).collect(),
        initial,
        digest,
        setup: expand(&setup, &groups),
        steps: expand(&steps, &groups),
        groups,
        expect,
    }
}

fn read_config(node: Node<'_>) -> Settings {
    let config = node.reading.noted(&node, Settings::deserialize(node)).unwrap_or_default();
    if config.timers.coalesce_min.is_some() && config.timers.coalesce_window.is_none() {
        let what = "[config.timers] needs the key `coalesce_window`";
        node.reading.error(node.line, "coalesce_window", what);
    }
    config
}

/// `setup` and `steps`, at the top or in `[scenario]`.
fn find_script<'r>(
    reading: &'r Reading,
    table: &'r DeTable<'r>,
) -> (Option<Node<'r>>, Option<Node<'r>>) {
    let script = Node::of_key(reading, table, "scenario");
    let inner = match script.map(|node| node.value) {
        Some(DeValue::Table(table)) => Some(table),
        _ => None,
    };
    match (script, inner) {
        (Some(node), None) => {
            reading.noted::<()>(&node, Err(node.wrong("a table")));
        }
        (Some(_), Some(inner)) => reading.only(inner, &["setup", "steps"], "[scenario]"),
        (None, _) => {}
    }
    let find = |key| {
        let outer = Node::of_key(reading, table, key);
        let inner = inner.and_then(|inner| Node::of_key(reading, inner, key));
        if let (Some(_), Some(inner)) = (outer, inner) {
            reading.error(inner.line, key, "expected at the top or in [scenario], not both");
        }
        outer.or(inner)
    };
    (find("setup"), find("steps"))
}

fn read_tasks(node: Node<'_>) -> BTreeMap<Name, Definition> {
    let reading = node.reading;
    let mut all = BTreeMap::new();
    let DeValue::Table(table) = node.value else {
        reading.error(node.line, "tasks", "expected tables [tasks.NAME]");
        return all;
    };
    for (name, value) in table {
        let name = name.get_ref();
        let DeValue::Table(table) = value.get_ref() else {
            let line = Node::of_key(reading, table, name).map_or(node.line, |node| node.line);
            reading.error(line, name, "expected a table with `body` and `on_cancel`");
            continue;
        };
        reading.only(table, &["body", "on_cancel"], &format!("[tasks.{name}]"));
        let read = |key| {
            let list = Node::of_key(reading, table, key);
            let place = Where { in_body: true, depth: 0 };
            Arc::from(list.map(|list| read_ops(list, place)).unwrap_or_default())
        };
        let definition = Definition { body: read("body"), on_cancel: read("on_cancel") };
        all.insert(Name::from(name.as_ref()), definition);
    }
    all
}
