//! The handle's side of a cell: waiting for the result, and taking it.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::Waker;

use super::TaskRef;
use crate::cancel::wakers::Registration;
use crate::footprint::{Object, Part};
use crate::task::audit::Owner;
use crate::task::outcome::{Outcome, TaskError};

/// The handle's side of a cell whose result is an `Outcome<T, E>`.
pub(crate) struct JoinInner<T, E> {
    task: ManuallyDrop<TaskRef>,
    /// Whether the result was taken.
    done: bool,
    /// Of who waits.
    pub(crate) registration: Registration,
    result: PhantomData<fn() -> Outcome<T, E>>,
}

impl<T, E> JoinInner<T, E> {
    /// # Safety
    /// Rule 5: the cell was made for `T` and `E`, and this is its handle.
    pub(crate) unsafe fn new(task: TaskRef) -> Self {
        let task = ManuallyDrop::new(task);
        let registration = Registration::NONE;
        JoinInner { task, done: false, registration, result: PhantomData }
    }

    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    /// The result of a task that has ended, once.
    pub(crate) fn try_take(&mut self) -> Option<Outcome<T, E>> {
        Object::of_task(self.task.id(), Part::End).read();
        if self.done || !self.task.word.load().is_completed() {
            return None;
        }
        self.done = true;
        let mut result = None;
        if self.task.word.claim_by_handle() {
            let into = NonNull::from(&mut result).cast();
            // SAFETY: rules 2 and 5: claimed just now, and `new` said what type it is.
            unsafe { (self.task.vtable.take)(self.task.header, into) };
        }
        result
    }

    /// Whether the result was taken, here or by the scope.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Has `waker` woken at the end of the task: false if it has ended already.
    pub(crate) fn register(&mut self, waker: &Waker) -> bool {
        let word = &self.task.word;
        let held = word.take_waker();
        if !held && word.load().is_completed() {
            return false;
        }
        // SAFETY: rule 3: `WAKER` is clear, and was when the task completed if it has meanwhile;
        // the completer looks at the waker only if it finds `WAKER` set.
        let old = self.task.joiner.with_mut(|joiner| unsafe { &mut *joiner }.set(waker));
        let registered = word.give_waker();
        old.discard(&self.task.region.core);
        if !registered {
            // Nobody will take it, and it would keep who waits for as long as this cell is kept.
            // SAFETY: rule 3: the task completed while `WAKER` was clear.
            let joiner =
                self.task.joiner.with_mut(|joiner| std::mem::take(unsafe { &mut *joiner }));
            joiner.discard(&self.task.region.core);
        }
        registered
    }
}

impl<T, E> Drop for JoinInner<T, E> {
    fn drop(&mut self) {
        // SAFETY: rule 1: the handle's reference, which is not used again.
        let task = unsafe { ManuallyDrop::take(&mut self.task) };
        // Shortcut: of a task whose result was taken, nobody asks whether there is a handle.
        if self.done {
            return;
        }
        // Who waited is let go of: a task that waited for itself would be kept by its own waker.
        // Before the reference goes, which keeps the core that a panic of the waker is counted in.
        if task.word.take_waker() {
            // SAFETY: rule 3: `WAKER` was set and is clear now, so that nobody else looks at it.
            let joiner = task.joiner.with_mut(|joiner| std::mem::take(unsafe { &mut *joiner }));
            joiner.discard(&task.region.core);
        }
        task.books.strike(&task.word, Owner::Handle);
        let parted = task.word.drop_handle_with(true);
        if !parted.gone {
            task.books.enter(&task.word, Owner::Handle, 1);
        }
        if parted.claimed {
            // A panic here would drop the reference once more.
            // SAFETY: rule 2, claimed just now.
            task.region.core.drop_result(|| unsafe { task.discard() });
        }
        if parted.gone {
            task.forget();
        }
    }
}

/// The error or panic of a completed task.
///
/// # Safety
/// Rule 5: the cell was made for errors of type `E`.
pub(crate) unsafe fn claim_error<E>(task: &TaskRef) -> Option<TaskError<E>> {
    let mut stop = None;
    if task.word.load().is_completed() && task.word.claim() {
        // SAFETY: rule 2, claimed just now; rule 5.
        unsafe { (task.vtable.take_stop)(task.header, NonNull::from(&mut stop).cast()) };
    }
    stop
}
