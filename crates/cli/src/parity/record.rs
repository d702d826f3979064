//! What a host did with a scenario under one seed: one line of JSON.
//!
//! Hosts that this program has are run; of others (a browser, another machine) the record is read
//! from a file. Either way it is the same lines, and a line without a mandatory field is refused:
//! a field that a host has nothing for is an explicit null, or an empty list.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use asx_conformance::{SeedRun, value::Value as Given};
use serde_json::{Map, Value, json};

/// Of the lines.
const SCHEMA: u64 = 1;

/// What every line has.
const MANDATORY: [&str; 12] = [
    "schema",
    "scenario",
    "seed",
    "host",
    "skipped",
    "digest",
    "events",
    "outcomes",
    "not_quiescent",
    "journal",
    "host_events",
    "profile",
];

/// What every event of a host's scheduler has.
const OF_A_HOST_EVENT: [&str; 10] = [
    "task_id",
    "region_id",
    "lane",
    "decision_seq",
    "decision_hash",
    "host_turn_id",
    "microtask_batch_id",
    "cancel_streak",
    "cancel_streak_limit",
    "error_class",
];

/// Which run: a scenario and a seed.
pub(super) type Which = (String, u64);

/// A run, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record {
    /// The host cannot express it, and why.
    Skipped(String),
    /// What it did.
    Done(Run),
}

/// What a host did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Run {
    /// The fingerprint of all semantic events.
    pub(super) digest: String,
    /// How many there were.
    pub(super) events: u64,
    /// How named tasks have ended, if they have.
    pub(super) outcomes: BTreeMap<String, Option<String>>,
    /// Why it is not quiescent.
    pub(super) not_quiescent: Vec<String>,
    /// The events, a line each, with names.
    pub(super) journal: Vec<String>,
    /// What only the host saw: not compared.
    pub(super) host_events: Vec<Value>,
}

impl Run {
    /// What a run of a scenario left behind.
    pub(super) fn of(run: &SeedRun) -> Run {
        let record = &run.record;
        let outcomes = record.outcomes.iter();
        let host_event = |event: &asx_conformance::host::HostEvent| {
            let fields = event.fields.iter();
            let fields: Map<_, _> =
                fields.map(|(name, given)| ((*name).to_owned(), plain(given))).collect();
            json!({ "kind": event.kind, "fields": fields })
        };
        Run {
            digest: format!("{:016x}", record.digest),
            events: record.recorded,
            outcomes: outcomes.map(|(name, it)| (name.clone(), it.map(str::to_owned))).collect(),
            not_quiescent: record.not_quiescent.iter().map(|it| it.name().to_owned()).collect(),
            journal: run.journal.clone(),
            host_events: record.host_events.iter().map(host_event).collect(),
        }
    }

    /// The events of a kind that begins like this.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<&str> {
        let is_kind = |line: &&str| line.split(' ').any(|word| word.starts_with(kind));
        self.journal.iter().map(String::as_str).filter(is_kind).collect()
    }

    /// It, for people.
    pub(super) fn log(&self) -> String {
        let mut text = self.journal.iter().fold(String::new(), |text, line| text + line + "\n");
        for (name, outcome) in &self.outcomes {
            let _ = writeln!(text, "outcome {name} {}", outcome.as_deref().unwrap_or("none"));
        }
        for status in &self.not_quiescent {
            let _ = writeln!(text, "not quiescent {status}");
        }
        for event in &self.host_events {
            let _ = writeln!(text, "host only {event}");
        }
        let _ = writeln!(text, "digest {} of {} events", self.digest, self.events);
        text
    }
}

fn plain(given: &Option<Given>) -> Value {
    match given {
        None => Value::Null,
        Some(Given::Bool(flag)) => (*flag).into(),
        Some(Given::Int(number)) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => number.to_string().into(),
        },
        Some(other) => other.to_string().into(),
    }
}

/// A record as a line.
pub(super) fn line((scenario, seed): &Which, host: &str, record: &Record) -> String {
    let none = Run::default();
    let (skipped, run) = match record {
        Record::Skipped(why) => (Some(why), &none),
        Record::Done(run) => (None, run),
    };
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    json!({
        "schema": SCHEMA, "scenario": scenario, "seed": seed, "host": host, "profile": profile,
        "skipped": skipped, "digest": run.digest, "events": run.events, "outcomes": run.outcomes,
        "not_quiescent": run.not_quiescent, "journal": run.journal,
        "host_events": run.host_events,
    })
    .to_string()
}

/// All records of a host in a file; an error names the place.
pub(super) fn read(path: &Path, host: &str) -> Result<BTreeMap<Which, Record>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut records = BTreeMap::new();
    for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = |wrong: String| format!("{}:{}: {wrong}", path.display(), nth + 1);
        let (which, record) = parse(line, host).map_err(at)?;
        let (scenario, seed) = which.clone();
        if records.insert(which, record).is_some() {
            return Err(at(format!("`{scenario}` under seed {seed} is there twice")));
        }
    }
    Ok(records)
}

fn parse(line: &str, host: &str) -> Result<(Which, Record), String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let object = value.as_object().ok_or("not an object")?;
    if let Some(field) = MANDATORY.iter().find(|field| !object.contains_key(**field)) {
        return Err(format!("the mandatory field `{field}` is missing"));
    }
    let field = |name: &str| &object[name];
    let wrong = |name: &str, wanted: &str| format!("`{name}`: not {wanted}: {}", object[name]);
    let text = |name| field(name).as_str().ok_or_else(|| wrong(name, "a text"));
    let number = |name| field(name).as_u64().ok_or_else(|| wrong(name, "a whole number"));
    let texts = |name| {
        let items = field(name).as_array();
        let items =
            items.and_then(|all| all.iter().map(|it| it.as_str().map(str::to_owned)).collect());
        items.ok_or_else(|| wrong(name, "a list of texts"))
    };
    if number("schema")? != SCHEMA {
        return Err(wrong("schema", "one that is known here"));
    }
    if text("host")? != host {
        return Err(wrong("host", &format!("`{host}`")));
    }
    let which = (text("scenario")?.to_owned(), number("seed")?);
    if let Some(why) = field("skipped").as_str() {
        return Ok((which, Record::Skipped(why.to_owned())));
    }
    if !field("skipped").is_null() {
        return Err(wrong("skipped", "a text or null"));
    }
    let digest = text("digest")?.to_owned();
    if digest.len() != 16 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong("digest", "sixteen digits"));
    }
    let outcomes = serde_json::from_value(field("outcomes").clone());
    let outcomes = outcomes.map_err(|_| wrong("outcomes", "texts by name"))?;
    let host_events = field("host_events").as_array();
    let host_events = host_events.ok_or_else(|| wrong("host_events", "a list"))?.clone();
    host_events.iter().try_for_each(host_event)?;
    let (events, not_quiescent) = (number("events")?, texts("not_quiescent")?);
    let journal = texts("journal")?;
    Ok((which, Record::Done(Run { digest, events, outcomes, not_quiescent, journal, host_events })))
}

/// Whether an event of a host is whole.
fn host_event(event: &Value) -> Result<(), String> {
    let kind = event["kind"].as_str().ok_or("`host_events`: one has no kind")?;
    if !kind.starts_with("scheduler_") {
        return Ok(());
    }
    let missing = OF_A_HOST_EVENT.iter().find(|field| event["fields"].get(**field).is_none());
    match missing {
        Some(field) => Err(format!("`{kind}`: the mandatory field `{field}` is missing")),
        None => Ok(()),
    }
}
