//! Random walks: every option is as likely as any other.
//!
//! Each run draws from a stream of its own, made of the seed and the number of the run. Injected
//! disturbances (cancels, faults) are the exception: about one in a run, wherever there is room for
//! one, because a run that is disturbed everywhere does little of what it is for. Of faults of the
//! network, which come in groups, there are about one, two and four in turns. In one run of four,
//! half of the draws from many numbers are one of the two at the edges.
//!
//! *Guaranteed*: a schedule with `n` choices of at most `k` options is found with a probability of
//! at least `k^-n` by each run.

use super::{Access, Point, Progress, Strategy, TaskPath, Verdict};
use asx_kernel::rng::DetRng;

/// Random walks. See the [table](super) for when to use it.
///
/// ```
/// use asx::lab::explore::{Access, Random, Strategy, TaskPath, Verdict};
/// let mut strategy = Random::new(7);
/// assert!(strategy.begin());
/// let picked = strategy.pick_task(&[TaskPath(1), TaskPath(2)]);
/// strategy.stepped(TaskPath(picked as u64 + 1), &[Access::read(9)]);
/// strategy.end(Verdict::Passed);
/// assert_eq!(strategy.progress().runs, 1);
/// ```
#[derive(Debug)]
pub struct Random {
    dice: Dice,
    /// The product of the options in this run, and the sum of the products: the mean estimates the
    /// number of schedules (Knuth).
    options: f64,
    sum: f64,
    progress: Progress,
}

impl Random {
    /// The walks of a seed.
    pub fn new(seed: u64) -> Random {
        Random { dice: Dice::new(seed), options: 1.0, sum: 0.0, progress: Progress::default() }
    }

    /// The same with about so many cancels and faults in a run, wherever there is room for them;
    /// one unless set.
    pub fn disturbing(self, times: usize) -> Random {
        Random { dice: self.dice.disturbing(times), ..self }
    }
}

impl Strategy for Random {
    fn begin(&mut self) -> bool {
        self.dice.begin();
        self.options = 1.0;
        true
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        self.options *= enabled.len() as f64;
        self.dice.rng.below(enabled.len())
    }

    fn pick_next(&mut self, enabled: &[TaskPath], _: usize) -> usize {
        self.pick_task(enabled)
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        self.options *= count as f64;
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
        self.sum += self.options;
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        let expected = (self.progress.runs > 0).then(|| self.sum / self.progress.runs as f64);
        Progress { expected, ..self.progress }
    }
}

/// Of so many numbers each is drawn often enough.
const FEW: usize = 64;

/// In one run of so many the edges of draws are tried.
const EDGES: u64 = 4;

/// The draws of one run after another.
#[derive(Debug)]
pub(super) struct Dice {
    seed: u64,
    run: u64,
    pub(super) rng: DetRng,
    /// How many disturbances were possible in this run, and how many usually are.
    room: usize,
    usual: usize,
    /// How many there are to be in a run.
    wanted: usize,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice { seed, run: 0, rng: DetRng::new(seed, 0), room: 0, usual: 4, wanted: 1 }
    }

    /// The same with about so many disturbances in a run.
    pub(super) fn disturbing(self, times: usize) -> Dice {
        Dice { wanted: times, ..self }
    }

    pub(super) fn begin(&mut self) {
        self.run += 1;
        self.rng = DetRng::new(self.seed, self.run);
        self.room = 0;
    }

    pub(super) fn pick(&mut self, point: Point, count: usize) -> usize {
        if let Some(edge) = self.edge(point, count) {
            return edge;
        }
        if !point.is_injected() {
            return self.rng.below(count);
        }
        self.room += 1;
        let expected = match point {
            Point::Network if self.wanted == 1 => 1 << (self.run % 3),
            _ => self.wanted,
        };
        let is_spared = self.rng.below(self.usual + 1) >= expected;
        if is_spared { 0 } else { 1 + self.rng.below(count - 1) }
    }

    /// The option at an edge of a draw from many numbers, in some runs: few of the others would
    /// come upon it.
    fn edge(&mut self, point: Point, count: usize) -> Option<usize> {
        let edges = match point {
            Point::Draw => [1, 2],
            Point::Entropy if count > FEW => [0, count - 1],
            _ => return None,
        };
        let is_tried = self.run.is_multiple_of(EDGES) && self.rng.below(2) == 0;
        is_tried.then(|| edges[self.rng.below(2)])
    }

    pub(super) fn end(&mut self) {
        self.usual = (self.usual + self.room).div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_about_as_many_disturbances_as_are_wanted() {
        for wanted in 1..=4 {
            let mut random = Random::new(5).disturbing(wanted);
            let mut made = 0;
            for run in 0..2000 {
                assert!(random.begin());
                let picks = (0..40).filter(|_| random.pick(Point::Cancel, 3) > 0).count();
                // How much room there is in a run is learnt in the first few.
                made += if run < 10 { 0 } else { picks };
                random.end(Verdict::Passed);
            }
            let mean = made as f64 / 1990.0;
            let expected = wanted as f64;
            assert!((mean - expected).abs() < 0.2 * expected, "{mean} of {wanted}");
        }
    }
}
