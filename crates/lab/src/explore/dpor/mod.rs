//! Dynamic partial order reduction: every class of runs once.
//!
//! Two neighbouring steps that touch nothing in common can be swapped without anyone noticing; runs
//! that differ only so are one class. After each run this looks at its *races*: pairs of dependent
//! steps of two tasks with nothing between them. For each, a run is owed in which the second comes
//! first: all steps of the run that do not need the first one, then a step of the second one's
//! task. It is added to the *wakeup tree* of the state before the first step, unless a task that
//! was already tried there covers it. Tried tasks *sleep* until a step that depends on theirs is
//! taken, so that no class is entered twice.
//!
//! # Steps that change
//!
//! One poll touches several objects, and which ones may change when a race is reversed. The
//! textbook rules then lose classes. What keeps them here:
//!
//! * The last step of what is owed is *unknown*: nothing is taken to commute with it because of
//!   what it touched where the race was seen. A task that sleeps covers what is owed only if the
//!   last step is its own, and that one, as it was seen from this very state, commutes with all the
//!   others.
//! * *Every* race of *every* run is looked at, with all the steps of that run: with fewer steps a
//!   sleeping task may seem to cover what it does not.
//! * Once all that can go on sleeps, the run is *blocked*. What the driver still does is not looked
//!   at: a step taken in its sleep would cover what it should not.
//!
//! Why that is enough: let `s` be a sequence of steps from a state, no sleeper first in it. If a
//! tried task `b` can come first in `s`, what is tried after `b` has `s`. If not, `s` has a first
//! step `r` that depends on `b`, after some `w` that does not. What is tried after `b` has a run
//! with `w`, then a step of the task of `r` that races with `b`; so something that begins with `w`
//! and more is owed. What can come first in that is first in `s` too, or was tried later than `b`
//! and does not depend on `w`. Take for `b` the latest of those with the longest `w`: then there is
//! none.
//!
//! The price of not knowing the last step is a redundant run now and then: one in twenty of small
//! random programs.
//!
//! Choices inside steps are all tried. A step that ends the run early depends on all others, and
//! one that keeps another task from running races with that task.
//!
//! # Who goes first without a difference
//!
//! Most pairs of a wake and a step of the task that is woken need no second run. A wake
//! concerns only the next poll: steps in the middle of one commute with it. Several wakes commute
//! too, and the poll that they are for can come before one of them only if another one is left: if
//! that one was the only one, there is nothing to reverse. The ends of tasks that something waits
//! for commute as well, though the last of them does more than the others: it counts as coming
//! after them ([`Access::complete`]), so that nothing is owed in which it does that without them.
//!
//! *Guaranteed*: the classes and the failures of [`Dfs`], in no more runs, given what a driver
//! [promises](super). If choices are made between steps, or a step [excludes](Strategy::excludes)
//! others, one run is lost and a full search follows.
//!
//! The algorithm is based on Flanagan, Godefroid, "Dynamic Partial-Order Reduction for Model
//! Checking Software", POPL 2005. Wakeup trees are from Abdulla, Aronis, Jonsson, Sagonas, "Optimal
//! Dynamic Partial Order Reduction", POPL 2014, and sleep sets from Godefroid, "Partial-Order
//! Methods for the Verification of Concurrent Systems", LNCS 1032, 1996.

mod reduction;
mod state;
mod wakeup;

use self::reduction::Reduction;
use super::bounded::Levels;
use super::dfs::Dfs;
use super::{Access, Limits, Point, Progress, Strategy, TaskPath, Verdict};

/// Every class of runs once. See the [table](super) for when to use it.
#[derive(Debug)]
pub struct Dpor {
    reduction: Reduction,
    /// Takes over once a choice was made between two steps, or one keeps a task from running: what
    /// depends on it is unknown.
    whole: Option<Box<Dfs>>,
    limits: Limits,
}

impl Default for Dpor {
    fn default() -> Self {
        Dpor::new()
    }
}

impl Dpor {
    /// An exploration from the start.
    pub fn new() -> Dpor {
        Dpor { reduction: Reduction::new(), whole: None, limits: Limits::NONE }
    }

    /// At most so many injected cancels in a run: the space is that of a program that refuses more.
    pub fn with_cancels(mut self, cancels: usize) -> Dpor {
        self.restart(Limits { cancels, ..Limits::NONE });
        self
    }

    /// The failures found, in the order of first sight.
    pub fn failures(&self) -> &[u64] {
        match &self.whole {
            Some(whole) => whole.failures(),
            None => &self.reduction.tally.failures,
        }
    }

    /// Whether it has not given way to a full search.
    pub(crate) fn is_reduced(&self) -> bool {
        self.whole.is_none()
    }

    /// Whether a run of this class was tried.
    pub(crate) fn has_tried(&self, class: u64) -> bool {
        self.reduction.tally.has_class(class)
    }

    /// A full search that knows of the runs so far.
    fn search_all(&self) -> Dfs {
        let Reduction { tally, .. } = &self.reduction;
        let mut whole = Dfs::within(self.limits);
        whole.tally.progress = tally.progress;
        whole.tally.progress.redundant += 1;
        whole.tally.failures.clone_from(&tally.failures);
        whole
    }
}

impl Levels for Dpor {
    fn start(&mut self) -> bool {
        match &mut self.whole {
            Some(whole) => whole.start(),
            None => self.reduction.start(),
        }
    }

    fn refused(&self) -> Limits {
        match &self.whole {
            Some(whole) => whole.refused(),
            None => self.reduction.refused(),
        }
    }

    /// Only cancels are limited.
    fn restart(&mut self, limits: Limits) {
        self.limits = Limits { cancels: limits.cancels, ..Limits::NONE };
        match &mut self.whole {
            Some(whole) => whole.restart(self.limits),
            None => self.reduction.restart(self.limits),
        }
    }

    fn finish(&mut self) {
        match &mut self.whole {
            Some(whole) => whole.finish(),
            None => self.reduction.finish(),
        }
    }
}

impl Strategy for Dpor {
    fn begin(&mut self) -> bool {
        match &mut self.whole {
            Some(whole) => whole.begin(),
            None => self.reduction.begin(),
        }
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        match &mut self.whole {
            Some(whole) => whole.pick_task(enabled),
            None => self.reduction.pick_task(enabled),
        }
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        match &mut self.whole {
            Some(whole) => whole.pick(point, count),
            None => self.reduction.pick(point, count),
        }
    }

    fn needs_footprint(&self) -> bool {
        match &self.whole {
            Some(whole) => whole.needs_footprint(),
            None => self.reduction.needs_footprint(),
        }
    }

    fn yielded(&mut self) {
        match &mut self.whole {
            Some(whole) => whole.yielded(),
            None => self.reduction.yielded(),
        }
    }

    fn excludes(&mut self) {
        match &mut self.whole {
            Some(whole) => whole.excludes(),
            None => self.reduction.excludes(),
        }
    }

    fn stepped(&mut self, task: TaskPath, footprint: &[Access]) {
        match &mut self.whole {
            Some(whole) => whole.stepped(task, footprint),
            None => self.reduction.stepped(task, footprint),
        }
    }

    fn end(&mut self, verdict: Verdict) {
        match &mut self.whole {
            Some(whole) => whole.end(verdict),
            None => self.reduction.end(verdict),
        }
        if self.reduction.is_wasted && self.whole.is_none() {
            self.whole = Some(Box::new(self.search_all()));
        }
    }

    fn progress(&self) -> Progress {
        match &self.whole {
            Some(whole) => whole.progress(),
            None => self.reduction.progress(),
        }
    }
}
