//! The join of a task: the handle's side of a cell, which waits for the result and takes it, and
//! the waker of the joiner.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::Waker;

use super::contain_panic::PanicCounter;
use super::owner::TaskOwner;
use super::{Header, TaskRef, is_task_waker, memory, task_of};
use crate::footprint::{Object, Part};
use crate::raw::audit::Owner;
use crate::raw::foreign_wakers::Registration;
use crate::raw::outcome::{Outcome, TaskError};

/// Set in the word of a boxed waker: both kinds of pointers are even.
const BOXED: usize = 1;

/// The handle's side of a cell whose result is an `Outcome<T, E>`.
pub(crate) struct JoinInner<T, E> {
    task: ManuallyDrop<TaskRef>,
    /// Whether the result was taken.
    done: bool,
    /// Whether this handle was the one that took it.
    given: bool,
    /// The registration of the waiting joiner.
    pub(crate) registration: Registration,
    result: PhantomData<fn() -> Outcome<T, E>>,
}

impl<T, E> JoinInner<T, E> {
    /// # Safety
    /// Rule 5: the cell was made for `T` and `E`, and this is its handle.
    pub(crate) unsafe fn new(task: TaskRef) -> Self {
        let task = ManuallyDrop::new(task);
        let registration = Registration::NONE;
        JoinInner { task, done: false, given: false, registration, result: PhantomData }
    }

    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    /// Takes the result, once the task has completed.
    pub(crate) fn try_take(&mut self) -> Option<Outcome<T, E>> {
        Object::of_task(self.task.id(), Part::End).read();
        if self.done || !self.task.word.load().is_completed() {
            return None;
        }
        self.done = true;
        let mut result = None;
        if self.task.word.claim() {
            let into = NonNull::from(&mut result).cast();
            // SAFETY: rules 2 and 5: claimed just now, and `new` said what type it is.
            unsafe { (self.task.vtable.take)(self.task.header, into) };
            self.given = true;
        }
        result
    }

    /// Whether the result was taken, here or by the scope.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the result was taken here.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// Has `waker` woken when the task completes. Returns false if it has completed already.
    pub(crate) fn register(&mut self, waker: &Waker) -> bool {
        let word = &self.task.word;
        let held = word.take_waker();
        if !held && word.load().is_completed() {
            return false;
        }
        // SAFETY: rule 3: `WAKER` is clear. If the task has completed meanwhile, it was clear then,
        // and the completer reads the waker only if it finds `WAKER` set.
        let old = self.task.joiner.with_mut(|joiner| unsafe { &mut *joiner }.set(waker));
        let registered = word.give_waker();
        old.discard(self.task.owner.panics());
        if !registered {
            // It will not be woken, and would keep the joiner alive as long as this cell.
            // SAFETY: rule 3: the task completed while `WAKER` was clear.
            let joiner =
                self.task.joiner.with_mut(|joiner| std::mem::take(unsafe { &mut *joiner }));
            joiner.discard(self.task.owner.panics());
        }
        registered
    }
}

impl<T, E> Drop for JoinInner<T, E> {
    fn drop(&mut self) {
        // SAFETY: rule 1: the handle's reference, which is not used again.
        let task = unsafe { ManuallyDrop::take(&mut self.task) };
        // Shortcut: the drop of `JoinInner`: the handle bit stays set if the result was taken,
        // because the bit is not read any more.
        // Law: `raw::word::Word::drop_handle_with`.
        // Equal: `nobody_asks_for_the_handle_of_a_result_that_was_taken` (every such word, every
        // operation).
        // Worth: 5.0 % of `spawn_await`.

        if self.done {
            return;
        }
        // The joiner's waker is dropped: a task that awaited itself would be kept alive by its own
        // waker. This happens before the reference is dropped, which keeps the panic counter.
        if task.word.take_waker() {
            // SAFETY: rule 3: `WAKER` was set and is clear now, so no other thread reads it.
            let joiner = task.joiner.with_mut(|joiner| std::mem::take(unsafe { &mut *joiner }));
            joiner.discard(task.owner.panics());
        }
        task.books.strike(&task.word, Owner::Handle);
        let parted = task.word.drop_handle_with(true);
        if !parted.gone {
            task.books.enter(&task.word, Owner::Handle, 1);
        }
        if parted.claimed {
            // A panic here would drop the reference once more.
            // SAFETY: rule 2, claimed just now.
            task.owner.drop_result(|| unsafe { task.discard() });
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

/// The waker of the joiner, in one word: none, a counted reference to a task, or any other waker in
/// a box.
#[derive(Default)]
pub(super) struct JoinWaker(Option<NonNull<()>>);

enum Kind {
    Task(ManuallyDrop<TaskRef>),
    Other(NonNull<Waker>),
}

impl JoinWaker {
    fn kind(&self) -> Option<Kind> {
        let word = self.0?;
        if word.addr().get() & BOXED == 0 {
            // SAFETY: rule 1: the reference that `set` put here, which stays here.
            let task = unsafe { TaskRef::from_raw(word.cast(), Owner::JoinWaker) };
            return Some(Kind::Task(ManuallyDrop::new(task)));
        }
        let address = word.as_ptr().map_addr(|address| address & !BOXED);
        NonNull::new(address.cast()).map(Kind::Other)
    }

    /// Stores `waker`, and returns the previous one for the caller to drop.
    #[must_use]
    pub(super) fn set(&mut self, waker: &Waker) -> JoinWaker {
        let known = match self.kind() {
            Some(Kind::Task(task)) => is_task_waker(waker) && waker.data() == address(&task),
            // SAFETY: the box that `set` put here.
            Some(Kind::Other(old)) => unsafe { old.as_ref() }.will_wake(waker),
            None => false,
        };
        if known {
            return JoinWaker(None);
        }
        let new = if let Some(task) = task_of(waker) {
            let own = ManuallyDrop::new(waker.clone()).data().cast_mut();
            // SAFETY: rule 1: the waker keeps the cell alive.
            unsafe { task.as_ref() }.books.shift(Owner::Waker, Owner::JoinWaker);
            own
        } else {
            let other = waker.clone();
            let boxed = memory::allocate::<Waker>().cast::<Waker>();
            // SAFETY: there is room for one.
            unsafe { boxed.write(other) };
            boxed.as_ptr().cast::<()>().map_addr(|address| address | BOXED)
        };
        std::mem::replace(self, JoinWaker(NonNull::new(new)))
    }

    /// The number of the joining task, if it is one.
    #[cfg(feature = "lab")]
    pub(super) fn task(&self) -> Option<u64> {
        match self.kind()? {
            Kind::Task(task) => Some(task.id()),
            Kind::Other(_) => None,
        }
    }

    pub(super) fn wake(self, panics: &PanicCounter) {
        match ManuallyDrop::new(self).kind() {
            Some(Kind::Task(task)) => {
                task.wakers.fewer();
                ManuallyDrop::into_inner(task).wake();
            }
            Some(Kind::Other(waker)) => panics.wake(owned(waker)),
            None => {}
        }
    }
}

impl JoinWaker {
    /// Drops the waker, and counts a panic of its destructor.
    #[inline]
    pub(super) fn discard(self, panics: &PanicCounter) {
        if self.0.is_some_and(|word| word.addr().get() & BOXED != 0) {
            panics.discard(self);
        }
    }
}

impl Drop for JoinWaker {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end();
        }
    }
}

impl JoinWaker {
    /// Drops the waker.
    fn end(&mut self) {
        match self.kind() {
            Some(Kind::Task(task)) => {
                task.wakers.fewer();
                drop(ManuallyDrop::into_inner(task));
            }
            Some(Kind::Other(waker)) => drop(owned(waker)),
            None => {}
        }
    }
}

/// Takes a waker out of its box.
fn owned(waker: NonNull<Waker>) -> Waker {
    // SAFETY: the box that `set` made. It is not used again: the waker goes to the caller, and the
    // box is freed without it.
    unsafe {
        let own = waker.read();
        memory::free(waker.cast::<MaybeUninit<Waker>>());
        own
    }
}

fn address(task: &TaskRef) -> *const () {
    task.as_ptr().as_ptr().cast_const().cast()
}

const _: () = assert!(align_of::<Header>() > BOXED && align_of::<Waker>() > BOXED);
