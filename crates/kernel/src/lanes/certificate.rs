//! What a worker can show for its run: counters of dispatches and of limits met.

use super::{Lane, Pending, Verdict};
use crate::digest::digest_words;

/// One worker's dispatch counters. Equal dispatch traces give equal certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Cancel dispatches, fallbacks not counted.
    pub cancel: u64,
    /// Timed dispatches.
    pub timed: u64,
    /// Ready dispatches.
    pub ready: u64,
    /// Fallback dispatches.
    pub fallback: u64,
    /// Dispatches of cancel work, fallbacks included, with the streak at the configured limit or
    /// over it.
    pub base_exceedances: u64,
    /// Dispatches of cancel work with the streak at the limit in force or over it while other work
    /// waited: 0, or the law was broken.
    pub effective_exceedances: u64,
    /// The largest limit in force at any dispatch.
    pub max_effective_limit: u64,
}

impl Certificate {
    /// Counts a dispatch, given the streak before it, the configured limit and what waited.
    pub fn record(&mut self, verdict: Verdict, streak: u32, base: u32, pending: Pending) {
        match verdict.lane {
            Lane::Cancel if verdict.fallback => self.fallback += 1,
            Lane::Cancel => self.cancel += 1,
            Lane::Timed => self.timed += 1,
            Lane::Ready => self.ready += 1,
        }
        let cancel = verdict.lane == Lane::Cancel;
        self.base_exceedances += u64::from(cancel && streak >= base);
        let exceeds = cancel && streak >= verdict.limit && pending.other();
        self.effective_exceedances += u64::from(exceeds);
        self.max_effective_limit = self.max_effective_limit.max(u64::from(verdict.limit));
    }

    /// The digest of the seven fields in their order.
    pub fn witness_hash(&self) -> u64 {
        digest_words(&[
            self.cancel,
            self.timed,
            self.ready,
            self.fallback,
            self.base_exceedances,
            self.effective_exceedances,
            self.max_effective_limit,
        ])
    }
}
