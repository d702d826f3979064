//! Containing the panics of user code that runs outside of a poll.
//!
//! A poll has a `catch_unwind` of its own: its panic is the outcome of the task. Other callbacks
//! (wakers, destructors of what the runtime drops, governors) run in the middle of something that
//! concerns other tasks: a walk over several waiters, the close of a region, the loop of a worker.
//! Such a callback is called through this module. Its panic ends here: it is counted in
//! [`Health::callback_panics`](crate::Health), reported to `tracing` where that feature is on (the
//! panic hook has printed it before), and the caller goes on. `docs/CALLBACKS.md` lists them all.
//!
//! A waker of a task of ours runs no user code, so that it is called directly. (Its last reference
//! may free a cell and a region; these contain what they drop themselves.)
//!
//! Which runtime counts a panic: the one whose core is at hand, else the one whose callback this
//! happens in, else the one whose task this thread polls. Where there is none of these, as on a
//! thread of the user's, only the panic hook tells.
//!
//! With `panic = "abort"`, as on a page, there is nothing to contain, and nothing is compiled.

use std::task::Waker;

use crate::core::Core;
use crate::raw::is_task_waker;

/// Callbacks of which the caller knows the runtime.
impl Core {
    /// Runs a callback of the user's. `None`: it panicked, which is counted and ends here.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub fn contain<R>(&self, callback: impl FnOnce() -> R) -> Option<R> {
        imp::contain(Some(self), callback)
    }

    /// Wakes whoever it is.
    #[inline]
    pub(crate) fn wake(&self, waker: Waker) {
        if runs_user_code(&waker) { imp::wake(Some(self), waker) } else { waker.wake() }
    }

    /// Drops a waker, if there is one.
    #[inline]
    pub(crate) fn drop_waker(&self, waker: Option<Waker>) {
        match waker {
            Some(waker) if runs_user_code(&waker) => self.discard(waker),
            _ => {}
        }
    }

    /// Drops something of the user's.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub(crate) fn discard<T>(&self, value: T) {
        self.contain(|| drop(value));
    }

    /// Drops the result of a task, which nobody wanted: a panic of its destructor is one that
    /// nobody is told of.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub(crate) fn drop_result(&self, drop: impl FnOnce()) {
        if self.contain(|| imp::attempt(drop).is_ok()) != Some(true) {
            self.lost_panic();
        }
    }
}

/// Runs a callback of the user's. `None`: it panicked, which ends here.
pub fn contain<R>(callback: impl FnOnce() -> R) -> Option<R> {
    imp::contain(None, callback)
}

/// Wakes whoever it is.
#[inline]
pub fn wake(waker: Waker) {
    if runs_user_code(&waker) { imp::wake(None, waker) } else { waker.wake() }
}

/// Wakes all of them, in order.
pub fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(wake);
}

/// Wakes whoever it is, and keeps the waker.
#[inline]
pub fn wake_by_ref(waker: &Waker) {
    if runs_user_code(waker) {
        contain(|| waker.wake_by_ref());
    } else {
        waker.wake_by_ref();
    }
}

/// Drops a waker, if there is one.
#[inline]
pub fn drop_waker(waker: Option<Waker>) {
    match waker {
        Some(waker) if runs_user_code(&waker) => drop_other(waker),
        _ => {}
    }
}

#[cold]
fn drop_other(waker: Waker) {
    contain(|| drop(waker));
}

/// Whether a waker may run code of the user's, whose panic is to be contained.
#[inline(always)]
fn runs_user_code(waker: &Waker) -> bool {
    !cfg!(target_family = "wasm") && !is_task_waker(waker)
}

#[cfg(any(loom, target_family = "wasm"))]
mod imp {
    use std::task::Waker;

    use crate::core::Core;

    #[inline(always)]
    pub(super) fn contain<R>(_: Option<&Core>, callback: impl FnOnce() -> R) -> Option<R> {
        Some(callback())
    }

    #[inline(always)]
    pub(super) fn wake(_: Option<&Core>, waker: Waker) {
        waker.wake();
    }

    #[inline(always)]
    pub(super) fn attempt(callback: impl FnOnce()) -> Result<(), ()> {
        callback();
        Ok(())
    }
}

#[cfg(not(any(loom, target_family = "wasm")))]
pub(crate) use imp::drop_payload;
#[cfg(all(feature = "lab", not(any(loom, target_family = "wasm"))))]
pub(crate) use imp::is_inside_callback;

/// Where panics end the process, nobody notes that a callback is run.
#[cfg(all(feature = "lab", any(loom, target_family = "wasm")))]
pub(crate) fn is_inside_callback() -> bool {
    false
}

#[cfg(not(any(loom, target_family = "wasm")))]
mod imp {
    use std::any::Any;
    use std::cell::Cell;
    use std::mem;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::Waker;

    use crate::core::Core;
    use crate::core::spans;
    use crate::raw::outcome::{Panic, message_of};
    use crate::raw::poll_context;

    thread_local! {
        /// Panics contained inside a callback that is run for a core, which counts them when the
        /// callback returns; `None` outside of such a callback.
        static INSIDE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// Whether a callback is run for a core on this thread.
    #[cfg(feature = "lab")]
    pub(crate) fn is_inside_callback() -> bool {
        INSIDE.get().is_some()
    }

    pub(super) fn contain<R>(core: Option<&Core>, callback: impl FnOnce() -> R) -> Option<R> {
        let outer = core.map(|_| INSIDE.replace(Some(0)));
        let answer = catch_unwind(AssertUnwindSafe(callback));
        let inside = outer.and_then(|outer| INSIDE.replace(outer)).unwrap_or(0);
        match answer {
            Ok(answer) => {
                count(core, inside);
                Some(answer)
            }
            Err(payload) => {
                panicked(core, inside, payload);
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn wake(core: Option<&Core>, waker: Waker) {
        contain(core, || waker.wake());
    }

    pub(super) fn attempt(callback: impl FnOnce()) -> Result<(), Panic> {
        catch_unwind(AssertUnwindSafe(callback)).map_err(Panic::new)
    }

    #[cold]
    #[inline(never)]
    fn panicked(core: Option<&Core>, inside: u64, payload: Box<dyn Any + Send>) {
        report(&*payload);
        count(core, inside + 1 + discard(payload));
    }

    /// Drops what a panic carried, which may panic in turn.
    pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
        count(None, discard(payload));
    }

    /// Drops a payload: how many panics that made. What the second one carries is leaked, as its
    /// destructor might panic for ever.
    fn discard(payload: Box<dyn Any + Send>) -> u64 {
        let attempt =
            |payload| catch_unwind(AssertUnwindSafe(|| drop::<Box<dyn Any + Send>>(payload)));
        let Err(second) = attempt(payload) else { return 0 };
        report(&*second);
        let Err(third) = attempt(second) else { return 1 };
        report(&*third);
        mem::forget(third);
        2
    }

    /// Tells `tracing`, whose subscriber is the user's as well: a panic of that is not reported.
    fn report(payload: &(dyn Any + Send)) {
        let reported = AssertUnwindSafe(|| spans::callback_panicked(message_of(payload)));
        if let Err(again) = catch_unwind(reported) {
            mem::forget(again);
        }
    }

    #[inline]
    fn count(core: Option<&Core>, panics: u64) {
        if panics > 0 {
            count_some(core, panics);
        }
    }

    #[cold]
    fn count_some(core: Option<&Core>, panics: u64) {
        if let Some(core) = core {
            return core.callbacks_panicked(panics);
        }
        match INSIDE.get() {
            Some(before) => INSIDE.set(Some(before + panics)),
            None => {
                poll_context::with_current(|task| task.region.core.callbacks_panicked(panics));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::panic_any;

    use super::*;
    use crate::raw::outcome::Panic;
    use crate::test_util::loose_region;

    /// Panics when it is dropped, with another one of one less.
    struct Chain(u32);

    impl Drop for Chain {
        fn drop(&mut self) {
            if let Some(less) = self.0.checked_sub(1) {
                panic_any(Chain(less));
            }
        }
    }

    #[test]
    fn the_core_at_hand_counts_what_panics_and_what_panics_inside() {
        let outer = loose_region();
        let inner = loose_region();
        let counted = || [&outer, &inner].map(|region| region.health().callback_panics);
        assert_eq!(outer.core.contain(|| 7), Some(7));
        assert_eq!(counted(), [0, 0]);
        let answer = outer.core.contain(|| {
            assert_eq!(contain(|| -> u32 { panic!("for the one around") }), None);
            inner.core.discard(Chain(1));
            contain(|| drop(Chain(1)));
            7
        });
        assert_eq!((answer, counted()), (Some(7), [2, 1]));
        assert_eq!(outer.core.contain(|| -> u32 { panic!() }), None);
        // Nobody is there to count this.
        contain(|| panic!());
        assert_eq!(counted(), [3, 1]);
    }

    /// What a payload's destructor panics with is dropped too, once more at most.
    #[test]
    #[cfg_attr(asx_no_reuse, ignore = "leaks what the third panic carries, as it should")]
    fn payloads_that_panic_are_dropped_so_often_and_no_more() {
        for (chain, panics) in [(0, 0), (1, 1), (2, 2), (9, 2)] {
            let region = loose_region();
            region.core.contain(|| drop(Panic::new(Box::new(Chain(chain)))));
            assert_eq!(region.health().callback_panics, panics);
            region.core.contain(|| -> () { panic_any(Chain(chain)) });
            assert_eq!(region.health().callback_panics, 2 * panics + 1);
        }
    }

    #[test]
    fn a_result_nobody_wanted_is_counted_as_lost() {
        let region = loose_region();
        region.core.drop_result(|| panic_any(Chain(1)));
        region.core.drop_result(|| drop(Chain(0)));
        let health = region.health();
        assert_eq!((health.lost_panics, health.callback_panics), (1, 1));
    }
}
