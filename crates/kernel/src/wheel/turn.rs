//! Movement of timers: placing, advancing, groups, and the search for the earliest deadline.

use core::mem::take;

use super::level::SLOTS;
use super::slab::{KEEP, SMALL_LIMIT};
use super::{LEVELS, TICK, Wheel, place, unit};
use crate::queue::{Node, sort};

/// References to cancelled timers that a wheel with this limit may keep in addition to two for each
/// entry.
pub(super) fn spare(limit: usize) -> usize {
    limit.min(256)
}

/// The capacity that the list of an empty slot keeps in a wheel with this limit, so that a lone
/// timer does not allocate each time. It stays allocated as long as the wheel: for all slots
/// together these are 32 KiB, and for limits above 256 timers 128 bytes for each timer, up to 512
/// KiB. Larger lists are released rather than shrunk, because shrinking in place leaves an
/// allocator with small pieces.
pub(super) fn keep(limit: usize) -> usize {
    (limit / 64).clamp(4, KEEP)
}

/// The most references there are in a wheel with this limit, to living and to cancelled timers.
pub fn refs_of(limit: usize) -> usize {
    limit.saturating_mul(3).saturating_add(spare(limit) + 1)
}

/// Ignores moves of nodes. A single function, so that the code of the heap exists once.
pub(super) fn unmoved(_entry: u32, _position: u32) {}

impl<T> Wheel<T> {
    /// Updates `near_end` after the time has advanced or a group has formed or ended.
    pub(super) fn bound_near(&mut self) {
        let tick_end = (self.tick * TICK).saturating_add(TICK - 1);
        self.near_end = tick_end.max(self.group_end);
    }

    /// Returns the slot of a deadline at the current time, if it belongs on the wheel.
    #[inline(always)]
    pub(super) fn slot(&self, deadline: u64) -> Option<usize> {
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

    /// Puts an entry into the place of its deadline at the current time.
    #[inline(always)]
    pub(super) fn place(&mut self, at: u32, deadline: u64, generation: u64) {
        match self.slot(deadline) {
            Some(slot) => self.levels.push(slot, at, deadline, generation),
            None => self.heap.push(self.node(at, deadline, generation), unmoved),
        }
    }

    /// Returns the node of an entry. Generations count registrations, so the distance from the
    /// first one is the insertion sequence.
    pub(super) fn node(&self, at: u32, deadline: u64, generation: u64) -> Node {
        Node { deadline, seq: generation.wrapping_sub(self.config.first_generation), at }
    }

    /// Returns the earliest node in run and heap that is near.
    pub(super) fn first(&self) -> Option<Node> {
        let late = self.heap.first().filter(|node| node.deadline <= self.near_end);
        self.run.get(self.taken).copied().into_iter().chain(late).min_by_key(Node::key)
    }

    /// Whether a node's timer is still live.
    pub(super) fn waits(&self, node: &Node) -> bool {
        let generation = self.generation(node);
        self.slab.get(node.at).is_some_and(|body| body.generation == generation)
    }

    pub(super) fn generation(&self, node: &Node) -> u64 {
        node.seq.wrapping_add(self.config.first_generation)
    }

    /// Moves the entries of the slots after tick `from` up to tick `to`, and distant timers that
    /// are in range now. Finer levels first, so that no entry is moved twice.
    pub(super) fn sweep(&mut self, from: u64, to: u64) {
        if self.taken > self.run.len() / 2 {
            self.run.drain(..take(&mut self.taken));
        }
        let old = self.run.len();
        for level in 0..LEVELS {
            let from = from >> (8 * level);
            let to = to >> (8 * level);
            if from == to {
                break;
            }
            let last = to.min(from + SLOTS);
            let mut unit = from + 1;
            while let Some(distance) = self.levels.distance(level, unit)
                && unit + distance <= last
            {
                unit += distance;
                self.empty(place(level, unit));
                unit += 1;
            }
        }
        sort(&mut self.run[old..]);
        self.trim();
    }

    /// Moves the entries of a slot, and drops dead references.
    fn empty(&mut self, place: usize) {
        let mut refs = self.levels.take(place);
        for entry in refs.drain(..) {
            match self.slab.named(entry) {
                Some(body) if body.deadline <= self.near_end => {
                    self.run.push(self.node(entry.0, body.deadline, body.generation));
                }
                Some(body) => self.place(entry.0, body.deadline, body.generation),
                None => self.dead -= 1,
            }
        }
        // What belongs to the rest of a group's last tick is in the slot again.
        let kept = refs.capacity() <= keep(self.config.limit);
        if kept && self.levels.slots[place].refs.is_empty() {
            self.levels.slots[place].refs = refs;
        }
    }

    /// Moves distant timers at the head of the heap that are in range now, and drops dead nodes at
    /// the head of heap and run.
    pub(super) fn trim(&mut self) {
        while let Some(node) = self.heap.first() {
            match (self.waits(&node), self.slot(node.deadline)) {
                (true, None) => break,
                (true, Some(_)) => self.place(node.at, node.deadline, self.generation(&node)),
                (false, _) => self.dead -= 1,
            }
            self.heap.remove(0, unmoved);
        }
        while self.run.get(self.taken).is_some_and(|node| !self.waits(node)) {
            self.taken += 1;
            self.dead -= 1;
        }
    }

    /// Rebuilds the references if more than allowed are dead, or if some are so old that the half
    /// of a generation in them might recur.
    #[inline]
    pub(super) fn tidy(&mut self) {
        let age = self.next_generation.wrapping_sub(self.renewed);
        if self.dead > 2 * self.storage() + spare(self.config.limit) || age >= 1 << 31 {
            self.renew(usize::MAX);
        }
    }

    /// Drops all dead references by rebuilding the references of all live entries. The entries are
    /// visited in order, which causes few cache misses.
    #[cold]
    fn renew(&mut self, room: usize) {
        self.levels.clear(keep(self.config.limit));
        self.run.clear();
        self.run.shrink_to(room);
        self.taken = 0;
        self.heap.nodes.clear();
        self.heap.nodes.shrink_to(room);
        (self.dead, self.renewed) = (0, self.next_generation);
        for at in 0..self.storage() as u32 {
            if let Some(body) = self.slab.get(at) {
                self.place(at, body.deadline, body.generation);
            }
        }
    }

    /// Makes a group of timers due early, if enough timers are nearly due.
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
        let mut found = 0;
        let mut is_last = |deadline: u64| {
            found += usize::from(deadline <= end);
            found >= count
        };
        for node in self.run[self.taken..].iter().chain(&self.heap.nodes) {
            if self.waits(node) && is_last(node.deadline) {
                return true;
            }
        }
        for level in 0..LEVELS {
            let current = self.tick >> (8 * level);
            let last = unit(end, level).min(current + SLOTS);
            for before in current..last {
                let mut slot = self.levels.walk(place(level, before + 1), &self.slab);
                if slot.any(|(deadline, _)| is_last(deadline)) {
                    return true;
                }
            }
        }
        count == 0
    }

    /// Ends a group without members, and releases memory if no timers are left.
    pub(super) fn settle(&mut self) {
        if self.group_end > 0 && self.first().is_none_or(|first| first.deadline > self.group_end) {
            self.group_end = 0;
            self.bound_near();
        }
        if self.is_empty() && self.storage() > 0 {
            let room = if self.config.limit <= SMALL_LIMIT { usize::MAX } else { KEEP };
            self.slab.release(room);
            self.renew(room);
        }
    }

    /// Iterates over the occupied slots of a level, up to the first without a deadline before
    /// `best`.
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

    /// Caches the minima that [`Wheel::next_deadline`] would otherwise search for each time, and
    /// clears the slots without live timers that it would search.
    pub(super) fn learn(&mut self) {
        let mut best = u64::MAX;
        for level in 0..LEVELS {
            while let Some(slot) = { self.slots(level, best).next() } {
                if let Some((min, min_at)) = self.levels.min(slot, &self.slab) {
                    let list = &mut self.levels.slots[slot];
                    (list.min, list.min_at) = (min, min_at);
                    best = best.min(min);
                    break;
                }
                self.empty(slot);
            }
        }
    }
}
