//! Test wakers and executors, in place of those of other libraries.
//!
//! # Rule
//! 1. The data pointer of a waker made here is an `Arc<WakerState>` that the waker owns.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::ledger::{ExpectedPanic, Ledger};

/// The state of a test waker.
struct WakerState {
    woken: AtomicBool,
    wakes: AtomicU64,
    thread: Thread,
    /// The waker of the task that polls it, if any.
    outer: Mutex<Option<Waker>>,
    ledger: Arc<Ledger>,
}

impl WakerState {
    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        self.wakes.fetch_add(1, Ordering::Relaxed);
        let outer = self.outer.lock().unwrap_or_else(|e| e.into_inner()).take();
        match outer {
            Some(outer) => outer.wake(),
            None => self.thread.unpark(),
        }
        if self.ledger.should_panic(20) {
            panic_any(ExpectedPanic(None));
        }
    }
}

impl Drop for WakerState {
    fn drop(&mut self) {
        if self.ledger.should_panic(20) {
            panic_any(ExpectedPanic(None));
        }
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: rule 1; the reference stays the waker's.
    let waker_state = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<WakerState>()) });
    if waker_state.ledger.should_panic(40) {
        panic_any(ExpectedPanic(None));
    }
    raw(Arc::clone(&waker_state))
}

unsafe fn wake(data: *const ()) {
    // SAFETY: rule 1; the waker ends with this.
    unsafe { Arc::from_raw(data.cast::<WakerState>()) }.wake();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: rule 1; the reference stays the waker's.
    ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<WakerState>()) }).wake();
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: rule 1; the waker ends with this.
    drop(unsafe { Arc::from_raw(data.cast::<WakerState>()) });
}

fn raw(waker_state: Arc<WakerState>) -> RawWaker {
    RawWaker::new(Arc::into_raw(waker_state).cast(), &VTABLE)
}

fn waker_state(ledger: &Arc<Ledger>) -> (Arc<WakerState>, Waker) {
    let waker_state = Arc::new(WakerState {
        woken: AtomicBool::new(true),
        wakes: AtomicU64::new(0),
        thread: thread::current(),
        outer: Mutex::new(None),
        ledger: ledger.clone(),
    });
    // SAFETY: rule 1.
    let waker = unsafe { Waker::from_raw(raw(waker_state.clone())) };
    (waker_state, waker)
}

/// Polls a future on this thread until it completes. Returns `None` after a timeout.
pub(crate) fn block_on<F: Future + ?Sized>(
    ledger: &Arc<Ledger>,
    future: &mut Pin<Box<F>>,
    patience: Duration,
) -> Option<F::Output> {
    let (waker_state, waker) = waker_state(ledger);
    let end = Instant::now() + patience;
    loop {
        if waker_state.woken.swap(false, Ordering::Acquire)
            && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return Some(output);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        if !waker_state.woken.load(Ordering::Acquire) {
            thread::park_timeout(left);
        }
    }
}

/// Polls a future a few times with a waker that is ignored.
pub(crate) fn poll_some<F: Future + ?Sized>(
    ledger: &Arc<Ledger>,
    future: &mut Pin<Box<F>>,
    times: usize,
) -> Option<F::Output> {
    let (_bell, waker) = waker_state(ledger);
    for _ in 0..times {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
    }
    None
}

/// A future that is polled with a separate waker, and only after that was woken, as in collections
/// of futures. `fresh_waker`: with a new waker for each poll.
pub(crate) struct SeparateWaker<F> {
    future: Pin<Box<F>>,
    ledger: Arc<Ledger>,
    fresh_waker: bool,
    own: Option<(Arc<WakerState>, Waker)>,
}

impl<F> SeparateWaker<F> {
    pub(crate) fn new(ledger: &Arc<Ledger>, fresh_waker: bool, future: F) -> SeparateWaker<F> {
        SeparateWaker { future: Box::pin(future), ledger: ledger.clone(), fresh_waker, own: None }
    }
}

impl<F: Future> Future for SeparateWaker<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.fresh_waker || this.own.is_none() {
            this.own = Some(waker_state(&this.ledger));
        }
        let Some((waker_state, waker)) = &this.own else { return Poll::Pending };
        let outer = cx.waker().clone();
        drop(waker_state.outer.lock().unwrap_or_else(|e| e.into_inner()).replace(outer));
        if !waker_state.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_from_another_thread_is_observed() {
        let ledger = Ledger::new(false);
        let told = Arc::new((AtomicBool::new(false), Mutex::new(None::<Waker>)));
        let other = told.clone();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            other.0.store(true, Ordering::SeqCst);
            if let Some(waker) = other.1.lock().unwrap().take() {
                waker.wake();
            }
        });
        let wait = std::future::poll_fn(|cx| {
            *told.1.lock().unwrap() = Some(cx.waker().clone());
            if told.0.load(Ordering::SeqCst) { Poll::Ready(7) } else { Poll::Pending }
        });
        let mut inside = Box::pin(SeparateWaker::new(&ledger, true, wait));
        assert_eq!(block_on(&ledger, &mut inside, Duration::from_secs(20)), Some(7));
        thread.join().unwrap();
    }

    #[test]
    fn block_on_times_out() {
        let ledger = Ledger::new(false);
        let mut never = Box::pin(std::future::pending::<()>());
        assert_eq!(poll_some(&ledger, &mut never, 3), None);
        assert_eq!(block_on(&ledger, &mut never, Duration::from_millis(1)), None);
    }
}
