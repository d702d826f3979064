//! One step: which task is polled, and what its poll came to.
//!
//! Nearly all steps of a search are plain ones: the strategy chooses, the task is polled, and there
//! is nothing to say about it. These have a way of their own, with nothing on it that the rare ones
//! need: workers, disturbances, events on record.

use std::cell::{RefCell, RefMut};
use std::sync::atomic::Ordering::Relaxed;

use asx_runtime::{Dispatch, RunContext, Runnable, footprint};

use super::{Known, LabHost, State, Trouble};
use crate::explore::TaskPath;
use crate::machine::Plan;
use crate::panic_hook;
use crate::signal::Signal;

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
    pub(crate) fn walk(&self, signal: &Signal, most: u64) -> (u64, Pause) {
        let cell = self.state.cell();
        let mut state = cell.borrow_mut();
        self.listen(&mut state);
        state.asks = true;
        footprint::set_alarm(state.alarm || footprint::is_endless() || panic_hook::has_heard());
        self.pulse.begin(0);
        let (walked, mut state) = match state.told || state.plan.trail {
            true => self.walk_on::<true>(cell, state, signal, most),
            false => self.walk_on::<false>(cell, state, signal, most),
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
        signal: &Signal,
        most: u64,
    ) -> ((u64, Pause), RefMut<'a, State>) {
        let mut left = most;
        let pause = loop {
            if state.enabled.is_empty() {
                break Pause::Nothing;
            }
            let path = state.take_chosen();
            // Who can run has an entry.
            let Some(Turn { entry, at, made }) = state.begin(path) else { continue };
            let id = at as u64;
            state.current = id;
            let notes = WATCHED && state.is_of_interest();
            drop(state);
            entry.forget_wait();
            footprint::begin(path.0, made, notes);
            self.pulse.go_on(id);
            // SAFETY: the state is only had on the machine's thread (rule 1 of `machine`).
            if let Some(begun) = unsafe { entry.begin(RunContext::UNCHOSEN) } {
                begun.run();
            }
            state = cell.borrow_mut();
            self.listen(&mut state);
            let made_now = if WATCHED {
                state.look(path, notes, self.timed.load(Relaxed))
            } else {
                footprint::end_unnoted()
            };
            if made_now != made {
                state.tasks[at].made = made_now;
            }
            left -= 1;
            if footprint::is_alarmed() {
                let trouble = state.trouble(id, state.tasks[at].unheeding);
                break Pause::Told(Stepped { task: id, cancels: 0, trouble });
            }
            if signal.take() {
                break Pause::Called;
            }
            if left == 0 {
                break Pause::Enough;
            }
        };
        ((most - left, pause), state)
    }

    /// Polls a task, of the strategy's choice unless the run is over; nothing if none can run.
    /// `cancel` asks a task to stop.
    #[inline(never)]
    pub(crate) fn step(&self, ask: bool, cancel: impl FnOnce(u64)) -> Option<Stepped> {
        let mut state = self.state();
        self.listen(&mut state);
        let (entry, path, dispatch) = if state.lanes.is_some() {
            let (entry, path, dispatch) = state.take_by_law(ask)?;
            (entry, path, Some(dispatch))
        } else {
            let mut at = state.choose(ask)?;
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
            (state.tasks[number].entry.take()?, path, None)
        };
        let id = entry.id();
        let is_unheeding = entry.is_unheeding();
        let known = state.known(id);
        known.unheeding = if is_unheeding { known.unheeding + 1 } else { 0 };
        let made = known.made;
        let unheeded = known.unheeding;
        state.current = id;
        state.faults.asked = 0;
        let notes = ask && state.is_of_interest();
        drop(state);
        entry.forget_wait();
        footprint::begin(path.0, made, notes);
        self.pulse.begin(id);
        self.poll(entry, dispatch);
        self.pulse.end();
        let mut state = self.state();
        self.listen(&mut state);
        let made = state.look_at_footprint(path, notes, self.timed.load(Relaxed));
        state.current = 0;
        if let Some(lanes) = &mut state.lanes {
            lanes.worker = None;
        }
        let known = state.known(id);
        known.made = made;
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

    /// `dispatch`: if it was the law that chose.
    fn poll(&self, entry: Runnable, dispatch: Option<Dispatch>) {
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
        if let Some(begun) = unsafe { entry.begin(context) } {
            begun.run();
        }
    }
}

/// A task that is about to be polled.
struct Turn {
    entry: Runnable,
    /// Its number.
    at: usize,
    /// How many things it has made.
    made: u64,
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
        Some(Turn { entry, at, made: self.made })
    }
}

impl State {
    /// There may be more to the last step.
    pub(super) fn raise_alarm(&mut self) {
        self.alarm = true;
        footprint::set_alarm(true);
    }

    /// Tells who watches of the step that was taken: how many things its task has made so far.
    #[inline(never)]
    fn look(&mut self, path: TaskPath, notes: bool, timed: bool) -> u64 {
        if !self.told {
            return self.note_trail(path);
        }
        if footprint::take_yielded()
            && let Some(strategy) = &mut self.strategy
        {
            strategy.yielded();
        }
        let made = self.look_at_footprint(path, notes, timed);
        self.tell(path);
        made
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
        match self.tasks.get_mut(first) {
            Some(known) if known.path == path.0 => known.begin(first, &mut self.alarm, &self.plan),
            _ => self.begin_late(path),
        }
    }

    /// The same of one that is not where it is looked for first.
    #[cold]
    fn begin_late(&mut self, path: TaskPath) -> Option<Turn> {
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
    #[inline]
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
