//! Wakers of tasks: a counted reference behind the standard vtable.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::runnable::wake_task;
use super::{Header, TaskRef};
use crate::raw::audit::Owner;

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// Whether a waker is a task's: cloning it counts a reference and does nothing else.
#[inline]
pub fn is_task_waker(waker: &Waker) -> bool {
    std::ptr::eq(waker.vtable(), &VTABLE)
}

/// Returns the task of a waker, if it is a task's waker.
#[inline]
pub(crate) fn task_of(waker: &Waker) -> Option<NonNull<Header>> {
    // SAFETY: it is a task's.
    is_task_waker(waker).then(|| unsafe { header(waker.data()) })
}

/// Returns the number of the task, if it is a task's waker.
#[cfg(any(feature = "lab", not(target_family = "wasm")))]
pub(crate) fn task_number(waker: &Waker) -> Option<u64> {
    with_task(waker, Header::id)
}

/// Calls `look` with the task, if it is a task's waker.
pub(crate) fn with_task<R>(waker: &Waker, look: impl FnOnce(&Header) -> R) -> Option<R> {
    // SAFETY: rule 1: the waker keeps the cell alive.
    task_of(waker).map(|task| look(unsafe { task.as_ref() }))
}

/// The task of a waker.
///
/// # Safety
/// The data are those of a waker with the vtable above: each of them is made of a cell.
#[inline]
unsafe fn header(data: *const ()) -> NonNull<Header> {
    // SAFETY: the caller's promise.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: rule 1: the cloned waker keeps the cell alive.
    let task = unsafe { TaskRef::borrowed(header(data), Owner::Waker) };
    task.wakers.more();
    RawWaker::new(task.into_raw().as_ptr().cast_const().cast(), &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: rule 1: the waker's own reference, which ends here.
    let task = unsafe { TaskRef::from_raw(header(data), Owner::Waker) };
    task.wakers.fewer();
    task.wake();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: rule 1: the waker's own reference, which stays.
    let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(header(data), Owner::Waker) });
    wake_task(&task);
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: rule 1: the waker's own reference, which ends here.
    let task = unsafe { TaskRef::from_raw(header(data), Owner::Waker) };
    task.wakers.fewer();
}

impl TaskRef {
    /// A waker for as long as the task is borrowed; it owns no reference.
    pub(crate) fn lend_waker(&self) -> ManuallyDrop<Waker> {
        let data = self.as_ptr().as_ptr().cast_const().cast();
        // SAFETY: as above; it is never dropped, and each clone counts a reference.
        ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) })
    }
}
