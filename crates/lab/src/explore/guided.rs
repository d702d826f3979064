//! Random walks that go on from where something new was seen: coverage-guided fuzzing of schedules.
//!
//! A walk that has to take the same side of a coin twenty times never gets there. But a program
//! that is on the way often shows it: a task takes a step while another is where it was never seen
//! at that step. So the beginning of such a run is kept, and later runs begin with what was kept
//! and go on at random. With what is new counted in this way, each turn of the coin is looked for
//! by itself.
//!
//! What counts as new is a pair: a step of a task by its number, and another task that could have
//! gone, by how many steps it has taken. What is kept ends right before the first step that is new,
//! so that one that leads nowhere is not made again. Which beginning a run goes on from is the
//! one, among some, whose pair was seen least (rare branches first: Lemieux, Sen, "FairFuzz: A
//! Targeted Mutation Strategy for Increasing Greybox Fuzz Testing Coverage", ASE 2018).
//!
//! *Guaranteed*: nothing; one run of four is a plain walk.

use super::index::{Fold, Index};
use super::random::Dice;
use super::{Access, Point, Progress, Strategy, TaskPath, Verdict};
use asx_kernel::rng::{DetRng, mix64};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// So many beginnings are kept, and of each so many decisions.
const KEPT: usize = 512;
const LONGEST: usize = 4096;

/// Steps of a task beyond this are one.
const MOST_STEPS: u32 = 1000;

/// So many of those who could have gone are looked at.
const OTHERS: usize = 8;

/// So many of those that are kept are compared when one is drawn.
const RIVALS: usize = 24;

/// Random walks that go on from where something new was seen. See the [table](super) for when to
/// use it.
#[derive(Debug)]
pub struct Guided {
    dice: Dice,
    /// How often each pair was seen.
    seen: HashMap<u64, u32, BuildHasherDefault<Fold>>,
    kept: Kept,
    /// What this run begins with, and what was decided in it.
    begins: Vec<u32>,
    decided: Vec<u32>,
    /// The first pair of this run that is new, and how many decisions had been made before.
    new: Option<(u64, usize)>,
    tasks: Index,
    /// Steps of each task in this run.
    steps: Vec<u32>,
    progress: Progress,
}

/// Beginnings of runs, each with the pair that was new there. The oldest is dropped for a new one.
#[derive(Debug, Default)]
struct Kept {
    list: Vec<(u64, Vec<u32>)>,
    newest: usize,
}

impl Kept {
    fn push(&mut self, pair: u64, beginning: &[u32]) {
        let kept = (pair, beginning.to_vec());
        if self.list.len() < KEPT {
            self.newest = self.list.len();
            self.list.push(kept);
        } else {
            self.newest = (self.newest + 1) % KEPT;
            self.list[self.newest] = kept;
        }
    }

    /// One of them: of the newest and some others, the one whose pair was seen least since.
    fn draw(&self, rng: &mut DetRng, seen: impl Fn(u64) -> u32) -> Option<&[u32]> {
        let mut best = self.list.get(self.newest)?;
        let mut least = seen(best.0);
        for _ in 0..RIVALS {
            let other = &self.list[rng.below(self.list.len())];
            let times = seen(other.0);
            if times < least {
                (best, least) = (other, times);
            }
        }
        Some(&best.1)
    }
}

impl Guided {
    /// The walks of a seed.
    pub fn new(seed: u64) -> Guided {
        Guided {
            dice: Dice::new(seed),
            seen: HashMap::default(),
            kept: Kept::default(),
            begins: Vec::new(),
            decided: Vec::new(),
            new: None,
            tasks: Index::default(),
            steps: Vec::new(),
            progress: Progress::default(),
        }
    }

    /// The same with about so many cancels and faults in a run; one unless set.
    pub fn disturbing(self, times: usize) -> Guided {
        Guided { dice: self.dice.disturbing(times), ..self }
    }

    /// Chooses what this run begins with.
    fn choose(&mut self) {
        self.begins.clear();
        if self.dice.rng.below(4) == 0 {
            return;
        }
        let seen = |pair| self.seen.get(&pair).copied().unwrap_or(0);
        if let Some(kept) = self.kept.draw(&mut self.dice.rng, seen) {
            self.begins.extend_from_slice(kept);
        }
    }

    /// What the run begins with at this decision, if it goes on.
    fn begun(&self, count: usize) -> Option<usize> {
        self.begins.get(self.decided.len()).map(|picked| (*picked as usize).min(count - 1))
    }

    /// One of those who can go takes a step: notes whether that is new.
    fn note(&mut self, enabled: &[TaskPath], picked: usize) {
        let number = self.tasks.of(enabled[picked].0);
        for (at, other) in enabled.iter().enumerate().take(OTHERS) {
            let other = self.tasks.of(other.0);
            self.steps.resize(self.tasks.len(), 0);
            let [here, there] = [number, other].map(|it| {
                let steps = self.steps[it as usize].min(MOST_STEPS);
                u64::from(it) << 32 | u64::from(steps)
            });
            if at == picked {
                continue;
            }
            let pair = mix64(mix64(here) ^ there);
            let times = self.seen.entry(pair).or_default();
            *times = times.saturating_add(1);
            if *times == 1 {
                self.new.get_or_insert((pair, self.decided.len()));
            }
        }
        self.steps.resize(self.tasks.len(), 0);
        self.steps[number as usize] += 1;
    }
}

impl Strategy for Guided {
    fn begin(&mut self) -> bool {
        self.dice.begin();
        self.choose();
        self.decided.clear();
        self.steps.fill(0);
        self.new = None;
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let begun = self.begun(enabled.len());
        let picked = begun.unwrap_or_else(|| self.dice.rng.below(enabled.len()));
        self.note(enabled, picked);
        self.decided.push(picked as u32);
        picked
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        let begun = self.begun(count);
        let picked = begun.unwrap_or_else(|| self.dice.pick(point, count));
        self.decided.push(picked as u32);
        picked
    }

    fn watches(&self) -> bool {
        false
    }

    fn needs_footprint(&self) -> bool {
        false
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {}

    fn end(&mut self, verdict: Verdict) {
        self.dice.end();
        if let Some((pair, new)) = self.new {
            self.kept.push(pair, &self.decided[..new.min(LONGEST)]);
        }
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tasks that have to go in turns: who goes out of turn ends. How many turns there were.
    fn turns(guided: &mut Guided, most: usize) -> usize {
        let tasks = [TaskPath(1), TaskPath(2)];
        assert!(guided.begin());
        let mut enabled = tasks.to_vec();
        let mut turn = 0;
        while !enabled.is_empty() && turn < most {
            let at = guided.pick_task(&enabled);
            if enabled[at] == tasks[turn % 2] {
                turn += 1;
            } else {
                enabled.remove(at);
            }
        }
        guided.end(Verdict::Passed);
        turn
    }

    #[test]
    fn what_took_a_while_to_reach_is_reached_again() {
        let mut guided = Guided::new(1);
        let reached = |guided: &mut Guided, runs: usize| {
            (0..runs).map(|_| turns(guided, 64)).max().unwrap_or(0)
        };
        let first = reached(&mut guided, 20);
        let then = reached(&mut guided, 1000);
        assert!(first < 30 && then == 64, "{first}, {then}");
    }

    #[test]
    fn the_oldest_is_dropped() {
        let mut kept = Kept::default();
        for nth in 0..KEPT as u32 + 2 {
            kept.push(0, &[nth]);
        }
        assert_eq!(kept.list.len(), KEPT);
        assert_eq!((kept.list[0].1[0], kept.list[1].1[0]), (KEPT as u32, KEPT as u32 + 1));
        assert_eq!((kept.newest, kept.list[2].1[0]), (1, 2));
    }
}
