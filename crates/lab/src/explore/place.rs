//! Where in a run a decision is made: what a [`Deviation`] is named by.

use super::index::Index;
use super::{Deviation, Point, TaskPath};

/// Where in a run a decision is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) decision: usize,
    /// The steps begun before.
    pub(super) at: u32,
    /// Whose turn it is by default, or whose step this is.
    pub(super) of: Option<TaskPath>,
    /// Which of its steps.
    pub(super) step: u32,
    pub(super) nth: u32,
    /// Nothing if a task is picked.
    pub(super) point: Option<Point>,
    pub(super) default: u32,
    pub(super) count: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) option: u32,
    pub(super) path: Option<TaskPath>,
}

impl Place {
    /// What is taken here as a deviation, if it is one.
    pub(super) fn deviation(self, taken: Taken) -> Option<Deviation> {
        if taken.option == self.default {
            return None;
        }
        let of = self.of.map_or(0, TaskPath::tag);
        let step = self.step;
        let nth = self.nth;
        Some(match (self.point, taken.path) {
            (Some(point), _) => Deviation::Pick { of, step, nth, point, picked: taken.option },
            (None, path) => Deviation::Task { of, step, task: path?.tag() },
        })
    }

    /// The option that a deviation asks for here, if it is meant for this place.
    pub(super) fn asked(self, deviation: Deviation, enabled: &[TaskPath]) -> Option<usize> {
        let own_of = self.of.map_or(0, TaskPath::tag);
        let own_step = self.step;
        let own_nth = self.nth;
        match deviation {
            Deviation::Task { of, step, task } => {
                let is_here = self.point.is_none() && (of, step) == (own_of, own_step);
                let index = enabled.iter().position(|path| path.tag() == task);
                index.filter(|_| is_here)
            }
            Deviation::Pick { of, step, nth, point, picked } => {
                let is_here = (of, step, nth) == (own_of, own_step, own_nth);
                let fits = self.point == Some(point) && picked < self.count;
                (is_here && fits).then_some(picked as usize)
            }
        }
    }
}

/// Counts the steps of each task, to say where a decision is.
#[derive(Debug, Default)]
pub(super) struct Counts {
    tasks: Index,
    steps: Vec<u32>,
    total: u32,
    last: Option<TaskPath>,
    /// Choices made in this step so far, of each kind: whether there are others is not to matter.
    picks: [u32; Point::ALL.len()],
}

impl Counts {
    pub(super) fn clear(&mut self) {
        self.steps.fill(0);
        (self.total, self.last, self.picks) = (0, None, Default::default());
    }

    /// The place of a decision for a task.
    pub(super) fn task(&mut self, decision: usize, enabled: &[TaskPath]) -> Place {
        let default = default_task(enabled, self.last);
        let of = enabled[default];
        let at = self.total;
        let step = *self.of(of);
        let default = default as u32;
        let count = enabled.len() as u32;
        Place { decision, at, of: Some(of), step, nth: 0, point: None, default, count }
    }

    /// The place of another decision.
    pub(super) fn pick(&mut self, decision: usize, point: Point, count: u32) -> Place {
        let of = self.last;
        let at = self.total;
        let nth = self.picks[point as usize];
        let step = of.map_or(0, |of| self.of(of).saturating_sub(1));
        self.picks[point as usize] += 1;
        Place { decision, at, of, step, nth, point: Some(point), default: 0, count }
    }

    /// A step of this task begins.
    pub(super) fn step(&mut self, task: TaskPath) {
        *self.of(task) += 1;
        self.total += 1;
        (self.last, self.picks) = (Some(task), Default::default());
    }

    fn of(&mut self, task: TaskPath) -> &mut u32 {
        let number = self.tasks.of(task.0) as usize;
        self.steps.resize(self.tasks.len(), 0);
        &mut self.steps[number]
    }
}

/// The default policy: the same task if it can go on, else the first that can.
pub(super) fn default_task(enabled: &[TaskPath], last: Option<TaskPath>) -> usize {
    last.and_then(|last| find(enabled, last)).unwrap_or(0)
}

/// Where a task is among those that can run. As a rule it is one that was just polled, and so the
/// last that has come.
#[inline]
pub(super) fn find(enabled: &[TaskPath], task: TaskPath) -> Option<usize> {
    enabled.iter().rposition(|it| *it == task)
}
