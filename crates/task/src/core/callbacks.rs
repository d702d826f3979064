//! Callbacks into user code, with the runtime that counts their panics.

use std::task::Waker;

use crate::core::Core;

impl Core {
    /// Runs a callback. A panic of it ends here and is counted in
    /// [`Health::callback_panics`](crate::Health::callback_panics). Returns `None` if it panicked.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub fn contain<R>(&self, callback: impl FnOnce() -> R) -> Option<R> {
        self.panics.contain(callback)
    }

    /// Wakes and drops a waker.
    #[inline]
    pub(crate) fn wake(&self, waker: Waker) {
        self.panics.wake(waker);
    }

    /// Drops a waker, if there is one.
    #[inline]
    pub(crate) fn drop_waker(&self, waker: Option<Waker>) {
        self.panics.drop_waker(waker);
    }

    /// Drops a user value.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub(crate) fn discard<T>(&self, value: T) {
        self.panics.discard(value);
    }

    /// Drops the unclaimed result of a task. A panic of its destructor is lost: no handle returns
    /// it.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub(crate) fn drop_result(&self, drop: impl FnOnce()) {
        if !self.panics.attempt(drop) {
            self.lost_panic();
        }
    }
}
