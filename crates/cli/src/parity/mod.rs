//! `asx parity`: the same scenarios on several hosts, which must do the same.
//!
//! ```text
//! host: in this program, in a browser, elsewhere with its records in a file
//!   -> lines -> records -> pairs: outcomes, cancel phases, obligations, journal, codecs
//!   -> report, a folder for each difference, the lines with the verdict
//! ```

mod browser;
mod difference;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use asx_conformance::corpus::load;
use asx_conformance::parity::{self, Entry, Records, Run, Setting};
use asx_conformance::{
    Fixture, Scenario, corpus, parse_str, run_scenario, shell_word, without_ops,
};
use asx_origin::Origin;
use clap::{Args, ValueEnum};

use crate::HOSTS;
use crate::conform::{host, matches};
use crate::output::{counted, verdict};
use browser::Browser;
use difference::Difference;

/// What this program was built from and with.
const ORIGIN: Origin = asx_origin::origin!();

/// What the scenarios that every host must answer for are called.
const FOR_ALL: &str = "parity-";

/// The host that keeps no events, so that there is nothing to compare.
const NO_EVENTS: &str = "web-silent";

#[derive(Args)]
pub(crate) struct Parity {
    /// The hosts to compare, each with each: model, native, lab, web, c, or one with a record.
    #[arg(long, value_name = "HOST,..", value_delimiter = ',', default_value = "model,native,lab")]
    host: Vec<String>,
    /// The record of a host that is elsewhere: one JSON object a line, as --record writes it.
    #[arg(long, value_name = "HOST=FILE", value_parser = source)]
    from: Vec<(String, PathBuf)>,
    /// Where the host `web` is run: in a browser if `cargo xtask web` has set one up, else here.
    #[arg(long, value_name = "WHERE")]
    place: Option<Place>,
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
    pub(crate) json: bool,
}

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// A real one, in headless Chromium; an error if there is none.
    Browser,
    /// In this program, without a browser: the same runtime over an event loop of ours.
    Program,
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
        Ok((pairs, web)) => report(options, &pairs, web, out),
        Err(wrong) => {
            complain!("asx: {wrong}");
            Ok(ExitCode::from(2))
        }
    }
}

/// Two hosts, and how they compare.
struct Pair<'a> {
    hosts: [&'a str; 2],
    /// Runs that both made.
    compared: usize,
    /// Those of them in which a host skipped lines.
    in_part: usize,
    /// Runs that one of them did not make.
    skipped: usize,
    differences: Vec<Difference>,
}

/// Every two hosts, and where the web was if it was run.
type Compared<'a> = (Vec<Pair<'a>>, Option<Place>);

fn compare_all(options: &Parity) -> Result<Compared<'_>, String> {
    let hosts = hosts(options)?;
    let fixtures = fixtures(options)?;
    let scenarios = scenarios(&fixtures)?;
    // What is unusable is told before anything is run.
    let mut given = BTreeMap::new();
    for (host, file) in &options.from {
        given.insert(host.as_str(), read(file, host, &scenarios)?);
    }
    let is_run = |host: &str| hosts.contains(&host) && !given.contains_key(host);
    let browser = if is_run("web") { find_browser(options)? } else { None };
    let web = is_run("web").then(|| browser.as_ref().map_or(Place::Program, |_| Place::Browser));
    let mut records = Vec::new();
    for name in &hosts {
        records.push(match (given.remove(name), &browser) {
            (Some(records), _) => records,
            (None, Some(browser)) if *name == "web" => {
                let text = browser.run(&fixtures).map_err(|error| error.to_string())?;
                let records = Records::read(&text, "the browser", name)?;
                is_whole("the browser", &records, &scenarios)?;
                records
            }
            (None, _) => run(name, &scenarios)?,
        });
    }
    let mut pairs = Vec::new();
    let mut without_lines = WithoutLines::default();
    for (at, one) in hosts.iter().enumerate() {
        for (with, other) in hosts.iter().enumerate().skip(at + 1) {
            let records = [&records[at], &records[with]];
            pairs.push(compare([one, other], records, &scenarios, &mut without_lines)?);
        }
    }
    if let Some(folder) = &options.out {
        for difference in pairs.iter().flat_map(|pair| &pair.differences) {
            difference.write(folder, &repro(options, difference))?;
        }
    }
    if let Some(folder) = &options.record {
        for (name, records) in hosts.iter().zip(&mut records) {
            if !options.from.iter().any(|(host, _)| host == name) {
                judge(name, records, &pairs);
                save(folder, name, records)?;
            }
        }
    }
    Ok((pairs, web))
}

/// The browser for the web, if it is to be run in one.
fn find_browser(options: &Parity) -> Result<Option<Browser>, String> {
    match (options.place, Browser::find()) {
        (Some(Place::Program), _) => Ok(None),
        (_, Ok(browser)) => Ok(Some(browser)),
        (Some(Place::Browser), Err(error)) => Err(error.to_string()),
        (None, Err(_)) => Ok(None),
    }
}

/// The hosts that were asked for, if they can be had.
fn hosts(options: &Parity) -> Result<Vec<&str>, String> {
    let mut seen = BTreeSet::new();
    for host in &options.host {
        let is_given = options.from.iter().any(|(name, _)| name == host);
        let own: Vec<_> = HOSTS.into_iter().filter(|own| *own != NO_EVENTS).collect();
        if !is_given && !own.contains(&host.as_str()) {
            let own = own.join(", ");
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

/// The files that were asked for.
fn fixtures(options: &Parity) -> Result<Vec<Fixture>, String> {
    let mut fixtures = match &options.fixtures {
        Some(folder) => load(folder).map_err(|error| format!("{}: {error}", folder.display()))?,
        None => corpus(),
    };
    fixtures.retain(|fixture| {
        options.filter.as_deref().is_none_or(|glob| matches(glob, fixture.stem()))
    });
    if fixtures.is_empty() { Err("no scenario matches".into()) } else { Ok(fixtures) }
}

fn scenarios(fixtures: &[Fixture]) -> Result<Vec<Arc<Scenario>>, String> {
    let mut scenarios = Vec::new();
    for fixture in fixtures {
        let read = parse_str(&fixture.file, &fixture.text);
        let lines = |errors: Vec<_>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        scenarios.push(Arc::new(read.map_err(|errors| lines(errors).join("\n"))?));
    }
    Ok(scenarios)
}

/// Runs all scenarios on a host of this program. What it did is read back from its lines, as if it
/// had been elsewhere.
fn run(name: &str, scenarios: &[Arc<Scenario>]) -> Result<Records, String> {
    let mut host = host(name);
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let profile = host.profile();
    let setting = Setting { host: name, place: "program", profile, build, origin: &ORIGIN };
    let mut text = String::new();
    for scenario in scenarios {
        let report = run_scenario(&mut *host, scenario);
        for record in parity::records(scenario, &report, &setting)? {
            text += &format!("{record}\n");
        }
    }
    Records::read(&text, name, name)
}

/// Reads what a host elsewhere did.
fn read(file: &Path, host: &str, scenarios: &[Arc<Scenario>]) -> Result<Records, String> {
    let source = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| format!("{source}: {error}"))?;
    let records = Records::read(&text, &source, host)?;
    is_whole(&source, &records, scenarios)?;
    Ok(records)
}

/// A host elsewhere may have left out what it cannot express, but must answer for the scenarios
/// that were made for this.
fn is_whole(source: &str, records: &Records, scenarios: &[Arc<Scenario>]) -> Result<(), String> {
    for scenario in scenarios.iter().filter(|scenario| scenario.id.starts_with(FOR_ALL)) {
        for seed in &scenario.seeds {
            if !records.entries.contains_key(&(scenario.id.clone(), *seed)) {
                let id = &scenario.id;
                return Err(format!("{source}: there is nothing of `{id}` under seed {seed}"));
            }
        }
    }
    Ok(())
}

/// Writes into a host's lines what came of comparing it with all others.
fn judge(host: &str, records: &mut Records, pairs: &[Pair<'_>]) {
    let of_host = pairs.iter().filter(|pair| pair.hosts.contains(&host));
    let is_of_host = |it: &&Difference| it.hosts.iter().any(|name| name == host);
    let differences: Vec<_> =
        of_host.flat_map(|pair| &pair.differences).filter(is_of_host).collect();
    for line in &mut records.lines {
        let is_it = |it: &&&Difference| {
            line["scenario"] == *it.which.0 && line["seed"].as_u64() == Some(it.which.1)
        };
        let difference = differences.iter().find(is_it).map(|it| it.delta);
        let (verdict, delta) = match (line["skipped"].is_null(), difference) {
            (false, _) => ("skipped", "intentional"),
            (true, Some(delta)) => ("different", delta),
            (true, None) => ("same", "none"),
        };
        (line["verdict"], line["delta"]) = (verdict.into(), delta.into());
    }
}

fn save(folder: &Path, host: &str, records: &Records) -> Result<(), String> {
    let path = folder.join(host).with_extension("jsonl");
    let text: String = records.lines.iter().map(|line| format!("{line}\n")).collect();
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn compare<'a>(
    hosts: [&'a str; 2],
    records: [&Records; 2],
    scenarios: &[Arc<Scenario>],
    without_lines: &mut WithoutLines,
) -> Result<Pair<'a>, String> {
    let mut pair = Pair { hosts, compared: 0, in_part: 0, skipped: 0, differences: Vec::new() };
    for scenario in scenarios {
        for seed in &scenario.seeds {
            let which = (scenario.id.clone(), *seed);
            let sides = records.map(|of_host| of_host.entries.get(&which));
            let [Some(Entry::Done(one)), Some(Entry::Done(other))] = sides else {
                pair.skipped += 1;
                continue;
            };
            pair.compared += 1;
            let runs = [one, other];
            let lines = runs.map(|run| run.skipped_ops());
            pair.in_part += usize::from(lines.iter().any(|lines| !lines.is_empty()));
            if lines[0] == lines[1] {
                pair.differences.extend(Difference::between(which, hosts, runs));
                continue;
            }
            // These are two scenarios: each host is compared with the model on its own lines.
            for (at, lines) in lines.iter().enumerate().filter(|(_, lines)| !lines.is_empty()) {
                let model = without_lines.run(scenario, *seed, lines)?;
                let names = [hosts[at], "model"];
                let found = Difference::between(which.clone(), names, [runs[at], &model]);
                pair.differences.extend(found);
            }
        }
    }
    Ok(pair)
}

/// Runs of the model without lines that some host cannot express.
#[derive(Default)]
struct WithoutLines(BTreeMap<(String, Vec<usize>), Records>);

impl WithoutLines {
    fn run(&mut self, scenario: &Scenario, seed: u64, ops: &[usize]) -> Result<Run, String> {
        let key = (scenario.id.clone(), ops.to_vec());
        if !self.0.contains_key(&key) {
            let rest = Arc::new(without_ops(scenario, ops));
            self.0.insert(key.clone(), run("model", &[rest])?);
        }
        match self.0[&key].entries.get(&(scenario.id.clone(), seed)) {
            Some(Entry::Done(run)) => Ok(run.clone()),
            _ => Err(format!("{}: the model has no run under seed {seed}", scenario.id)),
        }
    }
}

/// The call that finds a difference again.
fn repro(options: &Parity, difference: &Difference) -> String {
    let [one, other] = &difference.hosts;
    let mut line = format!("asx parity --host {one},{other} --filter '{}'", difference.which.0);
    for (host, file) in &options.from {
        if host == one || host == other {
            line += &format!(" --from {}", shell_word(&format!("{host}={}", file.display())));
        }
    }
    if let (true, Some(place)) = (difference.hosts.iter().any(|it| it == "web"), options.place) {
        line += match place {
            Place::Browser => " --place browser",
            Place::Program => " --place program",
        };
    }
    if let Some(folder) = &options.fixtures {
        line += &format!(" --fixtures {}", shell_word(&folder.display().to_string()));
    }
    if let Some(folder) = &options.out {
        line += &format!(" --out {}", shell_word(&folder.display().to_string()));
    }
    line
}

fn report(
    options: &Parity,
    pairs: &[Pair<'_>],
    web: Option<Place>,
    out: &mut impl Write,
) -> io::Result<ExitCode> {
    let differences: Vec<_> = pairs.iter().flat_map(|pair| &pair.differences).collect();
    let compared = pairs.iter().all(|pair| pair.compared > 0);
    if options.json {
        let pairs = pairs.iter().map(|pair| {
            let different: BTreeSet<_> = pair.differences.iter().map(|it| &it.which.0).collect();
            serde_json::json!({
                "hosts": pair.hosts, "compared": pair.compared, "in_part": pair.in_part,
                "skipped": pair.skipped,
                "different": different,
            })
        });
        let pairs: Vec<_> = pairs.collect();
        let web = web.map(|place| if place == Place::Browser { "browser" } else { "program" });
        let value =
            serde_json::json!({ "pairs": pairs, "differences": differences.len(), "web": web });
        writeln!(out, "{value}")?;
    } else {
        let word = verdict(differences.is_empty() && compared);
        let runs: usize = pairs.iter().map(|pair| pair.compared).sum();
        let different = counted(differences.len(), "difference");
        writeln!(out, "{word}: {different} in {}", counted(runs, "comparison"))?;
        for difference in &differences {
            write!(out, "{difference}")?;
            writeln!(out, "  repro: {}", repro(options, difference))?;
        }
        let heads = ["compared", "in part", "different", "skipped"];
        let [compared, in_part, different, skipped] = heads;
        writeln!(out, "{:<26} {compared:>8} {in_part:>8} {different:>9} {skipped:>8}", "hosts")?;
        for Pair { hosts: [one, other], compared, in_part, skipped, differences } in pairs {
            let different = differences.len();
            let hosts = format!("{one}, {other}");
            writeln!(out, "{hosts:<26} {compared:>8} {in_part:>8} {different:>9} {skipped:>8}")?;
        }
        match web {
            Some(Place::Browser) => writeln!(out, "web was run in headless Chromium")?,
            Some(Place::Program) => {
                writeln!(out, "web was run in this program; {}", browser::HOW)?;
            }
            None => {}
        }
    }
    if !compared {
        complain!("asx: two hosts have no scenario in common");
        return Ok(ExitCode::from(2));
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
