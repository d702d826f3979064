//! The host of a machine: what is runnable, what is known of it, and one poll after another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use asx_kernel::rng::mix64;
use asx_kernel::time::Time;
use asx_runtime::{Host, Runnable, footprint};

use crate::explore::{Access, Decisions, Point, Strategy, TaskPath};
use crate::machine::Plan;

/// The root task of every program.
const ROOT: TaskPath = TaskPath(0x9E37_79B9_7F4A_7C15);

/// What moves time on, as if it were a task: it can run when nothing else can.
const CLOCK: TaskPath = TaskPath(0xC10C_C10C_C10C_C10D);

/// Who cancels tasks, as if it were one: after it anybody may go on, not just who was polled last.
const CANCELLER: TaskPath = TaskPath(0xCA2C_E11E_CA2C_E11F);

/// What polls share that nobody sees.
const ELSEWHERE: u64 = 3;

/// How often in a row a task is polled while others could be: workers are not that unfair.
const IN_A_ROW: u32 = 100;

/// What a poll came to.
pub(crate) struct Step {
    /// Whom to cancel, and how often.
    pub(crate) cancel: Option<(u64, usize)>,
    pub(crate) trouble: Option<Trouble>,
}

/// What is wrong with a task, seen when it was polled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// It was woken by another thread.
    Foreign,
    /// A poll of this task does not end.
    Endless(u64),
    /// This task was asked to stop, and has not looked for so many polls.
    Unheeding(u64, u64),
}

/// What the machine gives its tasks.
#[derive(Default)]
pub(crate) struct LabHost {
    now: AtomicU64,
    /// The thread of the machine.
    owner: AtomicUsize,
    /// Another thread has woken a task.
    woken: Condvar,
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
    /// The task that was polled last, and how often in a row.
    streak: (u64, u32),
    /// Whether a task was held back in this run, for the sake of the others.
    held_back: bool,
    /// Whether another thread has woken a task in this run.
    foreign: bool,
    /// Whether there was ever a timer, in this run or in one before.
    timed: bool,
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
    /// How often since it was asked to stop, without seeing it.
    unheeding: u64,
}

/// A place where a task could be cancelled: which task, after how many polls, how often, and
/// whether when it is about to be polled again or at once.
type Place = (u64, u64, usize, bool);

/// Where tasks could have been cancelled, and whether they were.
#[derive(Clone, Debug, Default)]
struct Coverage(BTreeMap<Place, bool>);

impl Coverage {
    /// There is a choice between no cancel and up to `most`; this many were made.
    fn seen(&mut self, known: Known, late: bool, most: usize, made: usize) {
        for times in 1..=most {
            let place = (known.path, known.steps, times, late);
            *self.0.entry(place).or_default() |= times == made;
        }
    }

    /// How many cancels were tried, and how many there are to try.
    fn count(&self) -> (usize, usize) {
        (self.0.values().filter(|tried| **tried).count(), self.0.len())
    }
}

impl LabHost {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn start(&self, strategy: Option<Box<dyn Strategy + Send>>, plan: Plan) {
        self.now.store(0, Relaxed);
        self.owner.store(this_thread(), Relaxed);
        let mut state = self.lock();
        state.strategy = strategy;
        state.plan = Some(plan);
        state.streak = (0, 0);
        state.held_back = false;
        state.foreign = false;
        state.disturbed = false;
        state.log.clear();
        state.tasks.clear();
        state.current = 0;
    }

    /// The run is over: its strategy, and whether the machine has overruled it.
    pub(crate) fn finish(&self) -> (Option<Box<dyn Strategy + Send>>, bool) {
        let mut state = self.lock();
        (state.strategy.take(), state.held_back)
    }

    pub(crate) fn log(&self) -> Decisions {
        self.lock().log.clone()
    }

    pub(crate) fn coverage(&self) -> (usize, usize) {
        self.lock().coverage.count()
    }

    /// Moves the clock on, and has `fire` wake whom it may: a step of the clock.
    pub(crate) fn tick(&self, to: Time, ask: bool, fire: impl FnOnce(Time)) {
        self.now.fetch_max(to.as_nanos(), Relaxed);
        self.outside(CLOCK, ask, || fire(self.now()));
    }

    /// Has `cancel` ask a task to stop: a step of who does that.
    pub(crate) fn cancel(&self, cancel: impl FnOnce()) {
        self.outside(CANCELLER, true, cancel);
    }

    /// A step of something that is not a task.
    fn outside(&self, who: TaskPath, ask: bool, step: impl FnOnce()) {
        if ask {
            let mut state = self.lock();
            let State { strategy, log, .. } = &mut *state;
            if let Some(strategy) = strategy {
                strategy.pick_task(&[who]);
            }
            log.push_task(&[who], 0);
            state.streak = (0, 0);
        }
        footprint::begin(who.0, 0);
        step();
        self.lock().stepped(0, who, ask);
    }

    /// Waits for another thread to wake a task, which takes from `patience`: whether one has.
    pub(crate) fn wait(&self, patience: &mut Duration) -> bool {
        let start = Instant::now();
        let none = |state: &mut State| !state.foreign;
        let (state, _) = self
            .woken
            .wait_timeout_while(self.lock(), *patience, none)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *patience = patience.saturating_sub(start.elapsed());
        state.foreign
    }

    /// Polls a task, of the strategy's choice unless the run is over. None if there is none.
    /// `cancel` asks a task to stop.
    pub(crate) fn step(&self, ask: bool, cancel: impl FnOnce(u64)) -> Option<Step> {
        let mut state = self.lock();
        let mut at = state.choose(ask)?;
        if ask && state.cancels() {
            let id = state.ready[at].id();
            if state.cancel(id, true) > 0 {
                drop(state);
                cancel(id);
                state = self.lock();
                at = state.ready.iter().position(|entry| entry.id() == id)?;
            }
        }
        let (entry, path) = state.take(at);
        let id = entry.id();
        let unheeding = entry.is_unheeding();
        let known = state.known(id);
        known.unheeding = if unheeding { known.unheeding + 1 } else { 0 };
        let (made, unheeded) = (known.made, known.unheeding);
        state.current = id;
        drop(state);
        entry.forget_wait();
        footprint::begin(path.0, made);
        entry.run();
        let mut state = self.lock();
        state.stepped(id, path, ask);
        let plan = state.plan?;
        let trouble = if footprint::take_endless() {
            Some(Trouble::Endless(id))
        } else if state.foreign {
            Some(Trouble::Foreign)
        } else {
            (unheeded > plan.latency).then_some(Trouble::Unheeding(id, unheeded))
        };
        let times = if ask && plan.cancels { state.cancel(id, false) } else { 0 };
        Some(Step { cancel: (times > 0).then_some((id, times)), trouble })
    }
}

impl State {
    /// Which task is next, if there is one.
    fn choose(&mut self, ask: bool) -> Option<usize> {
        match ask && self.strategy.is_some() {
            _ if self.ready.is_empty() => None,
            true => Some(self.ask()),
            false => Some(0),
        }
    }

    fn take(&mut self, at: usize) -> (Runnable, TaskPath) {
        let (entry, path) = (self.ready.remove(at), self.enabled.remove(at));
        let in_a_row = if self.streak.0 == path.0 { self.streak.1 + 1 } else { 1 };
        self.streak = (path.0, in_a_row);
        (entry, path)
    }

    fn cancels(&self) -> bool {
        self.plan.is_some_and(|plan| plan.cancels)
    }

    /// Asks the strategy; a task that had its turn too often is not among those it is asked about.
    fn ask(&mut self) -> usize {
        let mut count = self.enabled.len();
        if self.streak.1 >= IN_A_ROW
            && count > 1
            && let Some(at) = self.enabled.iter().position(|path| path.0 == self.streak.0)
        {
            let (entry, path) = (self.ready.remove(at), self.enabled.remove(at));
            self.ready.push(entry);
            self.enabled.push(path);
            self.held_back = true;
            count -= 1;
        }
        let enabled = &self.enabled[..count];
        let picked = self.strategy.as_mut().map_or(0, |strategy| strategy.pick_task(enabled));
        let at = picked.min(count - 1);
        self.log.push_task(enabled, at);
        at
    }

    /// A poll is over: what it touched.
    fn stepped(&mut self, id: u64, path: TaskPath, ask: bool) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.clear();
        touched.push(Access::write(path.0));
        let transparent = self.plan.is_some_and(|plan| plan.transparent);
        if !transparent {
            touched.push(Access::write(ELSEWHERE));
        }
        if !transparent || self.timed {
            // Every step has a say in whether anything is left that keeps time from moving.
            touched.push(Access::write(CLOCK.0));
        }
        let made = footprint::end(|accesses| {
            touched.extend(
                accesses
                    .iter()
                    .map(|access| Access { object: self.name(access.object), write: access.write }),
            );
        });
        let known = self.known(id);
        known.made = made;
        known.steps += 1;
        self.current = 0;
        if ask && let Some(strategy) = &mut self.strategy {
            strategy.stepped(path, &touched);
        }
        self.touched = touched;
    }

    /// How often a task is cancelled now: when it was polled, or when it is about to be (`late`),
    /// after whatever others have done meanwhile.
    fn cancel(&mut self, id: u64, late: bool) -> usize {
        let most = if late { 1 } else { 2 };
        let times = self.pick(Point::Cancel, most + 1);
        let known = *self.known(id);
        // After a first cancel the program is another one: its points are not those to cover.
        if !self.disturbed {
            self.coverage.seen(known, late, most, times);
        }
        self.disturbed |= times > 0;
        times
    }

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
        if this_thread() != self.owner.load(Relaxed) {
            state.foreign = true;
            self.woken.notify_all();
        }
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

    fn timer_moved(&self, _: Time) {
        self.lock().timed = true;
    }

    fn here(&self) -> Option<u16> {
        Some(0)
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        self.schedule(entry);
        Ok(())
    }
}

/// A number that no two threads have at the same time.
fn this_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}
