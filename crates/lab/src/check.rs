//! Many runs of one program: the search for one that fails, and the report of it.

use std::cell::Cell;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use asx_kernel::cancel::ChainLimits;
use asx_kernel::lanes::TieBreak;
use asx_kernel::wheel::WheelConfig;
use asx_runtime::{Cx, Limits};

use crate::explore::{Points, Schedule, TokenError};
use crate::failure::Finding;
use crate::found::{Report, mark_of};
use crate::net::{Faults, Names};
use crate::panic_hook;
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
    /// At random, from where something new was seen in a run before.
    Guided,
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
            How::Guided => f.write_str("guided"),
            How::Dfs => f.write_str("dfs"),
            How::Dpor => f.write_str("dpor"),
            How::Bounded => f.write_str("bounded"),
        }
    }
}

/// What a task does in a row, before others may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// A whole poll: all it does until it waits. So it is with one worker.
    Poll,
    /// One operation on anything that tasks share, whether it may wait (`lock`, `send`) or not
    /// (`try_send`, `is_closed`, `spawn`, `cancel`, a guard that is dropped). So it is with several
    /// workers, each of which runs at its own pace.
    Operation,
}

impl fmt::Display for Grain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Grain::Poll => "poll grain",
            Grain::Operation => "operation grain",
        })
    }
}

/// What tasks have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nobody said: channels, locks and other things of asx at operation grain; anything at all at
    /// poll grain.
    ByGrain,
    /// Channels, locks and other things of asx.
    OfAsx,
    /// Anything at all.
    Anything,
}

/// How many runs a check makes in all, for each without cancels and faults.
pub(crate) const IN_ALL: u64 = 10;

/// How long a check takes at most.
const LONGEST: Duration = Duration::from_secs(10);

/// How long a check takes at least if its search is incomplete.
const LEAST: Duration = Duration::from_secs(1);

/// Overrides [`LEAST`] for checks that do not set it: `0`, `250ms`, `2s` or `1m`.
const LEAST_VARIABLE: &str = "ASX_LAB_TIME";

/// More virtual workers than this tell nothing that fewer would not.
const MOST_WORKERS: usize = 256;

/// A program to be checked.
#[must_use = "run it"]
#[derive(Clone, Debug)]
pub struct Check<F> {
    pub(crate) program: F,
    pub(crate) name: Option<String>,
    pub(crate) runs: u64,
    /// Whether so many are made however long they are.
    pub(crate) is_large: bool,
    pub(crate) total: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) how: How,
    pub(crate) steps: u64,
    /// Whether more are allowed if there are many tasks.
    pub(crate) grows: bool,
    pub(crate) latency: u64,
    pub(crate) time: Option<Duration>,
    pub(crate) min_time: Option<Duration>,
    pub(crate) cancels: bool,
    pub(crate) faults: bool,
    pub(crate) late_clocks: bool,
    pub(crate) exact_time: bool,
    pub(crate) disturbances: usize,
    pub(crate) network: Faults,
    pub(crate) names: Names,
    pub(crate) sharing: Sharing,
    pub(crate) grain: Option<Grain>,
    pub(crate) workers: usize,
    pub(crate) tie_break: TieBreak,
    pub(crate) wheel: WheelConfig,
    pub(crate) chain: ChainLimits,
    pub(crate) limits: Option<Limits>,
}

/// Checks a program: runs it under many schedules and looks for one that fails.
///
/// ```
/// use asx::{Cancelled, Cx, channel, lab::check};
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
        is_large: false,
        total: None,
        seed: 0,
        how: How::Mixed,
        steps,
        grows: true,
        latency: 1000,
        time: None,
        min_time: None,
        cancels: false,
        faults: false,
        late_clocks: false,
        exact_time: false,
        disturbances: 2,
        network: Faults::none(),
        names: Names::default(),
        sharing: Sharing::ByGrain,
        grain: None,
        workers: 0,
        tie_break: TieBreak::Fifo,
        wheel: WheelConfig::default(),
        chain: ChainLimits::default(),
        limits: None,
    }
}

impl<F> Check<F> {
    /// What the program is called, in reports and in the names of files: the name of the test.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How many runs at most without cancels and faults; 1000 unless set. Those with come on top;
    /// [`total`](Check::total) bounds all of them together.
    ///
    /// Of a program that takes many polls fewer are made, unless this is called.
    pub fn runs(mut self, runs: u64) -> Self {
        self.runs = runs;
        self.is_large = true;
        self
    }

    /// How many runs at most in all: without cancels and faults, with [each
    /// cancel](Check::cancel_at_every_await), with [each fault](Check::faults), and with faults of
    /// the [network](Check::network). Ten times as many as [`runs`](Check::runs) unless set.
    /// [`Report::stopped`] has the limit or the share that ended the search, and the report counts
    /// the cancels and faults that were tried by then. The requested kinds take turns; one of which
    /// none was tried fails the check ([`Kind::Untried`](crate::Kind::Untried)).
    ///
    /// ```
    /// use asx::{Cx, lab::{Stopped, check}};
    /// let program = check(async |cx: Cx| {
    ///     for _ in 0..100 {
    ///         cx.yield_now().await;
    ///     }
    /// });
    /// let report = program.runs(8).cancel_at_every_await().total(40).run();
    /// assert_eq!((report.runs, report.stopped), (40, Some(Stopped::Runs(40))), "{report}");
    /// assert!(report.cancels.is_some_and(|(tried, all)| tried < all), "{report}");
    /// ```
    pub fn total(mut self, runs: u64) -> Self {
        self.total = Some(runs);
        self
    }

    /// How many runs there may be in all.
    pub(crate) fn most_runs(&self) -> u64 {
        self.total.unwrap_or(self.runs.saturating_mul(IN_ALL))
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

    /// How many polls a run may take before it counts as endless; unless set 10 000, or 200 for
    /// each task if that is more.
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self.grows = false;
        self
    }

    /// How many polls a task may take from when it is asked to stop to where it sees that; 1000
    /// unless set.
    pub fn cancel_latency(mut self, polls: u64) -> Self {
        self.latency = polls;
        self
    }

    /// How long to search at most; ten seconds unless set. Each [part](crate::Part) of the check
    /// has an equal share of the time that is left when it begins. [`Report::stopped`] has the
    /// limit or the share that ended the search.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }

    /// How long to search at least if there is more to try: the runs of the check are followed by
    /// rounds of more runs, with other random numbers, until the search is complete or this time is
    /// over. One second unless set, or as the environment variable `ASX_LAB_TIME` says (`0`,
    /// `250ms`, `2s`, `1m`); never longer than [`time`](Check::time). Checks that set
    /// [`runs`](Check::runs), [`total`](Check::total) or [`how`](Check::how) make just those runs.
    ///
    /// The runs are the same on each machine, in the same order; a faster one makes more of them.
    /// So a failure has the same run number and token wherever it is found. With zero, a check
    /// always makes the same number of runs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use asx::{Cx, lab::check};
    /// let program = check(async |cx: Cx| {
    ///     let number = cx.random();
    ///     cx.yield_now().await;
    ///     assert!(number % 2000 != 7, "one number of 2000");
    /// });
    /// let report = program.clone().min_time(Duration::ZERO).run();
    /// assert!(report.failure.is_none(), "{report}");
    /// let report = program.min_time(Duration::from_secs(10)).run();
    /// assert!(report.failure.is_some_and(|found| found.run > 1000));
    /// ```
    pub fn min_time(mut self, time: Duration) -> Self {
        self.min_time = Some(time);
        self
    }

    /// How long it takes at least if its search is incomplete.
    ///
    /// # Panics
    /// If the environment variable has no time in it.
    pub(crate) fn least(&self) -> Duration {
        let least = self.min_time.unwrap_or_else(|| match std::env::var(LEAST_VARIABLE) {
            Ok(text) => parse_time(&text).unwrap_or_else(|| {
                panic!("{LEAST_VARIABLE}={text}: a time such as 0, 250ms, 2s or 1m is needed")
            }),
            Err(_) => LEAST,
        });
        least.min(self.longest())
    }

    /// How long it may take.
    pub(crate) fn longest(&self) -> Duration {
        self.time.unwrap_or(LONGEST)
    }

    /// Says that tasks share nothing but channels, locks and other things of asx, so that polls
    /// that touch different ones commute and need not be tried in both orders. Atomics, standard
    /// locks and cells that several tasks use are not seen: with those, do not call this.
    ///
    /// At [operation grain](Grain::Operation) this is what a proof takes for granted unless
    /// [`opaque`](Check::opaque) is called.
    pub fn transparent(mut self) -> Self {
        self.sharing = Sharing::OfAsx;
        self
    }

    /// Says that tasks share more than things of asx: atomics, standard locks, cells. Then no two
    /// steps are taken to commute, so that a proof takes many more runs, and holds for these, too,
    /// as far as they are used next to operations of asx.
    pub fn opaque(mut self) -> Self {
        self.sharing = Sharing::Anything;
        self
    }

    /// What a task does in a row, before others may go. Unless set, a check looks at both, and
    /// [`how`](Check::how) at operations.
    ///
    /// ```
    /// use asx::lab::{Grain, How, check};
    /// use asx::{Cancelled, Cx, channel};
    /// let program = async |cx: Cx| {
    ///     let (tx, mut rx) = channel::bounded::<u32>(1);
    ///     cx.scope(async |s| {
    ///         s.spawn(async move |_cx: Cx| Ok(drop(rx.try_recv()))).await.unwrap();
    ///         Ok::<_, Cancelled>(())
    ///     })
    ///     .await
    ///     .unwrap();
    ///     drop(tx);
    /// };
    /// let report = check(program).grain(Grain::Poll).how(How::Dpor).run();
    /// assert_eq!(report.proof.map(|proof| proof.grain), Some(Grain::Poll), "{report}");
    /// ```
    pub fn grain(mut self, grain: Grain) -> Self {
        self.grain = Some(grain);
        self
    }

    /// Has so many virtual workers run the program by the law of the scheduler, with its lanes,
    /// streaks and stealing. The strategy chooses which of them goes on. There are fewer orders
    /// than without, where anything that can run may be next, and each is one that threads can
    /// have. Classes of orders are not told apart then: all are run if there are few. Cancels come
    /// right after polls, not right before them. More than 256 workers count as 256.
    ///
    /// ```
    /// use asx::{Cancelled, Cx, lab::check};
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

    /// Sets how far away a sleep, timeout or tick may be, exactly that far included: 7 days unless
    /// set, as on threads. `Duration::MAX` removes the limit.
    ///
    /// ```
    /// use asx::{Cancelled, Cx, lab::check};
    /// use std::time::Duration;
    ///
    /// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    /// let program = check(async |cx: Cx| cx.sleep(8 * DAY).await);
    /// let report = program.run();
    /// let found = report.failure.expect("the timer is refused").to_string();
    /// assert!(found.contains("max_timer_duration"), "{found}");
    /// assert!(program.max_timer_duration(8 * DAY).run().failure.is_none());
    /// ```
    pub fn max_timer_duration(mut self, longest: Duration) -> Self {
        self.wheel.max_timer_duration = longest;
        self
    }

    /// Sets how many sleeps, timeouts and ticks may wait at a time: any number unless set. Whether
    /// one is refused depends on all tasks, so that the check is [opaque](Check::opaque).
    pub fn max_timers(mut self, timers: usize) -> Self {
        self.wheel.limit = timers;
        self.opaque()
    }

    /// Sets how many of each thing there may be at a time: any number unless set. Whether something
    /// is refused depends on all tasks, so that the check is [opaque](Check::opaque).
    ///
    /// ```
    /// use asx::lab::{Grain, check};
    /// use asx::{CancelError, Cancelled, Cx, Limits};
    /// let program = check(async |cx: Cx| {
    ///     cx.scope(async |s| {
    ///         let tasks = [1, 2].map(|_| s.spawn(async |_cx: Cx| Ok::<_, Cancelled>(())));
    ///         let answers = tasks.each_ref().map(|task| task.try_cancel("enough"));
    ///         assert_eq!(answers, [Ok(true), Err(CancelError::LimitReached)]);
    ///         Ok(())
    ///     })
    ///     .await
    /// });
    /// let limits = Limits { cancel_queue: 1, ..Limits::default() };
    /// let report = program.limits(limits).grain(Grain::Poll).run();
    /// assert!(report.failure.is_none(), "{report}");
    /// ```
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self.opaque()
    }

    /// Sets the range of the timer wheel: 24 hours unless set. Timers at least this far away wait
    /// in a heap.
    pub fn max_wheel_duration(mut self, range: Duration) -> Self {
        self.wheel.max_wheel_duration = range;
        self
    }

    /// Sets how long the chain of causes of a cancel may get: links (16 unless set) and bytes (4096
    /// unless set), as the builder of a runtime on threads does.
    pub fn cancel_chain(mut self, depth: usize, bytes: usize) -> Self {
        self.chain = ChainLimits { depth, bytes };
        self
    }

    /// Has each task cancelled at each of its awaits as well, one cancel a run and then
    /// [two](Check::disturbances): as soon as it
    /// waits, once and twice, and as late as can be, when it is about to go on. That is after the
    /// runs without, in the usual order, and then in others without preemptions. A program that was
    /// cancelled may answer with an error.
    pub fn cancel_at_every_await(mut self) -> Self {
        self.cancels = true;
        self
    }

    /// Has something go wrong wherever it may, one fault a run and then
    /// [two](Check::disturbances), after the runs without:
    /// * where the program says so, with [`Cx::fault`];
    /// * after each poll of a task that waits: it is woken for nothing, and must not mind;
    /// * when time moves on, with [`late_clocks`](Check::late_clocks).
    ///
    /// A program that met a fault may answer with an error, but not for a wake.
    ///
    /// ```
    /// use asx::{Cx, lab::check};
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

    /// Has this go wrong in the network, after the runs in which nothing does: first each fault
    /// alone wherever it may be, in the usual order, then several of them in random orders, as many
    /// runs as there were without. [`Faults`] says how many there are in a run at most. A program
    /// that met a fault may answer with an error, but not if all that went wrong is that segments
    /// came in pieces.
    ///
    /// ```
    /// use asx::lab::{Faults, check};
    /// use asx::net::{TcpListener, TcpStream};
    /// use asx::{Cx, io};
    ///
    /// let report = check(async |cx: Cx| -> io::Result<()> {
    ///     let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
    ///     let mut client = TcpStream::connect(&cx, "127.0.0.1:80").await?;
    ///     let (mut server, _) = listener.accept(&cx).await?;
    ///     client.write_all(&cx, b"hello").await?;
    ///     let mut buffer = [0; 5];
    ///     assert_eq!(server.read(&cx, &mut buffer).await?, 5, "part of a message");
    ///     Ok(())
    /// })
    /// .network(Faults::none().chunks(1))
    /// .run();
    /// let found = report.failure.expect("a read may give less than was sent");
    /// assert!(found.words[0].starts_with("1 of 5 bytes came first of the 1st segment from "));
    /// ```
    pub fn network(mut self, faults: Faults) -> Self {
        self.network = faults;
        self
    }

    /// Adds a host to the network, which else has `localhost` alone: its name can be looked up, and
    /// its address bound.
    pub fn host(mut self, name: &str, address: impl Into<IpAddr>) -> Self {
        self.names.add(name, address.into());
        self
    }

    /// How many cancels and faults there may be in a run, of all kinds that the check asks for
    /// ([`cancel_at_every_await`](Check::cancel_at_every_await), [`faults`](Check::faults),
    /// [`network`](Check::network)); two unless set. Each is tried alone first. Then follow runs
    /// with two of them in the usual order, as many as there is time for, and random ones with
    /// about so many. An eighth of all [runs](Check::total) is kept for these. With 1 there are
    /// none.
    ///
    /// ```
    /// use asx::{Cx, lab::check};
    /// let program = async |cx: Cx| {
    ///     let is_full = cx.fault("disk full");
    ///     cx.yield_now().await;
    ///     assert!(!is_full || !cx.fault("no route"), "no copy is left");
    /// };
    /// assert!(check(program).faults().disturbances(1).run().failure.is_none());
    /// let found = check(program).faults().run().failure.expect("both may happen");
    /// assert_eq!(found.words.len(), 2, "{found}");
    /// ```
    pub fn disturbances(mut self, times: usize) -> Self {
        self.disturbances = times;
        self
    }

    /// Has time stand still while anything can run, in all runs.
    ///
    /// Unless this is called, or [`how`](Check::how), runs of a program with timers follow in which
    /// the machine is slow: time passes though tasks could run, so that a timer comes due before
    /// work that was ready. A program may then answer with an error. One that counts on exact times
    /// fails, as it may on a machine that is busy:
    ///
    /// ```
    /// use asx::{Cancelled, Cx, lab::check, time::DurationExt as _};
    /// let program = async |cx: Cx| {
    ///     let start = cx.now();
    ///     cx.sleep(1.secs()).await?;
    ///     assert_eq!(cx.now() - start, 1.secs());
    ///     Ok::<_, Cancelled>(())
    /// };
    /// assert!(check(program).exact_time().run().failure.is_none());
    /// let found = check(program).run().failure.expect("a sleep may take longer");
    /// assert!(found.words[0].starts_with("the machine was slow "), "{found}");
    /// ```
    pub fn exact_time(mut self) -> Self {
        self.exact_time = true;
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
    #[track_caller]
    pub fn run(&self) -> Report {
        self.boxed(all)
    }

    /// One run, in an order that is drawn from a seed, as a trace: to look at a run that does not
    /// fail, or to compare two.
    ///
    /// ```
    /// use asx::{Cx, lab::check};
    /// let program = check(async |cx: Cx| cx.yield_now().await);
    /// assert_eq!(program.record(7), program.record(7));
    /// ```
    #[track_caller]
    pub fn record(&self, seed: u64) -> Trace {
        self.boxed(|check| recorded(check, seed))
    }

    /// Runs it, and panics with the report if a run fails; what there is to see of that run is in
    /// files then ([`report::write`]). With a token in `ASX_REPLAY`, only that schedule is run.
    ///
    /// A check that takes long says every ten seconds how far it is, on the error output; one that
    /// passes prints a line, which tests show with `--show-output`.
    ///
    /// # Panics
    /// If a run fails; if the token is none, or that of another test; and if the schedule does not
    /// fit, since the program is not the one that it was found with: then it says nothing about it.
    #[track_caller]
    pub fn assert(&self) {
        let report = match replayed() {
            None => self.boxed(all_told),
            Some(token) => match self.replay_marked(&token) {
                Ok(report) => report,
                Err(error) => panic!("ASX_REPLAY={token}: {error}"),
            },
        };
        let Some(found) = &report.failure else {
            let name = self.name.as_deref().unwrap_or("a check");
            match (report.is_replay, report.unused) {
                (true, 0) => println!("ASX_REPLAY: `{name}`: {report}"),
                (true, _) => panic!("ASX_REPLAY: `{name}`: {report}\n{STALE}"),
                (false, _) => println!("asx: `{name}`: {report}"),
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

    /// Runs the schedule of a token as reports have it, with the mark of its test.
    #[track_caller]
    fn replay_marked(&self, token: &str) -> Result<Report, String> {
        let (token, mark) = match token.find('.') {
            Some(at) => token.split_at(at),
            None => (token, ""),
        };
        let whole = |error| format!("{error}\ncopy the whole token from the report of the test");
        let known =
            self.name.as_deref().is_none_or(|name| mark.is_empty() || mark == mark_of(name));
        // A damaged token is told as that.
        Schedule::with_points(token).map_err(whole)?;
        match known {
            true => self.replay(token).map_err(whole),
            false => Err(String::from(FOREIGN)),
        }
    }

    /// Runs the one schedule that a token names.
    #[track_caller]
    pub fn replay(&self, token: &str) -> Result<Report, TokenError> {
        let (schedule, points) = Schedule::with_points(token)?;
        Ok(self.boxed(|check| replay(check, points, schedule)))
    }
}

impl<F, B> Check<F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    /// Searches with the program in a box: there is one search for all programs, which is compiled
    /// once, and not with each test anew. The room for the program is used again in the next run.
    #[track_caller]
    fn boxed<R>(&self, search: impl FnOnce(&Check<Boxed<'_>>) -> R) -> R {
        panic_hook::refuse_inside();
        let spare = Cell::new(None);
        let program = |cx: Cx| -> BoxedBody<'_> {
            let mut body = spare.take().unwrap_or_else(|| Box::pin(None));
            body.set(Some((self.program)(cx)));
            Box::pin(Body { body: Some(body), spare: &spare })
        };
        search(&self.with_program(Box::new(program)))
    }
}

/// A place for the body of a program.
type Place<B> = Pin<Box<Option<B>>>;

/// The body of a program in one run.
struct Body<'a, B> {
    /// There until this is dropped, with the body in it.
    body: Option<Place<B>>,
    /// Where the place goes then, for the next run.
    spare: &'a Cell<Option<Place<B>>>,
}

impl<'a, B: Future<Output: Judged + 'a>> Future for Body<'a, B> {
    type Output = Judgement<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Judgement<'a>> {
        let Some(body) = self.body.as_mut().and_then(|body| body.as_mut().as_pin_mut()) else {
            return Poll::Pending;
        };
        body.poll(context).map(|value| {
            Judgement(Box::new(move |is_disturbed| match is_disturbed {
                true => value.judge_disturbed(),
                false => value.judge(),
            }))
        })
    }
}

impl<B> Drop for Body<'_, B> {
    fn drop(&mut self) {
        if let Some(mut body) = self.body.take() {
            body.set(None);
            self.spare.set(Some(body));
        }
    }
}

impl<F> Check<F> {
    /// The same of another program.
    fn with_program<G>(&self, program: G) -> Check<G> {
        Check {
            program,
            name: self.name.clone(),
            runs: self.runs,
            is_large: self.is_large,
            total: self.total,
            seed: self.seed,
            how: self.how,
            steps: self.steps,
            grows: self.grows,
            latency: self.latency,
            time: self.time,
            min_time: self.min_time,
            cancels: self.cancels,
            faults: self.faults,
            late_clocks: self.late_clocks,
            exact_time: self.exact_time,
            disturbances: self.disturbances,
            network: self.network,
            names: self.names.clone(),
            sharing: self.sharing,
            grain: self.grain,
            workers: self.workers,
            tie_break: self.tie_break,
            wheel: self.wheel.clone(),
            chain: self.chain,
            limits: self.limits,
        }
    }
}

/// A program of whatever type.
type Boxed<'a> = Box<dyn Fn(Cx) -> BoxedBody<'a> + 'a>;
type BoxedBody<'a> = Pin<Box<dyn Future<Output = Judgement<'a>> + 'a>>;

/// What a program answered, to be judged by whether the run was disturbed.
struct Judgement<'a>(Box<dyn FnOnce(bool) -> Option<Finding> + 'a>);

impl Judged for Judgement<'_> {
    fn judge(self) -> Option<Finding> {
        (self.0)(false)
    }

    fn judge_disturbed(self) -> Option<Finding> {
        (self.0)(true)
    }
}

// Not generic, so that they are compiled here.

fn all(check: &Check<Boxed<'_>>) -> Report {
    Search::new(check).all()
}

fn all_told(check: &Check<Boxed<'_>>) -> Report {
    Search::new(check).telling().all()
}

fn recorded(check: &Check<Boxed<'_>>, seed: u64) -> Trace {
    Search::new(check).recorded(seed)
}

fn replay(check: &Check<Boxed<'_>>, points: Points, schedule: Schedule) -> Report {
    Search::new(check).at(points).replay(schedule)
}

/// A time such as `0`, `250ms`, `2s` or `1m`.
fn parse_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit.trim() {
        "" if number == 0 => Some(Duration::ZERO),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

/// To who replays the schedule of another test.
const FOREIGN: &str = "the schedule is of another test: say the name of that one, as its report \
                       does, or unset ASX_REPLAY";

/// To who replays a schedule that does not fit.
const STALE: &str = "the token is stale: run the test without ASX_REPLAY";

/// What is to be replayed, says who started the tests.
pub(crate) fn replayed() -> Option<String> {
    std::env::var("ASX_REPLAY").ok().filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_takes_ten_seconds_at_most_unless_told_otherwise() {
        let check = check(async |_: Cx| ());
        assert_eq!(check.longest(), Duration::from_secs(10));
        let minute = Duration::from_secs(60);
        assert_eq!(check.time(minute).longest(), minute);
    }

    #[test]
    fn the_least_time_is_never_longer_than_the_time() {
        let check = check(async |_: Cx| ()).min_time(Duration::from_secs(60));
        assert_eq!(check.least(), LONGEST);
        assert_eq!(check.time(LEAST).least(), LEAST);
    }

    #[test]
    fn times_are_parsed_with_their_units() {
        let millis = |text| parse_time(text).map(|time| time.as_millis());
        let expected = [("0", 0), ("0s", 0), ("250ms", 250), (" 2s ", 2000), ("1m", 60_000)];
        for (text, time) in expected {
            assert_eq!(millis(text), Some(time), "{text}");
        }
        for text in ["", "1", "s", "-1s", "1h", "99999999999999999999s"] {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
