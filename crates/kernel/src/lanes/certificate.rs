//! A worker's certificate: counters of its dispatches and of exceeded limits.

use super::{Lane, Pending, Verdict};
use crate::digest::digest_words;

/// One worker's dispatch counters. Equal dispatch sequences give equal certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Cancel dispatches, without fallbacks.
    pub cancel: u64,
    /// Timed dispatches.
    pub timed: u64,
    /// Ready dispatches.
    pub ready: u64,
    /// Fallback dispatches.
    pub fallback: u64,
    /// Dispatches of cancel work, including fallbacks, with the streak at or above the configured
    /// limit.
    pub base_exceedances: u64,
    /// Dispatches of cancel work with the streak at or above the limit in force while other work
    /// waited. Always 0 unless the law was violated.
    pub effective_exceedances: u64,
    /// The largest limit in force at any dispatch.
    pub max_effective_limit: u64,
}

impl Certificate {
    /// Counts a dispatch, given the streak before it, the configured limit and the waiting lanes.
    pub fn record(&mut self, verdict: Verdict, streak: u32, base: u32, pending: Pending) {
        match verdict.lane {
            Lane::Cancel if verdict.fallback => self.fallback += 1,
            Lane::Cancel => self.cancel += 1,
            Lane::Timed => self.timed += 1,
            Lane::Ready => self.ready += 1,
        }
        let cancel = verdict.lane == Lane::Cancel;
        self.base_exceedances += u64::from(cancel && streak >= base);
        self.effective_exceedances +=
            u64::from(cancel && streak >= verdict.limit && pending.other());
        self.max_effective_limit = self.max_effective_limit.max(u64::from(verdict.limit));
    }

    /// Returns the digest of the seven fields in order.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const ALL: Pending = Pending { cancel: true, timed: true, ready: true };
    const ALONE: Pending = Pending { cancel: true, timed: false, ready: false };

    /// Returns the certificate after one dispatch with the streak at `streak` and limits 2 and 4.
    fn after(lane: Lane, fallback: bool, streak: u32, pending: Pending) -> [u64; 7] {
        let mut of = Certificate::default();
        of.record(Verdict { lane, fallback, limit: 4 }, streak, 2, pending);
        fields(&of)
    }

    fn fields(of: &Certificate) -> [u64; 7] {
        let [cancel, timed, ready, fallback] = [of.cancel, of.timed, of.ready, of.fallback];
        let exceeded = (of.base_exceedances, of.effective_exceedances);
        [cancel, timed, ready, fallback, exceeded.0, exceeded.1, of.max_effective_limit]
    }

    #[test]
    fn each_dispatch_is_counted_once_in_its_field() {
        assert_eq!(after(Lane::Cancel, false, 1, ALL), [1, 0, 0, 0, 0, 0, 4]);
        assert_eq!(after(Lane::Timed, false, 9, ALL), [0, 1, 0, 0, 0, 0, 4]);
        assert_eq!(after(Lane::Ready, false, 9, ALL), [0, 0, 1, 0, 0, 0, 4]);
        assert_eq!(after(Lane::Cancel, true, 1, ALONE), [0, 0, 0, 1, 0, 0, 4]);
    }

    #[test]
    fn exceedances_start_at_their_limit() {
        assert_eq!(after(Lane::Cancel, false, 2, ALL), [1, 0, 0, 0, 1, 0, 4]);
        assert_eq!(after(Lane::Cancel, false, 3, ALL), [1, 0, 0, 0, 1, 0, 4]);
        assert_eq!(after(Lane::Cancel, false, 4, ALL), [1, 0, 0, 0, 1, 1, 4]);
        assert_eq!(after(Lane::Cancel, true, 4, ALONE), [0, 0, 0, 1, 1, 0, 4]);
    }

    #[test]
    fn counters_accumulate_and_the_largest_limit_is_kept() {
        let mut of = Certificate::default();
        for (lane, fallback, limit) in [
            (Lane::Cancel, false, 2),
            (Lane::Cancel, false, 4),
            (Lane::Cancel, true, 2),
            (Lane::Cancel, true, 2),
            (Lane::Timed, false, 2),
            (Lane::Timed, false, 2),
            (Lane::Ready, false, 2),
            (Lane::Ready, false, 2),
        ] {
            of.record(Verdict { lane, fallback, limit }, 4, 2, ALL);
        }
        assert_eq!(fields(&of), [2, 2, 2, 2, 4, 4, 4]);
    }

    #[test]
    fn the_witness_covers_every_field_in_order() {
        let of = Certificate {
            cancel: 1,
            timed: 2,
            ready: 3,
            fallback: 4,
            base_exceedances: 5,
            effective_exceedances: 6,
            max_effective_limit: 7,
        };
        assert_eq!(of.witness_hash(), digest_words(&[1, 2, 3, 4, 5, 6, 7]));
        let none = Certificate::default();
        let variants = [
            none,
            Certificate { cancel: 1, ..none },
            Certificate { timed: 1, ..none },
            Certificate { ready: 1, ..none },
            Certificate { fallback: 1, ..none },
            Certificate { base_exceedances: 1, ..none },
            Certificate { effective_exceedances: 1, ..none },
            Certificate { max_effective_limit: 1, ..none },
        ];
        let hashes: BTreeSet<u64> = variants.iter().map(Certificate::witness_hash).collect();
        assert_eq!(hashes.len(), variants.len());
    }
}
