//! What a check has seen, for programs and for people.

use std::fmt;
use std::time::Duration;

use asx_kernel::digest::Digest;

use crate::check::Grain;
use crate::explore::{Deviation, Point, Schedule};
use crate::failure::{Failure, Kind};
use crate::recording::Trace;

/// What a check has seen.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Runs, those for shrinking not among them.
    pub runs: u64,
    /// A run that failed.
    pub failure: Option<Found>,
    /// All classes of schedules were run.
    pub proof: Option<Proof>,
    /// All classes of schedules were run, but several tasks ran and no two of them used the same
    /// channel, lock or other object of asx. There was nothing to explore then, and no proof:
    /// standard locks, atomics, thread-locals and IO that tasks may share are not visible to the
    /// lab. Loom and shuttle check those.
    pub nothing_shared: bool,
    /// Cancels that were tried, of how many there are to try.
    pub cancels: Option<(usize, usize)>,
    /// Faults that were tried, of how many there are to try.
    pub faults: Option<(usize, usize)>,
    /// Faults of the network that were tried, in the usual order, of how many there are to try.
    pub network: Option<(usize, usize)>,
    /// What has ended it before it was through, if anything did.
    pub stopped: Option<Stopped>,
    /// Whether one schedule was replayed, rather than many tried.
    pub is_replay: bool,
    /// Of a replay: how many of the schedule's changes found no place. More than none: the program
    /// is not the one that the schedule was found with.
    pub unused: usize,
}

/// All classes of schedules were run, and none failed. Two runs are in one class if they differ
/// only in the order of steps that have nothing in common.
///
/// A step is an operation of asx with the code around it. The code of a task between two operations
/// runs as one step. The proof does not cover orders within a step: those in which several threads
/// use an atomic, a standard lock or a thread-local between two operations of asx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// What a task did in a row. At [poll grain](Grain::Poll) the proof holds for one worker; on
    /// several, others come in between two operations of a poll.
    pub grain: Grain,
    /// Whether it holds whatever tasks share. If not, they are taken to share nothing but channels,
    /// locks and other things of asx ([`opaque`](crate::Check::opaque)).
    pub shares_anything: bool,
    /// The orders of operations that were run in addition, without taking any two steps to commute.
    /// If tasks share more than objects of asx, these are a sample of the orders that differ.
    pub unreduced: u64,
    /// Whether there were timers: it then holds for time that stands still while tasks can run.
    pub timers: bool,
    /// Whether numbers were drawn with [`Cx::random`](asx_runtime::Cx::random): it then holds for
    /// one outcome of each draw.
    pub draws: bool,
    /// How many classes there are.
    pub classes: u64,
    /// A hash of the set of classes.
    pub hash: u64,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Proof { grain, shares_anything, unreduced, timers, draws, classes, hash } = self;
        write!(f, "these are all orders at {grain}")?;
        match (grain, shares_anything) {
            (Grain::Poll, true) => f.write_str(", for one worker")?,
            (Grain::Poll, false) => {
                f.write_str(", for one worker and for state shared through asx")?;
            }
            (Grain::Operation, true) => {
                f.write_str(", but not of std atomics and locks between two operations")?;
            }
            (Grain::Operation, false) => {
                f.write_str(", for state shared through asx (")?;
                match unreduced {
                    0 => f.write_str("not std locks or atomics")?,
                    runs => write!(f, "std locks and atomics were only tried in {runs} orders")?,
                }
                f.write_str("; the code between two operations runs as one step)")?;
            }
        }
        if *timers {
            f.write_str(", with time that stands still while tasks can run")?;
        }
        if *draws {
            f.write_str(", with one outcome of each `random`")?;
        }
        match classes {
            1 => f.write_str(": one class")?,
            more => write!(f, ": {more} classes")?,
        }
        write!(f, ", certificate {hash:016x}")
    }
}

/// Printed in place of a proof.
const NOTHING_SHARED: &str = "nothing is proved: the tasks share no channel, lock or other object \
                              of asx, and the lab cannot see std locks, atomics, thread-locals or \
                              IO; check those with loom or shuttle";

/// A part of a check, which has a share of its runs and of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Runs without disturbances, in different orders of polls and operations.
    Orders,
    /// Runs with one disturbance in the usual order, of several kinds that take turns.
    OneDisturbance,
    /// Runs with one cancel; see [`cancel_at_every_await`](crate::Check::cancel_at_every_await).
    Cancels,
    /// Runs with one fault; see [`faults`](crate::Check::faults).
    Faults,
    /// Runs with faults of the network; see [`network`](crate::Check::network).
    Network,
    /// Runs in which time passes while tasks can run.
    SlowMachine,
    /// Runs with several disturbances; see [`disturbances`](crate::Check::disturbances).
    Several,
}

impl Part {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Orders => "the runs in other orders",
            Part::OneDisturbance => "the runs with one disturbance",
            Part::Cancels => "the runs with cancels",
            Part::Faults => "the runs with faults",
            Part::Network => "the runs with faults of the network",
            Part::SlowMachine => "the runs on a slow machine",
            Part::Several => "the runs with several disturbances",
        }
    }
}

/// A limit that ended a check, or a part of it, before the search was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The check made all runs it may make; see [`Check::total`](crate::Check::total).
    Runs(u64),
    /// The check took as long as it may; see [`Check::time`](crate::Check::time).
    Time(Duration),
    /// The search was incomplete when the least time of the check was over; see
    /// [`Check::min_time`](crate::Check::min_time).
    MinTime(Duration),
    /// A part made its share of the runs, and the parts after it did not use up theirs.
    ShareOfRuns {
        /// The first part that was stopped.
        part: Part,
        /// The runs that it made.
        runs: u64,
        /// The limit of the whole check.
        limit: u64,
    },
    /// A part took its share of the time, and the parts after it did not use up theirs.
    ShareOfTime {
        /// The first part that was stopped.
        part: Part,
        /// How long it took.
        time: Duration,
        /// The limit of the whole check.
        limit: Duration,
    },
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Runs(runs) => write!(f, "stopped by the limit of {runs} runs in all"),
            Stopped::Time(time) => write!(f, "stopped by the limit of {time:?}"),
            Stopped::MinTime(time) => write!(f, "stopped after {time:?}, with more to try"),
            Stopped::ShareOfRuns { part, runs, limit } => {
                let part = part.name();
                write!(f, "{part} stopped after {runs}, their share of {limit} runs in all")
            }
            Stopped::ShareOfTime { part, time, limit } => {
                let part = part.name();
                write!(f, "{part} stopped after {time:.1?}, their share of {limit:?}")
            }
        }
    }
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
    /// Names the schedule: `ASX_REPLAY=token cargo test name` runs it again. In the report the
    /// token of a program with a name has a mark of that behind it, so that it fits no other.
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
        if let Some(proof) = &self.proof {
            write!(f, "; {proof}")?;
        }
        if self.nothing_shared {
            write!(f, "; {NOTHING_SHARED}")?;
        }
        let disturbed = [
            (self.cancels, "cancels"),
            (self.faults, "faults"),
            (self.network, "faults of the network"),
        ];
        let mut tried = disturbed.iter().filter_map(|(count, what)| Some((count.as_ref()?, what)));
        tried.try_for_each(|((tried, all), what)| write!(f, "; {tried} of {all} {what} tried"))?;
        if let Some(stopped) = self.stopped {
            write!(f, "; {stopped}")?;
        }
        self.advice().map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }

    /// How to look further, if there is more to see.
    fn advice(&self) -> Option<&'static str> {
        match self.stopped {
            Some(Stopped::Runs(_) | Stopped::ShareOfRuns { .. }) => Some("`total` allows more"),
            Some(Stopped::Time(_) | Stopped::ShareOfTime { .. }) => Some("`time` allows more"),
            Some(Stopped::MinTime(_)) => Some("`min_time` and `runs` allow more"),
            None if self.proof.is_some() || self.nothing_shared => None,
            None => Some(
                "not all orders were run: `runs` has more of them tried, and `how(How::Pct(5))` \
                 deeper ones",
            ),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { failure, run, strategy, seed, words, shrunk_by, .. } = self;
        match &self.name {
            Some(name) => write!(f, "`{name}` fails")?,
            None => f.write_str("the program fails")?,
        }
        if failure.finding.kind == Kind::Untried {
            // No run failed, so there is none to show or to replay.
            return write!(f, " after {run} runs: {}", failure.finding.message);
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
        let of_time = |it: &Deviation| matches!(it, Deviation::Pick { point: Point::Timer, .. });
        if self.schedule.deviations.iter().any(of_time) {
            writeln!(f, "if it is meant to count on exact times: `exact_time` has no such runs")?;
        }
        write!(f, "to see it again: {}", self.command())
    }
}

impl Found {
    /// Returns the command that runs the schedule again. It names the test that this thread runs,
    /// because a check can have a name that no test has; without a test, it names the check.
    pub(crate) fn command(&self) -> String {
        let mark = self.name.as_deref().map(mark_of).unwrap_or_default();
        let test = running_test().or_else(|| self.name.clone());
        let test = test.map_or_else(String::new, |test| format!(" {test}"));
        format!("ASX_REPLAY={}{mark} cargo test{test}", self.token)
    }
}

/// Returns the name of the test that this thread runs. The test harness names threads after tests.
pub(crate) fn running_test() -> Option<String> {
    std::thread::current().name().filter(|name| *name != "main").map(String::from)
}

/// What a token has behind it that is for the program of this name.
pub(crate) fn mark_of(name: &str) -> String {
    format!(".{:04x}", Digest::new().bytes(name.as_bytes()).value() & 0xffff)
}
