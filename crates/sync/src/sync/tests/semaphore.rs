use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use asx_task::CancelSafe;

use super::{loose, now, waiting};
use crate::sync::claim::HasPool;
use crate::sync::{AcquireError, Semaphore, TryAcquireError};

#[test]
fn permits_come_back_when_dropped_unless_forgotten() {
    let (cx, _) = loose();
    let semaphore = Semaphore::new(3);
    let many = now(semaphore.acquire_many(&cx, 2)).unwrap();
    let one = now(semaphore.acquire(&cx)).unwrap();
    assert_eq!((many.count(), semaphore.available_permits()), (2, 0));
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    drop(many);
    one.forget();
    assert_eq!(semaphore.available_permits(), 2);
    semaphore.add_permits(5);
    assert_eq!(semaphore.available_permits(), 7);
}

#[test]
fn one_that_wants_many_is_not_overtaken() {
    let (cx, _) = loose();
    let semaphore = Semaphore::new(1);
    let mut big = waiting(semaphore.acquire_many(&cx, 3));
    let mut small = waiting(semaphore.acquire(&cx));
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    semaphore.add_permits(1);
    small.waits();
    assert_eq!((big.wakes(), small.wakes()), (0, 0));
    semaphore.add_permits(1);
    assert_eq!((big.wakes(), small.wakes()), (1, 0));
    assert_eq!(big.ready().unwrap().count(), 3);
    assert_eq!(small.wakes(), 1);
    assert!(small.ready().is_ok());
}

#[test]
fn one_that_gives_up_wanting_many_lets_those_behind_in() {
    let (cx, _) = loose();
    let semaphore = Semaphore::new(2);
    let big = waiting(semaphore.acquire_many(&cx, 3));
    let mut small = [waiting(semaphore.acquire(&cx)), waiting(semaphore.acquire(&cx))];
    drop(big);
    assert_eq!(small.each_ref().map(|waiter| waiter.wakes()), [1, 1]);
    let permits = small.each_mut().map(|waiter| waiter.ready().unwrap());
    assert_eq!(semaphore.available_permits(), 0);
    drop(permits);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn closing_ends_waits_and_leaves_grants() {
    let (cx, _) = loose();
    let semaphore = Semaphore::new(0);
    let mut first = waiting(semaphore.acquire(&cx));
    let mut second = waiting(semaphore.acquire(&cx));
    semaphore.add_permits(1);
    semaphore.close();
    assert!(semaphore.is_closed());
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    let permit = first.ready().unwrap();
    assert_eq!(second.ready().unwrap_err(), AcquireError::Closed);
    drop(permit);
    assert_eq!(now(semaphore.acquire(&cx)).unwrap_err(), AcquireError::Closed);
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
}

#[test]
fn a_cancel_is_seen_before_anything_else() {
    let (cx, cancel) = loose();
    let semaphore = Semaphore::new(1);
    semaphore.close();
    cancel();
    let error = now(semaphore.acquire(&cx)).unwrap_err();
    assert!(matches!(error, AcquireError::Cancelled(_)));
}

#[test]
fn nothing_is_counted_beyond_the_most() {
    let semaphore = Semaphore::new(usize::MAX);
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
    let held = semaphore.try_acquire().unwrap();
    semaphore.add_permits(usize::MAX);
    drop(held);
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
    assert!(semaphore.try_acquire_many(usize::MAX).is_err());
}

#[test]
fn owned_permits_return_to_their_semaphore() {
    let (cx, _) = loose();
    let semaphore = Arc::new(Semaphore::new(2));
    let one = now(semaphore.acquire_owned(&cx)).unwrap();
    let other = semaphore.try_acquire_many_owned(1).unwrap();
    assert!(semaphore.try_acquire_owned().is_err());
    let mut waiter = waiting(semaphore.acquire_many_owned(&cx, 2));
    drop((one, other));
    assert_eq!(waiter.wakes(), 1);
    assert_eq!(waiter.ready().unwrap().count(), 2);
    drop(waiter);
    assert_eq!((semaphore.available_permits(), Arc::strong_count(&semaphore)), (2, 1));
}

#[test]
fn acquiring_is_cancel_safe_by_type() {
    fn safe<T: CancelSafe + Send>(_: T) {}
    let (cx, _) = loose();
    let semaphore = Arc::new(Semaphore::new(1));
    safe(semaphore.acquire(&cx));
    safe(semaphore.acquire_owned(&cx));
}

/// Counts its wake and its drop, neither of which may find the line locked.
struct Outside(Arc<Semaphore>, Arc<AtomicUsize>);

impl Outside {
    fn check(&self) {
        assert!(!self.0.pool().is_locked());
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wake for Outside {
    fn wake(self: Arc<Self>) {
        self.check();
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.check();
    }
}

#[test]
fn wakers_are_woken_and_dropped_outside_the_lock() {
    let (cx, _) = loose();
    let semaphore = Arc::new(Semaphore::new(0));
    let seen = Arc::new(AtomicUsize::new(0));
    let waker = || Waker::from(Arc::new(Outside(semaphore.clone(), seen.clone())));
    let enter = |ends: &dyn Fn()| {
        let mut wait = pin!(semaphore.acquire(&cx));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
        // The line's is the only waker now; another task's replaces it.
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
        assert_eq!(seen.swap(0, Ordering::Relaxed), 1, "the first is dropped");
        ends();
    };
    enter(&|| semaphore.add_permits(1));
    assert_eq!(seen.swap(0, Ordering::Relaxed), 2, "woken and dropped");
    semaphore.try_acquire().unwrap().forget();
    enter(&|| {});
    assert_eq!(seen.swap(0, Ordering::Relaxed), 1, "dropped with the wait");
    enter(&|| semaphore.close());
    assert_eq!(seen.swap(0, Ordering::Relaxed), 2, "woken and dropped");
}

#[test]
fn permits_are_split_and_merged_and_all_come_back() {
    let semaphore = Arc::new(Semaphore::new(5));
    let mut many = semaphore.try_acquire_many(4).unwrap();
    assert!(many.split(5).is_none());
    let none = many.split(0).unwrap();
    let two = many.split(2).unwrap();
    assert_eq!((many.count(), none.count(), two.count()), (2, 0, 2));
    drop(two);
    assert_eq!(semaphore.available_permits(), 3);
    many.merge(none);
    many.merge(semaphore.try_acquire().unwrap());
    assert_eq!((many.count(), semaphore.available_permits()), (3, 2));
    drop(many);
    assert_eq!(semaphore.available_permits(), 5);
    let mut owned = semaphore.try_acquire_many_owned(3).unwrap();
    let one = owned.split(1).unwrap();
    drop(owned);
    assert_eq!((one.count(), semaphore.available_permits()), (1, 4));
    let other = Arc::new(Semaphore::new(2));
    let mut foreign = other.try_acquire_owned().unwrap();
    let merges = std::panic::AssertUnwindSafe(|| foreign.merge(one));
    assert!(std::panic::catch_unwind(merges).is_err());
    assert_eq!((foreign.count(), semaphore.available_permits()), (1, 5));
}

#[test]
fn what_is_split_off_and_dropped_goes_to_the_head_of_the_line() {
    let (cx, _) = loose();
    let semaphore = Semaphore::new(3);
    let mut all = semaphore.try_acquire_many(3).unwrap();
    let mut waits = waiting(semaphore.acquire_many(&cx, 2));
    drop(all.split(1));
    assert_eq!(waits.wakes(), 0);
    drop(all.split(1));
    assert_eq!((waits.wakes(), waits.ready().unwrap().count(), all.count()), (1, 2, 1));
}
