//! How a task comes to be.

use std::future::{Future, Pending};
use std::panic::Location;
use std::sync::Arc;

use asx_kernel::budget::Budget;
use asx_kernel::lanes::Priority;
use asx_kernel::outcome::Severity;
use asx_kernel::region::Operation;
use asx_kernel::status::Status;

use crate::Cx;
use crate::footprint;
use crate::handle::Task;
use crate::raw::limits::Limits;
use crate::raw::outcome::{Cancelled, TaskError};
use crate::raw::owner::OwnerRef;
use crate::raw::{BLOCKING, Blueprint, FREE, JoinInner, Runnable, Span, TaskAttrs, UninitTask};
use crate::region::Region;
use crate::region::poll;

/// How a task is to be.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) operation: Operation,
    pub(crate) pin: u16,
    /// What bounds it, besides its region; `None`: nothing.
    pub(crate) budget: Option<Budget>,
    pub(crate) attrs: Option<Box<TaskAttrs>>,
    /// Where it is spawned, as far as that is known.
    pub(crate) at: Option<&'static Location<'static>>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { operation: Operation::Create, pin: FREE, budget: None, attrs: None, at: None }
    }
}

/// Makes a task in a region and lets it run. In a region that admits nothing the task is over at
/// once, cancelled, and the status says why.
///
/// # Safety
/// Rules 6 and 7 of cells: the future is `Send` or the plan pins it; it is `'static` or the caller
/// waits for its end.
pub(crate) unsafe fn spawn<F, B, T, E>(
    region: &Arc<Region>,
    plan: Plan,
    body: F,
) -> (Result<(), Status>, Task<T, E>)
where
    F: FnOnce(Cx) -> B,
    B: Future<Output = Result<T, E>>,
{
    let _after = footprint::operation();
    // SAFETY: the caller's promise.
    let (entry, task) = unsafe { make(region, plan, body) };
    let spawned = entry.map(|entry| {
        if let Some(entry) = entry {
            region.core.host.schedule(entry);
        }
    });
    (spawned, task)
}

/// A task that could not be started: over at once, with this error.
pub(crate) fn failed<T, E>(region: &Arc<Region>, error: E) -> Result<Task<T, E>, Status>
where
    T: Send + 'static,
    E: Send + 'static,
{
    region.precheck(None)?;
    let plan = blueprint(region, FREE, budgeted(region, None, None), None);
    let fresh = UninitTask::<Pending<Result<T, E>>, T, E>::new(plan);
    let (header, handle) = fresh.with_result(Err(TaskError::Err(error)));
    // SAFETY: the cell was made for these types, and this is its handle.
    let task = Task::new(unsafe { JoinInner::new(handle) });
    // SAFETY: rule 1 of cells: a new cell's reference for its first entry.
    let entry = unsafe { Runnable::new(header) };
    match region.adopt(header, Operation::Create) {
        Ok(()) => poll::end_unborn(entry, Severity::Err),
        Err(status) => {
            poll::refuse(entry, region.refusal(status));
            return Err(status);
        }
    }
    Ok(task)
}

/// A task that never was: over at once, cancelled for this reason.
pub(crate) fn refused<T, E>(region: &Arc<Region>, why: Cancelled) -> Task<T, E> {
    let (header, handle) =
        UninitTask::<Pending<Result<T, E>>, T, E>::new(blueprint(region, FREE, None, None)).done();
    // SAFETY: rule 1 of cells: a new cell's reference for its first entry.
    poll::refuse(unsafe { Runnable::new(header) }, why);
    // SAFETY: the cell was made for these types, and this is its handle.
    Task::new(unsafe { JoinInner::new(handle) })
}

/// Returns the parts of a new task that do not depend on its future. Inlined: what it returns is
/// large, and would be copied.
#[inline(always)]
fn blueprint(
    region: &Arc<Region>,
    pin: u16,
    attrs: Option<Box<TaskAttrs>>,
    at: Option<&'static Location<'static>>,
) -> Blueprint {
    let id = region.core.next_task();
    let span = Span::of_task(&region.span, &region.core.panics, id, attrs.as_deref());
    let mark = region.core.mark();
    let registry = region.core.registry.clone();
    Blueprint { owner: OwnerRef::of(region), id, pin, attrs, at, span, mark, registry }
}

/// With a task's effective priority, and its limits if it has any.
fn budgeted(
    region: &Region,
    own: Option<Budget>,
    attrs: Option<Box<TaskAttrs>>,
) -> Option<Box<TaskAttrs>> {
    if own.is_none() && region.unbounded {
        return attrs;
    }
    if attrs.as_ref().is_some_and(|attrs| attrs.finalizer) {
        return finalizing(own.unwrap_or_default(), attrs);
    }
    let default = Budget { priority: Priority::DEFAULT, ..Budget::INFINITE };
    let budget = region.budget.meet(own.unwrap_or(default));
    let free = Budget { priority: budget.priority, ..Budget::INFINITE };
    if budget == default {
        return attrs;
    }
    let mut attrs = attrs.unwrap_or_default();
    attrs.priority = budget.priority;
    attrs.limits = (budget != free).then(|| Limits::new(budget));
    Some(attrs)
}

/// The same for a finalizer, which has the allowance of its region's close and nothing else.
fn finalizing(allowed: Budget, attrs: Option<Box<TaskAttrs>>) -> Option<Box<TaskAttrs>> {
    let mut attrs = attrs.unwrap_or_default();
    attrs.priority = allowed.priority;
    attrs.limits = Some(Limits::new(allowed));
    Some(attrs)
}

/// Makes a task in a region: its first entry, unless it is over already, and its handle.
///
/// # Safety
/// As [`spawn`].
pub(crate) unsafe fn make<F, B, T, E>(
    region: &Arc<Region>,
    plan: Plan,
    body: F,
) -> (Result<Option<Runnable>, Status>, Task<T, E>)
where
    F: FnOnce(Cx) -> B,
    B: Future<Output = Result<T, E>>,
{
    let attrs = match plan.budget {
        None if region.unbounded => plan.attrs,
        own => budgeted(region, own, plan.attrs),
    };
    let mut fresh = UninitTask::<B, T, E>::new(blueprint(region, plan.pin, attrs, plan.at));
    let panicked = fresh.fill(|task| body(Cx::of(task)));
    let (header, handle) = fresh.done();
    // SAFETY: the cell was made for these types, and this is its handle.
    let task = Task::new(unsafe { JoinInner::new(handle) });
    // Checked before anything changes: a task nobody can poll would keep its region open for ever.
    let adopted = match plan.pin < BLOCKING && !region.core.host.has_worker(plan.pin) {
        true => Err(Status::AffinityViolation),
        false => region.adopt(header, plan.operation),
    };
    // Whoever cancels it meanwhile cannot end it: only this thread polls it.
    if adopted.is_ok() && plan.pin < BLOCKING {
        region.core.host.pinned(plan.pin, true);
    }
    // SAFETY: rule 1 of cells: a new cell's reference for its first entry.
    let entry = unsafe { Runnable::new(header) };
    #[cfg(feature = "lab")]
    if crate::wait_notes::is_on() {
        crate::wait_notes::note_spawn(entry.header().id(), plan.at);
    }
    let entry = match adopted {
        Ok(()) if !panicked => {
            if let Some(limits) = entry.header().limits() {
                region.core.watch_deadline(limits, || task.to_ref());
                // It may have been cancelled, and even have ended, since it was taken in.
                if task.is_finished() {
                    region.core.forget_deadline(limits);
                }
            }
            Ok(Some(entry))
        }
        Ok(()) => {
            poll::end_unborn(entry, Severity::Panicked);
            Ok(None)
        }
        Err(status) => {
            if panicked {
                region.core.lost_panic();
            }
            poll::refuse(entry, region.refusal(status));
            Err(status)
        }
    };
    (entry, task)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::Ready;
    use std::sync::{Mutex, OnceLock};
    use std::task::Waker;

    use asx_kernel::cancel::Kind;
    use asx_kernel::time::Time;

    use super::*;
    use crate::core::{Core, Host, Settings};

    /// Cancels a region as soon as it has a task, and runs what is scheduled at once: the one who
    /// cancels is faster than the one who spawns.
    #[derive(Default)]
    struct Hasty {
        region: OnceLock<std::sync::Weak<Region>>,
        ran: Mutex<u32>,
    }

    // SAFETY: it has no worker, and what it runs is not pinned.
    unsafe impl Host for Hasty {
        fn schedule(&self, entry: Runnable) {
            *self.ran.lock().unwrap() += 1;
            entry.run();
        }

        fn now(&self) -> Time {
            Time::ZERO
        }

        fn timer_moved(&self, _: Time) {}

        fn here(&self) -> Option<u16> {
            Some(0)
        }

        fn pinned(&self, _: u16, lives: bool) {
            if lives {
                self.region.get().unwrap().upgrade().unwrap().close_as(Kind::User);
            }
        }

        fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
            Err(entry)
        }
    }

    /// The panic of a closure that was to make a future is the outcome of the task, whoever ends
    /// it.
    #[test]
    fn a_closure_that_panics_beside_a_cancel_is_a_panic() {
        let host = Arc::new(Hasty::default());
        let region = Core::new(host.clone(), Settings::default()).root();
        assert!(host.region.set(Arc::downgrade(&region)).is_ok());
        let plan = Plan { pin: 0, ..Plan::default() };
        let body = |_: Cx| -> Ready<Result<(), Cancelled>> { panic!("closure") };
        // SAFETY: Send and 'static.
        let (entry, mut task) = unsafe { make(&region, plan, body) };
        assert!(entry.unwrap().is_none());
        assert_eq!(*host.ran.lock().unwrap(), 1, "an entry for the cancel");
        match task.outcome() {
            Some(Err(TaskError::Panicked(panic))) => assert_eq!(panic.message(), "closure"),
            other => panic!("{other:?}"),
        }
        assert!(region.poll_closed(Waker::noop()));
    }
}
