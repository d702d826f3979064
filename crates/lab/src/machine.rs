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

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Wake, Waker};

use asx_kernel::rng::mix64;
use asx_kernel::time::Time;
use asx_runtime::{Core, Cx, Dump, Host, Region, Root, Runnable, Settings, Stop, footprint};

use crate::explore::{Access, Decisions, Point, Strategy, TaskPath, Verdict};
use crate::failure::{Failure, Finding};

/// The root task of every program.
const ROOT: TaskPath = TaskPath(0x9E37_79B9_7F4A_7C15);

/// What polls share that nobody sees.
const ELSEWHERE: u64 = 3;

/// How a run is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Polls it may take, all tasks together.
    pub(crate) steps: u64,
    /// Whether the strategy is asked, after each poll, for a cancel of the task that was polled.
    pub(crate) cancels: bool,
    /// Whether polls share nothing but what is known here, so that some of them commute.
    pub(crate) transparent: bool,
}

/// How a run went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) failure: Option<Failure>,
}

pub(crate) struct Machine {
    host: Arc<LabHost>,
    core: Arc<Core>,
    root: Arc<Region>,
    /// Stays on its thread (rule 1).
    here: PhantomData<*const ()>,
}

impl Machine {
    pub(crate) fn new(settings: Settings) -> Machine {
        let host = Arc::new(LabHost::default());
        let core = Core::new(host.clone(), settings);
        let root = core.root();
        Machine { host, core, root, here: PhantomData }
    }

    /// Runs a program; the strategy is told how it ended.
    pub(crate) fn run<F, B, T>(
        &mut self,
        strategy: &mut Option<Box<dyn Strategy + Send>>,
        plan: Plan,
        body: F,
        judge: impl FnOnce(T) -> Option<Finding>,
    ) -> Ran
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        self.host.start(strategy.take(), plan);
        self.core.renumber();
        let signal = Arc::new(Signal(AtomicBool::new(false)));
        let waker = Waker::from(signal.clone());
        let mut run =
            Run { machine: self, signal: &signal, most: plan.steps, steps: 0, finding: None };
        // SAFETY: rule 1 of this module is what is asked for.
        let outcome = unsafe { Root::run(&run.machine.root, 0, body, &waker, || run.drive()) };
        let (steps, finding) = (run.steps, run.finding.take());
        let finding = finding.or_else(|| match outcome {
            Ok(Ok(value)) => judge(value),
            Ok(Err(Stop::Panicked(panic))) => Some(Finding::panicked(&panic)),
            Ok(Err(Stop::Cancelled(cancelled))) => Some(Finding::ended(&cancelled)),
            Ok(Err(Stop::Err(never))) => match never {},
            Err(status) => Some(Finding::refused(status)),
        });
        let finding = finding.or_else(|| self.leaks());
        let mut state = self.host.lock();
        let mut used = state.strategy.take();
        let failure = finding.map(|finding| Failure::new(finding, steps));
        if let Some(strategy) = &mut used {
            let verdict = failure.as_ref().map_or(Verdict::Passed, Failure::verdict);
            strategy.end(verdict);
        }
        *strategy = used;
        Ran { failure }
    }

    /// What was decided in the last run.
    pub(crate) fn log(&self) -> Decisions {
        self.host.lock().log.clone()
    }

    pub(crate) fn coverage(&self) -> (usize, usize) {
        self.host.lock().coverage.count()
    }

    /// What a program that is over has left behind.
    fn leaks(&self) -> Option<Finding> {
        let timers = self.core.live_timers();
        if timers > 0 {
            // They are of no use to the next run either.
            self.core.fire_timers(Time::MAX);
            return Some(Finding::leaked_timers(timers));
        }
        None
    }
}

/// A run that is going on.
struct Run<'a> {
    machine: &'a Machine,
    signal: &'a Signal,
    most: u64,
    steps: u64,
    finding: Option<Finding>,
}

impl Run<'_> {
    /// Goes on until the root has something to look at.
    fn drive(&mut self) {
        while !self.signal.0.swap(false, Relaxed) {
            let over = self.finding.is_some();
            if !self.machine.host.has_ready() && !self.machine.jump() {
                if over {
                    // What is left never ends: no poll can be forced on it.
                    return;
                }
                self.give_up(Finding::deadlock(Dump::of(&self.machine.root)));
                continue;
            }
            self.steps += 1;
            if !over && self.steps > self.most {
                self.give_up(Finding::endless(Dump::of(&self.machine.root), self.most));
                continue;
            }
            if let Some((task, times)) = self.machine.host.step(!over) {
                for _ in 0..times {
                    self.machine.root.cancel_number(task);
                }
            }
        }
    }

    /// The run is decided: what lives is ended by force.
    fn give_up(&mut self, finding: Finding) {
        self.finding = Some(finding);
        self.machine.root.abandon();
    }
}

impl Machine {
    /// Moves the clock to the next timer: false if there is none.
    fn jump(&self) -> bool {
        let Some(next) = self.core.next_wake() else { return false };
        self.host.now.fetch_max(next.as_nanos(), Relaxed);
        self.core.fire_timers(self.host.now());
        true
    }
}

/// Tells that the root has something to look at.
struct Signal(AtomicBool);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// What the machine gives its tasks.
#[derive(Default)]
struct LabHost {
    now: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// While a run goes on.
    strategy: Option<Box<dyn Strategy + Send>>,
    ready: Vec<Runnable>,
    /// Of each of them.
    enabled: Vec<TaskPath>,
    /// By number.
    tasks: Vec<Known>,
    /// The number of the task that is being polled.
    current: u64,
    /// What it touched.
    touched: Vec<Access>,
    /// What was decided in this run.
    log: Decisions,
    plan: Option<Plan>,
    /// Whether there was a cancel in this run.
    disturbed: bool,
    coverage: Coverage,
}

/// What is known of a task.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Zero: not seen yet.
    path: u64,
    /// Tasks it has spawned.
    children: u64,
    /// Other things it has made.
    made: u64,
    /// How often it was polled.
    steps: u64,
}

/// Where tasks could have been cancelled, and where they were: once, and twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<(u64, u64), [bool; 2]>);

impl Coverage {
    fn seen(&mut self, point: (u64, u64), times: usize) {
        let tried = self.0.entry(point).or_default();
        if let Some(at) = times.checked_sub(1) {
            tried[at] = true;
        }
    }

    /// How many cancels were tried, and how many there are to try.
    pub(crate) fn count(&self) -> (usize, usize) {
        let tried = self.0.values().flatten().filter(|tried| **tried).count();
        (tried, 2 * self.0.len())
    }
}

impl LabHost {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn start(&self, strategy: Option<Box<dyn Strategy + Send>>, plan: Plan) {
        self.now.store(0, Relaxed);
        let mut state = self.lock();
        state.strategy = strategy;
        state.plan = Some(plan);
        state.disturbed = false;
        state.log.clear();
        state.tasks.clear();
        state.current = 0;
    }

    fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// Polls a task, of the strategy's choice unless the run is over. If it is to be cancelled:
    /// its number, and how often.
    fn step(&self, ask: bool) -> Option<(u64, usize)> {
        let mut state = self.lock();
        let State { strategy, enabled, log, .. } = &mut *state;
        let at = match strategy {
            Some(strategy) if ask => {
                let at = strategy.pick_task(enabled).min(enabled.len() - 1);
                log.push_task(enabled, at);
                at
            }
            _ => 0,
        };
        let (entry, path) = (state.ready.remove(at), state.enabled.remove(at));
        let id = entry.id();
        let made = state.known(id).made;
        state.current = id;
        drop(state);
        footprint::begin(path.0, made);
        entry.run();
        let mut state = self.lock();
        let mut touched = std::mem::take(&mut state.touched);
        touched.clear();
        touched.push(Access::write(path.0));
        if !state.plan.is_some_and(|plan| plan.transparent) {
            touched.push(Access::write(ELSEWHERE));
        }
        let made =
            footprint::end(|accesses| {
                touched.extend(accesses.iter().map(|access| Access {
                    object: state.name(access.object),
                    write: access.write,
                }));
            });
        state.known(id).made = made;
        state.current = 0;
        if ask && let Some(strategy) = &mut state.strategy {
            strategy.stepped(path, &touched);
        }
        state.touched = touched;
        let known = state.known(id);
        known.steps += 1;
        let point = (known.path, known.steps);
        if !ask || !state.plan.is_some_and(|plan| plan.cancels) {
            return None;
        }
        let times = state.pick(Point::Cancel, 3);
        // After a first cancel the program is another one: its points are not those to cover.
        if !state.disturbed {
            state.coverage.seen(point, times);
        }
        state.disturbed |= times > 0;
        (times > 0).then_some((id, times))
    }
}

impl State {
    fn pick(&mut self, point: Point, count: usize) -> usize {
        let Some(strategy) = &mut self.strategy else { return 0 };
        let picked = strategy.pick(point, count).min(count - 1);
        self.log.push_pick(point, count, picked);
        picked
    }

    fn known(&mut self, id: u64) -> &mut Known {
        let at = id as usize;
        if at >= self.tasks.len() {
            self.tasks.resize(at + 1, Known::default());
        }
        &mut self.tasks[at]
    }

    /// Where a task was spawned: by whom, and as which of those that one spawned.
    fn path(&mut self, id: u64) -> TaskPath {
        if self.known(id).path == 0 {
            let parent = self.current;
            let path = match parent {
                0 => ROOT.0,
                _ => {
                    let parent = self.known(parent);
                    parent.children += 1;
                    mix64(!parent.path ^ mix64(parent.children)) | 1
                }
            };
            self.known(id).path = path;
        }
        TaskPath(self.known(id).path)
    }

    /// The name of an object: of what belongs to a task, by the task's path.
    fn name(&self, object: u64) -> u64 {
        let (id, part) = ((object >> 2) as usize, object & 3);
        match self.tasks.get(id) {
            Some(known) if id > 0 && part > 0 && part < 3 => {
                if part == 1 {
                    known.path
                } else {
                    mix64(known.path ^ part)
                }
            }
            _ => object,
        }
    }
}

impl Host for LabHost {
    fn schedule(&self, entry: Runnable) {
        let id = entry.id();
        let mut state = self.lock();
        let path = state.path(id);
        footprint::touch(path.0, true);
        let entry = match state.ready.iter().position(|old| old.id() == id) {
            Some(at) => {
                state.enabled.remove(at);
                entry.merge(state.ready.remove(at))
            }
            None => entry,
        };
        state.ready.push(entry);
        state.enabled.push(path);
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    fn timer_moved(&self, _: Time) {}

    fn here(&self) -> Option<u16> {
        Some(0)
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        self.schedule(entry);
        Ok(())
    }
}
