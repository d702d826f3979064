//! Which lane goes next, and for how long one lane may pass the others.
//!
//! The *streak* counts consecutive cancel dispatches. At the limit cancel work stands back for one
//! dispatch of anything else; if there is nothing else it goes as a *fallback*. The streak returns
//! to 0 with a dispatch from another lane, with a fallback and with a park. So nobody watches more
//! than `limit` cancel dispatches in a row while waiting, whatever the governor says meanwhile.
//!
//! The *timed streak* counts consecutive timed dispatches made while cancel work waited, and bounds
//! by the same number how long a governor that wants deadlines met can hold cancel work back. At
//! most one of the two counters is above 0.

use super::{Lane, Suggestion};

/// The settings of [`Fairness`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairnessConfig {
    /// Cancel dispatches in a row while other work waits; 0 counts as 1.
    pub cancel_streak_limit: u32,
}

impl Default for FairnessConfig {
    fn default() -> Self {
        FairnessConfig { cancel_streak_limit: 16 }
    }
}

/// Which lanes hold work, as the deciding worker sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Cancel work waits.
    pub cancel: bool,
    /// Timed work waits.
    pub timed: bool,
    /// Ready work waits.
    pub ready: bool,
}

impl Pending {
    /// Whether a lane holds work.
    pub const fn has(self, lane: Lane) -> bool {
        match lane {
            Lane::Cancel => self.cancel,
            Lane::Timed => self.timed,
            Lane::Ready => self.ready,
        }
    }

    /// Whether any lane holds work.
    pub const fn any(self) -> bool {
        self.cancel || self.timed || self.ready
    }

    /// Whether work other than cancel work waits.
    pub const fn other(self) -> bool {
        self.timed || self.ready
    }
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The lane to dispatch from.
    pub lane: Lane,
    /// Cancel work over its limit, dispatched because there is nothing else.
    pub fallback: bool,
    /// The cancel-streak limit in force.
    pub limit: u32,
}

/// One worker's streaks.
///
/// ```
/// use asx_kernel::lanes::{Fairness, FairnessConfig, Lane, Pending, Suggestion};
/// let mut fairness = Fairness::new(FairnessConfig { cancel_streak_limit: 1 });
/// let pending = Pending { cancel: true, timed: false, ready: true };
/// let mut step = || {
///     let verdict = fairness.decide(pending, Suggestion::NoPreference).unwrap();
///     fairness.record(verdict, pending);
///     verdict.lane
/// };
/// assert_eq!([step(), step(), step()], [Lane::Cancel, Lane::Ready, Lane::Cancel]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fairness {
    base: u32,
    streak: u32,
    timed_streak: u32,
}

impl Fairness {
    /// No streak yet.
    pub fn new(config: FairnessConfig) -> Fairness {
        Fairness { base: config.cancel_streak_limit.max(1), streak: 0, timed_streak: 0 }
    }

    /// Chooses the lane; `None` when nothing waits. Changes nothing.
    ///
    /// A fallback verdict covers what the caller told of in `pending`: a caller that can still find
    /// other work elsewhere (steal) looks there first.
    pub fn decide(&self, pending: Pending, suggestion: Suggestion) -> Option<Verdict> {
        let limit = self.limit(suggestion);
        // Timed work that has passed waiting cancel work `limit` times goes back to its rank.
        let order = if self.timed_streak < limit { suggestion.order() } else { Lane::ALL };
        let may_go = |lane: &Lane| {
            pending.has(*lane) && (*lane != Lane::Cancel || self.cancel_may_go(suggestion))
        };
        match order.into_iter().find(may_go) {
            Some(lane) => Some(Verdict { lane, fallback: false, limit }),
            None if pending.cancel => Some(Verdict { lane: Lane::Cancel, fallback: true, limit }),
            None => None,
        }
    }

    /// Notes a dispatch; `pending` is what waited when it was decided, the dispatched entry
    /// included.
    pub fn record(&mut self, verdict: Verdict, pending: Pending) {
        let cancel = verdict.lane == Lane::Cancel && !verdict.fallback;
        let passed = verdict.lane == Lane::Timed && pending.cancel;
        self.streak = if cancel { self.streak.saturating_add(1) } else { 0 };
        self.timed_streak = if passed { self.timed_streak.saturating_add(1) } else { 0 };
    }

    /// Notes that the worker parked, or that the host went idle with all lanes empty.
    pub fn parked(&mut self) {
        (self.streak, self.timed_streak) = (0, 0);
    }

    /// Whether the streak is below the limit in force.
    pub fn cancel_may_go(&self, suggestion: Suggestion) -> bool {
        self.streak < self.limit(suggestion)
    }

    /// Cancel dispatches in a row.
    pub fn streak(&self) -> u32 {
        self.streak
    }

    /// Timed dispatches in a row while cancel work waited.
    pub fn timed_streak(&self) -> u32 {
        self.timed_streak
    }

    /// The configured limit.
    pub fn base_limit(&self) -> u32 {
        self.base
    }

    /// The limit in force under a suggestion.
    pub fn limit(&self, suggestion: Suggestion) -> u32 {
        suggestion.limit(self.base)
    }
}
