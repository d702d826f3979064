//! The wheel's invariants, checked on a state.

use alloc::vec;
use alloc::vec::Vec;

use super::level::{PLACES, SLOTS};
use super::turn::SPARE;
use super::{Wheel, unit};
use crate::named::ensure;
use crate::queue::Node;

/// What was found in slots and heaps.
struct Found {
    /// How often each entry's timer.
    times: Vec<usize>,
    /// How many timers that are gone.
    dead: usize,
}

impl<T> Wheel<T> {
    /// Checks that every live timer waits in exactly one place, the one its deadline calls for,
    /// that bitmaps, minima and heaps are consistent, and that what cancelled timers leave behind
    /// is counted and bounded.
    pub fn check(&self) -> Result<(), &'static str> {
        let entries = self.slab.bodies.len();
        let live = self.slab.bodies.iter().filter(|body| body.token.is_some()).count();
        ensure(live == self.len(), "the active count is not the number of live entries")?;
        let mut free = self.slab.free.clone();
        free.sort_unstable();
        free.dedup();
        let dead = free.iter().filter(|at| self.slab.get(**at).is_none()).count();
        ensure(dead == entries - live, "the free list is not all of the dead entries")?;
        ensure(live > 0 || self.storage() == 0, "storage is kept without a live timer")?;
        ensure(live <= self.config.limit, "more timers live than the limit allows")?;

        let mut found = Found { times: vec![0; entries], dead: 0 };
        self.check_nodes(self.near.iter(), true, &mut found)?;
        self.check_nodes(self.overflow.nodes.iter(), false, &mut found)?;
        let swept = &self.near.swept[self.near.head..];
        ensure(swept.is_sorted_by_key(Node::key), "what was swept is not sorted")?;
        self.near.late.check(|_, _| true)?;
        self.overflow.check(|_, _| true)?;
        let mut heads = self.near.first().into_iter().chain(self.overflow.first());
        ensure(heads.all(|node| self.waits(&node)), "the first of a heap is dead")?;
        (0..PLACES).try_for_each(|place| self.check_slot(place, &mut found))?;

        let once = |(at, times): (usize, &usize)| *times == usize::from(self.lives(at));
        ensure(
            found.times.iter().enumerate().all(once),
            "a live timer does not wait in one place",
        )?;
        ensure(found.dead == self.dead, "the dead are miscounted")?;
        ensure(self.dead <= 2 * entries + SPARE, "the dead accumulate")?;
        let group = self.near.first().is_some_and(|first| first.deadline <= self.group_end);
        ensure(self.group_end == 0 || group, "a group outlives its members")
    }

    fn lives(&self, at: usize) -> bool {
        self.slab.get(at as u32).is_some()
    }

    fn check_nodes<'a>(
        &self,
        nodes: impl Iterator<Item = &'a Node>,
        near: bool,
        found: &mut Found,
    ) -> Result<(), &'static str> {
        for node in nodes {
            if !self.waits(node) {
                found.dead += 1;
                continue;
            }
            let deadline = self.slab.bodies[node.at as usize].deadline;
            ensure(deadline == node.deadline, "a heap node is not its entry's")?;
            ensure(near == (deadline <= self.near_end), "a timer is in the wrong heap")?;
            let in_range = self.on_wheel(deadline);
            ensure(near || !in_range, "an overflow timer in range was not promoted")?;
            found.times[node.at as usize] += 1;
        }
        Ok(())
    }

    fn check_slot(&self, place: usize, found: &mut Found) -> Result<(), &'static str> {
        let (level, slot) = (place / SLOTS as usize, place as u64 % SLOTS);
        let bit = self.levels.occupied[place / 64] >> (place % 64) & 1 == 1;
        ensure(
            bit == self.levels.refs(place).next().is_some(),
            "the bitmap does not tell the occupied slots",
        )?;
        for entry in self.levels.refs(place) {
            let Some(body) = self.slab.named(entry) else {
                found.dead += 1;
                continue;
            };
            let deadline = body.deadline;
            let ahead = unit(deadline, level).saturating_sub(unit(self.now, level));
            ensure((1..=SLOTS).contains(&ahead), "a slot holds another turn's timer")?;
            let own = unit(deadline, level) % SLOTS == slot;
            ensure(own && deadline > self.near_end, "a timer is in the wrong slot")?;
            ensure(self.levels.slots[place].min <= deadline, "a slot's minimum is too late")?;
            found.times[entry.at as usize] += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::Ref;
    use super::super::{TimerHandle, WheelConfig};
    use super::*;
    use crate::time::Time;

    const MS: u64 = 1_000_000;

    /// One timer in each kind of place, one freed entry, and the entry of the last timer.
    fn sample() -> (Wheel<u8>, u32) {
        let mut wheel = Wheel::new(WheelConfig::default(), Time::ZERO);
        wheel.register(Time::from_millis(5), 0).unwrap();
        wheel.register(Time::from_nanos(5 * MS + 1), 0).unwrap();
        wheel.advance(Time::from_millis(5));
        for millis in [2, 3, 10, 400, 500, 100_000_000, 100_000_000] {
            wheel.register(Time::from_millis(millis), 0).unwrap();
        }
        let last = wheel.register(Time::from_millis(10), 0).unwrap();
        wheel.cancel(TimerHandle { id: 5, generation: 6 }).unwrap();
        assert_eq!(wheel.check(), Ok(()));
        assert_eq!((wheel.near.swept.len(), wheel.near.late.nodes.len(), wheel.dead), (2, 2, 1));
        (wheel, last.id as u32)
    }

    #[track_caller]
    fn finds(fault: &'static str, spoil: impl FnOnce(&mut Wheel<u8>, u32)) {
        let (mut wheel, last) = sample();
        spoil(&mut wheel, last);
        assert_eq!(wheel.check(), Err(fault));
    }

    /// Frees an entry as if it had never been linked.
    fn free(wheel: &mut Wheel<u8>, at: u32) {
        wheel.slab.bodies[at as usize].token = None;
        wheel.slab.free.push(at);
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
            wheel.slab.bodies[5].token = Some(1);
            wheel.slab.bodies[4].token = None;
        });
        finds("the free list is not all of the dead entries", |wheel, last| {
            wheel.slab.bodies[last as usize].token = None;
            wheel.slab.free.push(5);
        });
        finds("more timers live than the limit allows", |wheel, _| wheel.config.limit = 8);
        finds("storage is kept without a live timer", |wheel, last| {
            (0..=last).filter(|at| *at != 5).for_each(|at| free(wheel, at));
        });
        finds("the dead are miscounted", |wheel, _| wheel.dead += 1);
        finds("the dead accumulate", |wheel, _| {
            wheel.dead += 1000;
            (0..1000).for_each(|_| wheel.levels.push(9, Ref::new(5, 6), 9 * MS));
        });
        finds("a group outlives its members", |wheel, _| wheel.group_end = 1);
    }

    #[test]
    fn every_fault_of_a_heap_is_found() {
        finds("a heap node is not its entry's", |wheel, _| wheel.slab.bodies[0].deadline += 1);
        finds("a timer is in the wrong heap", |wheel, _| wheel.near_end = MS);
        finds("a timer is in the wrong heap", |wheel, _| wheel.near_end = u64::MAX);
        finds("an overflow timer in range was not promoted", |wheel, _| wheel.horizon = u64::MAX);
        finds("what was swept is not sorted", |wheel, _| wheel.near.swept.swap(0, 1));
        finds("a heap is out of order", |wheel, _| wheel.near.late.nodes.swap(0, 1));
        finds("a heap is out of order", |wheel, _| wheel.overflow.nodes.swap(0, 1));
        finds("the first of a heap is dead", |wheel, _| free(wheel, 2));
        finds("the first of a heap is dead", |wheel, _| free(wheel, 7));
        finds("a live timer does not wait in one place", |wheel, _| {
            wheel.near.late.nodes.pop();
        });
        finds("a live timer does not wait in one place", |wheel, _| {
            let node = wheel.near.swept[1];
            wheel.near.swept.push(node);
        });
    }

    #[test]
    fn every_fault_of_a_slot_is_found() {
        finds("a slot holds another turn's timer", |wheel, last| {
            wheel.slab.bodies[last as usize].deadline += 256 * MS;
        });
        finds("a timer is in the wrong slot", |wheel, last| {
            wheel.slab.bodies[last as usize].deadline += MS;
        });
        finds("a timer is in the wrong slot", |wheel, _| wheel.near_end = 10 * MS);
        finds("a slot's minimum is too late", |wheel, _| wheel.levels.slots[10].min += 1);
        for place in [10, 11] {
            finds("the bitmap does not tell the occupied slots", |wheel, _| {
                wheel.levels.occupied[0] ^= 1 << place;
            });
        }
        finds("a live timer does not wait in one place", |wheel, _| {
            wheel.levels.take(10);
        });
        finds("a live timer does not wait in one place", |wheel, last| {
            let generation = wheel.slab.bodies[last as usize].generation;
            wheel.levels.push(10, Ref::new(last, generation), 10 * MS);
        });
        finds("the dead are miscounted", free);
    }
}
