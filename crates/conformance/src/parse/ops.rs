//! Reading ops: a row says where an op may stand and what results it has; serde reads its keys.

use super::node::{Node, Tagged};
use super::reading::{Mention, Reading};
use super::results::{self, Fields, Ty};
use super::suggest;
use super::words::{self, Word};
use crate::events::Named;
use crate::scenario::{BrowserOp, Checked, End, Law, Message, Name, Op, ScriptStep, Want, When};
use asx_kernel::status::Status;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// How deep bodies may nest.
const MAX_DEPTH: usize = 16;
/// How many ops a file may have, groups written out.
const MAX_OPS: usize = 50_000;

/// Where an op may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In `setup` and `steps`.
    Steps,
    /// In bodies.
    Body,
    /// In both.
    Both,
}

use Place::{Body, Both, Steps};

/// An op: its name, where it may stand, and its results.
type Row = (&'static str, Place, Fields);

const OPS: &[Row] = &[
    ("open", Both, &[]),
    ("end", Both, &[]),
    ("close", Both, results::FIRST),
    ("gate", Both, &[]),
    ("defer", Both, &[]),
    ("finalizer", Both, &[]),
    ("storage", Both, &[]),
    ("release", Both, &[]),
    ("spawn", Both, &[]),
    ("spawn_failed", Both, &[]),
    ("cancel", Both, results::FIRST),
    ("wake", Both, &[]),
    ("checkpoint", Body, results::SEEN),
    ("is_cancelled", Body, results::SEEN),
    ("yield", Body, &[]),
    ("park", Body, &[]),
    ("work", Body, &[]),
    ("spend", Body, &[]),
    ("sleep", Body, &[]),
    ("join", Body, results::OUTCOME),
    ("closed", Body, results::OUTCOME),
    ("stopping", Body, &[]),
    ("shield", Body, &[]),
    ("cleanup", Body, &[]),
    ("repeat", Both, &[]),
    ("done", Body, &[]),
    ("fail", Body, &[]),
    ("panic", Body, &[]),
    ("oblige", Both, &[]),
    ("commit", Both, &[]),
    ("abort", Both, results::PROOF),
    ("channel", Both, &[]),
    ("reserve", Body, &[]),
    ("try_reserve", Both, &[]),
    ("send", Both, results::PROOF),
    ("drop", Both, &[("panics", Ty::Flag)]),
    ("try_send", Both, &[]),
    ("evict", Both, &[("evicted", Ty::Int)]),
    ("recv", Body, results::VALUE),
    ("try_recv", Both, results::VALUE),
    ("clone_sender", Both, &[]),
    ("drop_sender", Both, &[]),
    ("drop_receiver", Both, &[]),
    ("arm", Both, &[]),
    ("disarm", Both, &[("cancelled", Ty::Flag)]),
    ("update", Both, &[]),
    ("advance", Both, &[]),
    ("fire", Steps, &[("fired", Ty::Number)]),
    ("run", Steps, results::STEPPED),
    ("step", Steps, results::STEP),
    ("run_for", Steps, results::STEPPED),
    ("suggest", Steps, &[]),
    ("soft_stop", Steps, &[]),
    ("shutdown", Steps, &[]),
    ("quiescent", Steps, &[("all", Ty::Statuses)]),
    ("try_move", Both, &[]),
    ("check", Both, &[]),
];

const BROWSER: &[Row] = &[
    ("microtasks", Steps, &[("ran", Ty::Number)]),
    ("turn", Steps, results::STEPPED),
    ("pump", Both, results::ANSWER),
    ("host_timer", Steps, &[]),
    ("suspend", Steps, &[]),
    ("grant", Steps, &[]),
    ("revoke", Steps, &[]),
    ("require", Both, &[("provenance", Ty::Text)]),
];

const LAWS: &[Row] = &[
    ("join_outcomes", Both, results::JOINED),
    ("strengthen", Both, results::STRONGEST),
    ("kind_info", Both, results::KIND),
    ("meet", Both, results::MET),
    ("consume", Both, results::CONSUMED),
    ("check_deadline", Both, &[("kind", Ty::Kind)]),
    ("wait_until", Both, &[("until", Ty::Instant)]),
    ("task_move", Both, &[]),
    ("region_move", Both, &[]),
    ("obligation_move", Both, &[]),
    ("phase_move", Both, &[]),
    ("validate_witness", Both, &[]),
    ("rng", Both, &[("values", Ty::Numbers)]),
    ("steal_order", Both, &[("order", Ty::Numbers)]),
    ("decide", Both, results::DECIDED),
    ("certificates", Both, &[("equal", Ty::Flag)]),
];

/// Every op.
fn rows() -> impl Iterator<Item = &'static Row> {
    OPS.iter().chain(BROWSER).chain(LAWS)
}

/// The name of every op.
pub fn op_names() -> impl Iterator<Item = &'static str> {
    rows().map(|(name, ..)| *name)
}

/// What is to be looked at: one of these keys. `region` is also a result of a task, so that a task
/// comes first.
const SUBJECTS: &[&str] = &[
    "task",
    "region",
    "obligation",
    "channel",
    "permit",
    "timer",
    "timers",
    "lanes",
    "journal",
    "clock",
    "pump",
    "certificate",
];

/// Keys whose values are names of things that exist.
const NAMES: &[(&str, Named)] = &[
    ("task", Named::Task),
    ("wakes", Named::Task),
    ("region", Named::Region),
    ("in", Named::Region),
    ("channel", Named::Channel),
    ("permit", Named::Permit),
    ("obligation", Named::Obligation),
    ("timer", Named::Timer),
];

/// Where ops are read.
#[derive(Clone, Copy)]
pub(super) struct Where {
    /// Whether in the body of a task.
    pub(super) in_body: bool,
    /// How deep in nested bodies.
    pub(super) depth: usize,
}

/// Reads a list of ops.
pub(super) fn read_ops(list: Node<'_>, place: Where) -> Vec<ScriptStep> {
    let reading = list.reading;
    let mut steps = Vec::new();
    let DeValue::Array(items) = list.value else {
        reading.noted::<()>(&list, Err(list.wrong("a list of ops")));
        return steps;
    };
    if place.depth > MAX_DEPTH {
        let what = format!("expected at most {MAX_DEPTH} nested bodies");
        reading.error(list.line, list.key, what);
        return steps;
    }
    for item in items {
        // That there are too many was said.
        if reading.ops.get() > MAX_OPS || reading.is_hopeless() {
            break;
        }
        let node = Node::new(reading, item.get_ref(), reading.line(item.span()), list.key);
        match node.value {
            DeValue::Table(table) => {
                let offset = item.span().start;
                OpTable { node, offset, table, place }.read(&mut steps);
            }
            _ => {
                reading.noted::<()>(&node, Err(node.wrong("an op { op = \"..\" }")));
            }
        }
    }
    steps
}

/// The table of an op.
#[derive(Clone, Copy)]
struct OpTable<'r> {
    node: Node<'r>,
    /// Where it begins in the file.
    offset: usize,
    table: &'r DeTable<'r>,
    place: Where,
}

impl<'r> OpTable<'r> {
    fn reading(&self) -> &'r Reading {
        self.node.reading
    }

    fn error(&self, key: &str, expected: impl Into<String>) {
        self.reading().error(self.node.line, key, expected);
    }

    fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn key(&self, key: &str) -> Option<Node<'r>> {
        Node::of_key(self.reading(), self.table, key)
    }

    fn read(self, steps: &mut Vec<ScriptStep>) {
        let Some(node) = self.key("op") else {
            return self.error("op", "the op needs the key `op`");
        };
        let read = String::deserialize(node);
        let Some(name) = self.reading().noted(&node, read) else { return };
        let Some((name, place, results)) = rows().find(|(own, ..)| *own == name) else {
            let near = suggest::near(&name, op_names());
            return self.error("op", format!("there is no op \"{name}\"{near}"));
        };
        let wrong = match (place, self.place.in_body) {
            (Place::Steps, true) => Some("in `setup` and `steps`"),
            (Place::Body, false) => Some("in a task's body"),
            _ => None,
        };
        if let Some(place) = wrong {
            return self.error("op", format!("op \"{name}\" can only stand {place}"));
        }
        let expect: Option<Word<Status>> = self.reading().optional(self.table, "expect");
        let expect = expect.map(|Word(status)| status);
        let Some((op, results)) = self.read_op(name, results) else {
            return self.reading().doubt(self.table);
        };
        let line = self.node.line;
        let wants = results.iter().filter_map(|(key, ty)| self.want(key, *ty)).collect();
        let uses = self.note_used(&op, results);
        let offset = self.offset;
        let step = ScriptStep { line, offset, name, op, expect, wants, uses };
        self.write_out(step, steps);
    }

    fn want(&self, key: &'static str, ty: Ty) -> Option<Want> {
        let node = self.key(key)?;
        let value = self.reading().noted(&node, ty.read(node))?;
        Some(Want { key, line: node.line, value })
    }

    /// Reads the keys of the op, with the results it has.
    fn read_op(&self, name: &'static str, mut results: Fields) -> Option<(Op, Fields)> {
        let what = format!("op \"{name}\"");
        let op = match name {
            "check" => {
                let subject = self.subject(&what)?;
                results = results::of_check(&subject);
                Op::Check(subject)
            }
            _ if LAWS.iter().any(|(law, ..)| *law == name) => {
                Op::Law(self.keys::<Law>(self.variant(name)?, &what, results)?)
            }
            _ if BROWSER.iter().any(|(op, ..)| *op == name) => {
                Op::Browser(self.keys::<BrowserOp>(name, &what, results)?)
            }
            _ => self.keys::<Op>(self.variant(name)?, &what, results)?,
        };
        Some((self.complete(op, &what)?, results))
    }

    /// The variant that reads the keys: of some ops there are several, by what they are given.
    fn variant(&self, name: &'static str) -> Option<&'static str> {
        Some(match name {
            "abort" if self.has("permit") || !self.has("obligation") => "abort_permit",
            "send" if self.sends_through() => "try_send",
            "try_move" if self.has("task") => "move_task",
            "try_move" if self.has("obligation") => "move_obligation",
            "try_move" => "move_region",
            "consume" => match (self.has("polls"), self.has("cost")) {
                (true, false) => "consume_polls",
                (false, true) => "consume_cost",
                _ => {
                    self.error("polls", "op \"consume\" needs one of `polls` and `cost`");
                    return None;
                }
            },
            name => name,
        })
    }

    /// Whether a task sends through a channel, which stands for a reserve and a send.
    fn sends_through(&self) -> bool {
        self.place.in_body && self.has("channel") && !self.has("permit")
    }

    fn keys<T: DeserializeOwned>(&self, variant: &str, what: &str, results: Fields) -> Option<T> {
        let mut aside = vec!["op", "expect"];
        aside.extend(results.iter().map(|(key, _)| *key));
        match variant {
            "shield" | "cleanup" | "repeat" => aside.push("body"),
            "spawn" | "arm" => aside.push("count"),
            "try_send" if self.sends_through() => aside.push("tracked"),
            _ => {}
        }
        let node = Node { aside: &aside, ..self.node };
        let read = T::deserialize(Tagged { variant, what, node });
        self.reading().noted(&node, read)
    }

    /// What a check looks at.
    fn subject(&self, what: &str) -> Option<Checked> {
        let Some(subject) = SUBJECTS.iter().find(|key| self.has(key)) else {
            let what = format!(
                "{what} needs one subject: task, region, obligation, channel, permit, timer, \
                 timers, lanes, certificate, journal, clock or pump"
            );
            self.error("check", what);
            return None;
        };
        let node = self.key(subject)?;
        let read = Checked::deserialize(Tagged { variant: subject, what, node: node.lenient() });
        let subject_read = self.reading().noted(&node, read)?;
        let mut known = vec!["op", "expect", *subject];
        known.extend(results::of_check(&subject_read).iter().map(|(key, _)| *key));
        self.reading().only(self.table, &known, what);
        Some(subject_read)
    }

    /// Fills in what serde cannot: names by default, and nested ops.
    fn complete(&self, mut op: Op, what: &str) -> Option<Op> {
        match &mut op {
            Op::Spawn { task, name, .. }
            | Op::Defer { task, name, .. }
            | Op::Finalizer { task, name, .. }
                if !self.has("as") =>
            {
                *name = task.clone();
            }
            Op::Update { timer, name, .. } if !self.has("as") => {
                *name = timer.rsplit('.').next().unwrap_or(timer).into();
            }
            Op::Shield { body } | Op::Cleanup { body } | Op::Repeat { body, .. } => {
                let Some(list) = self.key("body") else {
                    self.error("body", format!("{what} needs the key `body`"));
                    return None;
                };
                let depth = self.place.depth + 1;
                *body = Arc::from(read_ops(list, Where { depth, ..self.place }));
            }
            Op::Law(Law::JoinOutcomes { of, .. }) if of.iter().any(End::is_odd) => {
                self.error("of", "expected `kind` of a cancel only");
                return None;
            }
            Op::Browser(BrowserOp::Suspend { when: When::At(_) }) => {
                self.error("for", "op \"suspend\" takes a duration, not an instant");
                return None;
            }
            Op::Send { value, .. } | Op::TrySend { value, .. } | Op::Evict { value, .. }
                if !self.place.in_body && matches!(value, Message::Index(_)) =>
            {
                self.error("value", "expected an integer: only a task has an index");
                return None;
            }
            _ => {}
        }
        Some(op)
    }

    /// Notes the names that the op makes, and writes out what it stands for.
    fn write_out(&self, step: ScriptStep, steps: &mut Vec<ScriptStep>) {
        let succeeds = step.expect.is_none_or(|status| status == Status::Ok);
        let count: Option<Count> = match step.op {
            Op::Spawn { .. } | Op::Arm { .. } => self.reading().optional(self.table, "count"),
            _ => None,
        };
        let count = count.map(|Count(count)| count);
        if let Some((_, name, key)) = made(&step.op)
            && !is_name(name)
        {
            return self.error(key, "expected a name of letters, digits, `_`, `-`");
        }
        let copies = count.unwrap_or(1) as usize;
        let ops = self.reading().ops.get().saturating_add(copies);
        self.reading().ops.set(ops);
        if ops > MAX_OPS {
            return self.error("op", format!("expected at most {MAX_OPS} ops in a file"));
        }
        let steps_of = match (count, &step.op) {
            (Some(count), _) => group(&step, count),
            (None, Op::TrySend { channel, value }) if step.name == "send" => {
                let tracked = self.reading().optional(self.table, "tracked").unwrap_or(false);
                let permit: Name = "permit".into();
                let send = Op::Send { permit: permit.clone(), value: *value };
                let reserve = Op::Reserve { channel: channel.clone(), permit, tracked };
                let reserve = ScriptStep { op: reserve, wants: Vec::new(), ..step.clone() };
                let send = ScriptStep { op: send, expect: None, ..step.clone() };
                if succeeds { vec![reserve, send] } else { vec![reserve] }
            }
            _ => vec![step.clone()],
        };
        if let (Some(_), Some((_, name, _))) = (count, made(&step.op)) {
            let members = steps_of.iter().filter_map(|step| made(&step.op));
            let members = members.map(|(_, name, _)| name.clone()).collect();
            self.reading().groups.borrow_mut().insert(name.clone(), members);
        }
        for step in &steps_of {
            if let Some((kind, name, key)) = made(&step.op)
                && succeeds
            {
                let name = name.clone();
                let line = self.node.line;
                self.reading().made.borrow_mut().push(Mention { kind, name, line, key });
            }
        }
        steps.extend(steps_of);
    }

    /// Notes the names of things that must exist, and returns them.
    fn note_used(&self, op: &Op, results: Fields) -> Arc<[(Named, Name)]> {
        let mut used = Vec::new();
        let makes = made(op).map(|(_, _, key)| key);
        let subject = match op {
            Op::Check(_) => SUBJECTS.iter().find(|key| self.has(key)),
            _ => None,
        };
        for (key, kind) in NAMES {
            let is_result = results.iter().any(|(result, _)| result == key);
            if subject.map_or(is_result || makes == Some(key), |subject| subject != key) {
                continue;
            }
            let kind = match op {
                Op::Spawn { .. } | Op::Defer { .. } | Op::Finalizer { .. } if *key == "task" => {
                    Named::Definition
                }
                _ => *kind,
            };
            let Some(node) = self.key(key) else { continue };
            if let DeValue::String(name) = node.value {
                let name = Name::from(name.as_ref());
                let line = node.line;
                used.push((kind, name.clone()));
                self.reading().used.borrow_mut().push(Mention { kind, name, line, key });
            }
        }
        used.into()
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(fits)
}

/// How many members a group has.
#[derive(Deserialize)]
#[serde(transparent)]
struct Count(#[serde(deserialize_with = "words::within::<_, _, 1, 1000>")] u64);

/// What an op makes: its kind, its name, and the key that gives it.
pub(crate) fn made(op: &Op) -> Option<(Named, &Name, &'static str)> {
    Some(match op {
        Op::Open { name, .. } => (Named::Region, name, "as"),
        Op::Spawn { name, .. }
        | Op::SpawnFailed { name, .. }
        | Op::Defer { name, .. }
        | Op::Finalizer { name, .. } => (Named::Task, name, "as"),
        Op::Channel { name, .. } => (Named::Channel, name, "as"),
        Op::Reserve { permit, .. } | Op::TryReserve { permit, .. } => {
            (Named::Permit, permit, "permit")
        }
        Op::Oblige { obligation, .. } => (Named::Obligation, obligation, "obligation"),
        Op::Arm { timer, .. } => (Named::Timer, timer, "timer"),
        Op::Update { name, .. } => (Named::Timer, name, "as"),
        _ => return None,
    })
}

/// The members of a group.
fn group(step: &ScriptStep, count: u64) -> Vec<ScriptStep> {
    let member = |index: u64| {
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
        step
    };
    (1..=count).map(member).collect()
}
