//! For tests: a future polled by hand, with a waker that counts.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::ids::RegionId;
use asx_kernel::time::Time;

use crate::{Cancelled, Cx};

/// Counts its wakes.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    /// How often it was woken since the last call.
    pub(crate) fn wakes(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future, and how often it was woken since it was last asked.
pub(crate) struct Polls<F> {
    future: Pin<Box<F>>,
    count: Arc<Count>,
}

impl<F: Future> Polls<F> {
    pub(crate) fn new(future: F) -> Self {
        Polls { future: Box::pin(future), count: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        self.poll_by(&Waker::from(self.count.clone()))
    }

    pub(crate) fn poll_by(&mut self, waker: &Waker) -> Poll<F::Output> {
        self.future.as_mut().poll(&mut Context::from_waker(waker))
    }

    pub(crate) fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }

    /// What the future ends with now.
    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("still pending"),
        }
    }

    /// How often it was woken since the last call.
    pub(crate) fn wakes(&self) -> usize {
        self.count.wakes()
    }
}

pub(crate) fn reason() -> Reason {
    Reason::new(Kind::User, RegionId(Key { generation: 1, index: 0 }), Time::ZERO)
}

pub(crate) fn cancelled() -> Cancelled {
    reason().into()
}

/// A context nobody cancels.
pub(crate) fn live_cx() -> Cx {
    Cx::loose().0
}

/// A context that was cancelled.
pub(crate) fn cancelled_cx() -> Cx {
    let (cx, cancel) = Cx::loose();
    cancel(reason());
    cx
}
