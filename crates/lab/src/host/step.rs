//! One step: which task is polled, and what its poll came to.
//!
//! Nearly all steps of a search are plain ones: the strategy chooses, the task is polled, and there
//! is nothing to say about it. These have a way of their own, with nothing on it that the rare ones
//! need: workers, disturbances, decisions that are written down.

use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::lanes::Lane;
use asx_runtime::{Dispatch, Runnable, footprint};

use super::{IN_A_ROW, LabHost, State, Trouble};
use crate::explore::TaskPath;

/// What a step came to.
pub(crate) enum Step {
    /// Nothing can run.
    Nothing,
    /// The task with this number was polled, and that is all.
    Plain(u64),
    /// A task was polled, and there may be more to it.
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
    /// Polls a task, of the strategy's choice unless the run is over. `cancel` asks a task to stop.
    #[inline]
    pub(crate) fn step(&self, ask: bool, cancel: impl FnOnce(u64)) -> Step {
        let mut state = self.state();
        self.listen(&mut state);
        if !(ask && state.is_plain) {
            drop(state);
            return self.step_fully(ask, cancel).map_or(Step::Nothing, Step::Told);
        }
        if state.enabled.is_empty() {
            return Step::Nothing;
        }
        state.asks = true;
        let (entry, path) = state.take_chosen();
        let (id, is_unheeding) = (entry.id(), entry.is_unheeding());
        let known = state.known(id);
        known.ready = false;
        known.steps += 1;
        known.unheeding = if is_unheeding { known.unheeding + 1 } else { 0 };
        let (made, unheeded) = (known.made, known.unheeding);
        state.current = id;
        let notes = state.watched && state.is_of_interest();
        drop(state);
        entry.forget_wait();
        footprint::begin(path.0, made, notes);
        self.pulse.begin(id);
        entry.run_from(false);
        self.pulse.end();
        let mut state = self.state();
        self.listen(&mut state);
        state.current = 0;
        let has_yielded = footprint::take_yielded();
        let made = if state.watched {
            if has_yielded && let Some(strategy) = &mut state.strategy {
                strategy.yielded();
            }
            let made = state.look_at_footprint(path, notes, self.timed.load(Relaxed));
            state.tell(path);
            made
        } else {
            footprint::end(|_| ())
        };
        state.known(id).made = made;
        match state.trouble(id, unheeded) {
            None => Step::Plain(id),
            trouble => Step::Told(Stepped { task: id, cancels: 0, trouble }),
        }
    }

    /// The same, whatever there is to it.
    #[inline(never)]
    fn step_fully(&self, ask: bool, cancel: impl FnOnce(u64)) -> Option<Stepped> {
        let mut state = self.state();
        let (entry, path, dispatch) = if state.lanes.is_some() {
            let (entry, path, dispatch) = state.take_by_law(ask)?;
            (entry, path, Some(dispatch))
        } else {
            let mut at = state.choose(ask)?;
            if ask && state.plan.cancels {
                let id = state.ready[at].id();
                if state.cancel(id, true) > 0 {
                    drop(state);
                    cancel(id);
                    state = self.state();
                    at = state.ready.iter().position(|entry| entry.id() == id)?;
                }
            }
            let (entry, path) = state.take(at);
            (entry, path, None)
        };
        let id = entry.id();
        let is_unheeding = entry.is_unheeding();
        let known = state.known(id);
        known.ready = false;
        known.unheeding = if is_unheeding { known.unheeding + 1 } else { 0 };
        let (made, unheeded) = (known.made, known.unheeding);
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
        // Whoever was asked to stop while it waited by law is in the cancel lane by now.
        let plain = dispatch.is_some() && lane != Lane::Cancel;
        if self.is_recorded {
            // Without it there are no streaks: the strategy chooses across all lanes.
            entry.run_recorded(plain, dispatch.unwrap_or_else(|| Dispatch::new(0, lane, 0, 0)));
        } else {
            entry.run_from(plain);
        }
    }
}

impl State {
    /// Takes what the strategy says, of a list that is not empty, for a run that is not written
    /// down.
    #[inline]
    fn take_chosen(&mut self) -> (Runnable, TaskPath) {
        let count = self.choice();
        let enabled = &self.enabled[..count];
        let picked = self.strategy.as_mut().map_or(0, |strategy| strategy.pick_task(enabled));
        let at = picked.min(count - 1);
        self.picks.push(at as u32);
        self.take(at)
    }

    /// Which task is next, if there is one.
    fn choose(&mut self, ask: bool) -> Option<usize> {
        self.asks = ask;
        match ask && self.strategy.is_some() {
            _ if self.ready.is_empty() => None,
            true => Some(self.ask()),
            false => Some(0),
        }
    }

    /// Asks the strategy.
    fn ask(&mut self) -> usize {
        let count = self.choice();
        let enabled = &self.enabled[..count];
        let picked = self.strategy.as_mut().map_or(0, |strategy| strategy.pick_task(enabled));
        let at = picked.min(count - 1);
        match self.plan.trail {
            true => self.log.push_task(enabled, at),
            false => self.picks.push(at as u32),
        }
        at
    }

    /// How many there are to choose among: a task that had its turn too often is not one of them.
    #[inline]
    fn choice(&mut self) -> usize {
        let count = self.enabled.len();
        if self.streak.1 >= IN_A_ROW && count > 1 { self.hold_back(count) } else { count }
    }

    #[cold]
    fn hold_back(&mut self, count: usize) -> usize {
        let Some(at) = self.enabled.iter().position(|path| path.0 == self.streak.0) else {
            return count;
        };
        let (entry, path) = (self.ready.remove(at), self.enabled.remove(at));
        self.ready.push(entry);
        self.enabled.push(path);
        (self.held_back, self.overrules) = (true, true);
        count - 1
    }

    #[inline]
    fn take(&mut self, at: usize) -> (Runnable, TaskPath) {
        let (entry, path) = (remove(&mut self.ready, at), remove(&mut self.enabled, at));
        self.streak.1 = if self.streak.0 == path.0 { self.streak.1 + 1 } else { 1 };
        self.streak.0 = path.0;
        (entry, path)
    }

    /// What is wrong with a task that was polled.
    #[inline]
    fn trouble(&self, id: u64, unheeded: u64) -> Option<Trouble> {
        if footprint::take_endless() {
            return Some(Trouble::Endless(id));
        }
        if self.foreign {
            return Some(Trouble::Foreign);
        }
        (unheeded > self.plan.latency).then_some(Trouble::Unheeding(id, unheeded))
    }
}

/// Takes out what is at a place, keeping the order. Most lists are so short that a few swaps are
/// less work than a call.
#[inline]
fn remove<T>(list: &mut Vec<T>, at: usize) -> T {
    const SHORT: usize = 6;
    let last = list.len() - 1;
    if last - at > SHORT {
        return list.remove(at);
    }
    for place in at..last {
        list.swap(place, place + 1);
    }
    // Shortened by one: the list was not empty.
    list.pop().unwrap_or_else(|| unreachable!())
}
