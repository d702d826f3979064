//! What a run that failed leaves behind: a folder to look at, and the call that makes it again.
//!
//! ```text
//! FOLDER/ID-SEED-HOST/
//!   script.txt      the scenario
//!   HOST.log         the journal of the run that failed
//!   OTHER.log        that of the same run on another host: the model, or native for the model
//!   difference.txt   what did not hold, and the first event in which the two logs differ
//!   summary.json     fixture, seed, host, contract, snapshot, failures, repro
//! ```

use crate::conform::{host, problems_of};
use asx_conformance::{Report, Scenario, SeedRun, run_seeds, shell_word};
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

fn write_run(
    scenario: &Arc<Scenario>,
    text: &str,
    report: &Report,
    run: &SeedRun,
    folder: &Path,
) -> Result<(), String> {
    let name = report.host;
    let other = if name == "model" { "native" } else { "model" };
    let against = run_seeds(&mut *host(other), scenario, &[run.seed]);
    let log = match (&against.skipped, against.runs.first()) {
        (Some(why), _) => vec![format!("not run on {other}: {why}")],
        (None, Some(run)) => run.journal.clone(),
        (None, None) => Vec::new(),
    };
    let mut told: String =
        problems_of(report, run).iter().map(|line| format!("{line}\n")).collect();
    let longest = run.journal.len().max(log.len());
    let first = (0..longest).find(|at| run.journal.get(*at) != log.get(*at));
    let sides = first.map(|at| [run.journal.get(at), log.get(at)]);
    match (first, sides) {
        (Some(at), Some(sides)) => {
            let _ = writeln!(told, "the logs part at event {at}");
            for (host, line) in [name, other].iter().zip(sides) {
                let _ = writeln!(told, "    {host:<8} {}", line.map_or("(the end)", |it| it));
            }
        }
        _ => told += "the logs are the same\n",
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
        "failures": failures,
        "first_divergence": first.zip(sides).map(|(event, [left, right])| {
            serde_json::json!({ "event": event, "left": left, "right": right })
        }),
        "repro": repro(run, Some(folder)),
    });
    let lines = |log: &[String]| log.iter().map(|line| format!("{line}\n")).collect::<String>();
    let files = [
        ("script.txt".to_owned(), text.to_owned()),
        (format!("{name}.log"), lines(&run.journal)),
        (format!("{other}.log"), lines(&log)),
        ("difference.txt".to_owned(), told),
        ("summary.json".to_owned(), format!("{summary:#}\n")),
    ];
    let folder = folder.join(format!("{}-{}-{name}", report.id, run.seed));
    let failed = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text)).map_err(failed)
}
