//! From text to a [`Scenario`], or to everything that is wrong with it.
//!
//! The reader asks each table for the keys it knows (`keys`), row by row for ops (`ops`);
//! whatever nobody asked for is an error, and so is a name nothing makes (`names`). Reading goes
//! on after an error, so that an author sees all of them at once. No input panics.

mod checks;
mod keys;
mod laws;
mod names;
mod ops;
mod results;
mod sections;
pub mod suggest;
mod tables;
pub(crate) mod words;

pub use keys::SchemaError;

use crate::scenario::{Definition, Scenario, ScriptStep, Settings, expand};
use crate::snapshot;
use keys::{Keys, Reading};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// The version of the format.
pub const SCHEMA: u64 = 1;

/// The name of every op.
pub fn op_names() -> impl Iterator<Item = &'static str> {
    ops::all().map(|spec| spec.name)
}

/// Reads a scenario. `file` is for messages.
pub fn parse_str(file: &str, text: &str) -> Result<Scenario, Vec<SchemaError>> {
    let mut reading = Reading::new(file, text);
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| reading.line(span));
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            reading.error(line, "TOML", message);
            return Err(reading.into_errors());
        }
    };
    let scenario = read_scenario(&mut reading, file, table.get_ref());
    if let Some(scenario) = &scenario {
        names::check(&mut reading, scenario);
    }
    match scenario {
        Some(scenario) if reading.errors.is_empty() => Ok(scenario),
        _ => Err(reading.into_errors()),
    }
}

fn read_scenario<'v>(
    reading: &mut Reading<'_>,
    file: &str,
    table: &'v DeTable<'v>,
) -> Option<Scenario> {
    let mut keys = Keys::new(reading, table, 1, "a scenario");
    keys.req("schema", |value| match words::number(value) {
        Ok(SCHEMA) => Ok(()),
        _ => Err(format!("schema version {SCHEMA}; this build reads no other")),
    });
    let (id, title) = (keys.req("id", id), keys.req("title", line_of_text));
    let area = keys.req("area", line_of_text);
    let seeds = keys.opt("seeds", seeds).unwrap_or_else(|| vec![0]);
    let config = keys.raw("config");
    let tasks = keys.raw("tasks");
    let expect = keys.raw("expect");
    let (setup, steps) = (keys.raw("setup"), keys.raw("steps"));
    let script = keys.raw("scenario");
    keys.finish();

    let config = sections::config(reading, config);
    let tasks = read_tasks(reading, tasks);
    let (initial, setup, steps) = read_script(reading, &config, setup, steps, script);
    let expect = sections::expect(reading, expect, seeds.len());
    let groups = core::mem::take(&mut reading.groups);
    let file = file.to_owned();
    let (setup, steps) = (expand(&setup, &groups), expand(&steps, &groups));
    let written_out = |definition: Definition| Definition {
        body: expand(&definition.body, &groups),
        on_cancel: expand(&definition.on_cancel, &groups),
    };
    let tasks = tasks.into_iter().map(|(name, task)| (name, written_out(task))).collect();
    let (id, title, area) =
        (id.unwrap_or_default(), title.unwrap_or_default(), area.unwrap_or_default());
    Some(Scenario {
        file,
        id,
        title,
        area,
        seeds,
        config,
        tasks,
        groups,
        initial,
        setup,
        steps,
        expect,
    })
}

type Raw<'v> = Option<(&'v DeValue<'v>, usize)>;

/// `setup` and `steps`, at the top or in `[scenario]`, after the initial state that they make.
fn read_script<'v>(
    reading: &mut Reading<'_>,
    config: &Settings,
    mut setup: Raw<'v>,
    mut steps: Raw<'v>,
    script: Raw<'v>,
) -> (String, Vec<ScriptStep>, Vec<ScriptStep>) {
    if let Some((value, line)) = script {
        match value {
            DeValue::Table(table) => {
                let mut keys = Keys::new(reading, table, line, "[scenario]");
                let (inner_setup, inner_steps) = (keys.raw("setup"), keys.raw("steps"));
                keys.finish();
                for (outer, inner, key) in
                    [(&mut setup, inner_setup, "setup"), (&mut steps, inner_steps, "steps")]
                {
                    if outer.is_some() && inner.is_some() {
                        reading.error(line, key, "expected at the top or in [scenario], not both");
                    }
                    *outer = outer.or(inner);
                }
            }
            other => {
                let what = format!("expected a table, not {}", words::kind_of(other));
                reading.error(line, "scenario", what);
            }
        }
    }
    let mut read = |raw: Raw<'_>, key| match raw {
        Some((value, line)) => ops::read_ops(reading, value, line, key, false, 0),
        None => Vec::new(),
    };
    let initial = snapshot::encode(config, setup.map(|(value, _)| value));
    (initial, read(setup, "setup"), read(steps, "steps"))
}

fn read_tasks(reading: &mut Reading<'_>, tasks: Raw<'_>) -> BTreeMap<Arc<str>, Definition> {
    let mut all = BTreeMap::new();
    let Some((value, line)) = tasks else { return all };
    let DeValue::Table(table) = value else {
        reading.error(line, "tasks", "expected tables [tasks.NAME]");
        return all;
    };
    for (name, value) in table {
        let (line, name) = (reading.line(name.span()), name.get_ref());
        let DeValue::Table(table) = value.get_ref() else {
            reading.error(line, name, "expected a table with `body` and `on_cancel`");
            continue;
        };
        let mut keys = Keys::new(reading, table, line, format!("[tasks.{name}]"));
        let (body, on_cancel) = (keys.raw("body"), keys.raw("on_cancel"));
        keys.finish();
        let mut read = |raw: Raw<'_>, key| match raw {
            Some((value, line)) => ops::read_ops(reading, value, line, key, true, 0),
            None => Vec::new(),
        };
        let body = Arc::from(read(body, "body"));
        let on_cancel = Arc::from(read(on_cancel, "on_cancel"));
        all.insert(Arc::from(name.as_ref()), Definition { body, on_cancel });
    }
    all
}

fn id(value: &DeValue<'_>) -> words::Read<String> {
    let id = words::text(value)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !id.is_empty() && id.chars().all(fits) {
        Ok(id)
    } else {
        Err("an id of letters, digits, `-`, `_`, `.`".to_owned())
    }
}

fn line_of_text(value: &DeValue<'_>) -> words::Read<String> {
    let text = words::text(value)?;
    if text.is_empty() || text.contains('\n') {
        Err("one line of text".to_owned())
    } else {
        Ok(text)
    }
}

fn seeds(value: &DeValue<'_>) -> words::Read<Vec<u64>> {
    let seeds = words::list(value, words::number)?;
    let fits = (1..=1000).contains(&seeds.len());
    if fits { Ok(seeds) } else { Err("a list of 1 to 1000 seeds".to_owned()) }
}
