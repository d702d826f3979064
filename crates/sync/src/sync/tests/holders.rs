//! Who is noted as the holder of a lock, for dumps.

use asx_task::holders::Holder;
use asx_task::testing::{Polls, live_cx};

use crate::sync::claim::HasPool;
use crate::sync::{Mutex, RwLock};

#[test]
fn a_lock_names_its_holder_until_it_is_released() {
    let (cx, lock) = (live_cx(), Mutex::new(0));
    assert_eq!(lock.pool().holders(), (Holder::UNKNOWN, None));
    let guard = Polls::new(lock.lock(&cx)).ready().unwrap();
    assert_eq!(lock.pool().holders(), (Holder::of(&cx), None), "there is no line");
    drop(guard);
    assert_eq!(lock.pool().holders().0, Holder::UNKNOWN);
    let guard = lock.try_lock().unwrap();
    assert_eq!(lock.pool().holders().0, Holder::UNKNOWN, "outside of all tasks");
    drop(guard);
}

#[test]
fn who_waits_sees_the_holder_and_the_one_it_is_handed_to() {
    let (one, two, three, lock) = (live_cx(), live_cx(), live_cx(), Mutex::new(0));
    let guard = Polls::new(lock.lock(&one)).ready().unwrap();
    let mut second = Polls::new(lock.lock(&two));
    let mut third = Polls::new(lock.lock(&three));
    assert!(second.is_pending() && third.is_pending());
    assert_eq!(lock.pool().holders().1, Some(Holder::of(&one)));
    drop(guard);
    assert_eq!(lock.pool().holders().1, Some(Holder::UNKNOWN), "its waker is not a task's own");
    let guard = second.ready().unwrap();
    assert_eq!(lock.pool().holders(), (Holder::of(&two), Some(Holder::of(&two))));
    drop(guard);
    drop(third);
    assert_eq!(lock.pool().holders().0, Holder::UNKNOWN, "who left had it and never knew");
}

#[test]
fn a_writer_is_a_holder_until_it_reads_and_a_reader_is_none() {
    let (cx, lock) = (live_cx(), RwLock::new(0));
    let write = Polls::new(lock.write(&cx)).ready().unwrap();
    assert_eq!(lock.pool().holders().0, Holder::of(&cx));
    let read = write.downgrade();
    assert_eq!(lock.pool().holders().0, Holder::UNKNOWN);
    let other = Polls::new(lock.read(&cx)).ready().unwrap();
    assert_eq!(lock.pool().holders().0, Holder::UNKNOWN);
    drop((read, other));
}
