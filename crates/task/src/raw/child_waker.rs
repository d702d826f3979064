//! The wakers that combinators give to their children.
//!
//! A cancel does not wake them. It wakes the task, which polls the combinator, and the combinator
//! polls the children that have to observe the cancel.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::task::{RawWakerVTable, Waker};

/// The vtable of all child wakers; null until the first one is created.
static VTABLE: AtomicPtr<RawWakerVTable> = AtomicPtr::new(ptr::null_mut());

/// Marks wakers with the vtable of `waker` as child wakers. One vtable at a time is marked.
///
/// A cancel no longer wakes an operation through such a waker. The caller polls it instead.
#[inline]
pub fn mark_child_waker(waker: &Waker) {
    VTABLE.store(ptr::from_ref(waker.vtable()).cast_mut(), Ordering::Relaxed);
}

/// Whether a waker belongs to the child of a combinator.
#[inline]
pub(crate) fn is_child_waker(waker: &Waker) -> bool {
    ptr::eq(waker.vtable(), VTABLE.load(Ordering::Relaxed))
}
