//! Searches that start with few disturbances and allow more and more.
//!
//! Most bugs need few *preemptions* (switches away from a task that would go on) and few cancels. A
//! task that waits, or that has yielded, is not preempted: it has let others go first. So this
//! explores all runs with none of either, then all with at most one, and so on. It is over when the
//! limits no longer keep anything out or are as wide as they may be, or when it has used up its
//! runs. A level repeats the levels below it; as each is far larger than the last, that costs
//! little.
//!
//! Preemptions are a matter of schedules, not of classes: the one schedule of a class that is
//! within the limits may be one that [`Dpor`] skips. So they are limited over [`Dfs`]. Cancels
//! alone are limited over [`Dpor`]: there the cancels that are left are one more object, which a
//! step that may be cancelled reads, and a cancelled one writes.
//!
//! *Guaranteed*: at the end of a level, every run within its limits was seen; with [`Dpor`], one of
//! each class.
//!
//! The algorithm: Musuvathi, Qadeer, "Iterative Context Bounding for Systematic Testing of
//! Multithreaded Programs", PLDI 2007.

use super::{Access, Dfs, Dpor, Point, Progress, Strategy, TaskPath, Verdict};

/// How much a run may be disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Switches away from a task that would go on.
    pub preemptions: usize,
    /// Switches away from a task that could go on, but has yielded. Not preemptions: searches that
    /// allow more and more allow as many of these as they ever will from the start.
    pub yields: usize,
    /// Injected cancels and faults.
    pub cancels: usize,
}

impl Limits {
    /// No limits.
    pub const NONE: Limits = {
        let most = usize::MAX;
        Limits { preemptions: most, yields: most, cancels: most }
    };

    pub(super) const ZERO: Limits = Limits { preemptions: 0, yields: 0, cancels: 0 };

    fn at_level(self, level: usize) -> Limits {
        let preemptions = level.min(self.preemptions);
        let cancels = level.min(self.cancels);
        Limits { preemptions, cancels, ..self }
    }
}

/// A search that can be limited.
pub trait Levels: Strategy {
    /// Sets up the next run. `false` if there is none within the limits.
    fn start(&mut self) -> bool;

    /// How often each limit kept something from being tried.
    fn refused(&self) -> Limits;

    /// Starts anew with other limits; what was seen stays seen.
    fn restart(&mut self, limits: Limits);

    /// All within the limits was seen, and that is enough.
    fn finish(&mut self);
}

/// All runs with few disturbances, then with more. See the [table](super) for when to use it.
#[derive(Debug)]
pub struct Bounded<S = Dfs> {
    search: S,
    level: usize,
    most: Limits,
    budget: u64,
}

impl Bounded {
    /// All schedules; ends after `budget` runs, or when everything within `most` was seen.
    pub fn new(most: Limits, budget: u64) -> Bounded {
        Bounded::of(Dfs::new(), most, budget)
    }

    /// The failures found, in the order of first sight.
    pub fn failures(&self) -> &[u64] {
        self.search.failures()
    }
}

impl Bounded<Dpor> {
    /// One run of each class; ends after `budget` runs, or when everything with at most so many
    /// cancels was seen.
    pub fn reduced(cancels: usize, budget: u64) -> Bounded<Dpor> {
        Bounded::of(Dpor::new(), Limits { cancels, ..Limits::NONE }, budget)
    }

    /// The failures found, in the order of first sight.
    pub fn failures(&self) -> &[u64] {
        self.search.failures()
    }
}

impl<S: Levels> Bounded<S> {
    fn of(mut search: S, most: Limits, budget: u64) -> Bounded<S> {
        search.restart(most.at_level(0));
        Bounded { search, level: 0, most, budget }
    }

    /// The limits of the current level.
    pub fn limits(&self) -> Limits {
        self.most.at_level(self.level)
    }
}

impl<S: Levels> Strategy for Bounded<S> {
    fn begin(&mut self) -> bool {
        if self.search.progress().runs >= self.budget {
            return false;
        }
        while !self.search.start() {
            let limits = self.limits();
            let refused = self.search.refused();
            let most = self.most;
            let more_switches = refused.preemptions > 0 && limits.preemptions < most.preemptions;
            let more_cancels = refused.cancels > 0 && limits.cancels < most.cancels;
            if !more_switches && !more_cancels {
                self.search.finish();
                return false;
            }
            self.level += 1;
            self.search.restart(self.limits());
        }
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        self.search.pick_task(enabled)
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        self.search.pick(point, count)
    }

    fn yielded(&mut self) {
        self.search.yielded();
    }

    fn excludes(&mut self) {
        self.search.excludes();
    }

    fn needs_footprint(&self) -> bool {
        self.search.needs_footprint()
    }

    fn stepped(&mut self, task: TaskPath, footprint: &[Access]) {
        self.search.stepped(task, footprint);
    }

    fn end(&mut self, verdict: Verdict) {
        self.search.end(verdict);
    }

    fn progress(&self) -> Progress {
        self.search.progress()
    }
}
