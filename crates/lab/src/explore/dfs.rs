//! Depth-first search: every schedule, one by one.
//!
//! The decisions of a run are a path in a tree. The next run repeats the path up to the last
//! decision that has an untried option, takes that option, and goes on with the default policy.
//! Nothing is skipped; the number of runs grows as the factorial of the steps. Its use is to check
//! [`Dpor`](super::Dpor), to try very small programs, and to be bounded.
//!
//! *Guaranteed*: every run the program has, each once; within the limits if there are any.

use super::bounded::Levels;
use super::place::find;
use super::tally::Tally;
use super::trace::{Trace, pick_hash};
use super::{Access, Limits, Point, Progress, Strategy, TaskPath, Verdict};

/// Every schedule, one by one. See the [table](super) for when to use it.
#[derive(Debug)]
pub struct Dfs {
    trace: Trace,
    path: Vec<Branch>,
    /// The next decision, and the next step.
    at: usize,
    step: usize,
    /// The first step of this run that was not taken by the run before.
    fresh: usize,
    last: Option<TaskPath>,
    /// Whether that one has yielded.
    has_yielded: bool,
    picks: u64,
    limits: Limits,
    /// What is left of the limits in this run.
    left: Limits,
    /// How often each of them kept options from being tried.
    refused: Limits,
    has_diverged: bool,
    is_over: bool,
    pub(super) tally: Tally,
}

/// A decision with several options.
#[derive(Clone, Copy, Debug)]
struct Branch {
    count: u32,
    value: u32,
    /// The step it belongs to.
    step: u32,
}

impl Default for Dfs {
    fn default() -> Self {
        Dfs::new()
    }
}

impl Dfs {
    /// An exploration from the start.
    pub fn new() -> Dfs {
        Dfs::within(Limits::NONE)
    }

    /// The failures found, in the order of first sight.
    pub fn failures(&self) -> &[u64] {
        &self.tally.failures
    }

    pub(super) fn within(limits: Limits) -> Dfs {
        Dfs {
            trace: Trace::new(),
            path: Vec::new(),
            at: 0,
            step: 0,
            fresh: 0,
            last: None,
            has_yielded: false,
            picks: 0,
            limits,
            left: limits,
            refused: Limits::ZERO,
            has_diverged: false,
            is_over: false,
            tally: Tally::default(),
        }
    }

    /// The option to take of `count`.
    fn decide(&mut self, count: usize) -> usize {
        if self.at == self.path.len() {
            let step = self.step as u32;
            self.path.push(Branch { count: count as u32, value: 0, step });
        }
        let branch = self.path[self.at];
        self.has_diverged |= branch.count != count as u32;
        self.at += 1;
        (branch.value as usize).min(count - 1)
    }
}

impl Levels for Dfs {
    fn restart(&mut self, limits: Limits) {
        self.path.clear();
        self.trace.truncate(0);
        (self.limits, self.refused, self.is_over) = (limits, Limits::ZERO, false);
    }

    fn start(&mut self) -> bool {
        self.fresh = 0;
        if self.is_over {
            while let Some(branch) = self.path.last_mut() {
                branch.value += 1;
                if branch.value < branch.count {
                    self.fresh = branch.step as usize;
                    break;
                }
                self.path.pop();
            }
            if self.path.is_empty() {
                return false;
            }
        }
        self.trace.truncate(self.fresh);
        (self.at, self.step, self.last, self.picks) = (0, 0, None, 0);
        (self.left, self.has_diverged, self.has_yielded) = (self.limits, false, false);
        true
    }

    fn refused(&self) -> Limits {
        self.refused
    }

    fn finish(&mut self) {
        let limits = self.limits;
        let refused = self.refused;
        let real = |limit, refused| if refused == 0 { usize::MAX } else { limit };
        self.tally.exhaust(Limits {
            preemptions: real(limits.preemptions, refused.preemptions),
            yields: real(limits.yields, refused.yields),
            cancels: real(limits.cancels, refused.cancels),
        });
    }
}

impl Strategy for Dfs {
    fn begin(&mut self) -> bool {
        let goes_on = self.start();
        if !goes_on {
            self.finish();
        }
        goes_on
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let has_yielded = std::mem::take(&mut self.has_yielded);
        if enabled.len() == 1 {
            self.last = Some(enabled[0]);
            return 0;
        }
        let current = self.last.and_then(|last| find(enabled, last));
        let default = current.unwrap_or(0);
        let mut picked = default;
        let (left, refused) = match has_yielded {
            true => (self.left.yields, &mut self.refused.yields),
            false => (self.left.preemptions, &mut self.refused.preemptions),
        };
        if current.is_some() && left == 0 {
            *refused += 1;
        } else {
            // The default is the first option, the others follow in their order.
            picked = match self.decide(enabled.len()) {
                0 => default,
                option if option <= default => option - 1,
                option => option,
            };
            if current.is_some() && picked != default {
                match has_yielded {
                    true => self.left.yields -= 1,
                    false => self.left.preemptions -= 1,
                }
            }
        }
        self.last = Some(enabled[picked]);
        picked
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        if point.is_injected() && self.left.cancels == 0 {
            self.refused.cancels += 1;
            self.picks = pick_hash(self.picks, 0);
            return 0;
        }
        let picked = self.decide(count);
        self.left.cancels -= usize::from(point.is_injected() && picked > 0);
        self.picks = pick_hash(self.picks, picked as u32);
        picked
    }

    fn yielded(&mut self) {
        self.has_yielded = true;
    }

    fn needs_footprint(&self) -> bool {
        self.step >= self.fresh || self.tally.is_watched()
    }

    fn stepped(&mut self, task: TaskPath, footprint: &[Access]) {
        if self.step >= self.fresh {
            self.trace.push(task, self.picks, footprint, None, self.has_yielded);
        } else if !footprint.is_empty() {
            self.has_diverged |= !self.trace.is_step(self.step, task, footprint);
        }
        self.picks = 0;
        self.step += 1;
    }

    fn end(&mut self, verdict: Verdict) {
        self.tally.ended(verdict);
        self.is_over = true;
        if self.has_diverged || self.at != self.path.len() {
            self.tally.progress.diverged += 1;
            self.path.truncate(self.at);
        }
        if matches!(verdict, Verdict::Stopped(_)) {
            self.trace.stop();
        }
        self.tally.class(self.trace.class());
    }

    fn progress(&self) -> Progress {
        let mut progress = self.tally.progress;
        // The share of the tree that lies behind, if all branches of a decision were equal.
        let mut share = 0.0;
        let mut left = 1.0;
        for branch in &self.path {
            left /= f64::from(branch.count);
            share += left * f64::from(branch.value);
        }
        share += left;
        progress.expected = Some(progress.runs as f64 / share);
        progress
    }
}
