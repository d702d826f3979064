//! Dense numbers for 64-bit names, given out in the order of first sight and kept for good.

use super::TaskPath;
use asx_kernel::rng::GOLDEN;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A set of 64-bit hashes.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<Fold>>;

#[derive(Debug, Default)]
pub(super) struct Index {
    numbers: HashMap<u64, u32, BuildHasherDefault<Fold>>,
    names: Vec<u64>,
}

impl Index {
    /// The number of a name.
    pub(super) fn of(&mut self, name: u64) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    pub(super) fn name(&self, number: u32) -> u64 {
        self.names[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
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
}

impl Roster {
    /// The numbers of these tasks, in the same order.
    pub(super) fn of(&mut self, tasks: &[TaskPath]) -> &[u32] {
        self.paths.resize(tasks.len(), TaskPath(0));
        self.numbers.resize(tasks.len(), u32::MAX);
        let known = self.paths.iter_mut().zip(&mut self.numbers);
        for (task, (path, number)) in tasks.iter().zip(known) {
            if *path != *task || *number == u32::MAX {
                (*path, *number) = (*task, self.index.of(task.0));
            }
        }
        &self.numbers
    }

    /// One of the numbers last given.
    pub(super) fn number(&self, at: usize) -> u32 {
        self.numbers[at]
    }
}
