//! The one place where tasks are polled and completed.
//!
//! Pages are built small, and then next to nothing is inlined: for WebAssembly, what every wake and
//! poll goes through is told to be, and what few go through is told not to be.

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
    /// Polls the task once, if this entry is the one that counts and the task may be polled:
    /// whether it did.
    ///
    /// The record does not say how it came about: jobs are not chosen.
    ///
    /// # Panics
    /// If the task is [pinned](Runnable::pin) and the calling thread is not that worker.
    pub fn run(self) -> bool {
        let core = &self.header().core();
        let here = self.pin().is_none_or(|pin| core.here() == Some(pin));
        assert!(here, "a pinned task is polled by the worker it is pinned to");
        // SAFETY: looked at above.
        unsafe { self.begin(RunContext::UNCHOSEN) }.is_some_and(Begun::run)
    }
}

impl Begun {
    /// Polls the task: whether it did, since one that may not be polled any more ends instead, or
    /// goes to the cancel lane.
    #[cfg_attr(any(target_arch = "wasm32", feature = "lab"), inline(always))]
    pub fn run(self) -> bool {
        // From here on its reference is the poll's.
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
    /// Whether a task may be polled now that may not be as often as it likes. If not, it is put
    /// where it belongs, or ends.
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
                        self.task().core().watch_poll(self.task(), self.task().region());
                    }
                }
                return true;
            }
            // The poll's reference goes in there, and the core might with it.
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
            // SAFETY: `begin` set `POLLING`; whoever runs an entry promised to keep to the pin.
            self.run(|| unsafe { task.poll(&mut cx) })
        }));
        match polled {
            Ok(Poll::Pending) => settle(self),
            ended => self.ended(ended),
        }
    }

    /// The poll was the last one.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn ended(&self, polled: std::thread::Result<Poll<Severity>>) {
        let task = self.task();
        let state = task.word.load().state();
        #[cfg(not(any(loom, target_family = "wasm")))]
        if state.in_cancel_lane() {
            // The cancel may have come during the poll.
            task.core().watched_poll_ended(task);
        }
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(severity)) if !state.acknowledged() => end(self, severity, false),
            Ok(Poll::Ready(severity)) => finish(self, severity, None),
            Err(payload) => {
                task.body_ended(Severity::Panicked);
                // What its destructors ask their context for is still there.
                let second = self.run_freely(|| discard(task));
                let panic = second.unwrap_or(Panic::new(payload));
                finish(self, Severity::Panicked, Some(Verdict::Panicked(panic)));
            }
        }
    }
}

/// The poll is over and the task is not.
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
        // SAFETY: it was scheduled during the poll, whose reference is the entry's now.
        task.core().host.schedule_again(unsafe { Runnable::new(task.as_ptr()) });
    }
}

/// A task that was asked to stop before its poll may not have looked in there.
#[cfg(not(target_family = "wasm"))]
#[cold]
fn unheeded(task: &TaskRef) {
    #[cfg(not(loom))]
    task.core().watched_poll_ended(task);
    let word = task.word.load();
    // Cleanup that has begun does not look.
    if word.state() == TaskState::CancelRequested && !word.is_cleaning() {
        task.core().unheeded(task);
    }
}

/// Whether a poll goes on that has begun.
enum May {
    Go,
    /// The task was asked to stop instead, and waits in the cancel lane for its turn.
    Later,
    /// It ends by force instead.
    Never,
}

/// Whether a task may be polled as often as it likes.
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

/// Takes a poll from what the task is allowed.
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
        // Tasks with a clone of the context see how many polls are left.
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

/// A task that was never taken in ends cancelled. The reference that was the region's goes.
pub(crate) fn refuse(entry: Runnable, why: Cancelled) {
    let seized = entry.header().word.seize();
    debug_assert!(seized.is_some(), "nobody else knows the entry");
    // SAFETY: rule 1 of cells: the region's, which never had it.
    let task = unsafe { TaskRef::from_raw(entry.as_ptr(), Owner::List) };
    task.books.enter(&task.word, Owner::Poll, 1);
    let verdict = match discard(&task) {
        None => Verdict::Cancelled(why),
        // Its handle tells, if there is one that is asked.
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

/// A task that has its result before anybody polled it ends with that. Whoever was faster, because
/// it was asked to stop meanwhile, has done so.
pub(crate) fn end_unborn(entry: Runnable, severity: Severity) {
    if entry.header().word.seize().is_some() {
        let own = entry.header().own_lane();
        let now = entry.header().lane();
        if now != own {
            // A cancel has made another entry, and counted this one as dead, which is in no queue.
            entry.header().core().host.dead_entries(own, -1);
            entry.header().core().host.dead_entries(now, 1);
        }
        // SAFETY: rule 1 of cells: `seize` has counted the poll's.
        let task = unsafe { seized(entry.as_ptr()) };
        finish(&PollContext::new(task, 0, 0), severity, None);
    }
}

/// Drops the future or result of a task that is being polled: the panic of its destructor.
fn discard(task: &TaskRef) -> Option<Panic> {
    // SAFETY: only called by the poller.
    let drop = catch_unwind(AssertUnwindSafe(|| unsafe { task.discard() }));
    drop.err().map(Panic::new)
}

/// Patience is over with a task that the caller has seized.
pub(crate) fn force(task: &TaskRef) {
    // SAFETY: rule 1 of cells: `seize` has counted the poll's.
    let poll = unsafe { seized(task.as_ptr()) };
    end_by_force(&PollContext::new(poll, 0, 0));
}

/// The task for who ends it.
///
/// # Safety
/// Rule 1 of cells: `seize` has counted the poll's reference.
unsafe fn seized(task: NonNull<Header>) -> ManuallyDrop<TaskRef> {
    // SAFETY: the caller's promise.
    let task = unsafe { TaskRef::from_raw(task, Owner::Poll) };
    task.books.enter(&task.word, Owner::Poll, 1);
    ManuallyDrop::new(task)
}

/// The allowance for cleanup is used up, or patience is over: the task ends now, cancelled.
fn end_by_force(turn: &PollContext) {
    let task = turn.task();
    let polls = match task.limits() {
        Some(limits) if task.is_finalizer() => limits.polls(),
        _ => task.cleanup_used(),
    };
    task.core().note_forced(task);
    // A job that ends like this never began.
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
    // SAFETY: only called by the poller, after a discard.
    unsafe { task.finish(verdict) };
    end(turn, severity, true);
}

thread_local! {
    /// A task is being ended by force after so many polls, and that is not on record yet.
    static OVERRUN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Records that a task is ended by force, if it is and nobody has.
pub(crate) fn note_overrun(task: &TaskRef) {
    if let Some(polls) = OVERRUN.take() {
        let is_counted = task.region().is_reported(task.id());
        task.core().overrun(task, polls, is_counted);
    }
}

/// The body is over. A panic stays one; else a task that has seen its cancel ends cancelled.
#[cold]
fn finish(turn: &PollContext, mut severity: Severity, mut verdict: Option<Verdict>) {
    let task = turn.task();
    let word = task.word.load();
    if word.state().acknowledged() && verdict.is_none() && severity != Severity::Panicked {
        severity = Severity::Cancelled;
        // Without a handle nobody will ask.
        let reason = word.has_handle().then(|| task.region().reason_of(task));
        verdict = match discard(task) {
            None => reason.map(|reason| Verdict::Cancelled(Cancelled::from(reason))),
            Some(panic) => Some(Verdict::Panicked(panic)),
        };
    }
    if let Some(verdict) = verdict {
        if let Verdict::Panicked(_) = &verdict {
            severity = Severity::Panicked;
        }
        // SAFETY: only called by the poller, after a discard.
        unsafe { task.finish(verdict) };
    }
    end(turn, severity, false);
}

/// Completes the task, whose result is in its cell, and lets its region go on.
fn end(turn: &PollContext, severity: Severity, forced: bool) {
    let task = turn.task();
    task.span.end(severity);
    let failed = matches!(severity, Severity::Err | Severity::Panicked);
    let kept = failed && task.region().note_failure(task);
    Object::of_task(task.id(), Part::End).write();
    task.books.end_poll(&task.word, turn.left_in_reserve());
    let how = Complete { kept, reserve: turn.left_in_reserve() };
    let (ended, stamp) = task.complete(End { severity, forced, how });
    // After that, so that a spawner that sets the alarm meanwhile sees the end, or is seen.
    if let Some(limits) = task.limits() {
        task.core().forget_deadline(limits);
    }
    if ended.discard {
        // SAFETY: `complete` claimed it for the caller.
        task.core().drop_result(|| unsafe { task.discard() });
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
    // SAFETY: rule 1 of cells: the region's reference, which goes with the task's end.
    unsafe { Region::task_done(task.as_ptr(), severity, stamp) };
}
