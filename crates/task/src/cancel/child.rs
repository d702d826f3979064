//! The wakers that combinators of this crate give their children: a cancel need not wake these, as
//! it has the combinator polled, which passes it on.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::task::{RawWakerVTable, Waker};

/// The vtable of children's wakers, once there was one.
static VTABLE: AtomicPtr<RawWakerVTable> = AtomicPtr::new(ptr::null_mut());

/// Such a waker was made.
#[inline]
pub(crate) fn note_child_waker(waker: &Waker) {
    VTABLE.store(ptr::from_ref(waker.vtable()).cast_mut(), Ordering::Relaxed);
}

/// Whether a waker is that of a child: cancels reach that through who polls it.
#[inline]
pub(crate) fn is_child_waker(waker: &Waker) -> bool {
    ptr::eq(waker.vtable(), VTABLE.load(Ordering::Relaxed))
}
