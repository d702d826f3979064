//! Every interleaving of the fast paths with the line, explored by loom.
//!
//! A lost wakeup shows as a deadlock, a missing ordering as a race on the cell beside the lock.

use asx_task::Cx;
use loom::cell::UnsafeCell;
use loom::future::block_on;
use loom::thread;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{AcquireError, Mutex, Notify, RwLock, Semaphore};

/// A value that loom watches; whoever touches it says that a lock protects it.
#[derive(Default)]
struct Watched(UnsafeCell<u32>);

// SAFETY: the tests touch it only under the lock they test, and loom reports if that isn't enough.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

impl Watched {
    fn bump(&self) -> u32 {
        self.0.with_mut(|value| {
            // SAFETY: loom checks that nobody else is here.
            unsafe {
                *value += 1;
                *value
            }
        })
    }

    fn read(&self) -> u32 {
        // SAFETY: loom checks that nobody writes.
        self.0.with(|value| unsafe { *value })
    }
}

/// Three threads have too many interleavings: those with up to two preemptions are explored.
fn explore_three(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(test);
}

/// Polls a future once and drops it.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs `job` on two threads, then yields what they shared.
fn twice<S: Send + Sync + 'static>(shared: S, job: fn(&S, &Cx)) -> Arc<S> {
    let shared = Arc::new(shared);
    let other = shared.clone();
    let thread = thread::spawn(move || job(&other, &Cx::loose().0));
    job(&shared, &Cx::loose().0);
    thread.join().unwrap();
    shared
}

#[test]
fn a_mutex_orders_and_wakes() {
    loom::model(|| {
        let shared = twice((Mutex::new(()), Watched::default()), |(mutex, value), cx| {
            let guard = block_on(mutex.lock(cx)).unwrap();
            value.bump();
            drop(guard);
        });
        assert_eq!(shared.1.read(), 2);
    });
}

#[test]
fn a_try_lock_orders() {
    loom::model(|| {
        twice((Mutex::new(()), Watched::default()), |(mutex, value), _| {
            if let Ok(_guard) = mutex.try_lock() {
                value.bump();
            }
        });
    });
}

#[test]
fn permits_given_apart_are_gathered_in_order() {
    explore_three(|| {
        let shared = Arc::new((Semaphore::new(2), Watched::default()));
        let readers = [(); 2].map(|()| {
            let permit = shared.0.try_acquire_many(1).unwrap();
            permit.forget();
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.read();
                shared.0.add_permits(1);
            })
        });
        let (cx, _) = Cx::loose();
        let both = block_on(shared.0.acquire_many(&cx, 2)).unwrap();
        shared.1.bump();
        drop(both);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn permits_left_by_a_wait_that_gave_up_are_ordered() {
    loom::model(|| {
        let shared = Arc::new((Semaphore::new(0), Watched::default()));
        let other = shared.clone();
        let leaver = thread::spawn(move || {
            other.1.bump();
            other.0.add_permits(1);
            let (cx, _) = Cx::loose();
            assert!(poll_once(other.0.acquire_many(&cx, 2)).is_pending());
        });
        while shared.0.try_acquire().is_err() {
            thread::yield_now();
        }
        assert_eq!(shared.1.read(), 1);
        leaver.join().unwrap();
        assert_eq!(shared.0.available_permits(), 1);
    });
}

#[test]
fn readers_and_writers_are_ordered() {
    loom::model(|| {
        let shared = Arc::new((RwLock::new(()), Watched::default()));
        let other = shared.clone();
        let reader = thread::spawn(move || {
            let (cx, _) = Cx::loose();
            let _guard = block_on(other.0.read(&cx)).unwrap();
            other.1.read();
        });
        let (cx, _) = Cx::loose();
        let writer = block_on(shared.0.write(&cx)).unwrap();
        shared.1.bump();
        let _reading = writer.downgrade();
        shared.1.read();
        reader.join().unwrap();
    });
}

#[test]
fn a_close_reaches_who_joins_meanwhile() {
    loom::model(|| {
        let shared = Arc::new((Semaphore::new(0), Watched::default()));
        let other = shared.clone();
        let closer = thread::spawn(move || {
            other.1.bump();
            other.0.close();
        });
        let (cx, _) = Cx::loose();
        let error = block_on(shared.0.acquire(&cx)).unwrap_err();
        assert_eq!((error, shared.1.read()), (AcquireError::Closed, 1));
        closer.join().unwrap();
    });
}

#[test]
fn a_notification_reaches_who_joins_meanwhile() {
    loom::model(|| {
        let shared = Arc::new((Notify::new(), Watched::default()));
        let other = shared.clone();
        let teller = thread::spawn(move || {
            other.1.bump();
            other.0.notify_one();
        });
        let (cx, _) = Cx::loose();
        block_on(shared.0.notified(&cx)).unwrap();
        assert_eq!(shared.1.read(), 1);
        teller.join().unwrap();
    });
}

#[test]
fn a_dropped_notification_reaches_the_other() {
    explore_three(|| {
        let shared = Arc::new(Notify::new());
        let teller = shared.clone();
        let waiter = shared.clone();
        let teller = thread::spawn(move || teller.notify_one());
        let leaver = thread::spawn(move || {
            let (cx, _) = Cx::loose();
            if poll_once(waiter.notified(&cx)).is_ready() {
                waiter.notify_one();
            }
        });
        let (cx, _) = Cx::loose();
        block_on(shared.notified(&cx)).unwrap();
        teller.join().unwrap();
        leaver.join().unwrap();
    });
}

#[test]
fn a_call_to_all_reaches_who_was_made_before() {
    loom::model(|| {
        let shared = Arc::new((Notify::new(), Watched::default()));
        let (cx, _) = Cx::loose();
        let notified = shared.0.notified(&cx);
        let other = shared.clone();
        let teller = thread::spawn(move || {
            other.1.bump();
            other.0.notify_waiters();
        });
        block_on(notified).unwrap();
        assert_eq!(shared.1.read(), 1);
        teller.join().unwrap();
    });
}
