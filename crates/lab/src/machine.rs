//! The machine: runs a program once, on this thread, in the order a strategy says.
//!
//! The program is a production one: the same cells, regions, channels and timers as on threads.
//! Only the host is another: whatever is runnable waits in one list, and which of it is polled next
//! is asked of the [`Strategy`]. That is more than workers could do, who take the first of their
//! lanes, and just what several of them do together, each at its own pace. Time stands still until
//! nothing is runnable, and then jumps to the next timer.
//!
//! ```text
//! run: body -> root task -> ready list --pick_task--> poll --touched--> stepped
//!        nothing ready: clock jumps, timers wake -> ready list;   no timer either: deadlock
//! ```
//! # Rule
//! 1. A machine is not `Send`, and nothing else polls what its host is given: so all polls of a
//!    pinned task are on the thread that made the machine.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::Write;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use asx_kernel::lanes::TieBreak;
use asx_kernel::time::Time;
use asx_runtime::waits::Waiter;
use asx_runtime::{
    Activity, Core, Cx, Dump, Health, Host as _, Panic, Recorded, Region, Root, Settings,
    TaskError, TaskInfo, backtrace as notes, footprint, waits,
};

use crate::backtrace::{self, TaskNames, Told};
use crate::explore::{Decisions, Points, Strategy, TaskPath, Verdict};
use crate::failure::{Failure, Finding, Kind, place};
use crate::fiber;
use crate::guard::Seen;
use crate::host::{LabHost, Made, Pause, Stepped, Traits, Trouble};
use crate::net::{Faults, Names, is_carrier};
use crate::panic_hook::{self, Heard};
use crate::signal::Signal;
use crate::stuck::{self, Standstill, Watch};
use crate::wait_log::WaitLog;

/// How late a clock is that is late: as if the machine had slept.
const LATE: Duration = Duration::from_secs(3600);

/// One disturbance of the clock uses at most this fraction of a grace period: the tasks that are to
/// stop can run in the rest, and meet it if they need less.
const GRACE_SHARE: u32 = 8;

/// The path of the task after which objects are named that the body of a program makes before it
/// returns its future. No task has it.
const OUTSIDE_POLLS: u64 = 0x6F75_7473_6964_6521;

/// How many steps those that go in turns take before time goes on in spite of them.
const SAME_TIME: u64 = 50;

/// The number of polls that each of many tasks may take, and each of many open scopes.
const POLLS_OF_A_TASK: u64 = 200;

/// How often the rest of a run that is decided is forced on before it is said to have no end.
const TRIES: u64 = 1_000_000;

/// How a run is to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// How many workers there are, by law; 0: anything that can run may be next.
    pub(crate) workers: usize,
    /// How those order equals.
    pub(crate) tie_break: TieBreak,
    /// Polls it may take, all tasks together.
    pub(crate) steps: u64,
    /// Whether it may take more if there are many tasks.
    pub(crate) grows: bool,
    /// Polls a task may take from its cancel to where it sees it.
    pub(crate) latency: u64,
    /// Whether the strategy is asked, after each poll, for a cancel of the task that was polled.
    pub(crate) cancels: bool,
    /// Whether it is asked for faults, and whether a late clock is one.
    pub(crate) faults: bool,
    pub(crate) late_clocks: bool,
    /// What may go wrong in the network.
    pub(crate) network: Faults,
    /// How many cancels and faults there may be in all, but for the network. Strategies that look
    /// at all orders of polls know themselves how many there are to be.
    pub(crate) disturbances: usize,
    /// Whether the strategy is asked, before each step, if time passes though tasks can run.
    pub(crate) slow: bool,
    /// Whether it is asked for what the program draws at random.
    pub(crate) draws: bool,
    /// Where polls can be left.
    pub(crate) points: Points,
    /// Traits of the program that footprints take into account. They stay the same for as long as
    /// a strategy compares runs.
    pub(crate) traits: Traits,
    /// Whether polls share nothing but what is known here, so that some of them commute.
    pub(crate) transparent: bool,
    /// Whether what is decided, and what each step touches, is written down: to be told, or to be
    /// compared with another run.
    pub(crate) trail: bool,
    /// Whether what else could have been decided is left out: enough to compare.
    pub(crate) brief: bool,
    /// The step after which it is known to stand still in part: nothing is needed of what follows.
    pub(crate) until: Option<u64>,
}

impl Plan {
    /// Whether there is nothing to a step but a poll.
    pub(crate) fn is_plain(&self) -> bool {
        self.workers == 0 && !self.cancels && !self.faults && !self.slow
    }
}

pub(crate) struct Machine {
    parts: Parts,
    /// While events are recorded: how many there were before and after each step.
    moments: Vec<(u64, u64)>,
    /// While events are recorded: what tasks wait for and hold.
    wait_log: WaitLog,
    /// While events are recorded: the step in which the circle of waits closed with which the last
    /// run ended.
    closed: Option<u64>,
    /// How many steps the last run has taken.
    taken: u64,
    /// How long it still waits for wakes from elsewhere, in all runs together.
    patience: Duration,
    /// It stays on its thread (rule 1).
    _here: PhantomData<*const ()>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Entries keep their tasks, which keep the host they are in.
        self.parts.host.expire();
        footprint::forget();
        notes::forget();
        fiber::forget();
        waits::forget();
    }
}

/// What the runtime has of it.
struct Parts {
    host: Arc<LabHost>,
    core: Arc<Core>,
    root: Arc<Region>,
}

impl Machine {
    /// For a program of this name.
    pub(crate) fn new(name: &str, settings: Settings) -> Machine {
        let host = LabHost::new(name, settings.journal.is_some());
        let core = Core::new(host.clone(), settings);
        let root = core.root();
        let parts = Parts { host, core, root };
        let patience = Duration::from_millis(200);
        let moments = Vec::new();
        let wait_log = WaitLog::default();
        let closed = None;
        let taken = 0;
        Machine { parts, moments, wait_log, closed, taken, patience, _here: PhantomData }
    }

    /// Runs a program: how it failed, if it did. The strategy is told how it ended. `judge` gets
    /// what the program came to, and whether there was a cancel.
    pub(crate) fn run<F, B, T>(
        &mut self,
        strategy: &mut Option<Box<dyn Strategy + Send>>,
        plan: Plan,
        body: F,
        judge: impl FnOnce(T, bool) -> Option<Finding>,
    ) -> Option<Box<Failure>>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        let Machine { parts, moments, wait_log, closed, taken, patience, .. } = self;
        let signal = parts.host.signal();
        parts.host.start(strategy.take(), plan);
        // SAFETY: the program before has ended, with all of its tasks.
        unsafe { parts.core.renumber() };
        moments.clear();
        if parts.core.recording() {
            *wait_log = WaitLog::default();
            notes::begin();
        }
        if panic_hook::has_heard() {
            panic_hook::heard();
        }
        waits::clear();
        let before = parts.root.health();
        signal.take();
        let mut run = Run::new(parts, signal, (moments, wait_log, patience), plan);
        // The body may make channels before it returns its future.
        let body = |cx| footprint::named_after(OUTSIDE_POLLS, || body(cx));
        // SAFETY: rule 1 of this module is what is asked for.
        let outcome = unsafe { Root::run(&parts.root, 0, body, signal.waker(), || run.drive()) };
        let Run { steps, mut rare, .. } = run;
        notes::end();
        *taken = steps;
        parts.host.net_of_lab().end();
        let is_disturbed = parts.host.state().is_disturbed;
        let ended = match outcome {
            _ if rare.as_ref().is_some_and(|rare| rare.finding.is_some()) => None,
            Ok(Ok(value)) => judge(value, is_disturbed)
                .or_else(|| parts.aftermath(before, rare.as_deref()))
                .map(|finding| Box::new(Failure::new(finding, steps))),
            Ok(Err(stop)) => Some(Box::new(parts.stopped(stop, &mut rare, steps))),
            Err(refused) => Some(Box::new(Failure::new(Finding::refused(refused), steps))),
        };
        *closed = None;
        let failure = match rare {
            None => ended,
            Some(rare) => {
                *closed = rare.watch.closed().filter(|_| rare.finding.is_some());
                (*rare).told(ended, steps)
            }
        };
        let failure = failure.map(|failure| parts.with_io_failures(failure));
        let (mut used, held_back) = {
            let mut state = parts.host.state();
            (state.strategy.take(), state.held_back)
        };
        if let Some(strategy) = &mut used {
            let passed = if held_back { Verdict::Cut } else { Verdict::Passed };
            strategy.end(failure.as_ref().map_or(passed, |failure| failure.verdict()));
        }
        *strategy = used;
        failure
    }

    /// How many steps the last run has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The step in which the circle of waits closed with which the last run ended, if there was
    /// one and events are recorded.
    pub(crate) fn closed(&self) -> Option<u64> {
        self.closed
    }

    /// What was decided in the last run, if that was written down.
    pub(crate) fn log(&self) -> Arc<Decisions> {
        self.parts.host.state().decided()
    }

    /// The numbers of what was picked in the last run, if it was not written down, or in brief.
    pub(crate) fn picks(&self) -> Option<Vec<u32>> {
        self.parts.host.state().picked()
    }

    /// What there is to compare of the last run.
    pub(crate) fn seen(&self, failure: Option<&Failure>) -> Seen {
        let mut state = self.parts.host.state();
        let log = state.decided();
        let trail = state.trail.clone();
        Seen { log, trail, failure: failure.map(Failure::id) }
    }

    /// Whether the strategy was kept from choosing a task in the last run.
    pub(crate) fn held_back(&self) -> bool {
        self.parts.host.state().held_back
    }

    /// Whether a strategy was ever kept from choosing a task, which then seems to go astray.
    pub(crate) fn overrules(&self) -> bool {
        self.parts.host.state().overrules
    }

    /// Whether there was a timer in any run.
    pub(crate) fn is_timed(&self) -> bool {
        self.parts.host.is_timed()
    }

    /// Returns the traits of the program that all runs so far have shown.
    pub(crate) fn traits(&self) -> Traits {
        self.parts.host.traits()
    }

    /// Whether several tasks ran, and no two of them were seen to use the same object of asx.
    pub(crate) fn shares_nothing(&self) -> bool {
        let state = self.parts.host.state();
        state.tasks().nth(1).is_some() && !state.sharing.is_seen()
    }

    /// Whether a random number was drawn in any run.
    pub(crate) fn has_drawn(&self) -> bool {
        self.parts.host.state().has_drawn
    }

    /// Cancels that were tried in all runs, and how many there are to try.
    pub(crate) fn cancels(&self) -> (usize, usize) {
        self.parts.host.state().coverage.count()
    }

    /// The same of faults.
    pub(crate) fn faults(&self) -> (usize, usize) {
        self.parts.host.state().faults.coverage.count()
    }

    /// The same of late clocks, which are among the faults.
    pub(crate) fn late_clocks(&self) -> (usize, usize) {
        self.parts.host.state().faults.coverage.count_of(TaskPath::CLOCK.0)
    }

    /// The same of faults of the network.
    pub(crate) fn network(&self) -> (usize, usize) {
        self.parts.host.state().faults.network.count()
    }

    /// Says which hosts the network has.
    pub(crate) fn set_names(&self, names: Names) {
        self.parts.host.net_of_lab().set_names(names);
    }

    /// The faults of the last run.
    pub(crate) fn faults_made(&self) -> Vec<Made> {
        self.parts.host.state().faults.made.clone()
    }

    /// The events of the last run, if they are recorded, and how many there were before and after
    /// each step.
    pub(crate) fn recorded(&self) -> Option<(Recorded, &[(u64, u64)])> {
        Some((self.parts.core.recorded()?, &self.moments))
    }

    /// What the tasks of the last run waited for and held, if its events are recorded.
    pub(crate) fn wait_log(&self) -> &WaitLog {
        &self.wait_log
    }

    /// What a task of the last run is called.
    pub(crate) fn called(&self, path: TaskPath) -> Option<String> {
        if is_carrier(path) {
            return self.parts.host.net_of_lab().called(path);
        }
        let state = self.parts.host.state();
        let found = state.tasks().find(|(_, known)| *known == path);
        found.map(|(id, _)| state.called(id))
    }

    /// The tasks of the last run: numbers, paths, and what they are called.
    pub(crate) fn tasks(&self) -> Vec<(u64, TaskPath, String)> {
        let state = self.parts.host.state();
        state.tasks().map(|(id, path)| (id, path, state.called(id))).collect()
    }
}

impl Parts {
    /// What is wrong with a program that is over, though it has not said so.
    #[inline]
    fn aftermath(&self, before: Health, rare: Option<&Rare>) -> Option<Finding> {
        let timers = self.core.live_timers();
        let health = self.root.health();
        let is_clean = timers == 0 && health == before && waits::is_clean();
        if is_clean { None } else { self.left_behind(before, rare) }
    }

    #[cold]
    fn left_behind(&self, before: Health, rare: Option<&Rare>) -> Option<Finding> {
        let after = self.root.health();
        let called = |task| self.host.state().called(task);
        let overruns = after.overruns - before.overruns;
        let forced = || Finding::forced(overruns, &waits::take_overruns(), called);
        self.leaks().or_else(forced).or_else(|| {
            let lost = after.lost_panics - before.lost_panics;
            let late = after.unheeded_timeouts - before.unheeded_timeouts;
            if let Some(finding) =
                Finding::unheeded_timeouts(late, self.core.take_unheeded_timeout())
            {
                return Some(finding);
            }
            let contained = after.callback_panics - before.callback_panics;
            let finding = Finding::lost_panics(lost + contained)?;
            let panics = rare.map_or(&[][..], |rare| &rare.panics);
            let lines = panics.iter().map(|panicked| self.told(panicked));
            Some(finding.with_detail(&lines.collect::<String>()))
        })
    }

    /// A panic that did not come out of the program, in a line.
    fn told(&self, Panicked { heard: Heard { message, place }, step, task }: &Panicked) -> String {
        let task = self.host.state().called(*task);
        let message = message.as_deref().unwrap_or("?");
        format!("step {step}: `{task}` panicked at {place}: {message}\n")
    }

    /// A program was ended by a panic or a cancel.
    #[cold]
    fn stopped(
        &self,
        stop: TaskError<Infallible>,
        rare: &mut Option<Box<Rare>>,
        steps: u64,
    ) -> Failure {
        match stop {
            TaskError::Panicked(panic) => {
                let panics = rare.as_mut().map(|rare| mem::take(&mut rare.panics));
                self.panicked(&panic, panics.unwrap_or_default(), steps)
            }
            TaskError::Cancelled(cancelled) => Failure::new(Finding::ended(&cancelled), steps),
            TaskError::Err(never) => match never {},
        }
    }

    /// Adds the socket operations that failed before an error or a panic.
    #[cold]
    fn with_io_failures(&self, mut failure: Box<Failure>) -> Box<Failure> {
        if matches!(failure.finding.kind, Kind::Error | Kind::Panic) {
            let called = |task| self.host.state().called(task);
            failure.finding.detail += &self.host.net_of_lab().describe_failures(&called);
        }
        failure
    }

    /// What a program that is over has left behind.
    fn leaks(&self) -> Option<Finding> {
        let timers = self.core.live_timers();
        if timers > 0 {
            // They are of no use to the next run either.
            self.core.fire_timers(Time::MAX);
            return Some(Finding::leaked_timers(timers));
        }
        let called = |task| self.host.state().called(task);
        Finding::leaked_obligations(&waits::take_leaked(), called)
            .or_else(|| Finding::leaked_permits(&waits::held(), called))
    }

    /// A panic came out of the program: which one it was, of those that were heard.
    fn panicked(&self, panic: &Panic, panics: Vec<Panicked>, steps: u64) -> Failure {
        let is_it = |heard: &Heard| heard.message.as_ref().is_none_or(|it| it == panic.message());
        let failure = Failure::new(Finding::panicked(panic), steps);
        match panics.into_iter().find(|panicked| is_it(&panicked.heard)) {
            None => failure,
            Some(Panicked { heard, step, task }) => {
                let task = Some(self.host.state().called(task));
                Failure { step, task, place: Some(heard.place), ..failure }
            }
        }
    }

    /// Asks a task to stop, so many times.
    fn cancel(&self, task: u64, times: usize) {
        self.host.disturb(|| {
            for _ in 0..times {
                self.root.cancel_number(task);
            }
        });
    }

    /// When the next timer is due, or the network has something to deliver.
    fn next_event(&self) -> Option<Time> {
        let net = self.host.net_of_lab();
        [self.core.next_wake(), net.next_event()].into_iter().flatten().min()
    }

    /// Moves the clock to the next timer: false if there is none.
    fn jump(&self, ask: bool) -> bool {
        let Some(mut next) = self.next_event() else { return false };
        if ask && self.host.is_late() {
            next = next + self.share_of_grace(next).map_or(LATE, |most| LATE.min(most));
        }
        self.tick(next, ask);
        true
    }

    /// Moves the clock toward the next timer, by a share of the grace period if there is one:
    /// false if there is no timer.
    fn approach(&self) -> bool {
        let Some(next) = self.next_event() else { return false };
        let now = self.host.now();
        let until = self.share_of_grace(now).map_or(next, |most| next.min(now + most));
        self.tick(until, true);
        true
    }

    /// How much of the time until a task is ended by force may pass at once without the task
    /// having a chance to run.
    fn share_of_grace(&self, now: Time) -> Option<Duration> {
        self.core.next_enforcement(now).map(|end| (end - now) / GRACE_SHARE)
    }

    /// Lets time pass though tasks can run, if the strategy says so: whether it has.
    fn be_slow(&self) -> bool {
        let most = self.share_of_grace(self.host.now());
        self.host.slow_until(self.next_event(), most).is_some_and(|until| {
            self.tick(until, true);
            true
        })
    }

    fn tick(&self, to: Time, ask: bool) {
        self.host.tick(to, ask, |now| {
            self.core.fire_timers(now);
            self.host.net_of_lab().fire(now);
        });
    }

    /// Who waits for whom, by name.
    fn named(&self, waiters: Vec<Waiter>) -> Standstill {
        let state = self.host.state();
        let names = waiters.iter().map(|waiter| format!("`{}`", state.called(waiter.task.id)));
        Standstill { names: names.collect(), waiters }
    }

    /// Who lives, and what each waits for.
    fn waiting(&self) -> String {
        let dump = Dump::of(&self.root);
        let state = self.host.state();
        let tasks = || {
            let regions = dump.regions.iter();
            regions.flat_map(|region| region.tasks.iter().map(move |task| (region, task)))
        };
        let live: BTreeSet<u64> = tasks().map(|(_, task)| task.id).collect();
        let names =
            TaskNames { called: &|task| state.called(task), lives: &|task| live.contains(&task) };
        let told = tasks().map(|(region, task)| Told {
            name: format!("`{}`", state.called(task.id)),
            waits: waits(task),
            below: backtrace::lines(&notes::of_task(task.id), task, region, &names),
        });
        backtrace::in_lines(told.collect())
    }
}

/// What a task waits for, in words.
fn waits(task: &TaskInfo) -> String {
    let state = task.state.name();
    match (task.activity, task.waits) {
        (Activity::Running, _) => format!("({state}) is running"),
        (Activity::Runnable, _) => format!("({state}) can run"),
        (Activity::Waiting, Some((on, at))) => {
            let on = task.socket.as_deref().unwrap_or(on);
            format!("({state}) waits for {on} at {}", place(at))
        }
        (Activity::Waiting, None) => format!("({state}) waits for what asx can't see"),
    }
}

/// A run that is going on.
struct Run<'a> {
    parts: &'a Parts,
    signal: &'a Signal,
    /// Of the machine.
    moments: &'a mut Vec<(u64, u64)>,
    wait_log: &'a mut WaitLog,
    patience: &'a mut Duration,
    most: u64,
    faults: bool,
    slow: bool,
    /// Whether there is nothing to its steps but polls.
    is_plain: bool,
    steps: u64,
    /// Until this step the strategy chooses freely, or those who can run go in turns.
    free_until: u64,
    /// Tries to end what is left of a run that is decided.
    tries: u64,
    /// Whether it is decided, by this.
    over: bool,
    until: Option<u64>,
    grows: bool,
    rare: Option<Box<Rare>>,
}

/// What few runs have.
#[derive(Default)]
struct Rare {
    finding: Option<Finding>,
    panics: Vec<Panicked>,
    watch: Watch,
}

impl Rare {
    /// Returns the failure of a run that ended with `ended`, if there is one.
    #[cold]
    fn told(self, ended: Option<Box<Failure>>, steps: u64) -> Option<Box<Failure>> {
        let Rare { finding, watch, .. } = self;
        let failure = finding.map(|finding| Failure::new(finding, steps));
        let failure = failure.or_else(|| ended.map(|ended| *ended));
        failure.map(|failure| Box::new(failure.with_circle(&watch)))
    }
}

/// What there was to take.
enum Taken {
    /// One step or more.
    Some,
    /// The same, and the root has something to look at.
    Called,
    None,
}

/// A panic, and when it was.
struct Panicked {
    heard: Heard,
    step: u64,
    task: u64,
}

impl<'a> Run<'a> {
    #[inline]
    fn new(
        parts: &'a Parts,
        signal: &'a Signal,
        (moments, wait_log, patience): (&'a mut Vec<(u64, u64)>, &'a mut WaitLog, &'a mut Duration),
        plan: Plan,
    ) -> Run<'a> {
        let Plan { steps: most, grows, faults, slow, until, .. } = plan;
        Run {
            parts,
            signal,
            moments,
            wait_log,
            patience,
            most,
            faults,
            slow,
            is_plain: parts.host.is_plain(),
            steps: 0,
            free_until: most / 2,
            tries: 0,
            over: false,
            until,
            grows,
            rare: None,
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Raises the limit on polls to 200 for each task that was spawned, or for each open scope, if
    /// that is more. Returns whether it has. Closed scopes do not count, so a loop that opens one
    /// scope after another is still found to be endless.
    #[cold]
    fn grow(&mut self) -> bool {
        let tasks = self.parts.host.state().tasks().count();
        let regions = self.parts.root.count_inside();
        let most = tasks.max(regions) as u64 * POLLS_OF_A_TASK;
        let grows = self.grows && most > self.most;
        if grows {
            (self.most, self.free_until) = (most, most / 2);
        }
        grows
    }

    /// How many polls there were: steps that are not the first parts of one.
    fn polls(&self) -> u64 {
        self.steps - self.parts.host.state().points
    }

    /// Goes on until the root has something to look at.
    fn drive(&mut self) {
        while !self.signal.take() {
            let over = self.over;
            // Force comes with time, which stands still as long as something can run.
            if over {
                self.tries += 1;
                if self.tries > TRIES {
                    self.despair();
                }
                self.parts.jump(false);
            }
            if !over && self.parts.core.recording() && self.is_closed() {
                continue;
            }
            if !over && self.polls() >= self.free_until && self.grow() {
                continue;
            }
            if !over && self.polls() >= self.most {
                let finding = stuck::endless(&self.names(), self.most);
                self.give_up(finding.with_detail(&self.parts.waiting()));
                continue;
            }
            if !over && self.polls() >= self.free_until {
                self.be_fair();
                continue;
            }
            match self.take_steps(over) {
                Taken::Some => continue,
                Taken::Called => return,
                Taken::None => {}
            }
            // A jump may wake nobody: whoever the timer was for does not care any more.
            if self.outside(over, |parts| parts.jump(!over)) {
                continue;
            }
            if over && self.parts.host.has_blocked() {
                self.wait_for_locks();
                continue;
            }
            if over {
                // What is left never ends: no poll can be forced on it.
                return;
            }
            self.stand_still();
        }
    }

    /// Half of the steps are used up. Whoever only waits for others to go on, or for a time to
    /// come, can be chosen again and again, and these not: a run that ends once they may go on was
    /// not endless. So from here on all that can run go in turns, and now and then time does.
    ///
    /// A grace period passes in small parts, so that a task that takes many polls to stop can meet
    /// it. In the last sixteenth of the steps it passes at once: a task that never stops is
    /// reported as an overrun.
    #[cold]
    fn be_fair(&mut self) {
        self.parts.host.go_in_turns();
        let polls = self.polls();
        if polls > self.most - self.most / 16 {
            self.outside(false, |parts| parts.jump(true));
        } else if polls > self.most / 2 {
            self.outside(false, Parts::approach);
        }
        self.free_until = (self.polls() + SAME_TIME).min(self.most);
    }

    /// Takes a step, or several while they are plain ones, if there is one to take.
    #[inline]
    fn take_steps(&mut self, over: bool) -> Taken {
        if self.slow && !over {
            self.outside(false, Parts::be_slow);
        }
        if over || !self.is_plain {
            return self.take_step(over);
        }
        let most = self.free_until - self.polls();
        let (steps, pause) = self.parts.host.walk(most);
        self.steps += steps;
        match pause {
            Pause::Called => return Taken::Called,
            Pause::Enough => {}
            // The last step may have been the only one that anybody could take.
            Pause::Nothing if steps == 0 => return Taken::None,
            Pause::Nothing => {}
            Pause::Told(stepped) => self.hear(over, stepped),
        }
        Taken::Some
    }

    fn take_step(&mut self, over: bool) -> Taken {
        let before = self.events();
        let root = &self.parts.root;
        let stepped = self.parts.host.step(!over, |task| {
            root.cancel_number(task);
        });
        let Some(stepped) = stepped else { return Taken::None };
        self.count(over, before);
        self.hear(over, stepped);
        Taken::Some
    }

    /// Takes in what there is to a step.
    fn hear(&mut self, over: bool, stepped: Stepped) {
        if panic_hook::has_heard() {
            let panics = panic_hook::heard().into_iter();
            let step = self.steps;
            let task = stepped.task;
            self.rare().panics.extend(panics.map(|heard| Panicked { heard, step, task }));
        }
        self.stepped(over, stepped);
    }

    /// Does what a step asks for.
    fn stepped(&mut self, over: bool, Stepped { task, cancels, trouble }: Stepped) {
        if cancels > 0 {
            self.outside(over, |parts| {
                parts.cancel(task, cancels);
                true
            });
        }
        let root = &self.parts.root;
        let may_disturb = !over && self.faults;
        if may_disturb && root.waits_number(task) && self.parts.host.is_spurious(task) {
            self.outside(over, |parts| {
                parts.host.disturb(|| {
                    parts.root.wake_number(task);
                });
                true
            });
        }
        if let Some(trouble) = trouble.filter(|_| !over) {
            let finding = self.tell(trouble);
            self.give_up(finding);
        }
    }

    /// How many events there were so far, if they are recorded.
    #[inline]
    fn events(&self) -> u64 {
        if self.parts.core.recording() { self.parts.core.events() } else { 0 }
    }

    /// A step of what is not a task; it may find nothing to do.
    fn outside(&mut self, over: bool, step: impl FnOnce(&Parts) -> bool) -> bool {
        let before = self.events();
        let done = step(self.parts);
        if done {
            self.count(over, before);
        }
        done
    }

    #[inline]
    fn count(&mut self, over: bool, before: u64) {
        if over {
            return;
        }
        self.steps += 1;
        if self.parts.core.recording() {
            self.moments.push((before, self.parts.core.events()));
        }
    }

    /// Looks for a circle of waits: whether it is the one at which the run is to end.
    fn is_closed(&mut self) -> bool {
        // SAFETY: rule 1.
        let waiters = unsafe { waits::waiters(&self.parts.root) };
        self.wait_log.look(self.parts.core.events(), &waiters, waits::held());
        let parts = self.parts;
        let steps = self.steps;
        let ends = self.until.is_some_and(|until| steps >= until);
        let watch = &mut self.rare().watch;
        watch.look(waiters, steps, |waiters| parts.named(waiters));
        let Some(finding) = watch.finding().filter(|_| ends) else { return false };
        self.give_up(finding.with_detail(&self.parts.waiting()));
        true
    }

    /// Nothing can run, and no time will come at which something can.
    fn stand_still(&mut self) {
        if self.parts.host.has_blocked() {
            return self.wait_for_locks();
        }
        let names = self.names();
        if names.waits_for_outside() && self.parts.host.wait(self.patience) {
            return;
        }
        let finding = stuck::explain(&names).with_detail(&self.parts.waiting());
        self.give_up(finding);
    }

    /// Nothing can run but polls that wait for locks of the standard library, which another thread
    /// may give up. If none does, there is no way out of them.
    #[cold]
    fn wait_for_locks(&mut self) {
        let start = Instant::now();
        while !self.parts.host.unblock() {
            if start.elapsed() > Duration::from_secs(1) {
                let tasks = self.parts.host.blocked().join(", ");
                let waiting = self.parts.waiting();
                // Not by `eprintln`: what tests print is kept until they end.
                let _ = writeln!(
                    std::io::stderr(),
                    "asx lab: deadlock: {tasks} blocks its thread for a lock of the standard \
                     library, which a task holds that waits itself:\n{waiting}"
                );
                std::process::abort();
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn tell(&self, trouble: Trouble) -> Finding {
        let called = |task| format!("`{}`", self.parts.host.state().called(task));
        let finding = match trouble {
            Trouble::Foreign => Finding::foreign(),
            Trouble::Endless(task) => Finding::endless_poll(&called(task)),
            Trouble::Unheeding(task, polls) => Finding::unheeding(&called(task), polls),
        };
        finding.with_detail(&self.parts.waiting())
    }

    /// Who waits for whom, by name.
    fn names(&self) -> Standstill {
        // SAFETY: rule 1.
        self.parts.named(unsafe { waits::waiters(&self.parts.root) })
    }

    /// What is left of a run does not end, whatever is done. Its futures may borrow from whoever
    /// started the search, so that there is no way back to it.
    #[cold]
    fn despair(&self) -> ! {
        let found = self.rare.as_ref().and_then(|rare| rare.finding.as_ref());
        let waiting = self.parts.waiting();
        let found = found.map_or("a failure", |finding| finding.message.as_str());
        // Not by `eprintln`: what tests print is kept until they end, and this one never does.
        let _ = writeln!(
            std::io::stderr(),
            "asx lab: a run failed ({found}), and what is left of it cannot be ended by force:\n\
             {waiting}"
        );
        std::process::abort();
    }

    /// The run is decided: what lives is ended by force.
    fn give_up(&mut self, finding: Finding) {
        self.over = true;
        self.rare().finding = Some(finding);
        self.parts.root.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::Random;

    #[test]
    fn nobody_is_polled_after_the_last_step() {
        let mut machine = Machine::new("a check", Settings::default());
        let mut strategy: Option<Box<dyn Strategy + Send>> = Some(Box::new(Random::new(1)));
        let plan = Plan { steps: 10, latency: 10, ..Plan::default() };
        let program = async |cx: Cx| cx.yield_now().await;
        assert!(machine.run(&mut strategy, plan, program, |(), _| None).is_none());
        assert_eq!(machine.parts.host.state().current, 0);
    }

    #[test]
    fn tasks_are_called_the_same_by_who_watches_from_outside() {
        let mut machine = Machine::new("a check", Settings::default());
        let mut strategy: Option<Box<dyn Strategy + Send>> = Some(Box::new(Random::new(1)));
        let plan = Plan { steps: 1000, latency: 10, ..Plan::default() };
        let program = async |cx: Cx| {
            let nested = async |cx: Cx| {
                cx.scope(async |s| {
                    s.task("feed").spawn(async |_cx: Cx| Ok(()));
                    Ok::<_, asx_runtime::Cancelled>(())
                })
                .await
            };
            cx.scope(async |s| {
                s.spawn(nested);
                s.spawn(nested);
                Ok::<_, asx_runtime::Cancelled>(())
            })
            .await
        };
        for _ in 0..20 {
            let failure = machine.run(&mut strategy, plan, program, |_, _| None);
            assert!(failure.is_none(), "{failure:?}");
            let tasks = machine.tasks();
            assert_eq!(tasks.len(), 5);
            assert!(tasks.iter().any(|(_, _, called)| called == "feed (main/2/1)"), "{tasks:?}");
            for (id, _, called) in tasks {
                assert_eq!(machine.parts.host.called_from_outside(id), Some(called));
            }
        }
    }
}
