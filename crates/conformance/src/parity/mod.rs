//! Parity records: what a host did with a scenario, so that another host can be held against it.
//!
//! ```text
//! Report -> records: one JSON object per seed and codec -> lines -> read -> Runs -> compared
//! ```
//!
//! Hosts of this program and hosts elsewhere (a browser, another machine) leave the same lines, and
//! all are read back by [`Records::read`], which refuses a line without a mandatory field: a field
//! that a host has nothing for is an explicit null, or an empty list. The digest in a line is that
//! of the journal after it went through the codec and back.
//!
//! A host that skipped lines names them in `skipped_lines`. Hosts that skipped different lines did
//! not run the same scenario; such a run is compared with that of the model without these lines.

mod read;

pub use read::{Entry, Records, Run, Which};

use crate::events::HostEvent;
use crate::host::Record;
use crate::parse::SCHEMA as SCENARIO_SCHEMA;
use crate::value::Value as Given;
use crate::{Report, Scenario, SeedRun, SkippedLine};
use asx_kernel::CONTRACT;
use asx_origin::Origin;
use asx_trace::{Codec, End, Header, Reader, Writer, verify};
use serde_json::{Map, Value, json};

/// The version of the lines.
pub const SCHEMA: u64 = 4;

/// The codecs of traces, by their names in records.
pub const CODECS: [(&str, Codec); 2] = [("json", Codec::Json), ("binary", Codec::Binary)];

/// What every line has.
pub const MANDATORY: [&str; 29] = [
    "schema",
    "contract",
    "scenario",
    "fixture",
    "seed",
    "snapshot",
    "host",
    "place",
    "codec",
    "profile",
    "build",
    "toolchain",
    "target",
    "source_commit",
    "lockfile",
    "fixture_schema",
    "scenario_schema",
    "skipped",
    "skipped_lines",
    "digest",
    "events",
    "outcomes",
    "not_quiescent",
    "journal",
    "host_events",
    "failures",
    "verdict",
    "delta",
    "repro",
];

/// What `toolchain` has.
pub const OF_TOOLCHAIN: [&str; 3] = ["release", "commit_hash", "host"];

/// What `lockfile` has.
pub const OF_LOCKFILE: [&str; 3] = ["sha256", "size", "tracked"];

/// What every event of a host's scheduler has.
pub const OF_HOST_EVENT: [&str; 10] = asx_trace::MANDATORY;

/// What can be said of a run: not compared yet, the same as on the other hosts, or not.
pub const VERDICTS: [&str; 4] = ["unjudged", "same", "different", "skipped"];

/// What a difference is taken for.
///
/// `intentional` is a scenario that a host says it cannot express; `harness_defect` a run whose
/// codecs disagree with each other; `spec_defect` one in which the model does not what the scenario
/// says while the other host does; `regression` everything else.
pub const DELTAS: [&str; 5] =
    ["none", "intentional", "regression", "spec_defect", "harness_defect"];

/// Where and by what something was run.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The host.
    pub host: &'a str,
    /// Where it was: in this program, in a browser's window or worker.
    pub place: &'a str,
    /// The profile that the host runs, if it has several: that of the C library.
    pub profile: Option<&'a str>,
    /// How it was built: `debug`, `release`, `web`.
    pub build: &'a str,
    /// What it was built from and with.
    pub origin: &'a Origin,
}

/// What stands in place of the records of a scenario that has none, and why.
pub fn no_records(why: &str) -> Value {
    json!({ "error": why })
}

/// The records of a scenario's runs, one for each seed and codec; an error if a journal does not
/// come back from a codec.
pub fn records(
    scenario: &Scenario,
    report: &Report,
    setting: &Setting<'_>,
) -> Result<Vec<Value>, String> {
    let mut records = Vec::new();
    for seed in &scenario.seeds {
        for (name, codec) in CODECS {
            let mut record = head(scenario, *seed, name, setting);
            let run = report.runs.iter().find(|run| run.seed == *seed);
            if run.is_some_and(|run| run.other_order) {
                skip(&mut record, "it is dispatched in another order; its ends are the model's");
                records.push(record.into());
                continue;
            }
            match (&report.skipped, run) {
                (Some(why), _) => skip(&mut record, why),
                (None, Some(run)) => {
                    let lines: Vec<_> = report.skipped_lines.iter().map(skipped_line).collect();
                    record.insert("skipped_lines".to_owned(), lines.into());
                    fill(&mut record, &report.ran, run, codec)?;
                }
                (None, None) => return Err(format!("{}: no run of seed {seed}", scenario.id)),
            }
            records.push(record.into());
        }
    }
    Ok(records)
}

type Object = Map<String, Value>;

fn head(scenario: &Scenario, seed: u64, codec: &str, setting: &Setting<'_>) -> Object {
    let Setting { host, place, profile, build, origin } = setting;
    let fixture = scenario.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let toolchain = &origin.toolchain;
    let lockfile = &origin.lockfile;
    object(json!({
        "schema": SCHEMA,
        "contract": CONTRACT,
        "scenario": scenario.id,
        "fixture": fixture.trim_end_matches(".toml"),
        "seed": seed,
        "snapshot": format!("{:016x}", scenario.snapshot_id(seed)),
        "host": host,
        "place": place,
        "codec": codec,
        "profile": profile,
        "build": build,
        "toolchain": {
            "release": toolchain.release,
            "commit_hash": toolchain.commit_hash,
            "host": toolchain.host,
        },
        "target": origin.target,
        "source_commit": origin.source_commit,
        "lockfile": {
            "sha256": lockfile.sha256,
            "size": lockfile.size.parse::<u64>().ok(),
            "tracked": lockfile.tracked == "true",
        },
        // A fixture is a file with one scenario: they have one version for now.
        "fixture_schema": SCENARIO_SCHEMA,
        "scenario_schema": SCENARIO_SCHEMA,
        "verdict": "unjudged",
        "delta": "none",
    }))
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn skip(record: &mut Object, why: &str) {
    record.extend(object(json!({
        "skipped": why, "skipped_lines": [], "digest": "", "events": 0, "outcomes": {},
        "not_quiescent": [], "journal": [], "host_events": [], "failures": [], "repro": null,
    })));
}

fn fill(
    record: &mut Object,
    scenario: &Scenario,
    run: &SeedRun,
    codec: Codec,
) -> Result<(), String> {
    let left = &run.record;
    let digest = there_and_back(&scenario.id, left, codec)?;
    let statuses: Vec<_> = left.not_quiescent.iter().map(|status| status.name()).collect();
    let expected = scenario.expect.fingerprints.iter().map(|print| format!("{print:016x}"));
    record.extend(object(json!({
        "skipped": null,
        "digest": format!("{digest:016x}"),
        "events": left.recorded,
        "outcomes": left.outcomes,
        "not_quiescent": statuses,
        "journal": run.journal,
        "host_events": left.host_events.iter().map(host_event).collect::<Vec<_>>(),
        "failures": run.failures.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "expected": expected.collect::<Vec<_>>(),
        "repro": run.repro,
    })));
    Ok(())
}

fn skipped_line(line: &SkippedLine) -> Value {
    let SkippedLine { line, offset, what, why } = line;
    json!({ "line": line, "offset": offset, "what": what, "why": why })
}

fn host_event(event: &HostEvent) -> Value {
    let fields = event.fields.iter();
    let fields: Object = fields.map(|(name, given)| ((*name).to_owned(), plain(given))).collect();
    json!({ "kind": event.kind, "fields": fields })
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

/// The digest of a journal as a reader of its trace finds it. Of a journal that has lost events the
/// trace can only repeat what was said at its end.
fn there_and_back(id: &str, record: &Record, codec: Codec) -> Result<u64, String> {
    let kept = record.events.len() as u64;
    let lost = record.recorded.saturating_sub(kept);
    let complete = record.events.first().is_none_or(|event| event.seq == 0);
    let header = Header { complete, ..Header::new(id, "parity") };
    let written = Writer::new(Vec::new(), codec, &header).and_then(|mut writer| {
        record.events.iter().try_for_each(|event| writer.write(&(*event).into()))?;
        let recorded = record.recorded;
        let digest = record.digest;
        writer.write(&End { recorded, lost, digest, choices: 0 }.into())?;
        writer.finish()
    });
    let bytes = written.map_err(|error| format!("{id}: the trace: {error}"))?;
    let mut reader =
        Reader::open(&bytes[..]).map_err(|error| format!("{id}: the trace: {error}"))?;
    let report = verify(&mut reader, false);
    match report.end {
        Some(end) if lost > 0 => Ok(end.digest),
        Some(_) => Ok(report.digest),
        None => Err(format!("{id}: the trace has no end: {:?}", report.violations)),
    }
}
