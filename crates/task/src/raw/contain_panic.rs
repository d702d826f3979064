//! Containing the panics of user code that runs outside of a poll.
//!
//! A poll has a separate `catch_unwind`: its panic is the outcome of the task. Other callbacks
//! (wakers, destructors of values that the runtime drops, governors) run in the middle of work
//! that concerns other tasks: a walk over several waiters, the close of a region, the loop of a
//! worker. They are called through this module. A panic of a callback ends here: it is counted,
//! reported to `tracing` where that feature is on (the panic hook has printed it before), and the
//! caller continues. `docs/CALLBACKS.md` lists all callbacks.
//!
//! The waker of a task runs no user code, so it is called directly. Its last reference may free a
//! cell and a region; these contain the panics of the values they drop.
//!
//! A panic is counted by the [`PanicCounter`] of the caller. Without one, it is counted by the
//! runtime of the enclosing callback, else by the runtime of the task that this thread polls. On
//! any other thread only the panic hook reports it.
//!
//! With `panic = "abort"`, as on wasm, there is nothing to contain, and nothing is compiled.

#[cfg(not(any(loom, target_family = "wasm")))]
use std::sync::atomic::AtomicU64;
#[cfg(not(any(loom, target_family = "wasm")))]
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use super::child_waker::is_child_waker;
use super::waker::is_task_waker;
use crate::footprint;

/// The number of panics that a runtime contained.
#[derive(Debug, Default)]
pub(crate) struct PanicCounter {
    #[cfg(not(any(loom, target_family = "wasm")))]
    panics: AtomicU64,
}

impl PanicCounter {
    /// Returns the number of panics so far; 0 where panics end the process.
    pub(crate) fn count(&self) -> u64 {
        #[cfg(not(any(loom, target_family = "wasm")))]
        return self.panics.load(Relaxed);
        #[cfg(any(loom, target_family = "wasm"))]
        0
    }

    /// Counts `panics` more.
    pub(crate) fn add(&self, _panics: u64) {
        #[cfg(not(any(loom, target_family = "wasm")))]
        self.panics.fetch_add(_panics, Relaxed);
    }

    /// Runs a callback. Returns `None` if it panicked.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub(crate) fn contain<R>(&self, callback: impl FnOnce() -> R) -> Option<R> {
        imp::contain(Some(self), callback)
    }

    /// Wakes and drops a waker.
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

    /// Drops a user value.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub(crate) fn discard<T>(&self, value: T) {
        self.contain(|| drop(value));
    }

    /// Runs a callback. Returns false if it panicked; that panic itself is not counted, a panic of
    /// its payload is.
    #[cfg_attr(target_family = "wasm", inline(always))]
    pub(crate) fn attempt(&self, callback: impl FnOnce()) -> bool {
        self.contain(|| imp::attempt(callback).is_ok()) == Some(true)
    }
}

/// Runs a callback. Returns `None` if it panicked.
pub fn contain<R>(callback: impl FnOnce() -> R) -> Option<R> {
    imp::contain(None, callback)
}

/// Wakes and drops a waker.
#[inline]
pub fn wake(waker: Waker) {
    if runs_user_code(&waker) { imp::wake(None, waker) } else { waker.wake() }
}

/// Wakes and drops all wakers, in order.
pub fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(wake);
}

/// Wakes a waker and keeps it.
#[inline]
pub fn wake_by_ref(waker: &Waker) {
    if runs_user_code(waker) {
        note_wake(waker);
        contain(|| waker.wake_by_ref());
    } else {
        waker.wake_by_ref();
    }
}

/// Drops a waker, if there is one.
#[inline]
pub fn drop_waker(waker: Option<Waker>) {
    match waker {
        Some(waker) if runs_user_code(&waker) => drop_foreign(waker),
        _ => {}
    }
}

#[cold]
fn drop_foreign(waker: Waker) {
    contain(|| drop(waker));
}

/// Records the wake of a foreign waker. Combinators record the wakes of their children themselves.
#[inline(always)]
fn note_wake(waker: &Waker) {
    if cfg!(feature = "lab") && !is_child_waker(waker) {
        footprint::wakes_foreign();
    }
}

/// Whether a waker may run user code, so that panics are to be contained.
#[inline(always)]
fn runs_user_code(waker: &Waker) -> bool {
    !cfg!(target_family = "wasm") && !is_task_waker(waker)
}

#[cfg(any(loom, target_family = "wasm"))]
mod imp {
    use std::task::Waker;

    use super::PanicCounter;

    #[inline(always)]
    pub(super) fn contain<R>(_: Option<&PanicCounter>, callback: impl FnOnce() -> R) -> Option<R> {
        Some(callback())
    }

    #[inline(always)]
    pub(super) fn wake(_: Option<&PanicCounter>, waker: Waker) {
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

/// Callbacks are not noted where panics end the process.
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

    use super::PanicCounter;
    use crate::raw::outcome::{Panic, message_of};
    use crate::raw::owner::TaskOwner;
    use crate::raw::{poll_context, span};

    thread_local! {
        /// Panics contained inside a callback that runs for a counter, which adds them when the
        /// callback returns; `None` outside of such a callback.
        static INSIDE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// Whether this thread is in a callback that runs for a counter.
    #[cfg(feature = "lab")]
    pub(crate) fn is_inside_callback() -> bool {
        INSIDE.get().is_some()
    }

    pub(super) fn contain<R>(
        counter: Option<&PanicCounter>,
        callback: impl FnOnce() -> R,
    ) -> Option<R> {
        let outer = counter.map(|_| INSIDE.replace(Some(0)));
        let answer = catch_unwind(AssertUnwindSafe(callback));
        let inside = outer.and_then(|outer| INSIDE.replace(outer)).unwrap_or(0);
        match answer {
            Ok(answer) => {
                count(counter, inside);
                Some(answer)
            }
            Err(payload) => {
                panicked(counter, inside, payload);
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn wake(counter: Option<&PanicCounter>, waker: Waker) {
        super::note_wake(&waker);
        contain(counter, || waker.wake());
    }

    pub(super) fn attempt(callback: impl FnOnce()) -> Result<(), Panic> {
        catch_unwind(AssertUnwindSafe(callback)).map_err(Panic::new)
    }

    #[cold]
    #[inline(never)]
    fn panicked(counter: Option<&PanicCounter>, inside: u64, payload: Box<dyn Any + Send>) {
        report(&*payload);
        count(counter, inside + 1 + discard(payload));
    }

    /// Drops the payload of a panic, which may panic in turn.
    pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
        count(None, discard(payload));
    }

    /// Drops a payload and returns the number of panics that made. The payload of a third panic is
    /// leaked, as its destructor might panic forever.
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

    /// Reports a panic to `tracing`. The subscriber is user code as well; its panic is not
    /// reported.
    fn report(payload: &(dyn Any + Send)) {
        let reported = AssertUnwindSafe(|| span::callback_panicked(message_of(payload)));
        if let Err(again) = catch_unwind(reported) {
            mem::forget(again);
        }
    }

    #[inline]
    fn count(counter: Option<&PanicCounter>, panics: u64) {
        if panics > 0 {
            count_some(counter, panics);
        }
    }

    #[cold]
    fn count_some(counter: Option<&PanicCounter>, panics: u64) {
        if let Some(counter) = counter {
            return counter.add(panics);
        }
        match INSIDE.get() {
            Some(before) => INSIDE.set(Some(before + panics)),
            None => {
                poll_context::with_current(|task| task.owner().panics().add(panics));
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
        // There is no counter for this one.
        contain(|| panic!());
        assert_eq!(counted(), [3, 1]);
    }

    /// The payload of a payload's destructor is dropped too, once.
    #[test]
    #[cfg_attr(
        any(asx_no_reuse, miri),
        ignore = "leaks what the third panic carries, as it should"
    )]
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
