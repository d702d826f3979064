//! What waits in lanes: the kernel's, and a line for what is plain.
//!
//! Nearly all that is woken by timers or from outside is ready at the usual priority. Among
//! themselves such entries go first in, first out, so that a line does for them; a lane has to find
//! each one's place among all.

use std::collections::VecDeque;

use asx_kernel::lanes::{Lane, Lanes, Place, Priority, Token};

/// The usual place.
pub(crate) const PLAIN: Place = Place::ready(Priority::DEFAULT);

/// Whether an entry of the usual priority does not go before one at this place.
pub(crate) fn leads(place: Place) -> bool {
    place.lane() == Lane::Ready && place.priority() >= Priority::DEFAULT
}

pub(crate) struct LaneQueue<T> {
    lanes: Lanes<T>,
    /// All entries at the usual place, if they stand in line; none of them is pinned.
    line: Option<VecDeque<T>>,
    /// Where the entry that was added first is sought next: in the lanes, or in line.
    line_next: bool,
    /// Equal entries are ordered by their words, not by insertion.
    by_word: bool,
}

impl<T> Default for LaneQueue<T> {
    fn default() -> Self {
        LaneQueue { lanes: Lanes::default(), line: None, line_next: false, by_word: false }
    }
}

impl<T> LaneQueue<T> {
    /// Plain entries stand in line. None will be pinned.
    pub(crate) fn in_line() -> LaneQueue<T> {
        LaneQueue { line: Some(VecDeque::new()), ..LaneQueue::default() }
    }

    /// What does not stand in line.
    pub(crate) fn lanes(&self) -> &Lanes<T> {
        &self.lanes
    }

    pub(crate) fn lanes_mut(&mut self) -> &mut Lanes<T> {
        &mut self.lanes
    }

    /// Orders equal entries by their words from now on. Nothing waits yet.
    pub(crate) fn order_by_word(&mut self) {
        (self.line, self.by_word) = (None, true);
    }

    pub(crate) fn push(&mut self, place: Place, entry: T, pinned: bool)
    where
        T: Token,
    {
        match &mut self.line {
            Some(line) if place == PLAIN => line.push_back(entry),
            _ if self.by_word => drop(self.lanes.push_by_word(place, entry, pinned)),
            _ => drop(self.lanes.push(place, entry, pinned)),
        }
    }

    pub(crate) fn len(&self, lane: Lane) -> usize {
        self.lanes.len(lane) + self.waiting_in_line(lane)
    }

    pub(crate) fn stealable(&self, lane: Lane) -> usize {
        self.lanes.stealable(lane) + self.waiting_in_line(lane)
    }

    fn waiting_in_line(&self, lane: Lane) -> usize {
        let line = self.line.as_ref().filter(|_| lane == Lane::Ready);
        line.map_or(0, VecDeque::len)
    }

    pub(crate) fn pop(&mut self, lane: Lane) -> Option<(Place, T)> {
        self.next_in_line(lane).or_else(|| self.lanes.pop(lane))
    }

    /// Whether ready entries of more than one priority wait.
    pub(crate) fn is_mixed(&self) -> bool {
        let in_line = self.waiting_in_line(Lane::Ready) > 0;
        self.lanes.is_mixed() || (in_line && self.lanes.len(Lane::Ready) > 0)
    }

    /// Takes a ready entry that others go before: the one that was added first in the lanes, or the
    /// first in line. These two take turns where both are passed by higher priorities: nobody knows
    /// which of them is older.
    pub(crate) fn pop_oldest(&mut self) -> Option<(Place, T)> {
        let line_next = if self.lanes.is_mixed() {
            self.line_next = !self.line_next;
            self.line_next
        } else {
            self.lanes.peek(Lane::Ready).is_some_and(leads)
        };
        let line = self.line.as_mut();
        let first = || line.and_then(VecDeque::pop_front).map(|entry| (PLAIN, entry));
        if line_next {
            first().or_else(|| self.lanes.pop_oldest())
        } else {
            self.lanes.pop_oldest().or_else(first)
        }
    }

    pub(crate) fn steal_from(&mut self, lane: Lane) -> Option<(Place, T)> {
        self.next_in_line(lane).or_else(|| self.lanes.steal_from(lane))
    }

    /// The first in line, unless an entry of the lane goes before it.
    fn next_in_line(&mut self, lane: Lane) -> Option<(Place, T)> {
        let line = self.line.as_mut().filter(|_| lane == Lane::Ready)?;
        if self.lanes.peek(lane).is_some_and(leads) {
            return None;
        }
        line.pop_front().map(|entry| (PLAIN, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx_kernel::rng::DetRng;
    use asx_kernel::time::Time;

    /// Any place; the usual one more often than others.
    fn place(rng: &mut DetRng) -> Place {
        let near = Priority(Priority::DEFAULT.0 - 1 + rng.below(3) as u8);
        match rng.below(6) {
            0 => Place::cancel(near),
            1 => Place::timed(Time::from_nanos(rng.below(4) as u64)),
            2 => Place::ready(near),
            _ => PLAIN,
        }
    }

    #[test]
    fn a_line_goes_as_the_lanes_would() {
        for seed in 0..200 {
            let mut rng = DetRng::new(seed, 0);
            let mut lanes = Lanes::default();
            let mut waiting = LaneQueue::in_line();
            for n in 0..400_u64 {
                let lane = Lane::ALL[rng.below(3)];
                match rng.below(9) {
                    0..4 => {
                        let place = place(&mut rng);
                        lanes.push(place, n, false);
                        waiting.push(place, n, false);
                    }
                    4..8 => assert_eq!(waiting.pop(lane), lanes.pop(lane)),
                    _ => assert_eq!(waiting.steal_from(lane), lanes.steal_from(lane)),
                }
                for lane in Lane::ALL {
                    assert_eq!(waiting.len(lane), lanes.len(lane));
                    assert_eq!(waiting.stealable(lane), lanes.stealable(lane));
                }
            }
            assert!(lanes.len(Lane::Ready) > 0, "the line was long enough to be tested");
        }
    }
}
