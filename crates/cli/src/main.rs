//! The `asx` program: run scenarios, look at traces, explain statuses.
//!
//! Exit codes: 0 all is well, 1 something did not hold, 2 the call or its input is unusable.

mod bless;
mod conform;
mod explore;
mod run;
mod status;
mod tour;
mod trace;

use clap::{Args, Parser, Subcommand};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Structured concurrency under one law: scenarios, conformance, traces, statuses.
#[derive(Parser)]
#[command(version, arg_required_else_help = false, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "Without a command: a tour of less than a minute.

Examples:
  asx                               a tour
  asx conform                       run the built-in scenarios
  asx conform --filter 'tm-*'       run some of them
  asx run my.toml --seed 4          run one file under one seed, with its journal
  asx run my.toml --bless           write its fingerprint
  asx run my.toml --trace my.asxt   write its trace
  asx trace verify my.asxt --strict check it against the laws
  asx trace report --html my.html my.asxt
                                    draw it
  asx status FULL                   explain a status";

#[derive(Subcommand)]
enum Command {
    /// Run scenarios on a host and report what does not hold.
    #[command(after_help = "Examples:
  asx conform
  asx conform --filter 'ch-*' --json
  asx conform --fixtures my/scenarios
  asx conform --list")]
    Conform(Conform),
    /// Run one scenario and show its journal.
    #[command(after_help = "Examples:
  asx run crates/conformance/fixtures/timer/tm-cancel-001.toml
  asx run tm-cancel-001             a built-in one, by id
  asx run my.toml --seed 4
  asx run my.toml --bless
  asx run my.toml --seed 4 --trace my.jsonl")]
    Run(Run),
    /// Check, show, compare, convert and draw traces.
    #[command(after_help = "Examples:
  asx trace verify run.asxt --strict
  asx trace show run.asxt --task 3
  asx trace diff before.asxt after.asxt
  asx trace digest run.asxt
  asx trace convert run.asxt run.jsonl
  asx trace report --html run.html run.asxt
  asx trace export --perfetto run.json run.asxt

Exit codes: 0 all is well, 1 something does not hold, 2 the input is unusable.")]
    Trace {
        #[command(subcommand)]
        command: trace::Command,
    },
    /// Run one scenario on the lab under many schedules, and look for one that fails.
    #[command(after_help = "Examples:
  asx explore sched-steal-order --seeds 10000 --jobs 2
  asx explore my.toml --strategy dfs --expect
  asx explore my.toml --seeds 1000000 --shard 0/4 --resume part0.json
  asx explore --merge part0.json part1.json part2.json part3.json")]
    Explore(explore::Explore),
    /// Run one schedule that `asx explore` found again, with its journal.
    #[command(after_help = "Examples:\n  asx replay my.toml AQKKnAi0JAwCASDVGQ --expect")]
    Replay(explore::Replay),
    /// Make a schedule that fails as short as it can be.
    #[command(after_help = "Examples:\n  asx shrink my.toml AQKKnAi0JAwCASDVGQ --expect")]
    Shrink(explore::Replay),
    /// Explain a status by name or number; without one, list them all.
    #[command(after_help = "Examples:\n  asx status FULL\n  asx status 102\n  asx status")]
    Status {
        /// Its name or number.
        status: Option<String>,
    },
}

#[derive(Args, Default)]
struct Conform {
    /// The host to run on.
    #[arg(long, default_value = "model", value_parser = ["model", "native", "lab", "web"])]
    host: String,
    /// Only ids that match this pattern (`*`, `?`).
    #[arg(long, value_name = "GLOB")]
    filter: Option<String>,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Only list the ids.
    #[arg(long, conflicts_with = "json")]
    list: bool,
    /// Scenarios from this folder instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    fixtures: Option<PathBuf>,
}

#[derive(Args)]
struct Run {
    /// A scenario file, or the id of a built-in one.
    file: String,
    /// The host to run on.
    #[arg(long, default_value = "model", value_parser = ["model", "native", "lab", "web"])]
    host: String,
    /// Run under this seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Write the fingerprint into the file; refused while anything else fails.
    #[arg(long, conflicts_with_all = ["seed", "json", "host"])]
    bless: bool,
    /// Write the journal as a trace; `.jsonl` or `.asxt` says in which codec.
    #[arg(long, value_name = "OUT", conflicts_with = "bless")]
    trace: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = match cli.command {
        None => tour::tour(&mut out),
        Some(Command::Conform(options)) => conform::conform(&options, &mut out),
        Some(Command::Run(options)) => run::run(&options, &mut out),
        Some(Command::Explore(options)) => explore::explore(&options, &mut out),
        Some(Command::Replay(options)) => explore::replay(&options, &mut out),
        Some(Command::Shrink(options)) => explore::shrink_token(&options, &mut out),
        Some(Command::Trace { command }) => trace::trace(&command, &mut out),
        Some(Command::Status { status }) => status::status(status.as_deref(), &mut out),
    };
    match done.and_then(|code| out.flush().map(|()| code)) {
        Ok(code) => code,
        // Nobody reads any more: that is no failure of ours.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("asx: {error}");
            ExitCode::from(2)
        }
    }
}
