//! How timers move: placing, sweeping as time passes, groups, and the search for the earliest.

use super::level::SLOTS;
use super::slab::{ANCHOR, KEEP, Link};
use super::{LEVELS, NEAR, OVERFLOW, TICK, Wheel, place, unit};
use crate::queue::Node;

impl<T> Wheel<T> {
    /// Sets the end of near after time has moved or a group has come or gone.
    pub(super) fn bound_near(&mut self) {
        let tick_end = (self.tick * TICK).saturating_add(TICK - 1);
        self.near_end = tick_end.max(self.group_end);
    }

    /// Links an entry where its deadline belongs at the current time.
    #[inline(always)]
    pub(super) fn place(&mut self, at: u32, deadline: u64, generation: u64) {
        let distance = deadline.saturating_sub(self.now);
        if deadline <= self.near_end || distance >= self.horizon {
            return self.enqueue(at, deadline, generation);
        }
        let level = match distance {
            d if d < TICK << 8 => 0,
            d if d < TICK << 16 => 1,
            d if d < TICK << 24 => 2,
            _ => 3,
        };
        let place = place(level, unit(deadline, level));
        self.levels.push(place, at, deadline, &mut self.slab);
    }

    /// Closes the gap that an entry linked like this has left.
    #[inline]
    pub(super) fn unlink(&mut self, link: Link) {
        let Some(before) = self.slab.link_mut(link.prev) else {
            return self.unlink_first(link);
        };
        before.next = link.next;
        if let Some(after) = self.slab.link_mut(link.next) {
            after.prev = link.prev;
        }
    }

    /// The same for the first of a list or the member of a queue: `prev` is an anchor.
    #[inline]
    fn unlink_first(&mut self, link: Link) {
        match link.prev - ANCHOR {
            NEAR => self.near.remove(link.next, self.slab.moved(NEAR)),
            OVERFLOW => self.overflow.remove(link.next, self.slab.moved(OVERFLOW)),
            place => match self.slab.link_mut(link.next) {
                None => drop(self.levels.take(place as usize)),
                Some(after) => {
                    after.prev = link.prev;
                    self.levels.slots[place as usize].head = link.next;
                }
            },
        }
    }

    /// Puts an entry that does not belong on the wheel into the heap it belongs to.
    #[inline(never)]
    fn enqueue(&mut self, at: u32, deadline: u64, generation: u64) {
        // Generations count registrations, so the distance from the first is the sequence.
        let seq = generation.wrapping_sub(self.config.first_generation);
        let near = deadline <= self.near_end;
        let (queue, place) =
            if near { (&mut self.near, NEAR) } else { (&mut self.overflow, OVERFLOW) };
        queue.push(Node { deadline, seq, at }, self.slab.moved(place));
    }

    /// Places anew what lies in the slots after tick `from` up to tick `to`, and what has come in
    /// range of the wheel. Finer levels first: what a slot gives away is not met again.
    pub(super) fn sweep(&mut self, from: u64, to: u64) {
        for level in 0..LEVELS {
            let (from, to) = (from >> (8 * level), to >> (8 * level));
            if from == to {
                break;
            }
            let last = to.min(from + SLOTS);
            let mut unit = from + 1;
            while let Some(distance) = self.levels.distance(level, unit)
                && unit + distance <= last
            {
                unit += distance;
                let mut at = self.levels.take(place(level, unit));
                while let Some(body) = self.slab.get(at) {
                    let next = self.slab.link(at).next;
                    self.place(at, body.deadline, body.generation);
                    at = next;
                }
                unit += 1;
            }
        }
        while let Some(node) = self.overflow.first()
            && (node.deadline <= self.near_end || node.deadline - self.now < self.horizon)
        {
            self.overflow.remove(0, self.slab.moved(OVERFLOW));
            let generation = node.seq.wrapping_add(self.config.first_generation);
            self.place(node.at, node.deadline, generation);
        }
    }

    /// Lets a coalesced group go if enough timers are nearly due.
    pub(super) fn form_group(&mut self) {
        let Some(coalesce) = &self.config.coalesce else { return };
        let end = coalesce.boundary(self.now()).as_nanos();
        if end > self.due() && self.has(coalesce.min_group_size, end) {
            self.group_end = end;
            self.bound_near();
            self.sweep(self.tick, end / TICK);
        }
    }

    /// Whether at least `count` timers have a deadline not after `end`.
    fn has(&self, count: usize, end: u64) -> bool {
        let heaps = self.near.nodes.iter().chain(&self.overflow.nodes).map(|node| node.deadline);
        let levels = (0..LEVELS).flat_map(|n| {
            let current = self.tick >> (8 * n);
            let units = (current + 1)..=unit(end, n).min(current + SLOTS);
            units.flat_map(move |unit| self.levels.walk(place(n, unit), &self.slab))
        });
        let all = heaps.chain(levels.map(|(deadline, _)| deadline));
        count == 0 || all.filter(|deadline| *deadline <= end).nth(count - 1).is_some()
    }

    /// After timers have left: a group without members is over, and without timers nothing is kept.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.group_end > 0
            && self.near.first().is_none_or(|first| first.deadline > self.group_end)
        {
            self.group_end = 0;
            self.bound_near();
        }
        if self.is_empty() {
            self.slab.release();
            self.near.nodes.shrink_to(KEEP);
            self.overflow.nodes.shrink_to(KEEP);
        }
    }

    /// The first occupied slot of a level and its earliest deadline, unless all of its unit is
    /// after `best`.
    pub(super) fn first_slot(&self, level: usize, best: u64) -> Option<(usize, (u64, u32))> {
        let next = (self.tick >> (8 * level)) + 1;
        let unit = next + self.levels.distance(level, next)?;
        if (unit << (8 * level)) * TICK > best {
            return None;
        }
        let slot = place(level, unit);
        Some((slot, self.levels.min(slot, &self.slab)))
    }

    /// Remembers the minima that [`Wheel::next_deadline`] would have to look for each time.
    pub(super) fn learn(&mut self) {
        let mut best = u64::MAX;
        for level in 0..LEVELS {
            if let Some((slot, (min, min_at))) = self.first_slot(level, best) {
                let list = &mut self.levels.slots[slot];
                (list.min, list.min_at) = (min, min_at);
                best = best.min(min);
            }
        }
    }
}
