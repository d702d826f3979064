//! Counters that are always on: each has one writer, so that counting is a load and a store. The
//! count of polls is also what tells a worker when to look at the timers.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::lanes::{Certificate, Chosen, Lane};
use asx_runtime::WorkerMetrics;

/// A number that one thread counts up and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Relaxed);
    }

    /// Counts one: the sum.
    #[inline]
    fn count(&self) -> u64 {
        let sum = self.0.load(Relaxed).wrapping_add(1);
        self.0.store(sum, Relaxed);
        sum
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What one worker counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Dispatches: entries whose poll began. Those that found nothing to run are not among them.
    pub(crate) polls: Counter,
    cancel: Counter,
    timed: Counter,
    fallbacks: Counter,
    base_exceedances: Counter,
    effective_exceedances: Counter,
    max_effective_limit: Counter,
    pub(crate) bypasses: Counter,
    pub(crate) steals: Counter,
    pub(crate) parks: Counter,
    pub(crate) watches: Counter,
    pub(crate) ticks: Counter,
}

impl Counters {
    /// A poll: how many there were with it.
    #[inline]
    pub(crate) fn polled(&self) -> u64 {
        self.polls.count()
    }

    /// A dispatch decided by the law with all lanes, before it is counted as a poll.
    pub(crate) fn dispatched(&self, chosen: Chosen, streak: u32, base: u32) {
        let Chosen { verdict, pending, .. } = chosen;
        if verdict.lane == Lane::Ready {
            // Counted as a poll, as plain work is.
            let limit = self.max_effective_limit.get().max(verdict.limit.into());
            return self.max_effective_limit.set(limit);
        }
        let mut certificate = self.certificate();
        certificate.record(verdict, streak, base, pending);
        self.cancel.set(certificate.cancel);
        self.timed.set(certificate.timed);
        self.fallbacks.set(certificate.fallback);
        self.base_exceedances.set(certificate.base_exceedances);
        self.effective_exceedances.set(certificate.effective_exceedances);
        self.max_effective_limit.set(certificate.max_effective_limit);
    }

    /// The dispatches so far. What is not from another lane is from the ready one: plain work is
    /// counted as polls only.
    pub(crate) fn certificate(&self) -> Certificate {
        let cancel = self.cancel.get();
        let timed = self.timed.get();
        let fallback = self.fallbacks.get();
        Certificate {
            cancel,
            timed,
            ready: self.polls.get().saturating_sub(cancel + timed + fallback),
            fallback,
            base_exceedances: self.base_exceedances.get(),
            effective_exceedances: self.effective_exceedances.get(),
            max_effective_limit: self.max_effective_limit.get(),
        }
    }

    /// `base`: the limit of cancel streaks that is in force for plain work.
    pub(crate) fn read(&self, base: u32) -> WorkerMetrics {
        let polls = self.polls.get();
        let mut certificate = self.certificate();
        if polls > 0 {
            let limit = certificate.max_effective_limit.max(base.into());
            certificate.max_effective_limit = limit;
        }
        let Certificate { cancel, timed, ready, fallback, .. } = certificate;
        WorkerMetrics {
            polls,
            cancel,
            timed,
            ready,
            fallbacks: fallback,
            bypasses: self.bypasses.get(),
            steals: self.steals.get(),
            parks: self.parks.get(),
            watches: self.watches.get(),
            ticks: self.ticks.get(),
            certificate,
        }
    }
}

/// Counts polls of plain work as workers do, or goes through the motions without counting, and runs
/// none: so that benchmarks can tell what counting costs. Each is another worker's than the one
/// before: a worker does much between two polls, so that one never waits for what the other wrote.
#[doc(hidden)]
pub fn count_polls(polls: u32, count: bool) -> Vec<WorkerMetrics> {
    let workers: [Counters; 16] = Default::default();
    fn each(polls: u32, workers: &[Counters], f: impl Fn(&Counters)) {
        (0..polls).zip(workers.iter().cycle()).for_each(|(_, worker)| f(black_box(worker)));
    }
    if count {
        each(polls, &workers, |worker| _ = worker.polled());
    } else {
        each(polls, &workers, |_| ());
    }
    workers.iter().map(|worker| worker.read(1)).collect()
}

#[cfg(test)]
mod tests {
    use asx_kernel::lanes::{Origin, Pending, Place, Priority, Turn, Verdict};

    use super::*;

    #[test]
    fn every_poll_is_counted_once() {
        let sum = |count| {
            let workers = count_polls(100, count);
            workers.iter().fold((0, 0), |sum, w| (sum.0 + w.polls, sum.1 + w.ready))
        };
        assert_eq!((sum(true), sum(false)), ((100, 100), (0, 0)));
    }

    #[test]
    fn what_is_not_from_another_lane_is_from_the_ready_one() {
        let counters = Counters::default();
        for (lane, fallback) in [
            (Lane::Cancel, false),
            (Lane::Cancel, true),
            (Lane::Timed, false),
            (Lane::Ready, false),
        ] {
            let verdict = Verdict { lane, fallback, limit: 32 };
            let origin = Origin::Local;
            let pending = Pending::default();
            let turn = Turn::default();
            let place = Place::ready(Priority::DEFAULT);
            counters.dispatched(Chosen { verdict, place, origin, pending, turn }, 0, 16);
            counters.polled();
        }
        counters.polled();
        let metrics = counters.read(16);
        let WorkerMetrics { polls, cancel, timed, ready, fallbacks, .. } = metrics;
        assert_eq!((polls, cancel, timed, ready, fallbacks), (5, 1, 1, 2, 1));
        let certificate = metrics.certificate;
        assert_eq!((certificate.ready, certificate.max_effective_limit), (2, 32));
        assert_eq!(Counters::default().read(16), WorkerMetrics::default());
    }
}
