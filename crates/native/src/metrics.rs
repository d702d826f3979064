//! Counters that are always on: each has one writer, so that counting is a load and a store.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::lanes::Lane;
use asx_runtime::Health;

/// A number that one thread counts up and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What one worker counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) polls: Counter,
    cancel: Counter,
    timed: Counter,
    pub(crate) fallbacks: Counter,
    pub(crate) steals: Counter,
    pub(crate) parks: Counter,
    pub(crate) watches: Counter,
}

impl Counters {
    /// A dispatch decided by the law with all lanes.
    pub(crate) fn dispatched(&self, lane: Lane, fallback: bool) {
        match lane {
            Lane::Cancel if fallback => self.fallbacks.add(1),
            Lane::Cancel => self.cancel.add(1),
            Lane::Timed => self.timed.add(1),
            Lane::Ready => {}
        }
    }

    pub(crate) fn read(&self) -> WorkerMetrics {
        let polls = self.polls.get();
        let (cancel, timed) = (self.cancel.get(), self.timed.get());
        let fallbacks = self.fallbacks.get();
        WorkerMetrics {
            polls,
            cancel,
            timed,
            ready: polls.saturating_sub(cancel + timed + fallbacks),
            fallbacks,
            steals: self.steals.get(),
            parks: self.parks.get(),
            watches: self.watches.get(),
        }
    }
}

/// What a runtime has done so far. Numbers of running workers may be a moment old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// By worker; the first is a thread in `block_on`.
    pub workers: Vec<WorkerMetrics>,
    /// What other threads in `block_on` have done, all together.
    pub guests: WorkerMetrics,
    /// What went wrong in tasks without anybody having to notice.
    pub health: Health,
}

/// What one worker has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerMetrics {
    /// Entries taken from queues: polls, and the few that found nothing to poll.
    pub polls: u64,
    /// Of these from the cancel lane.
    pub cancel: u64,
    /// Of these from the timed lane.
    pub timed: u64,
    /// Of these from the ready lane.
    pub ready: u64,
    /// Of these cancel work over its limit, because there was nothing else.
    pub fallbacks: u64,
    /// How often it took work from another worker.
    pub steals: u64,
    /// How often it parked until woken or for a timer.
    pub parks: u64,
    /// How often it parked for a short while, to look at the others again.
    pub watches: u64,
}

impl WorkerMetrics {
    pub(crate) fn plus(self, more: WorkerMetrics) -> WorkerMetrics {
        WorkerMetrics {
            polls: self.polls + more.polls,
            cancel: self.cancel + more.cancel,
            timed: self.timed + more.timed,
            ready: self.ready + more.ready,
            fallbacks: self.fallbacks + more.fallbacks,
            steals: self.steals + more.steals,
            parks: self.parks + more.parks,
            watches: self.watches + more.watches,
        }
    }
}

/// Counts polls as workers do, and runs none, so that benchmarks can tell what counting costs. Each
/// is another worker's than the one before: a worker does much between two polls, so that one never
/// waits for what the other wrote.
#[doc(hidden)]
pub fn count_polls(polls: u32) -> Vec<WorkerMetrics> {
    let workers: [Counters; 16] = Default::default();
    for (_, counters) in (0..polls).zip(workers.iter().cycle()) {
        let counters = std::hint::black_box(counters);
        counters.dispatched(Lane::Timed, false);
        counters.polls.add(1);
    }
    workers.iter().map(Counters::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_poll_is_counted_with_its_lane() {
        let workers = count_polls(100);
        let sum = |of: fn(&WorkerMetrics) -> u64| workers.iter().map(of).sum::<u64>();
        assert_eq!((sum(|w| w.polls), sum(|w| w.timed), sum(|w| w.ready)), (100, 100, 0));
    }
}
