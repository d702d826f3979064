//! Many runs of one program: the search for one that fails, and the report of it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use asx_kernel::lanes::TieBreak;
use asx_runtime::Cx;

use crate::explore::{Schedule, TokenError};
use crate::failure::Finding;
use crate::found::Report;
use crate::recording::Trace;
use crate::report;
use crate::search::Search;

/// What the value of a program says about its run.
#[diagnostic::on_unimplemented(
    message = "a program under test gives `()` or a `Result`, not `{Self}`",
    label = "neither `()` nor a `Result` with a `Debug` error",
    note = "whatever else is to be checked, check it in the program, with `assert!`"
)]
pub trait Judged {
    /// What went wrong, if anything did.
    fn judge(self) -> Option<Finding>;
    /// The same when the run was disturbed, by a cancel or a fault: an error is then as good as a
    /// value.
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
    /// Every class of schedules if there are few, then a mixture of the random ones; then some in
    /// which others may go between any two operations of a task, as on several threads.
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

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Mixed => f.write_str("mixed"),
            How::Random => f.write_str("random"),
            How::Uniform => f.write_str("uniform"),
            How::Pos => f.write_str("pos"),
            How::Pct(depth) => write!(f, "pct({depth})"),
            How::Dfs => f.write_str("dfs"),
            How::Dpor => f.write_str("dpor"),
            How::Bounded => f.write_str("bounded"),
        }
    }
}

/// More virtual workers than this tell nothing that fewer would not.
const MOST_WORKERS: usize = 256;

/// A program to be checked.
#[must_use = "run it"]
#[derive(Clone, Debug)]
pub struct Check<F> {
    pub(crate) program: F,
    pub(crate) name: Option<String>,
    pub(crate) runs: u64,
    pub(crate) seed: u64,
    pub(crate) how: How,
    pub(crate) steps: u64,
    pub(crate) latency: u64,
    pub(crate) time: Option<Duration>,
    pub(crate) cancels: bool,
    pub(crate) faults: bool,
    pub(crate) late_clocks: bool,
    pub(crate) transparent: bool,
    pub(crate) workers: usize,
    pub(crate) tie_break: TieBreak,
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
    let runs = 1000;
    let steps = 10_000;
    Check {
        program,
        name: None,
        runs,
        seed: 0,
        how: How::Mixed,
        steps,
        latency: 1000,
        time: None,
        cancels: false,
        faults: false,
        late_clocks: false,
        transparent: false,
        workers: 0,
        tie_break: TieBreak::Fifo,
    }
}

impl<F> Check<F> {
    /// What the program is called, in reports and in the names of files: the name of the test.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

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

    /// How many polls a task may take from when it is asked to stop to where it sees that; 1000
    /// unless set.
    pub fn cancel_latency(mut self, polls: u64) -> Self {
        self.latency = polls;
        self
    }

    /// How long to search at most.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// Says that tasks share nothing but channels, locks and other things of asx, so that polls
    /// that touch different ones commute and need not be tried in both orders. Atomics, standard
    /// locks and cells that several tasks use are not seen: with those, do not call this.
    pub fn transparent(mut self) -> Self {
        self.transparent = true;
        self
    }

    /// Has so many virtual workers run the program by the law of the scheduler, with its lanes,
    /// streaks and stealing. The strategy chooses which of them goes on. There are fewer orders
    /// than without, where anything that can run may be next, and each is one that threads can
    /// have. Classes of orders are not told apart then: all are run if there are few. Cancels come
    /// right after polls, not right before them. More than 256 workers count as 256.
    ///
    /// ```
    /// use asx_lab::check;
    /// use asx_runtime::{Cancelled, Cx};
    /// let report = check(async |cx: Cx| {
    ///     cx.scope(async |s| {
    ///         let tasks = [1, 2].map(|n| s.spawn(async move |_cx: Cx| Ok(n)));
    ///         for task in tasks {
    ///             task.await.expect("a number");
    ///         }
    ///         Ok::<_, Cancelled>(())
    ///     })
    ///     .await
    /// })
    /// .workers(2)
    /// .run();
    /// assert!(report.failure.is_none() && report.proof.is_some(), "{report}");
    /// ```
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.min(MOST_WORKERS);
        self
    }

    /// How the workers of [`workers`](Check::workers) order entries of equal priority: as they
    /// came, by the strategy's choice, or by task id. Without workers it does nothing.
    pub fn tie_break(mut self, tie_break: TieBreak) -> Self {
        self.tie_break = tie_break;
        self
    }

    /// Has each task cancelled at each of its awaits as well, one cancel a run: as soon as it
    /// waits, once and twice, and as late as can be, when it is about to go on. That is after the
    /// runs without, in the usual order, and then in others without preemptions. A program that was
    /// cancelled may answer with an error.
    pub fn cancel_at_every_await(mut self) -> Self {
        self.cancels = true;
        self
    }

    /// Has something go wrong wherever it may, one fault a run, after the runs without:
    /// * where the program says so, with [`Cx::fault`];
    /// * after each poll of a task that waits: it is woken for nothing, and must not mind;
    /// * when time moves on, with [`late_clocks`](Check::late_clocks).
    ///
    /// A program that met a fault may answer with an error, but not for a wake.
    ///
    /// ```
    /// use asx_lab::check;
    /// use asx_runtime::Cx;
    /// let report = check(async |cx: Cx| {
    ///     let stored = (0..2).filter(|_| !cx.fault("disk full")).count();
    ///     assert_eq!(stored, 2, "a line is missing");
    /// })
    /// .faults()
    /// .run();
    /// let found = report.failure.expect("nobody looks whether the disk is full");
    /// assert_eq!(found.words, ["disk full in poll 1 of `main`"]);
    /// ```
    pub fn faults(mut self) -> Self {
        self.faults = true;
        self
    }

    /// Counts it among the [faults](Check::faults) that a clock is an hour late, as after a machine
    /// has slept. A program that minds how late it is fails then.
    pub fn late_clocks(mut self) -> Self {
        (self.faults, self.late_clocks) = (true, true);
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
        Search::new(self).all()
    }

    /// One run, in an order that is drawn from a seed, as a trace: to look at a run that does not
    /// fail, or to compare two.
    ///
    /// ```
    /// use asx_lab::check;
    /// use asx_runtime::Cx;
    /// let program = check(async |cx: Cx| cx.yield_now().await);
    /// assert_eq!(program.record(7), program.record(7));
    /// ```
    pub fn record(&self, seed: u64) -> Trace {
        Search::new(self).recorded(seed)
    }

    /// Runs it, and panics with the report if a run fails; what there is to see of that run is in
    /// files then ([`report::write`]). With a token in `ASX_REPLAY`, only that schedule is run.
    ///
    /// # Panics
    /// If a run fails, or if the token is none.
    #[track_caller]
    pub fn assert(&self) {
        let report = match replayed() {
            None => self.run(),
            Some(token) => match self.replay(&token) {
                Ok(report) => report,
                Err(error) => panic!(
                    "ASX_REPLAY={token}: {error}\ncopy the whole token from the report of the test"
                ),
            },
        };
        let Some(found) = &report.failure else {
            if report.is_replay {
                println!("ASX_REPLAY: {report}");
            }
            return;
        };
        let folder = report::folder();
        let line = |path: &PathBuf| format!("\nto see what happened: {}", path.display());
        let files: String = match report::write(found, &folder) {
            Ok(paths) => paths.iter().map(line).collect(),
            Err(error) => format!("\nno trace in {}: {error}", folder.display()),
        };
        panic!("{report}{files}");
    }

    /// Runs the one schedule that a token names.
    pub fn replay(&self, token: &str) -> Result<Report, TokenError> {
        let (schedule, grain) = Schedule::with_grain(token)?;
        Ok(Search::new(self).of(grain).replay(schedule))
    }
}

/// What is to be replayed, says who started the tests.
pub(crate) fn replayed() -> Option<String> {
    std::env::var("ASX_REPLAY").ok().filter(|token| !token.is_empty())
}
