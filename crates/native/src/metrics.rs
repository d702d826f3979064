//! Counters that are always on: each has one writer, so that counting is a load and a store. The
//! count of polls is also what tells a worker when to look at the timers.

use std::hint::black_box;
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
    pub(crate) polls: Counter,
    cancel: Counter,
    timed: Counter,
    pub(crate) fallbacks: Counter,
    pub(crate) steals: Counter,
    pub(crate) parks: Counter,
    pub(crate) watches: Counter,
}

impl Counters {
    /// A poll: how many there were with it.
    #[inline]
    pub(crate) fn polled(&self) -> u64 {
        self.polls.count()
    }

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
    workers.iter().map(Counters::read).collect()
}

#[cfg(test)]
mod tests {
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
            counters.dispatched(lane, fallback);
            counters.polled();
        }
        let WorkerMetrics { polls, cancel, timed, ready, fallbacks, .. } = counters.read();
        assert_eq!((polls, cancel, timed, ready, fallbacks), (4, 1, 1, 1, 1));
    }
}
