//! Entries waiting in lanes: the kernel's lanes, and a FIFO for ready entries at the default
//! priority.
//!
//! Nearly all entries from timers or other threads are ready at the default priority. Among each
//! other they are dispatched in FIFO order, so a `VecDeque` suffices. An insertion into a lane has
//! to find the position among all entries.

use std::collections::VecDeque;

use asx_kernel::lanes::{Lane, Lanes, Place, Priority, Token};

/// The place of ready entries at the default priority.
pub(crate) const DEFAULT_PLACE: Place = Place::ready(Priority::DEFAULT);

/// Returns true if an entry at this place is dispatched before or with those at the default place.
pub(crate) fn precedes_default(place: Place) -> bool {
    place.lane() == Lane::Ready && place.priority() >= Priority::DEFAULT
}

pub(crate) struct LaneQueue<T> {
    lanes: Lanes<T>,
    /// All entries at the default place, if the FIFO is enabled; none of them is pinned.
    fifo: Option<VecDeque<T>>,
    /// Whether the oldest entry is taken from the FIFO next, rather than from the lanes.
    fifo_next: bool,
    /// Equal entries are ordered by their words instead of by insertion.
    by_word: bool,
}

impl<T> Default for LaneQueue<T> {
    fn default() -> Self {
        LaneQueue { lanes: Lanes::default(), fifo: None, fifo_next: false, by_word: false }
    }
}

impl<T> LaneQueue<T> {
    /// Creates a queue with a FIFO for the default place. No entry may be pinned.
    pub(crate) fn with_fifo() -> LaneQueue<T> {
        LaneQueue { fifo: Some(VecDeque::new()), ..LaneQueue::default() }
    }

    /// Returns the lanes without the FIFO.
    pub(crate) fn lanes(&self) -> &Lanes<T> {
        &self.lanes
    }

    pub(crate) fn lanes_mut(&mut self) -> &mut Lanes<T> {
        &mut self.lanes
    }

    /// Orders equal entries by their words from now on. The queue must be empty.
    pub(crate) fn order_by_word(&mut self) {
        (self.fifo, self.by_word) = (None, true);
    }

    pub(crate) fn push(&mut self, place: Place, entry: T, pinned: bool)
    where
        T: Token,
    {
        match &mut self.fifo {
            Some(fifo) if place == DEFAULT_PLACE => fifo.push_back(entry),
            _ if self.by_word => drop(self.lanes.push_by_word(place, entry, pinned)),
            _ => drop(self.lanes.push(place, entry, pinned)),
        }
    }

    pub(crate) fn len(&self, lane: Lane) -> usize {
        self.lanes.len(lane) + self.waiting_in_fifo(lane)
    }

    pub(crate) fn stealable(&self, lane: Lane) -> usize {
        self.lanes.stealable(lane) + self.waiting_in_fifo(lane)
    }

    fn waiting_in_fifo(&self, lane: Lane) -> usize {
        let fifo = self.fifo.as_ref().filter(|_| lane == Lane::Ready);
        fifo.map_or(0, VecDeque::len)
    }

    pub(crate) fn pop(&mut self, lane: Lane) -> Option<(Place, T)> {
        self.next_in_fifo(lane).or_else(|| self.lanes.pop(lane))
    }

    /// Returns true if ready entries of more than one priority wait.
    pub(crate) fn is_mixed(&self) -> bool {
        let in_fifo = self.waiting_in_fifo(Lane::Ready) > 0;
        self.lanes.is_mixed() || (in_fifo && self.lanes.len(Lane::Ready) > 0)
    }

    /// Takes a ready entry that others precede: the oldest in the lanes, or the first of the FIFO.
    /// If higher priorities passed both, the two take turns: their relative age is unknown.
    pub(crate) fn pop_oldest(&mut self) -> Option<(Place, T)> {
        let fifo_next = if self.lanes.is_mixed() {
            self.fifo_next = !self.fifo_next;
            self.fifo_next
        } else {
            self.lanes.peek(Lane::Ready).is_some_and(precedes_default)
        };
        let fifo = self.fifo.as_mut();
        let first = || fifo.and_then(VecDeque::pop_front).map(|entry| (DEFAULT_PLACE, entry));
        if fifo_next {
            first().or_else(|| self.lanes.pop_oldest())
        } else {
            self.lanes.pop_oldest().or_else(first)
        }
    }

    pub(crate) fn steal_from(&mut self, lane: Lane) -> Option<(Place, T)> {
        self.next_in_fifo(lane).or_else(|| self.lanes.steal_from(lane))
    }

    /// Takes the first entry of the FIFO, unless an entry of the lane precedes it.
    fn next_in_fifo(&mut self, lane: Lane) -> Option<(Place, T)> {
        let fifo = self.fifo.as_mut().filter(|_| lane == Lane::Ready)?;
        if self.lanes.peek(lane).is_some_and(precedes_default) {
            return None;
        }
        fifo.pop_front().map(|entry| (DEFAULT_PLACE, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx_kernel::rng::DetRng;
    use asx_kernel::time::Time;

    /// A random place, most often the default one.
    fn place(rng: &mut DetRng) -> Place {
        let near = Priority(Priority::DEFAULT.0 - 1 + rng.below(3) as u8);
        match rng.below(6) {
            0 => Place::cancel(near),
            1 => Place::timed(Time::from_nanos(rng.below(4) as u64)),
            2 => Place::ready(near),
            _ => DEFAULT_PLACE,
        }
    }

    #[test]
    fn the_fifo_gives_the_same_order_as_the_lanes() {
        for seed in 0..200 {
            let mut rng = DetRng::new(seed, 0);
            let mut lanes = Lanes::default();
            let mut waiting = LaneQueue::with_fifo();
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
            assert!(lanes.len(Lane::Ready) > 0, "the FIFO was too short to be tested");
        }
    }
}
