//! A run of a scenario as a trace, or as a page.

use super::{Failed, file, report};
use asx_conformance::events::{HostEvent as Seen, Named};
use asx_conformance::value::Value as Given;
use asx_conformance::{Record, Report, Scenario, SeedRun};
use asx_report::{Cause, PAGE_EVENTS, Run, html};
use asx_trace::{
    Class, Codec, End, ErrorKind, Header, HostEvent, Label, Limits, Mark, Reader, Sink, Value,
    Writer,
};
use std::path::Path;

/// A run of a scenario, to be written.
pub(crate) struct Recording<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) host: &'a str,
    pub(crate) seed: u64,
    pub(crate) workers: u64,
    /// What else its header says.
    pub(crate) meta: Vec<(String, String)>,
    pub(crate) record: &'a Record,
    /// What did not hold, in words.
    pub(crate) failures: Vec<String>,
}

impl<'a> Recording<'a> {
    /// A run of a report.
    pub(crate) fn of(scenario: &'a Scenario, report: &'a Report, run: &'a SeedRun) -> Self {
        Recording {
            scenario,
            host: report.host,
            seed: run.seed,
            workers: scenario.config.workers as u64,
            meta: match run.failures.first() {
                None => Vec::new(),
                Some(failure) => Cause {
                    kind: "expectation".to_owned(),
                    message: failure.to_string(),
                    replay: Some(run.repro.clone()),
                    ..Cause::default()
                }
                .meta(),
            },
            record: &run.record,
            failures: run.failures.iter().map(ToString::to_string).collect(),
        }
    }

    /// Writes it as a trace; answers what went wrong.
    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let write = || {
            let codec = file::codec(path, None)?;
            let (draft, sink) = file::Draft::new(path, Path::new(&self.scenario.file))?;
            let written = self.encode(sink, codec);
            written.map_err(|error| file::unusable(path, &error))?;
            draft.keep()
        };
        write().map_err(said)
    }

    /// Writes it as a page; answers what went wrong.
    pub(crate) fn page(&self, path: &Path) -> Result<(), String> {
        let write = || {
            let unusable = |error: &dyn std::fmt::Display| file::unusable(path, error);
            let mut bytes = Vec::new();
            self.encode(&mut bytes, Codec::Binary).map_err(|error| unusable(&error))?;
            let reader = Reader::open(&bytes[..]).map_err(|error| unusable(&error))?;
            let run = Run::read(reader, PAGE_EVENTS).map_err(|error| unusable(&error))?;
            report::write(path, Path::new(&self.scenario.file), || html(&run))
        };
        write().map(drop).map_err(said)
    }

    fn encode(&self, sink: impl Sink, codec: Codec) -> Result<(), ErrorKind> {
        let Recording { scenario, host, seed, workers, record, .. } = *self;
        let snapshot = format!("{:016x}", scenario.snapshot_id(seed));
        let own = [("title", &scenario.title), ("file", &scenario.file), ("snapshot", &snapshot)];
        let meta = own.into_iter().map(|(key, value)| (key.to_owned(), value.clone()));
        let meta = meta.chain(self.meta.iter().cloned());
        let header = Header {
            seed,
            workers,
            complete: record.events.first().is_none_or(|event| event.seq == 0),
            meta: meta.map(|(key, value)| (key, clipped(&value))).collect(),
            ..Header::new(clipped(&scenario.id), host)
        };
        fill(Writer::new(sink, codec, &header)?, record, &self.failures)
    }
}

/// Whether the name of a trace says in which codec it is to be.
pub(crate) fn known_codec(path: &Path) -> Result<(), String> {
    file::codec(path, None).map(drop).map_err(said)
}

fn said(failed: Failed) -> String {
    match failed {
        Failed::Input(why) => why,
        Failed::Output(error) => error.to_string(),
    }
}

/// Names first, so that a reader knows them when they are due.
fn fill(
    mut writer: Writer<impl Sink>,
    record: &Record,
    failures: &[String],
) -> Result<(), ErrorKind> {
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
        for failure in failures {
            let severity = "failure".to_owned();
            let text = clipped(failure);
            writer.write(&Mark { seq: last.seq, severity, text }.into())?;
        }
    }
    let recorded = record.recorded;
    let digest = record.digest;
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
