//! What a run that failed leaves behind: a folder to look at, and the call that makes it again.
//!
//! ```text
//! FOLDER/ID-SEED-HOST/
//!   script.txt      the scenario
//!   HOST.log         the journal of the run that failed, then its host events
//!   OTHER.log        the same of another host: the model; for the model web or native
//!   difference.txt   what did not hold, and the first event in which the two logs differ
//!   summary.json     fixture, seed, host, contract, snapshot, skipped lines, failures, repro
//! ```

use crate::conform::{host, problems_of};
use asx_conformance::{Report, Scenario, SeedRun, SkippedLine, run_seeds, shell_word};
use asx_kernel::CONTRACT;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The call that shows a failure again, and makes its folder again if there is one.
pub(crate) fn repro(run: &SeedRun, folder: Option<&Path>) -> String {
    match folder {
        Some(folder) => {
            format!("{} --out {}", run.repro, shell_word(&folder.display().to_string()))
        }
        None => run.repro.clone(),
    }
}

/// Writes a folder for each run that failed; an error if that cannot be done.
pub(crate) fn write(
    scenario: &Arc<Scenario>,
    text: &str,
    report: &Report,
    folder: &Path,
) -> Result<(), String> {
    for run in report.runs.iter().filter(|run| !run.failures.is_empty()) {
        write_run(scenario, text, report, run, folder)?;
    }
    Ok(())
}

/// What a line of a host event begins with in a log.
const HOST_ONLY: &str = "host only: ";

/// The journal of a run, then its host events if the scenario has an event loop.
fn log_of(run: &SeedRun, has_loop: bool) -> Vec<String> {
    let host_events = run.host_events.iter().filter(|_| has_loop);
    let host_events = host_events.map(|line| format!("{HOST_ONLY}{line}"));
    run.journal.iter().cloned().chain(host_events).collect()
}

/// The lines that a host skipped, as JSON.
pub(crate) fn skipped_lines_of(report: &Report) -> Vec<serde_json::Value> {
    let line = |skipped: &SkippedLine| {
        let SkippedLine { line, what, why, .. } = skipped;
        serde_json::json!({ "line": line, "what": what, "why": why })
    };
    report.skipped_lines.iter().map(line).collect()
}

fn write_run(
    scenario: &Arc<Scenario>,
    text: &str,
    report: &Report,
    run: &SeedRun,
    folder: &Path,
) -> Result<(), String> {
    let name = report.host;
    let other = match name {
        "model" if scenario.config.browser.is_some() => "web",
        "model" => "native",
        _ => "model",
    };
    // The other host runs the lines that this one ran.
    let against = run_seeds(&mut *host(other), &report.ran, &[run.seed]);
    let skipped_lines = against.skipped_lines.len();
    // Without an event loop in the scenario, host events are a matter of one host alone.
    let has_loop = scenario.config.browser.is_some();
    let own = log_of(run, has_loop);
    let log = match (&against.skipped, against.runs.first()) {
        (Some(why), _) => vec![format!("not run on {other}: {why}")],
        (None, _) if skipped_lines > 0 => {
            vec![format!("not run on {other}: it cannot express {skipped_lines} lines")]
        }
        (None, Some(run)) => log_of(run, has_loop),
        (None, None) => Vec::new(),
    };
    let mut told: String =
        problems_of(report, run).iter().map(|line| format!("{line}\n")).collect();
    let longest = own.len().max(log.len());
    let first = (0..longest).find(|at| own.get(*at) != log.get(*at));
    let sides = first.map(|at| [own.get(at), log.get(at)]);
    match (first, sides) {
        (Some(at), Some(sides)) => {
            let _ = match at.checked_sub(run.journal.len()) {
                Some(at) if sides.iter().flatten().all(|line| line.starts_with(HOST_ONLY)) => {
                    writeln!(told, "the journals are the same; the logs part at host event {at}")
                }
                _ => writeln!(told, "the logs part at event {at}"),
            };
            for (host, line) in [name, other].iter().zip(sides) {
                let _ = writeln!(told, "    {host:<8} {}", line.map_or("(the end)", |it| it));
            }
        }
        _ => {
            let _ = writeln!(
                told,
                "the logs are the same on both hosts, {} host events included: \
                 what the scenario expects differs from both",
                own.len() - run.journal.len()
            );
        }
    }
    let failures: Vec<_> = run.failures.iter().map(ToString::to_string).collect();
    let summary = serde_json::json!({
        "fixture": report.id,
        "scenario": report.id,
        "seed": run.seed,
        "host": name,
        "compared_with": other,
        "contract": CONTRACT,
        "snapshot": format!("{:016x}", run.snapshot),
        "skipped_lines": skipped_lines_of(report),
        "failures": failures,
        "first_divergence": first.zip(sides).map(|(event, [left, right])| {
            serde_json::json!({ "event": event, "left": left, "right": right })
        }),
        "repro": repro(run, Some(folder)),
    });
    let lines = |log: &[String]| log.iter().map(|line| format!("{line}\n")).collect::<String>();
    let files = [
        ("script.txt".to_owned(), text.to_owned()),
        (format!("{name}.log"), lines(&own)),
        (format!("{other}.log"), lines(&log)),
        ("difference.txt".to_owned(), told),
        ("summary.json".to_owned(), format!("{summary:#}\n")),
    ];
    let folder = folder.join(format!("{}-{}-{name}", report.id, run.seed));
    let failed = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text)).map_err(failed)
}
