//! `asx parity`: the same scenarios on several hosts, which must do the same.
//!
//! ```text
//! host --run--> records <--read-- file of a host that is elsewhere
//!                  |
//!               pairs: outcomes, cancel phases, obligations, journal
//!                  |
//!          report, and a folder for each difference
//! ```

mod difference;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use asx_conformance::corpus::load;
use asx_conformance::{Fixture, Scenario, corpus, parse_str, run_scenario};
use clap::Args;

use crate::conform::{host, matches};
use difference::Difference;
use record::{Record, Run, Which};

/// The hosts that are in this program.
const OWN: [&str; 3] = ["model", "native", "lab"];

/// What the scenarios that every host must answer for are called.
const FOR_ALL: &str = "parity-";

#[derive(Args)]
pub(crate) struct Parity {
    /// The hosts to compare, each with each: model, native, lab, or one with a record (--from).
    #[arg(long, value_name = "HOST,..", value_delimiter = ',', default_value = "model,native,lab")]
    host: Vec<String>,
    /// The record of a host that is elsewhere: one JSON object a line, as --record writes it.
    #[arg(long, value_name = "HOST=FILE", value_parser = source)]
    from: Vec<(String, PathBuf)>,
    /// Only ids that match this pattern (`*`, `?`).
    #[arg(long, value_name = "GLOB")]
    filter: Option<String>,
    /// Scenarios from this folder instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    fixtures: Option<PathBuf>,
    /// Write the record of each host that was run to HOST.jsonl in this folder.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Write what there is to see of each difference into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

fn source(text: &str) -> Result<(String, PathBuf), String> {
    let (host, file) = text.split_once('=').ok_or("expected HOST=FILE, as in web=web.jsonl")?;
    match host.is_empty() || file.is_empty() {
        true => Err("expected HOST=FILE, as in web=web.jsonl".into()),
        false => Ok((host.into(), file.into())),
    }
}

pub(crate) fn parity(options: &Parity, out: &mut impl Write) -> io::Result<ExitCode> {
    match compare_all(options) {
        Ok(pairs) => report(options, &pairs, out),
        Err(wrong) => {
            complain!("asx: {wrong}");
            Ok(ExitCode::from(2))
        }
    }
}

type Records = BTreeMap<Which, Record>;

/// Two hosts, and how they compare.
struct Pair<'a> {
    hosts: [&'a str; 2],
    /// Runs that both made.
    compared: usize,
    /// Runs that one of them did not make.
    skipped: usize,
    differences: Vec<Difference>,
}

fn compare_all(options: &Parity) -> Result<Vec<Pair<'_>>, String> {
    let hosts = hosts(options)?;
    let scenarios = scenarios(options)?;
    // What is unusable is told before anything is run.
    let mut given = BTreeMap::new();
    for (host, file) in &options.from {
        given.insert(host.as_str(), read(file, host, &scenarios)?);
    }
    let mut records = Vec::new();
    for name in &hosts {
        records.push(match given.remove(name) {
            Some(records) => records,
            None => {
                let records = run(name, &scenarios);
                options.record.as_deref().map_or(Ok(()), |to| save(to, name, &records))?;
                records
            }
        });
    }
    let mut pairs = Vec::new();
    for (at, one) in hosts.iter().enumerate() {
        for (with, other) in hosts.iter().enumerate().skip(at + 1) {
            pairs.push(compare([one, other], [&records[at], &records[with]], &scenarios));
        }
    }
    if let Some(folder) = &options.out {
        for difference in pairs.iter().flat_map(|pair| &pair.differences) {
            difference.write(folder, &repro(options, difference))?;
        }
    }
    Ok(pairs)
}

/// The hosts that were asked for, if they can be had.
fn hosts(options: &Parity) -> Result<Vec<&str>, String> {
    let mut seen = BTreeSet::new();
    for host in &options.host {
        let is_given = options.from.iter().any(|(name, _)| name == host);
        if !is_given && !OWN.contains(&host.as_str()) {
            let own = OWN.join(", ");
            return Err(format!("host `{host}` is not one of {own}: --from {host}=FILE"));
        }
        if options.from.iter().filter(|(name, _)| name == host).count() > 1 {
            return Err(format!("host `{host}` has two records"));
        }
        if !seen.insert(host) {
            return Err(format!("host `{host}` is there twice"));
        }
    }
    if let Some((host, _)) = options.from.iter().find(|(host, _)| !options.host.contains(host)) {
        return Err(format!("--from {host}=..: host `{host}` is not among those to compare"));
    }
    match options.host.len() {
        0 | 1 => Err("it takes two hosts to compare: --host model,native".into()),
        _ => Ok(options.host.iter().map(String::as_str).collect()),
    }
}

fn scenarios(options: &Parity) -> Result<Vec<Arc<Scenario>>, String> {
    let fixtures = match &options.fixtures {
        Some(folder) => load(folder).map_err(|error| format!("{}: {error}", folder.display()))?,
        None => corpus(),
    };
    let wanted = |fixture: &&Fixture| {
        options.filter.as_deref().is_none_or(|glob| matches(glob, fixture.stem()))
    };
    let mut scenarios = Vec::new();
    for fixture in fixtures.iter().filter(wanted) {
        let read = parse_str(&fixture.file, &fixture.text);
        let lines = |errors: Vec<_>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        scenarios.push(Arc::new(read.map_err(|errors| lines(errors).join("\n"))?));
    }
    if scenarios.is_empty() { Err("no scenario matches".into()) } else { Ok(scenarios) }
}

/// Runs all scenarios on a host.
fn run(name: &str, scenarios: &[Arc<Scenario>]) -> Records {
    let mut host = host(name);
    let mut records = Records::new();
    for scenario in scenarios {
        let report = run_scenario(&mut *host, scenario);
        if let Some(why) = &report.skipped {
            let of_seed = |seed: &u64| ((scenario.id.clone(), *seed), Record::Skipped(why.clone()));
            records.extend(scenario.seeds.iter().map(of_seed));
        }
        let done = report.runs.iter().map(|run| (run.seed, Record::Done(Run::of(run))));
        records.extend(done.map(|(seed, run)| ((scenario.id.clone(), seed), run)));
    }
    records
}

/// Reads what a host elsewhere did. It may have left out what it cannot express, but must answer
/// for the scenarios that were made for this.
fn read(file: &Path, host: &str, scenarios: &[Arc<Scenario>]) -> Result<Records, String> {
    let records = record::read(file, host)?;
    for scenario in scenarios.iter().filter(|scenario| scenario.id.starts_with(FOR_ALL)) {
        for seed in &scenario.seeds {
            if !records.contains_key(&(scenario.id.clone(), *seed)) {
                let (file, id) = (file.display(), &scenario.id);
                return Err(format!("{file}: there is nothing of `{id}` under seed {seed}"));
            }
        }
    }
    Ok(records)
}

fn save(folder: &Path, host: &str, records: &Records) -> Result<(), String> {
    let path = folder.join(host).with_extension("jsonl");
    let line = |(which, record)| record::line(which, host, record) + "\n";
    let text: String = records.iter().map(line).collect();
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn compare<'a>(
    hosts: [&'a str; 2],
    records: [&Records; 2],
    scenarios: &[Arc<Scenario>],
) -> Pair<'a> {
    let mut pair = Pair { hosts, compared: 0, skipped: 0, differences: Vec::new() };
    for scenario in scenarios {
        for seed in &scenario.seeds {
            let which = (scenario.id.clone(), *seed);
            let sides = records.map(|of_host| of_host.get(&which));
            let [Some(Record::Done(one)), Some(Record::Done(other))] = sides else {
                pair.skipped += 1;
                continue;
            };
            pair.compared += 1;
            pair.differences.extend(Difference::between(which, hosts, [one, other]));
        }
    }
    pair
}

/// The call that finds a difference again.
fn repro(options: &Parity, difference: &Difference) -> String {
    let [one, other] = &difference.hosts;
    let mut line = format!("asx parity --host {one},{other} --filter '{}'", difference.which.0);
    for (host, file) in &options.from {
        if host == one || host == other {
            line += &format!(" --from {}", quoted(&format!("{host}={}", file.display())));
        }
    }
    if let Some(folder) = &options.fixtures {
        line += &format!(" --fixtures {}", quoted(&folder.display().to_string()));
    }
    if let Some(folder) = &options.out {
        line += &format!(" --out {}", quoted(&folder.display().to_string()));
    }
    line
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn report(options: &Parity, pairs: &[Pair<'_>], out: &mut impl Write) -> io::Result<ExitCode> {
    let differences: Vec<_> = pairs.iter().flat_map(|pair| &pair.differences).collect();
    if options.json {
        let pairs = pairs.iter().map(|pair| {
            let different: BTreeSet<_> = pair.differences.iter().map(|it| &it.which.0).collect();
            serde_json::json!({
                "hosts": pair.hosts, "compared": pair.compared, "skipped": pair.skipped,
                "different": different,
            })
        });
        let pairs: Vec<_> = pairs.collect();
        let value = serde_json::json!({ "pairs": pairs, "differences": differences.len() });
        writeln!(out, "{value}")?;
    } else {
        for difference in &differences {
            write!(out, "{difference}")?;
            writeln!(out, "  repro: {}", repro(options, difference))?;
        }
        writeln!(out, "{:<20} {:>8} {:>9} {:>8}", "hosts", "compared", "different", "skipped")?;
        for Pair { hosts: [one, other], compared, skipped, differences } in pairs {
            let different = differences.len();
            let hosts = format!("{one}, {other}");
            writeln!(out, "{hosts:<20} {compared:>8} {different:>9} {skipped:>8}")?;
        }
    }
    let compared = pairs.iter().all(|pair| pair.compared > 0);
    if !compared {
        complain!("asx: two hosts have no scenario in common");
        return Ok(ExitCode::from(2));
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
