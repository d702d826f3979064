//! One schedule of a scenario: `asx replay` and `asx shrink`.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use asx_conformance::{Host, Native, Record, Scenario, shell_word};
use asx_kernel::digest::Digest;
use asx_lab::explore::{Follow, Schedule, Shrunk, shrink};
use clap::Args;

use super::files::{Failed, Files};
use super::tape::Tape;
use super::token::{self, Token, TokenError};
use super::{Setup, lines_of_lab};
use crate::output::{COMMAND, counted, verdict};
use crate::run::scenario;

/// The options of `asx replay`.
#[derive(Args)]
pub(crate) struct Replay {
    /// A trace; or, with a token, a scenario file or the id of a built-in one.
    #[arg(value_name = "TRACE|FILE")]
    file: String,
    /// The replay token of a run, as `asx explore` printed it.
    token: Option<String>,
    /// The scenario of the trace, if it is neither built in nor where it was.
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    scenario: Option<String>,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    files: Files,
    /// Show the journal after the verdict.
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// One JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of `asx shrink`.
#[derive(Args)]
pub(crate) struct Shrink {
    /// A scenario file, or the id of a built-in one.
    file: String,
    /// The replay token of a run, as `asx explore` printed it.
    token: String,
    #[command(flatten)]
    setup: Setup,
    /// One JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs one schedule of a scenario. Returns the failure, if any, and the record.
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

/// The scenario of a file and its token, if both are usable and belong together; else an error is
/// reported.
fn named(file: &str, token: &str, asked: Setup) -> Option<(Arc<Scenario>, Token)> {
    let scenario = scenario(file)?;
    let read = lines_of_lab(&scenario).and_then(|scenario| {
        let token = Token::read(token, &scenario, asked).map_err(|error| wrong(token, &error))?;
        Ok((scenario, token))
    });
    match read {
        Ok(read) => Some(read),
        Err(wrong) => {
            complain!("asx: {wrong}");
            None
        }
    }
}

/// Runs the schedule of a token. If the run has other decisions, an error is reported.
fn follow_token(
    scenario: &Arc<Scenario>,
    text: &str,
    token: &Token,
) -> Option<(Option<String>, Record, Tape)> {
    let followed = follow(scenario, &token.schedule, token.setup);
    if followed.2.schedule() != token.schedule {
        complain!("asx: {}", wrong(text, &TokenError::NotFollowed));
        return None;
    }
    Some(followed)
}

/// An error of a token, with as much of the token as identifies it.
fn wrong(token: &str, error: &TokenError) -> String {
    format!("{}: {error}", token::shown(token))
}

/// `asx replay`.
pub(crate) fn replay(options: &Replay, out: &mut impl Write) -> io::Result<ExitCode> {
    let Some(text) = &options.token else { return replay_trace(options, out) };
    let Some((scenario, token)) = named(&options.file, text, options.setup) else {
        return Ok(ExitCode::from(2));
    };
    if let Err(wrong) = options.files.check() {
        complain!("asx: {wrong}");
        return Ok(ExitCode::from(2));
    }
    let Some((failure, record, tape)) = follow_token(&scenario, text, &token) else {
        return Ok(ExitCode::from(2));
    };
    let changes = tape.changes(&record);
    // It differs from the one that was given if that has no --expect.
    let own = Token::text(&scenario, token.setup, &token.schedule);
    let run = Failed {
        file: &options.file,
        seed: 0,
        token: &own,
        failure: failure.as_deref(),
        changes: &changes,
    };
    if let Err(wrong) = options.files.write(&scenario, token.setup, &run, &record) {
        complain!("asx: {wrong}");
        return Ok(ExitCode::from(2));
    }
    let digest = format!("{:016x}", record.digest);
    let id = &scenario.id;
    if options.json {
        writeln!(out, "{}", serde_json::json!({ "id": id, "digest": digest, "failure": failure }))?;
    } else {
        let word = verdict(failure.is_none());
        let message = failure.as_deref().unwrap_or("nothing failed");
        writeln!(out, "{word} {id}: {message}")?;
        writeln!(out, "  {}, digest {digest}", counted(record.events.len(), "event"))?;
        if options.verbose {
            record.events.iter().try_for_each(|event| writeln!(out, "  {event}"))?;
        }
    }
    Ok(if failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `asx replay TRACE`.
fn replay_trace(options: &Replay, out: &mut impl Write) -> io::Result<ExitCode> {
    let Replay { file, setup, files, scenario, json, verbose, .. } = options;
    if setup.workers > 0 || setup.expect || *verbose || !files.names().is_empty() {
        complain!("asx: --workers, --expect, --trace, --report and --verbose need a replay token");
        return Ok(ExitCode::from(2));
    }
    crate::trace::replay(file.as_ref(), scenario.as_deref(), *json, out)
}

/// A host that follows the schedule of a token of this scenario.
pub(crate) fn following(token: &str, scenario: &Scenario) -> Result<Box<dyn Host>, String> {
    let asked = Setup { workers: 0, expect: false };
    let read = Token::read(token, scenario, asked).map_err(|error| wrong(token, &error))?;
    let tape = Tape::new(Box::new(Follow::new(read.schedule)));
    tape.begin();
    let workers = read.setup.workers.into();
    Ok(Box::new(Native::asking(workers, move || Box::new(tape.clone()))))
}

/// Runs that shrinking may take.
const SHRINKING: u64 = 5000;

/// Makes a failing schedule as short as possible. Returns nothing if it does not fail, else the
/// result and the message of the failure.
pub(super) fn shrink_schedule(
    scenario: &Arc<Scenario>,
    setup: Setup,
    schedule: &Schedule,
) -> Option<(Shrunk, String)> {
    let mut message = None;
    let shrunk = shrink(schedule, SHRINKING, |schedule, log| {
        let (failure, _, tape) = follow(scenario, schedule, setup);
        log.clone_from(&tape.lock().log);
        let id = failure.as_ref().map(|text| Digest::new().bytes(text.as_bytes()).value());
        message = failure.or(message.take());
        id
    });
    Some((shrunk?, message.unwrap_or_default()))
}

/// `asx shrink`.
pub(crate) fn shrink_token(options: &Shrink, out: &mut impl Write) -> io::Result<ExitCode> {
    let Some((scenario, token)) = named(&options.file, &options.token, options.setup) else {
        return Ok(ExitCode::from(2));
    };
    if follow_token(&scenario, &options.token, &token).is_none() {
        return Ok(ExitCode::from(2));
    }
    let Token { setup, schedule } = token;
    let shrunk = shrink_schedule(&scenario, setup, &schedule);
    let Some((shrunk, message)) = shrunk else {
        match options.json {
            true => writeln!(out, "{}", serde_json::json!({ "id": scenario.id, "failure": null }))?,
            false => writeln!(
                out,
                "{} {}: nothing fails under this schedule",
                verdict(true),
                scenario.id
            )?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    let before = schedule.deviations.len();
    let after = shrunk.schedule.deviations.len();
    let token = Token::text(&scenario, setup, &shrunk.schedule);
    let (_, record, tape) = follow(&scenario, &shrunk.schedule, setup);
    let changes = tape.changes(&record);
    if options.json {
        let value = serde_json::json!({
            "id": scenario.id, "token": token, "before": before, "after": after,
            "runs": shrunk.runs, "smallest": shrunk.is_smallest, "failure": message,
        });
        writeln!(out, "{value}")?;
    } else {
        writeln!(out, "{} {}: {message}", verdict(false), scenario.id)?;
        let runs = counted(shrunk.runs, "run");
        writeln!(out, "  shrunk from {before} forced choices to {after}, in {runs}")?;
        changes.iter().try_for_each(|change| writeln!(out, "  {}", change.text))?;
        let command = format!("asx replay {} {token}", shell_word(&options.file));
        writeln!(out, "  {}", COMMAND.text(command))?;
    }
    Ok(ExitCode::FAILURE)
}
