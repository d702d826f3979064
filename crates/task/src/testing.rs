//! For tests of operations: a future polled by hand, with a waker that counts, and contexts outside
//! any runtime. Only with the feature `testing`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::ids::RegionId;
use asx_kernel::time::Time;

#[cfg(not(loom))]
use crate::Runnable;
#[cfg(not(loom))]
use crate::test_util;
use crate::{Cancelled, Cx};

/// Counts its wakes.
#[derive(Default)]
pub struct Count(AtomicUsize);

impl Count {
    /// How often it was woken since the last call.
    pub fn wakes(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future, and how often it was woken since it was last asked.
pub struct Polls<F> {
    future: Pin<Box<F>>,
    count: Arc<Count>,
}

impl<F: Future> Polls<F> {
    /// A future that was not polled yet.
    pub fn new(future: F) -> Self {
        Polls { future: Box::pin(future), count: Arc::default() }
    }

    /// Polls it with a waker that counts.
    pub fn poll(&mut self) -> Poll<F::Output> {
        self.poll_by(&Waker::from(self.count.clone()))
    }

    /// Polls it with a waker of the caller's.
    pub fn poll_by(&mut self, waker: &Waker) -> Poll<F::Output> {
        self.future.as_mut().poll(&mut Context::from_waker(waker))
    }

    /// Polls it: whether it waits.
    pub fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    /// What the future ends with now.
    #[track_caller]
    pub fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("still pending"),
        }
    }

    /// How often it was woken since the last call.
    pub fn wakes(&self) -> usize {
        self.count.wakes()
    }
}

/// A reason to be cancelled for.
pub fn reason() -> Reason {
    Reason::new(Kind::User, RegionId(Key { generation: 1, index: 0 }), Time::ZERO)
}

/// The error of who was.
pub fn cancelled() -> Cancelled {
    reason().into()
}

/// A context nobody cancels.
pub fn live_cx() -> Cx {
    Cx::loose().0
}

/// A context that was cancelled.
pub fn cancelled_cx() -> Cx {
    let (cx, cancel) = Cx::loose();
    cancel(reason());
    cx
}

/// Keeps the task of a context that never ends, so that who looks for leaks finds it.
#[cfg(not(loom))]
pub fn keep_task(cx: &Cx) {
    test_util::keep_task(cx.task().clone());
}

/// The entry of the task of a [loose](Cx::loose) context, if it was scheduled: to be run by hand.
#[cfg(not(loom))]
pub fn scheduled(cx: &Cx) -> Option<Runnable> {
    test_util::scheduled(cx.task())
}

/// Runs `drops` as if the runtime dropped a task by force in it.
pub fn dropping_by_force<R>(drops: impl FnOnce() -> R) -> R {
    crate::force::dropping_by_force(drops)
}
