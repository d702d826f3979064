//! A run once more, by nothing but the numbers of what was picked.
//!
//! Of most runs nobody wants to know more than that they passed. So while a search goes on, only
//! these numbers are kept; a run that turns out to matter is made again, and written down.

use crate::explore::{Access, Point, Progress, Strategy, TaskPath, Verdict};

/// The run with these picks.
#[derive(Debug)]
pub(crate) struct Again {
    picks: std::vec::IntoIter<u32>,
    progress: Progress,
}

impl Again {
    pub(crate) fn new(picks: Vec<u32>) -> Again {
        Again { picks: picks.into_iter(), progress: Progress::default() }
    }

    /// The next of them; a program that goes another way now may have fewer options.
    fn next(&mut self, count: usize) -> usize {
        self.picks.next().map_or(0, |pick| (pick as usize).min(count - 1))
    }
}

impl Strategy for Again {
    fn begin(&mut self) -> bool {
        self.progress.runs == 0
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        self.next(enabled.len())
    }

    fn pick(&mut self, _: Point, count: usize) -> usize {
        self.next(count)
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

    #[test]
    fn the_picks_are_made_again_as_far_as_they_fit() {
        let mut again = Again::new(vec![1, 2, 3]);
        assert!(again.begin());
        assert_eq!(again.pick_task(&[TaskPath(1), TaskPath(2)]), 1);
        assert_eq!(again.pick(Point::Entropy, 5), 2);
        assert_eq!(again.pick_task(&[TaskPath(1)]), 0);
        assert_eq!(again.pick(Point::Entropy, 5), 0);
        again.end(Verdict::Passed);
        assert!(!again.begin());
    }
}
