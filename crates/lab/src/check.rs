//! Many runs of one program: the search for one that fails, and the report of it.

use std::fmt;
use std::time::{Duration, Instant};

use asx_runtime::{Cx, Settings};

use crate::explore::{
    Bounded, Certificate, Decisions, Dfs, Dpor, Follow, Limits, Pct, Pos, Random, Schedule,
    Strategy, TokenError, Uniform, shrink,
};
use crate::failure::{Failure, Finding};
use crate::machine::{Machine, Plan};
use crate::quiet;

/// What the value of a program says about its run.
pub trait Judged {
    /// What went wrong, if anything did.
    fn judge(self) -> Option<Finding>;
    /// The same when the run was disturbed by a cancel: an error is then as good as a value.
    fn judge_disturbed(self) -> Option<Finding>;
}

impl Judged for () {
    fn judge(self) -> Option<Finding> {
        None
    }

    fn judge_disturbed(self) -> Option<Finding> {
        None
    }
}

impl<T, E: fmt::Debug> Judged for Result<T, E> {
    fn judge(self) -> Option<Finding> {
        self.err().map(|error| Finding::error(&error))
    }

    fn judge_disturbed(self) -> Option<Finding> {
        None
    }
}

/// How the next schedule is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// Every class of schedules if there are few, then a mixture of the random ones.
    #[default]
    Mixed,
    /// Any task that can run, each as likely as the other.
    Random,
    /// By how much each task has still to do.
    Uniform,
    /// By random priorities that are drawn anew where tasks meet.
    Pos,
    /// By random priorities that change at so many places.
    Pct(usize),
    /// All schedules.
    Dfs,
    /// One schedule of each class.
    Dpor,
    /// Those with few switches and few cancels first.
    Bounded,
}

/// A program to be checked.
#[must_use = "run it"]
#[derive(Clone, Debug)]
pub struct Check<F> {
    program: F,
    runs: u64,
    seed: u64,
    how: How,
    steps: u64,
    time: Option<Duration>,
    cancels: bool,
    transparent: bool,
}

/// Checks a program: runs it under many schedules and looks for one that fails.
///
/// ```
/// use asx_lab::check;
/// use asx_runtime::{Cancelled, Cx, channel};
/// let report = check(async |cx: Cx| {
///     let (tx, mut rx) = channel::bounded::<u32>(1);
///     cx.scope(async |s| {
///         let sender = s.spawn(async move |cx: Cx| Ok(tx.send(&cx, 7).await.is_ok()));
///         assert_eq!(rx.recv(&cx).await.ok(), Some(7));
///         assert!(sender.await.unwrap());
///         Ok::<_, Cancelled>(())
///     })
///     .await
/// })
/// .run();
/// assert!(report.failure.is_none() && report.proof.is_some(), "{report}");
/// ```
pub fn check<F, B>(program: F) -> Check<F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    let (runs, steps) = (1000, 10_000);
    Check {
        program,
        runs,
        seed: 0,
        how: How::Mixed,
        steps,
        time: None,
        cancels: false,
        transparent: false,
    }
}

impl<F> Check<F> {
    /// How many runs at most; 1000 unless set.
    pub fn runs(mut self, runs: u64) -> Self {
        self.runs = runs;
        self
    }

    /// What random choices come from; 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How schedules are chosen.
    pub fn how(mut self, how: How) -> Self {
        self.how = how;
        self
    }

    /// How many polls a run may take before it counts as endless; 10 000 unless set.
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }

    /// How long to search at most.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Says that tasks share nothing but channels, locks and other things of asx, so that polls that
    /// touch different ones commute and need not be tried in both orders. Atomics, standard locks
    /// and cells that several tasks use are not seen: with those, do not call this.
    pub fn transparent(mut self) -> Self {
        self.transparent = true;
        self
    }

    /// Has each task cancelled at each of its awaits, once and twice, one cancel a run.
    pub fn cancel_at_every_await(mut self) -> Self {
        self.cancels = true;
        self
    }
}

impl<F, B> Check<F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    /// Runs it.
    pub fn run(&self) -> Report {
        let mut search = Search::new(self);
        let first = if self.cancels { search.cancel_everywhere() } else { search.explore() };
        let failure = first.map(|failure| search.describe(failure));
        let Search { runs, proof, machine, .. } = search;
        Report { runs, failure, proof, cancels: self.cancels.then(|| machine.coverage()) }
    }

    /// Runs it, and panics with the report if a run fails. With a token in `ASX_REPLAY`, only that
    /// schedule is run.
    ///
    /// # Panics
    /// If a run fails, or if the token is none.
    pub fn assert(&self) {
        let report = match std::env::var("ASX_REPLAY") {
            Ok(token) => match self.replay(&token) {
                Ok(report) => report,
                Err(error) => panic!("ASX_REPLAY: {error}"),
            },
            Err(_) => self.run(),
        };
        assert!(report.failure.is_none(), "{report}");
    }

    /// Runs the one schedule that a token names.
    pub fn replay(&self, token: &str) -> Result<Report, TokenError> {
        let schedule = Schedule::from_token(token)?;
        let mut search = Search::new(self);
        let failure = search.follow(&schedule).map(|failure| {
            let log = search.machine.log();
            Found { failure, token: token.into(), words: words(&log), schedule, shrunk_by: 0 }
        });
        Ok(Report { runs: search.runs, failure, proof: None, cancels: None })
    }
}

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
}

/// A run that failed, and how to see it again.
#[derive(Clone, Debug)]
pub struct Found {
    /// What went wrong.
    pub failure: Failure,
    /// Names the schedule: `ASX_REPLAY=token cargo test name` runs it again.
    pub token: String,
    /// The schedule in words: where it leaves the usual order.
    pub words: Vec<String>,
    /// The schedule.
    pub schedule: Schedule,
    /// How many forced decisions fewer than when it was found.
    pub shrunk_by: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Some(found) => {
                writeln!(f, "run {} fails: {}", self.runs, found.failure)?;
                match found.words.len() {
                    0 => writeln!(f, "in the usual order of polls")?,
                    _ => writeln!(f, "when the order of polls is changed like this:")?,
                }
                found.words.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
                write!(f, "to see it again: ASX_REPLAY={}", found.token)
            }
            None => {
                write!(f, "{} runs, none fails", self.runs)?;
                if let Some(proof) = &self.proof {
                    let Certificate { classes, hash } = proof;
                    write!(f, "; these are all: {classes} classes, certificate {hash:016x}")?;
                }
                match self.cancels {
                    Some((tried, all)) => write!(f, "; {tried} of {all} cancels tried"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A check that is going on.
struct Search<'a, F> {
    check: &'a Check<F>,
    machine: Machine,
    runs: u64,
    end: Option<Instant>,
    proof: Option<Certificate>,
}

impl<'a, F, B> Search<'a, F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    fn new(check: &'a Check<F>) -> Self {
        let settings = Settings { operations: u32::MAX, ..Settings::default() };
        let end = check.time.and_then(|time| Instant::now().checked_add(time));
        Search { check, machine: Machine::new(settings), runs: 0, end, proof: None }
    }

    fn explore(&mut self) -> Option<Failure> {
        let Check { seed, how, runs, .. } = *self.check;
        match how {
            How::Mixed => {
                let failure = self.with(Dpor::new(), runs / 4);
                if failure.is_some() || self.proof.is_some() {
                    return failure;
                }
                let each = (runs - self.runs.min(runs)).div_ceil(4);
                self.with(Random::new(seed), each)
                    .or_else(|| self.with(Pos::new(seed), each))
                    .or_else(|| self.with(Pct::new(seed, 3), each))
                    .or_else(|| self.with(Uniform::new(seed), each))
            }
            How::Random => self.with(Random::new(seed), runs),
            How::Uniform => self.with(Uniform::new(seed), runs),
            How::Pos => self.with(Pos::new(seed), runs),
            How::Pct(depth) => self.with(Pct::new(seed, depth), runs),
            How::Dfs => self.with(Dfs::new(), runs),
            How::Dpor => self.with(Dpor::new(), runs),
            How::Bounded => self.with(Bounded::new(Limits::NONE, runs), runs),
        }
    }

    /// One cancel a run, in the usual order.
    fn cancel_everywhere(&mut self) -> Option<Failure> {
        let limits = Limits { preemptions: 0, cancels: 1 };
        self.with(Bounded::new(limits, u64::MAX), u64::MAX)
    }

    /// Runs what a strategy chooses, so many times at most.
    fn with(&mut self, strategy: impl Strategy + Send + 'static, most: u64) -> Option<Failure> {
        let mut strategy: Option<Box<dyn Strategy + Send>> = Some(Box::new(strategy));
        for _ in 0..most {
            if self.end.is_some_and(|end| Instant::now() >= end) {
                return None;
            }
            if !strategy.as_mut().is_some_and(|strategy| strategy.begin()) {
                break;
            }
            let failure = self.once(&mut strategy);
            self.runs += 1;
            if failure.is_some() {
                return failure;
            }
        }
        let strategy = strategy?;
        self.proof = strategy.progress().exhausted;
        None
    }

    fn once(&mut self, strategy: &mut Option<Box<dyn Strategy + Send>>) -> Option<Failure> {
        let Check { steps, cancels, transparent, .. } = *self.check;
        let plan = Plan { steps, cancels, transparent };
        let judge = match plan.cancels {
            true => Judged::judge_disturbed,
            false => Judged::judge,
        };
        quiet::during(|| self.machine.run(strategy, plan, &self.check.program, judge)).failure
    }

    fn follow(&mut self, schedule: &Schedule) -> Option<Failure> {
        let mut follow = Follow::new(schedule.clone());
        follow.begin();
        self.runs += 1;
        self.once(&mut Some(Box::new(follow)))
    }

    /// Makes the schedule of the last run small, and tells it.
    fn describe(&mut self, failure: Failure) -> Found {
        let (runs, schedule) = (self.runs, self.machine.log().schedule());
        let shrunk = shrink(&schedule, SHRINKING, |schedule, log| {
            let failure = self.follow(schedule);
            *log = self.machine.log();
            failure.map(|failure| failure.id())
        });
        self.runs = runs;
        let Some(shrunk) = shrunk else {
            let words = words(&self.machine.log());
            return Found { failure, token: schedule.token(), words, schedule, shrunk_by: 0 };
        };
        let failure = self.follow(&shrunk.schedule).unwrap_or(failure);
        self.runs = runs;
        Found {
            failure,
            token: shrunk.schedule.token(),
            words: words(&shrunk.log),
            shrunk_by: schedule.deviations.len().saturating_sub(shrunk.schedule.deviations.len()),
            schedule: shrunk.schedule,
        }
    }
}

/// Runs that shrinking may take.
const SHRINKING: u64 = 2000;

fn words(log: &Decisions) -> Vec<String> {
    log.words(|task| format!("{:06x}", task.tag()))
}
