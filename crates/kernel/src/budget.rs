//! Budgets: a deadline, polls, cost and a priority that only ever tighten.

use crate::cancel::Kind;
use crate::lanes::Priority;
use crate::named::ensure;
use crate::status::Status;
use crate::time::Time;
use core::time::Duration;

/// The resources that a task or region may use.
///
/// ```
/// # mod asx { pub use asx_kernel::{budget::Budget, time}; }
/// use asx::{Budget, time::Time};
/// let own = Budget { deadline: Some(Time::from_millis(5)), ..Budget::INFINITE };
/// assert_eq!(Budget::INFINITE.meet(own), own);
/// assert_eq!(Budget::ZERO.meet(own), Budget::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The deadline, if any. At this instant the budget is exhausted.
    pub deadline: Option<Time>,
    /// The number of polls left; `u64::MAX` means no limit.
    pub poll_quota: u64,
    /// The cost left, if limited.
    pub cost_quota: Option<u64>,
    /// The scheduling priority; higher runs first.
    pub priority: Priority,
}

/// The part of a budget that is exhausted. Nothing was consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// No poll left.
    Polls,
    /// Not enough cost allowance left.
    Cost,
    /// The deadline is reached.
    Deadline,
}

impl Exhausted {
    /// The kind of cancel that this exhaustion starts.
    pub const fn kind(self) -> Kind {
        match self {
            Exhausted::Polls => Kind::PollQuota,
            Exhausted::Cost => Kind::CostBudget,
            Exhausted::Deadline => Kind::Deadline,
        }
    }
}

errors! {
    Exhausted {
        Exhausted::Polls => Status::BudgetExhausted, "the poll quota is used up";
        Exhausted::Cost => Status::BudgetExhausted, "the cost quota is used up";
        Exhausted::Deadline => Status::BudgetExhausted, "the deadline has passed";
    }
}

/// The exhaustions of a budget that have started their cancel. Each starts only one; the task runs
/// on until it observes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noticed {
    polls: bool,
    cost: bool,
}

impl Noticed {
    /// Records that this exhaustion has started its cancel. Exhausted polls also cover exhausted
    /// cost: its cancel has the same severity, and would change nothing.
    pub fn insert(&mut self, exhausted: Exhausted) {
        match exhausted {
            Exhausted::Polls => (self.polls, self.cost) = (true, true),
            Exhausted::Cost => self.cost = true,
            Exhausted::Deadline => {}
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget::INFINITE
    }
}

impl Budget {
    /// No limits: the identity of [`meet`](Budget::meet).
    pub const INFINITE: Budget =
        Budget { deadline: None, poll_quota: u64::MAX, cost_quota: None, priority: Priority(0) };

    /// An exhausted budget: the absorbing element of [`meet`](Budget::meet).
    pub const ZERO: Budget = Budget {
        deadline: Some(Time::ZERO),
        poll_quota: 0,
        cost_quota: Some(0),
        priority: Priority(255),
    };

    /// Returns the componentwise tighter budget.
    #[must_use]
    pub fn meet(self, other: Budget) -> Budget {
        Budget {
            deadline: tighter(self.deadline, other.deadline),
            poll_quota: self.poll_quota.min(other.poll_quota),
            cost_quota: tighter(self.cost_quota, other.cost_quota),
            priority: Priority(self.priority.0.max(other.priority.0)),
        }
    }

    /// Consumes one poll.
    pub fn consume_poll(&mut self) -> Result<(), Exhausted> {
        if self.poll_quota < u64::MAX {
            self.poll_quota = self.poll_quota.checked_sub(1).ok_or(Exhausted::Polls)?;
        }
        Ok(())
    }

    /// Consumes one poll for a task that is about to be polled. Returns whether there was one.
    ///
    /// Polls are checked first, then cost; both are exhausted at 0. The first exhaustion of each
    /// consumes nothing and is returned as an error: the task is to be cancelled. Later calls let
    /// the task be polled anyway.
    pub fn begin_poll(&mut self, noticed: &mut Noticed) -> Result<bool, Exhausted> {
        let polls_out = self.poll_quota == 0 && !noticed.polls;
        let cost_out = self.cost_quota == Some(0) && !noticed.cost;
        let exhausted = match (polls_out, cost_out) {
            (true, _) => Exhausted::Polls,
            (false, true) => Exhausted::Cost,
            (false, false) => return Ok(self.consume_poll().is_ok()),
        };
        noticed.insert(exhausted);
        Err(exhausted)
    }

    /// Consumes `cost`, all of it or nothing.
    pub fn consume_cost(&mut self, cost: u64) -> Result<(), Exhausted> {
        let Some(left) = self.cost_quota else { return Ok(()) };
        self.cost_quota = Some(left.checked_sub(cost).ok_or(Exhausted::Cost)?);
        Ok(())
    }

    /// Checks that the deadline is in the future; at the deadline itself it has passed.
    pub fn check_deadline(&self, now: Time) -> Result<(), Exhausted> {
        ensure(self.deadline.is_none_or(|deadline| now < deadline), Exhausted::Deadline)
    }

    /// Returns the end of a wait of `timeout` that begins now. Fails if the deadline has passed.
    pub fn wait_until(&self, now: Time, timeout: Duration) -> Result<Time, Exhausted> {
        self.check_deadline(now)?;
        let end = now + timeout;
        Ok(self.deadline.map_or(end, |deadline| end.min(deadline)))
    }
}

/// Returns the smaller limit, where `None` means no limit.
pub(crate) fn tighter<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Coded;
    use std::format;

    #[test]
    fn polls_are_checked_before_cost_and_each_is_reported_once() {
        let quotas =
            |polls, cost| Budget { poll_quota: polls, cost_quota: Some(cost), ..Budget::INFINITE };
        let three = |mut budget: Budget| {
            let mut noticed = Noticed::default();
            let answers = [0; 3].map(|_| budget.begin_poll(&mut noticed));
            (answers, budget.poll_quota)
        };
        let polls = Err(Exhausted::Polls);
        let cost = Err(Exhausted::Cost);
        assert_eq!(three(quotas(5, 1)), ([Ok(true); 3], 2));
        assert_eq!(three(quotas(5, 0)), ([cost, Ok(true), Ok(true)], 3), "no poll is consumed");
        assert_eq!(three(quotas(1, 0)), ([cost, Ok(true), polls], 0));
        assert_eq!(three(quotas(1, 1)), ([Ok(true), polls, Ok(false)], 0));
        assert_eq!(three(quotas(0, 0)), ([polls, Ok(false), Ok(false)], 0));
        let mut spent = Noticed::default();
        spent.insert(Exhausted::Cost);
        assert_eq!(quotas(5, 0).begin_poll(&mut spent), Ok(true));
        spent.insert(Exhausted::Deadline);
        assert_eq!(quotas(0, 0).begin_poll(&mut spent), polls);
    }

    #[test]
    fn each_exhaustion_starts_its_own_cancel() {
        let rows = [
            (Exhausted::Polls, Kind::PollQuota, "the poll quota is used up"),
            (Exhausted::Cost, Kind::CostBudget, "the cost quota is used up"),
            (Exhausted::Deadline, Kind::Deadline, "the deadline has passed"),
        ];
        for (exhausted, kind, text) in rows {
            assert_eq!((exhausted.kind(), exhausted.status()), (kind, Status::BudgetExhausted));
            assert_eq!(format!("{exhausted}"), text);
        }
    }
}
