//! Writing down what any strategy decides.

use super::{Access, Decisions, Point, Progress, Strategy, TaskPath, Verdict};

/// Writes down what a strategy decides, run by run.
#[derive(Debug, Default)]
pub struct Recorder<S> {
    strategy: S,
    log: Decisions,
}

impl<S> Recorder<S> {
    /// Records what this strategy decides.
    pub fn new(strategy: S) -> Recorder<S> {
        Recorder { strategy, log: Decisions::default() }
    }

    /// The decisions of the current run, or of the last one.
    pub fn decisions(&self) -> &Decisions {
        &self.log
    }

    /// The strategy.
    pub fn strategy(&self) -> &S {
        &self.strategy
    }

    /// The strategy and the log.
    pub fn into_parts(self) -> (S, Decisions) {
        (self.strategy, self.log)
    }
}

impl<S: Strategy> Strategy for Recorder<S> {
    fn begin(&mut self) -> bool {
        let goes_on = self.strategy.begin();
        if goes_on {
            self.log.clear();
        }
        goes_on
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let picked = self.strategy.pick_task(enabled);
        self.log.push_task(enabled, picked);
        picked
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        let picked = self.strategy.pick(point, count);
        self.log.push_pick(point, count, picked);
        picked
    }

    fn yielded(&mut self) {
        self.strategy.yielded();
    }

    fn excludes(&mut self) {
        self.strategy.excludes();
    }

    fn needs_footprint(&self) -> bool {
        self.strategy.needs_footprint()
    }

    fn stepped(&mut self, task: TaskPath, footprint: &[Access]) {
        self.strategy.stepped(task, footprint);
    }

    fn end(&mut self, verdict: Verdict) {
        self.strategy.end(verdict);
    }

    fn progress(&self) -> Progress {
        self.strategy.progress()
    }
}
