//! A lane ordered by priority: 256 FIFO lists and a bitmap of the lists in use.
//!
//! The lists are linked through the owner's slots, so every operation is O(1) and entries need no
//! allocation.

use super::{Link, NIL, Priority};
use crate::named::ensure;
use alloc::boxed::Box;
use core::iter;

const LEVELS: usize = 256;

/// One FIFO list.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    head: u32,
    tail: u32,
    len: u32,
}

impl Bucket {
    fn iter(self, links: &[Link]) -> impl Iterator<Item = u32> {
        let follow = |slot: u32| (slot != NIL).then_some(slot);
        iter::successors(follow(self.head), move |slot| follow(links[*slot as usize].next))
    }
}

const EMPTY: Bucket = Bucket { head: NIL, tail: NIL, len: 0 };

/// Slots ordered by (priority descending, insertion).
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    buckets: Box<[Bucket; LEVELS]>,
    occupied: [u64; LEVELS / 64],
}

impl Buckets {
    pub(super) fn new() -> Buckets {
        Buckets { buckets: Box::new([EMPTY; LEVELS]), occupied: [0; LEVELS / 64] }
    }

    /// Appends a slot to the list of its priority.
    pub(super) fn push(&mut self, links: &mut [Link], slot: u32, priority: Priority) {
        let bucket = &mut self.buckets[priority.0 as usize];
        links[slot as usize] = Link { prev: bucket.tail, next: NIL };
        match bucket.tail {
            NIL => bucket.head = slot,
            tail => links[tail as usize].next = slot,
        }
        bucket.tail = slot;
        self.occupied[priority.0 as usize / 64] |= 1 << (priority.0 % 64);
        bucket.len += 1;
    }

    /// Inserts a slot into the list of its priority, after the last slot that precedes it.
    pub(super) fn insert(
        &mut self,
        links: &mut [Link],
        slot: u32,
        priority: Priority,
        goes_first: impl Fn(u32) -> bool,
    ) {
        self.push(links, slot, priority);
        let bucket = &mut self.buckets[priority.0 as usize];
        let old_tail = links[slot as usize].prev;
        let mut prev = old_tail;
        while prev != NIL && !goes_first(prev) {
            prev = links[prev as usize].prev;
        }
        if prev == old_tail {
            return;
        }
        links[old_tail as usize].next = NIL;
        bucket.tail = old_tail;
        let next = match prev {
            NIL => core::mem::replace(&mut bucket.head, slot),
            prev => core::mem::replace(&mut links[prev as usize].next, slot),
        };
        links[slot as usize] = Link { prev, next };
        links[next as usize].prev = slot;
    }

    /// Removes a slot from the list of its priority.
    pub(super) fn remove(&mut self, links: &mut [Link], slot: u32, priority: Priority) {
        let bucket = &mut self.buckets[priority.0 as usize];
        let Link { prev, next } = links[slot as usize];
        match prev {
            NIL => bucket.head = next,
            prev => links[prev as usize].next = next,
        }
        match next {
            NIL => bucket.tail = prev,
            next => links[next as usize].prev = prev,
        }
        bucket.len -= 1;
        if bucket.len == 0 {
            self.occupied[priority.0 as usize / 64] &= !(1 << (priority.0 % 64));
        }
    }

    /// Returns the first slot.
    pub(super) fn first(&self) -> Option<u32> {
        self.top().map(|bucket| bucket.head)
    }

    /// Returns the number of slots that share the highest priority.
    pub(super) fn tied(&self) -> usize {
        self.top().map_or(0, |bucket| bucket.len as usize)
    }

    /// Returns the n-th slot of those that share the highest priority.
    pub(super) fn nth_tied(&self, links: &[Link], n: usize) -> Option<u32> {
        self.top().and_then(|bucket| bucket.iter(links).nth(n))
    }

    /// Iterates over all slots in order.
    pub(super) fn iter(&self, links: &[Link]) -> impl Iterator<Item = u32> {
        self.levels().flat_map(move |level| self.buckets[level].iter(links))
    }

    /// Checks the lists, their lengths and the bitmap. Returns the number of slots in the lists.
    pub(super) fn check(&self, links: &[Link]) -> Result<usize, &'static str> {
        let mut len = 0;
        for (level, bucket) in self.buckets.iter().enumerate() {
            let mut slot = bucket.head;
            let mut prev = NIL;
            let mut count = 0;
            while slot != NIL && count <= bucket.len {
                ensure(links[slot as usize].prev == prev, "a list's links disagree")?;
                (prev, slot, count) = (slot, links[slot as usize].next, count + 1);
            }
            let whole = prev == bucket.tail && count == bucket.len;
            ensure(whole, "a list's end or length is wrong")?;
            let bit = (self.occupied[level / 64] >> (level % 64)) & 1;
            ensure(bit == u64::from(count > 0), "the bitmap disagrees with a list")?;
            len += count as usize;
        }
        Ok(len)
    }

    /// Iterates over the first slot of each used priority, highest first.
    pub(super) fn heads(&self) -> impl Iterator<Item = u32> {
        self.levels().map(|level| self.buckets[level].head)
    }

    fn top(&self) -> Option<&Bucket> {
        self.levels().next().map(|level| &self.buckets[level])
    }

    /// Iterates over the used priorities, highest first.
    fn levels(&self) -> impl Iterator<Item = usize> {
        iter::successors(self.below(LEVELS), |level| self.below(*level))
    }

    /// Returns the highest used priority below `end`.
    fn below(&self, end: usize) -> Option<usize> {
        let mut word = end / 64;
        let mut bits = self.occupied.get(word).map_or(0, |bits| bits & !(!0 << (end % 64)));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.occupied[word];
        }
        Some(word * 64 + bits.ilog2() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn filled(priorities: &[u8]) -> (Buckets, Vec<Link>) {
        let mut links = vec![Link { prev: NIL, next: NIL }; priorities.len()];
        let mut lane = Buckets::new();
        for (slot, priority) in priorities.iter().enumerate() {
            lane.push(&mut links, slot as u32, Priority(*priority));
        }
        (lane, links)
    }

    #[test]
    fn highest_priority_first_then_insertion_across_bitmap_words() {
        let (lane, links) = filled(&[0, 255, 63, 64, 128, 255, 0, 127, 192, 191]);
        let order: Vec<_> = lane.iter(&links).collect();
        assert_eq!(order, [1, 5, 8, 9, 4, 7, 3, 2, 0, 6]);
        assert_eq!((lane.first(), lane.tied(), lane.check(&links)), (Some(1), 2, Ok(10)));
        assert_eq!((Buckets::new().first(), Buckets::new().tied()), (None, 0));
    }

    #[test]
    fn removal_at_either_end_and_in_the_middle_keeps_the_rest() {
        for gone in 0..4 {
            let (mut lane, mut links) = filled(&[9, 9, 9, 9]);
            lane.remove(&mut links, gone, Priority(9));
            let left: Vec<_> = (0..4).filter(|slot| *slot != gone).collect();
            assert_eq!(lane.iter(&links).collect::<Vec<_>>(), left);
            assert_eq!((lane.tied(), lane.check(&links)), (3, Ok(3)));
            for (gone, slot) in left.into_iter().enumerate() {
                lane.remove(&mut links, slot, Priority(9));
                assert_eq!(lane.check(&links), Ok(2 - gone));
            }
            assert_eq!(lane.first(), None);
        }
    }

    #[test]
    fn check_reports_the_broken_rule() {
        let broken = |harm: fn(&mut Buckets, &mut Vec<Link>)| {
            let (mut lane, mut links) = filled(&[7, 7, 200]);
            harm(&mut lane, &mut links);
            lane.check(&links)
        };
        assert_eq!(broken(|_, links| links[1].prev = 2), Err("a list's links disagree"));
        let end = Err("a list's end or length is wrong");
        assert_eq!(broken(|lane, _| lane.buckets[7].tail = 0), end);
        assert_eq!(broken(|lane, _| lane.buckets[7].len = 1), end);
        assert_eq!(broken(|lane, _| lane.buckets[7].len = 3), end);
        assert_eq!(broken(|_, links| links[1].next = 0), Err("a list's links disagree"));
        let bitmap = Err("the bitmap disagrees with a list");
        assert_eq!(broken(|lane, _| lane.occupied[0] = 0), bitmap);
        assert_eq!(broken(|lane, _| lane.occupied[3] |= 1), bitmap);
    }
}
