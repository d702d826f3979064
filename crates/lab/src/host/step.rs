//! One step: which task is polled, and what its poll came to.
//!
//! Nearly all steps of a search are plain ones: the strategy chooses, the task is polled, and there
//! is nothing to say about it. These have a way of their own, with nothing on it that the rare ones
//! need: workers, disturbances, events on record.

use std::cell::{RefCell, RefMut};

use asx_runtime::footprint::{self, TaskRecord};
use asx_runtime::{Begun, Dispatch, RunContext, Runnable};

use super::{Known, LabHost, State, Trouble};
use crate::explore::{Points, TaskPath};
use crate::fiber::{self, Fiber, Stack, Walk};
use crate::machine::Plan;
use crate::net::is_carrier;
use crate::panic_hook;
use crate::std_locks;

/// So many points has a run that ends. In one that has more, polls are not left any more, so that a
/// poll that goes on for ever is stopped.
const MOST_POINTS: u64 = 1 << 18;

/// Why plain steps go no further.
pub(crate) enum Pause {
    /// The root has something to look at.
    Called,
    /// All steps were taken that it may take.
    Enough,
    /// Nothing can run.
    Nothing,
    /// There is more to the last step.
    Told(Stepped),
}

/// What there may be to a step.
pub(crate) struct Stepped {
    /// The number of the task.
    pub(crate) task: u64,
    /// How often it is to be cancelled now.
    pub(crate) cancels: usize,
    pub(crate) trouble: Option<Trouble>,
}

impl LabHost {
    /// Whether the steps of this run are plain ones until it is over.
    pub(crate) fn is_plain(&self) -> bool {
        self.state().is_plain
    }

    /// From now on all that can run go in turns, and there is nothing to choose.
    pub(crate) fn go_in_turns(&self) {
        let mut state = self.state();
        (state.in_a_row, state.held_back, state.overrules) = (0, true, true);
    }

    /// Polls one task after another, of the strategy's choice, while there is nothing to it but
    /// that, and at most so many: how many it were, and why no more. At least one is allowed.
    pub(crate) fn walk(&self, most: u64) -> (u64, Pause) {
        let cell = self.state.cell();
        let mut state = cell.borrow_mut();
        self.listen(&mut state);
        state.asks = true;
        footprint::set_alarm(state.alarm || footprint::is_endless() || panic_hook::has_heard());
        self.pulse.begin(0);
        let (walked, mut state) = match (state.plan.points, state.watched) {
            (Points::None, true) => self.walk_on::<true>(cell, state, most),
            (Points::None, false) => self.walk_on::<false>(cell, state, most),
            (_, _) => self.walk_points(cell, state, most),
        };
        self.pulse.end();
        state.current = 0;
        walked
    }

    /// The same, if somebody is told of each step or nobody is.
    #[inline(always)]
    fn walk_on<'a, const WATCHED: bool>(
        &self,
        cell: &'a RefCell<State>,
        mut state: RefMut<'a, State>,
        most: u64,
    ) -> ((u64, Pause), RefMut<'a, State>) {
        let mut left = most;
        let pause = loop {
            if state.enabled.is_empty() {
                break Pause::Nothing;
            }
            let path = state.take_chosen();
            // Who can run has an entry, but for the network.
            let Some(Turn { entry, at, record }) = state.begin(path) else {
                drop(state);
                self.deliver(path, true);
                state = cell.borrow_mut();
                left -= 1;
                if left == 0 {
                    break Pause::Enough;
                }
                continue;
            };
            let id = at as u64;
            state.current = id;
            let notes = WATCHED && state.is_of_interest();
            drop(state);
            entry.forget_wait();
            footprint::begin(path.0, record, notes);
            self.pulse.go_on(id);
            // SAFETY: the state is only had on the machine's thread (rule 1 of `machine`).
            if let Some(begun) = unsafe { entry.begin(RunContext::UNCHOSEN) } {
                begun.run();
            }
            state = cell.borrow_mut();
            self.listen(&mut state);
            let ended = if WATCHED { state.look(path, notes) } else { footprint::end_unnoted() };
            if ended != record {
                state.tasks[at].record = ended;
            }
            left -= 1;
            if footprint::is_alarmed() {
                let trouble = state.trouble(id, state.tasks[at].unheeding);
                break Pause::Told(Stepped { task: id, cancels: 0, trouble });
            }
            if self.signal.take() {
                break Pause::Called;
            }
            if left == 0 {
                break Pause::Enough;
            }
        };
        ((most - left, pause), state)
    }

    /// The same if polls can be left at [points](LabHost::pause_at_point): from one fiber to
    /// another.
    #[inline(never)]
    fn walk_points<'a>(
        &self,
        cell: &'a RefCell<State>,
        mut state: RefMut<'a, State>,
        most: u64,
    ) -> ((u64, Pause), RefMut<'a, State>) {
        (state.left, state.walked, state.walks) = (most, 0, true);
        let _points = fiber::at_points();
        let pause = loop {
            let fiber = state.fiber.take();
            drop(state);
            let left = fiber::walk(fiber, self);
            state = cell.borrow_mut();
            if let Some(fiber) = left {
                self.leave(&mut state, fiber);
            }
            if let Some(pause) = state.pause.take() {
                break pause;
            }
        };
        state.walks = false;
        ((state.walked, pause), state)
    }

    /// The poll of the current task was left on a fiber, for another that was chosen at a point, or
    /// else where it waits for a lock, or as there is more to the step.
    fn leave(&self, state: &mut State, fiber: Fiber) {
        let at = state.current as usize;
        self.listen(state);
        match state.next {
            Some(next) => {
                state.tasks[at].fiber = Some(fiber);
                // Who has no fiber yet is begun by the walker.
                let number = if is_carrier(next) { 0 } else { state.number(next) };
                if state.tasks[number].fiber.is_some() {
                    state.next = None;
                    self.return_to(state, next, number);
                }
            }
            None => {
                state.set_left(at, Some(fiber));
                state.end_plain_step(at);
                state.pause = self.look_for_pause(state, at);
            }
        }
    }

    /// The poll of this task goes on, which was left on a fiber.
    fn return_to(&self, state: &mut State, path: TaskPath, at: usize) {
        let known = &mut state.tasks[at];
        state.fiber = known.fiber.take();
        let record = known.record;
        state.current = at as u64;
        footprint::begin(path.0, record, state.notes());
        self.pulse.go_on(at as u64);
    }

    /// Why plain steps go no further after this one, of this task.
    #[inline(always)]
    fn look_for_pause(&self, state: &State, at: usize) -> Option<Pause> {
        if footprint::is_alarmed() {
            let task = at as u64;
            let trouble = state.trouble(task, state.tasks[at].unheeding);
            return Some(Pause::Told(Stepped { task, cancels: 0, trouble }));
        }
        self.signal.take().then_some(Pause::Called)
    }

    /// Whether polls wait for locks of the standard library.
    pub(crate) fn has_blocked(&self) -> bool {
        !self.state().blocked.is_empty()
    }

    /// Those whose polls do, by name.
    pub(crate) fn blocked(&self) -> Vec<String> {
        let mut state = self.state();
        let paths: Vec<_> = state.blocked.iter().map(|(path, _)| *path).collect();
        let numbers = paths.into_iter().map(|path| state.number(path) as u64);
        let numbers: Vec<_> = numbers.collect();
        numbers.into_iter().map(|id| format!("`{}`", state.called(id))).collect()
    }

    /// Has those go on that can have their locks by now: whether some can.
    pub(crate) fn unblock(&self) -> bool {
        let mut state = self.state();
        let before = state.blocked.len();
        state.unblock();
        state.blocked.len() < before
    }

    /// A task that is polled is before or after an operation: others may go, if the strategy says
    /// so.
    #[inline(always)]
    pub(super) fn pause_at_point(&self) {
        // In this order: whoever returns to this poll has nothing else to return from.
        if fiber::is_running() && self.is_left_at_point() {
            fiber::leave();
        }
    }

    /// Whether others go. In plain steps the strategy is asked here, as nearly always the same task
    /// goes on.
    #[inline(never)]
    fn is_left_at_point(&self) -> bool {
        let Some(mut state) = self.state.here() else { return false };
        let is_seen = state.plan.points == Points::All || footprint::has_touched();
        if !state.asks || state.current == 0 || !is_seen || state.points >= MOST_POINTS {
            return false;
        }
        state.points += 1;
        state.unblock();
        let at = state.current as usize;
        let path = TaskPath(state.tasks[at].path);
        if !state.is_plain || footprint::is_alarmed() {
            state.enabled.push(path);
            return true;
        }
        if state.watched {
            return self.is_left_if_watched(&mut state, at, path);
        }
        state.walked += 1;
        state.enabled.push(path);
        let next = state.take_chosen();
        if next == path {
            footprint::begin_same();
            return false;
        }
        state.tasks[at].record = footprint::end_unnoted();
        state.next = Some(next);
        true
    }

    /// The same if somebody is told of each step.
    #[inline(never)]
    fn is_left_if_watched(&self, state: &mut State, at: usize, path: TaskPath) -> bool {
        state.end_plain_step(at);
        state.enabled.push(path);
        let next = state.take_chosen();
        let is_same = next == path;
        if is_same {
            footprint::begin(path.0, state.tasks[at].record, state.is_of_interest());
        } else {
            state.next = Some(next);
        }
        !is_same
    }

    /// Polls a task, of the strategy's choice unless the run is over; nothing if none can run.
    /// `cancel` asks a task to stop.
    #[inline(never)]
    pub(crate) fn step(&self, ask: bool, cancel: impl FnOnce(u64)) -> Option<Stepped> {
        let mut state = self.state();
        self.listen(&mut state);
        let (turn, path, dispatch) = if let Some(lanes) = &state.lanes {
            let is_idle = lanes.is_empty();
            if let Some(carrier) = state.take_carrier(ask, is_idle) {
                drop(state);
                return Some(self.delivered(carrier, ask));
            }
            let (entry, path, dispatch) = state.take_by_law(ask)?;
            state.begins = true;
            let is_unheeding = entry.is_unheeding();
            let known = state.known(entry.id());
            known.unheeding = if is_unheeding { known.unheeding + 1 } else { 0 };
            (Resume::Entry(entry), path, Some(dispatch))
        } else {
            let mut at = state.choose(ask)?;
            if is_carrier(state.enabled[at]) {
                let carrier = state.take(at);
                drop(state);
                return Some(self.delivered(carrier, ask));
            }
            if ask && state.plan.cancels {
                let path = state.enabled[at];
                let id = state.number(path) as u64;
                if state.cancel(id, true) > 0 {
                    drop(state);
                    cancel(id);
                    state = self.state();
                    at = state.enabled.iter().position(|other| *other == path)?;
                }
            }
            let path = state.take(at);
            let number = state.number(path);
            (state.turn_at(number)?, path, None)
        };
        let id = state.number(path) as u64;
        let known = state.known(id);
        let record = known.record;
        let unheeded = known.unheeding;
        state.current = id;
        state.faults.asked = 0;
        let notes = ask && state.is_of_interest();
        drop(state);
        footprint::begin(path.0, record, notes);
        self.pulse.begin(id);
        let left = self.poll(turn, dispatch);
        let is_over = left.is_none();
        self.pulse.end();
        let mut state = self.state();
        self.listen(&mut state);
        state.set_left(id as usize, left);
        let record = state.look_at_footprint(path, notes);
        if is_over {
            state.vacate(id as usize);
        }
        state.current = 0;
        if let Some(lanes) = &mut state.lanes {
            lanes.worker = None;
        }
        let known = state.known(id);
        known.record = record;
        known.steps += 1;
        let trouble = state.trouble(id, unheeded);
        let has_yielded = footprint::take_yielded();
        if ask {
            if has_yielded && let Some(strategy) = &mut state.strategy {
                strategy.yielded();
            }
            state.tell(path);
        }
        let cancels = if ask && state.plan.cancels { state.cancel(id, false) } else { 0 };
        Some(Stepped { task: id, cancels, trouble })
    }

    /// A step of the network.
    fn delivered(&self, carrier: TaskPath, ask: bool) -> Stepped {
        self.deliver(carrier, ask);
        Stepped { task: 0, cancels: 0, trouble: None }
    }

    /// Polls a task, or goes on with its poll: the fiber on which it was left, if it was.
    /// `dispatch`: if it was the law that chose.
    fn poll(&self, turn: Resume, dispatch: Option<Dispatch>) -> Option<Fiber> {
        let entry = match turn {
            Resume::Left(fiber) => return fiber::go_on(fiber),
            Resume::Entry(entry) => entry,
        };
        entry.forget_wait();
        let by_law = dispatch.is_some();
        let lane = entry.place().lane();
        // Whoever was asked to stop while it waited by law is in the cancel lane by now. Without
        // the law there are no streaks: the strategy chooses across all lanes.
        let context = match dispatch {
            Some(_) => RunContext::from_lane(lane),
            None => RunContext::UNCHOSEN,
        };
        let dispatch = dispatch.unwrap_or_else(|| Dispatch::new(0, lane, 0, 0));
        let context = context.recorded(self.is_recorded.then_some(dispatch));
        // SAFETY: the state is only had on the machine's thread (rule 1 of `machine`).
        let begun = unsafe { entry.begin(context) }?;
        if by_law || self.state().plan.points == Points::None {
            Begun::run(begun);
            return None;
        }
        fiber::start(begun)
    }
}

impl Walk for LabHost {
    fn walk_here(&self, stack: Stack<'_>) {
        let cell = self.state.cell();
        let mut state = cell.borrow_mut();
        loop {
            if state.left == 0 {
                state.pause = Some(Pause::Enough);
                return;
            }
            let path = match state.next.take() {
                Some(next) => next,
                None if state.enabled.is_empty() => {
                    state.pause = Some(Pause::Nothing);
                    return;
                }
                None => state.take_chosen(),
            };
            if is_carrier(path) {
                state.left -= 1;
                state.walked += 1;
                drop(state);
                self.deliver(path, true);
                state = cell.borrow_mut();
                continue;
            }
            let at = state.number(path);
            if state.tasks[at].fiber.is_some() {
                return self.return_to(&mut state, path, at);
            }
            let turn = state.begin_at(at);
            let record = state.tasks[at].record;
            let notes = state.notes();
            state.current = at as u64;
            drop(state);
            footprint::begin(path.0, record, notes);
            self.pulse.go_on(at as u64);
            if let Some(Turn { entry, .. }) = turn {
                entry.forget_wait();
                // SAFETY: the state is only had on the machine's thread (rule 1 of `machine`).
                if let Some(begun) = unsafe { entry.begin(RunContext::UNCHOSEN) } {
                    stack.run(begun);
                }
            }
            state = cell.borrow_mut();
            // Who was left may go on when there is no walk any more.
            if !state.walks {
                return;
            }
            self.listen(&mut state);
            state.unblock();
            state.left -= 1;
            state.end_plain_step(at);
            state.vacate(at);
            state.pause = self.look_for_pause(&state, at);
            if state.pause.is_some() || !stack.is_fiber() {
                return;
            }
        }
    }
}

/// How a task goes on.
enum Resume {
    /// With a poll.
    Entry(Runnable),
    /// With the poll that was left on this fiber.
    Left(Fiber),
}

/// A task that is about to be polled.
struct Turn {
    entry: Runnable,
    /// Its number.
    at: usize,
    record: TaskRecord,
}

impl Known {
    /// Its turn, if it could run.
    #[inline(always)]
    fn begin(&mut self, at: usize, alarm: &mut bool, plan: &Plan) -> Option<Turn> {
        let entry = self.entry.take()?;
        if entry.is_unheeding() {
            self.unheeding += 1;
            if u64::from(self.unheeding) > plan.latency {
                *alarm = true;
                footprint::set_alarm(true);
            }
        } else {
            self.unheeding = 0;
        }
        Some(Turn { entry, at, record: self.record })
    }
}

impl State {
    /// There may be more to the last step.
    pub(super) fn raise_alarm(&mut self) {
        self.alarm = true;
        footprint::set_alarm(true);
    }

    /// Reports the step that was taken to the strategy, and returns the record of its task.
    #[inline(never)]
    fn look(&mut self, path: TaskPath, notes: bool) -> TaskRecord {
        if !self.told {
            return self.note_trail(path);
        }
        if footprint::take_yielded()
            && let Some(strategy) = &mut self.strategy
        {
            strategy.yielded();
        }
        let record = self.look_at_footprint(path, notes);
        self.tell(path);
        record
    }

    /// The poll of a task is over, or was left on a fiber: at a point, if it can go on, or where it
    /// waits for a lock that another holds whose poll was left.
    fn set_left(&mut self, at: usize, left: Option<Fiber>) {
        let known = &mut self.tasks[at];
        known.fiber = left;
        if let Some(word) = std_locks::take_waits_for() {
            self.blocked.push((TaskPath(known.path), word));
            if let Some(strategy) = &mut self.strategy {
                strategy.excludes();
            }
        }
        self.unblock();
    }

    /// Those who waited for a lock and can have it can run.
    #[inline]
    pub(super) fn unblock(&mut self) {
        if !self.blocked.is_empty() {
            self.unblock_some();
        }
    }

    #[cold]
    fn unblock_some(&mut self) {
        let State { blocked, enabled, .. } = self;
        blocked.retain(|(path, word)| {
            let waits = word.is_same();
            if !waits {
                footprint::touch(path.0, true);
                enabled.push(*path);
            }
            waits
        });
    }

    /// How a task goes on that could run.
    fn turn_at(&mut self, at: usize) -> Option<Resume> {
        let State { tasks, alarm, plan, .. } = self;
        let known = tasks.get_mut(at)?;
        if let Some(fiber) = known.fiber.take() {
            return Some(Resume::Left(fiber));
        }
        let turn = known.begin(at, alarm, plan)?;
        self.begins = true;
        self.occupy(at);
        Some(Resume::Entry(turn.entry))
    }

    /// The turn of a task that could run, and whose poll may be left.
    #[inline(always)]
    fn begin_at(&mut self, at: usize) -> Option<Turn> {
        let turn = self.tasks[at].begin(at, &mut self.alarm, &self.plan)?;
        self.begins = true;
        self.occupy(at);
        Some(turn)
    }

    /// Whether what the step touches that is about to be taken is wanted.
    #[inline(always)]
    fn notes(&self) -> bool {
        self.watched && self.is_of_interest()
    }

    /// Tells who watches of a plain step of a task, and counts it.
    fn end_plain_step(&mut self, at: usize) {
        self.walked += 1;
        let path = TaskPath(self.tasks[at].path);
        let record = match self.watched {
            true => {
                let notes = self.is_of_interest();
                self.look(path, notes)
            }
            false => footprint::end_unnoted(),
        };
        self.tasks[at].record = record;
    }

    /// Takes what the strategy says, of a list that is not empty.
    #[inline(always)]
    fn take_chosen(&mut self) -> TaskPath {
        let at = self.ask();
        let path = self.take(at);
        self.old = self.enabled.len();
        path
    }

    /// The turn of a task that could run.
    #[inline(always)]
    fn begin(&mut self, path: TaskPath) -> Option<Turn> {
        let first = self.number_to_try(path);
        let turn = match self.tasks.get_mut(first) {
            Some(known) if known.path == path.0 => known.begin(first, &mut self.alarm, &self.plan),
            _ => self.begin_late(path),
        };
        self.begins = turn.is_some();
        turn
    }

    /// The same of one that is not where it is looked for first.
    #[cold]
    fn begin_late(&mut self, path: TaskPath) -> Option<Turn> {
        if is_carrier(path) {
            return None;
        }
        let at = self.search(path);
        self.tasks.get_mut(at)?.begin(at, &mut self.alarm, &self.plan)
    }

    /// Which task is next, if there is one.
    fn choose(&mut self, ask: bool) -> Option<usize> {
        self.asks = ask;
        match ask && self.strategy.is_some() {
            _ if self.enabled.is_empty() => None,
            true => Some(self.ask()),
            false => Some(0),
        }
    }

    /// Asks the strategy.
    #[inline(always)]
    fn ask(&mut self) -> usize {
        let count = self.choice();
        let enabled = &self.enabled[..count];
        let old = self.old;
        let picked = self.strategy.as_mut().map_or(0, |strategy| strategy.pick_next(enabled, old));
        let at = picked.min(count - 1);
        if self.plan.trail {
            self.write_down(count, at);
        } else {
            self.picks.push(at as u32);
        }
        at
    }

    #[inline(never)]
    fn write_down(&mut self, count: usize, at: usize) {
        let State { log, enabled, plan, .. } = self;
        match plan.brief {
            true => log.push_briefly(&enabled[..count], at),
            false => log.push_task(&enabled[..count], at),
        }
    }

    /// How many there are to choose among: if a task had its turn too often, or once all go in
    /// turns, only who has waited longest.
    #[inline]
    fn choice(&mut self) -> usize {
        let count = self.enabled.len();
        if self.streak.1 >= self.in_a_row { self.hold_back(count) } else { count }
    }

    #[cold]
    fn hold_back(&mut self, count: usize) -> usize {
        if count == 1 {
            return count;
        }
        if self.in_a_row > 0 {
            let had_its_turn = |path: &TaskPath| path.0 == self.streak.0;
            let Some(at) = self.enabled.iter().position(had_its_turn) else { return count };
            let path = self.enabled.remove(at);
            self.enabled.push(path);
        }
        (self.held_back, self.overrules, self.old) = (true, true, 0);
        1
    }

    /// Takes a task out of the list.
    #[inline(always)]
    fn take(&mut self, at: usize) -> TaskPath {
        let path = remove(&mut self.enabled, at);
        if self.streak.0 == path.0 {
            self.streak.1 += 1;
        } else {
            self.streak = (path.0, 1);
        }
        path
    }

    /// What is wrong with a task that was polled.
    #[inline]
    fn trouble(&self, id: u64, unheeded: u32) -> Option<Trouble> {
        if footprint::take_endless() {
            return Some(Trouble::Endless(id));
        }
        if self.foreign {
            return Some(Trouble::Foreign);
        }
        let unheeded = u64::from(unheeded);
        (unheeded > self.plan.latency).then_some(Trouble::Unheeding(id, unheeded))
    }
}

/// Takes out what is at a place, keeping the order. Most lists are so short, and most places so far
/// back, that this is less work than a call.
#[inline]
fn remove<T: Copy>(list: &mut Vec<T>, at: usize) -> T {
    const SHORT: usize = 6;
    let taken = list[at];
    let last = list.len() - 1;
    if at != last {
        let tail = &mut list[at..];
        if tail.len() > SHORT {
            tail.copy_within(1.., 0);
        } else {
            (1..tail.len()).for_each(|next| tail[next - 1] = tail[next]);
        }
    }
    list.truncate(last);
    taken
}
