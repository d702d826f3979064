//! Probabilistic concurrency testing: random priorities, and a few points where they change.
//!
//! Each task gets a random priority when it is first seen; the highest one that can run goes. At
//! `depth - 1` steps drawn at random, the task that is about to go becomes the lowest. A bug's
//! depth is the number of order constraints that make it happen; most have one or two.
//!
//! The number of steps in a run, among which those points are drawn, is learnt.
//!
//! *Guaranteed*: a bug of at most this depth among `n` tasks and `k` steps is found by each run
//! with a probability of at least `1 / (n * k^(depth - 1))`, once `k` is known. A task that never
//! waits and never ends may starve the others: the driver has to cut such runs.
//!
//! The algorithm: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with
//! Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.

use super::index::Roster;
use super::random::Dice;
use super::{Access, Point, Progress, Strategy, TaskPath, Verdict};

/// Random priorities with few changes. See the [table](super) for when to use it.
#[derive(Debug)]
pub struct Pct {
    dice: Dice,
    roster: Roster,
    depth: usize,
    /// By task; 0 before it was seen in this run.
    priorities: Vec<u64>,
    /// The steps at which the priorities change, the next one last.
    changes: Vec<usize>,
    step: usize,
    /// The priority of who went last, and where it was.
    highest: u64,
    last: usize,
    longest: usize,
    progress: Progress,
}

/// What a task is first given has this bit; what is below was lowered.
const HIGH: u64 = 1 << 63;

impl Pct {
    /// Runs for bugs up to a depth (at least 1), from a seed.
    pub fn new(seed: u64, depth: usize) -> Pct {
        Pct {
            dice: Dice::new(seed),
            roster: Roster::default(),
            depth,
            priorities: Vec::new(),
            changes: Vec::new(),
            step: 0,
            highest: 0,
            last: 0,
            longest: 1,
            progress: Progress::default(),
        }
    }

    /// The same with about so many cancels and faults in a run; one unless set.
    pub fn disturbing(self, times: usize) -> Pct {
        Pct { dice: self.dice.disturbing(times), ..self }
    }

    /// Which goes of a list that has changed.
    #[inline(never)]
    fn pick_changed(&mut self, enabled: &[TaskPath], old: usize) -> usize {
        self.roster.after(self.last, enabled, old);
        self.highest()
    }

    /// Which of those in the roster goes.
    #[inline(always)]
    fn highest(&mut self) -> usize {
        if self.priorities.len() < self.roster.index.len() {
            self.priorities.resize(self.roster.index.len(), 0);
        }
        let numbers = self.roster.numbers();
        // Of those who could run the last time nobody is above who went, who may still be there.
        let mut from = if self.step == 0 { 0 } else { self.roster.old().min(self.last) };
        loop {
            let mut best = 0;
            let mut highest = 0;
            for (at, number) in numbers.iter().enumerate().skip(from) {
                let priority = &mut self.priorities[*number as usize];
                if *priority == 0 {
                    *priority = self.dice.rng.next_u64() | HIGH;
                }
                if *priority >= highest {
                    (best, highest) = (at, *priority);
                }
            }
            if from > 0 && highest < self.highest {
                from = 0;
                continue;
            }
            (self.highest, self.last) = (highest, best);
            if self.changes.pop_if(|change| *change <= self.step).is_none() {
                self.step += 1;
                return best;
            }
            // The points still to come leave lower priorities behind.
            self.priorities[numbers[best] as usize] = 1 + self.changes.len() as u64;
            from = 0;
        }
    }
}

impl Strategy for Pct {
    fn begin(&mut self) -> bool {
        self.dice.begin();
        self.priorities.fill(0);
        self.step = 0;
        self.changes.clear();
        for _ in 1..self.depth {
            self.changes.push(self.dice.rng.below(self.longest));
        }
        self.changes.sort_unstable_by(|a, b| b.cmp(a));
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        self.roster.of(enabled);
        self.highest()
    }

    fn pick_next(&mut self, enabled: &[TaskPath], old: usize) -> usize {
        // Who went last is back, and nobody else has come: still nobody is above it.
        let is_back = self.step > 0 && self.last == old && self.roster.is_same(enabled, old);
        if is_back && self.changes.last().is_none_or(|change| *change > self.step) {
            self.step += 1;
            return old;
        }
        self.pick_changed(enabled, old)
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        self.dice.pick(point, count)
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
        self.longest = self.longest.max(self.step);
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx_kernel::rng::DetRng;

    /// Whoever comes back or not, alone or with others, as a driver has it; or the list is another.
    #[test]
    fn what_is_known_of_the_list_makes_no_difference() {
        let mut same_again = 0;
        for seed in 0..40 {
            let mut one = Pct::new(seed, 4);
            let mut two = Pct::new(seed, 4);
            let mut rng = DetRng::new(seed, 1);
            for _ in 0..20 {
                assert!(one.begin() && two.begin());
                let mut enabled = vec![TaskPath(1)];
                let mut old = 0;
                for step in 0..50 {
                    let picked = one.pick_next(&enabled, old);
                    assert_eq!(picked, two.pick_task(&enabled), "seed {seed}, step {step}");
                    let before = enabled.clone();
                    let task = enabled.remove(picked);
                    old = enabled.len();
                    let others = (2..9).map(TaskPath).filter(|it| !before.contains(it));
                    let others: Vec<_> = others.filter(|_| rng.below(12) == 0).collect();
                    enabled.extend(others);
                    if rng.below(8) > 0 {
                        enabled.insert(old + rng.below(enabled.len() - old + 1), task);
                    }
                    if rng.below(20) == 0 {
                        enabled.reverse();
                        old = 0;
                    }
                    if enabled.is_empty() {
                        break;
                    }
                    same_again += usize::from(before == enabled && old > 0);
                }
                one.end(Verdict::Passed);
                two.end(Verdict::Passed);
            }
        }
        assert!(same_again > 1000, "{same_again}");
    }

    /// Whoever comes and goes: the list changes a little from step to step, or altogether.
    #[test]
    fn who_goes_is_the_highest_of_all_who_can() {
        let mut pct = Pct::new(7, 4);
        let mut rng = DetRng::new(7, 1);
        for _ in 0..50 {
            assert!(pct.begin());
            let mut enabled: Vec<TaskPath> = (1..=9).map(TaskPath).collect();
            for _ in 0..60 {
                let best = pct.pick_task(&enabled);
                let numbers: Vec<u32> =
                    enabled.iter().map(|it| pct.roster.index.of(it.0)).collect();
                assert_eq!(pct.roster.numbers(), numbers);
                let priority = |at: usize| pct.priorities[numbers[at] as usize];
                assert!(
                    (0..enabled.len()).all(|at| 0 < priority(at) && priority(at) <= priority(best))
                );
                let went = enabled.remove(best);
                match rng.below(4) {
                    0 => enabled.reverse(),
                    1 => enabled.retain(|it| it.0 % 3 != 0),
                    _ => {}
                }
                let new = TaskPath(1 + rng.next_u64() % 20);
                enabled.extend([went, new].into_iter().filter(|_| rng.below(3) > 0));
                enabled.push(TaskPath(30));
                let mut seen = Vec::new();
                enabled.retain(|it| {
                    !seen.contains(it) && {
                        seen.push(*it);
                        true
                    }
                });
            }
            pct.end(Verdict::Passed);
        }
    }
}
