//! What a runtime has done, in numbers.

use asx_kernel::lanes::Certificate;

use super::Health;

/// What a runtime has done so far. Numbers of running workers may be a moment old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// By worker, on hosts that have workers; with one worker, that is a thread in `block_on`.
    pub workers: Vec<WorkerMetrics>,
    /// What other threads in `block_on` have done, all together.
    pub guests: WorkerMetrics,
    /// What went wrong in tasks without anybody having to notice.
    pub health: Health,
}

/// What one worker has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerMetrics {
    /// Dispatches: tasks that were polled, and the few whose polls were used up and that ended
    /// instead. What a cancel leaves behind in a queue is not counted.
    pub polls: u64,
    /// Of these from the cancel lane.
    pub cancel: u64,
    /// Of these from the timed lane.
    pub timed: u64,
    /// Of these from the ready lane.
    pub ready: u64,
    /// Of these cancel work over its limit, because there was nothing else.
    pub fallbacks: u64,
    /// How often work went first because other work had gone before it as often as is allowed.
    pub bypasses: u64,
    /// How often it took work from another worker.
    pub steals: u64,
    /// How often it parked until woken or for a timer.
    pub parks: u64,
    /// How often it parked for a short while, to look at the others again.
    pub watches: u64,
    /// How often it got up from a park to see whether the sockets are looked at.
    pub ticks: u64,
    /// Its dispatches as the law on fairness counts them, plain ones included:
    /// `effective_exceedances` is 0, or the law was broken.
    pub certificate: Certificate,
}

impl WorkerMetrics {
    /// The sum of two.
    #[must_use]
    pub fn plus(self, more: WorkerMetrics) -> WorkerMetrics {
        let one = self.certificate;
        let other = more.certificate;
        let certificate = Certificate {
            cancel: one.cancel + other.cancel,
            timed: one.timed + other.timed,
            ready: one.ready + other.ready,
            fallback: one.fallback + other.fallback,
            base_exceedances: one.base_exceedances + other.base_exceedances,
            effective_exceedances: one.effective_exceedances + other.effective_exceedances,
            max_effective_limit: one.max_effective_limit.max(other.max_effective_limit),
        };
        WorkerMetrics {
            polls: self.polls + more.polls,
            cancel: self.cancel + more.cancel,
            timed: self.timed + more.timed,
            ready: self.ready + more.ready,
            fallbacks: self.fallbacks + more.fallbacks,
            bypasses: self.bypasses + more.bypasses,
            steals: self.steals + more.steals,
            parks: self.parks + more.parks,
            watches: self.watches + more.watches,
            ticks: self.ticks + more.ticks,
            certificate,
        }
    }
}
