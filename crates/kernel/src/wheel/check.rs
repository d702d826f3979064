//! The wheel's invariants, checked on a state.

use super::level::SLOTS;
use super::slab::{ANCHOR, Link, NIL};
use super::{LEVELS, NEAR, OVERFLOW, Wheel, unit};
use crate::named::ensure;
use crate::queue::Queue;

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
        let mut linked = self.near.nodes.len() + self.overflow.nodes.len();
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
        for node in &queue.nodes {
            let body = self.slab.get(node.at).ok_or("a dead entry is in a heap")?;
            ensure(body.deadline == node.deadline, "a heap node is not its entry's")?;
            let near = node.deadline <= self.near_end;
            ensure(near == (place == NEAR), "a timer is in the wrong heap")?;
            let far = node.deadline.saturating_sub(self.now) >= self.horizon;
            ensure(near || far, "an overflow timer in range was not promoted")?;
        }
        queue.check(|at, position| self.slab.link(at) == Link::anchored(place, position))
    }

    /// How many entries the slot has.
    fn check_slot(&self, level: usize, slot: usize) -> Result<usize, &'static str> {
        let place = level * SLOTS as usize + slot;
        let list = self.levels.slots[place];
        let bit = self.levels.occupied[place / 64] >> (place % 64) & 1 == 1;
        if !bit && list.head == NIL {
            return Ok(0);
        }
        let (mut count, mut prev) = (0, ANCHOR + place as u32);
        for (deadline, at) in self.levels.walk(place, &self.slab) {
            ensure(self.slab.link(at).prev == prev, "a list is not linked back")?;
            let ahead = unit(deadline, level).saturating_sub(unit(self.now, level));
            ensure((1..=SLOTS).contains(&ahead), "a slot holds another turn's timer")?;
            let own = unit(deadline, level) % SLOTS == slot as u64;
            ensure(own && deadline > self.near_end, "a timer is in the wrong slot")?;
            ensure(list.min <= deadline, "a slot's minimum is too late")?;
            (count, prev) = (count + 1, at);
        }
        ensure(bit == (count > 0), "the bitmap does not tell the occupied slots")?;
        let end = if count > 0 { self.slab.link(prev).next } else { list.head };
        ensure(end == NIL, "a dead entry is on the wheel")?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TimerHandle, WheelConfig};
    use super::*;
    use crate::time::Time;

    const MS: u64 = 1_000_000;

    /// One timer in each kind of place, one freed entry, and the entry of the last timer.
    fn sample() -> (Wheel<u8>, u32) {
        let mut wheel = Wheel::new(WheelConfig::default(), Time::from_millis(5));
        for millis in [2, 5, 9, 10, 400, 500, 100_000_000, 100_000_000] {
            wheel.register(Time::from_millis(millis), 0).unwrap();
        }
        let last = wheel.register(Time::from_millis(10), 0).unwrap();
        wheel.cancel(TimerHandle { id: 3, generation: 4 }).unwrap();
        assert_eq!(wheel.check(), Ok(()));
        (wheel, last.id as u32)
    }

    /// Frees an entry without unlinking it.
    fn free(wheel: &mut Wheel<u8>, at: u32) {
        let generation = wheel.slab.get(at).unwrap().generation;
        wheel.slab.remove(at as usize, generation).unwrap();
    }

    #[track_caller]
    fn finds(fault: &'static str, spoil: impl FnOnce(&mut Wheel<u8>, u32)) {
        let (mut wheel, last) = sample();
        spoil(&mut wheel, last);
        assert_eq!(wheel.check(), Err(fault));
    }

    #[test]
    fn a_sound_wheel_passes_when_full_and_when_empty() {
        let config = WheelConfig { limit: 1, ..WheelConfig::default() };
        let mut wheel = Wheel::new(config, Time::ZERO);
        assert_eq!(wheel.check(), Ok(()));
        wheel.register(Time::from_millis(1), 0).unwrap();
        assert_eq!(wheel.check(), Ok(()));
    }

    #[test]
    fn every_fault_is_found() {
        finds("the active count is not the number of live entries", |wheel, last| {
            wheel.slab.bodies[last as usize].token = None;
        });
        finds("the free list is not all of the dead entries", |wheel, _| {
            wheel.slab.bodies[3].token = Some(1);
            wheel.slab.bodies[4].token = None;
        });
        finds("more timers live than the limit allows", |wheel, _| wheel.config.limit = 7);
        finds("a heap node is not its entry's", |wheel, _| wheel.slab.bodies[0].deadline += 1);
        finds("a heap position is wrong", |wheel, _| wheel.slab.link_mut(0).unwrap().next += 1);
        finds("a heap position is wrong", |wheel, _| wheel.slab.link_mut(0).unwrap().prev += 1);
        finds("a timer is in the wrong heap", |wheel, _| wheel.near_end = MS);
        finds("a timer is in the wrong heap", |wheel, _| wheel.near_end = u64::MAX);
        finds("an overflow timer in range was not promoted", |wheel, _| wheel.horizon = u64::MAX);
        finds("a list is not linked back", |wheel, last| {
            wheel.slab.link_mut(last).unwrap().prev -= 1;
        });
        finds("a slot holds another turn's timer", |wheel, last| {
            wheel.slab.bodies[last as usize].deadline += 256 * MS;
        });
        finds("a timer is in the wrong slot", |wheel, last| {
            wheel.slab.bodies[last as usize].deadline += MS;
        });
        finds("a timer is in the wrong slot", |wheel, _| wheel.near_end = 10 * MS);
        finds("a slot's minimum is too late", |wheel, _| wheel.levels.slots[10].min += 1);
        finds("the bitmap does not tell the occupied slots", |wheel, _| {
            wheel.levels.occupied[0] ^= 1 << 11;
        });
        finds("the bitmap does not tell the occupied slots", |wheel, _| {
            wheel.levels.occupied[0] ^= 1 << 10;
        });
        finds("a live timer is linked nowhere", |wheel, _| {
            wheel.levels.take(10);
        });
        finds("a group outlives its members", |wheel, _| wheel.group_end = 1);
        finds("a dead entry is in a heap", |wheel, _| {
            free(wheel, 0);
        });
        finds("a dead entry is on the wheel", |wheel, _| {
            free(wheel, 4);
        });
        finds("a dead entry is on the wheel", |wheel, last| {
            free(wheel, last);
            wheel.levels.occupied[0] ^= 1 << 10;
        });
        finds("a heap is out of order", |wheel, _| {
            wheel.near.nodes.swap(0, 1);
            wheel.slab.set_link(0, Link::anchored(NEAR, 1));
            wheel.slab.set_link(1, Link::anchored(NEAR, 0));
        });
        finds("storage is kept without a live timer", |wheel, last| {
            (0..=last).filter(|at| *at != 3).for_each(|at| free(wheel, at));
        });
    }
}
