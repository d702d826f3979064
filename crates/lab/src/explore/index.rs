//! Dense numbers for 64-bit names, given out in the order of first sight and kept for good.

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
