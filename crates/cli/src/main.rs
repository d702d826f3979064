//! The `asx` program: run scenarios, look at traces, explain statuses.
//!
//! Exit codes: 0 all is well, 1 something did not hold, 2 the call or its input is unusable.

/// A line on standard error; that nobody can read it is no reason to end otherwise.
macro_rules! complain {
    ($($text:tt)*) => {
        $crate::output::complain(format!($($text)*))
    };
}

mod bless;
mod conform;
mod explore;
mod failed;
mod help;
mod output;
mod parity;
mod run;
mod status;
mod tour;
mod trace;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::shells;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The version of the program, and the contract that it follows.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (contract asx-semantics-1)");

/// Structured concurrency under one law: scenarios, conformance, traces, statuses.
#[derive(Parser)]
#[command(name = "asx", version = VERSION, arg_required_else_help = false, after_help = help::ASX)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run scenarios on a host and report what does not hold.
    #[command(after_help = help::CONFORM)]
    Conform(Conform),
    /// Run scenarios on several hosts and report where they do not do the same.
    #[command(after_help = help::PARITY)]
    Parity(parity::Parity),
    /// Run one scenario and show its journal.
    #[command(after_help = help::RUN)]
    Run(Run),
    /// Check, show, compare, convert and draw traces.
    #[command(after_help = help::TRACE)]
    Trace {
        #[command(subcommand)]
        command: trace::Command,
    },
    /// Run one scenario on the lab under many schedules, and look for one that fails.
    #[command(after_help = help::EXPLORE)]
    Explore(explore::Explore),
    /// Run a recorded scenario again and compare; or one schedule that `asx explore` found.
    #[command(after_help = help::REPLAY)]
    Replay(explore::Replay),
    /// Make a schedule that fails as short as it can be.
    #[command(after_help = help::SHRINK)]
    Shrink(explore::Shrink),
    /// Explain a status by name or number; without one, list them all.
    #[command(after_help = help::STATUS)]
    Status {
        /// Its name or number.
        status: Option<String>,
    },
    /// Write what a shell needs to complete commands and options.
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// The shells whose completion is known.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The hosts that the corpus can be run on.
const HOSTS: [&str; 8] =
    ["model", "native", "lab", "web", "c", "c-embedded", "c-hft", "c-automotive"];

#[derive(Args, Default)]
struct Conform {
    /// The host to run on.
    #[arg(long, default_value = "model", value_parser = HOSTS)]
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
    /// Write what there is to see of each failure into this folder.
    #[arg(long, value_name = "DIR", default_value = "target/asx/conform")]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct Run {
    /// A scenario file, or the id of a built-in one.
    file: String,
    /// The host to run on.
    #[arg(long, default_value = "model", value_parser = HOSTS)]
    host: String,
    /// Run under this seed only.
    #[arg(long)]
    seed: Option<u64>,
    /// Show the journal of each run after the verdict.
    #[arg(long, short, conflicts_with_all = ["json", "bless"])]
    verbose: bool,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Write the fingerprint into the file; refused while anything else fails.
    #[arg(long, conflicts_with_all = ["seed", "json", "host"])]
    bless: bool,
    /// Write the journal as a trace; `.jsonl` or `.asxt` says in which codec.
    #[arg(long, value_name = "OUT", conflicts_with = "bless")]
    trace: Option<PathBuf>,
    /// Write what there is to see of a failure into this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "bless")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let wants_object = cli.command.as_ref().is_some_and(Command::wants_object);
    let mut out = output::Output::new();
    let done = match cli.command {
        None => tour::tour(&mut out),
        Some(Command::Conform(options)) => conform::conform(&options, &mut out),
        Some(Command::Parity(options)) => parity::parity(&options, &mut out),
        Some(Command::Run(options)) => run::run(&options, &mut out),
        Some(Command::Explore(options)) => explore::explore(&options, &mut out),
        Some(Command::Replay(options)) => explore::replay(&options, &mut out),
        Some(Command::Shrink(options)) => explore::shrink_token(&options, &mut out),
        Some(Command::Trace { command }) => trace::trace(&command, &mut out),
        Some(Command::Status { status }) => status::status(status.as_deref(), &mut out),
        Some(Command::Completions { shell }) => completions(shell, &mut out),
    };
    let unusable = matches!(&done, Ok(code) if *code == ExitCode::from(2));
    let told = if unusable && wants_object { out.complaints() } else { Ok(()) };
    match done.and_then(|code| told.and_then(|()| out.flush()).map(|()| code)) {
        Ok(code) => code,
        // Nobody reads any more: that is no failure of ours.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain!("asx: {error}");
            ExitCode::from(2)
        }
    }
}

impl Command {
    /// Whether what comes out is to be one JSON object, also if nothing else can be said. Commands
    /// about traces see to it themselves.
    fn wants_object(&self) -> bool {
        match self {
            Command::Conform(options) => options.json,
            Command::Parity(options) => options.json,
            Command::Run(options) => options.json,
            Command::Explore(options) => options.json,
            Command::Replay(options) => options.json,
            Command::Shrink(options) => options.json,
            Command::Trace { .. } | Command::Status { .. } | Command::Completions { .. } => false,
        }
    }
}

/// What a shell needs, made from the same table as the command line itself.
fn completions(shell: Shell, out: &mut impl Write) -> io::Result<ExitCode> {
    let mut script = Vec::new();
    let command = &mut Cli::command();
    let name = "asx";
    match shell {
        Shell::Bash => clap_complete::generate(shells::Bash, command, name, &mut script),
        Shell::Zsh => clap_complete::generate(shells::Zsh, command, name, &mut script),
        Shell::Fish => clap_complete::generate(shells::Fish, command, name, &mut script),
    }
    out.write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `each` with a command and all below it.
    fn walk(command: &clap::Command, each: &mut dyn FnMut(&clap::Command)) {
        each(command);
        command.get_subcommands().for_each(|below| walk(below, each));
    }

    #[test]
    fn the_version_names_the_contract() {
        assert!(VERSION.ends_with(&format!("(contract {})", asx_kernel::CONTRACT)), "{VERSION}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn completions_have_every_command_and_flag() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            completions(shell, &mut script).expect("memory takes everything");
            let script = String::from_utf8(script).expect("text");
            let fish = matches!(shell, Shell::Fish);
            walk(&Cli::command(), &mut |command| {
                assert!(script.contains(command.get_name()), "{}", command.get_name());
                for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
                    let flag = if fish { format!("-l {flag}") } else { format!("--{flag}") };
                    assert!(script.contains(&flag), "{} {flag}", command.get_name());
                }
            });
        }
    }

    #[test]
    fn every_command_tells_how_it_ends_and_has_examples() {
        walk(&Cli::command(), &mut |command| {
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Examples:"), "{}", command.get_name());
            assert!(help.contains("Exit status:"), "{}", command.get_name());
            for argument in command.get_arguments().filter(|it| !it.is_hide_set()) {
                assert!(argument.get_help().is_some(), "{} {argument}", command.get_name());
            }
        });
    }
}
