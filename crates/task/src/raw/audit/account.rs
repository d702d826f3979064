//! How many references each kind of owner has.

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use crate::prim::lock_unseen;

/// As many kinds as there are at most.
const KINDS: usize = 12;

/// Counts by kind, with their names.
pub(super) struct Account {
    names: &'static [&'static str],
    counts: Mutex<[u64; KINDS]>,
}

impl Account {
    pub(super) fn new(names: &'static [&'static str]) -> Account {
        assert!(names.len() <= KINDS, "room for every kind");
        Account { names, counts: Mutex::new([0; KINDS]) }
    }

    fn lock(&self) -> MutexGuard<'_, [u64; KINDS]> {
        lock_unseen(&self.counts)
    }

    /// Enters so many, which were `counted` before; `most` of them at once.
    pub(super) fn enter(
        &self,
        kind: usize,
        more: u64,
        most: u64,
        counted: impl FnOnce() -> Option<u64>,
    ) -> Result<(), String> {
        let mut counts = self.lock();
        counts[kind] += more;
        if counts[kind] > most {
            return Err(format!("it has {} owners of kind {}", counts[kind], self.names[kind]));
        }
        self.compare(&counts, counted)
    }

    /// Strikes off so many, which are still `counted`.
    pub(super) fn strike(
        &self,
        kind: usize,
        fewer: u64,
        counted: impl FnOnce() -> Option<u64>,
    ) -> Result<(), String> {
        let mut counts = self.lock();
        self.compare(&counts, counted)?;
        self.take(&mut counts, kind, fewer)
    }

    /// Moves one from one kind to another.
    pub(super) fn shift(&self, from: usize, to: usize) -> Result<(), String> {
        let mut counts = self.lock();
        self.take(&mut counts, from, 1)?;
        counts[to] += 1;
        Ok(())
    }

    fn take(&self, counts: &mut [u64; KINDS], kind: usize, fewer: u64) -> Result<(), String> {
        let name = self.names[kind];
        let has = counts[kind];
        counts[kind] = has
            .checked_sub(fewer)
            .ok_or_else(|| format!("{fewer} of kind {name} are given up, of which it has {has}"))?;
        Ok(())
    }

    /// Rule 2.
    fn compare(
        &self,
        counts: &[u64; KINDS],
        counted: impl FnOnce() -> Option<u64>,
    ) -> Result<(), String> {
        let sum: u64 = counts.iter().sum();
        match counted() {
            Some(counted) if counted < sum => {
                Err(format!("it has {sum} owners, of which {counted} are counted"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn of(&self, kind: usize) -> u64 {
        self.lock()[kind]
    }

    pub(super) fn sum(&self) -> u64 {
        self.lock().iter().sum()
    }
}

/// Every kind that has any.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = *self.lock();
        if counts == [0; KINDS] {
            return f.write_str("no owners");
        }
        let owners = self.names.iter().zip(counts).filter(|(_, count)| *count > 0);
        let owners: Vec<_> = owners.map(|(name, count)| format!("{name} {count}")).collect();
        write!(f, "owners: {}", owners.join(", "))
    }
}
