//! `asx run`: one scenario, with its verdict and, if asked for, its journal.

use crate::conform::{host, problems};
use crate::output::{self, WARNING, counted, printable, verdict};
use crate::trace::Recording;
use crate::{Run, bless, failed};
use asx_conformance::parse::suggest;
use asx_conformance::{
    Fixture, Report, Scenario, SchemaError, SeedRun, corpus, parse_str, run_seeds,
};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn run(options: &Run, out: &mut impl Write) -> io::Result<ExitCode> {
    let Some(fixture) = find(&options.file) else { return Ok(ExitCode::from(2)) };
    let scenario = match read(&fixture) {
        Ok(scenario) => scenario,
        Err(errors) => {
            if options.json {
                write_errors(&errors, out)?;
            }
            return Ok(ExitCode::from(2));
        }
    };
    let seeds = options.seed.as_ref().map_or(&scenario.seeds[..], std::slice::from_ref);
    if options.trace.is_some() && seeds.len() != 1 {
        complain!("asx: a trace is of one run, and there are {} seeds: --seed", seeds.len());
        return Ok(ExitCode::from(2));
    }
    let mut host = host(&options.host);
    let report = run_seeds(&mut *host, &scenario, seeds);
    if options.bless {
        return bless::bless(&fixture, &report, out);
    }
    if let (Some(path), Some(run)) = (&options.trace, report.runs.first())
        && let Err(wrong) = Recording::of(&scenario, &report, run).write(path)
    {
        complain!("asx: {wrong}");
        return Ok(ExitCode::from(2));
    }
    if let Some(folder) = &options.out
        && let Err(wrong) = failed::write(&scenario, &fixture.text, &report, folder)
    {
        complain!("asx: {wrong}");
        return Ok(ExitCode::from(2));
    }
    let folder = options.out.as_deref();
    if options.json {
        write_json(&report, folder, out)?;
    } else {
        write_text(&scenario, &report, options, out)?;
    }
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The scenario of a file or a built-in id; says what is wrong with it.
pub(crate) fn scenario(file: &str) -> Option<Arc<Scenario>> {
    read(&find(file)?).ok()
}

/// Reads a scenario; says what is wrong with it.
fn read(fixture: &Fixture) -> Result<Arc<Scenario>, Vec<SchemaError>> {
    let scenario = parse_str(&fixture.file, &fixture.text).map(Arc::new);
    for error in scenario.as_ref().err().into_iter().flatten() {
        complain!("{}", printable(&error.to_string()));
    }
    scenario
}

fn write_errors(errors: &[SchemaError], out: &mut impl Write) -> io::Result<()> {
    let error = |error: &SchemaError| {
        let SchemaError { file, line, key, expected } = error;
        serde_json::json!({ "file": file, "line": line, "key": key, "expected": expected })
    };
    let errors: Vec<_> = errors.iter().map(error).collect();
    writeln!(out, "{}", serde_json::json!({ "passed": false, "errors": errors }))
}

/// The file, or the built-in scenario of that id.
fn find(file: &str) -> Option<Fixture> {
    match corpus::read(file.as_ref()) {
        Ok(text) => Some(Fixture { file: file.to_owned(), text }),
        Err(error) => {
            // A built-in one may also be named by the path it has in the repository.
            let found = corpus().into_iter().find(|own| own.stem() == file || own.file == file);
            if found.is_none() {
                let ids: Vec<_> = corpus().iter().map(|own| own.stem().to_owned()).collect();
                let near = suggest::nearest(file, ids.iter().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean `{near}`?"));
                let hint = hint.unwrap_or_default();
                complain!("asx: {error}; no built-in scenario is called so either{hint}");
            }
            found
        }
    }
}

/// Writes the verdict, then what failed, then the runs; their journals only if asked for.
fn write_text(
    scenario: &Scenario,
    report: &Report,
    options: &Run,
    out: &mut impl Write,
) -> io::Result<()> {
    let id = &scenario.id;
    let title = printable(&scenario.title);
    if let Some(reason) = &report.skipped {
        let word = WARNING.text("skipped");
        return writeln!(out, "{word} {id}: {title}\n  on {}: {reason}", report.host);
    }
    writeln!(out, "{} {id}: {title}", verdict(report.passed()))?;
    if !report.skipped_lines.is_empty() {
        let count = counted(report.skipped_lines.len(), "line");
        let word = WARNING.text("in part");
        writeln!(out, "  {word}: {} does not run {count}", report.host)?;
        output::skipped_lines(&report.skipped_lines, out)?;
    }
    for line in problems(report, options.out.as_deref()) {
        writeln!(out, "  {}", printable(&line))?;
    }
    if scenario.expect.fingerprints.is_empty() {
        let word = WARNING.text("warning");
        writeln!(out, "  {word}: no fingerprint in the file (--bless writes it)")?;
    }
    for run in &report.runs {
        let SeedRun { seed, snapshot, fingerprint, .. } = run;
        writeln!(out, "  seed {seed}: snapshot {snapshot:016x}, fingerprint {fingerprint:016x}")?;
        if options.verbose {
            write_journal(run, out)?;
        }
    }
    Ok(())
}

fn write_journal(run: &SeedRun, out: &mut impl Write) -> io::Result<()> {
    run.journal.iter().try_for_each(|line| writeln!(out, "    {line}"))?;
    if !run.host_events.is_empty() {
        writeln!(out, "    host only:")?;
    }
    run.host_events.iter().try_for_each(|line| writeln!(out, "      {line}"))
}

fn write_json(report: &Report, folder: Option<&Path>, out: &mut impl Write) -> io::Result<()> {
    let runs: Vec<_> = report
        .runs
        .iter()
        .map(|run| {
            let failures: Vec<_> = run
                .failures
                .iter()
                .map(|failure| {
                    serde_json::json!({
                        "line": failure.line,
                        "what": failure.what,
                        "expected": failure.expected,
                        "got": failure.got,
                    })
                })
                .collect();
            serde_json::json!({
                "seed": run.seed,
                "snapshot": format!("{:016x}", run.snapshot),
                "fingerprint": format!("{:016x}", run.fingerprint),
                "failures": failures,
                "journal": run.journal,
                "host_events": run.host_events,
                "repro": failed::repro(run, folder),
            })
        })
        .collect();
    let object = serde_json::json!({
        "contract": asx_kernel::CONTRACT,
        "id": report.id,
        "file": report.file,
        "host": report.host,
        "passed": report.passed(),
        "skipped": report.skipped,
        "skipped_lines": failed::skipped_lines_of(report),
        "runs": runs,
    });
    writeln!(out, "{object}")
}
