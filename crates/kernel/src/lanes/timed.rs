//! The lane ordered by deadline: a 4-ary heap that knows where each slot stands.
//!
//! Keys are kept in the heap itself, so that comparing follows no pointer; the position of a slot
//! is kept in its link (the `prev` half), so that any entry can be taken out in O(log n).

use super::Link;
use crate::time::Time;
use alloc::vec::Vec;

const ARITY: usize = 4;

/// Deadline, insertion sequence, slot. The first two order.
#[derive(Clone, Copy, Debug)]
struct Item {
    deadline: Time,
    seq: u64,
    slot: u32,
}

impl Item {
    fn key(&self) -> u128 {
        (self.deadline.as_nanos() as u128) << 64 | self.seq as u128
    }
}

/// Slots by (deadline, insertion sequence).
#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines {
    heap: Vec<Item>,
}

impl Deadlines {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Adds a slot.
    pub(super) fn push(&mut self, links: &mut [Link], slot: u32, deadline: Time, seq: u64) {
        let item = Item { deadline, seq, slot };
        self.heap.push(item);
        self.rise(links, self.heap.len() - 1, item);
    }

    /// Takes a slot out.
    pub(super) fn remove(&mut self, links: &mut [Link], slot: u32) {
        let at = links[slot as usize].prev as usize;
        let Some(last) = self.heap.pop() else { return };
        if at == self.heap.len() {
            return;
        }
        // The last item fills the hole. It mostly belongs near the leaves, so the hole goes all the
        // way down and the item rises from there, above the old hole if need be.
        let leaf = self.sink(links, at);
        self.rise(links, leaf, last);
    }

    /// The slot that goes first.
    pub(super) fn first(&self) -> Option<u32> {
        self.heap.first().map(|item| item.slot)
    }

    /// The first slot in order among those accepted; looks at every slot.
    pub(super) fn first_where(&self, accept: impl Fn(u32) -> bool) -> Option<u32> {
        let accepted = self.heap.iter().filter(|item| accept(item.slot));
        accepted.min_by_key(|item| item.key()).map(|item| item.slot)
    }

    /// All slots in order; sorts a copy.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let mut items = self.heap.clone();
        items.sort_unstable_by_key(Item::key);
        items.iter().map(|item| item.slot).collect()
    }

    /// Whether the heap is one and every slot knows its position.
    pub(super) fn check(&self, links: &[Link]) -> Result<(), &'static str> {
        for (at, item) in self.heap.iter().enumerate() {
            if at > 0 && self.heap[(at - 1) / ARITY].key() >= item.key() {
                return Err("the timed lane is no heap");
            }
            if links[item.slot as usize].prev as usize != at {
                return Err("a timed entry's position is wrong");
            }
        }
        Ok(())
    }

    /// Moves the hole at `at` up until `item` fits, and puts `item` there.
    fn rise(&mut self, links: &mut [Link], mut at: usize, item: Item) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].key() < item.key() {
                break;
            }
            self.put(links, at, self.heap[parent]);
            at = parent;
        }
        self.put(links, at, item);
    }

    /// Moves the hole at `at` down to a leaf.
    fn sink(&mut self, links: &mut [Link], mut at: usize) -> usize {
        loop {
            let start = at * ARITY + 1;
            let end = (start + ARITY).min(self.heap.len());
            let Some(child) = (start..end).min_by_key(|child| self.heap[*child].key()) else {
                return at;
            };
            self.put(links, at, self.heap[child]);
            at = child;
        }
    }

    fn put(&mut self, links: &mut [Link], at: usize, item: Item) {
        self.heap[at] = item;
        links[item.slot as usize].prev = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::DetRng;
    use std::vec;

    fn filled(deadlines: &[u64]) -> (Deadlines, Vec<Link>) {
        let mut links = vec![Link { prev: 77, next: 77 }; deadlines.len()];
        let mut lane = Deadlines::default();
        for (slot, at) in deadlines.iter().enumerate() {
            lane.push(&mut links, slot as u32, Time::from_nanos(*at), slot as u64);
            assert_eq!(lane.check(&links), Ok(()));
        }
        (lane, links)
    }

    #[test]
    fn earliest_deadline_first_then_insertion() {
        let (mut lane, mut links) = filled(&[5, 3, 5, 1, u64::MAX, 3, 0, 1]);
        let order = [6, 3, 7, 1, 5, 0, 2, 4];
        assert_eq!(lane.sorted(), order);
        for (gone, slot) in order.into_iter().enumerate() {
            assert_eq!((lane.first(), lane.len()), (Some(slot), 8 - gone));
            lane.remove(&mut links, slot);
        }
        assert_eq!((lane.first(), lane.len()), (None, 0));
        assert_eq!(lane.first_where(|_| true), None);
    }

    #[test]
    fn any_slot_can_be_taken_out_of_a_heap_of_any_shape() {
        let mut rng = DetRng::new(1, 0);
        for len in 1..40 {
            let deadlines: Vec<u64> = (0..len).map(|_| rng.next_u64() % 12).collect();
            for gone in 0..len as u32 {
                let (mut lane, mut links) = filled(&deadlines);
                let mut left = lane.sorted();
                left.retain(|slot| *slot != gone);
                lane.remove(&mut links, gone);
                assert_eq!(lane.check(&links), Ok(()));
                assert_eq!(lane.sorted(), left);
                let odd = left.iter().find(|slot| **slot % 2 == 1);
                assert_eq!(lane.first_where(|slot| slot % 2 == 1), odd.copied());
            }
        }
    }

    #[test]
    fn check_names_what_is_broken() {
        let (mut lane, mut links) = filled(&[1, 2, 3]);
        links[2].prev = 1;
        assert_eq!(lane.check(&links), Err("a timed entry's position is wrong"));
        lane.heap[2].deadline = Time::ZERO;
        assert_eq!(lane.check(&links), Err("the timed lane is no heap"));
    }
}
