use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use asx_task::CancelSafe;

use super::{loose, now, waiting};
use crate::sync::{
    MappedMutexGuard, MappedRwLockReadGuard, Mutex, MutexGuard, OwnedMutexGuard,
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

#[test]
fn a_mutex_goes_to_waiters_in_order_and_wakes_only_the_next() {
    let (cx, _) = loose();
    let mutex = Mutex::new(String::new());
    let mut guard = now(mutex.lock(&cx)).unwrap();
    guard.push('a');
    let (mut first, mut second) = (waiting(mutex.lock(&cx)), waiting(mutex.lock(&cx)));
    drop(guard);
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    second.waits();
    assert!(mutex.try_lock().is_err(), "it is the first one's, who hasn't looked yet");
    first.ready().unwrap().push('b');
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    second.ready().unwrap().push('c');
    drop((first, second));
    assert_eq!(mutex.into_inner(), "abc");
}

#[test]
fn a_granted_lock_that_is_dropped_goes_to_the_next() {
    let (cx, _) = loose();
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let (first, mut second) = (waiting(mutex.lock(&cx)), waiting(mutex.lock(&cx)));
    drop(guard);
    drop(first);
    assert_eq!(second.wakes(), 1);
    drop(second.ready().unwrap());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_granted_lock_of_a_cancelled_task_goes_to_the_next() {
    let (cx, _) = loose();
    let (other, cancel) = loose();
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let (mut first, mut second) = (waiting(mutex.lock(&other)), waiting(mutex.lock(&cx)));
    drop(guard);
    cancel();
    assert!(first.ready().is_err());
    assert_eq!(second.wakes(), 1);
    assert!(second.ready().is_ok());
}

#[test]
fn a_cancelled_task_gets_no_lock_even_if_it_is_free() {
    let (cx, cancel) = loose();
    cancel();
    let mutex = Mutex::new(());
    let lock = RwLock::new(());
    assert!(now(mutex.lock(&cx)).is_err());
    assert!(now(lock.read(&cx)).is_err());
    assert!(now(lock.write(&cx)).is_err());
    assert!(mutex.try_lock().is_ok());
    assert!(lock.try_write().is_ok());
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (cx, _) = loose();
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut waiter = waiting(mutex.lock(&cx));
    let before = waiter.bell.clone();
    waiter.moves();
    waiter.waits();
    assert_eq!(Arc::strong_count(&before), 1, "the old waker is not kept");
    drop(guard);
    assert_eq!(waiter.wakes(), 1);
    assert!(waiter.ready().is_ok());
}

#[test]
fn a_panic_under_a_guard_releases_without_poison() {
    let mutex = Mutex::new(1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut guard = mutex.try_lock().unwrap();
        *guard = 2;
        panic!("as planned");
    }));
    assert!(panicked.is_err());
    assert_eq!(*mutex.try_lock().unwrap(), 2);
}

#[test]
fn owned_guards_keep_their_lock_alive() {
    let (cx, _) = loose();
    let mutex = Arc::new(Mutex::new(5));
    let weak = Arc::downgrade(&mutex);
    let mut guard: OwnedMutexGuard<i32> = now(mutex.lock_owned(&cx)).unwrap();
    assert!(mutex.try_lock_owned().is_err());
    drop(mutex);
    *guard += 1;
    assert_eq!(*guard, 6);
    drop(guard);
    assert!(weak.upgrade().is_none(), "nothing of the wait is left");

    let lock = Arc::new(RwLock::new(5));
    let mut writer = now(lock.write_owned(&cx)).unwrap();
    *writer += 1;
    assert!(lock.try_read_owned().is_err());
    let reader = writer.downgrade();
    assert_eq!((*reader, *now(lock.read_owned(&cx)).unwrap()), (6, 6));
    assert!(lock.try_write_owned().is_err());
}

#[test]
fn readers_side_by_side_go_in_together_and_none_passes_a_writer() {
    let (cx, _) = loose();
    let lock = RwLock::new(0);
    let first = now(lock.read(&cx)).unwrap();
    let mut writer = waiting(lock.write(&cx));
    let mut readers = [waiting(lock.read(&cx)), waiting(lock.read(&cx))];
    let mut last = waiting(lock.write(&cx));
    assert!(lock.try_read().is_err(), "a writer waits");
    drop(first);
    assert_eq!(writer.wakes(), 1);
    assert_eq!(readers.each_ref().map(|reader| reader.wakes()), [0, 0]);
    let mut held = writer.ready().unwrap();
    *held = 7;
    drop(held);
    assert_eq!(readers.each_ref().map(|reader| reader.wakes()), [1, 1]);
    assert_eq!(last.wakes(), 0);
    let guards = readers.each_mut().map(|reader| reader.ready().unwrap());
    assert_eq!(guards.each_ref().map(|guard| **guard), [7, 7]);
    let [one, other] = guards;
    drop(one);
    last.waits();
    drop(other);
    assert_eq!(last.wakes(), 1);
    assert!(last.ready().is_ok());
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_behind_it_in() {
    let (cx, _) = loose();
    let lock = RwLock::new(());
    let reader = now(lock.read(&cx)).unwrap();
    let writer = waiting(lock.write(&cx));
    let mut behind = waiting(lock.read(&cx));
    drop(writer);
    assert_eq!(behind.wakes(), 1);
    assert!(behind.ready().is_ok());
    drop(reader);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_downgrade_lets_readers_in_but_no_writer() {
    let (cx, _) = loose();
    let lock = RwLock::new(1);
    let mut writer = now(lock.write(&cx)).unwrap();
    let (mut reader, mut other) = (waiting(lock.read(&cx)), waiting(lock.write(&cx)));
    *writer = 2;
    let downgraded: RwLockReadGuard<'_, i32> = writer.downgrade();
    assert_eq!((reader.wakes(), other.wakes()), (1, 0));
    assert_eq!((*downgraded, *reader.ready().unwrap()), (2, 2));
    other.waits();
    drop(downgraded);
    assert!(other.ready().is_ok());
}

#[test]
fn unsized_values_fit_behind_locks() {
    let mutex: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2, 3]));
    mutex.try_lock().unwrap()[0] = 9;
    assert_eq!(mutex.try_lock().unwrap().len(), 3);
    assert_eq!(format!("{mutex:?}"), "Mutex([9, 2, 3])");
    let guard = mutex.try_lock();
    assert_eq!(format!("{mutex:?}"), "Mutex(<locked>)");
    drop(guard);
}

#[test]
fn guards_and_waits_go_where_their_values_may() {
    fn send<T: Send>(_: T) {}
    fn sync<T: Sync>(_: T) {}
    fn safe<T: CancelSafe>(future: T) -> T {
        future
    }
    // A value that may move between threads but not be shared.
    let cells = Mutex::new(std::cell::Cell::new(0));
    sync(&cells);
    send(cells.try_lock());
    let (cx, _) = loose();
    let mutex = Mutex::new(0);
    let lock = RwLock::new(0);
    send(safe(mutex.lock(&cx)));
    send(safe(lock.read(&cx)));
    send(safe(lock.write(&cx)));
    let guard: MutexGuard<'_, i32> = mutex.try_lock().unwrap();
    sync(&guard);
}

#[test]
fn a_mapped_guard_leads_to_a_part_and_holds_the_lock() {
    let (cx, _) = loose();
    let mutex = Mutex::new((1, String::from("two")));
    let guard = MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.1);
    let mut letters = MappedMutexGuard::map(guard, |text| text.as_mut_str());
    letters.make_ascii_uppercase();
    assert_eq!((&*letters, format!("{letters:?} {letters}")), ("TWO", "\"TWO\" TWO".to_owned()));
    let mut next = waiting(mutex.lock(&cx));
    let Err(letters) = MappedMutexGuard::filter_map(letters, |_| None::<&mut u8>) else {
        panic!("there is no such part");
    };
    assert_eq!(next.wakes(), 0, "the guard came back");
    drop(letters);
    assert_eq!((next.wakes(), &*next.ready().unwrap().1), (1, "TWO"));
    let lock = RwLock::new((1, [2, 3]));
    let one = RwLockReadGuard::map(lock.try_read().unwrap(), |pair| &pair.0);
    let two = RwLockReadGuard::map(lock.try_read().unwrap(), |pair| &pair.1[..]);
    let three = MappedRwLockReadGuard::filter_map(two, |pair| pair.get(1)).unwrap();
    assert!(lock.try_write().is_err());
    assert_eq!((*one, *three), (1, 3));
    drop((one, three));
    *RwLockWriteGuard::map(lock.try_write().unwrap(), |pair| &mut pair.0) = 9;
    let absent = RwLockWriteGuard::filter_map(lock.try_write().unwrap(), |_| None::<&mut u8>);
    assert_eq!(absent.err().map(|guard| guard.0), Some(9));
    assert!(lock.try_write().is_ok());
}

#[test]
fn owned_mapped_guards_keep_their_lock_alive() {
    let mutex = Arc::new(Mutex::new(vec![1, 2]));
    let weak = Arc::downgrade(&mutex);
    let mut last = OwnedMutexGuard::map(mutex.try_lock_owned().unwrap(), |all| &mut all[1]);
    *last += 1;
    assert!(mutex.try_lock().is_err());
    drop(mutex);
    assert_eq!(*last, 3);
    drop(last);
    assert!(weak.upgrade().is_none());
    let lock = Arc::new(RwLock::new((1, 2)));
    let read = OwnedRwLockReadGuard::map(lock.try_read_owned().unwrap(), |pair| &pair.0);
    assert!(lock.try_write().is_err() && lock.try_read().is_ok());
    assert_eq!(*read, 1);
    drop(read);
    let mut write = OwnedRwLockWriteGuard::map(lock.try_write_owned().unwrap(), |pair| &mut pair.1);
    *write = 7;
    assert!(lock.try_read().is_err());
    drop(write);
    assert_eq!(lock.try_read().unwrap().1, 7);
}

#[test]
fn a_panic_while_a_guard_is_mapped_releases_the_lock() {
    let mutex = Mutex::new(1);
    let map = || MutexGuard::map(mutex.try_lock().unwrap(), |_| -> &mut u8 { panic!("hostile") });
    assert!(catch_unwind(AssertUnwindSafe(|| drop(map()))).is_err());
    let guard = MutexGuard::map(mutex.try_lock().unwrap(), |value| value);
    let map = || MappedMutexGuard::map(guard, |_| -> &mut u8 { panic!("hostile") });
    assert!(catch_unwind(AssertUnwindSafe(|| drop(map()))).is_err());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn mapped_guards_go_where_their_parts_may() {
    fn send<T: Send>(_: &T) {}
    fn sync<T: Sync>(_: &T) {}
    let mutex = Arc::new(Mutex::new((std::cell::Cell::new(0), 0)));
    let part = MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.0);
    send(&part);
    drop(part);
    let part = MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.1);
    send(&part);
    sync(&part);
    drop(part);
    send(&OwnedMutexGuard::map(mutex.try_lock_owned().unwrap(), |pair| &mut pair.1));
    let lock = RwLock::new(5);
    let part = RwLockReadGuard::map(lock.try_read().unwrap(), |value| value);
    send(&part);
    sync(&part);
}

#[test]
fn a_mapped_guard_is_released_on_another_thread() {
    let mutex = Mutex::new((1, 2));
    let mut part = MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.1);
    std::thread::scope(|s| {
        s.spawn(move || *part += 5);
    });
    assert_eq!(mutex.into_inner(), (1, 7));
}

#[test]
fn what_is_tried_answers_alike() {
    let mutex = Mutex::new(0);
    let _guard = mutex.try_lock().unwrap();
    let refused = mutex.try_lock().map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "the lock is held or waited for");
    let boxed: Box<dyn std::error::Error + Send + Sync> = refused.into();
    assert!(boxed.is::<crate::sync::TryLockError>());
}
