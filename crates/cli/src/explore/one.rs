//! One schedule of a scenario: `asx replay` and `asx shrink`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use asx_conformance::{Host, Native, Record, Scenario};
use asx_kernel::digest::Digest;
use asx_lab::explore::{Follow, Schedule, shrink};
use clap::Args;

use super::Setup;
use super::files::{Failed, Files};
use super::tape::Tape;
use crate::run::scenario;

/// What `asx replay` is asked.
#[derive(Args)]
pub(crate) struct Replay {
    /// A trace; or, with a token, a scenario file or the id of a built-in one.
    #[arg(value_name = "TRACE|FILE")]
    file: String,
    /// Names a schedule, as `asx explore` printed it.
    token: Option<String>,
    /// The scenario of the trace, if it is neither built in nor where it was.
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    scenario: Option<String>,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    files: Files,
    /// One JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `asx shrink` is asked.
#[derive(Args)]
pub(crate) struct Shrink {
    /// A scenario file, or the id of a built-in one.
    file: String,
    /// Names the schedule, as `asx explore` printed it.
    token: String,
    #[command(flatten)]
    setup: Setup,
    /// One JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// One schedule of a scenario: what did not hold, and the record.
pub(super) fn follow(
    scenario: &Arc<Scenario>,
    schedule: &Schedule,
    setup: Setup,
) -> (Option<String>, Record, Tape) {
    let tape = Tape::new(Box::new(Follow::new(schedule.clone())));
    tape.begin();
    let (failure, record) = tape.run(scenario, setup);
    (failure, record, tape)
}

/// The scenario and schedule that were asked for; says what is wrong with them.
fn named(file: &str, token: &str) -> Option<(Arc<Scenario>, Schedule)> {
    let scenario = scenario(file)?;
    let known = Native::in_lab().can_run(&scenario);
    let schedule = known.and_then(|()| schedule_of(token));
    match schedule {
        Ok(schedule) => Some((scenario, schedule)),
        Err(wrong) => {
            complain!("asx: {wrong}");
            None
        }
    }
}

/// The schedule of a token; else what is wrong with it, with as much of it as tells which it is.
pub(super) fn schedule_of(token: &str) -> Result<Schedule, String> {
    const SHOWN: usize = 64;
    Schedule::from_token(token).map_err(|error| match token.char_indices().nth(SHOWN) {
        None => format!("{token}: {error}"),
        Some((at, _)) => format!("{}..: {error}", &token[..at]),
    })
}

/// `asx replay`.
pub(crate) fn replay(options: &Replay, out: &mut impl Write) -> io::Result<ExitCode> {
    let Some(token) = &options.token else { return replay_trace(options, out) };
    let Some((scenario, schedule)) = named(&options.file, token) else {
        return Ok(ExitCode::from(2));
    };
    if let Err(wrong) = options.files.check() {
        complain!("asx: {wrong}");
        return Ok(ExitCode::from(2));
    }
    let (failure, record, _) = follow(&scenario, &schedule, options.setup);
    let run = Failed { seed: 0, token, failure: failure.as_deref() };
    if let Err(wrong) = options.files.write(&scenario, options.setup, &run, &record) {
        complain!("asx: {wrong}");
        return Ok(ExitCode::from(2));
    }
    let digest = format!("{:016x}", record.digest);
    if options.json {
        let id = &scenario.id;
        writeln!(out, "{}", serde_json::json!({ "id": id, "digest": digest, "failure": failure }))?;
    } else {
        record.events.iter().try_for_each(|event| writeln!(out, "{event}"))?;
        writeln!(out, "digest {digest}")?;
        writeln!(out, "{}", failure.as_deref().unwrap_or("nothing failed"))?;
    }
    Ok(if failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `asx replay TRACE`.
fn replay_trace(options: &Replay, out: &mut impl Write) -> io::Result<ExitCode> {
    let Replay { file, setup, files, scenario, json, .. } = options;
    if setup.workers > 0 || setup.expect || !files.names().is_empty() {
        complain!("asx: --workers, --expect, --trace and --report are for a schedule: its token?");
        return Ok(ExitCode::from(2));
    }
    crate::trace::replay(file.as_ref(), scenario.as_deref(), *json, out)
}

/// A host that follows the schedule of a token, on so many workers; 0: as the scenario says.
pub(crate) fn following(token: &str, workers: usize) -> Result<Box<dyn Host>, String> {
    let tape = Tape::new(Box::new(Follow::new(schedule_of(token)?)));
    tape.begin();
    Ok(Box::new(Native::asking(workers, move || Box::new(tape.clone()))))
}

/// Runs that shrinking may take.
const SHRINKING: u64 = 5000;

/// `asx shrink`.
pub(crate) fn shrink_token(options: &Shrink, out: &mut impl Write) -> io::Result<ExitCode> {
    let Some((scenario, schedule)) = named(&options.file, &options.token) else {
        return Ok(ExitCode::from(2));
    };
    let mut message = None;
    let shrunk = shrink(&schedule, SHRINKING, |schedule, log| {
        let (failure, _, tape) = follow(&scenario, schedule, options.setup);
        log.clone_from(&tape.lock().log);
        let id = failure.as_ref().map(|text| Digest::new().bytes(text.as_bytes()).value());
        message = failure.or(message.take());
        id
    });
    let Some(shrunk) = shrunk else {
        match options.json {
            true => writeln!(out, "{}", serde_json::json!({ "id": scenario.id, "failure": null }))?,
            false => writeln!(out, "nothing fails under this schedule")?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    let before = schedule.deviations.len();
    let after = shrunk.schedule.deviations.len();
    let token = shrunk.schedule.token();
    let words = shrunk.log.words(|task| format!("{task:?}"));
    if options.json {
        let value = serde_json::json!({
            "id": scenario.id, "token": token, "before": before, "after": after,
            "runs": shrunk.runs, "smallest": shrunk.is_smallest, "failure": message,
        });
        writeln!(out, "{value}")?;
    } else {
        writeln!(out, "{before} forced choices became {after}, in {} runs", shrunk.runs)?;
        words.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        writeln!(out, "{}", message.unwrap_or_default())?;
        writeln!(out, "asx replay {} {token}{}", options.file, options.setup)?;
    }
    Ok(ExitCode::FAILURE)
}
