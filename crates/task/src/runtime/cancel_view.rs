//! The check for cancels of the task, or of the part of it that is being polled.
//!
//! A request to the task is in its state word. A cancel of a part of it is in the chain of nodes
//! around the caller ([`node`]): the body of a scope, a branch of `timeout`, `race` and the
//! like. The chain is walked once, from the inside out; a shield ends the walk.

use asx_kernel::budget::Exhausted;
use asx_kernel::task::TaskState;

use crate::footprint::{Object, Part};
use crate::raw::TaskRef;
use crate::raw::outcome::Cancelled;
use crate::raw::poll_context::{self, Elsewhere};
use crate::runtime::node::{self, Verdict};

/// The cancels that reach the caller.
#[derive(Clone, Copy)]
pub(crate) struct CancelView<'a> {
    task: &'a TaskRef,
}

/// The side effects of a check.
#[derive(Clone, Copy)]
pub(crate) struct Check {
    /// A cancel that is found counts as observed: the task, or the part of it, ends cancelled.
    observe: bool,
    /// The clock is read if a part of the task has a deadline. Its timer does not fire during a
    /// long poll.
    in_time: bool,
}

impl Check {
    /// Without side effects.
    pub(crate) const UNSEEN: Check = Check { observe: false, in_time: false };
    /// A cancel counts as observed.
    pub(crate) const SEEN: Check = Check { observe: true, in_time: false };
    /// A cancel counts as observed, and deadlines are checked: the check of an operation.
    pub(crate) const IN_TIME: Check = Check { observe: true, in_time: true };
}

impl<'a> CancelView<'a> {
    #[inline]
    pub(crate) fn of(task: &'a TaskRef) -> CancelView<'a> {
        CancelView { task }
    }

    /// The cancel that reaches the caller, if there is one.
    #[inline]
    pub(crate) fn check(self, how: Check) -> Option<Cancelled> {
        if self.is_bare() { None } else { self.check_chain(how) }
    }

    #[inline(never)]
    fn check_chain(self, how: Check) -> Option<Cancelled> {
        let task = self.task;
        let found = node::find(task, |node| {
            if how.in_time {
                node.expire(task.region());
            }
            node.check(how.observe)
        });
        if matches!(found, Ok(Some(_))) {
            let _ = node::find(task, |node| {
                node.note_look();
                None::<()>
            });
        }
        let here = match found {
            Ok(Some(Verdict::Shielded)) => return None,
            Ok(Some(Verdict::Cancelled(cancelled))) => return Some(cancelled),
            Ok(None) => true,
            Err(Elsewhere) => {
                Object::of_task(task.id(), Part::Own).read();
                false
            }
        };
        if task.is_finalizer() {
            return None;
        }
        let mut state = task.word.load().state();
        if here && !state.in_cancel_lane() && self.misses_deadline() {
            state = TaskState::CancelRequested;
        }
        if !state.in_cancel_lane() {
            return None;
        }
        if how.observe && here && state == TaskState::CancelRequested {
            return task.region().acknowledge(task);
        }
        Some(Cancelled::from(task.region().reason_of(task)))
    }

    /// Whether a check finds nothing, and the task has no deadline.
    #[inline]
    pub(crate) fn is_quiet(self) -> bool {
        self.is_bare() || self.is_chain_quiet()
    }

    #[inline(never)]
    fn is_chain_quiet(self) -> bool {
        let asked = node::find(self.task, |node| (!node.is_quiet()).then_some(()));
        matches!(asked, Ok(None)) && self.is_task_quiet()
    }

    /// Whether it is quiet and no part of the task is around the caller: the usual case, without
    /// calls.
    #[inline]
    fn is_bare(self) -> bool {
        // Shortcut: `CancelView::is_bare`: an operation proceeds without walking the scope chain if
        // its task has no cancel request, no deadline and no scope around the operation.
        // Law: cancel-checked operations observe cancels first (`world::waits`).
        // Equal: `a_quiet_task_is_one_that_sees_nothing` (with and without parts).
        // Worth: 8.6 % of `spsc`.

        poll_context::is_bare(self.task) && self.is_task_quiet()
    }

    #[inline]
    fn is_task_quiet(self) -> bool {
        self.task.attrs.is_none() && !self.task.word.load().state().in_cancel_lane()
    }

    /// Whether the task's deadline has passed; it is cancelled then.
    #[inline]
    fn misses_deadline(self) -> bool {
        let Some(limits) = self.task.limits() else { return false };
        let core = &self.task.core();
        let missed = limits.deadline().is_some_and(|deadline| deadline <= core.host.now());
        if missed {
            core.forget_deadline(limits);
            self.task.region().exhausted(self.task, Exhausted::Deadline);
        }
        missed
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use asx_kernel::budget::Budget;
    use asx_kernel::cancel::Kind;

    use super::*;
    use crate::Cx;
    use crate::region::Policy;
    use crate::runtime::node::{Branch, Inside, Kind as Node};
    use crate::spawn::{Plan, make};
    use crate::test_util::loose_region;

    /// What is quiet sees nothing when it looks: in a poll, with a node of each kind
    /// around, with and without a cancel of that and of the task. And it is quiet if it can be.
    #[test]
    fn a_quiet_task_is_one_that_sees_nothing() {
        let cases = [(false, false), (false, true), (true, false), (true, true)];
        for (task_told, node_told) in cases {
            let region = loose_region();
            let reason = region.reason(Kind::User);
            let branch = Branch::default();
            let child = region.open_child(Policy::FailFast, Budget::INFINITE, None).unwrap();
            if node_told {
                branch.cancel(reason.clone().into());
                child.close_as(Kind::User);
            }
            // Else the two regions keep each other.
            child.end();
            let sees = |cx: &Cx| {
                let quiet = cx.cancel_view().is_quiet();
                let bare = cx.cancel_view().is_bare();
                assert_eq!(bare, quiet && poll_context::is_bare(cx.task()));
                let seen = cx.cancel_view().check(Check::UNSEEN);
                assert!(!quiet || seen.is_none(), "{task_told} {node_told}: {seen:?}");
                (quiet, seen.is_some())
            };
            let body = async move |cx: Cx| {
                let inside = async |kind| Inside::new(kind, async { sees(&cx) }).await;
                let either = task_told || node_told;
                assert_eq!(sees(&cx), (!task_told, task_told));
                assert_eq!(inside(Node::Branch(branch)).await, (!either, either));
                assert_eq!(inside(Node::Scope(child)).await, (!either, either));
                assert_eq!(inside(Node::Shield(Default::default())).await, (false, false));
                Ok::<(), ()>(())
            };
            // SAFETY: Send and 'static.
            let (entry, task) = unsafe { make(&region, Plan::default(), body) };
            if task_told {
                task.cancel_with(reason);
            }
            assert!(entry.unwrap().unwrap().run() && task.is_finished());
            let limited = Plan {
                budget: Some(Budget { poll_quota: 1, ..Budget::INFINITE }),
                ..Plan::default()
            };
            let body = async move |cx: Cx| Ok::<_, ()>(cx.cancel_view().is_quiet());
            // SAFETY: as above.
            let (entry, mut task) = unsafe { make(&region, limited, body) };
            assert!(entry.unwrap().unwrap().run() && matches!(task.outcome(), Some(Ok(false))));
        }
    }
}
