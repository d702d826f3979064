//! Blocking waits for a future, for threads that may block.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::program::is_inside;

/// Blocks this thread until a future completes. Blocking jobs, and threads outside the runtime, can
/// so wait for asx operations.
///
/// A job has its own context, so that a cancel of the job ends the wait. Tasks run on other threads
/// meanwhile: the workers, or the thread in `block_on` if the runtime has one worker.
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
///                 sum += number; // or long computations, which would delay a worker
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
/// If the thread is running tasks: they would wait for this thread.
#[track_caller]
pub fn wait<F: Future>(future: F) -> F::Output {
    if is_inside() {
        panic!("wait inside a task would block other tasks: await instead");
    }
    let signal = Arc::new(Signal { set: AtomicBool::new(false), thread: thread::current() });
    let waker = Waker::from(signal.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        // The thread may also be unparked for other reasons.
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
