//! The wheel's invariants, checked on a state.

use super::level::SLOTS;
use super::queue::Queue;
use super::slab::{ANCHOR, Link, NIL};
use super::{LEVELS, NEAR, OVERFLOW, Wheel, unit};

/// Answers with what is wrong unless the condition holds.
fn ensure(holds: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(otherwise) }
}

impl<T> Wheel<T> {
    /// Checks that every live timer has exactly one entry, in the place its deadline calls for,
    /// that bitmaps, minima and heaps are consistent, and that nothing dead is kept linked.
    pub fn check(&self) -> Result<(), &'static str> {
        let live = self.slab.bodies.iter().filter(|body| body.token.is_some()).count();
        ensure(live == self.len(), "the active count is not the number of live entries")?;
        let free = self.slab.bodies.len() - live;
        ensure(self.slab.free_len() == free, "the free list is not all of the dead entries")?;
        ensure(live > 0 || self.storage() == 0, "storage is kept without a live timer")?;
        ensure(live <= self.config.limit, "more timers live than the limit allows")?;
        self.check_queue(&self.near, NEAR)?;
        self.check_queue(&self.overflow, OVERFLOW)?;
        let mut linked = self.near.nodes().len() + self.overflow.nodes().len();
        for level in 0..LEVELS {
            for slot in 0..SLOTS as usize {
                linked += self.check_slot(level, slot)?;
            }
        }
        ensure(linked == live, "a live timer is linked nowhere")?;
        let group = self.near.first().is_some_and(|first| first.deadline <= self.group_end);
        ensure(self.group_end == 0 || group, "a group outlives its members")
    }

    fn check_queue(&self, queue: &Queue, place: u32) -> Result<(), &'static str> {
        let nodes = queue.nodes();
        for (position, node) in nodes.iter().enumerate() {
            let body = self.slab.get(node.at).ok_or("a dead entry is in a heap")?;
            ensure(body.deadline == node.deadline, "a heap node is not its entry's")?;
            let link = Link::anchored(place, position as u32);
            ensure(self.slab.link(node.at) == link, "a heap position is wrong")?;
            ensure(nodes[position.saturating_sub(1) / 2] <= *node, "a heap is out of order")?;
            let near = node.deadline <= self.near_end;
            ensure(near == (place == NEAR), "a timer is in the wrong heap")?;
            let far = node.deadline.saturating_sub(self.now) >= self.horizon;
            ensure(near || far, "an overflow timer in range was not promoted")?;
        }
        Ok(())
    }

    /// How many entries the slot has.
    fn check_slot(&self, level: usize, slot: usize) -> Result<usize, &'static str> {
        let lists = &self.levels[level];
        let list = lists.slots[slot];
        let bit = lists.occupied[slot / 64] >> (slot % 64) & 1 == 1;
        let place = (level * SLOTS as usize + slot) as u32;
        let (mut count, mut prev) = (0, ANCHOR + place);
        for (deadline, at) in lists.walk(slot, &self.slab) {
            ensure(self.slab.link(at).prev == prev, "a list is not linked back")?;
            let ahead = unit(deadline, level).saturating_sub(unit(self.now, level));
            ensure((1..=SLOTS).contains(&ahead), "a slot holds another turn's timer")?;
            let own = unit(deadline, level) % SLOTS == slot as u64;
            ensure(own && deadline > self.near_end, "a timer is in the wrong slot")?;
            ensure(list.min <= deadline, "a slot's minimum is too late")?;
            (count, prev) = (count + 1, at);
        }
        ensure(bit == (count > 0), "the bitmap does not tell the occupied slots")?;
        ensure(bit == (list.head != NIL), "a list starts with a dead entry")?;
        Ok(count)
    }
}
