//! A queue with so little code that it is inlined also where a page is optimised for size.
//!
//! The number of places is a power of two, and the numbers of entries only grow (and wrap around).
//! Entry `n` is in place `n` modulo the number of places. A place without an entry is `None`.

/// A queue that grows and never shrinks.
pub(crate) struct Ring<T> {
    places: Vec<Option<T>>,
    /// The number of the next entry to be taken, and of the next to be put in.
    first: usize,
    next: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { places: Vec::new(), first: 0, next: 0 }
    }
}

impl<T> Ring<T> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.next.wrapping_sub(self.first)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.next
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, entry: T) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let at = self.place(self.next);
        // The place exists. `get_mut` links less code than the panic of an index.
        if let Some(place) = self.places.get_mut(at) {
            *place = Some(entry);
            self.next = self.next.wrapping_add(1);
        }
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let at = self.place(self.first);
        let entry = self.places.get_mut(at)?.take()?;
        self.first = self.first.wrapping_add(1);
        Some(entry)
    }

    /// The entries, in the order of [`pop`](Ring::pop).
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let numbers = (0..self.len()).map(|n| self.first.wrapping_add(n));
        numbers.filter_map(|number| self.places.get(self.place(number))?.as_ref())
    }

    /// The index of an entry's place, out of bounds if there are no places.
    #[inline(always)]
    fn place(&self, number: usize) -> usize {
        number & self.places.len().wrapping_sub(1)
    }

    /// Doubles the places. All are taken.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let before = self.places.len();
        self.places.resize_with((2 * before).max(4), || None);
        // About half of the entries move.
        for number in (0..before).map(|n| self.first.wrapping_add(n)) {
            let from = number & (before - 1);
            let to = self.place(number);
            self.places.swap(from, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Also where the numbers wrap around.
    #[test]
    fn a_ring_is_a_queue() {
        for start in [0, usize::MAX - 5] {
            let mut ring: Ring<u32> = Ring { places: Vec::new(), first: start, next: start };
            let mut queue = VecDeque::new();
            let mut rng = asx_kernel::rng::DetRng::new(7, 0);
            for n in 0..4000 {
                // Grows, empties, and grows again.
                let more = if n / 500 % 2 == 0 { 5 } else { 2 };
                if rng.next_u64() % 8 < more {
                    ring.push(n);
                    queue.push_back(n);
                } else {
                    assert_eq!(ring.pop(), queue.pop_front());
                }
                assert_eq!((ring.len(), ring.is_empty()), (queue.len(), queue.is_empty()));
                assert!(n % 64 > 0 || ring.iter().eq(&queue));
            }
            assert!(queue.into_iter().all(|entry| ring.pop() == Some(entry)));
            assert_eq!((ring.pop(), ring.len()), (None, 0));
        }
    }
}
