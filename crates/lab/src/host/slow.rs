//! A machine that is slow: time that passes while tasks can run.
//!
//! Elsewhere time stands still in the lab until nothing can run, as if polls took none. On a
//! machine that is busy it does not: a timer comes due before the work that it was to wait for,
//! though that was ready. In runs with [`Plan::slow`](crate::machine::Plan::slow) the strategy is
//! asked before each step whether that happens, and how much time it takes.

use std::borrow::Cow;
use std::time::Duration;

use asx_kernel::time::Time;
use asx_runtime::Host as _;

use super::{LabHost, Made, State};
use crate::explore::Point;

/// By how much time may pass the next timer.
const BEYOND: Duration = Duration::from_millis(30);

/// How much may pass without getting to the next timer, or where there is none.
const SPANS: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

impl LabHost {
    /// The time at which the next step is taken, if it is later than it is: the strategy's choice,
    /// while something can run. `next`: when the next timer is due. If none is armed, time passes
    /// only where it has before: between a timer and the poll that it causes. At most `most`
    /// passes, if tasks are to stop within a time.
    pub(crate) fn slow_until(&self, next: Option<Time>, most: Option<Duration>) -> Option<Time> {
        let mut state = self.state();
        let now = self.now();
        if !state.can_run() || next.is_none() && now == Time::ZERO {
            return None;
        }
        state.asks = true;
        let left = next.map(|next| next - now);
        let spans = SPANS.into_iter().filter(|span| left.is_none_or(|left| *span < left));
        let timer = left.into_iter().flat_map(|left| [left, left + BEYOND]);
        let is_allowed = |passed: &Duration| most.is_none_or(|most| *passed <= most);
        let menu: Vec<Duration> = timer.chain(spans).filter(is_allowed).collect();
        if menu.is_empty() {
            return None;
        }
        let picked = state.pick(Point::Timer, menu.len() + 1);
        let passed = *menu.get(picked.checked_sub(1)?)?;
        let text = Cow::Owned(format!("{passed:?} passed"));
        state.faults.made.push(Made { text, point: Point::Timer });
        state.is_disturbed = true;
        Some(now + passed)
    }
}

impl State {
    /// Whether a task or the network can go on.
    fn can_run(&self) -> bool {
        let has_work = self.lanes.as_ref().is_some_and(|lanes| !lanes.is_empty());
        has_work || !self.enabled.is_empty() || !self.carriers.is_empty()
    }
}
