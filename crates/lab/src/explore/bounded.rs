//! Depth-first search that starts with few disturbances and allows more and more.
//!
//! Most bugs need few *preemptions* (switches away from a task that could go on) and few cancels.
//! So this explores all schedules with none of either, then all with at most one, and so on. It is
//! over when the limits no longer keep anything out, or when it has used up its runs. A level
//! repeats the levels below it; as each is far larger than the last, that costs little.
//!
//! It searches all schedules, not classes: a class whose only schedule within the limits is one
//! that [`Dpor`](super::Dpor) would skip must not be lost. A limit on cancels alone does go well
//! with classes: [`Dpor::with_cancels`](super::Dpor::with_cancels).
//!
//! *Guaranteed*: at the end of a level, every run within its limits was seen.

use super::dfs::Dfs;
use super::{Access, Point, Progress, Strategy, TaskPath, Verdict};

/// How much a run may be disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Switches away from a task that could go on.
    pub preemptions: usize,
    /// Injected cancels.
    pub cancels: usize,
}

impl Limits {
    /// No limits.
    pub const NONE: Limits = Limits { preemptions: usize::MAX, cancels: usize::MAX };

    pub(super) const ZERO: Limits = Limits { preemptions: 0, cancels: 0 };
}

/// Every schedule with few disturbances, then with more. See the [table](super) for when to use
/// it.
#[derive(Debug)]
pub struct Bounded {
    dfs: Dfs,
    level: usize,
    most: Limits,
    budget: u64,
}

impl Bounded {
    /// An exploration that ends after `budget` runs, or with the level that has reached `most`.
    pub fn new(most: Limits, budget: u64) -> Bounded {
        Bounded { dfs: Dfs::within(at_level(0, most)), level: 0, most, budget }
    }

    /// The limits of the current level.
    pub fn limits(&self) -> Limits {
        at_level(self.level, self.most)
    }

    /// The failures found, in the order of first sight.
    pub fn failures(&self) -> &[u64] {
        self.dfs.failures()
    }
}

fn at_level(level: usize, most: Limits) -> Limits {
    Limits { preemptions: level.min(most.preemptions), cancels: level.min(most.cancels) }
}

impl Strategy for Bounded {
    fn begin(&mut self) -> bool {
        let progress = &self.dfs.tally.progress;
        if progress.exhausted.is_some() || progress.runs >= self.budget {
            return false;
        }
        while !self.dfs.start() {
            let (limits, refused, most) = (self.limits(), self.dfs.refused, self.most);
            if refused == Limits::ZERO {
                self.dfs.tally.exhaust();
                return false;
            }
            let more_switches = refused.preemptions > 0 && limits.preemptions < most.preemptions;
            let more_cancels = refused.cancels > 0 && limits.cancels < most.cancels;
            if !more_switches && !more_cancels {
                return false;
            }
            self.level += 1;
            self.dfs.restart(self.limits());
        }
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        self.dfs.pick_task(enabled)
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        self.dfs.pick(point, count)
    }

    fn stepped(&mut self, task: TaskPath, footprint: &[Access]) {
        self.dfs.stepped(task, footprint);
    }

    fn end(&mut self, verdict: Verdict) {
        self.dfs.end(verdict);
    }

    fn progress(&self) -> Progress {
        self.dfs.progress()
    }
}
