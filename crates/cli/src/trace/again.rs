//! `asx replay TRACE`: runs a recorded scenario again, and compares event by event.

use crate::HOSTS;
use crate::conform::host;
use crate::explore::following;
use crate::output::printable;
use crate::run::scenario;
use asx_conformance::{Host, Replayed, Scenario, expressible, run_against};
use asx_kernel::journal::Event;
use asx_kernel::status::{Coded, Status};
use asx_trace::{Header, Mismatch, Monitor, MonitorError, Reader};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Why there is nothing to compare.
struct Unusable {
    why: String,
    /// What is wrong with the trace, if that is it.
    status: Option<Status>,
}

impl From<String> for Unusable {
    fn from(why: String) -> Unusable {
        Unusable { why, status: None }
    }
}

/// What came of it, and of what.
struct Compared {
    id: String,
    host: &'static str,
    seed: u64,
    result: Result<Replayed, Box<Mismatch>>,
}

/// Runs the scenario of a trace again; `named`: of this file or id, and not of that in the trace.
pub(crate) fn replay(
    path: &Path,
    named: Option<&str>,
    json: bool,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    match run_again(path, named) {
        Ok(compared) => {
            if json {
                write_json(path, &compared, out)?;
            } else {
                write_text(&compared, out)?;
            }
            Ok(super::holds(compared.result.is_ok()))
        }
        Err(Unusable { why, status }) => {
            let why = format!("{}: {why}", path.display());
            complain!("asx: {}", printable(&why));
            if json {
                let status = status.map(Status::name);
                writeln!(out, "{}", serde_json::json!({ "error": why, "status": status }))?;
            }
            Ok(ExitCode::from(2))
        }
    }
}

fn run_again(path: &Path, named: Option<&str>) -> Result<Compared, Unusable> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let reader = Reader::open(file).map_err(unread)?;
    let header = reader.header().clone();
    let scenario = scenario_of(&header, named)?;
    let (mut host, seed) = host_of(&header, &scenario)?;
    let scenario = expressible(&*host, &scenario)?.scenario;
    let name = host.name();
    let result = match run_against(&mut *host, &scenario, seed, Monitor::new(reader)) {
        Ok(replayed) => Ok(replayed),
        Err(MonitorError::Mismatch(mismatch)) => Err(mismatch),
        Err(MonitorError::Unread(error)) => return Err(unread(error)),
    };
    Ok(Compared { id: scenario.id.clone(), host: name, seed: header.seed, result })
}

fn unread(error: asx_trace::Error) -> Unusable {
    Unusable { why: error.to_string(), status: Some(error.status()) }
}

/// What the header says under this name.
fn meta<'a>(header: &'a Header, name: &str) -> Option<&'a str> {
    header.meta.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
}

/// The scenario that was run: of the file the trace names if that is there, else the built-in one.
fn scenario_of(header: &Header, named: Option<&str>) -> Result<Arc<Scenario>, Unusable> {
    let id = &header.program;
    let file = meta(header, "file").filter(|file| Path::new(file).exists());
    let found = scenario(named.or(file).unwrap_or(id)).ok_or_else(|| {
        format!("its scenario `{id}` is not to be had: say which file it is in (--scenario)")
    })?;
    if found.id != *id {
        return Err(format!("this is a trace of `{id}`, and not of `{}`", found.id).into());
    }
    Ok(found)
}

/// The host it was run on, and the seed to run it under.
fn host_of(header: &Header, scenario: &Scenario) -> Result<(Box<dyn Host>, u64), Unusable> {
    if let Some(token) = meta(header, "token") {
        return Ok((following(token, scenario)?, 0));
    }
    let name = header.host.as_str();
    if !HOSTS.contains(&name) {
        let why = format!("there is no host `{name}` to run it on; there are {}", HOSTS.join(", "));
        return Err(why.into());
    }
    Ok((host(name), header.seed))
}

fn write_text(compared: &Compared, out: &mut impl Write) -> io::Result<()> {
    let Compared { id, host, seed, result } = compared;
    writeln!(out, "{id} on {host}, seed {seed}")?;
    match result {
        Ok(Replayed { events, decisions, digest }) => {
            writeln!(out, "the same: {events} events, {decisions} decisions, digest {digest:016x}")
        }
        Err(mismatch) => {
            let Mismatch { seq, place, recorded, got, digests } = &**mismatch;
            writeln!(out, "{}: they part at event {seq} ({place})", mismatch.status().name())?;
            for (sign, side, digest) in [("-", recorded, digests[0]), ("+", got, digests[1])] {
                writeln!(out, "{sign} {} (digest {digest:016x})", shown(side))?;
            }
            Ok(())
        }
    }
}

fn shown(event: &Option<Event>) -> String {
    event.map_or("the end".to_owned(), |event| event.to_string())
}

fn write_json(path: &Path, compared: &Compared, out: &mut impl Write) -> io::Result<()> {
    let Compared { id, host, seed, result } = compared;
    let mut object = serde_json::json!({
        "file": path.display().to_string(), "id": id, "host": host, "seed": seed,
    });
    let hex = |digest: u64| format!("{digest:016x}");
    let result = match result {
        Ok(Replayed { events, decisions, digest }) => serde_json::json!({
            "same": true, "status": Status::Ok.name(), "events": events, "decisions": decisions,
            "digest": hex(*digest),
        }),
        Err(mismatch) => serde_json::json!({
            "same": false, "status": mismatch.status().name(), "event": mismatch.seq,
            "place": mismatch.place.to_string(),
            "recorded": mismatch.recorded.map(|event| event.to_string()),
            "now": mismatch.got.map(|event| event.to_string()),
            "digests": mismatch.digests.map(hex),
        }),
    };
    if let (Some(object), serde_json::Value::Object(more)) = (object.as_object_mut(), result) {
        object.extend(more);
    }
    writeln!(out, "{object}")
}
