//! The one oracle behind every free choice.
//!
//! Whatever the laws leave open (a tie, where a steal scan starts, which virtual worker steps) is
//! asked of a [`Choose`]. Production passes [`First`], which compiles away; exploration passes a
//! random, systematic or replaying one. Nothing is asked when there are fewer than two choices.

use crate::rng::DetRng;

/// What is being chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// Which virtual worker takes the next step.
    Worker,
    /// Which of several equal entries of the local ready lane runs.
    ReadyTie,
    /// At which other worker a steal scan starts.
    StealStart,
}

/// An oracle for free choices.
pub trait Choose {
    /// Picks one of `count` options; the answer is less than `count`. Called with `count >= 2` only.
    fn choose(&mut self, point: Point, count: usize) -> usize;

    /// Asks [`choose`](Choose::choose) only when there is a choice; an answer out of range counts
    /// as the last option.
    fn pick(&mut self, point: Point, count: usize) -> usize {
        if count < 2 { 0 } else { self.choose(point, count).min(count - 1) }
    }
}

/// Always the first option: FIFO.
#[derive(Clone, Copy, Debug, Default)]
pub struct First;

impl Choose for First {
    fn choose(&mut self, _: Point, _: usize) -> usize {
        0
    }
}

impl Choose for DetRng {
    fn choose(&mut self, _: Point, count: usize) -> usize {
        self.below(count)
    }
}

impl<C: Choose + ?Sized> Choose for &mut C {
    fn choose(&mut self, point: Point, count: usize) -> usize {
        (**self).choose(point, count)
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
    fn pick_asks_only_for_real_choices_and_clamps() {
        let mut wild = Wild(0);
        assert_eq!((wild.pick(Point::Worker, 0), wild.pick(Point::Worker, 1), wild.0), (0, 0, 0));
        assert_eq!(((&mut wild).pick(Point::ReadyTie, 3), wild.0), (2, 1));
        assert_eq!(First.pick(Point::StealStart, 9), 0);
    }

    #[test]
    fn a_generator_chooses_by_remainder() {
        let mut oracle = DetRng::new(5, 2);
        let mut twin = DetRng::new(5, 2);
        assert_eq!(oracle.pick(Point::ReadyTie, 7), (twin.next_u64() % 7) as usize);
    }
}
