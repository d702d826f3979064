//! What the machine gives its tasks: one list of whatever is runnable, a clock that stands still,
//! and a memory of who is who.

mod affinity;
mod by_law;
mod carriers;
mod sharing;
mod slow;
mod step;
mod task_names;

use std::borrow::Cow;
use std::cell::RefMut;
use std::mem;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use asx_kernel::lanes::{Lane, TieBreak};
use asx_kernel::rng::{GOLDEN, mix64};
use asx_kernel::time::Time;
use asx_runtime::footprint::{self, AccessKind, EVERYTHING, Inspected, TaskRecord};
use asx_runtime::{Host, Runnable};

use crate::coverage::Coverage;
use crate::explore::{Access, Decision, Decisions, Point, Strategy, TaskPath};
use crate::fiber::Fiber;
use crate::machine::Plan;
use crate::net::{Driver, SimNet, is_carrier};
use crate::signal::Signal;
use crate::std_locks::{self, Word};
use crate::thread_bound::Own;
use crate::watch::{Pulse, TaskList};
use crate::workers::Lanes;
use affinity::Threads;
use sharing::Sharing;
pub(crate) use step::{Pause, Stepped};
use task_names::{Born, Known};

/// What moves time on, as if it were a task: it can run when nothing else can.
const CLOCK: TaskPath = TaskPath::CLOCK;

/// Who cancels tasks and wakes them for nothing, as if it were one: after it anybody may go on, not
/// just who was polled last.
const DISTURBER: TaskPath = TaskPath(0xCA2C_E11E_CA2C_E11F);

/// What polls share that nobody sees.
const ELSEWHERE: u64 = 3;

/// How often in a row a task is polled while others could be: workers are not that unfair.
const IN_A_ROW: u32 = 100;

/// How many numbers a draw may give.
const DRAWS: usize = 1 << 14;

/// The order in which tasks were numbered: written by steps that spawn, where numbers are read.
const NUMBERS: u64 = 0x6E75_6D62_6572_7365;

/// Properties of a program that make more of its steps depend on each other. A reduced search
/// knows them from its first run on, or begins again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// There were timers.
    pub(crate) timed: bool,
    /// The program has read the state of the runtime, or numbers of tasks.
    pub(crate) inspected: Inspected,
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
pub(crate) struct LabHost {
    now: AtomicU64,
    /// Whether events are recorded, and so who is dispatched.
    is_recorded: bool,
    /// Whether there was ever a timer, in this run or in one before.
    timed: AtomicBool,
    state: Own<State>,
    pulse: Arc<Pulse>,
    /// Says that the root has something to look at.
    signal: Signal,
    /// Whether there is something in `late`: this is looked at after each poll, the lock is not.
    called: AtomicBool,
    /// Whether another thread has woken what could run already.
    elsewhere: AtomicBool,
    /// What other threads have woken.
    late: Mutex<Vec<Runnable>>,
    /// Another thread has woken a task.
    woken: Condvar,
    net: Arc<SimNet>,
}

/// What belongs to the machine's thread, which is asked for at each step and each wake.
#[derive(Default)]
pub(crate) struct State {
    /// While a run goes on.
    pub(crate) strategy: Option<Box<dyn Strategy + Send>>,
    /// Who can run, in the order in which they came to. Their entries are with what is known of
    /// them, or in `lanes`.
    enabled: Vec<TaskPath>,
    /// How many of them, from the first, are the rest of the list of which the strategy last picked
    /// one, if nothing else has become of it; else 0.
    old: usize,
    /// Which of them share a thread.
    threads: Threads,
    /// Whose polls were left where they wait for a lock of the standard library.
    pub(crate) blocked: Vec<(TaskPath, Word)>,
    /// What waits where, if there are workers; and which carriers of the network can run then.
    lanes: Option<Lanes>,
    carriers: Vec<TaskPath>,
    /// By number. That of nobody, 0, has spawned what the runtime itself started.
    tasks: Vec<Known>,
    /// Numbers, by a part of the path: where to look first.
    numbers: Vec<u32>,
    /// By number, who was spawned where: mostly as in the run before.
    born: Vec<Born>,
    /// The number of the task that is being polled; 0 if none is.
    pub(crate) current: u64,
    /// Whether the run is not decided yet, so that the strategy is asked.
    asks: bool,
    /// Whether its steps are polls of the strategy's choice, and nothing else.
    is_plain: bool,
    /// Whether the strategy is told of steps.
    told: bool,
    /// Whether it is, or what they touch is written down.
    watched: bool,
    /// The task that was polled last, and how often in a row.
    streak: (u64, u32),
    /// While plain steps are taken: how many there were, and how many more polls may begin.
    walked: u64,
    left: u64,
    /// Whether the step that is taken begins a poll, and does not go on with one.
    begins: bool,
    /// Steps of this run after which the poll was not over.
    pub(crate) points: u64,
    /// Whether they are taken by a walk now, and why that goes no further.
    walks: bool,
    pause: Option<Pause>,
    /// Who goes on, if that was chosen when a poll was left; and on which fiber, if that one was
    /// left, too.
    next: Option<TaskPath>,
    fiber: Option<Fiber>,
    /// How often that may be while others could be polled: 0 if all go in turns.
    in_a_row: u32,
    /// Whether a task was held back in this run, for the sake of the others.
    pub(crate) held_back: bool,
    /// Whether one was in any run.
    pub(crate) overrules: bool,
    /// Whether a random number was drawn in any run.
    pub(crate) has_drawn: bool,
    /// Traits of the program that runs before this one have shown.
    traits: Traits,
    /// How many tasks there were before this step.
    tasks_before: usize,
    /// Whether tasks were seen to share anything.
    pub(crate) sharing: Sharing,
    /// Whether another thread has woken a task in this run.
    foreign: bool,
    /// Whether there may be something wrong with the last step: this, or that its task has not
    /// looked for long whether it was asked to stop.
    alarm: bool,
    /// The same for who watches from outside.
    list: Arc<TaskList>,
    /// The names of those that have one, by number.
    names: Vec<(u64, Arc<str>)>,
    /// The regions that have begun finalizers, by name, and how many.
    finalizers: Vec<(u64, u32)>,
    /// What it touched.
    touched: Vec<Access>,
    /// What was decided in this run, if it is written down: once it is over, in `shared`.
    log: Decisions,
    shared: Option<Arc<Decisions>>,
    /// The numbers of what was picked, if it is not.
    pub(crate) picks: Vec<u32>,
    /// Of each step, a hash of what it was and what it touched, if that is wanted.
    pub(crate) trail: Vec<u64>,
    plan: Plan,
    /// Whether there was a cancel in this run, or a fault that may show.
    pub(crate) is_disturbed: bool,
    /// Cancels.
    pub(crate) coverage: Coverage,
    pub(crate) faults: Faults,
}

/// The faults of a program.
#[derive(Default)]
pub(crate) struct Faults {
    /// Those of this run, by name, with what else has words: draws, time that passed.
    pub(crate) made: Vec<Made>,
    /// How many disturbances there were in this run.
    count: usize,
    /// How many could have been made in this step.
    asked: usize,
    /// Those of all runs.
    pub(crate) coverage: Coverage,
    /// The same of those in the network.
    pub(crate) network: Coverage,
}

/// Something that a strategy has chosen, and that is told in words of its own.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    /// In words.
    pub(crate) text: Cow<'static, str>,
    /// What kind of choice it was.
    pub(crate) point: Point,
}

/// A hash of what a step has touched so far, and of what it touches next.
#[inline]
fn trail(hash: u64, object: u64, write: bool) -> u64 {
    (hash.rotate_left(23) ^ object).wrapping_mul(GOLDEN).wrapping_add(u64::from(write))
}

impl LabHost {
    /// For a program of this name.
    pub(crate) fn new(name: &str, is_recorded: bool) -> Arc<LabHost> {
        std_locks::install();
        let pulse = Pulse::new(name);
        let state = State { list: pulse.tasks(), ..State::default() };
        Arc::new_cyclic(|me: &Weak<LabHost>| LabHost {
            now: AtomicU64::new(0),
            is_recorded,
            timed: AtomicBool::new(false),
            state: Own::new(state),
            pulse,
            signal: Signal::new(),
            called: AtomicBool::new(false),
            elsewhere: AtomicBool::new(false),
            late: Mutex::default(),
            woken: Condvar::new(),
            net: SimNet::new(Weak::<LabHost>::clone(me) as Weak<dyn Driver>),
        })
    }

    /// The network.
    pub(crate) fn net_of_lab(&self) -> &SimNet {
        &self.net
    }

    /// Says that the root has something to look at.
    pub(crate) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// The state, on the machine's thread.
    #[inline]
    pub(crate) fn state(&self) -> RefMut<'_, State> {
        self.state.get()
    }

    pub(crate) fn start(&self, strategy: Option<Box<dyn Strategy + Send>>, plan: Plan) {
        self.now.store(0, Relaxed);
        self.net.start(plan.network);
        if plan.network.takes_time() {
            self.timed.store(true, Relaxed);
        }
        let traits = self.traits();
        let mut state = self.state();
        state.traits = traits;
        self.listen(&mut state);
        if plan.workers > 0 || state.lanes.is_some() || !state.enabled.is_empty() {
            drop(state);
            self.expire_all(plan.workers, plan.tie_break);
            state = self.state();
        }
        state.enabled.clear();
        state.threads.clear();
        state.carriers.clear();
        state.old = 0;
        state.told = strategy.as_ref().is_some_and(|it| it.watches());
        state.watched = state.told || plan.trail;
        footprint::begin_run(state.watched);
        state.is_plain = strategy.is_some() && plan.is_plain() && !self.is_recorded;
        state.strategy = strategy;
        state.plan = plan;
        state.is_disturbed = false;
        state.faults.made.clear();
        state.faults.count = 0;
        (state.next, state.fiber, state.pause) = (None, None, None);
        state.walks = false;
        state.points = 0;
        (state.streak, state.in_a_row) = ((0, 0), plan.points.times(IN_A_ROW));
        state.held_back = false;
        state.foreign = false;
        state.alarm = false;
        state.log.clear();
        state.shared = None;
        state.picks.clear();
        state.trail.clear();
        state.tasks.clear();
        state.tasks.push(Known::default());
        state.names.clear();
        state.finalizers.clear();
        state.sharing.begin_run();
        state.current = 0;
        state.tasks_before = 0;
    }

    /// Returns the traits of the program that this run and earlier ones have shown.
    pub(crate) fn traits(&self) -> Traits {
        let known = self.state().traits.inspected;
        let new = footprint::inspected();
        let state = known.state || new.state;
        let inspected = Inspected { state, numbers: known.numbers || new.numbers };
        Traits { timed: self.is_timed(), inspected }
    }

    /// Drops all entries: nothing runs here any more.
    pub(crate) fn expire(&self) {
        self.expire_all(0, TieBreak::Fifo);
        let late = mem::take(&mut *self.late());
        drop(late);
    }

    /// Gives up what is left of the last run, and has so many workers.
    #[cold]
    fn expire_all(&self, workers: usize, tie_break: TieBreak) {
        let mut state = self.state();
        let mut left = state.set_workers(workers, tie_break);
        left.extend(state.tasks.iter_mut().filter_map(|known| known.entry.take()));
        drop(state);
        drop(left);
    }

    fn late(&self) -> MutexGuard<'_, Vec<Runnable>> {
        self.late.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes in what other threads have woken, if they have.
    #[inline]
    fn listen(&self, state: &mut State) {
        if self.called.load(Acquire) {
            self.take_in(state);
        }
    }

    #[cold]
    fn take_in(&self, state: &mut State) {
        // In this order: who comes after the list was taken calls again.
        self.called.store(false, Relaxed);
        let late = mem::take(&mut *self.late());
        state.foreign |= self.elsewhere.swap(false, Relaxed) || !late.is_empty();
        if state.foreign {
            state.raise_alarm();
        }
        late.into_iter().for_each(|entry| state.enqueue(entry, true));
    }

    /// Another thread has woken a task.
    #[cold]
    fn schedule_late(&self, entry: Runnable) {
        self.late().push(entry);
        self.called.store(true, Relaxed);
        self.woken.notify_all();
    }

    /// Moves the clock on, and has `fire` wake whom it may: a step of the clock.
    pub(crate) fn tick(&self, to: Time, ask: bool, fire: impl FnOnce(Time)) {
        self.now.fetch_max(to.as_nanos(), Relaxed);
        self.outside(CLOCK, ask, || {
            // The time is a part of the class of a run.
            footprint::touch(CLOCK.turn() ^ to.as_nanos(), true);
            fire(self.now());
        });
    }

    /// Has `disturb` ask a task to stop, or wake it: a step of who does that.
    pub(crate) fn disturb(&self, disturb: impl FnOnce()) {
        self.outside(DISTURBER, true, disturb);
    }

    /// What a task is called, as who watches from outside knows it.
    #[cfg(test)]
    pub(crate) fn called_from_outside(&self, id: u64) -> Option<String> {
        self.pulse.tasks().called(id)
    }

    /// Whether there was ever a timer, in this run or in one before.
    pub(crate) fn is_timed(&self) -> bool {
        self.timed.load(Relaxed)
    }

    /// Whether the time is told late.
    pub(crate) fn is_late(&self) -> bool {
        let mut state = self.state();
        let now = self.now.load(Relaxed);
        state.plan.late_clocks && state.fault("a late clock", (CLOCK.0, now), true)
    }

    /// Whether a task is woken for nothing, after its last poll.
    pub(crate) fn is_spurious(&self, task: u64) -> bool {
        let mut state = self.state();
        let known = state.known(task);
        let place = known.place();
        state.fault("a spurious wake", place, false)
    }

    /// A step of something that is not a task.
    fn outside(&self, who: TaskPath, ask: bool, step: impl FnOnce()) {
        if ask {
            let mut state = self.state();
            if let Some(strategy) = &mut state.strategy {
                strategy.pick_task(&[who]);
            }
            match state.plan.trail {
                true => state.log.push_task(&[who], 0),
                false => state.picks.push(0),
            }
            state.streak = (0, 0);
        }
        let notes = ask && self.state().is_of_interest();
        footprint::begin(who.0, TaskRecord::default(), notes);
        step();
        let mut state = self.state();
        state.look_at_footprint(who, notes);
        if ask {
            state.tell(who);
        }
    }

    /// Waits for another thread to wake a task, which takes from `patience`: whether one has.
    pub(crate) fn wait(&self, patience: &mut Duration) -> bool {
        let start = Instant::now();
        let none = |late: &mut Vec<Runnable>| late.is_empty();
        let (late, _) = self
            .woken
            .wait_timeout_while(self.late(), *patience, none)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        *patience = patience.saturating_sub(start.elapsed());
        !late.is_empty()
    }
}

impl State {
    /// Whether somebody wants to know what the step that is about to be taken touches.
    #[inline]
    fn is_of_interest(&self) -> bool {
        self.plan.trail || self.strategy.as_ref().is_some_and(|it| it.needs_footprint())
    }

    /// What was decided in the last run, if it was written down: that may be long, and is not
    /// copied.
    pub(crate) fn decided(&mut self) -> Arc<Decisions> {
        let State { log, shared, .. } = self;
        shared.get_or_insert_with(|| Arc::new(mem::take(log))).clone()
    }

    /// The numbers of what was picked in the last run, if it was not written down, or in brief.
    pub(crate) fn picked(&mut self) -> Option<Vec<u32>> {
        match (self.plan.trail, self.plan.brief) {
            (true, false) => None,
            (true, true) => Some(self.decided().list().iter().map(Decision::picked).collect()),
            (false, _) => Some(self.picks.clone()),
        }
    }

    /// Records the footprint of a step, if it is wanted, and returns the record of its task.
    #[inline(always)]
    fn look_at_footprint(&mut self, path: TaskPath, wanted: bool) -> TaskRecord {
        self.touched.clear();
        let begins = mem::take(&mut self.begins);
        let spawns = self.tasks.len() > mem::replace(&mut self.tasks_before, self.tasks.len());
        if !wanted {
            return footprint::end(|_| ());
        }
        if begins {
            self.touched.push(Access::write(path.turn()).neutral());
        }
        if spawns && self.plan.traits.inspected.numbers {
            self.touched.push(Access::write(NUMBERS));
        }
        self.note_touched(path)
    }

    #[inline(never)]
    fn note_touched(&mut self, path: TaskPath) -> TaskRecord {
        let is_told = self.strategy.as_ref().is_some_and(|it| it.needs_footprint());
        if is_told { self.note_footprint(path) } else { self.note_trail(path) }
    }

    /// The same where nobody wants to know more than whether another run does the same.
    fn note_trail(&mut self, path: TaskPath) -> TaskRecord {
        let mut hash = path.0;
        let mut sharing = mem::take(&mut self.sharing);
        let record = footprint::end(|access| {
            sharing.note(path, &access);
            hash = trail(hash, self.object(access.object), access.how != AccessKind::Read);
        });
        self.sharing = sharing;
        self.trail.push(hash);
        record
    }

    fn note_footprint(&mut self, path: TaskPath) -> TaskRecord {
        let mut touched = mem::take(&mut self.touched);
        touched.push(Access::write(path.0));
        // The lanes of the scheduler are shared by all. A carrier runs nothing of the program, and
        // the clock reads all of them.
        let is_carrier = is_carrier(path);
        let transparent = (self.plan.transparent || is_carrier) && self.lanes.is_none();
        if !transparent {
            touched.push(Access::write(ELSEWHERE));
            touched.push(Access::write(CLOCK.0));
        } else if self.plan.traits.timed && !is_carrier {
            // Time moves only when nothing can run, so a step of the clock comes after all steps
            // before it, and before all that follow. Between two steps of the clock, steps of
            // tasks commute as they do without timers.
            touched.push(Access::read(CLOCK.0));
        }
        if self.plan.traits.inspected.state {
            touched.push(Access::read(EVERYTHING));
        }
        let mut hash = path.0;
        let mut sharing = mem::take(&mut self.sharing);
        let record = footprint::end(|access| {
            sharing.note(path, &access);
            let footprint::Access { object, how, is_neutral } = access;
            let object = self.object(object);
            hash = trail(hash, object, how != AccessKind::Read);
            let access = match how {
                AccessKind::Read => Access::read(object),
                AccessKind::Complete => Access::complete(object),
                AccessKind::Write => Access::write(object),
            };
            touched.push(Access { is_neutral, ..access });
        });
        self.sharing = sharing;
        self.touched = touched;
        if self.plan.trail {
            self.trail.push(hash);
        }
        record
    }

    /// Tells the strategy of a step.
    #[inline]
    fn tell(&mut self, path: TaskPath) {
        let State { strategy, touched, .. } = self;
        if let Some(strategy) = strategy {
            strategy.stepped(path, touched);
        }
    }

    /// How often a task is cancelled now: when it was polled, or when it is about to be (`late`),
    /// after whatever others have done meanwhile.
    fn cancel(&mut self, id: u64, late: bool) -> usize {
        if self.faults.count >= self.plan.disturbances {
            return 0;
        }
        let most = if late { 1 } else { 2 };
        let times = self.pick(Point::Cancel, most + 1);
        let known = self.known(id);
        let place = known.place();
        // After a first cancel the program is another one: its points are not those to cover.
        if self.faults.count == 0 {
            self.coverage.seen(place, late, most, times);
        }
        self.faults.count += usize::from(times > 0);
        self.is_disturbed |= times > 0;
        times
    }

    /// Whether something goes wrong here. Without `shows`, the program must not notice.
    fn fault(&mut self, name: &'static str, place: (u64, u64), shows: bool) -> bool {
        let is_enough = self.faults.count >= self.plan.disturbances;
        if !self.plan.faults || !self.asks || is_enough {
            return false;
        }
        let is_made = self.pick(Point::Fault, 2) > 0;
        let nth = self.faults.asked;
        self.faults.asked += 1;
        if self.faults.count == 0 {
            self.faults.coverage.fault(place, nth, is_made);
        }
        if is_made {
            self.faults.made.push(Made { text: Cow::Borrowed(name), point: Point::Fault });
            self.faults.count += 1;
            self.is_disturbed |= shows;
        }
        is_made
    }

    /// A random number: of the task and how many it has drawn, whatever the order of polls, and of
    /// the strategy's choice, if that is asked.
    fn draw(&mut self) -> u64 {
        self.has_drawn = true;
        let current = self.current;
        let known = self.known(current);
        known.draws += 1;
        let path = known.path;
        let nth = known.draws;
        let usual = mix64(path ^ mix64(nth.into()));
        let picked = if self.plan.draws { self.pick(Point::Draw, DRAWS) } else { 0 };
        let drawn = match picked {
            0 => return usual,
            1 => 0,
            2 => u64::MAX,
            other => mix64(usual ^ mix64(other as u64)),
        };
        let text = Cow::Owned(format!("`random` gave {drawn}"));
        self.faults.made.push(Made { text, point: Point::Draw });
        drawn
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        let Some(strategy) = self.strategy.as_mut().filter(|_| self.asks) else { return 0 };
        let picked = strategy.pick(point, count).min(count - 1);
        match self.plan.trail {
            true => self.log.push_pick(point, count, picked),
            false => self.picks.push(picked as u32),
        }
        picked
    }

    /// A task can run.
    fn enqueue(&mut self, entry: Runnable, global: bool) {
        let id = entry.id();
        // Numbers are given out in the order of spawns.
        if self.lanes.is_some() || id as usize != self.tasks.len() {
            return self.enqueue_rarely(entry, global);
        }
        let known = self.meet(&entry);
        let path = TaskPath(known.path);
        let thread = known.thread;
        self.tasks.push(Known { entry: Some(entry), ..known });
        footprint::touch_neutral(path.turn());
        self.make_runnable(path, thread);
    }

    /// A task can run whose number is not the next one, or that is in the list already, as it is
    /// asked to stop; or the law says where it goes.
    #[cold]
    fn enqueue_rarely(&mut self, mut entry: Runnable, global: bool) {
        let id = entry.id();
        if self.known(id).path == 0 {
            let known = self.meet(&entry);
            *self.known(id) = known;
        }
        let path = TaskPath(self.known(id).path);
        if id != self.current {
            footprint::touch_neutral(path.turn());
        }
        let Some(by_choice) = self.enqueue_by_law(entry, global) else { return };
        entry = by_choice;
        if let Some(old) = self.remove(id) {
            entry = entry.merge(old);
        }
        let known = self.known(id);
        known.entry = Some(entry);
        let thread = known.thread;
        self.make_runnable(path, thread);
    }

    /// Takes a task out of the list.
    fn remove(&mut self, id: u64) -> Option<Runnable> {
        let known = self.known(id);
        let path = TaskPath(known.path);
        let entry = known.entry.take()?;
        self.enabled.retain(|other| *other != path);
        self.threads.forget(path);
        self.old = 0;
        Some(entry)
    }
}

// SAFETY: the machine's thread is all workers (rule 1 of `machine`), and the state, which `here`
// asks for, is only had there; entries are found by the number of their task.
unsafe impl Host for LabHost {
    fn schedule(&self, entry: Runnable) {
        let Some(mut state) = self.state.here() else { return self.schedule_late(entry) };
        let State { tasks, enabled, lanes, threads, current, .. } = &mut *state;
        let is_plain = lanes.is_none() && threads.are_free();
        // Most wakes are of who could run before, and is not in the list.
        match tasks.get_mut(entry.id() as usize) {
            Some(Known { path: path @ 1.., entry: place @ None, .. })
                if is_plain && enabled.len() < enabled.capacity() =>
            {
                let path = TaskPath(*path);
                enabled.push(path);
                // At the end of a poll in which the task was woken: whatever woke it has read its
                // turn, and this is no other wake.
                if entry.id() != *current {
                    footprint::touch_neutral(path.turn());
                }
                *place = Some(entry);
            }
            _ => state.enqueue(entry, false),
        }
    }

    fn schedule_globally(&self, entry: Runnable) {
        match self.state.here() {
            Some(mut state) => state.enqueue(entry, true),
            None => self.schedule(entry),
        }
    }

    fn on_behalf(&self, f: &mut dyn FnMut()) {
        let worker = |worker| {
            let mut state = self.state.here()?;
            let lanes = state.lanes.as_mut()?;
            mem::replace(&mut lanes.worker, worker)
        };
        let at_work = worker(None);
        f();
        worker(at_work);
    }

    fn pause(&self) {
        self.pause_at_point();
    }

    /// The wake of another thread counts even if it came while the task was polled.
    fn rewoken(&self) {
        if self.state.is_here() {
            return;
        }
        self.elsewhere.store(true, Relaxed);
        // Whoever sees that it was called sees why.
        self.called.store(true, Release);
    }

    fn unschedule(&self, task: u64) -> Option<Runnable> {
        let mut state = self.state.here()?;
        let entry = match &mut state.lanes {
            Some(lanes) => lanes.take(task)?,
            None => state.remove(task)?,
        };
        Some(entry)
    }

    fn queued(&self, lane: Lane) -> usize {
        let Some(state) = self.state.here() else { return 0 };
        let is_in = |entry: &&Runnable| entry.place().lane() == lane;
        match &state.lanes {
            Some(lanes) => lanes.queued(lane),
            None => {
                state.tasks.iter().filter_map(|known| known.entry.as_ref()).filter(is_in).count()
            }
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    fn timer_moved(&self, _: Time) {
        self.timed.store(true, Relaxed);
    }

    fn here(&self) -> Option<u16> {
        let state = self.state.here()?;
        let worker = state.lanes.as_ref().and_then(|lanes| lanes.worker).unwrap_or(0);
        u16::try_from(worker).ok()
    }

    fn entropy(&self) -> u64 {
        self.state.here().map_or(0, |mut state| state.draw())
    }

    fn choose(&self, count: u64) -> u64 {
        let Some(mut state) = self.state.here() else { return 0 };
        match u32::try_from(count) {
            Ok(count) => state.pick(Point::Entropy, count as usize) as u64,
            // More than a schedule has numbers for.
            Err(_) => ((u128::from(state.draw()) * u128::from(count)) >> 64) as u64,
        }
    }

    fn fault(&self, name: &'static str) -> bool {
        let Some(mut state) = self.state.here() else { return false };
        let current = state.current;
        let known = state.known(current);
        let place = known.place();
        state.fault(name, place, true)
    }

    #[cfg(not(target_family = "wasm"))]
    fn net(&self) -> Option<&dyn asx_runtime::net::Net> {
        Some(&*self.net)
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        self.schedule(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_and_how_and_in_which_order_makes_another_trail() {
        let trail = |uses: &[(u64, bool)]| {
            uses.iter().fold(5, |hash, (object, write)| trail(hash, *object, *write))
        };
        let one = (16, false);
        let two = (17, false);
        let trails = [
            trail(&[]),
            trail(&[one]),
            trail(&[two]),
            trail(&[(16, true)]),
            trail(&[one, two]),
            trail(&[two, one]),
            trail(&[one, (17, true)]),
        ];
        for (at, one) in trails.iter().enumerate() {
            assert!(!trails[..at].contains(one), "{at}: {trails:?}");
        }
    }
}
