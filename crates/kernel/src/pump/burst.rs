//! The allowance of one host turn: steps, time and timers.
//!
//! All drains of a turn share one allowance. A drain that a microtask begins in the turn of an
//! earlier drain continues that account, so the time in between counts too: the page's promise
//! reactions and host callbacks ran in it.
//!
//! The time limit is enforced by reading the clock between polls. A reading costs more than a short
//! poll, so readings are spaced: first every poll, then twice as far apart each time up to the
//! configured spacing, but never further than the remaining time divided by the slowest poll
//! measured in this turn. A turn that takes over from another begins with the final spacing of that
//! turn.
//!
//! So as long as no poll is slower than those seen before it, in this or the earlier turn, the
//! drain ends at most one poll late. With a spacing of 1, the default, this holds for any polls. A
//! poll that is suddenly slow is noticed after at most the configured spacing.

use super::PumpConfig;
use crate::named::ensure;
use crate::time::{Time, nanos};

/// The reason why a drain ended although work was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// All steps of the burst are used.
    Steps,
    /// The time of the burst is used.
    Time,
    /// A time limit is set, but the clock reading that was due is missing. The drain cannot know
    /// its duration, so it ended after the poll.
    Clock,
    /// The batch of expired timers was capped and more are due.
    Timers,
}

/// The account of one host turn, including its running drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Burst {
    /// Whether a wake or pump call came since the last granted step.
    pub(super) pending: bool,
    /// Steps of the running drain.
    pub(super) steps: u32,
    /// Steps of the earlier drains of this turn.
    before: u32,
    /// Expired timers collected in this turn.
    pub(super) timers: usize,
    /// Whether the capped batch left expired timers behind.
    pub(super) timers_left: bool,
    /// Whether the drain pauses so that page code runs before its next step.
    paused: bool,
    /// The reason why further steps are refused. Never reset, even if the clock goes back.
    spent: Option<Limit>,
    started: Option<Time>,
    read: Option<Time>,
    /// Polls since the last reading, and the number allowed before the next one.
    unread: u32,
    pub(super) stride: u32,
    slowest: u64,
}

impl Burst {
    /// Creates the account of a turn at its first drain. The clock is read again after
    /// `stride` polls.
    pub(super) fn new(now: Option<Time>, stride: u32) -> Burst {
        Burst { started: now, read: now, stride, slowest: 1, ..Burst::default() }
    }

    /// Continues the account with another drain of the same turn.
    ///
    /// The time limit holds from the turn's first drain on, so a reading that is missing here
    /// refuses every further step.
    pub(super) fn resume(&self, config: &PumpConfig, now: Option<Time>) -> Burst {
        let before = self.taken().min(config.microtask_burst_limit);
        let timers = self.timers.min(config.timer_batch_limit);
        let (pending, steps, timers_left, paused) = (false, 0, false, false);
        let mut next = Burst { pending, steps, before, timers, timers_left, paused, ..*self };
        if next.spent.is_none() && before > 0 {
            next.spent = next.refuse(config, now);
            let unknown = config.burst_time_limit.is_some() && now.is_none();
            next.spent = next.spent.or(unknown.then_some(Limit::Clock));
        }
        next
    }

    /// Returns the number of steps of the turn.
    fn taken(&self) -> u32 {
        self.before.saturating_add(self.steps)
    }

    /// Whether at least the time limit has passed since the last clock reading, as far as known.
    pub(super) fn is_past(&self, config: &PumpConfig, now: Option<Time>) -> bool {
        match (config.burst_time_limit, self.read, now) {
            (Some(limit), Some(read), Some(now)) => nanos(now - read) >= nanos(limit),
            _ => true,
        }
    }

    /// Refuses further steps of this drain without using up the allowance.
    pub(super) fn pause(&mut self) {
        self.paused = true;
    }

    /// Whether the drain paused and the turn may take further steps, as far as is known.
    pub(super) fn may_resume(&self, config: &PumpConfig) -> bool {
        let has_steps = self.taken() < config.microtask_burst_limit;
        self.paused && has_steps && self.reached().is_none()
    }

    /// The drain ends and does not resume: records that its steps are used up, if they are.
    pub(super) fn end(&mut self, config: &PumpConfig) {
        if self.paused && self.spent.is_none() && self.taken() >= config.microtask_burst_limit {
            self.spent = Some(Limit::Steps);
        }
    }

    /// Whether a clock reading is due before the next step.
    pub(super) fn clock_due(&self, config: &PumpConfig) -> bool {
        config.burst_time_limit.is_some() && self.unread >= self.stride && !self.paused
    }

    /// Takes one step from the allowance. The first step of a turn is always granted, so that every
    /// turn makes progress.
    #[inline(always)]
    pub(super) fn step(&mut self, config: &PumpConfig, now: Option<Time>) -> bool {
        if self.spent.is_none() && self.taken() > 0 {
            self.spent = self.refuse(config, now);
        }
        let granted = self.spent.is_none() && !self.paused;
        self.pending &= !granted;
        self.steps += u32::from(granted);
        self.unread += u32::from(granted);
        granted
    }

    #[inline(always)]
    fn refuse(&mut self, config: &PumpConfig, now: Option<Time>) -> Option<Limit> {
        if self.taken() >= config.microtask_burst_limit {
            return Some(Limit::Steps);
        }
        let limit = nanos(config.burst_time_limit?);
        match (self.started, self.read, now) {
            (Some(started), Some(read), Some(now)) => {
                let now = now.max(read);
                let left = limit.saturating_sub(nanos(now - started));
                self.measure(config.clock_check_every, nanos(now - read), left);
                self.read = Some(now);
                (left == 0).then_some(Limit::Time)
            }
            _ => self.clock_due(config).then_some(Limit::Clock),
        }
    }

    /// Spaces the next reading according to the duration of the polls since the last one.
    fn measure(&mut self, spacing: u32, took: u64, left: u64) {
        self.slowest = self.slowest.max(took.div_ceil(u64::from(self.unread.max(1))));
        let fits = u32::try_from(left / self.slowest).unwrap_or(u32::MAX);
        self.stride = fits.min(self.stride.saturating_mul(2)).clamp(1, spacing.max(1));
        self.unread = 0;
    }

    /// Returns the limit to report if the drain ends with work left.
    pub(super) fn reached(&self) -> Option<Limit> {
        self.spent.or(self.timers_left.then_some(Limit::Timers))
    }

    /// Checks that the step, timer and clock accounts are within their limits.
    pub(super) fn check(&self, config: &PumpConfig) -> Result<(), &'static str> {
        let steps = self.taken() <= config.microtask_burst_limit;
        let timers = self.timers <= config.timer_batch_limit;
        let clock = config.burst_time_limit.is_none() || self.unread <= self.stride;
        ensure(steps, "INV-BR-02: more steps in one host turn than the burst limit")?;
        ensure(timers, "INV-BR-02: more timers in one host turn than the batch limit")?;
        ensure(clock, "INV-BR-02: a step was taken with a clock reading overdue")
    }
}
