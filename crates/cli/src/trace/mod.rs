//! `asx trace`: check, show, compare, convert and draw traces.

mod again;
mod compare;
mod convert;
mod digest;
mod export;
mod file;
mod record;
mod report;
mod show;
mod verify;

pub(crate) use again::replay;
pub(crate) use record::{Recording, known_codec};

use crate::output::printable;
use clap::{Subcommand, ValueEnum};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check that a trace is whole; strictly, also that the laws allow what it tells.
    #[command(after_help = "Examples:
  asx trace verify run.asxt
  asx trace verify run.jsonl --strict --json

Exit status:
  0  it is whole, and lawful
  1  it is not
  2  it cannot be read")]
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
  asx trace show run.asxt --task 1 --kind task_moved
  asx trace show run.asxt --from 10 --to 12
  asx trace show run.asxt --kind decision --json

Exit status:
  0  the events were shown
  1  no event matches
  2  the trace cannot be read, or there is no such task or kind of event")]
    Show(Show),
    /// Show where two traces part; what only the host saw does not count.
    #[command(after_help = "Examples:
  asx trace diff before.asxt after.asxt
  asx trace diff a.jsonl b.asxt --json

Exit status:
  0  they are the same
  1  they part
  2  one cannot be read")]
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
        after_help = "Examples:\n  asx trace digest run.asxt\n  asx trace digest run.jsonl --json

Exit status:
  0  it is that of the end record, and the trace is whole
  1  it is not
  2  it cannot be read"
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
  asx trace convert run.jsonl run.trace --to bin

Exit status:
  0  it was written
  2  it cannot be read, or the output not be written")]
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
    /// Draw a trace as a page to look at in a browser; of a damaged one what can be read.
    #[command(after_help = "Examples:
  asx trace report --html run.html run.asxt
  asx trace report --html run.html run.jsonl --json

The page is one file that needs nothing else: no other file, no network.

Exit status:
  0  it was written
  2  it cannot be read, or the page not be written")]
    Report {
        /// The trace.
        file: PathBuf,
        /// The page to write; never the trace itself.
        #[arg(long, value_name = "OUT")]
        html: PathBuf,
        /// One JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Write a trace for a trace viewer; of a damaged one what can be read.
    #[command(after_help = "Examples:
  asx trace export --perfetto run.json run.asxt
  asx trace export --perfetto run.json run.jsonl --axis time

Perfetto and Chrome's tracing page open the file.

Exit status:
  0  it was written
  2  it cannot be read, or the output not be written")]
    Export {
        /// The trace.
        file: PathBuf,
        /// The file to write, in the trace event format; never the trace itself.
        #[arg(long, value_name = "OUT")]
        perfetto: PathBuf,
        /// What the viewer's clock shows.
        #[arg(long, value_enum, default_value_t)]
        axis: Axis,
        /// One JSON object on standard output.
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// The trace.
    file: PathBuf,
    /// Only events of the task with this number.
    #[arg(long, value_name = "N")]
    task: Option<u64>,
    /// Only events of this kind; the last words of its name are enough.
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

/// What a viewer's clock shows.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Axis {
    /// Every event takes a microsecond.
    #[default]
    Order,
    /// Logical time; events of one moment are a nanosecond apart.
    Time,
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
        Command::Report { file, html, json } => report::report(file, html, *json, out),
        Command::Export { file, perfetto, axis, json } => {
            export::export(file, perfetto, *axis, *json, out)
        }
    };
    match done {
        Ok(code) => Ok(code),
        Err(Failed::Output(error)) => Err(error),
        Err(Failed::Input(why)) => {
            complain!("asx: {}", printable(&why));
            if command.wants_object() {
                writeln!(out, "{}", serde_json::json!({ "error": why }))?;
            }
            Ok(ExitCode::from(2))
        }
    }
}

impl Command {
    /// Whether what comes out is to be one JSON object, also if nothing else can be said.
    fn wants_object(&self) -> bool {
        match self {
            Command::Verify { json, .. }
            | Command::Diff { json, .. }
            | Command::Digest { json, .. }
            | Command::Convert { json, .. }
            | Command::Report { json, .. }
            | Command::Export { json, .. } => *json,
            Command::Show(_) => false,
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
