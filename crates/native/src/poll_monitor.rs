//! A thread that finds tasks which were cancelled and stay inside one poll (FB-203).
//!
//! Workers cannot find such polls reliably, since all of them may be inside one. The monitor runs
//! no tasks. It has a thread only while checks are due: from the first poll of a task with an
//! unobserved cancel until two checks in a row have seen no such poll. Without cancels it never
//! starts.
//!
//! # Why the thread ends
//! 1. The thread waits only for its condition variable, with `closed` false, and until a check is
//!    due. [`close`](PollMonitor::close) sets `closed` and notifies, so the wait ends.
//! 2. No lock is held during a check, and the thread holds a strong reference to the root region
//!    only then. It therefore keeps no runtime alive while it waits.
//! 3. A check may drop the last reference to a core or a runtime: subscribers of `tracing` run in
//!    it. The thread has the [owner](crate::owner) of its runtime, so that drop joins no thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use asx_runtime::Region;

use crate::owner::Owner;

pub(crate) struct PollMonitor {
    name: String,
    owner: Arc<Owner>,
    /// Set before the first task is spawned.
    root: OnceLock<Weak<Region>>,
    state: Mutex<State>,
    /// A check became due earlier, or the runtime was dropped.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// When the next check is due.
    due: Option<Instant>,
    /// A thread serves `due`.
    is_served: bool,
    /// The last thread that was started, which may have ended.
    thread: Option<JoinHandle<()>>,
    closed: bool,
}

impl PollMonitor {
    pub(crate) fn new(name: &str, owner: Arc<Owner>) -> Arc<PollMonitor> {
        Arc::new(PollMonitor {
            name: format!("{name}-polls"),
            owner,
            root: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Sets the root of the regions that the thread checks.
    pub(crate) fn watch(&self, root: &Arc<Region>) {
        let _ = self.root.set(Arc::downgrade(root));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a check at `due`. Returns false if the runtime was dropped or no thread could be
    /// started. The next poll that is watched tries again.
    pub(crate) fn check_at(self: &Arc<Self>, due: Instant) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        if !state.is_served {
            let Some(thread) = self.start() else { return false };
            state.thread = Some(thread);
            state.is_served = true;
            state.due = Some(due);
        } else if state.due.is_none_or(|next| due < next) {
            state.due = Some(due);
            self.changed.notify_one();
        }
        true
    }

    fn start(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        let monitor = self.clone();
        let serve = move || {
            monitor.owner.adopt();
            monitor.serve();
        };
        thread::Builder::new().name(self.name.clone()).spawn(serve).ok()
    }

    /// Makes the checks that are due, and returns when none is left.
    fn serve(&self) {
        let mut state = self.lock();
        while !state.closed
            && let Some(due) = state.due
        {
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state.due = None;
            drop(state);
            if let Some(root) = self.root.get().and_then(Weak::upgrade) {
                root.check_long_polls();
            }
            state = self.lock();
        }
        state.due = None;
        state.is_served = false;
    }

    /// Ends the thread. Returns it, to be joined.
    pub(crate) fn close(&self) -> Option<JoinHandle<()>> {
        let mut state = self.lock();
        state.closed = true;
        self.changed.notify_all();
        state.thread.take()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Wake, Waker};
    use std::time::Duration;

    use asx_runtime::{Cancelled, Cx, Scope};

    use super::*;
    use crate::Runtime;

    /// Waits until `done`; false after 30 seconds.
    fn wait_until(done: impl Fn() -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(30);
        while !done() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        done()
    }

    #[test]
    fn the_thread_ends_when_no_check_is_due_and_starts_again() {
        let monitor = PollMonitor::new("test", Owner::new());
        for _ in 0..3 {
            monitor.check_at(Instant::now() + Duration::from_millis(1));
            assert!(wait_until(|| !monitor.lock().is_served));
            assert_eq!(monitor.lock().due, None);
        }
    }

    #[test]
    fn an_earlier_check_is_made_first() {
        let monitor = PollMonitor::new("test", Owner::new());
        let hour = Instant::now() + Duration::from_secs(3600);
        monitor.check_at(hour);
        monitor.check_at(Instant::now() + Duration::from_millis(1));
        assert!(wait_until(|| !monitor.lock().is_served), "the thread waits for the later check");
    }

    #[test]
    fn close_ends_a_thread_that_waits_and_starts_no_other() {
        let monitor = PollMonitor::new("test", Owner::new());
        let hour = Instant::now() + Duration::from_secs(3600);
        monitor.check_at(hour);
        monitor.close().expect("a thread was started").join().unwrap();
        monitor.check_at(hour);
        assert!(!monitor.lock().is_served);
        assert!(monitor.close().is_none());
    }
    /// A runtime with a monitor that waits for an hour.
    fn runtime_with_monitor(workers: usize) -> (Runtime, Cx, Weak<PollMonitor>) {
        let builder = Runtime::builder().workers(workers);
        let runtime = builder.long_poll(Some(Duration::from_secs(3600))).build().unwrap();
        let cx = runtime.block_on(async |cx: Cx| {
            let scope = cx.scope(async |s: Scope<Cancelled>| {
                let own = s.clone();
                s.spawn(async move |_| {
                    own.cancel("in its poll");
                    Ok(())
                });
                Ok(())
            });
            let _ = scope.await;
            cx.clone()
        });
        assert!(runtime.shared.monitor.lock().is_served, "no thread was started");
        let monitor = Arc::downgrade(&runtime.shared.monitor);
        (runtime, cx, monitor)
    }

    #[test]
    fn a_runtime_without_cancels_starts_no_thread() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        runtime.block_on(async |cx: Cx| {
            cx.yield_now().await;
        });
        assert!(runtime.shared.monitor.lock().thread.is_none());
    }

    #[test]
    fn dropping_a_runtime_joins_the_thread() {
        for workers in [1, 2] {
            let (runtime, cx, monitor) = runtime_with_monitor(workers);
            drop(runtime);
            drop(cx);
            assert!(monitor.upgrade().is_none(), "{workers} workers");
        }
    }

    /// Owns a runtime, and drops it when woken.
    struct Owns(Mutex<Option<Runtime>>, mpsc::Sender<()>);

    impl Wake for Owns {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
            self.1.send(()).unwrap();
        }
    }

    #[test]
    fn a_drop_on_a_worker_ends_the_thread() {
        let (runtime, cx, monitor) = runtime_with_monitor(2);
        let (sender, dropped) = mpsc::channel();
        let sleeper = cx.clone();
        let mut sleep = pin!(sleeper.sleep(Duration::from_millis(50)));
        let waker = Waker::from(Arc::new(Owns(Mutex::new(Some(runtime)), sender)));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop((waker, cx));
        dropped.recv_timeout(Duration::from_secs(30)).expect("the drop does not return");
        assert!(wait_until(|| monitor.strong_count() <= 1), "the thread does not end");
    }
}
