//! Two disturbances a run, in the usual order.
//!
//! A run with one disturbance is another program from there on: where a second one could be made is
//! seen in that run, and in no other. So for each first disturbance there is a run without a second
//! one, and then some with: all, if there is time for them, else as many as the others have, drawn
//! at random.

use asx_kernel::rng::DetRng;

use crate::explore::{Access, Point, Progress, Strategy, TaskPath, Verdict};

/// For each first disturbance at least so many second ones are tried.
const LEAST: usize = 4;

/// A disturbance: the place, of those met in a run, and the option there.
type Made = (usize, usize);

#[derive(Debug)]
pub(crate) struct Pairs {
    /// How many runs there may be.
    budget: usize,
    rng: DetRng,
    /// The first disturbances that are still to come, the next one last.
    firsts: Vec<Made>,
    /// How many second ones there are for each.
    seconds: usize,
    /// Those for the first one of this run that are still to come, the next one last.
    rest: Vec<Made>,
    first: Option<Made>,
    second: Option<Made>,
    /// How many options each place has that is met in this run, if nobody knows yet.
    places: Option<Vec<usize>>,
    met: usize,
    last: Option<TaskPath>,
    progress: Progress,
}

impl Pairs {
    /// At most so many runs.
    pub(crate) fn new(seed: u64, budget: u64) -> Pairs {
        Pairs {
            budget: usize::try_from(budget).unwrap_or(usize::MAX),
            rng: DetRng::new(seed, 2),
            firsts: Vec::new(),
            seconds: 0,
            rest: Vec::new(),
            first: None,
            second: None,
            places: Some(Vec::new()),
            met: 0,
            last: None,
            progress: Progress::default(),
        }
    }

    /// Takes in which places there were in the last run, if it was there to show them.
    fn learn(&mut self) {
        let Some(places) = self.places.take() else { return };
        let from = self.first.map_or(0, |(place, _)| place + 1);
        let options = places.iter().enumerate().skip(from);
        let made = options.flat_map(|(place, options)| (1..*options).map(move |it| (place, it)));
        let mut made: Vec<Made> = made.collect();
        if self.first.is_some() {
            let count = self.seconds;
            self.rest = self.drawn(made, count);
            return;
        }
        self.seconds = (self.budget / made.len().max(1)).max(1 + LEAST) - 1;
        let count = self.budget / (1 + self.seconds);
        made = self.drawn(made, count);
        self.firsts = made;
    }

    /// So many of these at random, in any order; all of them, in reverse, if these are enough.
    fn drawn(&mut self, mut from: Vec<Made>, count: usize) -> Vec<Made> {
        if from.len() <= count {
            from.reverse();
            return from;
        }
        for at in 0..count {
            let other = at + self.rng.below(from.len() - at);
            from.swap(at, other);
        }
        from.truncate(count);
        from
    }
}

impl Strategy for Pairs {
    fn begin(&mut self) -> bool {
        (self.met, self.last) = (0, None);
        if self.progress.runs == 0 {
            return true;
        }
        self.learn();
        self.second = self.rest.pop();
        if self.second.is_some() {
            return true;
        }
        self.first = self.firsts.pop();
        self.places = Some(Vec::new());
        self.first.is_some()
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let again = enabled.iter().position(|task| Some(*task) == self.last);
        let at = again.unwrap_or(0);
        self.last = enabled.get(at).copied();
        at
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        if !point.is_injected() {
            return 0;
        }
        let place = self.met;
        self.met += 1;
        if let Some(places) = &mut self.places {
            places.push(count);
        }
        let made = [self.first, self.second].into_iter().flatten().find(|made| made.0 == place);
        made.map_or(0, |(_, option)| option.min(count - 1))
    }

    fn watches(&self) -> bool {
        false
    }

    fn needs_footprint(&self) -> bool {
        false
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {}

    fn end(&mut self, verdict: Verdict) {
        self.progress.runs += 1;
        self.progress.failures += u64::from(verdict.failure().is_some());
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three places with two options besides none; after a disturbance at the first, there is no
    /// third.
    fn taken(budget: u64) -> Vec<[usize; 3]> {
        let mut strategy = Pairs::new(1, budget);
        let mut taken = Vec::new();
        while strategy.begin() {
            let first = strategy.pick(Point::Cancel, 3);
            let second = strategy.pick(Point::Fault, 3);
            let third = if first == 0 { strategy.pick(Point::Cancel, 3) } else { 0 };
            strategy.end(Verdict::Passed);
            taken.push([first, second, third]);
        }
        taken
    }

    #[test]
    fn each_pair_is_taken_once_if_there_is_time() {
        let mut all = taken(1000);
        assert_eq!(all[..4], [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 2, 0]]);
        // None, six alone, two by two at the first and second place, and at the second and third.
        assert_eq!(all.len(), 1 + 6 + 4 + 4);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 15);
    }

    #[test]
    fn a_budget_is_shared_by_the_first_ones() {
        for budget in 1..40 {
            let all = taken(budget);
            assert!(all.len() as u64 <= budget.max(1) + 1, "{budget}: {}", all.len());
        }
        assert!(taken(20).iter().any(|picks| picks.iter().filter(|it| **it > 0).count() == 2));
    }
}
