//! Skipping lines: a host that cannot express an op of a scenario runs the rest of it.
//!
//! ```text
//! scenario -> ops that the host cannot express
//!          -> ops that name an object which a skipped op would have made
//!          -> ops and expectations that fail on the model without these: to a fixed point
//!          -> the scenario without them, with the fingerprints of the model
//! ```
//!
//! The model runs the same lines. It supplies the fingerprints that the host must reach, and it
//! decides which lines depend on a skipped one: those that hold on the model, but fail there when
//! the skipped line is missing. The host itself has no influence on that, so it cannot hide a
//! failure; nor can a line that is wrong, since a scenario that fails on the model as a whole keeps
//! all lines that the host can express.

use crate::events::Named;
use crate::host::{Failure, Host, Record};
use crate::model::Model;
use crate::run::{judge, play};
use crate::scenario::{Body, Definition, Expect, Name, Op, Scenario, ScriptStep};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reason given for a line that needs a skipped one.
const DEPENDS: &str = "it depends on a skipped line";

/// A line of a scenario that a host does not run or check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkippedLine {
    /// The line in the file.
    pub line: usize,
    /// Byte offset of the op in the file; `None` for a line of `[expect]`.
    pub offset: Option<usize>,
    /// The op, or the expectation.
    pub what: String,
    /// Why it is skipped.
    pub why: String,
}

/// What a host runs of a scenario.
#[derive(Clone, Debug)]
pub struct Expressible {
    /// The scenario without the skipped lines. Its fingerprints are those of the model.
    pub scenario: Arc<Scenario>,
    /// The skipped lines, in the order of the file.
    pub skipped: Vec<SkippedLine>,
}

impl Expressible {
    /// The same for a host that keeps no events.
    fn without_events(self) -> Expressible {
        let Expressible { scenario, mut skipped } = self;
        let expect = &scenario.expect;
        for (what, is_there) in [
            ("events", !expect.events.is_empty()),
            ("never", !expect.never.is_empty()),
            ("order", !expect.orders.is_empty()),
            ("host_events", !expect.host_events.is_empty()),
            ("host_never", !expect.host_never.is_empty()),
            ("fingerprint", !expect.fingerprints.is_empty()),
        ] {
            if is_there {
                let (what, why) = (what.to_owned(), "no events are kept".to_owned());
                skipped.push(SkippedLine { line: expect.line, offset: None, what, why });
            }
        }
        let mut outcomes = expect.outcomes.clone();
        outcomes.retain(|(line, task, _)| {
            let is_known = !scenario.is_finalizer(task);
            if !is_known {
                let (what, why) = (format!("outcome of `{task}`"), "no events are kept".to_owned());
                skipped.push(SkippedLine { line: *line, offset: None, what, why });
            }
            is_known
        });
        skipped.sort();
        let (line, quiescent) = (expect.line, expect.quiescent);
        let kept = Expect { line, quiescent, outcomes, ..Expect::default() };
        Expressible {
            scenario: Arc::new(Scenario { expect: kept, ..(*scenario).clone() }),
            skipped,
        }
    }
}

/// Returns what `host` runs of a scenario.
///
/// # Errors
/// The reason why it can run nothing of it.
pub fn expressible(host: &dyn Host, scenario: &Arc<Scenario>) -> Result<Expressible, String> {
    host.can_run(scenario)?;
    let lines = expressible_ops(host, scenario)?;
    Ok(if host.keeps_events() { lines } else { lines.without_events() })
}

fn expressible_ops(host: &dyn Host, scenario: &Arc<Scenario>) -> Result<Expressible, String> {
    let mut skips = Skips { reasons: BTreeMap::new() };
    scenario.visit(&mut |step| {
        if let Some(why) = host.hindrance(scenario, step) {
            skips.add(step, why);
        }
    });
    if skips.reasons.is_empty() {
        return Ok(Expressible { scenario: Arc::clone(scenario), skipped: Vec::new() });
    }
    if !holds_on_model(scenario) {
        skips.add_users_of_missing_objects(scenario);
        let scenario = skips.without(scenario);
        return Ok(Expressible { scenario, skipped: skips.ops() });
    }
    loop {
        skips.add_users_of_missing_objects(scenario);
        let rest = skips.without(scenario);
        let runs = run_on_model(&rest);
        let Some(failure) = runs.iter().find_map(|(failures, _)| failures.first()) else {
            let records: Vec<_> = runs.into_iter().map(|(_, record)| record).collect();
            return Ok(skips.finish(scenario, rest, &records));
        };
        // One at a time: lines after the first that fails may fail only because of it.
        let before = skips.reasons.len();
        scenario.visit(&mut |step| {
            if Some(step.offset) == failure.op {
                skips.add(step, DEPENDS);
            }
        });
        // A failure that belongs to no op cannot be skipped.
        if skips.reasons.len() == before {
            return Err(format!("the lines it can express say nothing alone: {failure}"));
        }
    }
}

/// Returns a scenario without the ops at these offsets, and without its expectations.
pub fn without_ops(scenario: &Scenario, offsets: &[usize]) -> Scenario {
    let keeps = |step: &ScriptStep| !offsets.contains(&step.offset);
    filtered(scenario, &keeps, Expect { line: scenario.expect.line, ..Expect::default() })
}

/// Runs a scenario on the model under each of its seeds. `[expect]` is not checked.
fn run_on_model(scenario: &Arc<Scenario>) -> Vec<(Vec<Failure>, Record)> {
    let mut model = Model::new();
    let run = |seed: &u64| (play(&mut model, scenario, *seed), model.record());
    scenario.seeds.iter().map(run).collect()
}

/// Whether the whole scenario passes on the model, its fingerprint apart.
fn holds_on_model(scenario: &Arc<Scenario>) -> bool {
    run_on_model(scenario)
        .iter()
        .enumerate()
        .all(|(at, (failures, record))| failures.is_empty() && meets(&scenario.expect, at, record))
}

/// Whether a run meets `[expect]`; `at` is the place of its seed in the list.
fn meets(expect: &Expect, at: usize, record: &Record) -> bool {
    let order = expect.orders.get(if expect.orders.len() == 1 { 0 } else { at });
    // The model has no host events where no event loop drives it.
    let expect = Expect { host_events: Vec::new(), host_never: Vec::new(), ..expect.clone() };
    let mut failures = Vec::new();
    judge(&expect, order, record, &mut failures);
    failures.is_empty()
}

/// The ops that are skipped.
struct Skips {
    /// Line, name and reason of each, by its offset.
    reasons: BTreeMap<usize, (usize, &'static str, String)>,
}

impl Skips {
    fn add(&mut self, step: &ScriptStep, why: &str) {
        self.reasons.entry(step.offset).or_insert((step.line, step.name, why.to_owned()));
    }

    fn keeps(&self, step: &ScriptStep) -> bool {
        !self.reasons.contains_key(&step.offset)
    }

    fn without(&self, scenario: &Scenario) -> Arc<Scenario> {
        let keeps = |step: &ScriptStep| self.keeps(step);
        Arc::new(filtered(scenario, &keeps, scenario.expect.clone()))
    }

    /// Adds the ops that name an object which only skipped ops make, and so on.
    fn add_users_of_missing_objects(&mut self, scenario: &Scenario) {
        loop {
            let mut made = BTreeSet::new();
            let mut missing = BTreeSet::new();
            scenario.visit(&mut |step| {
                if let Some(object) = step.makes() {
                    let list = if self.keeps(step) { &mut made } else { &mut missing };
                    list.insert(object);
                }
            });
            missing.retain(|object| !made.contains(object));
            let before = self.reasons.len();
            scenario.visit(&mut |step| {
                let needs = |(kind, name): &(Named, Name)| is_missing(&missing, *kind, name);
                if self.keeps(step)
                    && let Some((kind, name)) = step.uses.iter().find(|object| needs(object))
                {
                    let kind = kind.word();
                    let why = format!("it needs the {kind} `{name}`, which a skipped line makes");
                    self.add(step, &why);
                }
            });
            if self.reasons.len() == before {
                return;
            }
        }
    }

    /// The ops, in the order of the file.
    fn ops(self) -> Vec<SkippedLine> {
        let mut skipped: Vec<_> = self.reasons.into_iter().map(skipped_op).collect();
        skipped.sort();
        skipped
    }

    /// The result: expectations that the model does not meet either are skipped too.
    fn finish(self, scenario: &Scenario, rest: Arc<Scenario>, records: &[Record]) -> Expressible {
        let mut skipped = self.ops();
        let expect = met_by_model(&scenario.expect, scenario, records, &mut skipped);
        skipped.sort();
        Expressible { scenario: Arc::new(Scenario { expect, ..(*rest).clone() }), skipped }
    }
}

fn skipped_op((offset, (line, name, why)): (usize, (usize, &str, String))) -> SkippedLine {
    SkippedLine { line, offset: Some(offset), what: format!("op \"{name}\""), why }
}

/// Whether an op names a missing object: by its name, as `task.name`, or as a member of a group.
fn is_missing(missing: &BTreeSet<(Named, Name)>, kind: Named, name: &Name) -> bool {
    let has = |name: &str| missing.contains(&(kind, Name::from(name)));
    match name.strip_suffix('*') {
        Some(group) => missing.iter().any(|(other, member)| {
            let number = member.strip_prefix(group);
            *other == kind && number.is_some_and(|number| number.parse::<u64>().is_ok())
        }),
        None => has(name) || name.rsplit_once('.').is_some_and(|(_, own)| has(own)),
    }
}

/// The scenario with the ops that are kept and these expectations.
fn filtered(scenario: &Scenario, keeps: &dyn Fn(&ScriptStep) -> bool, expect: Expect) -> Scenario {
    let of_task = |(name, task): (&Name, &Definition)| {
        let body = rest(&task.body, keeps);
        let on_cancel = rest(&task.on_cancel, keeps);
        (name.clone(), Definition { body, on_cancel })
    };
    Scenario {
        tasks: scenario.tasks.iter().map(of_task).collect(),
        setup: rest(&scenario.setup, keeps),
        steps: rest(&scenario.steps, keeps),
        expect,
        ..scenario.clone()
    }
}

fn rest(steps: &Body, keeps: &dyn Fn(&ScriptStep) -> bool) -> Body {
    let inner = |step: &ScriptStep| {
        let op = match &step.op {
            Op::Repeat { times, body } => Op::Repeat { times: *times, body: rest(body, keeps) },
            Op::Shield { body } => Op::Shield { body: rest(body, keeps) },
            Op::Cleanup { body } => Op::Cleanup { body: rest(body, keeps) },
            op => op.clone(),
        };
        ScriptStep { op, ..step.clone() }
    };
    steps.iter().filter(|step| keeps(step)).map(inner).collect()
}

/// The expectations that the runs of the model meet under every seed; the others are skipped.
fn met_by_model(
    expect: &Expect,
    scenario: &Scenario,
    records: &[Record],
    skipped: &mut Vec<SkippedLine>,
) -> Expect {
    let base = Expect { line: expect.line, ..Expect::default() };
    let holds =
        |expect: &Expect| records.iter().enumerate().all(|(at, record)| meets(expect, at, record));
    let mut skip = |line: usize, what: String| {
        skipped.push(SkippedLine { line, offset: None, what, why: DEPENDS.to_owned() });
    };
    let mut met = Expect { replay: expect.replay, ..base.clone() };
    for pattern in &expect.events {
        met.events.push(pattern.clone());
        if !holds(&Expect { events: met.events.clone(), ..base.clone() }) {
            met.events.pop();
            skip(pattern.line, format!("events `{pattern}`"));
        }
    }
    let whole = Expect { events: met.events.clone(), exactly: expect.exactly, ..base.clone() };
    met.exactly = expect.exactly && holds(&whole);
    if met.exactly != expect.exactly {
        skip(expect.line, "exactly".to_owned());
    }
    for pattern in &expect.never {
        match holds(&Expect { never: vec![pattern.clone()], ..base.clone() }) {
            true => met.never.push(pattern.clone()),
            false => skip(pattern.line, format!("never `{pattern}`")),
        }
    }
    for outcome in &expect.outcomes {
        match holds(&Expect { outcomes: vec![outcome.clone()], ..base.clone() }) {
            true => met.outcomes.push(outcome.clone()),
            false => skip(outcome.0, format!("outcome of `{}`", outcome.1)),
        }
    }
    met.orders.clone_from(&expect.orders);
    if !holds(&Expect { orders: met.orders.clone(), ..base.clone() }) {
        met.orders.clear();
        skip(expect.line, "order".to_owned());
    }
    met.quiescent = expect.quiescent;
    if !holds(&Expect { quiescent: met.quiescent, ..base }) {
        met.quiescent = None;
        skip(expect.line, "quiescent".to_owned());
    }
    // Host events are those of an event loop, which the skipped lines do not touch.
    met.host_events.clone_from(&expect.host_events);
    met.host_never.clone_from(&expect.host_never);
    if !expect.fingerprints.is_empty() {
        let own = scenario.seeds.iter().zip(records);
        met.fingerprints = own.map(|(_, record)| record.digest).collect();
    }
    met
}
