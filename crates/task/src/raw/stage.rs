//! The part of a cell that depends on its task: the future, then the result, in the same place.
//!
//! A byte of the header says which of the two is there. It fits into padding; a separate tag would
//! make most cells eight bytes larger.
//!
//! # Rule
//! 8. *Holds*. `holds` says which field of the union is initialised. It is changed together with
//!    the union, by the thread that may access the stage (rule 2).

use std::mem::ManuallyDrop;
use std::pin::Pin;

use asx_kernel::outcome::Severity;

use crate::raw::outcome::{Outcome, TaskError};

/// The content of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Nothing,
    Future,
    Result,
}

pub(super) union Slot<F, T, E> {
    nothing: (),
    future: ManuallyDrop<F>,
    result: ManuallyDrop<Outcome<T, E>>,
}

impl<F, T, E> Slot<F, T, E> {
    pub(super) const EMPTY: Self = Slot { nothing: () };
}

/// A stage, borrowed by the thread that may access it.
pub(super) struct Stage<'a, F, T, E> {
    pub(super) holds: &'a mut Holds,
    pub(super) slot: &'a mut Slot<F, T, E>,
}

impl<F, T, E> Stage<'_, F, T, E> {
    /// Drops the content. Its panics unwind to the caller; the stage is empty then too.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            self.empty();
        }
    }

    #[inline]
    fn empty(&mut self) {
        match std::mem::replace(self.holds, Holds::Nothing) {
            Holds::Nothing => {}
            // SAFETY: rule 8: it was there, and is gone from now on.
            Holds::Future => unsafe { ManuallyDrop::drop(&mut self.slot.future) },
            // SAFETY: as above.
            Holds::Result => unsafe { ManuallyDrop::drop(&mut self.slot.result) },
        }
    }

    /// Creates the future in place.
    #[inline]
    pub(super) fn make_future(&mut self, make: impl FnOnce() -> F) {
        self.clear();
        self.slot.future = ManuallyDrop::new(make());
        *self.holds = Holds::Future;
    }

    /// Replaces the future, which has ended, by the result.
    #[inline]
    pub(super) fn end_future(&mut self, result: Outcome<T, E>) {
        if *self.holds == Holds::Future {
            *self.holds = Holds::Nothing;
            // SAFETY: rule 8: it was there, and is gone from now on.
            unsafe { ManuallyDrop::drop(&mut self.slot.future) };
        }
        self.set_result(result);
    }

    #[inline(always)]
    pub(super) fn set_result(&mut self, result: Outcome<T, E>) {
        self.clear();
        self.slot.result = ManuallyDrop::new(result);
        *self.holds = Holds::Result;
    }

    /// The future, pinned until it is dropped.
    #[inline]
    pub(super) fn future(&mut self) -> Option<Pin<&mut F>> {
        // SAFETY: rule 8; a cell does not move, and `clear` drops the future in place.
        (*self.holds == Holds::Future)
            .then(|| unsafe { Pin::new_unchecked(&mut *self.slot.future) })
    }

    /// The severity of a task that has a result and never had a future.
    #[cold]
    pub(super) fn severity(&self) -> Severity {
        if *self.holds != Holds::Result {
            return Severity::Panicked;
        }
        // SAFETY: rule 8.
        match unsafe { &*self.slot.result } {
            Ok(_) => Severity::Ok,
            Err(TaskError::Err(_)) => Severity::Err,
            Err(TaskError::Cancelled(_)) => Severity::Cancelled,
            Err(TaskError::Panicked(_)) => Severity::Panicked,
        }
    }

    #[inline]
    pub(super) fn take_result(&mut self) -> Option<Outcome<T, E>> {
        if *self.holds != Holds::Result {
            return None;
        }
        *self.holds = Holds::Nothing;
        // SAFETY: rule 8: it was there, and from now on is not.
        Some(unsafe { ManuallyDrop::take(&mut self.slot.result) })
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        *self.holds == Holds::Nothing
    }
}
