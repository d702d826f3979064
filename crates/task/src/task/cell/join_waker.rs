//! Who waits for the end of a task, in one word: a task of ours as a reference, any other waker in
//! a box.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::Waker;

use super::{Header, TaskRef, is_task_waker, memory, task_of};
use crate::core::Core;
use crate::task::audit::Owner;

/// Set in the word of a boxed waker: both kinds of pointers are even.
const BOXED: usize = 1;

/// Nobody, or somebody.
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

    /// Has `waker` woken in place of who was here before, whose waker the caller drops.
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

    /// The number of the task that waits, if it is one.
    #[cfg(feature = "lab")]
    pub(super) fn task(&self) -> Option<u64> {
        match self.kind()? {
            Kind::Task(task) => Some(task.id()),
            Kind::Other(_) => None,
        }
    }

    pub(super) fn wake(self, core: &Core) {
        match ManuallyDrop::new(self).kind() {
            Some(Kind::Task(task)) => {
                task.wakers.fewer();
                ManuallyDrop::into_inner(task).wake();
            }
            Some(Kind::Other(waker)) => core.wake(owned(waker)),
            None => {}
        }
    }
}

impl JoinWaker {
    /// Drops who is there; a panic in that is counted there.
    #[inline]
    pub(super) fn discard(self, core: &Core) {
        if self.0.is_some_and(|word| word.addr().get() & BOXED != 0) {
            core.discard(self);
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
    /// Drops who is there.
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

/// The waker of a joiner that ends.
fn owned(waker: NonNull<Waker>) -> Waker {
    // SAFETY: what `set` put there, which nobody looks at again: it is the caller's, and its box
    // goes without it.
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
