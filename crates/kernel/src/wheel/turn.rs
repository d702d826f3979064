//! How timers move: placing, sweeping as time passes, groups, and the search for the earliest.

use super::level::{Ref, SLOTS};
use super::slab::KEEP;
use super::{LEVELS, TICK, Wheel, place, unit};
use crate::queue::Node;

/// References to cancelled timers that may be kept in addition to two for each entry.
pub(super) const SPARE: usize = 256;

impl<T> Wheel<T> {
    /// Sets the end of near after time has moved or a group has come or gone.
    pub(super) fn bound_near(&mut self) {
        let tick_end = (self.tick * TICK).saturating_add(TICK - 1);
        self.near_end = tick_end.max(self.group_end);
    }

    /// Whether a timer waits in a slot, and not in near or overflow.
    #[inline]
    pub(super) fn on_wheel(&self, deadline: u64) -> bool {
        deadline > self.near_end && deadline.saturating_sub(self.now) < self.horizon
    }

    /// The slot a deadline belongs to at the current time, if it belongs on the wheel.
    #[inline(always)]
    fn slot(&self, deadline: u64) -> Option<usize> {
        let distance = deadline.saturating_sub(self.now);
        if deadline <= self.near_end || distance >= self.horizon {
            return None;
        }
        let level = match distance {
            d if d < TICK << 8 => 0,
            d if d < TICK << 16 => 1,
            d if d < TICK << 24 => 2,
            _ => 3,
        };
        Some(place(level, unit(deadline, level)))
    }

    /// Puts an entry where its deadline belongs at the current time.
    #[inline(always)]
    pub(super) fn place(&mut self, at: u32, deadline: u64, generation: u64) {
        match self.slot(deadline) {
            Some(slot) => self.levels.push(slot, Ref::new(at, generation), deadline),
            None => self.enqueue(at, deadline, generation),
        }
    }

    /// Puts an entry that does not belong on the wheel into the heap it belongs to.
    #[inline(never)]
    fn enqueue(&mut self, at: u32, deadline: u64, generation: u64) {
        let near = deadline <= self.near_end;
        let node = self.node(at, deadline, generation);
        let queue = if near { &mut self.near.late } else { &mut self.overflow };
        queue.push(node, |_, _| ());
    }

    fn node(&self, at: u32, deadline: u64, generation: u64) -> Node {
        // Generations count registrations, so the distance from the first is the sequence.
        Node { deadline, seq: generation.wrapping_sub(self.config.first_generation), at }
    }

    /// Whether a node's timer still waits.
    pub(super) fn waits(&self, node: &Node) -> bool {
        self.slab.lives(node.at, node.seq.wrapping_add(self.config.first_generation))
    }

    /// Places anew what lies in the slots after tick `from` up to tick `to`, and what has come in
    /// range of the wheel. Finer levels first: what a slot gives away is not met again.
    pub(super) fn sweep(&mut self, from: u64, to: u64) {
        let start = self.near.begin();
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
                let slot = self.near.swept.len();
                self.empty(place(level, unit));
                if level == 0 {
                    self.near.sort(slot);
                }
                unit += 1;
            }
        }
        self.near.sort(start);
        self.promote();
    }

    /// Places anew what lies in a slot, and forgets what was cancelled.
    fn empty(&mut self, place: usize) {
        let mut end = self.levels.take(place);
        while let Some((refs, count)) = self.levels.cut(&mut end) {
            // All of a chunk are looked up before any is placed: the cache misses overlap.
            let look = |entry| self.slab.named(entry).map(|body| (body.deadline, body.generation));
            let found = refs.map(look);
            for (entry, found) in refs.into_iter().zip(found).take(count) {
                match found {
                    None => self.dead -= 1,
                    Some((deadline, generation)) if deadline <= self.near_end => {
                        self.near.swept.push(self.node(entry.at, deadline, generation));
                    }
                    Some((deadline, generation)) => self.place(entry.at, deadline, generation),
                }
            }
        }
    }

    /// Places anew what has come in range of the wheel.
    #[inline]
    pub(super) fn promote(&mut self) {
        let mut moved = false;
        while let Some(node) = self.overflow.first()
            && (node.deadline <= self.near_end || node.deadline - self.now < self.horizon)
        {
            self.overflow.remove(0, |_, _| ());
            let generation = node.seq.wrapping_add(self.config.first_generation);
            if self.slab.lives(node.at, generation) {
                self.place(node.at, node.deadline, generation);
            } else {
                self.dead -= 1;
            }
            moved = true;
        }
        if moved {
            self.trim();
        }
    }

    /// The first of each heap is a live timer again.
    pub(super) fn trim(&mut self) {
        while self.near.first().is_some_and(|node| !self.waits(&node)) {
            self.near.pop();
            self.dead -= 1;
        }
        while self.overflow.first().is_some_and(|node| !self.waits(&node)) {
            self.overflow.remove(0, |_, _| ());
            self.dead -= 1;
        }
    }

    /// After a cancel of what may have been the earliest, or first in a heap.
    #[cold]
    pub(super) fn gone(&mut self, deadline: u64) {
        self.earliest = u64::MAX;
        if !self.on_wheel(deadline) {
            self.trim();
            self.end_group();
            self.keep_young();
        }
    }

    /// References know half of a generation: none may stay until that half is given again.
    #[inline]
    pub(super) fn keep_young(&mut self) {
        if self.next_generation.wrapping_sub(self.renewed) >= 1 << 31 {
            self.renew();
        }
    }

    /// Forgets what cancelled timers have left behind. The entries are gone through in order, which
    /// costs no cache misses to speak of; it takes more cancels than there are entries to get here.
    #[cold]
    pub(super) fn renew(&mut self) {
        self.levels.clear();
        let (slab, first) = (&self.slab, self.config.first_generation);
        let waits = |node: &Node| slab.lives(node.at, node.seq.wrapping_add(first));
        self.near.retain(waits);
        self.overflow.retain(waits);
        for at in 0..self.slab.bodies.len() {
            let body = &self.slab.bodies[at];
            if body.token.is_some()
                && let Some(slot) = self.slot(body.deadline)
            {
                self.levels.push(slot, Ref::new(at as u32, body.generation), body.deadline);
            }
        }
        (self.dead, self.renewed) = (0, self.next_generation);
    }

    /// Lets a coalesced group go if enough timers are nearly due.
    pub(super) fn form_group(&mut self) {
        let Some(coalesce) = &self.config.coalesce else { return };
        let end = coalesce.boundary(self.now()).as_nanos();
        if end > self.due() && self.has(coalesce.min_group_size, end) {
            (self.group_end, self.earliest) = (end, u64::MAX);
            self.bound_near();
            self.sweep(self.tick, end / TICK);
        }
    }

    /// Whether at least `count` timers have a deadline not after `end`.
    fn has(&self, count: usize, end: u64) -> bool {
        let heaps = self.near.iter().chain(&self.overflow.nodes).filter(|node| self.waits(node));
        let levels = (0..LEVELS).flat_map(|n| {
            let current = self.tick >> (8 * n);
            let units = (current + 1)..=unit(end, n).min(current + SLOTS);
            units.flat_map(move |unit| self.levels.walk(place(n, unit), &self.slab))
        });
        let all = heaps.map(|node| node.deadline).chain(levels.map(|(deadline, _)| deadline));
        count == 0 || all.filter(|deadline| *deadline <= end).nth(count - 1).is_some()
    }

    /// After timers have left near: a group without members is over.
    pub(super) fn end_group(&mut self) {
        if self.group_end > 0
            && self.near.first().is_none_or(|first| first.deadline > self.group_end)
        {
            self.group_end = 0;
            self.bound_near();
        }
    }

    /// Keeps nothing when there is no timer.
    #[cold]
    pub(super) fn release(&mut self) {
        self.slab.release();
        self.near.release();
        self.overflow.nodes.clear();
        self.overflow.nodes.shrink_to(KEEP);
        self.levels.release();
        (self.dead, self.renewed) = (0, self.next_generation);
    }

    /// The occupied slots of a level in order, up to the first that has nothing before `best`.
    pub(super) fn slots(&self, level: usize, best: u64) -> impl Iterator<Item = usize> {
        let current = self.tick >> (8 * level);
        let mut unit = current + 1;
        core::iter::from_fn(move || {
            unit += self.levels.distance(level, unit)?;
            let slot = place(level, unit);
            let more = unit <= current + SLOTS && self.levels.slots[slot].min < best;
            unit += 1;
            more.then_some(slot)
        })
    }

    /// Remembers the minima that [`Wheel::next_deadline`] would have to look for each time, and
    /// empties the slots that it would search in vain.
    pub(super) fn learn(&mut self) {
        let mut best = u64::MAX;
        for level in 0..LEVELS {
            loop {
                let Some(slot) = self.slots(level, best).next() else { break };
                let Some((min, min_at)) = self.levels.min(slot, &self.slab) else {
                    self.empty(slot);
                    continue;
                };
                let list = &mut self.levels.slots[slot];
                (list.min, list.min_at) = (min, min_at);
                best = best.min(min);
                break;
            }
        }
        self.earliest = best;
    }
}
