//! Waiting for a future where blocking is allowed.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::program::is_inside;

/// Waits for a future on this thread, which blocks meanwhile: the way from a blocking job, or from
/// a thread of your own, to whatever has to be awaited.
///
/// A job has its own context, so that a cancel of the job ends the wait. Tasks go on elsewhere: a
/// runtime without other workers than a thread in `block_on` needs that thread for them.
///
/// ```
/// use asx::{Cancelled, Cx, Runtime, Scope, channel, wait};
///
/// let runtime = Runtime::builder().workers(2).build()?;
/// let (tx, mut rx) = channel::bounded(4);
/// let sum: Result<u32, Cancelled> = runtime.block_on(async |cx: Cx| {
///     cx.scope(async |s: Scope<Cancelled>| {
///         let job = s.spawn_blocking(move || {
///             let cx = Cx::current().expect("a job has a context");
///             let mut sum = 0;
///             while let Some(number) = wait(rx.next(&cx))? {
///                 sum += number; // or what takes long, and no thread of a worker
///             }
///             Ok(sum)
///         });
///         for number in 0..10 {
///             let _ = tx.send(&cx, number).await;
///         }
///         drop(tx);
///         Ok(job.await.unwrap_or_default())
///     })
///     .await
/// });
/// assert_eq!(sum, Ok(45));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If the thread is running tasks: they would wait for it.
#[track_caller]
pub fn wait<F: Future>(future: F) -> F::Output {
    if is_inside() {
        panic!("wait inside a task would keep other tasks from running: await instead");
    }
    let signal = Arc::new(Signal { set: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(signal.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        // What else unparks the thread is not for this wait.
        while !signal.set.swap(false, Acquire) {
            thread::park();
        }
    }
}

struct Signal {
    set: AtomicBool,
    thread: Thread,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set.store(true, Release);
        self.thread.unpark();
    }
}
