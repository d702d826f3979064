//! Counters that are always enabled. Each has one writer, so that an increment is a load and a
//! store. A worker also schedules its timer checks by the counter of polls.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::lanes::{Certificate, Chosen, Lane};
use asx_runtime::WorkerMetrics;

/// A counter with one writing thread and any number of readers.
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

    /// Increments the counter; returns the new value.
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

/// The counters of one worker.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Dispatches: entries whose poll began. Dead entries are not counted.
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
    /// Counts a poll; returns the new number of polls.
    #[inline]
    pub(crate) fn polled(&self) -> u64 {
        self.polls.count()
    }

    /// Counts a dispatch that the dispatch law decided, before it is counted as a poll.
    pub(crate) fn dispatched(&self, chosen: Chosen, streak: u32, base: u32) {
        let Chosen { verdict, pending, .. } = chosen;
        if verdict.lane == Lane::Ready {
            // Counted as a poll, like a dispatch of the fast path.
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

    /// Returns the dispatches so far. Those of the fast path are counted as polls only, so the
    /// ready lane has all polls that are not counted for another lane.
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

    /// Returns the metrics. `base` is the limit of cancel streaks that applies to the fast path.
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

/// Counts `polls` polls as workers do, or does the same without counting. No task is polled.
/// Benchmarks measure by it what counting costs. Successive polls are counted for different
/// workers, so that no increment waits for the previous store: a worker does much between two
/// polls.
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
    fn polls_not_counted_for_another_lane_are_ready_dispatches() {
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
