//! Dense numbers for 64-bit names, given out in the order of first sight and kept for good.

use super::TaskPath;
use asx_kernel::rng::GOLDEN;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// A set of 64-bit hashes.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<Fold>>;

/// An open table: the slots hold numbers, at most a quarter of them are taken.
#[derive(Debug, Default)]
pub(super) struct Index {
    slots: Vec<u32>,
    names: Vec<u64>,
}

const EMPTY: u32 = u32::MAX;

impl Index {
    /// The number of a name.
    #[inline]
    pub(super) fn of(&mut self, name: u64) -> u32 {
        // Most are known, and at the first place that is looked at.
        let first = home(name) & self.slots.len().wrapping_sub(1);
        match self.slots.get(first) {
            Some(number) if self.names.get(*number as usize) == Some(&name) => *number,
            _ => self.find(name),
        }
    }

    /// The same, wherever it is; a new name gets the next number.
    #[inline(never)]
    fn find(&mut self, name: u64) -> u32 {
        if self.names.len() * 4 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(name);
        if self.slots[slot] == EMPTY {
            self.slots[slot] = self.names.len() as u32;
            self.names.push(name);
        }
        self.slots[slot]
    }

    pub(super) fn name(&self, number: u32) -> u64 {
        self.names[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Where a name is, or would be. There is always an empty slot.
    fn slot(&self, name: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = home(name) & mask;
        while self.slots[slot] != EMPTY && self.names[self.slots[slot] as usize] != name {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![EMPTY; (self.slots.len() * 2).max(64)];
        for number in 0..self.names.len() {
            let slot = self.slot(self.names[number]);
            self.slots[slot] = number as u32;
        }
    }
}

/// Where a name is looked for first, whatever the size of the table.
#[inline]
fn home(name: u64) -> usize {
    (name.wrapping_mul(GOLDEN) >> 32) as usize
}

/// One multiplication: names and hashes are not chosen by an enemy.
#[derive(Debug, Default)]
pub(super) struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(GOLDEN);
        self.0 ^= self.0 >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The tasks that can run, by number: looked up only where the list has changed.
#[derive(Debug, Default)]
pub(super) struct Roster {
    pub(super) index: Index,
    paths: Vec<TaskPath>,
    numbers: Vec<u32>,
    /// How many of them were there the last time too.
    old: usize,
}

/// So few that to move them is as much work as to look them up.
const SHORT: usize = 4;

impl Roster {
    /// The numbers of these tasks, in the same order.
    pub(super) fn of(&mut self, tasks: &[TaskPath]) -> &[u32] {
        let same = |(task, path): &(&TaskPath, &TaskPath)| task == path;
        let mut at = tasks.iter().zip(&self.paths).take_while(same).count();
        // As a rule one was taken out, and others came in at the end. Few are soon looked up.
        if self.paths.len() - at > SHORT {
            self.paths.remove(at);
            self.numbers.remove(at);
            at += tasks[at..].iter().zip(&self.paths[at..]).take_while(same).count();
        }
        self.paths.truncate(at);
        self.numbers.truncate(at);
        self.add(tasks, at);
        &self.numbers
    }

    /// The same if what was at a place was taken out, and all but the first `old` have come since.
    #[inline]
    pub(super) fn after(&mut self, taken: usize, tasks: &[TaskPath], old: usize) -> &[u32] {
        if self.paths.len() != old + 1 || taken > old || old < SHORT {
            return self.of(tasks);
        }
        self.paths.remove(taken);
        self.numbers.remove(taken);
        debug_assert_eq!(self.paths, tasks[..old], "the rest of the last list");
        self.add(tasks, old);
        &self.numbers
    }

    /// Whether these are the tasks last given, if the first `old` are the rest of them.
    #[inline]
    pub(super) fn is_same(&self, tasks: &[TaskPath], old: usize) -> bool {
        let [known, new] = [self.paths.as_slice(), tasks].map(|list| list.get(old..));
        matches!((known, new), (Some([known]), Some([new])) if known == new)
    }

    /// Adds those from a place on, which are new.
    #[inline(always)]
    fn add(&mut self, tasks: &[TaskPath], from: usize) {
        self.old = from;
        for task in &tasks[from..] {
            self.paths.push(*task);
            self.numbers.push(self.index.of(task.0));
        }
    }

    /// How many of the numbers last given, from the first, were among those given before.
    pub(super) fn old(&self) -> usize {
        self.old
    }

    /// The numbers last given.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// One of the numbers last given.
    pub(super) fn number(&self, at: usize) -> u32 {
        self.numbers[at]
    }
}
