//! Single-threaded tests: every poll, wake and drop is a step of the test.

mod barrier;
mod holders;
mod lines;
mod locks;
mod notify;
mod once_cell;
mod random;
mod semaphore;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::ids::RegionId;
use asx_kernel::time::Time;

use asx_task::Cx;

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future polled by hand.
struct Probe<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    bell: Arc<Bell>,
}

impl<'a, T> Probe<'a, T> {
    fn new(future: impl Future<Output = T> + 'a) -> Self {
        Probe { future: Box::pin(future), bell: Arc::default() }
    }

    fn poll(&mut self) -> Poll<T> {
        let waker = Waker::from(self.bell.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Polls from another task from now on.
    fn moves(&mut self) {
        self.bell = Arc::default();
    }

    /// Wakes since it was made or moved.
    fn wakes(&self) -> usize {
        self.bell.0.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn waits(&mut self) {
        assert!(self.poll().is_pending());
    }

    #[track_caller]
    fn ready(&mut self) -> T {
        match self.poll() {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }
}

/// A future that is already waiting.
#[track_caller]
fn waiting<'a, T>(future: impl Future<Output = T> + 'a) -> Probe<'a, T> {
    let mut probe = Probe::new(future);
    probe.waits();
    probe
}

/// What a future that needn't wait yields.
#[track_caller]
fn now<T>(future: impl Future<Output = T>) -> T {
    Probe::new(future).ready()
}

fn loose() -> (Cx, impl Fn()) {
    let (cx, cancel) = Cx::loose();
    let root = RegionId(Key { generation: 1, index: 0 });
    (cx, move || cancel(Reason::new(Kind::User, root, Time::ZERO)))
}
