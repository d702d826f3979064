//! Reading ops: one table row per op says where it may stand, its keys and its results.

use super::keys::{Keys, Reading};
use super::results::{Fields, Ty};
use super::{checks, laws, suggest, tables, words};
use crate::scenario::{Op, ScriptStep, Want};
use asx_kernel::status::Status;
use toml::de::DeValue;

/// How deep bodies may nest.
const MAX_DEPTH: usize = 16;
/// How many ops a file may have, groups written out.
const MAX_OPS: usize = 50_000;

/// Where an op may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In `setup` and `steps`.
    Steps,
    /// In bodies.
    Body,
    /// In both.
    Both,
}

/// One op of the language.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) read: fn(&mut Keys<'_, '_, '_>) -> Option<Op>,
    pub(crate) results: Fields,
}

/// A table row.
pub(crate) const fn spec(
    name: &'static str,
    place: Place,
    read: fn(&mut Keys<'_, '_, '_>) -> Option<Op>,
    results: Fields,
) -> Spec {
    Spec { name, place, read, results }
}

/// Every op.
pub(crate) fn all() -> impl Iterator<Item = &'static Spec> {
    let families = [
        tables::REGIONS,
        tables::TASKS,
        tables::THINGS,
        tables::RUNNING,
        laws::LAWS,
        checks::CHECKS,
    ];
    families.into_iter().flatten()
}

/// Reads a list of ops.
pub(crate) fn read_ops(
    reading: &mut Reading<'_>,
    value: &DeValue<'_>,
    line: usize,
    key: &str,
    in_body: bool,
    depth: usize,
) -> Vec<ScriptStep> {
    let mut steps = Vec::new();
    let DeValue::Array(items) = value else {
        let what = format!("expected a list of ops, not {}", words::kind_of(value));
        reading.error(line, key, what);
        return steps;
    };
    if depth > MAX_DEPTH {
        reading.error(line, key, format!("expected at most {MAX_DEPTH} nested bodies"));
        return steps;
    }
    for item in items {
        // That there are too many was said.
        if reading.ops > MAX_OPS || reading.is_hopeless() {
            break;
        }
        let line = reading.line(item.span());
        match item.get_ref() {
            DeValue::Table(table) => {
                let keys = Keys::new(reading, table, line, "the op");
                read_op(Keys { in_body, depth, ..keys }, &mut steps);
            }
            other => {
                let what =
                    format!("expected an op {{ op = \"..\" }}, not {}", words::kind_of(other));
                reading.error(line, key, what);
            }
        }
    }
    steps
}

fn read_op(mut keys: Keys<'_, '_, '_>, steps: &mut Vec<ScriptStep>) {
    let Some(name) = keys.req("op", words::text) else { return };
    let Some(spec) = all().find(|spec| spec.name == name) else {
        let near = suggest::near(&name, all().map(|spec| spec.name));
        keys.reading.error(keys.line, "op", format!("there is no op \"{name}\"{near}"));
        return;
    };
    keys.what = format!("op \"{name}\"");
    let wrong = match (spec.place, keys.in_body) {
        (Place::Steps, true) => Some("in `setup` and `steps`"),
        (Place::Body, false) => Some("in a task's body"),
        _ => None,
    };
    if let Some(place) = wrong {
        keys.reading.error(keys.line, "op", format!("op \"{name}\" can only stand {place}"));
        return;
    }
    let expect = keys.opt("expect", words::status);
    keys.succeeds = expect.is_none_or(|status| status == Status::Ok);
    let Some(op) = (spec.read)(&mut keys) else { return };
    let fields = if let Op::Check(subject) = &op { checks::fields(subject) } else { spec.results };
    let wants = fields.iter().filter_map(|(key, ty)| want(&mut keys, key, *ty)).collect();
    let step = ScriptStep { line: keys.line, name: spec.name, op, expect, wants };
    write_out(&mut keys, step, steps);
    keys.finish();
}

fn want(keys: &mut Keys<'_, '_, '_>, key: &'static str, ty: Ty) -> Option<Want> {
    let (_, line) = keys.raw(key)?;
    let value = keys.opt(key, |value| ty.read(value))?;
    Some(Want { key, line, value })
}

/// Writes a group's members out, and the reserve that a `send` through a channel stands for.
fn write_out(keys: &mut Keys<'_, '_, '_>, step: ScriptStep, steps: &mut Vec<ScriptStep>) {
    let copies = keys.count.unwrap_or(1) as usize;
    keys.reading.ops = keys.reading.ops.saturating_add(copies);
    if keys.reading.ops > MAX_OPS {
        keys.reading.error(keys.line, "op", format!("expected at most {MAX_OPS} ops in a file"));
        return;
    }
    if let Some(op) = keys.before.take() {
        let reserve = ScriptStep { op, wants: Vec::new(), ..step.clone() };
        steps.push(reserve);
        if keys.succeeds {
            steps.push(ScriptStep { expect: None, ..step });
        }
        return;
    }
    let Some(count) = keys.count else { return steps.push(step) };
    for index in 1..=count {
        let mut step = step.clone();
        match &mut step.op {
            Op::Spawn { name, index: own, .. } => {
                *name = format!("{name}{index}").into();
                *own = index as i64;
            }
            Op::Arm { timer, wakes, .. } => {
                *timer = format!("{timer}{index}").into();
                // A group of timers wakes a group of tasks one by one.
                if let Some(group) = wakes.as_deref().and_then(|name| name.strip_suffix('*')) {
                    *wakes = Some(format!("{group}{index}").into());
                }
            }
            _ => {}
        }
        steps.push(step);
    }
}
