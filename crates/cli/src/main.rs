//! The `asx` program: runs and explores scenarios, reads traces, explains statuses.
//!
//! Exit codes: 0 success, 1 something did not hold, 2 the command line or its input is unusable.

/// Writes a line to standard error, whether or not it can be written.
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
mod man;
mod output;
mod parity;
mod run;
mod status;
mod tour;
mod trace;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The version of the program, and the contract that it follows.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (contract asx-semantics-1)");

/// Structured concurrency: run and explore scenarios, read traces, explain statuses.
#[derive(Parser)]
#[command(name = "asx", version = VERSION, arg_required_else_help = false, after_help = help::ASX)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Show on a small service what asx does; this is also `asx` without a command.
    #[command(after_help = help::TOUR)]
    Tour(tour::Tour),
    /// Run one scenario and check what it expects.
    #[command(after_help = help::RUN)]
    Run(Run),
    /// Run one scenario in the lab under many schedules, to find one that fails.
    #[command(after_help = help::EXPLORE)]
    Explore(explore::Explore),
    /// Run a recorded scenario again and compare; or one schedule that `asx explore` found.
    #[command(after_help = help::REPLAY)]
    Replay(explore::Replay),
    /// Make a failing schedule as short as possible.
    #[command(after_help = help::SHRINK)]
    Shrink(explore::Shrink),
    /// Check, show, compare, convert and draw traces.
    #[command(after_help = help::TRACE)]
    Trace {
        #[command(subcommand)]
        command: trace::Command,
    },
    /// Explain a status by name or number; without one, list them all.
    #[command(after_help = help::STATUS)]
    Status {
        /// The name or number of a status.
        status: Option<String>,
    },
    /// Print the completion script of a shell.
    #[command(after_help = help::COMPLETIONS)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the man pages of all commands into a folder.
    #[command(after_help = help::MAN)]
    Man {
        /// The folder, which is created if it does not exist.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Run the conformance corpus on a host.
    #[command(after_help = help::CONFORM)]
    Conform(Conform),
    /// Run the conformance corpus on several hosts and compare them.
    #[command(after_help = help::PARITY)]
    Parity(parity::Parity),
}

/// The commands for work on asx itself, which `asx --help` lists apart.
const FOR_CONTRIBUTORS: [&str; 2] = ["conform", "parity"];

/// The command line, with its commands in two groups.
fn command_line() -> clap::Command {
    let command = Cli::command();
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or(0);
    let group = |title: &str, is_in: &dyn Fn(&str) -> bool| {
        let mut text = format!("{header}{title}:{header:#}\n");
        for one in command.get_subcommands().filter(|one| is_in(one.get_name())) {
            let name = one.get_name();
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{name:<width$}{literal:#}  {about}\n");
        }
        text
    };
    let is_for_contributors = |name: &str| FOR_CONTRIBUTORS.contains(&name);
    let user = group("Commands", &|name| !is_for_contributors(name));
    let contributor = group("Commands for contributors to asx", &is_for_contributors);
    let options = format!("{header}Options:{header:#}\n{{options}}");
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{user}\n{contributor}\n\
         {options}{{after-help}}"
    ))
}

/// The hosts that the corpus can be run on.
const HOSTS: [&str; 11] = [
    "model",
    "native",
    "native-defaults",
    "lab",
    "web",
    "web-defaults",
    "web-silent",
    "c",
    "c-embedded",
    "c-hft",
    "c-automotive",
];

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
    let cli = Cli::from_arg_matches(&command_line().get_matches())
        .unwrap_or_else(|error| error.format(&mut command_line()).exit());
    let wants_object = cli.command.as_ref().is_some_and(Command::wants_object);
    let mut out = output::Output::new();
    if let Some(Command::Trace { command: trace::Command::Show(_) }) = &cli.command {
        out.stop_when_closed();
    }
    let done = match cli.command {
        None => tour::tour(&tour::Tour::default(), &mut out),
        Some(Command::Tour(options)) => tour::tour(&options, &mut out),
        Some(Command::Conform(options)) => conform::conform(&options, &mut out),
        Some(Command::Parity(options)) => parity::parity(&options, &mut out),
        Some(Command::Run(options)) => run::run(&options, &mut out),
        Some(Command::Explore(options)) => explore::explore(&options, &mut out),
        Some(Command::Replay(options)) => explore::replay(&options, &mut out),
        Some(Command::Shrink(options)) => explore::shrink_token(&options, &mut out),
        Some(Command::Trace { command }) => trace::trace(&command, &mut out),
        Some(Command::Status { status }) => status::status(status.as_deref(), &mut out),
        Some(Command::Completions { shell }) => completions(shell, &mut out),
        Some(Command::Man { folder }) => man::man(&command_line(), &folder, &mut out),
    };
    let unusable = matches!(&done, Ok(code) if *code == ExitCode::from(2));
    let told = if unusable && wants_object { out.complaints() } else { Ok(()) };
    match done.and_then(|code| told.and_then(|()| out.flush()).map(|()| code)) {
        Ok(code) => code,
        // The reader of a trace needs no more of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain!("asx: {error}");
            ExitCode::from(2)
        }
    }
}

impl Command {
    /// Whether the output must be one JSON object even if there are only errors. Commands on traces
    /// take care of that themselves.
    fn wants_object(&self) -> bool {
        match self {
            Command::Conform(options) => options.json,
            Command::Parity(options) => options.json,
            Command::Run(options) => options.json,
            Command::Explore(options) => options.json,
            Command::Replay(options) => options.json,
            Command::Shrink(options) => options.json,
            Command::Tour(_)
            | Command::Trace { .. }
            | Command::Status { .. }
            | Command::Completions { .. }
            | Command::Man { .. } => false,
        }
    }
}

/// Prints the completion script of a shell.
fn completions(shell: Shell, out: &mut impl Write) -> io::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "asx", &mut script);
    out.write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

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
        command_line().debug_assert();
    }

    #[test]
    fn help_lists_every_command_once_and_contributor_commands_apart() {
        let help = command_line().render_long_help().to_string();
        let (user, rest) =
            help.split_once("\nCommands for contributors to asx:\n").expect("groups");
        let (contributor, _) = rest.split_once("\nOptions:\n").expect("options");
        for command in Cli::command().get_subcommands() {
            let line = format!("\n  {} ", command.get_name());
            let is_user = !FOR_CONTRIBUTORS.contains(&command.get_name());
            assert_eq!(user.matches(&line).count(), usize::from(is_user), "{line}{help}");
            let contributor = format!("\n{contributor}");
            assert_eq!(contributor.matches(&line).count(), usize::from(!is_user), "{line}{help}");
        }
        let names: Vec<_> =
            Cli::command().get_subcommands().map(|it| it.get_name().to_owned()).collect();
        assert!(FOR_CONTRIBUTORS.iter().all(|name| names.iter().any(|own| own == name)));
    }

    #[test]
    fn completions_have_every_command_and_flag() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            completions(*shell, &mut script).expect("memory takes everything");
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
    fn help_of_every_command_has_exit_status_and_examples() {
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
