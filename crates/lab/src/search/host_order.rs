//! The first runs of a check: the order of the native scheduler, with 1, 2 and 4 virtual workers.
//!
//! These are the orders that a program is most likely to have outside the lab. A worker takes its
//! entries by the scheduler's rules, and the workers take turns. A failing order is made again
//! without workers, with the same tasks in the same order, because tokens name such schedules.

use asx_runtime::Cx;

use super::Search;
use crate::check::{How, Judged};
use crate::explore::{Access, Decision, Point, Progress, Strategy, TaskPath, Verdict};
use crate::failure::Failure;

/// The numbers of virtual workers.
const WORKERS: [usize; 3] = [1, 2, 4];

/// The name of the order in reports.
pub(super) fn describe(workers: usize) -> String {
    match workers {
        1 => String::from("the order of one worker"),
        _ => format!("the order of {workers} workers that take turns"),
    }
}

impl<F, B> Search<'_, F>
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    /// Runs the program in the host's own order, which no check with a strategy or workers of its
    /// own needs. These runs count only if one fails.
    pub(super) fn host_order(&mut self) -> Option<Failure> {
        if self.check.how != How::Mixed || self.check.workers > 0 {
            return None;
        }
        let failure = WORKERS.iter().enumerate().find_map(|(index, workers)| {
            let failure = self.on_workers(*workers)?;
            (self.runs, self.by_host) = (index as u64 + 1, Some(*workers));
            Some(failure)
        });
        failure.map(|failure| self.without_workers(failure))
    }

    fn on_workers(&mut self, workers: usize) -> Option<Failure> {
        self.workers = workers;
        // The very first run is repeated: statics that are set once have an effect only there.
        let is_first = workers == WORKERS[0];
        self.brief = is_first;
        let failure = self.once(&mut Some(Box::new(InTurns::default())), is_first);
        self.brief = false;
        let failure = match failure {
            None if is_first => self.differs_when_repeated(),
            failure => failure,
        };
        if failure.is_none() {
            self.workers = 0;
        }
        failure
    }

    fn differs_when_repeated(&mut self) -> Option<Failure> {
        let first = self.machine.seen(None);
        let again = self.again(&first.log);
        self.compare(&first, &again).map(|difference| self.not_deterministic(difference, None))
    }

    /// The same tasks in the same order, without workers. Should that pass, the failure is reported
    /// with the number of workers that it needs.
    fn without_workers(&mut self, failure: Failure) -> Failure {
        if failure.is_by_chance() {
            self.workers = 0;
            return failure;
        }
        let order = self.log().list().iter().filter_map(task_of).collect();
        let workers = std::mem::take(&mut self.workers);
        if let Some(failure) = self.once(&mut Some(Box::new(InOrder::new(order))), true) {
            return failure;
        }
        self.workers = workers;
        let again = self.once(&mut Some(Box::new(InTurns::default())), true);
        let mut failure = again.unwrap_or(failure);
        failure.finding.detail += &format!(
            "it fails by the rules of the scheduler: replay it with `workers({workers})`\n"
        );
        failure
    }
}

fn task_of(decision: &Decision) -> Option<TaskPath> {
    match decision {
        Decision::Task { path, .. } => Some(*path),
        Decision::Pick { .. } => None,
    }
}

/// The workers take turns; everything else is as usual.
#[derive(Debug, Default)]
struct InTurns {
    next: usize,
    progress: Progress,
}

impl Strategy for InTurns {
    fn begin(&mut self) -> bool {
        self.progress.runs == 0
    }

    fn pick_task(&mut self, _: &[TaskPath]) -> usize {
        0
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        if point != Point::Worker {
            return 0;
        }
        self.next += 1;
        (self.next - 1) % count
    }

    fn watches(&self) -> bool {
        false
    }

    fn needs_footprint(&self) -> bool {
        false
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {}

    fn end(&mut self, verdict: Verdict) {
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

/// Tasks in a given order, as far as they can run.
#[derive(Debug)]
struct InOrder {
    order: Vec<TaskPath>,
    at: usize,
    progress: Progress,
}

impl InOrder {
    fn new(order: Vec<TaskPath>) -> InOrder {
        InOrder { order, at: 0, progress: Progress::default() }
    }
}

impl Strategy for InOrder {
    fn begin(&mut self) -> bool {
        self.progress.runs == 0
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let rest = self.order.get(self.at..).unwrap_or_default();
        let next = rest.iter().enumerate().find_map(|(ahead, task)| {
            let picked = enabled.iter().position(|other| other == task)?;
            Some((ahead, picked))
        });
        let Some((ahead, picked)) = next else { return 0 };
        self.at += ahead + 1;
        picked
    }

    fn pick(&mut self, _: Point, _: usize) -> usize {
        0
    }

    fn watches(&self) -> bool {
        false
    }

    fn needs_footprint(&self) -> bool {
        false
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {}

    fn end(&mut self, verdict: Verdict) {
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_turns_and_other_choices_stay_usual() {
        let mut turns = InTurns::default();
        assert!(turns.begin());
        let picked: Vec<_> = (0..5).map(|_| turns.pick(Point::Worker, 3)).collect();
        assert_eq!(picked, [0, 1, 2, 0, 1]);
        assert_eq!(turns.pick(Point::Steal, 3), 0);
        turns.end(Verdict::Passed);
        assert!(!turns.begin());
    }

    #[test]
    fn tasks_that_cannot_run_are_skipped() {
        let [a, b, c] = [1, 2, 3].map(TaskPath);
        let mut order = InOrder::new(vec![b, c, a, b]);
        assert_eq!(order.pick_task(&[a, b]), 1);
        assert_eq!(order.pick_task(&[a, b]), 0, "c cannot run");
        assert_eq!(order.pick_task(&[a, b]), 1);
        assert_eq!(order.pick_task(&[c, b]), 0, "nothing is left");
    }
}
