//! Making a failing schedule small.
//!
//! First by leaving out: halves, quarters and so on of the deviations are taken away as long as the
//! run still fails in the same way (delta debugging): of the disturbances, then of all. That ends
//! in a local minimum: every deviation left is needed *with the others*. Then by looking for
//! something smaller: all schedules with no deviation, with one, with two, ... as long as these are
//! fewer than what was found and the budget lasts. The second part needs the log of each run, to
//! know what else could have been decided.
//!
//! The first part: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
//! Transactions on Software Engineering, 2002.

use super::{Decisions, Deviation, Schedule};

/// What became of a failing schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The schedule, with as few deviations as were found to do.
    pub schedule: Schedule,
    /// How it fails: as it did before.
    pub failure: u64,
    /// The log of its run; [`Decisions::words`] tells it to people.
    pub log: Decisions,
    /// The runs it took.
    pub runs: u64,
    /// Whether no schedule with fewer deviations fails in this way; `false` if the budget was too
    /// small to tell.
    pub is_smallest: bool,
}

/// Shrinks a schedule in at most about `budget` runs. `run` follows a schedule, fills the log
/// ([`Recorder`](super::Recorder) around [`Follow`](super::Follow)), and says how the run failed.
/// Nothing if the schedule does not fail.
pub fn shrink(
    schedule: &Schedule,
    budget: u64,
    run: impl FnMut(&Schedule, &mut Decisions) -> Option<u64>,
) -> Option<Shrunk> {
    let mut shrinker = Shrinker { run, runs: 0, budget, failure: None, log: Decisions::default() };
    shrinker.failure = Some(shrinker.try_once(schedule)?);
    let mut best = shrinker.settle(schedule.clone());
    best = shrinker.leave_out(best, is_disturbance);
    best = shrinker.leave_out(best, |_| true);
    let mut is_smallest = best.deviations.is_empty();
    for size in 0..best.deviations.len() {
        let mut candidate = Schedule::default();
        match shrinker.search(&mut candidate, 0, size) {
            Search::Found => {
                (best, is_smallest) = (candidate, true);
                break;
            }
            Search::Nothing => is_smallest = size + 1 == best.deviations.len(),
            Search::OutOfBudget => break,
        }
    }
    let failure = shrinker.try_once(&best)?;
    let Shrinker { log, runs, .. } = shrinker;
    Some(Shrunk { schedule: best, failure, log, runs, is_smallest })
}

/// Whether it is a cancel or a fault: a run is told best with few of them.
fn is_disturbance(deviation: &Deviation) -> bool {
    match deviation {
        Deviation::Task { .. } => false,
        Deviation::Pick { point, .. } => point.is_injected(),
    }
}

struct Shrinker<R> {
    run: R,
    runs: u64,
    budget: u64,
    /// The failure to keep.
    failure: Option<u64>,
    log: Decisions,
}

enum Search {
    Found,
    Nothing,
    OutOfBudget,
}

impl<R: FnMut(&Schedule, &mut Decisions) -> Option<u64>> Shrinker<R> {
    fn try_once(&mut self, schedule: &Schedule) -> Option<u64> {
        self.runs += 1;
        self.log.clear();
        (self.run)(schedule, &mut self.log)
    }

    fn fails(&mut self, schedule: &Schedule) -> bool {
        self.try_once(schedule) == self.failure
    }

    /// What the run just made really was: a schedule may hold deviations that found no place.
    fn settle(&self, schedule: Schedule) -> Schedule {
        let real = self.log.schedule();
        let is_shorter = real.deviations.len() < schedule.deviations.len();
        if is_shorter && !self.log.list().is_empty() { real } else { schedule }
    }

    /// Delta debugging: leaves out ever smaller pieces of some deviations.
    fn leave_out(&mut self, mut best: Schedule, which: fn(&Deviation) -> bool) -> Schedule {
        let mut pieces = 2;
        while self.runs < self.budget {
            let len = best.deviations.iter().filter(|it| which(it)).count();
            if len == 0 {
                break;
            }
            let size = len.div_ceil(pieces);
            let mut found = None;
            for start in (0..len).step_by(size) {
                let mut less = best.clone();
                let mut nth = 0;
                less.deviations.retain(|it| {
                    let is_in_piece = which(it) && (start..start + size).contains(&nth);
                    nth += usize::from(which(it));
                    !is_in_piece
                });
                if self.fails(&less) {
                    found = Some(self.settle(less));
                    break;
                }
            }
            match found {
                Some(less) => (best, pieces) = (less, (pieces - 1).max(2)),
                None if size == 1 => break,
                None => pieces = (pieces * 2).min(len),
            }
        }
        best
    }

    /// Looks for a failing schedule that adds `more` deviations to this one, from a decision on.
    fn search(&mut self, schedule: &mut Schedule, from: usize, more: usize) -> Search {
        if self.runs >= self.budget {
            return Search::OutOfBudget;
        }
        let fails = self.fails(schedule);
        if more == 0 {
            return if fails { Search::Found } else { Search::Nothing };
        }
        let alternatives: Vec<(usize, Deviation)> = self.log.alternatives(from);
        for (decision, deviation) in alternatives {
            schedule.deviations.push(deviation);
            match self.search(schedule, decision + 1, more - 1) {
                Search::Nothing => {}
                other => return other,
            }
            schedule.deviations.pop();
        }
        Search::Nothing
    }
}
