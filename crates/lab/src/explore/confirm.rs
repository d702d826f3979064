//! A reduced search whose proof is put to the test.
//!
//! [`Dpor`] tries one run of each class and takes it for granted that a step depends on nothing but
//! what it was seen to touch. If tasks share something else, some of their orders are in none of
//! those classes, and nothing that the reduction looks at need tell. So random runs follow once all
//! classes were tried: each must be in one of them. One that is not withdraws the proof; it counts
//! as [diverged](Progress::diverged).

use super::trace::{Trace, pick_hash};
use super::{Access, Dpor, Point, Progress, Random, Strategy, TaskPath, Verdict};

/// Random runs after a proof, at most.
const CONFIRMING: u64 = 50;

/// Every class of runs once, then random ones, which must be in one of these classes.
#[derive(Debug)]
pub(crate) struct Confirmed {
    dpor: Dpor,
    random: Random,
    /// The random run that is going on, once those have begun.
    trace: Trace,
    is_confirming: bool,
    left: u64,
    /// A run was in no class that was tried.
    is_refuted: bool,
    /// The choices in this step, and whether its task has let others go first.
    picks: u64,
    has_yielded: bool,
    runs: u64,
}

impl Confirmed {
    /// An exploration from the start, of so many runs at most, and how many these are with those
    /// that confirm it: no more than as many again. The random runs are those of a seed.
    pub(crate) fn new(seed: u64, most: u64) -> (Confirmed, u64) {
        let left = most.min(CONFIRMING);
        (Confirmed { left, ..Confirmed::of(seed) }, most.saturating_add(left))
    }

    fn of(seed: u64) -> Confirmed {
        Confirmed {
            dpor: Dpor::new(),
            random: Random::new(seed),
            trace: Trace::new(),
            is_confirming: false,
            left: CONFIRMING,
            is_refuted: false,
            picks: 0,
            has_yielded: false,
            runs: 0,
        }
    }
}

impl Strategy for Confirmed {
    fn begin(&mut self) -> bool {
        if !self.is_confirming {
            if self.dpor.begin() {
                return true;
            }
            self.is_confirming = true;
            // A full search has nothing to confirm.
            if self.dpor.progress().exhausted.is_none() || !self.dpor.is_reduced() {
                self.left = 0;
            }
        }
        if self.left == 0 || self.is_refuted {
            return false;
        }
        self.left -= 1;
        self.trace.truncate(0);
        (self.picks, self.has_yielded) = (0, false);
        self.random.begin()
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        match self.is_confirming {
            true => self.random.pick_task(enabled),
            false => self.dpor.pick_task(enabled),
        }
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        if !self.is_confirming {
            return self.dpor.pick(point, count);
        }
        let picked = self.random.pick(point, count);
        self.picks = pick_hash(self.picks, picked as u32);
        picked
    }

    fn needs_footprint(&self) -> bool {
        self.is_confirming || self.dpor.needs_footprint()
    }

    fn yielded(&mut self) {
        match self.is_confirming {
            true => self.has_yielded = true,
            false => self.dpor.yielded(),
        }
    }

    fn excludes(&mut self) {
        if !self.is_confirming {
            self.dpor.excludes();
        }
    }

    fn stepped(&mut self, task: TaskPath, footprint: &[Access]) {
        if !self.is_confirming {
            return self.dpor.stepped(task, footprint);
        }
        self.trace.push(task, self.picks, footprint, None, self.has_yielded);
        (self.picks, self.has_yielded) = (0, false);
        self.random.stepped(task, footprint);
    }

    fn end(&mut self, verdict: Verdict) {
        if !self.is_confirming {
            return self.dpor.end(verdict);
        }
        self.runs += 1;
        if matches!(verdict, Verdict::Stopped(_)) {
            self.trace.stop();
        }
        self.is_refuted |= verdict == Verdict::Cut || !self.dpor.has_tried(self.trace.class());
        self.random.end(verdict);
    }

    fn progress(&self) -> Progress {
        let mut progress = self.dpor.progress();
        progress.runs += self.runs;
        progress.diverged += u64::from(self.is_refuted);
        if self.is_refuted || !self.is_confirming || self.left > 0 {
            progress.exhausted = None;
        }
        progress
    }
}
