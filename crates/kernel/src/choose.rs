//! The oracle for all free choices.
//!
//! Choices that the laws leave open (a tie, the start of a steal scan, the virtual worker that
//! steps) are made by a [`Choose`]. Production passes [`First`], which compiles away; exploration
//! passes a random, systematic or replaying oracle. It is not called for fewer than two options.

use crate::rng::DetRng;
use alloc::vec::Vec;

/// A point of choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// The virtual worker that takes the next step.
    Worker,
    /// The entry to run among equals in this worker's local ready lane.
    ReadyTie(usize),
    /// The worker at which this worker's steal scan starts.
    StealStart(usize),
}

/// An oracle for free choices.
pub trait Choose {
    /// Chooses one of `count` options and returns its index. Called only with `count >= 2`.
    fn choose(&mut self, point: Point, count: usize) -> usize;

    /// Calls [`choose`](Choose::choose) only if there is a choice. A result out of range means the
    /// last option.
    fn pick(&mut self, point: Point, count: usize) -> usize {
        if count < 2 { 0 } else { self.choose(point, count).min(count - 1) }
    }
}

/// Always chooses the first option: FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub struct First;

impl Choose for First {
    fn choose(&mut self, _: Point, _: usize) -> usize {
        0
    }
}

/// Chooses pseudo-randomly from a seed. Each worker has a separate stream, and so has the choice of
/// the worker.
///
/// ```
/// use asx_kernel::choose::{Choose, Point, Seeded};
/// let (mut a, mut b) = (Seeded::new(7, 2), Seeded::new(7, 2));
/// assert_eq!(a.pick(Point::StealStart(1), 5), b.pick(Point::StealStart(1), 5));
/// ```
#[derive(Clone, Debug)]
pub struct Seeded {
    workers: Vec<DetRng>,
    host: DetRng,
}

impl Seeded {
    /// Creates the streams of `workers` workers for a seed.
    pub fn new(seed: u64, workers: usize) -> Seeded {
        let workers = (0..workers as u64).map(|worker| DetRng::new(seed, worker)).collect();
        Seeded { workers, host: DetRng::new(seed, u64::MAX) }
    }
}

impl Choose for Seeded {
    fn choose(&mut self, point: Point, count: usize) -> usize {
        let stream = match point {
            Point::Worker => None,
            Point::ReadyTie(worker) | Point::StealStart(worker) => self.workers.get_mut(worker),
        };
        stream.unwrap_or(&mut self.host).below(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wild(usize);
    impl Choose for Wild {
        fn choose(&mut self, _: Point, _: usize) -> usize {
            self.0 += 1;
            usize::MAX
        }
    }

    #[test]
    fn pick_chooses_only_between_several_options_and_clamps() {
        let mut wild = Wild(0);
        assert_eq!((wild.pick(Point::Worker, 0), wild.pick(Point::Worker, 1), wild.0), (0, 0, 0));
        assert_eq!((wild.pick(Point::ReadyTie(0), 3), wild.0), (2, 1));
        assert_eq!((wild.pick(Point::Worker, 2), wild.0), (1, 2));
        assert_eq!(First.pick(Point::StealStart(0), 9), 0);
    }

    #[test]
    fn each_worker_draws_from_a_separate_stream() {
        let mut oracle = Seeded::new(5, 3);
        let mut of = |point, worker| {
            let expected = (DetRng::new(5, worker).next_u64() % 1000) as usize;
            assert_eq!(oracle.pick(point, 1000), expected, "{point:?}");
        };
        of(Point::ReadyTie(0), 0);
        of(Point::StealStart(2), 2);
        of(Point::ReadyTie(1), 1);
        of(Point::Worker, u64::MAX);
    }

    #[test]
    fn an_unknown_worker_shares_the_host_stream() {
        let mut oracle = Seeded::new(5, 1);
        let mut host = DetRng::new(5, u64::MAX);
        assert_eq!(oracle.pick(Point::ReadyTie(9), 1000), host.below(1000));
        assert_eq!(oracle.pick(Point::Worker, 1000), host.below(1000));
    }
}
