//! What a cell answers without the law, against the law.

use super::*;
use crate::loose::loose_region;
use crate::spawn::{Plan, make};
use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::task::TaskState;

/// A task that is never polled, and its entry.
fn task(budget: Budget) -> (Runnable, crate::Task<(), ()>) {
    let plan = Plan { budget: Some(budget), ..Plan::default() };
    // SAFETY: Send and 'static.
    let (entry, task) = unsafe { make(&loose_region(), plan, async |_: Cx| Ok(())) };
    (entry.unwrap().unwrap(), task)
}

/// Where the scheduler's law puts a task.
fn law(state: TaskState, budget: Budget, cleanup: Priority) -> Place {
    match budget.deadline {
        _ if state.in_cancel_lane() => Place::Cancel(budget.priority.max(cleanup)),
        Some(deadline) => Place::Timed(deadline),
        None => Place::Ready(budget.priority),
    }
}

#[test]
fn plain_means_the_ready_lane_at_the_usual_priority() {
    let priorities = [0, 127, 128, 129, 210, 255].map(Priority);
    let deadlines = [None, Some(Time::from_nanos(1)), Some(Time::MAX)];
    for (priority, deadline) in
        priorities.into_iter().flat_map(|priority| deadlines.map(|deadline| (priority, deadline)))
    {
        let budget = Budget { priority, deadline, ..Budget::INFINITE };
        let (entry, handle) = task(budget);
        let kind = Kind::Timeout;
        let cleanup = Priority(kind.cleanup().priority);
        let check = |expected: TaskState| {
            let state = entry.header().word.load().state();
            assert_eq!(state, expected);
            let place = law(state, budget, cleanup);
            assert_eq!(entry.place(), place);
            assert_eq!(entry.is_plain(), place == Place::Ready(Priority::DEFAULT), "{place:?}");
        };
        check(TaskState::Created);
        let word = &entry.header().word;
        assert!(word.begin(true, false).is_some());
        check(TaskState::Running);
        assert!(handle.cancel_with(entry.header().region.reason(kind)));
        check(TaskState::CancelRequested);
        assert!(word.acknowledge().is_some());
        check(TaskState::Cancelling);
        assert!(word.body_ended());
        check(TaskState::Finalizing);
        // The request asked for one more poll, which ends it.
        assert!(word.end_poll() && entry.run());
    }
}
