//! What was decided in a run, and the short form of it.
//!
//! A [`Recorder`] around any strategy writes every decision into a [`Decisions`] log. The log
//! replays exactly and is long. A [`Schedule`] keeps only where the run left the default policy,
//! and names each such place by its task and the number of the task's step: it is short, and an
//! edit of the program that leaves those steps alone leaves it valid.

use super::place::{Counts, Place, Taken};
use super::{Point, TaskPath};

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A task was picked for the next step.
    Task {
        /// The task.
        path: TaskPath,
        /// Its place among the tasks that could run.
        picked: u32,
        /// How many those were.
        count: u32,
    },
    /// Something else was.
    Pick {
        /// What.
        point: Point,
        /// The option.
        picked: u32,
        /// How many options there were.
        count: u32,
    },
}

impl Decision {
    /// The number of what was taken.
    pub(crate) fn picked(&self) -> u32 {
        match self {
            Decision::Task { picked, .. } | Decision::Pick { picked, .. } => *picked,
        }
    }
}

/// Where a run leaves the default policy. Tasks are named by their [tag](TaskPath::tag); their
/// steps are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// When step `step` of the task `of` would be next, another task goes first.
    Task {
        /// Whose turn it would be.
        of: u32,
        /// Which of its steps it would take.
        step: u32,
        /// Who goes instead.
        task: u32,
    },
    /// In that step, or after it and before the next one, another option than the first is taken.
    Pick {
        /// Whose step it is; 0 before the first step.
        of: u32,
        /// Which of its steps.
        step: u32,
        /// Which of the choices of its kind made there.
        nth: u32,
        /// What is chosen.
        point: Point,
        /// The option taken.
        picked: u32,
    },
}

/// A run as the list of its deviations from the default policy: go on with the same task if it can
/// run, else take the first that can, and take the first option of everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The deviations, in the order in which they happen.
    pub deviations: Vec<Deviation>,
}

/// So many options of one decision are looked at by who looks for something smaller.
const MOST_OPTIONS: u32 = 64;

/// Every decision of a run, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    list: Vec<Decision>,
    /// The tasks that could run at each decision for a task, one list after another.
    enabled: Vec<TaskPath>,
}

impl Decisions {
    /// The decisions.
    pub fn list(&self) -> &[Decision] {
        &self.list
    }

    /// These, and nothing of what else could have been decided.
    #[cfg(test)]
    pub(super) fn of(list: Vec<Decision>) -> Decisions {
        Decisions { list, enabled: Vec::new() }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.list.clear();
        self.enabled.clear();
    }

    /// Adds the decision for one of these tasks.
    pub fn push_task(&mut self, enabled: &[TaskPath], picked: usize) {
        let path = enabled[picked];
        let count = enabled.len() as u32;
        self.list.push(Decision::Task { path, picked: picked as u32, count });
        self.enabled.extend_from_slice(enabled);
    }

    /// The same without what else could have run: the log can be compared and replayed, and has no
    /// [`schedule`](Decisions::schedule).
    pub(crate) fn push_briefly(&mut self, enabled: &[TaskPath], picked: usize) {
        let path = enabled[picked];
        let count = enabled.len() as u32;
        self.list.push(Decision::Task { path, picked: picked as u32, count });
    }

    /// Adds a decision of another kind.
    pub fn push_pick(&mut self, point: Point, count: usize, picked: usize) {
        self.list.push(Decision::Pick { point, picked: picked as u32, count: count as u32 });
    }

    /// The run's deviations from the default policy.
    pub fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::default();
        self.walk(|place, taken, _| schedule.deviations.extend(place.deviation(taken)));
        schedule
    }

    /// The deviations that the run could have made and did not, from a decision on, each with the
    /// number of its decision: of a choice among many, with the first few options.
    pub(super) fn alternatives(&self, from: usize) -> Vec<(usize, Deviation)> {
        let mut found = Vec::new();
        self.walk(|place, taken, enabled| {
            let count = place.count.min(MOST_OPTIONS);
            let options = (0..count).filter(|option| *option != taken.option);
            if place.decision >= from {
                found.extend(options.filter_map(|option| {
                    let path = enabled.get(option as usize).copied();
                    Some((place.decision, place.deviation(Taken { option, path })?))
                }));
            }
        });
        found
    }

    /// The deviations of the run as lines for people. Steps are counted from 1.
    ///
    /// ```
    /// use asx::lab::explore::{Decisions, TaskPath};
    /// let mut log = Decisions::default();
    /// let (a, b) = (TaskPath(1), TaskPath(2));
    /// log.push_task(&[a, b], 0);
    /// log.push_task(&[a, b], 1);
    /// let lines = log.words(|task| if task == a { "a".into() } else { "b".into() });
    /// assert_eq!(lines, ["at step 2 run `b` instead of `a`"]);
    /// ```
    pub fn words(&self, name: impl Fn(TaskPath) -> String) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(|place, taken, _| {
            if taken.option == place.default {
                return;
            }
            let of = place.of.map(&name);
            let option = taken.option;
            let count = place.count;
            let inside = match &of {
                Some(of) => format!("in step {} (`{of}`)", place.at),
                None => String::from("before step 1"),
            };
            lines.push(match (place.point, taken.path) {
                (Some(point), _) if point.is_injected() && count == 2 => {
                    format!("{inside} inject a {}", point.name())
                }
                (Some(point), _) => {
                    format!("{inside} {} takes {option} of 0..{count}", point.name())
                }
                (None, path) => {
                    let of = of.unwrap_or_default();
                    let path = path.map_or_else(String::new, &name);
                    format!("at step {} run `{path}` instead of `{of}`", place.at + 1)
                }
            });
        });
        lines
    }

    /// The indices of the decisions that differ from the default policy, in the order of
    /// [`words`](Decisions::words) and of the deviations of [`schedule`](Decisions::schedule).
    pub fn changed(&self) -> Vec<usize> {
        let mut changed = Vec::new();
        self.walk(|place, taken, _| {
            if taken.option != place.default {
                changed.push(place.decision);
            }
        });
        changed
    }

    /// Calls back at every decision with where it was, what was taken, and who could run.
    fn walk(&self, mut visit: impl FnMut(Place, Taken, &[TaskPath])) {
        let mut counts = Counts::default();
        let mut rest = self.enabled.as_slice();
        for (decision, taken) in self.list.iter().enumerate() {
            match *taken {
                Decision::Task { path, picked, count } => {
                    let (enabled, others) = rest.split_at(count as usize);
                    rest = others;
                    let place = counts.task(decision, enabled);
                    visit(place, Taken { option: picked, path: Some(path) }, enabled);
                    counts.step(path);
                }
                Decision::Pick { point, picked, count } => {
                    let place = counts.pick(decision, point, count);
                    visit(place, Taken { option: picked, path: None }, &[]);
                }
            }
        }
    }
}
