//! The current poll of a thread: its task, and the resources left to the poll.
//!
//! A poll has an operation budget, references to its task and to a region in reserve, and the
//! innermost cancel scope around the caller. The chain of scopes is built and walked by the layer
//! above; here it is a pointer.
//!
//! # Rules
//! 1. The pointer in [`CURRENT`] is set by [`PollContext::run`] from a reference that outlives the
//!    closure it runs. It is restored before the closure returns, by unwinding too.
//! 2. It is read on the same thread only, while such a closure runs.
//!    The lab starts another poll in the middle of one ([`leave_poll`]), on another stack, and
//!    restores the pointer before the first one continues ([`return_to_poll`]): for the closure
//!    nothing has changed.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use crate::raw::audit::Owner;
use crate::raw::owner::OwnerReserve;
use crate::raw::{Header, TaskRef};

/// A poll of a task, on the stack of the polling thread.
pub(crate) struct PollContext {
    task: ManuallyDrop<TaskRef>,
    /// The innermost cancel scope around the caller: a pointer that only the chain of scopes
    /// follows.
    scope: Cell<*const ()>,
    /// The number of operations that the poll may still complete.
    left: Cell<u32>,
    /// Counted references to the task that are in reserve (rule 10 of cells).
    reserve: Cell<u32>,
    /// Whether the task has woken itself; it then gets one entry after the poll.
    woken: Cell<bool>,
    /// Whether the task was cancelled before the poll and had not observed it.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) is_asked: Cell<bool>,
    /// The address of the operation that noted its wait last in this poll; 0 if there is none, or
    /// if it was dropped since.
    waits: Cell<usize>,
    /// References to the region in which the poll last created or ended a task.
    pub(crate) owner_reserve: OwnerReserve,
}

#[cfg(not(loom))]
thread_local! {
    static CURRENT: Cell<*const PollContext> = const { Cell::new(ptr::null()) };
}

#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<*const PollContext> = Cell::new(ptr::null());
}

/// Restores the previous poll, and releases the references in reserve.
struct Restore<'a>(*const PollContext, &'a PollContext);

impl Drop for Restore<'_> {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.0));
        self.1.owner_reserve.release();
    }
}

impl PollContext {
    /// Creates a poll that may complete `operations` operations, with `reserve` references to the
    /// task in reserve.
    #[inline]
    pub(crate) fn new(task: ManuallyDrop<TaskRef>, operations: u32, reserve: u32) -> PollContext {
        task.books.enter(&task.word, Owner::Reserve, reserve);
        let left = Cell::new(operations);
        let reserve = Cell::new(reserve);
        let scope = Cell::new(ptr::null());
        let woken = Cell::new(false);
        let waits = Cell::new(0);
        #[cfg(not(target_family = "wasm"))]
        let is_asked = Cell::new(false);
        PollContext {
            task,
            scope,
            left,
            reserve,
            woken,
            #[cfg(not(target_family = "wasm"))]
            is_asked,
            waits,
            owner_reserve: OwnerReserve::new(),
        }
    }

    #[inline]
    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    /// The rest of the reserve. The caller ends the poll and gives the references up, once.
    #[inline]
    pub(crate) fn left_in_reserve(&self) -> u32 {
        self.reserve.get()
    }

    /// Whether the task has woken itself in this poll.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.get()
    }

    /// Whether an operation has noted a wait in this poll and was not dropped since.
    #[inline]
    pub(crate) fn has_wait(&self) -> bool {
        self.waits.get() != 0
    }

    /// Runs `f` as part of the poll.
    #[inline]
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let _restore = Restore(CURRENT.with(|current| current.replace(self)), self);
        self.task.span.within(f)
    }

    /// Like [`run`](PollContext::run), with an unlimited number of operations.
    pub(crate) fn run_freely<R>(&self, f: impl FnOnce() -> R) -> R {
        self.free();
        self.run(f)
    }

    /// Allows an unlimited number of operations.
    pub(crate) fn free(&self) {
        self.left.set(u32::MAX);
    }
}

/// Calls `f` with the current poll of this thread, if there is one.
#[inline]
pub(crate) fn with_poll<R>(f: impl FnOnce(&PollContext) -> R) -> Option<R> {
    #[cfg(not(loom))]
    let current = CURRENT.get();
    // Loom drops the values of a thread after its thread-locals.
    #[cfg(loom)]
    let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: rules 1 and 2.
    unsafe { current.as_ref() }.map(f)
}

/// Takes one operation from the current poll. Returns false if none is left. `u32::MAX` is no
/// limit.
#[inline]
pub(crate) fn take_operation() -> bool {
    let take = |poll: &PollContext| match poll.left.get() {
        u32::MAX => true,
        0 => false,
        left => {
            poll.left.set(left - 1);
            true
        }
    };
    with_poll(take).unwrap_or(true)
}

/// Takes `count` operations from the current poll, or all that are left.
#[inline]
pub(crate) fn take_operations(count: u32) {
    with_poll(|poll| {
        let left = poll.left.get();
        if left != u32::MAX {
            poll.left.set(left.saturating_sub(count));
        }
    });
}

/// Returns an operation that was taken and has to wait: only operations that complete are charged.
#[inline]
pub(crate) fn return_operation() {
    with_poll(|poll| {
        let left = poll.left.get();
        if left != u32::MAX {
            poll.left.set(left + 1);
        }
    });
}

/// Notes that the operation at this address waits.
#[inline]
pub(crate) fn note_wait(operation: usize) {
    if !cfg!(target_family = "wasm") {
        with_poll(|poll| poll.waits.set(operation));
    }
}

/// Notes that the operation at this address no longer waits. If it was the last one to note a
/// wait, the wait of the poll is unknown.
#[inline]
pub(crate) fn end_wait(operation: usize) {
    if !cfg!(target_family = "wasm") {
        with_poll(|poll| {
            if poll.waits.get() == operation {
                poll.waits.set(0);
            }
        });
    }
}

/// Whether [`take_operation`] would find one.
#[inline]
pub(crate) fn has_operation() -> bool {
    with_poll(|poll| poll.left.get() > 0).unwrap_or(true)
}

/// Allows the current poll an unlimited number of operations.
pub(crate) fn allow_any_number() {
    with_poll(PollContext::free);
}

/// Notes that this task was woken, if this thread is polling it. It is queued when the poll ends.
#[inline]
pub(crate) fn note_wake(task: NonNull<Header>) -> bool {
    let note = |poll: &PollContext| {
        let mine = poll.task.as_ptr() == task;
        if mine {
            poll.woken.set(true);
        }
        mine
    };
    with_poll(note).unwrap_or(false)
}

/// Takes a reference from the reserve of this task for the caller, if this thread is polling it and
/// has one left.
#[inline]
pub(crate) fn take_reference(task: NonNull<Header>) -> bool {
    let take = |poll: &PollContext| {
        let left = poll.reserve.get();
        let mine = poll.task.as_ptr() == task && left > 0;
        if mine {
            poll.reserve.set(left - 1);
        }
        mine
    };
    with_poll(take).unwrap_or(false)
}

/// Puts the caller's reference to this task into the reserve, if this thread is polling it.
#[inline]
pub(crate) fn return_reference(task: NonNull<Header>) -> bool {
    let put = |poll: &PollContext| {
        let left = poll.reserve.get();
        let mine = poll.task.as_ptr() == task && left < u32::MAX;
        if mine {
            poll.reserve.set(left + 1);
        }
        mine
    };
    with_poll(put).unwrap_or(false)
}

/// A poll that was left in the middle.
#[cfg(feature = "lab")]
#[derive(Debug)]
#[must_use = "the poll is to be returned to"]
pub struct Left(*const PollContext);

/// Leaves the current poll: this thread then has none.
#[cfg(feature = "lab")]
pub fn leave_poll() -> Left {
    Left(CURRENT.with(|current| current.replace(ptr::null())))
}

/// Returns to a poll that was left.
///
/// # Safety
/// The caller is inside that poll, on its stack. Every poll that began on this thread since it was
/// left has ended or was left too.
#[cfg(feature = "lab")]
pub unsafe fn return_to_poll(left: Left) {
    CURRENT.with(|current| current.set(left.0));
}

/// The task this thread is polling.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&TaskRef) -> R) -> Option<R> {
    with_poll(|poll| f(&poll.task))
}

/// Whether this thread is polling `task`, and no cancel scope is around the caller.
#[inline]
pub(crate) fn is_bare(task: &Header) -> bool {
    let bare =
        |poll: &PollContext| ptr::eq(&raw const **poll.task, task) && poll.scope.get().is_null();
    with_poll(bare).unwrap_or(false)
}

/// Returns the innermost cancel scope around the caller, null outside of all scopes. An error if
/// this thread is not polling `task`.
#[inline]
pub(crate) fn scope(task: &Header) -> Result<*const (), Elsewhere> {
    let here = |poll: &PollContext| ptr::eq(&raw const **poll.task, task).then(|| poll.scope.get());
    with_poll(here).flatten().ok_or(Elsewhere)
}

/// Sets the innermost cancel scope of the poll on this thread, and returns the one before. `None`
/// outside of a poll.
#[inline]
pub(crate) fn replace_scope(scope: *const ()) -> Option<*const ()> {
    with_poll(|poll| poll.scope.replace(scope))
}

/// The thread is not polling that task.
pub(crate) struct Elsewhere;

/// Runs `f` as if this thread were polling `task`, with `operations` operations.
#[cfg(all(test, not(loom)))]
pub(crate) fn as_if_polled<R>(task: &TaskRef, operations: u32, f: impl FnOnce() -> R) -> R {
    let poll = PollContext::new(ManuallyDrop::new(task.clone()), operations, 0);
    let answer = poll.run(f);
    if poll.is_woken() {
        crate::raw::wake_task(&poll.task);
    }
    drop(ManuallyDrop::into_inner(poll.task));
    answer
}
