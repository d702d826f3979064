//! The part of a cell that depends on its task: the future, then the result, in the same place.
//!
//! Which of the two is there, a byte in the header says, where it costs nothing (a tag of its own
//! would make most cells eight bytes larger).
//!
//! # Rule
//! 8. *Holds*. `holds` says which field of the union is initialised. It is changed together with
//!    the union, by who may touch the stage (rule 2).

use std::mem::ManuallyDrop;
use std::pin::Pin;

use asx_kernel::outcome::Severity;

use crate::raw::outcome::{Outcome, TaskError};

/// What is in a stage.
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

/// A stage in the hands of who may touch it.
pub(super) struct Stage<'a, F, T, E> {
    pub(super) holds: &'a mut Holds,
    pub(super) slot: &'a mut Slot<F, T, E>,
}

impl<F, T, E> Stage<'_, F, T, E> {
    /// Drops what is there, whose panic comes out; the stage is empty then too.
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
            // SAFETY: rule 8: it was there, and from now on is not.
            Holds::Future => unsafe { ManuallyDrop::drop(&mut self.slot.future) },
            // SAFETY: as above.
            Holds::Result => unsafe { ManuallyDrop::drop(&mut self.slot.result) },
        }
    }

    /// Makes the future where it stays.
    #[inline]
    pub(super) fn make_future(&mut self, make: impl FnOnce() -> F) {
        self.clear();
        self.slot.future = ManuallyDrop::new(make());
        *self.holds = Holds::Future;
    }

    /// Puts the result in the place of the future, which has ended.
    #[inline]
    pub(super) fn end_future(&mut self, result: Outcome<T, E>) {
        if *self.holds == Holds::Future {
            *self.holds = Holds::Nothing;
            // SAFETY: rule 8: it was there, and from now on is not.
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

    /// The future, which stays where it is until it is dropped.
    #[inline]
    pub(super) fn future(&mut self) -> Option<Pin<&mut F>> {
        // SAFETY: rule 8; a cell does not move, and `clear` drops the future in place.
        (*self.holds == Holds::Future)
            .then(|| unsafe { Pin::new_unchecked(&mut *self.slot.future) })
    }

    /// How a task ends that has a result, and never had a future.
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
