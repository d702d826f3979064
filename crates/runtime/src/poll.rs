//! The one place where tasks are woken, polled and completed.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use asx_kernel::budget::Exhausted;
use asx_kernel::cancel::Kind;
use asx_kernel::outcome::Severity;

use crate::ambient;
use crate::cell::{Runnable, Snapshot, TaskRef, Verdict, Woken};
use crate::outcome::{Cancelled, Panic};

/// A waker of the task was used.
pub(crate) fn wake(task: &TaskRef) {
    match task.word.wake() {
        // SAFETY: it was made scheduled just now.
        Woken::Enqueue => task.region.core.host.schedule(unsafe { Runnable::new(task.as_ptr()) }),
        Woken::Pending => {}
        Woken::Stale => task.region.core.stale_wake(task.id),
    }
}

impl Runnable {
    /// Polls the task once, if this entry is the one that counts: whether it did.
    ///
    /// A host calls this on the worker the task is pinned to, if it is.
    pub fn run(self) -> bool {
        let Some(begun) = self.header().word.begin_poll() else {
            self.give_up();
            return false;
        };
        // From here on the entry is the task itself.
        let task = self.into_task();
        if !may_poll(&task, begun) {
            // A job that ends like this never began.
            if !task.is_blocking() {
                task.region.core.overrun(task.id);
            }
            force(task);
            return true;
        }
        let operations = task.region.core.operations;
        let waker = task.lend_waker();
        let mut cx = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `begin_poll` set `POLLING`; the host keeps to the pin.
            ambient::with_task(&task, operations, || unsafe { task.poll(&mut cx) })
        }));
        match polled {
            Ok(Poll::Pending) => {
                if task.word.end_poll() {
                    // SAFETY: it was scheduled during the poll, and nobody else makes an entry.
                    task.region.core.host.schedule(unsafe { Runnable::new(task.as_ptr()) });
                }
            }
            Ok(Poll::Ready(severity)) => finish(task, severity, None),
            Err(payload) => {
                let panic = discard(&task).unwrap_or(Panic::new(payload));
                finish(task, Severity::Panicked, Some(Verdict::Panicked(panic)));
            }
        }
        true
    }
}

/// Takes a poll from what the task is allowed; false if it is to end by force. One without polls
/// left is asked to stop, and polled on, unless it is a blocking job: those look at nothing once
/// they run, so that a cancel is seen for them here.
#[inline]
fn may_poll(task: &TaskRef, begun: Snapshot) -> bool {
    let plain = task.extra.is_none() && !begun.state().in_cancel_lane() && !begun.is_forced();
    plain || may_poll_bounded(task, begun)
}

fn may_poll_bounded(task: &TaskRef, begun: Snapshot) -> bool {
    let state = begun.state();
    if begun.is_forced() {
        return false;
    }
    if state.acknowledged() {
        return task.consume_cleanup();
    }
    if task.limits().is_some_and(|limits| !limits.consume_poll()) {
        if task.is_finalizer() {
            return false;
        }
        if !state.in_cancel_lane() {
            task.region.exhausted(task, Exhausted::Polls);
        }
    }
    !task.is_blocking() || task.region.acknowledge(task).is_none()
}

/// A task that was never taken in ends cancelled.
pub(crate) fn refuse(entry: Runnable, why: Cancelled) {
    if entry.header().word.begin_poll().is_none() {
        return entry.give_up();
    }
    let task = entry.into_task();
    let verdict = match discard(&task) {
        None => Verdict::Cancelled(why),
        Some(panic) => Verdict::Panicked(panic),
    };
    // SAFETY: `begin_poll` set `POLLING`.
    unsafe { task.finish(verdict) };
    task.word.complete(false);
    drop(ManuallyDrop::into_inner(task));
}

/// A task whose future could not be made ends panicked.
pub(crate) fn end_panicked(entry: Runnable, panic: Panic) {
    if entry.header().word.begin_poll().is_none() {
        return entry.give_up();
    }
    finish(entry.into_task(), Severity::Panicked, Some(Verdict::Panicked(panic)));
}

/// Drops the future or result of a task that is being polled: the panic of its destructor.
fn discard(task: &TaskRef) -> Option<Panic> {
    // SAFETY: only called by the poller.
    let drop = catch_unwind(AssertUnwindSafe(|| unsafe { task.discard() }));
    drop.err().map(Panic::new)
}

/// The allowance for cleanup is used up, or patience is over: the task ends now, cancelled.
fn force(task: ManuallyDrop<TaskRef>) {
    let verdict = match ambient::with_task(&task, u32::MAX, || discard(&task)) {
        None => Verdict::Cancelled(Cancelled::from(task.region.reason_of(&task))),
        Some(panic) => Verdict::Panicked(panic),
    };
    finish(task, Severity::Cancelled, Some(verdict));
}

/// The body is over. A panic stays one; else a task that has seen its cancel ends cancelled.
fn finish(task: ManuallyDrop<TaskRef>, mut severity: Severity, mut verdict: Option<Verdict>) {
    let cancelled = task.word.body_ended();
    if cancelled && verdict.is_none() {
        let reason = task.region.reason_of(&task);
        severity = Severity::Cancelled;
        verdict = Some(match discard(&task) {
            None => Verdict::Cancelled(Cancelled::from(reason)),
            Some(panic) => Verdict::Panicked(panic),
        });
    }
    if let Some(verdict) = verdict {
        if matches!(verdict, Verdict::Panicked(_)) {
            severity = Severity::Panicked;
        }
        // SAFETY: only called by the poller, after a discard.
        unsafe { task.finish(verdict) };
    }
    let failed = matches!(severity, Severity::Err | Severity::Panicked);
    let kept = failed && task.region.note_failure(&task);
    let ended = task.word.complete(kept);
    // After that, so that a spawner that sets the alarm meanwhile sees the end, or is seen.
    if let Some(limits) = task.limits() {
        limits.forget(&task.region.core);
    }
    if ended.discard
        && let Some(panic) = discard_result(&task)
    {
        task.region.core.lost_panic(task.id, &panic);
    }
    if ended.wake_joiner {
        // SAFETY: completed here, and `WAKER` was set.
        unsafe { task.wake_joiner() };
    }
    if kept {
        task.region.fail(Kind::FailFast, task.id);
    }
    task.region.task_done(&task, severity);
    // The region's reference.
    drop(ManuallyDrop::into_inner(task));
}

/// Drops a result that was claimed by completing: the panic of its destructor.
fn discard_result(task: &TaskRef) -> Option<Panic> {
    // SAFETY: `complete` claimed it for the caller.
    catch_unwind(AssertUnwindSafe(|| unsafe { task.discard() })).err().map(Panic::new)
}
