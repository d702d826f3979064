//! Random walks that give each schedule about the same chance.
//!
//! A plain walk favours schedules in which tasks take turns least: where one task has ten steps to
//! go and another has one, it still tosses a fair coin. This one draws a task in proportion to the
//! steps it has left, counting those of the tasks it has yet to spawn. For independent tasks of
//! known length every interleaving is then equally likely. The lengths are learnt: the mean over
//! the runs so far.
//!
//! *Guaranteed*: every schedule has a chance in each run; the chances are equal as far as the
//! lengths of the tasks do not depend on the schedule.
//!
//! The same weights: Zhao, Wolff, Mathur, Roychoudhury, "Selectively Uniform Concurrency Testing",
//! ASPLOS 2025.

use super::index::Roster;
use super::random::Dice;
use super::{Access, Point, Progress, Strategy, TaskPath, Verdict};

/// Random walks that are even over schedules. See the [table](super) for when to use it.
#[derive(Debug)]
pub struct Uniform {
    dice: Dice,
    roster: Roster,
    tasks: Vec<Task>,
    last: Option<u32>,
    progress: Progress,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    /// Who spawned it.
    parent: Option<u32>,
    /// Steps in all runs that saw it, and how many those were.
    total: u64,
    runs: u64,
    /// Steps it and those it spawns usually take.
    usual: u32,
    /// Of these, how many are left in this run.
    left: u32,
    /// Its steps in this run; nothing before it was seen.
    steps: Option<u32>,
}

impl Uniform {
    /// The walks of a seed.
    pub fn new(seed: u64) -> Uniform {
        Uniform {
            dice: Dice::new(seed),
            roster: Roster::default(),
            tasks: Vec::new(),
            last: None,
            progress: Progress::default(),
        }
    }

    /// A task is seen for the first time in this run.
    fn meet(&mut self, task: u32) {
        if self.tasks.len() <= task as usize {
            let parent = self.last;
            let total = 0;
            let new = Task { parent, total, runs: 0, usual: 1, left: 1, steps: None };
            self.tasks.resize(task as usize + 1, new);
        }
        let Task { parent, usual, .. } = self.tasks[task as usize];
        self.tasks[task as usize].steps = Some(0);
        if let Some(parent) = parent {
            let left = &mut self.tasks[parent as usize].left;
            *left = left.saturating_sub(usual);
        }
    }

    /// Works out the usual lengths. A task has a greater number than the one that spawned it.
    fn learn(&mut self) {
        for task in &mut self.tasks {
            task.usual = task.total.div_ceil(task.runs.max(1)).max(1) as u32;
        }
        for task in (0..self.tasks.len()).rev() {
            if let Task { parent: Some(parent), usual, .. } = self.tasks[task] {
                self.tasks[parent as usize].usual += usual;
            }
        }
    }
}

impl Strategy for Uniform {
    fn begin(&mut self) -> bool {
        self.dice.begin();
        self.last = None;
        let runs = self.progress.runs;
        if runs < 32 || runs.is_power_of_two() {
            self.learn();
        }
        for task in &mut self.tasks {
            (task.left, task.steps) = (task.usual, None);
        }
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        self.roster.of(enabled);
        let mut sum = 0;
        for at in 0..enabled.len() {
            let task = self.roster.number(at);
            if self.tasks.get(task as usize).is_none_or(|task| task.steps.is_none()) {
                self.meet(task);
            }
        }
        for at in 0..enabled.len() {
            sum += self.tasks[self.roster.number(at) as usize].left.max(1) as usize;
        }
        let mut draw = if enabled.len() > 1 { self.dice.rng.below(sum) } else { 0 };
        let mut picked = 0;
        loop {
            let task = self.roster.number(picked);
            let weight = self.tasks[task as usize].left.max(1) as usize;
            if draw < weight {
                self.last = Some(task);
                return picked;
            }
            draw -= weight;
            picked += 1;
        }
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        self.dice.pick(point, count)
    }

    fn needs_footprint(&self) -> bool {
        false
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {
        let Some(task) = self.last else { return };
        let task = &mut self.tasks[task as usize];
        task.left = task.left.saturating_sub(1);
        task.steps = task.steps.map(|steps| steps + 1);
    }

    fn end(&mut self, verdict: Verdict) {
        self.dice.end();
        for task in &mut self.tasks {
            if let Some(steps) = task.steps {
                task.total += u64::from(steps);
                task.runs += 1;
            }
        }
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
