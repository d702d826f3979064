//! One disturbance a run, at every place there is in the usual order.
//!
//! The first run has none, and shows where one could be made; each further one makes one of them.
//! So the number of runs is that of the disturbances, however many orders the program has.

use crate::explore::{Access, Point, Progress, Strategy, TaskPath, Verdict};

#[derive(Debug, Default)]
pub(crate) struct Everywhere {
    /// How many options each place has, no disturbance among them.
    places: Vec<usize>,
    /// The disturbance of this run: the place, and the option there; none in the first run.
    now: Option<(usize, usize)>,
    /// Places met in this run.
    met: usize,
    last: Option<TaskPath>,
    has_begun: bool,
    /// Whether all places are tried with one option before any is with the next.
    options_first: bool,
    progress: Progress,
}

impl Everywhere {
    /// The same, with the first option everywhere, then the second: for who has not the time for
    /// all of them.
    pub(crate) fn options_first() -> Everywhere {
        Everywhere { options_first: true, ..Everywhere::default() }
    }

    fn next_option(&self) -> Option<(usize, usize)> {
        let (mut place, mut option) = self.now.map_or((0, 1), |(place, last)| (place, last + 1));
        while option >= *self.places.get(place)? {
            (place, option) = (place + 1, 1);
        }
        Some((place, option))
    }

    fn next_place(&self) -> Option<(usize, usize)> {
        let most = *self.places.iter().max()?;
        let (from, option) = self.now.map_or((0, 1), |(last, option)| (last + 1, option));
        let has = |option: usize, from: usize| {
            (from..self.places.len()).find(|place| option < self.places[*place])
        };
        let here = has(option, from).map(|place| (place, option));
        here.or_else(|| (option + 1..most).find_map(|option| Some((has(option, 0)?, option))))
    }
}

impl Strategy for Everywhere {
    fn begin(&mut self) -> bool {
        (self.met, self.last) = (0, None);
        if !self.has_begun {
            self.has_begun = true;
            return true;
        }
        self.now = if self.options_first { self.next_place() } else { self.next_option() };
        self.now.is_some()
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
        match self.now {
            None => {
                self.places.push(count);
                0
            }
            Some((at, option)) if at == place => option.min(count - 1),
            Some(_) => 0,
        }
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

    fn taken(mut strategy: Everywhere) -> Vec<[usize; 3]> {
        let mut taken = Vec::new();
        while strategy.begin() {
            let places = [(Point::Cancel, 3), (Point::Fault, 2), (Point::Cancel, 3)];
            let picks = places.map(|(point, count)| strategy.pick(point, count));
            assert_eq!(strategy.pick(Point::Entropy, 5), 0);
            strategy.end(Verdict::Passed);
            taken.push(picks);
        }
        taken
    }

    #[test]
    fn each_option_of_each_place_is_taken_once() {
        let expected = [[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 2]];
        assert_eq!(taken(Everywhere::default()), expected);
        let expected = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [0, 0, 2]];
        assert_eq!(taken(Everywhere::options_first()), expected);
    }
}
