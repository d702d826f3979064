//! `asx explore`: one scenario under many schedules; `asx replay` and `asx shrink`: one of them.
//!
//! A run is the real runtime on the lab's workers; a strategy makes every choice that the laws
//! leave open. A run fails if a law does not hold, and with `--expect` also if an expectation of
//! the scenario does not. Seeds are divided among threads and shards. The results of a shard are
//! one small file, from which it can resume; several such files can be merged.

mod files;
mod one;
mod report;
mod state;
mod tape;
mod token;

pub(crate) use one::{Replay, Shrink, following, replay, shrink_token};

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use asx_conformance::{Native, Record, Scenario, corpus, expressible};
use asx_lab::explore::{Dfs, Pct, Random, Strategy};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{COMMAND, verdict};
use crate::run::scenario;
use files::{Failed, Files};
use state::{Found, State};
use tape::Tape;
use token::Token;

/// How often what was seen is saved.
const SAVING: Duration = Duration::from_secs(2);

/// How schedules are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyName {
    /// Every schedule if half of the runs suffice for that, else random ones with the other half.
    Auto,
    /// Each choice at random.
    Random,
    /// Random priorities with few changes.
    Pct,
    /// Every schedule, one after another.
    Dfs,
}

/// The setup of every run.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
struct Setup {
    /// How many workers; 0: as the scenario says.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=64))]
    workers: u16,
    /// Check the expectations of the scenario too, not only the laws.
    #[arg(long)]
    expect: bool,
}

impl Setup {
    /// The number of workers of a run.
    fn workers_of(self, scenario: &Scenario) -> u64 {
        match self.workers {
            0 => scenario.config.workers as u64,
            workers => workers.into(),
        }
    }
}

impl fmt::Display for Setup {
    /// As it is given on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.workers > 0 {
            write!(f, " --workers {}", self.workers)?;
        }
        f.write_str(if self.expect { " --expect" } else { "" })
    }
}

#[derive(Args)]
pub(crate) struct Explore {
    /// A scenario file, or the id of a built-in one.
    #[arg(required_unless_present_any = ["merge", "all"])]
    file: Option<String>,
    /// All built-in scenarios.
    #[arg(long, conflicts_with_all = ["file", "merge", "shard", "resume", "trace", "report"])]
    all: bool,
    /// Run each schedule twice and compare the journals.
    #[arg(long)]
    twice: bool,
    /// How schedules are chosen.
    #[arg(long, value_enum, default_value = "auto")]
    strategy: StrategyName,
    /// How many runs at most.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// How many threads.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Run only part I of N of the seeds, as in 0/4.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(u64, u64)>,
    /// Resume from this file if it exists, and save the results in it.
    #[arg(long, value_name = "FILE")]
    resume: Option<std::path::PathBuf>,
    /// Merge files that `--resume` has written, and report their results together.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    #[arg(conflicts_with_all = ["file", "trace", "report", "shard", "resume", "twice", "strategy"])]
    #[arg(conflicts_with_all = ["seeds", "jobs", "workers", "expect"])]
    merge: Vec<std::path::PathBuf>,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    setup: Setup,
    /// One JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Explore {
    /// Whether an option works on seeds, which an exhaustive search does not have.
    fn needs_seeds(&self) -> bool {
        self.shard.is_some() || self.resume.is_some() || self.twice
    }
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').ok_or("expected I/N, as in 0/4")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let i = number(parts.0)?;
    let n = number(parts.1)?;
    if i < n { Ok((i, n)) } else { Err(format!("{i} is not below {n}")) }
}

pub(crate) fn explore(options: &Explore, out: &mut impl Write) -> io::Result<ExitCode> {
    if options.strategy == StrategyName::Dfs && options.needs_seeds() {
        complain!("asx: --shard, --resume and --twice are for seeds, which dfs has none of");
        return Ok(ExitCode::from(2));
    }
    if options.all {
        return explore_all(options, out);
    }
    let mut explored = None;
    let state = match options.file.as_deref() {
        None => State::merged(&options.merge),
        Some(file) => {
            let Some(scenario) = scenario(file) else { return Ok(ExitCode::from(2)) };
            lines_of_lab(&scenario).and_then(|scenario| {
                let scenario = &*explored.insert(scenario);
                options.files.check()?;
                let state = search(options, scenario)?;
                write_first(options, scenario, &state).map(|()| state)
            })
        }
    };
    match state {
        Ok(state) => {
            report::write(&state, options, explored.as_deref(), out)?;
            let is_green = state.failures.is_empty();
            Ok(if is_green { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(wrong) => {
            complain!("asx: {wrong}");
            Ok(ExitCode::from(2))
        }
    }
}

/// Writes the first run that failed, shrunk, to the files of `--trace` and `--report`.
fn write_first(options: &Explore, scenario: &Arc<Scenario>, state: &State) -> Result<(), String> {
    let Some(Found { seed, token, message }) = state.failures.first() else { return Ok(()) };
    if options.files.names().is_empty() {
        return Ok(());
    }
    let read = Token::read(token, scenario, options.setup);
    let read = read.map_err(|error| format!("{}: {error}", token::shown(token)))?;
    let shrunk = one::shrink_schedule(scenario, read.setup, &read.schedule);
    let schedule = shrunk.map_or(read.schedule, |(shrunk, _)| shrunk.schedule);
    let token = &Token::text(scenario, read.setup, &schedule);
    let (_, record, tape) = one::follow(scenario, &schedule, read.setup);
    let changes = tape.changes(&record);
    let file = options.file.as_deref().unwrap_or(&scenario.id);
    let seed = seed.unwrap_or(0);
    let run = Failed { file, seed, token, failure: Some(message), changes: &changes };
    options.files.write(scenario, options.setup, &run, &record)
}

/// Every built-in scenario that the lab can run.
fn explore_all(options: &Explore, out: &mut impl Write) -> io::Result<ExitCode> {
    let mut runs = 0;
    let mut distinct = 0;
    let mut skipped = 0;
    let mut failed = 0;
    let mut failures = Vec::new();
    let mut scenarios = 0;
    let mut fingerprint = 0u64;
    for fixture in corpus() {
        let Some(scenario) = scenario(&fixture.file) else { return Ok(ExitCode::from(2)) };
        match lines_of_lab(&scenario).and_then(|scenario| search(options, &scenario)) {
            Err(_) => skipped += 1,
            Ok(state) => {
                scenarios += 1;
                runs += state.done;
                distinct += state.distinct.len();
                fingerprint = fingerprint.wrapping_add(state.fingerprint);
                failed += state.failed;
                failures.extend(state.failures.into_iter().map(|found| (state.id.clone(), found)));
            }
        }
    }
    if options.json {
        let failures: Vec<_> = failures.iter().map(|(id, found)| (id, &found.message)).collect();
        let value = serde_json::json!({
            "scenarios": scenarios, "skipped": skipped, "runs": runs, "distinct": distinct,
            "twice": options.twice, "fingerprint": format!("{fingerprint:016x}"),
            "failed": failed, "failures": failures,
        });
        writeln!(out, "{value}")?;
    } else {
        let twice = if options.twice { ", each twice" } else { "" };
        let word = verdict(failed == 0);
        let failing = match failed {
            0 => String::new(),
            count => format!(", {count} failed"),
        };
        writeln!(out, "{word}: {scenarios} scenarios, {runs} runs{twice}{failing}")?;
        writeln!(out, "  {distinct} distinct journals, {skipped} scenarios skipped")?;
        writeln!(out, "  fingerprint {fingerprint:016x}")?;
        for (id, Found { token, message, .. }) in failures.iter().take(10) {
            writeln!(out, "  {id}: {message}")?;
            writeln!(out, "    {}", COMMAND.text(format!("asx replay {id} {token}")))?;
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The scenario without the lines that the lab cannot express.
pub(crate) fn lines_of_lab(scenario: &Arc<Scenario>) -> Result<Arc<Scenario>, String> {
    expressible(&Native::in_lab(), scenario).map(|expressible| expressible.scenario)
}

/// Runs a scenario under many schedules.
fn search(options: &Explore, scenario: &Arc<Scenario>) -> Result<State, String> {
    let (part, parts) = options.shard.unwrap_or((0, 1));
    let strategy = match options.strategy {
        StrategyName::Auto if options.needs_seeds() => StrategyName::Random,
        strategy => strategy,
    };
    // Runs of another setup belong to another exploration.
    let kind = format!("{strategy:?}{}", options.setup).to_lowercase();
    let fresh = State::new(scenario, &kind, options.seeds, (part, parts));
    let state = match &options.resume {
        Some(path) => State::load(path, &fresh)?.unwrap_or(fresh),
        None => fresh,
    };
    let search = Search {
        scenario,
        setup: options.setup,
        twice: options.twice || (options.setup.expect && scenario.expect.replay),
        next: AtomicU64::new(state.done),
        bar: bar(state.mine(), options.json),
        began: Instant::now(),
        state: Mutex::new(state),
    };
    let most = search.state().mine();
    match strategy {
        StrategyName::Dfs => search.depth_first(most),
        StrategyName::Auto => {
            search.depth_first(most.div_ceil(2));
            let done = search.state().done;
            search.next.store(done, Relaxed);
            let (ran, rest) = match search.state().exhausted {
                true => ("dfs", false),
                false => ("dfs and random", true),
            };
            search.state().strategy = format!("{ran}{}", options.setup);
            if rest {
                search.sample_all(StrategyName::Random, options)?;
            }
        }
        sampled => search.sample_all(sampled, options)?,
    }
    search.bar.finish_and_clear();
    let mut state = search.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    state.failures.sort_by_key(|found| found.seed);
    Ok(state)
}

struct Search<'a> {
    scenario: &'a Arc<Scenario>,
    setup: Setup,
    twice: bool,
    /// The next of the own seeds.
    next: AtomicU64,
    bar: ProgressBar,
    began: Instant,
    state: Mutex<State>,
}

impl Search<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Runs all own seeds on so many threads. What was seen is saved between rounds, when every
    /// seed that was taken is done: then `done` says which those are.
    fn sample_all(&self, strategy: StrategyName, options: &Explore) -> Result<(), String> {
        let save = || options.resume.as_deref().map_or(Ok(()), |path| self.state().save(path));
        // A file that cannot be written is told before anything is run.
        save()?;
        loop {
            let until = options.resume.is_some().then(|| Instant::now() + SAVING);
            std::thread::scope(|threads| {
                for _ in 0..options.jobs.clamp(1, 256) {
                    threads.spawn(|| self.sample(strategy, until));
                }
            });
            save()?;
            let state = self.state();
            if state.done >= state.mine() {
                return Ok(());
            }
        }
    }

    /// Takes seed after seed, until there is none or the time is over.
    fn sample(&self, strategy: StrategyName, until: Option<Instant>) {
        let (mine, part, parts) = {
            let state = self.state();
            (state.mine(), state.part, state.parts)
        };
        while until.is_none_or(|until| Instant::now() < until) {
            let nth = self.next.fetch_add(1, Relaxed);
            if nth >= mine {
                return;
            }
            let seed = part + nth * parts;
            let strategy: Box<dyn Strategy + Send> = match strategy {
                StrategyName::Pct => Box::new(Pct::new(seed, 3)),
                _ => Box::new(Random::new(seed)),
            };
            let tape = Tape::new(strategy);
            tape.begin();
            self.run(&tape, Some(seed));
        }
    }

    /// Runs every schedule, at most until `most` runs are done.
    fn depth_first(&self, most: u64) {
        let tape = Tape::new(Box::new(Dfs::new()));
        while self.state().done < most && tape.begin() {
            self.run(&tape, None);
        }
        // Only an attempt to begin another run shows that there is none.
        let exhausted = !tape.begin() && tape.lock().strategy.progress().exhausted.is_some();
        self.state().exhausted = exhausted;
    }

    /// Makes a run that the strategy has begun, a second time if its journals are compared.
    fn run(&self, tape: &Tape, seed: Option<u64>) {
        let (mut failure, record) = tape.run(self.scenario, self.setup);
        if self.twice {
            let again = one::follow(self.scenario, &tape.schedule(), self.setup).1;
            let at = record.events.iter().zip(&again.events).position(|(a, b)| a != b);
            let at = at.unwrap_or(record.events.len().min(again.events.len()));
            let differ = || format!("not deterministic: the journals differ at event {at}");
            failure = failure.or((record.digest != again.digest).then(differ));
        }
        self.saw(tape, seed, failure, &record);
    }

    fn saw(&self, tape: &Tape, seed: Option<u64>, failure: Option<String>, record: &Record) {
        let mut state = self.state();
        state.done += 1;
        state.saw(seed.unwrap_or(0), record.digest);
        if let Some(message) = failure {
            state.add_failure(|| {
                let token = Token::text(self.scenario, self.setup, &tape.schedule());
                Found { seed, token, message }
            });
        }
        let rate = state.done as f64 / self.began.elapsed().as_secs_f64().max(1e-9);
        self.bar.set_position(state.done);
        if state.done.is_multiple_of(64) {
            let distinct = state.distinct.len();
            let failed = state.failed;
            self.bar.set_message(format!("{rate:.0}/s, {distinct} distinct, {failed} failed"));
        }
    }
}

fn bar(total: u64, json: bool) -> ProgressBar {
    if json || !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(total);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg} {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
