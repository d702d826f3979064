//! Partial order sampling: even over the orders of steps that depend on each other.
//!
//! Every task's next step has a random priority; the highest one goes. After a step, those whose
//! next step races with it draw again; the others keep what they have. So a step that has drawn low
//! waits while others do what does not concern it: that `n` independent steps come before it has a
//! chance of `1 / (n + 1)`, where a plain walk gives `2^-n`.
//!
//! What a step will touch is not known before it is taken. It is taken to be what the same step of
//! the same task touched in an earlier run; an unknown step draws again after every other.
//!
//! *Guaranteed*: every schedule has a chance in each run.
//!
//! The algorithm: Yuan, Yang, Gu, "Partial Order Aware Concurrency Sampling", CAV 2018.

use super::index::Roster;
use super::random::Dice;
use super::trace::Print;
use super::{Access, Point, Progress, Strategy, TaskPath, Verdict};

/// Partial order sampling. See the [table](super) for when to use it.
#[derive(Debug)]
pub struct Pos {
    dice: Dice,
    roster: Roster,
    tasks: Vec<Task>,
    picked: u32,
    progress: Progress,
}

#[derive(Debug, Default)]
struct Task {
    /// 0 before the first draw.
    priority: u64,
    steps: usize,
    /// What each step touched when it was last seen.
    prints: Vec<Print>,
}

impl Pos {
    /// The samples of a seed.
    pub fn new(seed: u64) -> Pos {
        Pos {
            dice: Dice::new(seed),
            roster: Roster::default(),
            tasks: Vec::new(),
            picked: 0,
            progress: Progress::default(),
        }
    }
}

impl Strategy for Pos {
    fn begin(&mut self) -> bool {
        self.dice.begin();
        for task in &mut self.tasks {
            (task.priority, task.steps) = (0, 0);
        }
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let mut best = 0;
        let mut highest = 0;
        for (at, number) in self.roster.of(enabled).iter().copied().enumerate() {
            if self.tasks.len() <= number as usize {
                self.tasks.resize_with(number as usize + 1, Task::default);
            }
            let priority = &mut self.tasks[number as usize].priority;
            if *priority == 0 {
                *priority = self.dice.rng.next_u64() | 1;
            }
            if *priority > highest {
                (best, highest, self.picked) = (at, *priority, number);
            }
        }
        best
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        self.dice.pick(point, count)
    }

    fn stepped(&mut self, _: TaskPath, footprint: &[Access]) {
        let print = Print::folded(footprint);
        for (number, task) in self.tasks.iter_mut().enumerate() {
            if number as u32 == self.picked {
                match task.prints.get_mut(task.steps) {
                    Some(known) => *known = print,
                    None => task.prints.push(print),
                }
                task.steps += 1;
                task.priority = 0;
            } else if task.prints.get(task.steps).is_none_or(|next| !next.is_independent(print)) {
                task.priority = 0;
            }
        }
    }

    fn end(&mut self, verdict: Verdict) {
        self.dice.end();
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
