//! `asx run --trace`: a run of a scenario as a trace.

use super::{Failed, file};
use asx_conformance::host::HostEvent as Seen;
use asx_conformance::pattern::Named;
use asx_conformance::value::Value as Given;
use asx_conformance::{Report, Scenario, SeedRun};
use asx_trace::{
    Class, End, ErrorKind, Header, HostEvent, Label, Limits, Mark, Sink, Value, Writer,
};
use std::path::Path;

/// Writes a run; answers what went wrong.
pub(crate) fn record(
    path: &Path,
    scenario: &Scenario,
    report: &Report,
    run: &SeedRun,
) -> Result<(), String> {
    let write = || {
        let codec = file::codec(path, None)?;
        let (draft, sink) = file::Draft::new(path, Path::new(&scenario.file))?;
        let header = header(scenario, report, run);
        let written = Writer::new(sink, codec, &header).and_then(|writer| fill(writer, run));
        written.map_err(|error| file::unusable(path, &error))?;
        draft.keep()
    };
    write().map_err(|failed| match failed {
        Failed::Input(why) => why,
        Failed::Output(error) => error.to_string(),
    })
}

fn header(scenario: &Scenario, report: &Report, run: &SeedRun) -> Header {
    Header {
        seed: run.seed,
        workers: scenario.config.workers as u64,
        complete: run.record.events.first().is_none_or(|event| event.seq == 0),
        meta: vec![("title".to_owned(), clipped(&scenario.title))],
        ..Header::new(clipped(&scenario.id), report.host)
    }
}

/// Names first, so that a reader knows them when they are due.
fn fill(mut writer: Writer<impl Sink>, run: &SeedRun) -> Result<(), ErrorKind> {
    let record = &run.record;
    for (kind, number, name) in record.names.iter() {
        let class = match kind {
            Named::Task => Class::Task,
            Named::Region => Class::Region,
            Named::Timer => Class::Timer,
            Named::Channel => Class::Channel,
            Named::Permit | Named::Obligation | Named::Definition => continue,
        };
        writer.write(&Label { class, number, text: clipped(name) }.into())?;
    }
    for event in &record.events {
        writer.write(&(*event).into())?;
    }
    for (seq, event) in (0..).zip(&record.host_events) {
        writer.write(&host_event(seq, event).into())?;
    }
    if let Some(last) = record.events.last() {
        for failure in &run.failures {
            let (severity, text) = ("failure".to_owned(), clipped(&failure.to_string()));
            writer.write(&Mark { seq: last.seq, severity, text }.into())?;
        }
    }
    let (recorded, digest) = (record.recorded, record.digest);
    let lost = recorded - record.events.len() as u64;
    writer.write(&End { recorded, lost, digest, choices: 0 }.into())?;
    writer.finish().map(drop)
}

fn host_event(seq: u64, event: &Seen) -> HostEvent {
    let value = |value: &Option<Given>| match value {
        None => Value::Null,
        Some(Given::Bool(flag)) => Value::Flag(*flag),
        Some(Given::Int(number)) if u64::try_from(*number).is_ok() => Value::Number(*number as u64),
        Some(other) => Value::Text(clipped(&other.to_string())),
    };
    let fields = event.fields.iter().map(|(name, given)| ((*name).to_owned(), value(given)));
    HostEvent { seq, kind: event.kind.to_owned(), fields: fields.collect() }
}

/// As much of a text as a trace may hold.
fn clipped(text: &str) -> String {
    text[..text.floor_char_boundary(Limits::default().text)].to_owned()
}
