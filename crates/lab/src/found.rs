//! What a check has seen, for programs and for people.

use std::fmt;

use crate::explore::{Certificate, Schedule};
use crate::failure::Failure;
use crate::recording::Trace;

/// What a check has seen.
#[derive(Clone, Debug)]
pub struct Report {
    /// Runs, those for shrinking not among them.
    pub runs: u64,
    /// A run that failed.
    pub failure: Option<Found>,
    /// All classes of schedules were run.
    pub proof: Option<Certificate>,
    /// Cancels that were tried, of how many there are to try.
    pub cancels: Option<(usize, usize)>,
    /// Faults that were tried, of how many there are to try.
    pub faults: Option<(usize, usize)>,
    /// Whether one schedule was replayed, rather than many tried.
    pub is_replay: bool,
    /// Of a replay: how many of the schedule's changes found no place. More than none: the program
    /// is not the one that the schedule was found with.
    pub unused: usize,
}

/// A run that failed, and how to see it again.
#[derive(Clone, Debug)]
pub struct Found {
    /// What went wrong.
    pub failure: Failure,
    /// What the program is called.
    pub name: Option<String>,
    /// Which run it was, from 1.
    pub run: u64,
    /// How its schedule was chosen: `pct(3)`.
    pub strategy: String,
    /// What random choices came from.
    pub seed: u64,
    /// Names the schedule: `ASX_REPLAY=token cargo test name` runs it again.
    pub token: String,
    /// The schedule in words: where it leaves the usual order.
    pub words: Vec<String>,
    /// The schedule.
    pub schedule: Schedule,
    /// How many forced decisions fewer than when it was found.
    pub shrunk_by: usize,
    /// The run as a trace.
    pub trace: Option<Trace>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Some(found) => found.fmt(f)?,
            None if self.is_replay => write!(f, "the schedule was run, and does not fail")?,
            None => self.passed(f)?,
        }
        match self.unused {
            0 => Ok(()),
            unused => write!(
                f,
                "\nthe schedule does not fit: {unused} of its changes found no place; is the \
                 program another one by now?"
            ),
        }
    }
}

impl Report {
    fn passed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runs {
            1 => f.write_str("one run, which does not fail")?,
            runs => write!(f, "{runs} runs, none fails")?,
        }
        if let Some(Certificate { classes, hash }) = &self.proof {
            let classes = match classes {
                1 => String::from("one class"),
                more => format!("{more} classes"),
            };
            write!(f, "; these are all: {classes}, certificate {hash:016x}")?;
        }
        let disturbed = [(self.cancels, "cancels"), (self.faults, "faults")];
        let mut tried = disturbed.iter().filter_map(|(count, what)| Some((count.as_ref()?, what)));
        tried.try_for_each(|((tried, all), what)| write!(f, "; {tried} of {all} {what} tried"))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { failure, run, strategy, seed, words, shrunk_by, token, .. } = self;
        match &self.name {
            Some(name) => write!(f, "`{name}` fails")?,
            None => f.write_str("the program fails")?,
        }
        writeln!(f, " in run {run} (strategy {strategy}, seed {seed}):")?;
        write!(f, "{failure}")?;
        match words.len() {
            0 => f.write_str("in the usual order of polls")?,
            _ => f.write_str("when the usual order of polls is changed like this")?,
        }
        match shrunk_by {
            0 => {}
            1 => write!(f, " (one change that does not matter left out)")?,
            by => write!(f, " ({by} changes that do not matter left out)")?,
        }
        match words.len() {
            0 => writeln!(f)?,
            _ => writeln!(f, ":")?,
        }
        words.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        write!(f, "to see it again: ASX_REPLAY={token} cargo test")?;
        match &self.name {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}
