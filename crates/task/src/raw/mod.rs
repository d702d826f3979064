//! The lowest layer of the crate: one task in memory. It imports no other layer, and reaches its
//! region, its core and its host through [`owner::TaskOwner`].
//!
//! The task cell is one allocation: the state word, the links to its siblings, the future and,
//! later, the result. All `unsafe` about tasks is in this folder.
//!
//! ```text
//!   Task (handle) --+        queue entry --+         Waker --+        Cx --+
//!                   v                      v                 v             v
//!   region list -> [ word | vtable | owner | links | cancel | waker | .. | future or result ]
//! ```
//! # Rules
//! 1. *Life*. A cell is freed when its count of references reaches zero. Each owner of a reference
//!    counts one, in the same atomic step of the word that makes it an owner:
//!    - a [`TaskRef`]: handles, contexts, wakers, alarms;
//!    - an entry for a queue ([`Runnable`]): counted by the wake, the cancel request, the force or
//!      the spawn that made it;
//!    - a poll: it takes over the reference of its entry, and hands it to the entry for the next
//!      poll if the task is to be polled again at once. A thread that takes over a task to end it
//!      (`seize`) counts one for that poll;
//!    - the region's list of live tasks. The step that completes the task gives up the poll's
//!      reference. From then on the list's reference belongs to the completer: it alone takes the
//!      task off the list, and drops the reference after its last use of the cell.
//! 2. *Stage*. The future or result is accessed by the spawner before the cell is shared; then by
//!    the thread that set `POLLING`, until the state is Completed; then by the thread that claimed
//!    `TAKEN`, or by the last reference.
//! 3. *Waker*. The join waker is accessed by the owner of the handle while `WAKER` is clear and the
//!    task has not completed; after completion, if `WAKER` is set, by the completer alone.
//! 4. *Locks*. `links` are accessed under the lock of the task's region only; `reason` and
//!    `cleanup` by the thread that set the `LOCK` bit of the word.
//! 5. *Type*. The vtable was made for the type of the cell it is in.
//! 6. *Threads*. A future that is not `Send` is polled and dropped on one thread: its cell is
//!    pinned to the worker that this thread is. A host polls a pinned task on its worker, which is
//!    the same thread as long as such a task lives. A future is dropped in two places: in a poll
//!    step (its end, a panic, an end by force), which the host takes on that worker; and by the
//!    spawner, which made it, if the region refuses it. The region's reference keeps the cell until
//!    the task has completed, and then the stage holds a result, whose types are `Send`. So the
//!    handle and the last reference may go to any thread.
//! 7. *Borrows*. A future that is not `'static` belongs to a root: the host's `block_on` does not
//!    return before that task has completed and its result has been taken.
//! 8. *Holds*. See `stage`.
//! 9. *Boxes*. See `core::timer_token`. 11 is *Memory*: see `memory`.
//! 10. *Reserve*. A poll has counted references to its task in reserve: the begin of the poll adds
//!     them, its end (or the end of the task) subtracts the rest, in steps of the word that are
//!     taken anyway. References that its own thread makes or drops meanwhile come from the reserve
//!     and return to it, so the count is never lower than rule 1 requires.
//! 12. *Saturation*. Forgotten wakers stay counted forever. A count that reaches half of the range
//!     is pinned far above that half, no longer moves, and the cell is never freed: a leak, where a
//!     count that wraps would free a live task. References are uncounted only once the count is
//!     pinned.
//! 13. *Host*. The host outlives every call of it: the caller has a reference to a task or region
//!     (each keeps the core, which keeps the host) until the call returns, or runs on a thread of
//!     the host. An entry is no such reference: it may be gone as soon as it is in a queue.
//! 14. *Owner*. See `owner`.

pub mod audit;
mod cancel;
mod child_waker;
pub(crate) mod contain_panic;
mod discard;
pub(crate) mod foreign_wakers;
mod join;
pub(crate) mod limits;
pub(crate) mod lock_holder;
mod memory;
pub(crate) mod outcome;
pub(crate) mod owner;
pub(crate) mod poll_context;
mod runnable;
pub(crate) mod span;
mod stage;
#[cfg(all(test, not(loom)))]
mod tests;
mod wait_word;
mod waker;
mod word;

use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::task::{Context, Poll};

use asx_kernel::cancel::Reason;
use asx_kernel::lanes::{Lane, Priority};
use asx_kernel::outcome::Severity;
use asx_kernel::time::Time;

pub(crate) use crate::dump::Activity;
use crate::prim::UnsafeCell;
use crate::wait::Wait;
use crate::wait_list::Wakers;
use audit::{Books, Owner, Registry, Tag};
use cancel::Allowance;
pub(crate) use child_waker::is_child_waker;
pub use child_waker::mark_child_waker;
use join::JoinWaker;
pub(crate) use join::{JoinInner, claim_error};
use limits::Limits;
use outcome::{Cancelled, Outcome, Panic, TaskError};
use owner::{OwnerRef, TaskOwner};
pub(crate) use runnable::End;
pub(crate) use runnable::wake_task;
pub use runnable::{Begun, RunContext, Runnable};
pub(crate) use span::Span;
use stage::{Holds, Slot, Stage};
use wait_word::WaitWord;
pub use waker::is_task_waker;
#[cfg(any(feature = "lab", not(target_family = "wasm")))]
pub(crate) use waker::task_number;
pub(crate) use waker::{task_of, with_task};
pub(crate) use word::Word;
pub(crate) use word::{
    Begin, Complete, Ended, PollEnd, RESERVE, Requested, Seized, Snapshot, Woken, unsigned,
};
use word::{HANDLE, SCHEDULED};

/// A task that may run on any worker.
pub(crate) const FREE: u16 = u16::MAX;
/// A task that may block the thread it runs on; see `blocking`.
pub(crate) const BLOCKING: u16 = u16::MAX - 1;

/// The part of a cell that does not depend on the type of the task.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) word: Word,
    vtable: &'static Vtable,
    owner: OwnerRef,
    links: std::cell::UnsafeCell<Links>,
    reason: UnsafeCell<Option<Arc<Reason>>>,
    cleanup: UnsafeCell<Allowance>,
    /// The worker it is pinned to, or [`FREE`], or [`BLOCKING`].
    pub(crate) pin: u16,
    /// The lower part of the number of its creation; in two parts so that nothing is padded.
    id: u32,
    /// The upper part of the number.
    id_high: u16,
    /// The priority of its cleanup; written like `cleanup`, read without the lock.
    cleanup_priority: AtomicU8,
    /// The content of the stage (rule 8).
    holds: std::cell::UnsafeCell<Holds>,
    joiner: UnsafeCell<JoinWaker>,
    /// A [`WaitWord`].
    wait: AtomicU64,
    pub(crate) attrs: Option<Box<TaskAttrs>>,
    pub(crate) span: Span,
    pub(crate) wakers: Wakers,
    pub(crate) books: Books,
}

/// The size of a task besides its future and two words of the allocator.
#[cfg(all(not(any(loom, asx_audit)), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Header>() == 88 + size_of::<Span>() + size_of::<Wakers>());

// SAFETY: rules 2, 3, 4 and 6 restrict the access to each field; all others are Sync.
unsafe impl Sync for Header {}
// SAFETY: as above; nothing in the header is tied to a thread.
unsafe impl Send for Header {}

/// Rarely used task attributes.
#[derive(Debug)]
pub(crate) struct TaskAttrs {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) priority: Priority,
    pub(crate) finalizer: bool,
    pub(crate) limits: Option<Limits>,
}

impl Default for TaskAttrs {
    fn default() -> Self {
        TaskAttrs { name: None, priority: Priority::DEFAULT, finalizer: false, limits: None }
    }
}

/// Neighbours among the tasks of a region.
#[derive(Clone, Copy, Default)]
pub(crate) struct Links {
    pub(crate) prev: Option<NonNull<Header>>,
    pub(crate) next: Option<NonNull<Header>>,
}

/// The operations that need the type of a cell.
struct Vtable {
    poll: unsafe fn(NonNull<Header>, &mut Context<'_>) -> Poll<Severity>,
    finish: unsafe fn(NonNull<Header>, Verdict),
    discard: unsafe fn(NonNull<Header>),
    take: unsafe fn(NonNull<Header>, NonNull<()>),
    take_stop: unsafe fn(NonNull<Header>, NonNull<()>),
    free: unsafe fn(NonNull<Header>),
    /// The type name of the future, which contains the function it is written in.
    #[cfg(not(target_family = "wasm"))]
    body: fn() -> &'static str,
}

/// An outcome that is not the result of the future.
pub(crate) enum Verdict {
    Cancelled(Cancelled),
    Panicked(Panic),
}

#[repr(C)]
struct Cell<F, T, E> {
    header: Header,
    slot: UnsafeCell<Slot<F, T, E>>,
}

/// The parts of a new task that do not depend on its future.
pub(crate) struct Blueprint {
    pub(crate) owner: OwnerRef,
    pub(crate) id: u64,
    pub(crate) pin: u16,
    pub(crate) attrs: Option<Box<TaskAttrs>>,
    /// The location of the spawn, if it is known.
    pub(crate) at: Option<&'static Location<'static>>,
    /// The span of the task.
    pub(crate) span: Span,
    /// The list of live tasks of the runtime.
    #[cfg_attr(not(asx_audit), allow(dead_code, reason = "read by the audit only"))]
    pub(crate) registry: Registry,
    /// The [mark](asx_journal::Recorder::mark) of the spawning thread; 0 if nothing is recorded.
    pub(crate) mark: u16,
}

/// A cell without its future.
pub(crate) struct UninitTask<F, T, E> {
    cell: NonNull<Cell<F, T, E>>,
    /// Whether the reference of its first context was taken.
    lent: bool,
}

impl<F, T, E> UninitTask<F, T, E>
where
    F: Future<Output = Result<T, E>>,
{
    #[inline]
    pub(crate) fn new(plan: Blueprint) -> Self {
        // A cell with nothing in its stage, made where it stays: large futures need not be moved.
        let cell = memory::allocate::<Cell<F, T, E>>().cast::<Cell<F, T, E>>();
        let at = cell.as_ptr();
        let books = Books::open(&plan, cell.cast(), PhantomData::<F>);
        // References: the region's, the handle's, the first context's, the first entry's.
        let header = Header {
            word: Word::new(4, SCHEDULED | HANDLE, plan.mark),
            vtable: &Vtable {
                poll: poll::<F, T, E>,
                finish: finish::<F, T, E>,
                discard: discard::<F, T, E>,
                take: take::<F, T, E>,
                take_stop: take_stop::<F, T, E>,
                free: free::<F, T, E>,
                #[cfg(not(target_family = "wasm"))]
                body: std::any::type_name::<F>,
            },
            owner: plan.owner,
            links: std::cell::UnsafeCell::default(),
            reason: UnsafeCell::new(None),
            cleanup: UnsafeCell::new(Allowance::default()),
            pin: plan.pin,
            id: plan.id as u32,
            id_high: (plan.id >> 32) as u16,
            cleanup_priority: AtomicU8::new(0),
            holds: std::cell::UnsafeCell::new(Holds::Nothing),
            joiner: UnsafeCell::new(JoinWaker::default()),
            wait: AtomicU64::new(WaitWord::born(plan.at).0),
            attrs: plan.attrs,
            span: plan.span,
            wakers: Wakers::NONE,
            books,
        };
        // SAFETY: both fields are initialised here; an empty slot (rule 8) has nothing to copy.
        unsafe {
            (&raw mut (*at).header).write(header);
            (&raw mut (*at).slot).write(UnsafeCell::new(Slot::EMPTY));
        }
        UninitTask { cell, lent: false }
    }

    /// Creates the future in place by calling `body` with the reference for the task's context. If
    /// `body` panics, the panic becomes the task's result. Returns whether it panicked.
    #[inline]
    pub(crate) fn fill(&mut self, body: impl FnOnce(TaskRef) -> F) -> bool {
        let (Some(context), header) = (self.context(), self.header()) else { return false };
        let made = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: rule 2, the cell is not shared yet; rule 1.
            unsafe {
                with_stage::<F, T, E, _>(header, |mut stage| stage.make_future(|| body(context)))
            }
        }));
        made.is_err_and(|payload| self.fill_with_panic(Panic::new(payload)))
    }

    #[cold]
    fn fill_with_panic(&mut self, panic: Panic) -> bool {
        let verdict = Verdict::Panicked(panic);
        let header = self.header();
        // SAFETY: rule 1; rule 2, the cell is not shared yet; its stage is empty.
        unsafe {
            header.as_ref().span.verdict(&verdict);
            finish::<F, T, E>(header, verdict);
        }
        true
    }

    /// Finishes the cell. Returns the task for its region, and the reference of its handle.
    pub(crate) fn done(mut self) -> (NonNull<Header>, TaskRef) {
        drop(self.context());
        let header = self.header();
        std::mem::forget(self);
        (header, TaskRef::owned(header, Owner::Handle))
    }

    /// Finishes a cell that has a result before its first poll.
    pub(crate) fn with_result(mut self, result: Outcome<T, E>) -> (NonNull<Header>, TaskRef) {
        drop(self.context());
        let header = self.header();
        // SAFETY: rule 2, the cell is not shared yet; rule 1.
        unsafe { with_stage::<F, T, E, _>(header, |mut stage| stage.set_result(result)) };
        std::mem::forget(self);
        (header, TaskRef::owned(header, Owner::Handle))
    }
}

impl<F, T, E> UninitTask<F, T, E> {
    fn header(&self) -> NonNull<Header> {
        self.cell.cast()
    }

    /// Returns the reference of the first context, once.
    fn context(&mut self) -> Option<TaskRef> {
        // Rule 1: the context's reference of a new cell.
        (!std::mem::replace(&mut self.lent, true))
            .then(|| TaskRef::owned(self.header(), Owner::Context))
    }
}

impl<F, T, E> Drop for UninitTask<F, T, E> {
    fn drop(&mut self) {
        let header: NonNull<Header> = self.cell.cast();
        // Rule 1: the references of a cell that was given up, with its first context's if that was
        // not taken.
        drop(self.context());
        drop(TaskRef::owned(header, Owner::List));
        drop(TaskRef::owned(header, Owner::Handle));
        // SAFETY: rule 1: a new cell's reference for its first entry.
        drop(unsafe { Runnable::new(header) });
    }
}

/// Runs `f` on the stage of a typed cell.
///
/// # Safety
/// Rules 1, 5, and 2 for as long as `f` runs.
unsafe fn with_stage<F, T, E, R>(
    header: NonNull<Header>,
    f: impl FnOnce(Stage<'_, F, T, E>) -> R,
) -> R {
    let cell = header.cast::<Cell<F, T, E>>().as_ptr();
    // SAFETY: the caller's promise.
    unsafe {
        let holds = &mut *(*cell).header.holds.get();
        (*cell).slot.with_mut(|slot| f(Stage { holds, slot: &mut *slot }))
    }
}

/// # Safety
/// Rules 1, 2 (the caller set `POLLING`), 5 and 6.
unsafe fn poll<F, T, E>(header: NonNull<Header>, cx: &mut Context<'_>) -> Poll<Severity>
where
    F: Future<Output = Result<T, E>>,
{
    let step = |mut stage: Stage<'_, F, T, E>| {
        // A task that could not be begun has its result.
        let Some(future) = stage.future() else { return Poll::Ready(stage.severity()) };
        let result = std::task::ready!(future.poll(cx));
        let severity = if result.is_ok() { Severity::Ok } else { Severity::Err };
        // Before the values that the future still holds are dropped.
        // SAFETY: rule 1.
        unsafe { header.as_ref() }.body_ended(severity);
        stage.end_future(result.map_err(TaskError::Err));
        Poll::Ready(severity)
    };
    // SAFETY: the caller's promise.
    unsafe { with_stage::<F, T, E, _>(header, step) }
}

/// # Safety
/// As [`poll`].
unsafe fn finish<F, T, E>(header: NonNull<Header>, verdict: Verdict) {
    let stop = match verdict {
        Verdict::Cancelled(cancelled) => TaskError::Cancelled(cancelled),
        Verdict::Panicked(panic) => TaskError::Panicked(panic),
    };
    let step = |mut stage: Stage<'_, F, T, E>| {
        debug_assert!(stage.is_empty(), "the future or result was dropped before");
        stage.set_result(Err(stop));
    };
    // SAFETY: the caller's promise.
    unsafe { with_stage::<F, T, E, _>(header, step) };
}

/// # Safety
/// As [`poll`], or as the claimer or last reference of rule 2.
unsafe fn discard<F, T, E>(header: NonNull<Header>) {
    // SAFETY: the caller's promise.
    unsafe { with_stage::<F, T, E, _>(header, |mut stage| stage.clear()) };
}

/// # Safety
/// Rules 1, 2 (the claimer) and 5; `into` is an `Option<Outcome<T, E>>`.
unsafe fn take<F, T, E>(header: NonNull<Header>, into: NonNull<()>) {
    // SAFETY: the caller's promise.
    unsafe {
        let into = &mut *into.cast::<Option<Outcome<T, E>>>().as_ptr();
        *into = with_stage::<F, T, E, _>(header, |mut stage| stage.take_result());
    }
}

/// # Safety
/// As [`take`], but `into` is an `Option<TaskError<E>>`.
unsafe fn take_stop<F, T, E>(header: NonNull<Header>, into: NonNull<()>) {
    let mut result: Option<Outcome<T, E>> = None;
    // SAFETY: the caller's promise.
    let into = unsafe {
        take::<F, T, E>(header, NonNull::from(&mut result).cast());
        &mut *into.cast::<Option<TaskError<E>>>().as_ptr()
    };
    *into = result.and_then(Result::err);
}

/// # Safety
/// Rule 1: this was the last reference; rule 5.
unsafe fn free<F, T, E>(header: NonNull<Header>) {
    // SAFETY: the caller's promise.
    unsafe {
        foreign_wakers::abandon(header.as_ref());
        header.as_ref().books.close(&header.as_ref().word);
        memory::free(header.cast::<Cell<F, T, E>>());
    }
}

impl Header {
    /// The links of this task.
    ///
    /// # Safety
    /// The caller holds the lock of the region (rule 4), and ends the borrow before it takes the
    /// same task's links again.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn links(&self) -> &mut Links {
        self.books.check_alive();
        // SAFETY: the caller's promise.
        unsafe { &mut *self.links.get() }
    }

    /// Takes and wakes the join waker, for the completer.
    ///
    /// # Safety
    /// Rule 3: the task has completed, `WAKER` was set and the caller completed it.
    pub(crate) unsafe fn wake_joiner(&self) {
        // SAFETY: the caller's promise.
        let joiner = self.joiner.with_mut(|joiner| std::mem::take(unsafe { &mut *joiner }));
        joiner.wake(self.owner.panics());
    }

    /// The owner of the task.
    #[inline(always)]
    pub(crate) fn owner(&self) -> &OwnerRef {
        &self.owner
    }

    /// The number of its creation, below 2^48.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        u64::from(self.id_high) << 32 | u64::from(self.id)
    }

    #[inline]
    pub(crate) fn priority(&self) -> Priority {
        self.attrs.as_ref().map_or(Priority::DEFAULT, |attrs| attrs.priority)
    }

    /// The limits of the task, if it has any.
    #[inline]
    pub(crate) fn limits(&self) -> Option<&Limits> {
        self.attrs.as_ref()?.limits.as_ref()
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.limits()?.deadline()
    }

    /// The lane of the task without a cancel request.
    pub(crate) fn own_lane(&self) -> Lane {
        if self.deadline().is_some() { Lane::Timed } else { Lane::Ready }
    }

    /// The lane of the task now.
    pub(crate) fn lane(&self) -> Lane {
        if self.word.load().state().in_cancel_lane() { Lane::Cancel } else { self.own_lane() }
    }

    #[inline]
    pub(crate) fn is_finalizer(&self) -> bool {
        self.attrs.as_ref().is_some_and(|attrs| attrs.finalizer)
    }

    #[inline]
    pub(crate) fn is_blocking(&self) -> bool {
        self.pin == BLOCKING
    }

    #[inline]
    pub(crate) fn is_pinned(&self) -> bool {
        self.pin < BLOCKING
    }

    /// Notes the resource that the task is about to wait for, and the location.
    #[inline]
    pub(crate) fn set_wait(&self, on: Wait, at: &'static Location<'static>) {
        let now = self.owner.coarse_time();
        self.wait.store(WaitWord::waits(on, at, now).0, Relaxed);
    }

    /// Marks the noted wait as stale: the last poll has noted none.
    #[inline]
    pub(crate) fn age_wait(&self) {
        let word = self.wait_word();
        let aged = word.aged();
        if aged != word {
            self.wait.store(aged.0, Relaxed);
        }
    }

    /// Clears the noted wait.
    #[cfg(feature = "lab")]
    #[inline]
    fn clear_wait(&self) {
        self.wait.store(0, Relaxed);
    }

    /// The number of the task that waits for the end of this one, if a task does.
    #[cfg(feature = "lab")]
    pub(crate) fn joined_by(&self) -> Option<u64> {
        let waits = self.word.load().has_waker() && !self.word.load().is_completed();
        // SAFETY: rule 3: with `WAKER` set only the owner of the handle changes it, and that is not
        // polled meanwhile: it would be on this thread.
        waits.then(|| self.joiner.with(|joiner| unsafe { &*joiner }.task()))?
    }

    /// Whether the noted wait is older than the last poll.
    pub(crate) fn is_wait_stale(&self) -> bool {
        self.wait_word().is_stale()
    }

    /// The last noted wait, with its location.
    pub(crate) fn wait(&self) -> Option<(Wait, &'static Location<'static>)> {
        self.wait_word().wait()
    }

    /// The age of the noted wait in steps of the coarse clock, if it is known.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn wait_age(&self, now: u32) -> Option<u32> {
        self.wait_word().age(now)
    }

    #[inline]
    fn wait_word(&self) -> WaitWord {
        WaitWord(self.wait.load(Relaxed))
    }

    /// The location of the spawn, if it is known and the task has not noted a wait since.
    pub(crate) fn spawned_at(&self) -> Option<&'static Location<'static>> {
        self.wait_word().spawned_at()
    }

    /// The type name of the future, which contains the function it is written in.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn body(&self) -> &'static str {
        (self.vtable.body)()
    }
}

/// A counted reference to a task.
pub(crate) struct TaskRef {
    header: NonNull<Header>,
    /// Its owner, in an audit.
    tag: Tag,
}

// SAFETY: the header is Send and Sync; rules 2 and 6 guard the stage.
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    /// Counts a further reference to a live task.
    ///
    /// # Safety
    /// Rule 1: the cell is alive.
    #[inline]
    pub(crate) unsafe fn borrowed(header: NonNull<Header>, owner: Owner) -> TaskRef {
        // SAFETY: the caller's promise.
        let task = unsafe { header.as_ref() };
        // Rule 10.
        if poll_context::take_reference(header) {
            task.books.shift(Owner::Reserve, owner);
        } else {
            task.word.add_reference();
            task.books.enter(&task.word, owner, 1);
        }
        TaskRef::owned(header, owner)
    }

    /// A reference that this owner has counted.
    #[inline]
    fn owned(header: NonNull<Header>, owner: Owner) -> TaskRef {
        TaskRef { header, tag: Tag::new(owner) }
    }

    /// Takes over a counted reference.
    ///
    /// # Safety
    /// Rule 1: the reference was counted and is not used otherwise.
    pub(crate) unsafe fn from_raw(header: NonNull<Header>, owner: Owner) -> TaskRef {
        TaskRef::owned(header, owner)
    }

    /// Passes the reference to another owner.
    #[inline]
    pub(crate) fn given_to(mut self, owner: Owner) -> TaskRef {
        self.books.shift(self.tag.owner(), owner);
        self.tag.set(owner);
        self
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.header
    }

    /// Polls the future. Its panics unwind to the caller.
    ///
    /// # Safety
    /// The caller set `POLLING` (rule 2), on the right thread (rule 6).
    pub(crate) unsafe fn poll(&self, cx: &mut Context<'_>) -> Poll<Severity> {
        // SAFETY: rule 5 and the caller's promise.
        unsafe { (self.vtable.poll)(self.header, cx) }
    }

    /// Drops the future or result. Its panics unwind to the caller; the stage is empty then too.
    ///
    /// # Safety
    /// As [`TaskRef::poll`], or the caller has claimed the result.
    pub(crate) unsafe fn discard(&self) {
        // SAFETY: rule 5 and the caller's promise.
        unsafe { (self.vtable.discard)(self.header) }
    }

    /// Stores a verdict in the stage, which was discarded before.
    ///
    /// # Safety
    /// As [`TaskRef::poll`].
    pub(crate) unsafe fn finish(&self, verdict: Verdict) {
        self.span.verdict(&verdict);
        // SAFETY: rule 5 and the caller's promise.
        unsafe { (self.vtable.finish)(self.header, verdict) }
    }

    fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).header
    }

    /// Wakes the task and drops the reference.
    #[inline]
    pub(crate) fn wake(self) {
        // The reference is dropped last: it keeps the host (rule 13).
        wake_task(&self);
    }

    /// Forgets a reference that is no longer counted.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Deref for TaskRef {
    type Target = Header;
    #[inline]
    fn deref(&self) -> &Header {
        // SAFETY: rule 1.
        let task = unsafe { self.header.as_ref() };
        task.books.check_alive();
        task
    }
}

impl Clone for TaskRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: rule 1: this one keeps the cell alive.
        unsafe { TaskRef::borrowed(self.header, self.tag.of_clone()) }
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        // Rule 10.
        if poll_context::return_reference(self.header) {
            return self.books.shift(self.tag.owner(), Owner::Reserve);
        }
        self.books.strike(&self.word, self.tag.owner());
        if self.word.drop_reference() {
            // SAFETY: rule 1, this was the last one; rule 5.
            unsafe { (self.header.as_ref().vtable.free)(self.header) }
        }
    }
}
