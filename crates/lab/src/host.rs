//! What the machine gives its tasks: one list of whatever is runnable, a clock that stands still,
//! and a memory of who is who.
//!
//! A task is known by where it was spawned: by whom, and as which of those that one spawned. That
//! is the same in every run, unlike its number.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use asx_kernel::rng::mix64;
use asx_kernel::time::Time;
use asx_runtime::{Dispatch, Host, Runnable, footprint};

use crate::coverage::Coverage;
use crate::explore::{Access, Decisions, Point, Strategy, TaskPath};
use crate::machine::Plan;

/// The root task of every program.
const ROOT: TaskPath = TaskPath(0x9E37_79B9_7F4A_7C15);

/// What polls share that nobody sees.
const ELSEWHERE: u64 = 3;

/// What the machine gives its tasks.
#[derive(Default)]
pub(crate) struct LabHost {
    now: AtomicU64,
    /// Whether events are recorded, and so who is dispatched.
    is_recorded: bool,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    /// While a run goes on.
    pub(crate) strategy: Option<Box<dyn Strategy + Send>>,
    ready: Vec<Runnable>,
    /// Of each of them.
    enabled: Vec<TaskPath>,
    /// By number. That of nobody, 0, has spawned what the runtime itself started.
    tasks: Vec<Known>,
    /// The number of the task that is being polled.
    current: u64,
    /// Whether the run is not decided yet, so that the strategy is asked.
    asks: bool,
    /// What it touched.
    touched: Vec<Access>,
    /// What was decided in this run.
    pub(crate) log: Decisions,
    /// Of each step, a hash of what it was and what it touched, if that is wanted.
    pub(crate) trail: Vec<u64>,
    plan: Option<Plan>,
    /// Whether there was a cancel in this run.
    pub(crate) is_disturbed: bool,
    pub(crate) coverage: Coverage,
}

/// What is known of a task.
#[derive(Clone, Default)]
struct Known {
    /// Zero: not seen yet.
    path: u64,
    /// Who spawned it.
    parent: u64,
    /// As which of the parent's children, from 1.
    nth: u64,
    name: Option<Arc<str>>,
    /// Tasks it has spawned.
    children: u64,
    /// Other things it has made.
    made: u64,
    /// Random numbers it has drawn.
    draws: u64,
    /// How often it was polled.
    steps: u64,
}

/// What a step came to.
pub(crate) struct Stepped {
    /// The number of the task.
    pub(crate) task: u64,
    /// How often it is to be cancelled now.
    pub(crate) cancels: usize,
}

impl LabHost {
    pub(crate) fn new(is_recorded: bool) -> LabHost {
        LabHost { is_recorded, ..LabHost::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn start(&self, strategy: Option<Box<dyn Strategy + Send>>, plan: Plan) {
        self.now.store(0, Relaxed);
        let mut state = self.lock();
        state.enabled.clear();
        let late = std::mem::take(&mut state.ready);
        drop(state);
        late.into_iter().for_each(Runnable::expire);
        let mut state = self.lock();
        state.strategy = strategy;
        state.plan = Some(plan);
        state.is_disturbed = false;
        state.log.clear();
        state.trail.clear();
        state.tasks.clear();
        state.current = 0;
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// The clock goes on to `time`.
    pub(crate) fn advance(&self, time: Time) {
        self.now.fetch_max(time.as_nanos(), Relaxed);
    }

    /// Polls a task, of the strategy's choice unless the run is over.
    pub(crate) fn step(&self, ask: bool) -> Stepped {
        let mut state = self.lock();
        let at = state.choose(ask);
        let (entry, path) = (state.ready.remove(at), state.enabled.remove(at));
        let id = entry.id();
        let made = state.known(id).made;
        state.current = id;
        drop(state);
        footprint::begin(path.0, made);
        self.poll(entry);
        let mut state = self.lock();
        let made = state.look_at_footprint(path);
        state.current = 0;
        let known = state.known(id);
        known.made = made;
        known.steps += 1;
        let point = (known.path, known.steps);
        let cancels = if ask { state.after_step(path, point) } else { 0 };
        Stepped { task: id, cancels }
    }

    fn poll(&self, entry: Runnable) {
        if !self.is_recorded {
            entry.run();
            return;
        }
        let lane = entry.place().lane();
        // There are no streaks: the strategy chooses across all lanes.
        let dispatch = Dispatch { worker: 0, lane, streak: 0, limit: 0, fallback: false };
        entry.run_recorded(false, dispatch);
    }
}

impl State {
    /// Which of the ready ones goes on.
    fn choose(&mut self, ask: bool) -> usize {
        self.asks = ask;
        let State { strategy, enabled, log, .. } = self;
        let Some(strategy) = strategy.as_mut().filter(|_| ask) else { return 0 };
        let at = strategy.pick_task(enabled).min(enabled.len() - 1);
        log.push_task(enabled, at);
        at
    }

    /// Takes down what the poll of a task has touched: how many things the task has made so far.
    fn look_at_footprint(&mut self, path: TaskPath) -> u64 {
        let mut touched = std::mem::take(&mut self.touched);
        touched.clear();
        touched.push(Access::write(path.0));
        if !self.plan.is_some_and(|plan| plan.transparent) {
            touched.push(Access::write(ELSEWHERE));
        }
        let made =
            footprint::end(|accesses| {
                touched.extend(accesses.iter().map(|access| Access {
                    object: self.object(access.object),
                    write: access.write,
                }));
            });
        self.touched = touched;
        made
    }

    /// Tells the strategy of a step; asks it how often the task is to be cancelled here.
    fn after_step(&mut self, path: TaskPath, point: (u64, u64)) -> usize {
        let State { strategy, touched, trail, plan, .. } = self;
        let Some(plan) = *plan else { return 0 };
        if let Some(strategy) = strategy {
            strategy.stepped(path, touched);
        }
        if plan.trail {
            trail.push(touched.iter().fold(path.0, |hash, access| {
                mix64(hash.rotate_left(23) ^ mix64(access.object) ^ u64::from(access.write))
            }));
        }
        if !plan.cancels {
            return 0;
        }
        let times = self.pick(Point::Cancel, 3);
        // After a first cancel the program is another one: its points are not those to cover.
        if !self.is_disturbed {
            self.coverage.seen(point, times);
        }
        self.is_disturbed |= times > 0;
        times
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        let Some(strategy) = self.strategy.as_mut().filter(|_| self.asks) else { return 0 };
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
    fn path(&mut self, entry: &Runnable) -> TaskPath {
        let id = entry.id();
        if self.known(id).path == 0 {
            let parent = self.current;
            let spawner = self.known(parent);
            spawner.children += 1;
            let (nth, from) = (spawner.children, spawner.path);
            let path = match (parent, nth) {
                (0, 1) => ROOT.0,
                _ => mix64(!from ^ mix64(nth)) | 1,
            };
            let name = entry.name();
            *self.known(id) = Known { path, parent, nth, name, ..Known::default() };
        }
        TaskPath(self.known(id).path)
    }

    /// The name of an object: of what belongs to a task, by the task's path.
    fn object(&self, object: u64) -> u64 {
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

    /// What a task is called, for people: `main/2`, and if it has a name, `feed (main/2)`.
    pub(crate) fn called(&self, id: u64) -> String {
        let path = self.spawned(id);
        match self.tasks.get(id as usize).and_then(|known| known.name.as_ref()) {
            Some(name) => format!("{name} ({path})"),
            None => path,
        }
    }

    fn spawned(&self, id: u64) -> String {
        let mut steps = Vec::new();
        let mut at = self.tasks.get(id as usize);
        while let Some(known) = at.filter(|known| known.path != 0 && known.path != ROOT.0) {
            steps.push(known.nth.to_string());
            if known.parent == 0 {
                steps.push("runtime".into());
                break;
            }
            at = self.tasks.get(known.parent as usize);
        }
        if steps.last().is_none_or(|step| step != "runtime") {
            steps.push("main".into());
        }
        steps.reverse();
        steps.join("/")
    }

    /// The numbers of the tasks of this run, and their paths.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (u64, TaskPath)> {
        let tasks = (0..).zip(&self.tasks).filter(|(_, known)| known.path != 0);
        tasks.map(|(id, known)| (id, TaskPath(known.path)))
    }
}

impl Host for LabHost {
    fn schedule(&self, entry: Runnable) {
        let id = entry.id();
        let mut state = self.lock();
        let path = state.path(&entry);
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

    fn unschedule(&self, task: u64) -> Option<Runnable> {
        let mut state = self.lock();
        let at = state.ready.iter().position(|entry| entry.id() == task)?;
        state.enabled.remove(at);
        Some(state.ready.remove(at))
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    fn timer_moved(&self, _: Time) {}

    fn here(&self) -> Option<u16> {
        Some(0)
    }

    /// Of the task and how many it has drawn: whatever the order of polls.
    fn entropy(&self) -> u64 {
        let mut state = self.lock();
        let current = state.current;
        let known = state.known(current);
        known.draws += 1;
        mix64(known.path ^ mix64(known.draws))
    }

    fn choose(&self, count: u64) -> u64 {
        self.lock().pick(Point::Entropy, count as usize) as u64
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        self.schedule(entry);
        Ok(())
    }
}
