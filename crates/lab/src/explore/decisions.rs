//! What was decided in a run, and the short form of it.
//!
//! A [`Recorder`] around any strategy writes every decision into a [`Decisions`] log. The log
//! replays exactly and is long. A [`Schedule`] keeps only where the run left the default policy, and
//! names each such place by its task and the number of the task's step: it is short, and an edit of
//! the program that leaves those steps alone leaves it valid.

use super::index::Index;
use super::{Access, Point, Progress, Strategy, TaskPath, Verdict};

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
        /// Which of the choices made there.
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

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.list.clear();
        self.enabled.clear();
    }

    /// Adds the decision for one of these tasks.
    pub fn push_task(&mut self, enabled: &[TaskPath], picked: usize) {
        let (path, count) = (enabled[picked], enabled.len() as u32);
        self.list.push(Decision::Task { path, picked: picked as u32, count });
        self.enabled.extend_from_slice(enabled);
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

    /// All deviations that the run could have made and did not, from a decision on, each with the
    /// number of its decision.
    pub(super) fn alternatives(&self, from: usize) -> Vec<(usize, Deviation)> {
        let mut found = Vec::new();
        self.walk(|place, taken, enabled| {
            let options = (0..place.count).filter(|option| *option != taken.option);
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
    /// use asx_lab::explore::{Decisions, TaskPath};
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
            let of = place.of.map_or_else(String::new, &name);
            lines.push(match (place.point, taken.path) {
                (None, Some(path)) => {
                    format!("at step {} run `{}` instead of `{of}`", place.at + 1, name(path))
                }
                (Some(point), _) if point.is_injected() && place.count == 2 => {
                    format!("in step {} (`{of}`) inject a {}", place.at, point.name())
                }
                (point, _) => {
                    let point = point.map_or("task", Point::name);
                    let (option, count) = (taken.option, place.count);
                    format!("in step {} (`{of}`) {point} takes {option} of 0..{count}", place.at)
                }
            });
        });
        lines
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

/// Where in a run a decision is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    decision: usize,
    /// The steps begun before.
    at: u32,
    /// Whose turn it is by default, or whose step this is.
    of: Option<TaskPath>,
    /// Which of its steps.
    step: u32,
    nth: u32,
    /// Nothing if a task is picked.
    point: Option<Point>,
    pub(super) default: u32,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    option: u32,
    path: Option<TaskPath>,
}

impl Place {
    /// What is taken here as a deviation, if it is one.
    fn deviation(self, taken: Taken) -> Option<Deviation> {
        if taken.option == self.default {
            return None;
        }
        let (of, step, nth) = (self.of.map_or(0, TaskPath::tag), self.step, self.nth);
        Some(match (self.point, taken.path) {
            (Some(point), _) => Deviation::Pick { of, step, nth, point, picked: taken.option },
            (None, path) => Deviation::Task { of, step, task: path?.tag() },
        })
    }

    /// The option that a deviation asks for here, if it is meant for this place.
    pub(super) fn asked(self, deviation: Deviation, enabled: &[TaskPath]) -> Option<usize> {
        let (own_of, own_step, own_nth) = (self.of.map_or(0, TaskPath::tag), self.step, self.nth);
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
    picks: u32,
}

impl Counts {
    pub(super) fn clear(&mut self) {
        self.steps.fill(0);
        (self.total, self.last, self.picks) = (0, None, 0);
    }

    /// The place of a decision for a task.
    pub(super) fn task(&mut self, decision: usize, enabled: &[TaskPath]) -> Place {
        let default = default_task(enabled, self.last);
        let (of, at) = (enabled[default], self.total);
        let (step, default, count) = (*self.of(of), default as u32, enabled.len() as u32);
        Place { decision, at, of: Some(of), step, nth: 0, point: None, default, count }
    }

    /// The place of another decision.
    pub(super) fn pick(&mut self, decision: usize, point: Point, count: u32) -> Place {
        let (of, at, nth) = (self.last, self.total, self.picks);
        let step = of.map_or(0, |of| self.of(of).saturating_sub(1));
        self.picks += 1;
        Place { decision, at, of, step, nth, point: Some(point), default: 0, count }
    }

    /// A step of this task begins.
    pub(super) fn step(&mut self, task: TaskPath) {
        *self.of(task) += 1;
        self.total += 1;
        (self.last, self.picks) = (Some(task), 0);
    }

    fn of(&mut self, task: TaskPath) -> &mut u32 {
        let number = self.tasks.of(task.0) as usize;
        self.steps.resize(self.tasks.len(), 0);
        &mut self.steps[number]
    }
}

/// The default policy: the same task if it can go on, else the first that can.
pub(super) fn default_task(enabled: &[TaskPath], last: Option<TaskPath>) -> usize {
    enabled.iter().position(|task| Some(*task) == last).unwrap_or(0)
}

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
