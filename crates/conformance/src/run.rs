//! Running a scenario: op by op, seed by seed, and what to report.

use crate::body::compare;
use crate::ends::Ends;
use crate::events::HostEvent;
use crate::events::Named;
use crate::host::{Failure, Host, Record};
use crate::model::Model;
use crate::pattern::Pattern;
use crate::scenario::{Expect, Name, Op, Scenario, ScriptStep};
use crate::skip::{Expressible, SkippedLine, expressible};
use asx_kernel::journal::{Event, EventKind};
use asx_trace::{Monitor, MonitorError, Source};
use core::fmt::Write as _;
use std::sync::Arc;

/// What running a scenario gave.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario.
    pub id: String,
    /// Where it was read from.
    pub file: String,
    /// The host.
    pub host: &'static str,
    /// One run per seed.
    pub runs: Vec<SeedRun>,
    /// Why the host cannot run it, if it cannot.
    pub skipped: Option<String>,
    /// The lines that the host cannot express, and those that depend on them.
    pub skipped_lines: Vec<SkippedLine>,
    /// The scenario that was run: without the skipped lines.
    pub ran: Arc<Scenario>,
}

impl Report {
    /// Whether everything held under every seed.
    pub fn passed(&self) -> bool {
        self.runs.iter().all(|run| run.failures.is_empty())
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct SeedRun {
    /// The seed.
    pub seed: u64,
    /// The id of the state it began with.
    pub snapshot: u64,
    /// The journal's digest.
    pub fingerprint: u64,
    /// The journal, a line per event, with names.
    pub journal: Vec<String>,
    /// The host-only events, a line each.
    pub host_events: Vec<String>,
    /// What did not hold.
    pub failures: Vec<Failure>,
    /// Whether the only failure is the fingerprint.
    pub only_fingerprint: bool,
    /// Whether it went another way than the scenario says, and only its ends were compared.
    pub other_order: bool,
    /// What the run left behind.
    pub record: Record,
    /// How to see it again.
    pub repro: String,
}

/// Runs a scenario under each of its seeds. Lines that the host cannot express are left out: see
/// [`skip`](crate::skip).
pub fn run_scenario(host: &mut dyn Host, scenario: &Arc<Scenario>) -> Report {
    run_seeds(host, scenario, &scenario.seeds)
}

/// Runs a scenario under these seeds, which may be others than its own.
pub fn run_seeds(host: &mut dyn Host, scenario: &Arc<Scenario>, seeds: &[u64]) -> Report {
    let mut report = Report {
        id: scenario.id.clone(),
        file: scenario.file.clone(),
        host: host.name(),
        runs: Vec::new(),
        skipped: None,
        skipped_lines: Vec::new(),
        ran: Arc::clone(scenario),
    };
    match expressible(host, scenario) {
        Ok(Expressible { scenario, skipped }) => {
            report.runs.extend(seeds.iter().map(|seed| run_seed(host, &scenario, *seed)));
            report.skipped_lines = skipped;
            report.ran = scenario;
        }
        Err(why) => report.skipped = Some(why),
    }
    report
}

/// Runs a scenario once under the schedule that `host` chooses, which is not that of a seed. All
/// lines are run: [`expressible`] leaves out those that the host cannot express.
///
/// Returns the failed expectations and the record. Everything that [`run_scenario`] checks is
/// checked here too, except the fingerprint and `replay`: the fingerprint identifies the schedule
/// of a seed, and only the caller can repeat this schedule. A list `orders` with one entry per
/// seed does not apply either; a single `order` does.
pub fn run_once(
    host: &mut dyn Host,
    scenario: &Arc<Scenario>,
    seed: u64,
) -> (Vec<Failure>, Record) {
    run_checked(
        host,
        scenario,
        seed,
        scenario.expect.orders.first().filter(|_| scenario.expect.orders.len() == 1),
    )
}

/// Runs the ops of a scenario once more and holds each event against a recorded run, as they come:
/// the first that differs ends it. What the file expects does not matter.
///
/// # Errors
/// Where they part, or what is wrong with the trace.
pub fn run_against<S: Source>(
    host: &mut dyn Host,
    scenario: &Arc<Scenario>,
    seed: u64,
    mut monitor: Monitor<S>,
) -> Result<Replayed, MonitorError> {
    host.start(scenario, seed);
    let mut next = 0;
    let mut parted = Ok(());
    let mut failures = Vec::new();
    let mut ops = 0;
    let mut due = 0;
    let mut look = |record: &Record| {
        let new = record.events.partition_point(|event| event.seq < next);
        next = record.events.last().map_or(next, |event| event.seq + 1);
        record.events[new..].iter().try_for_each(|event| monitor.check_event(event))
    };
    let mut watch = |host: &dyn Host| {
        ops += 1;
        if ops < due {
            return Ok(());
        }
        let record = host.record();
        // To look takes as long as there are events: not after each op where there are many.
        due = ops + record.events.len() as u64 / 64;
        parted = look(&record);
        if parted.is_err() { Err(Broken) } else { Ok(()) }
    };
    let mut played = 0;
    for steps in [&scenario.setup, &scenario.steps] {
        if play_steps(host, steps, &mut failures, &mut played, &mut watch).is_err() {
            break;
        }
    }
    parted?;
    let record = host.record();
    look(&record)?;
    let (events, decisions) = monitor.compared();
    Ok(Replayed { events, decisions, digest: monitor.finish(record.digest)? })
}

/// A run that was the same as the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The events that were compared.
    pub events: u64,
    /// The decisions among them.
    pub decisions: u64,
    /// The digest.
    pub digest: u64,
}

fn run_seed(host: &mut dyn Host, scenario: &Arc<Scenario>, seed: u64) -> SeedRun {
    let order = of_seed(&scenario.expect.orders, scenario, seed);
    let (mut failures, record) = run_checked(host, scenario, seed, order);
    if scenario.expect.replay {
        failures.extend(play(host, scenario, seed));
        failures.extend(diverged(scenario, &record, &host.record()));
    }
    let before = failures.len();
    failures.extend(fingerprint(&scenario.expect, scenario, seed, record.digest));
    let other_order = !failures.is_empty() && !host.keeps_order();
    if other_order {
        failures = other_ends(scenario, seed, &record, failures);
    }
    SeedRun {
        seed,
        snapshot: scenario.snapshot_id(seed),
        fingerprint: record.digest,
        journal: record.events.iter().map(|event| show(event, &record)).collect(),
        host_events: show_host(&record),
        only_fingerprint: before == 0 && !failures.is_empty(),
        other_order,
        failures,
        repro: repro(&scenario.file, host.name(), seed),
        record,
    }
}

/// The failures of a run in another order: broken invariants, and ends that differ from the model.
fn other_ends(
    scenario: &Arc<Scenario>,
    seed: u64,
    record: &Record,
    mut failures: Vec<Failure>,
) -> Vec<Failure> {
    let mut model = Model::new();
    play(&mut model, scenario, seed);
    let expected = Ends::of(&model.record());
    let got = Ends::of(record);
    failures.retain(|failure| failure.what.starts_with(INVARIANTS));
    if got != expected {
        let (expected, got) = (format!("{expected:?}"), format!("{got:?}"));
        failures.push(Failure::new(0, "ends in another order", expected, got));
    }
    failures
}

/// The prefix of a failed invariant.
const INVARIANTS: &str = "invariants after ";

/// The call that makes a run again.
fn repro(file: &str, host: &str, seed: u64) -> String {
    format!("asx run {} --host {host} --seed {seed}", shell_word(file))
}

/// As a shell takes it for one word.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Runs the ops of a scenario and checks `[expect]`, except fingerprints and `replay`. `order` is
/// the order of dispatch that applies to this run.
fn run_checked(
    host: &mut dyn Host,
    scenario: &Arc<Scenario>,
    seed: u64,
    order: Option<&Vec<Name>>,
) -> (Vec<Failure>, Record) {
    let mut failures = play(host, scenario, seed);
    let record = host.record();
    judge(&scenario.expect, order, &record, &mut failures);
    (failures, record)
}

/// Runs the ops of a scenario on a fresh world.
pub(crate) fn play(host: &mut dyn Host, scenario: &Arc<Scenario>, seed: u64) -> Vec<Failure> {
    host.start(scenario, seed);
    let mut failures = Vec::new();
    let mut played = 0;
    for steps in [&scenario.setup, &scenario.steps] {
        if play_steps(host, steps, &mut failures, &mut played, &mut |_| Ok(())).is_err() {
            break;
        }
    }
    failures
}

/// How many ops a scenario's steps may come to, loops counted out.
const MOST_STEPS: u64 = 200_000;

/// A broken invariant ends the run, or who watches does: what follows would say nothing.
struct Broken;

/// Looks at the host after each op.
type Watch<'a> = &'a mut dyn FnMut(&dyn Host) -> Result<(), Broken>;

fn play_steps(
    host: &mut dyn Host,
    steps: &[ScriptStep],
    failures: &mut Vec<Failure>,
    played: &mut u64,
    watch: Watch<'_>,
) -> Result<(), Broken> {
    for step in steps {
        *played += 1;
        if *played > MOST_STEPS {
            let expected = format!("at most {MOST_STEPS} ops");
            failures.push(Failure::new(
                step.line,
                "repeat",
                expected,
                "a script that does not end",
            ));
            return Err(Broken);
        }
        if let Op::Repeat { times, body } = &step.op {
            for _ in 0..if body.is_empty() { 0 } else { *times } {
                play_steps(host, body, failures, played, watch)?;
            }
            continue;
        }
        let reply = host.apply(&step.op);
        failures.extend(host.take_failures());
        failures.extend(compare(step, &reply));
        if let Err(broken) = host.check() {
            let what = format!("{INVARIANTS}op \"{}\"", step.name);
            failures.push(Failure::new(step.line, what, "no violation", broken));
            return Err(Broken);
        }
        // A scenario that went wrong this often says nothing more by going on.
        if failures.len() > 50 {
            return Err(Broken);
        }
        watch(host)?;
    }
    Ok(())
}

/// The item of a list that is one for all seeds or one per seed.
fn of_seed<'a, T>(items: &'a [T], scenario: &Scenario, seed: u64) -> Option<&'a T> {
    // Another seed than the author's may well go another way.
    let at = scenario.seeds.iter().position(|own| *own == seed)?;
    items.get(if items.len() == 1 { 0 } else { at })
}

/// Checks `[expect]` of a run, except fingerprints and `replay`.
pub(crate) fn judge(
    expect: &Expect,
    order: Option<&Vec<Name>>,
    record: &Record,
    failures: &mut Vec<Failure>,
) {
    failures.extend(subsequence(expect, record));
    let never = |patterns: &[Pattern], hit: &dyn Fn(&Pattern) -> Option<String>| {
        let fails = |pattern: &Pattern| {
            hit(pattern).map(|event| {
                Failure::new(pattern.line, format!("never `{pattern}`"), "no such event", event)
            })
        };
        patterns.iter().filter_map(fails).collect::<Vec<_>>()
    };
    failures.extend(never(&expect.never, &|pattern| {
        let hit = record.events.iter().find(|event| pattern.matches(event, &record.names));
        hit.map(|event| show(event, record))
    }));
    let shown = show_host(record);
    failures.extend(never(&expect.host_never, &|pattern| {
        let hit = |event| pattern.matches_host(event, &record.names);
        record.host_events.iter().position(hit).map(|at| shown[at].clone())
    }));
    let mut rest = record.host_events.iter();
    for pattern in &expect.host_events {
        if !rest.any(|event| pattern.matches_host(event, &record.names)) {
            let got = "no such host event after those already matched";
            failures.push(Failure::new(pattern.line, "host_events", pattern.to_string(), got));
        }
    }
    if let Some(order) = order {
        let expected = order.join(", ");
        let got = dispatched(record).join(", ");
        if expected != got {
            failures.push(Failure::new(expect.line, "order of dispatch", expected, got));
        }
    }
    for (line, task, severity) in &expect.outcomes {
        let got = record.outcomes.get(&**task).copied().flatten().unwrap_or("none");
        if got != severity.name() {
            let what = format!("outcome of `{task}`");
            failures.push(Failure::new(*line, what, severity.name(), got));
        }
    }
    if let Some(expected) = expect.quiescent
        && expected != record.not_quiescent.is_empty()
    {
        let names: Vec<_> = record.not_quiescent.iter().map(|status| status.name()).collect();
        let got = format!("{} {}", names.is_empty(), names.join(", "));
        failures.push(Failure::new(expect.line, "quiescent", expected.to_string(), got.trim()));
    }
}

/// `events` as an ordered subsequence, or as the whole journal.
fn subsequence(expect: &Expect, record: &Record) -> Option<Failure> {
    let mut rest = record.events.iter().enumerate();
    let mut last = None;
    for (index, pattern) in expect.events.iter().enumerate() {
        let found = if expect.exactly {
            rest.next().filter(|(_, event)| pattern.matches(event, &record.names))
        } else {
            rest.find(|(_, event)| pattern.matches(event, &record.names))
        };
        match found {
            Some((at, _)) => last = Some(at),
            None => {
                let got = if expect.exactly {
                    let event = record.events.get(index);
                    event.map_or("the end of the journal".to_owned(), |event| show(event, record))
                } else {
                    match last.and_then(|at| record.events.get(at)) {
                        Some(event) => format!("no such event after `{}`", show(event, record)),
                        None => "no such event".to_owned(),
                    }
                };
                return Some(Failure::new(pattern.line, "events", pattern.to_string(), got));
            }
        }
    }
    let extra = rest.next().filter(|_| expect.exactly)?.1;
    Some(Failure::new(expect.line, "events", "the end of the journal", show(extra, record)))
}

fn dispatched(record: &Record) -> Vec<String> {
    let name = |event: &Event| {
        let task = event.subject.task?;
        let name = record.names.name(Named::Task, task).map(str::to_owned);
        Some(name.unwrap_or_else(|| task.to_string()))
    };
    let decisions =
        record.events.iter().filter(|event| matches!(event.kind, EventKind::Decision { .. }));
    decisions.filter_map(name).collect()
}

fn fingerprint(expect: &Expect, scenario: &Scenario, seed: u64, digest: u64) -> Option<Failure> {
    let expected = of_seed(&expect.fingerprints, scenario, seed)?;
    (*expected != digest).then(|| {
        let expected = format!("{expected:016x}");
        let got = format!("{digest:016x}");
        Failure::new(expect.line, "fingerprint", expected, got)
    })
}

/// The first event in which two runs differ.
fn diverged(scenario: &Scenario, first: &Record, second: &Record) -> Option<Failure> {
    let differs = |at: &usize| first.events.get(*at) != second.events.get(*at);
    let at = (0..first.events.len().max(second.events.len())).find(differs);
    let line = scenario.expect.line;
    let shown = |record: &Record, at: usize| {
        record.events.get(at).map_or("the end".to_owned(), |event| show(event, record))
    };
    match at {
        Some(at) => {
            Some(Failure::new(line, "DETERMINISM_VIOLATION", shown(first, at), shown(second, at)))
        }
        None if first.digest != second.digest => {
            let first = first.digest;
            let second = second.digest;
            Some(Failure::new(
                line,
                "DETERMINISM_VIOLATION",
                format!("{first:016x}"),
                format!("{second:016x}"),
            ))
        }
        None => None,
    }
}

/// An event with names instead of numbers.
fn show(event: &Event, record: &Record) -> String {
    let text = event.to_string();
    let mut words = text.split(' ');
    let mut out = words.by_ref().take(3).collect::<Vec<_>>().join(" ");
    for word in words {
        let _ = write!(out, " {}", with_name(word, record));
    }
    out
}

fn show_host(record: &Record) -> Vec<String> {
    let show = |event: &HostEvent| {
        let mut out = event.kind.to_owned();
        for (key, value) in &event.fields {
            let value = value.as_ref().map_or("null".to_owned(), ToString::to_string);
            let _ = write!(out, " {}", with_name(&format!("{key}={value}"), record));
        }
        out
    };
    record.host_events.iter().map(show).collect()
}

/// `key=name` for `key=number`, where the number has a name.
fn with_name(word: &str, record: &Record) -> String {
    let named = word.split_once('=').and_then(|(key, value)| {
        let kind = crate::pattern::named(key)?;
        let name = record.names.name(kind, value.parse().ok()?)?;
        Some(format!("{key}={name}"))
    });
    named.unwrap_or_else(|| word.to_owned())
}
