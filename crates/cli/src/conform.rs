//! `asx conform`: many scenarios, one verdict.

use crate::output::{self, WARNING};
use crate::{Conform, failed};
use asx_conformance::corpus::load;
use asx_conformance::{
    C, Fixture, Host, Model, Native, Report, SeedRun, SkippedLine, corpus, parse_str, run_scenario,
};
use asx_kernel::CONTRACT;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// How one scenario went.
struct Verdict {
    id: String,
    area: String,
    /// What did not hold, ready to print; empty if all did.
    problems: Vec<String>,
    skipped: Option<String>,
    /// The lines that the host skipped, for people and as JSON.
    skipped_lines: Vec<SkippedLine>,
    skipped_json: Vec<serde_json::Value>,
    /// Whether a run was dispatched in another order than the model's.
    other_order: bool,
    /// Which state each run began with, by seed.
    snapshots: BTreeMap<u64, String>,
    /// Why what is left of a failure could not be written.
    unwritten: Option<String>,
}

pub(crate) fn conform(options: &Conform, out: &mut impl Write) -> io::Result<ExitCode> {
    let fixtures = match &options.fixtures {
        Some(folder) => match load(folder) {
            Ok(fixtures) => fixtures,
            Err(error) => {
                complain!("asx: {}: {error}", folder.display());
                return Ok(ExitCode::from(2));
            }
        },
        None => corpus(),
    };
    let wanted = |id: &str| options.filter.as_deref().is_none_or(|glob| matches(glob, id));
    let fixtures: Vec<_> = fixtures.into_iter().filter(|fixture| wanted(fixture.stem())).collect();
    if fixtures.is_empty() {
        match &options.filter {
            Some(glob) => complain!("asx: no scenario matches `{glob}`; --list shows all ids"),
            None => complain!("asx: there are no scenarios (files *.toml) in the folder"),
        }
        return Ok(ExitCode::from(2));
    }
    if options.list {
        for fixture in &fixtures {
            writeln!(out, "{}", fixture.stem())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let bar = progress(fixtures.len(), options.json);
    let folder = options.out.as_deref();
    let mut host = host(&options.host);
    let judge = |fixture: &Fixture| {
        bar.set_message(fixture.stem().to_owned());
        let verdict = judge(&mut *host, fixture, folder);
        bar.inc(1);
        verdict
    };
    let mut verdicts: Vec<Verdict> = fixtures.iter().map(judge).collect();
    bar.finish_and_clear();
    if let Some(wrong) = verdicts.iter().find_map(|verdict| verdict.unwritten.as_ref()) {
        complain!("asx: {wrong}");
        return Ok(ExitCode::from(2));
    }
    for (verdict, twin) in verdicts.iter_mut().zip(twins(&fixtures)) {
        verdict.problems.extend(twin);
    }
    if options.json {
        write_json(host.name(), &verdicts, out)?;
    } else {
        write_table(host.name(), &verdicts, out)?;
    }
    let failed = verdicts.iter().any(|verdict| !verdict.problems.is_empty());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Of each file: what is wrong if an earlier one has the same name, and so the same id.
fn twins(fixtures: &[Fixture]) -> Vec<Option<String>> {
    let mut first = BTreeMap::new();
    let twin = |fixture: &Fixture| {
        let file = fixture.file.clone();
        let id = fixture.stem().to_owned();
        let other = first.insert(id, file.clone())?;
        Some(format!("{file}:1: id: expected an id of its own, not that of {other}"))
    };
    fixtures.iter().map(twin).collect()
}

/// The host of that name.
pub(crate) fn host(name: &str) -> Box<dyn Host> {
    if let Some(c) = C::named(name) {
        return Box::new(c);
    }
    match name {
        "native" => Box::new(Native::new()),
        "lab" => Box::new(Native::in_lab()),
        "web" => Box::new(Native::in_page()),
        "native-defaults" => Box::new(Native::with_default_governor()),
        "web-defaults" => Box::new(Native::in_default_page()),
        "web-silent" => Box::new(Native::in_silent_page()),
        _ => Box::new(Model::new()),
    }
}

fn progress(total: usize, json: bool) -> ProgressBar {
    if json || !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(total as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn judge(host: &mut dyn Host, fixture: &Fixture, folder: Option<&Path>) -> Verdict {
    let id = fixture.stem().to_owned();
    let area = area_of(&fixture.file);
    let mut verdict = Verdict {
        id,
        area,
        problems: Vec::new(),
        skipped: None,
        skipped_lines: Vec::new(),
        skipped_json: Vec::new(),
        other_order: false,
        snapshots: BTreeMap::new(),
        unwritten: None,
    };
    match parse_str(&fixture.file, &fixture.text).map(Arc::new) {
        Ok(scenario) => {
            let report = run_scenario(host, &scenario);
            let written =
                folder.map(|folder| failed::write(&scenario, &fixture.text, &report, folder));
            verdict.unwritten = written.and_then(Result::err);
            verdict.problems = problems(&report, folder);
            let snapshot = |run: &SeedRun| (run.seed, format!("{:016x}", run.snapshot));
            verdict.snapshots = report.runs.iter().map(snapshot).collect();
            verdict.skipped_json = failed::skipped_lines_of(&report);
            verdict.skipped_lines = report.skipped_lines;
            verdict.other_order = report.runs.iter().any(|run| run.other_order);
            verdict.skipped = report.skipped;
        }
        Err(errors) => verdict.problems = errors.iter().map(ToString::to_string).collect(),
    }
    verdict
}

/// The folder the file is in.
fn area_of(file: &str) -> String {
    file.rsplit(['/', '\\']).nth(1).unwrap_or("").to_owned()
}

/// Every failure with its place and how to see it again; `folder` has what is left of it.
pub(crate) fn problems(report: &Report, folder: Option<&Path>) -> Vec<String> {
    let mut lines = Vec::new();
    for run in report.runs.iter().filter(|run| !run.failures.is_empty()) {
        lines.extend(problems_of(report, run));
        lines.push(format!("  repro: {}", failed::repro(run, folder)));
    }
    lines
}

/// What did not hold in a run, each with its place.
pub(crate) fn problems_of(report: &Report, run: &SeedRun) -> Vec<String> {
    let mut lines = Vec::new();
    for failure in &run.failures {
        let place = match failure.line {
            0 => report.file.clone(),
            line => format!("{}:{line}", report.file),
        };
        lines.push(format!("{place}: {}", failure.what));
        lines.push(format!("    expected {}", failure.expected));
        lines.push(format!("    got      {}", failure.got));
    }
    lines
}

fn write_table(host: &str, verdicts: &[Verdict], out: &mut impl Write) -> io::Result<()> {
    let mut areas: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut total = [0; 3];
    for verdict in verdicts {
        let column = match (&verdict.skipped, verdict.problems.is_empty()) {
            (Some(_), _) => 2,
            (None, true) => 0,
            (None, false) => 1,
        };
        areas.entry(&verdict.area).or_default()[column] += 1;
        total[column] += 1;
    }
    let [passed, failed, skipped] = total;
    let all = verdicts.len();
    let counted =
        |is_it: fn(&&Verdict) -> bool, what: &str| match verdicts.iter().filter(is_it).count() {
            0 => String::new(),
            count => format!(", {count} {what}"),
        };
    let in_part = counted(|verdict| !verdict.skipped_lines.is_empty(), "run in part");
    let other_order = counted(|verdict| verdict.other_order, "in another order");
    let word = output::verdict(failed == 0);
    writeln!(
        out,
        "{word} on {host}: {passed} of {all} passed, {failed} failed, \
         {skipped} skipped{in_part}{other_order}"
    )?;
    for verdict in verdicts {
        if !verdict.problems.is_empty() {
            writeln!(out, "{} {}", output::verdict(false), verdict.id)?;
            for line in &verdict.problems {
                writeln!(out, "  {line}")?;
            }
        }
        if let Some(reason) = &verdict.skipped {
            writeln!(out, "{} {}: {reason}", WARNING.text("skipped"), verdict.id)?;
        }
        if verdict.other_order {
            let word = WARNING.text("in another order");
            writeln!(out, "{word} {}: its ends are the model's", verdict.id)?;
        }
        if !verdict.skipped_lines.is_empty() {
            writeln!(out, "{} {}", WARNING.text("in part"), verdict.id)?;
            output::skipped_lines(&verdict.skipped_lines, out)?;
        }
    }
    writeln!(out, "{:<16} {:>7} {:>7} {:>8}", "area", "passed", "failed", "skipped")?;
    for (area, [passed, failed, skipped]) in areas {
        writeln!(out, "{area:<16} {passed:>7} {failed:>7} {skipped:>8}")?;
    }
    Ok(())
}

fn write_json(host: &str, verdicts: &[Verdict], out: &mut impl Write) -> io::Result<()> {
    let failed: Vec<&str> =
        verdicts.iter().filter(|v| !v.problems.is_empty()).map(|v| &*v.id).collect();
    let problems: BTreeMap<_, _> =
        verdicts.iter().filter(|v| !v.problems.is_empty()).map(|v| (&v.id, &v.problems)).collect();
    let skipped: Vec<_> = verdicts
        .iter()
        .filter_map(|v| Some(serde_json::json!({ "id": v.id, "reason": v.skipped.as_ref()? })))
        .collect();
    let in_part: BTreeMap<_, _> = verdicts
        .iter()
        .filter(|v| !v.skipped_lines.is_empty())
        .map(|v| (&v.id, &v.skipped_json))
        .collect();
    let other_order: Vec<&str> =
        verdicts.iter().filter(|v| v.other_order).map(|v| &*v.id).collect();
    let snapshots: BTreeMap<_, _> = verdicts.iter().map(|v| (&v.id, &v.snapshots)).collect();
    let object = serde_json::json!({
        "contract": CONTRACT,
        "host": host,
        "snapshots": snapshots,
        "total": verdicts.len(),
        "passed": verdicts.len() - failed.len() - skipped.len(),
        "failed": failed,
        "problems": problems,
        "skipped": skipped,
        "skipped_lines": in_part,
        "other_order": other_order,
    });
    writeln!(out, "{object}")
}

/// `*` is any run of letters, `?` any one.
pub(crate) fn matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let mut g = 0;
    let mut t = 0;
    // Where to go on after the last `*`: one letter later each time.
    let mut star = None;
    while t < text.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g + 1, t));
                g += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (g, t) = (g + 1, t + 1),
            _ => match star {
                Some((after, from)) => {
                    (g, t) = (after, from + 1);
                    star = Some((after, from + 1));
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs_match_whole_ids() {
        assert!(matches("*", "") && matches("tm-*", "tm-wrap-001") && matches("a?c", "abc"));
        assert!(matches("*-001", "ch-evict-001") && matches("*a*b*", "xaxbx") && matches("", ""));
        assert!(!matches("tm-*", "ch-tm-") && !matches("a?c", "ac") && !matches("", "a"));
        assert!(!matches("*-001", "ch-001-x") && matches("**", "x"));
    }
}
