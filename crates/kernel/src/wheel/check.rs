//! The wheel's invariants, checked on a state.

use alloc::vec;

use super::level::{PLACES, SLOTS};
use super::turn::spare;
use super::{Wheel, unit};
use crate::named::ensure;
use crate::queue::Node;

impl<T> Wheel<T> {
    /// Checks that every live timer is in exactly one place, as its deadline requires, that the
    /// bitmaps, minima, run and heap are consistent, and that dead references are counted and
    /// bounded.
    pub fn check(&self) -> Result<(), &'static str> {
        let live = self.slab.bodies.iter().filter(|body| body.token.is_some()).count();
        ensure(live == self.len(), "the active count is not the number of live entries")?;
        ensure(live > 0 || self.storage() == 0, "storage is kept without a live timer")?;
        ensure(live <= self.config.limit, "more timers live than the limit allows")?;
        // The number of times that each entry is found: free, or waiting.
        let mut times = vec![0; self.storage()];
        let mut dead = 0;
        self.slab.free.iter().for_each(|at| times[*at as usize] += 1);
        self.check_nodes()?;
        for node in self.run[self.taken..].iter().chain(&self.heap.nodes) {
            *(if self.waits(node) { &mut times[node.at as usize] } else { &mut dead }) += 1;
        }
        for place in 0..PLACES {
            self.check_slot(place)?;
            for entry in &self.levels.slots[place].refs {
                let named = self.slab.named(*entry).is_some();
                *(if named { &mut times[entry.0 as usize] } else { &mut dead }) += 1;
            }
        }
        ensure(times.iter().all(|n| *n == 1), "an entry is not in exactly one place")?;
        ensure(dead == self.dead, "the dead are miscounted")?;
        ensure(dead <= 2 * self.storage() + spare(self.config.limit), "the dead accumulate")?;
        let group = self.first().is_some_and(|first| first.deadline <= self.group_end);
        ensure(self.group_end == 0 || group, "a group outlives its members")
    }

    fn check_nodes(&self) -> Result<(), &'static str> {
        let run = &self.run[self.taken..];
        for node in run.iter().chain(&self.heap.nodes).filter(|node| self.waits(node)) {
            let deadline = self.slab.bodies[node.at as usize].deadline;
            ensure(deadline == node.deadline, "a node is not its entry's")?;
        }
        ensure(run.is_sorted_by_key(Node::key), "the run is out of order")?;
        let near = run.last().is_none_or(|last| last.deadline <= self.near_end);
        ensure(near, "the run goes beyond what is near")?;
        let firsts = run.first().into_iter().chain(self.heap.nodes.first());
        ensure(firsts.into_iter().all(|node| self.waits(node)), "a dead node is first")?;
        let late = self.heap.first().is_none_or(|node| self.slot(node.deadline).is_none());
        ensure(late, "a far timer in range was not moved to the wheel")?;
        self.heap.check(|_, _| true)
    }

    fn check_slot(&self, place: usize) -> Result<(), &'static str> {
        let level = place / SLOTS as usize;
        let slot = place as u64 % SLOTS;
        let occupied = !self.levels.slots[place].refs.is_empty();
        let bit = self.levels.occupied[place / 64] >> (place % 64) & 1 == 1;
        ensure(bit == occupied, "the bitmap does not tell the occupied slots")?;
        for (deadline, _) in self.levels.walk(place, &self.slab) {
            let ahead = unit(deadline, level).saturating_sub(unit(self.now, level));
            ensure((1..=SLOTS).contains(&ahead), "a slot holds another turn's timer")?;
            let own = unit(deadline, level) % SLOTS == slot;
            ensure(own && deadline > self.near_end, "a timer is in the wrong slot")?;
            ensure(self.levels.slots[place].min <= deadline, "a slot's minimum is too late")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TimerHandle, WheelConfig};
    use super::*;
    use crate::time::Time;

    const MS: u64 = 1_000_000;

    /// Returns a wheel with one timer in each kind of place and one freed entry, and the entry of
    /// the last timer.
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
        assert_eq!((wheel.run.len(), wheel.heap.nodes.len(), wheel.dead), (2, 4, 1));
        (wheel, last.id as u32)
    }

    #[track_caller]
    fn finds(fault: &'static str, spoil: impl FnOnce(&mut Wheel<u8>, u32)) {
        let (mut wheel, last) = sample();
        spoil(&mut wheel, last);
        assert_eq!(wheel.check(), Err(fault));
    }

    /// Frees an entry without unlinking it.
    fn free(wheel: &mut Wheel<u8>, at: u32) {
        wheel.slab.bodies[at as usize].token = None;
        wheel.slab.free.push(at);
    }

    #[test]
    fn full_and_empty_wheels_pass_the_check() {
        let config = WheelConfig { limit: 1, ..WheelConfig::default() };
        let mut wheel = Wheel::new(config, Time::ZERO);
        assert_eq!(wheel.check(), Ok(()));
        wheel.register(Time::from_millis(1), 0).unwrap();
        assert_eq!(wheel.check(), Ok(()));
    }

    #[test]
    fn every_fault_is_reported() {
        finds("the active count is not the number of live entries", |wheel, last| {
            wheel.slab.bodies[last as usize].token = None;
        });
        finds("an entry is not in exactly one place", |wheel, _| {
            wheel.slab.bodies[5].token = Some(1);
            wheel.slab.bodies[4].token = None;
        });
        finds("an entry is not in exactly one place", |wheel, last| {
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
            (0..1000).for_each(|_| wheel.levels.push(9, 5, 9 * MS, 6));
        });
        finds("a group outlives its members", |wheel, _| wheel.group_end = 1);
    }

    #[test]
    fn every_fault_of_run_and_heap_is_reported() {
        finds("a node is not its entry's", |wheel, _| wheel.slab.bodies[0].deadline += 1);
        finds("a node is not its entry's", |wheel, _| wheel.slab.bodies[2].deadline += 1);
        finds("the run goes beyond what is near", |wheel, _| wheel.near_end = 5 * MS);
        finds("the run is out of order", |wheel, _| wheel.run.swap(0, 1));
        finds("a heap is out of order", |wheel, _| wheel.heap.nodes.swap(0, 1));
        finds("a far timer in range was not moved to the wheel", |wheel, _| {
            wheel.heap.nodes.retain(|node| node.deadline > 5 * MS);
            wheel.horizon = u64::MAX;
        });
        finds("a dead node is first", |wheel, _| free(wheel, 0));
        finds("a dead node is first", |wheel, _| free(wheel, 2));
        finds("an entry is not in exactly one place", |wheel, _| {
            wheel.run.pop();
        });
        finds("an entry is not in exactly one place", |wheel, _| {
            let node = wheel.heap.nodes[3];
            wheel.heap.push(node, |_, _| ());
        });
    }

    #[test]
    fn every_fault_of_a_slot_is_reported() {
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
        finds("an entry is not in exactly one place", |wheel, _| {
            wheel.levels.take(10);
        });
        finds("an entry is not in exactly one place", |wheel, last| {
            let generation = wheel.slab.bodies[last as usize].generation;
            wheel.levels.push(10, last, 10 * MS, generation);
        });
        finds("the dead are miscounted", free);
    }
}
