//! The one place where tasks are polled and completed.
//!
//! Builds for WebAssembly are optimised for size and inline little. So the functions of every wake
//! and poll are marked to be inlined there, and rare ones not to be.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::task::{Context, Poll};

use asx_kernel::cancel::Kind;
use asx_kernel::outcome::Severity;
use asx_kernel::task::TaskState;

use crate::footprint::{self, Object, Part};
use crate::force::dropping_by_force;
use crate::raw::audit::Owner;
use crate::raw::foreign_wakers;
use crate::raw::limits;
use crate::raw::outcome::{Cancelled, Panic};
use crate::raw::poll_context::PollContext;
use crate::raw::{
    Begun, Complete, End, Header, PollEnd, RESERVE, RunContext, Runnable, Snapshot, TaskRef,
    Verdict, unsigned,
};
use crate::region::Region;

impl Runnable {
    /// Polls the task once, if the entry is live and the task may be polled. Returns whether it
    /// did.
    ///
    /// The journal has no dispatch for it: jobs are not chosen from a queue.
    ///
    /// # Panics
    /// If the task is [pinned](Runnable::pin) and the calling thread is not that worker.
    pub fn run(self) -> bool {
        let core = &self.header().core();
        let here = self.pin().is_none_or(|pin| core.here() == Some(pin));
        assert!(here, "a pinned task is polled by the worker it is pinned to");
        // SAFETY: checked above.
        unsafe { self.begin(RunContext::UNCHOSEN) }.is_some_and(Begun::run)
    }
}

impl Begun {
    /// Polls the task. Returns false if it may not be polled: it is ended, or moved to the cancel
    /// lane, instead.
    #[cfg_attr(any(target_arch = "wasm32", feature = "lab"), inline(always))]
    pub fn run(self) -> bool {
        // From here on the reference of the entry belongs to the poll.
        let task = self.entry.into_task();
        let operations = task.core().operations;
        let turn = PollContext::new(task, operations, RESERVE);
        let go = is_plain(turn.task(), self.word) || turn.is_allowed(self.word);
        if go {
            turn.poll();
        }
        go
    }
}

impl PollContext {
    /// Whether a task with bounded polls may be polled now. If not, it is moved to the cancel lane
    /// or ended.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    fn is_allowed(&self, begun: Snapshot) -> bool {
        match may_poll(self.task(), begun) {
            May::Go => {
                if begun.state().in_cancel_lane() {
                    foreign_wakers::notify(self.task());
                    #[cfg(not(target_family = "wasm"))]
                    if begun.state() == TaskState::CancelRequested {
                        self.is_asked.set(true);
                        #[cfg(not(loom))]
                        self.task().core().watch_poll(self.task());
                    }
                }
                return true;
            }
            // The call drops the poll's reference, which may be the last one that keeps the core.
            May::Later => {
                let core = self.task().region().core.clone();
                core.host.on_behalf(&mut || settle(self));
            }
            May::Never => {
                let core = self.task().region().core.clone();
                core.host.on_behalf(&mut || end_by_force(self));
            }
        }
        false
    }

    #[inline(always)]
    fn poll(&self) {
        let task = self.task();
        let waker = task.lend_waker();
        let mut cx = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: `begin` set `POLLING`; its caller is on the worker that the task is pinned
            // to.
            self.run(|| unsafe { task.poll(&mut cx) })
        }));
        match polled {
            Ok(Poll::Pending) => settle(self),
            ended => self.ended(ended),
        }
    }

    /// Ends the task after its last poll.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn ended(&self, polled: std::thread::Result<Poll<Severity>>) {
        let task = self.task();
        let state = task.word.load().state();
        #[cfg(not(any(loom, target_family = "wasm")))]
        if self.is_asked.get() {
            task.core().watched_poll_ended();
        } else if state.in_cancel_lane() {
            // The cancel came during the poll, or before an earlier one.
            task.core().running_ended(task);
        }
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(severity)) if !state.acknowledged() => {
                end(self, severity, false, Stored::Value);
            }
            Ok(Poll::Ready(severity)) => finish(self, severity, None),
            Err(payload) => {
                task.body_ended(Severity::Panicked);
                // Destructors may still use their context.
                let second = self.run_freely(|| discard(task));
                let panic = second.unwrap_or(Panic::new(payload));
                finish(self, Severity::Panicked, Some(Verdict::Panicked(panic)));
            }
        }
    }
}

/// Ends a poll of a task that has not ended.
#[cfg_attr(target_arch = "wasm32", inline(always))]
#[cfg_attr(not(target_arch = "wasm32"), inline)]
fn settle(turn: &PollContext) {
    let task = turn.task();
    #[cfg(not(target_family = "wasm"))]
    if turn.is_asked.get() {
        unheeded(task);
    }
    let woken = turn.is_woken();
    let reserve = turn.left_in_reserve();
    if !cfg!(target_family = "wasm") && !turn.has_wait() {
        task.age_wait();
    }
    task.books.end_poll(&task.word, reserve);
    if woken {
        task.word.end_woken_poll(reserve);
    }
    if woken || task.word.end_poll(reserve) == PollEnd::Requeue {
        // SAFETY: it was scheduled during the poll, whose reference passes to the entry.
        task.core().host.schedule_again(unsafe { Runnable::new(task.as_ptr()) });
    }
}

/// Counts a poll that began after the cancel of its task and has not observed it.
#[cfg(not(target_family = "wasm"))]
#[cold]
fn unheeded(task: &TaskRef) {
    #[cfg(not(loom))]
    task.core().watched_poll_ended();
    let word = task.word.load();
    // Cleanup that has begun does not observe cancels.
    if word.state() == TaskState::CancelRequested && !word.is_cleaning() {
        task.core().unheeded(task);
    }
}

/// Whether a poll that has begun continues.
enum May {
    Go,
    /// The task was cancelled instead, and waits in the cancel lane.
    Later,
    /// The task is ended by force instead.
    Never,
}

/// Whether the polls of a task are unbounded.
#[inline]
fn is_plain(task: &TaskRef, begun: Snapshot) -> bool {
    // Shortcut: `region::poll::is_plain`: a poll of a task without budget and cancel is not
    // charged.
    // Law: `budget::Budget::begin_poll`.
    // Equal: `a_poll_is_a_plain_one_outside_the_cancel_lane_if_nothing_bounds_the_end` (every
    // word), and an infinite budget is never used up: `crates/kernel/tests/laws/matrices.rs`.
    // Worth: 12.8 % of `yield_1k`.

    task.attrs.is_none() && begun.goes_on()
}

/// Takes one poll from the allowance of the task.
fn may_poll(task: &TaskRef, begun: Snapshot) -> May {
    let state = begun.state();
    if begun.is_forced() {
        return May::Never;
    }
    if state.acknowledged() {
        return if task.consume_cleanup() { May::Go } else { May::Never };
    }
    if begun.is_cleaning() {
        return if task.consume_natural() { May::Go } else { May::Never };
    }
    if task.limits().is_some() {
        // Other tasks with a clone of the context can read the number of polls left.
        footprint::observes();
    }
    match task.limits().map_or(limits::Poll::Taken, |limits| limits.begin_poll()) {
        limits::Poll::Taken => {}
        // Its budget is an allowance for cleanup.
        _ if task.is_finalizer() && task.region().has_stated_time() => {}
        _ if task.is_finalizer() => return May::Never,
        limits::Poll::Exhausted(what) => {
            task.region().exhausted(task, what);
            if !task.is_blocking() {
                return May::Later;
            }
        }
        limits::Poll::Overdrawn => {}
    }
    if task.is_blocking() && task.region().acknowledge(task).is_some() {
        return May::Never;
    }
    if task.attrs.is_some() && state == TaskState::Created {
        task.start();
    }
    May::Go
}

/// Ends a task that was not admitted as cancelled, and drops the reference of its region's list.
pub(crate) fn refuse(entry: Runnable, why: Cancelled) {
    let seized = entry.header().word.seize();
    debug_assert!(seized.is_some(), "the entry is not shared");
    // SAFETY: rule 1 of cells: the reference of the list, which the task did not join.
    let task = unsafe { TaskRef::from_raw(entry.as_ptr(), Owner::List) };
    task.books.enter(&task.word, Owner::Poll, 1);
    let verdict = match discard(&task) {
        None => Verdict::Cancelled(why),
        // The handle returns it, if it is awaited.
        Some(panic) => {
            task.core().refused_panicked();
            Verdict::Panicked(panic)
        }
    };
    // SAFETY: `seize` set `POLLING`.
    unsafe { task.finish(verdict) };
    task.span.end(Severity::Cancelled);
    task.books.end_poll(&task.word, 0);
    task.word.complete(Complete { kept: false, reserve: 0 }, unsigned);
}

/// Ends a task that has a result before its first poll, unless a concurrent cancel has ended it.
pub(crate) fn end_unborn(entry: Runnable, severity: Severity) {
    if entry.header().word.seize().is_some() {
        let own = entry.header().own_lane();
        let now = entry.header().lane();
        if now != own {
            // A cancel has made another entry, and counted this one as dead although it is in no
            // queue.
            entry.header().core().host.dead_entries(own, -1);
            entry.header().core().host.dead_entries(now, 1);
        }
        // SAFETY: rule 1 of cells: `seize` has counted the poll's.
        let task = unsafe { seized(entry.as_ptr()) };
        finish(&PollContext::new(task, 0, 0), severity, None);
    }
}

/// Drops the future or result of a task that is being polled. Returns the panic of the destructor.
fn discard(task: &TaskRef) -> Option<Panic> {
    // SAFETY: the caller is polling the task.
    let drop = catch_unwind(AssertUnwindSafe(|| unsafe { task.discard() }));
    drop.err().map(Panic::new)
}

/// Ends a task by force that the caller has seized.
pub(crate) fn force(task: &TaskRef) {
    // SAFETY: rule 1 of cells: `seize` has counted the poll's.
    let poll = unsafe { seized(task.as_ptr()) };
    end_by_force(&PollContext::new(poll, 0, 0));
}

/// The reference for the poll that ends a seized task.
///
/// # Safety
/// Rule 1 of cells: `seize` has counted the poll's reference.
unsafe fn seized(task: NonNull<Header>) -> ManuallyDrop<TaskRef> {
    // SAFETY: the caller's promise.
    let task = unsafe { TaskRef::from_raw(task, Owner::Poll) };
    task.books.enter(&task.word, Owner::Poll, 1);
    ManuallyDrop::new(task)
}

/// Ends a task as cancelled: its allowance for cleanup or its grace period is over.
fn end_by_force(turn: &PollContext) {
    let task = turn.task();
    let polls = match task.limits() {
        Some(limits) if task.is_finalizer() => limits.polls(),
        _ => task.cleanup_used(),
    };
    task.core().note_forced(task);
    // A blocking job that ends by force never began.
    let outer = OVERRUN.replace(Some(polls).filter(|_| !task.is_blocking()));
    let panic = turn.run_freely(|| dropping_by_force(|| discard(task)));
    note_overrun(task);
    OVERRUN.set(outer);
    let (severity, verdict) = match panic {
        None => (
            Severity::Cancelled,
            Verdict::Cancelled(Cancelled::from(task.region().reason_to_force(task))),
        ),
        Some(panic) => (Severity::Panicked, Verdict::Panicked(panic)),
    };
    // SAFETY: the caller is polling the task, and has discarded the result.
    unsafe { task.finish(verdict) };
    let stored = if severity == Severity::Panicked { Stored::Value } else { Stored::Cancel };
    end(turn, severity, true, stored);
}

thread_local! {
    /// The polls of a task that is being ended by force, until the overrun is recorded.
    static OVERRUN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Records that a task is ended by force, unless that was recorded.
pub(crate) fn note_overrun(task: &TaskRef) {
    if let Some(polls) = OVERRUN.take() {
        let is_counted = task.region().is_reported(task.id());
        task.core().overrun(task, polls, is_counted);
    }
}

/// Ends a task whose body has ended. A task that has observed its cancel ends cancelled, unless it
/// has panicked.
#[cold]
fn finish(turn: &PollContext, mut severity: Severity, mut verdict: Option<Verdict>) {
    let task = turn.task();
    let word = task.word.load();
    let mut stored = Stored::Value;
    if word.state().acknowledged() && verdict.is_none() && severity != Severity::Panicked {
        severity = Severity::Cancelled;
        // Without a handle the reason is not read.
        let reason = word.has_handle().then(|| task.region().reason_of(task));
        verdict = match discard(task) {
            None => reason.map(|reason| Verdict::Cancelled(Cancelled::from(reason))),
            Some(panic) => Some(Verdict::Panicked(panic)),
        };
        stored = Stored::Cancel;
    }
    if let Some(verdict) = verdict {
        if let Verdict::Panicked(_) = &verdict {
            severity = Severity::Panicked;
            stored = Stored::Value;
        }
        // SAFETY: the caller is polling the task, and has discarded the result.
        unsafe { task.finish(verdict) };
    }
    end(turn, severity, false, stored);
}

/// The result in the cell of a task that ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// A value or a panic: its destructor is user code.
    Value,
    /// A cancel, or nothing.
    Cancel,
}

/// Completes the task, whose result is in its cell, and counts it out of its region.
fn end(turn: &PollContext, severity: Severity, forced: bool, stored: Stored) {
    let task = turn.task();
    task.span.end(severity);
    let failed = matches!(severity, Severity::Err | Severity::Panicked);
    let kept = failed && task.region().note_failure(task);
    Object::of_task(task.id(), Part::End).write();
    task.books.end_poll(&task.word, turn.left_in_reserve());
    let how = Complete { kept, reserve: turn.left_in_reserve() };
    // Before the completion: whoever has awaited the task may spawn another one in its place.
    task.core().task_done();
    let (ended, stamp) = task.complete(End { severity, forced, how });
    // After the completion: a concurrent spawner that sets the alarm either sees the end, or its
    // alarm is seen here.
    if let Some(limits) = task.limits() {
        task.core().forget_deadline(limits);
    }
    if ended.discard {
        // SAFETY: `complete` claimed it for the caller.
        let discard = || unsafe { task.discard() };
        match stored {
            Stored::Value => task.core().drop_result(discard),
            Stored::Cancel => discard(),
        }
    }
    let finalizer = task.is_finalizer();
    if finalizer && failed && !kept {
        task.core().lost_panic();
    }
    if ended.wake_joiner {
        // SAFETY: completed here, and `WAKER` was set.
        unsafe { task.wake_joiner() };
    }
    if kept && !finalizer {
        task.region().fail(Kind::FailFast, task.id());
    }
    // SAFETY: rule 1 of cells: the reference of the region's list, which ends with the task.
    unsafe { Region::task_done(task.as_ptr(), severity, stamp) };
}
