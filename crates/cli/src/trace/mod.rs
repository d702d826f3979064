//! `asx trace`: check, show, compare and convert traces.

mod compare;
mod convert;
mod digest;
mod file;
mod record;
mod show;
mod verify;

pub(crate) use record::record;

use clap::{Subcommand, ValueEnum};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check that a trace is whole; strictly, also that the laws allow what it tells.
    #[command(after_help = "Examples:
  asx trace verify run.asxt
  asx trace verify run.jsonl --strict --json")]
    Verify {
        /// The trace.
        file: PathBuf,
        /// Hold it against every law.
        #[arg(long)]
        strict: bool,
        /// One JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Show a trace, with names where it has them.
    #[command(after_help = "Examples:
  asx trace show run.asxt
  asx trace show run.asxt --task 3 --kind task_moved
  asx trace show run.asxt --from 100 --to 120
  asx trace show run.asxt --kind decision --json")]
    Show(Show),
    /// Show where two traces part; what only the host saw does not count.
    #[command(after_help = "Examples:
  asx trace diff before.asxt after.asxt
  asx trace diff a.jsonl b.asxt --json")]
    Diff {
        /// One trace.
        a: PathBuf,
        /// The other.
        b: PathBuf,
        /// One JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Show the digest of a trace's events.
    #[command(
        after_help = "Examples:\n  asx trace digest run.asxt\n  asx trace digest run.jsonl --json"
    )]
    Digest {
        /// The trace.
        file: PathBuf,
        /// One JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Write a trace in another codec.
    #[command(after_help = "Examples:
  asx trace convert run.asxt run.jsonl
  asx trace convert run.jsonl run.trace --to bin")]
    Convert {
        /// The trace.
        input: PathBuf,
        /// What to write; never the trace itself.
        output: PathBuf,
        /// The codec; without it the ending says: `.jsonl` or `.asxt`.
        #[arg(long)]
        to: Option<To>,
        /// One JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// The trace.
    file: PathBuf,
    /// Only events of the task of this number.
    #[arg(long, value_name = "N")]
    task: Option<u64>,
    /// Only events of this kind.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// From this event on.
    #[arg(long, value_name = "SEQ")]
    from: Option<u64>,
    /// Up to this event.
    #[arg(long, value_name = "SEQ")]
    to: Option<u64>,
    /// JSON lines, as in a trace.
    #[arg(long)]
    json: bool,
}

/// The codecs by name.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum To {
    Jsonl,
    Bin,
}

pub(crate) fn trace(command: &Command, out: &mut impl Write) -> io::Result<ExitCode> {
    let done = match command {
        Command::Verify { file, strict, json } => verify::verify(file, *strict, *json, out),
        Command::Show(options) => show::show(options, out),
        Command::Diff { a, b, json } => compare::compare([a, b], *json, out),
        Command::Digest { file, json } => digest::digest(file, *json, out),
        Command::Convert { input, output, to, json } => {
            convert::convert(input, output, *to, *json, out)
        }
    };
    match done {
        Ok(code) => Ok(code),
        Err(Failed::Output(error)) => Err(error),
        Err(Failed::Input(why)) => {
            eprintln!("asx: {why}");
            Ok(ExitCode::from(2))
        }
    }
}

/// Why a command could not do what it was asked.
enum Failed {
    /// Standard output is gone.
    Output(io::Error),
    /// The input is unusable, or the output file cannot be written.
    Input(String),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Output(error)
    }
}

type Done = Result<ExitCode, Failed>;

/// Success if it holds.
fn holds(yes: bool) -> ExitCode {
    if yes { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
