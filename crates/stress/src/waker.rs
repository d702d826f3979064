//! Wakers and executors of the program's own: what other libraries would bring along.
//!
//! # Rule
//! 1. The data pointer of a waker made here is an `Arc<Bell>` that the waker owns.

use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::books::{Books, Meant};

/// What a waker made here rings.
struct Bell {
    rung: AtomicBool,
    wakes: AtomicU64,
    thread: Thread,
    /// The waker of the task inside which it is polled, if it is.
    outer: Mutex<Option<Waker>>,
    books: Arc<Books>,
}

impl Bell {
    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.wakes.fetch_add(1, Ordering::Relaxed);
        let outer = self.outer.lock().unwrap_or_else(|e| e.into_inner()).take();
        match outer {
            Some(outer) => outer.wake(),
            None => self.thread.unpark(),
        }
        if self.books.goes_off(20) {
            panic_any(Meant(None));
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if self.books.goes_off(20) {
            panic_any(Meant(None));
        }
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: rule 1; the reference stays the waker's.
    let bell = ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<Bell>()) });
    if bell.books.goes_off(40) {
        panic_any(Meant(None));
    }
    raw(Arc::clone(&bell))
}

unsafe fn wake(data: *const ()) {
    // SAFETY: rule 1; the waker ends with this.
    unsafe { Arc::from_raw(data.cast::<Bell>()) }.ring();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: rule 1; the reference stays the waker's.
    ManuallyDrop::new(unsafe { Arc::from_raw(data.cast::<Bell>()) }).ring();
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: rule 1; the waker ends with this.
    drop(unsafe { Arc::from_raw(data.cast::<Bell>()) });
}

fn raw(bell: Arc<Bell>) -> RawWaker {
    RawWaker::new(Arc::into_raw(bell).cast(), &VTABLE)
}

fn bell(books: &Arc<Books>) -> (Arc<Bell>, Waker) {
    let bell = Arc::new(Bell {
        rung: AtomicBool::new(true),
        wakes: AtomicU64::new(0),
        thread: thread::current(),
        outer: Mutex::new(None),
        books: books.clone(),
    });
    // SAFETY: rule 1.
    let waker = unsafe { Waker::from_raw(raw(bell.clone())) };
    (bell, waker)
}

/// Polls a future on this thread until it is done, or the time is over; `None` then.
pub(crate) fn block_on<F: Future + ?Sized>(
    books: &Arc<Books>,
    future: &mut Pin<Box<F>>,
    patience: Duration,
) -> Option<F::Output> {
    let (bell, waker) = bell(books);
    let end = Instant::now() + patience;
    loop {
        if bell.rung.swap(false, Ordering::Acquire)
            && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            return Some(output);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        if !bell.rung.load(Ordering::Acquire) {
            thread::park_timeout(left);
        }
    }
}

/// Polls a future a few times with a waker that nobody listens to.
pub(crate) fn poll_some<F: Future + ?Sized>(
    books: &Arc<Books>,
    future: &mut Pin<Box<F>>,
    times: usize,
) -> Option<F::Output> {
    let (_bell, waker) = bell(books);
    for _ in 0..times {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
    }
    None
}

/// A future polled with a waker of its own, and only when that was used: as collections of
/// futures do. `afresh`: with a new waker each time.
pub(crate) struct Foreign<F> {
    future: Pin<Box<F>>,
    books: Arc<Books>,
    afresh: bool,
    own: Option<(Arc<Bell>, Waker)>,
}

impl<F> Foreign<F> {
    pub(crate) fn new(books: &Arc<Books>, afresh: bool, future: F) -> Foreign<F> {
        Foreign { future: Box::pin(future), books: books.clone(), afresh, own: None }
    }
}

impl<F: Future> Future for Foreign<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.afresh || this.own.is_none() {
            this.own = Some(bell(&this.books));
        }
        let Some((bell, waker)) = &this.own else { return Poll::Pending };
        let outer = cx.waker().clone();
        drop(bell.outer.lock().unwrap_or_else(|e| e.into_inner()).replace(outer));
        if !bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_from_another_thread_is_seen() {
        let books = Books::new(false);
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
        let mut inside = Box::pin(Foreign::new(&books, true, wait));
        assert_eq!(block_on(&books, &mut inside, Duration::from_secs(20)), Some(7));
        thread.join().unwrap();
    }

    #[test]
    fn patience_ends() {
        let books = Books::new(false);
        let mut never = Box::pin(std::future::pending::<()>());
        assert_eq!(poll_some(&books, &mut never, 3), None);
        assert_eq!(block_on(&books, &mut never, Duration::from_millis(1)), None);
    }
}
