use asx_task::CancelSafe;

use super::{Probe, loose, now, waiting};
use crate::sync::Notify;

#[test]
fn one_notification_is_stored_for_who_comes_next() {
    let (cx, _) = loose();
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_one();
    assert!(now(notify.notified(&cx)).is_ok());
    waiting(notify.notified(&cx));
}

#[test]
fn each_notification_wakes_the_one_who_waited_longest() {
    let (cx, _) = loose();
    let notify = Notify::new();
    let mut first = waiting(notify.notified(&cx));
    let mut second = waiting(notify.notified(&cx));
    notify.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    second.waits();
    notify.notify_one();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert!(first.ready().is_ok() && second.ready().is_ok());
    waiting(notify.notified(&cx));
}

#[test]
fn a_notification_of_a_dropped_wait_is_passed_on() {
    let (cx, _) = loose();
    let notify = Notify::new();
    let first = waiting(notify.notified(&cx));
    let mut second = waiting(notify.notified(&cx));
    notify.notify_one();
    drop(first);
    assert_eq!(second.wakes(), 1);
    drop(second.ready());
    let last = waiting(notify.notified(&cx));
    notify.notify_one();
    drop(last);
    assert!(now(notify.notified(&cx)).is_ok(), "with nobody in line it is stored");
}

#[test]
fn a_notification_of_a_cancelled_wait_is_passed_on() {
    let (cx, _) = loose();
    let (other, cancel) = loose();
    let notify = Notify::new();
    let mut first = waiting(notify.notified(&other));
    let second = waiting(notify.notified(&cx));
    notify.notify_one();
    cancel();
    assert!(first.ready().is_err());
    assert_eq!(second.wakes(), 1);
}

#[test]
fn notifying_all_reaches_those_made_before_and_stores_nothing() {
    let (cx, _) = loose();
    let notify = Notify::new();
    let mut first = waiting(notify.notified(&cx));
    let mut second = waiting(notify.notified(&cx));
    let mut unpolled = Probe::new(notify.notified(&cx));
    notify.notify_waiters();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert!(first.ready().is_ok() && second.ready().is_ok() && unpolled.ready().is_ok());
    waiting(notify.notified(&cx));
}

#[test]
fn a_call_to_all_is_not_passed_on() {
    let (cx, _) = loose();
    let notify = Notify::new();
    let first = waiting(notify.notified(&cx));
    notify.notify_waiters();
    let mut late = waiting(notify.notified(&cx));
    drop(first);
    assert_eq!(late.wakes(), 0);
    late.waits();
}

#[test]
fn one_made_before_a_call_to_all_leaves_the_stored_notification() {
    let (cx, _) = loose();
    let notify = Notify::new();
    let mut early = Probe::new(notify.notified(&cx));
    notify.notify_waiters();
    notify.notify_one();
    assert!(early.ready().is_ok());
    assert!(now(notify.notified(&cx)).is_ok());
}

#[test]
fn a_cancelled_task_takes_no_notification() {
    fn safe<T: CancelSafe + Send>(future: T) -> T {
        future
    }
    let (cx, cancel) = loose();
    let (other, _) = loose();
    let notify = Notify::new();
    notify.notify_one();
    cancel();
    assert!(now(safe(notify.notified(&cx))).is_err());
    assert!(now(notify.notified(&other)).is_ok());
}

#[test]
fn an_enabled_wait_is_reached_by_what_comes_before_its_first_poll() {
    let (cx, _) = loose();
    let notify = Notify::new();
    let mut first = notify.notified(&cx);
    assert!(!first.enable() && !first.enable());
    let second = waiting(notify.notified(&cx));
    notify.notify_one();
    assert_eq!(second.wakes(), 0, "it came later");
    assert!(first.enable(), "and stays so");
    assert!(now(first).is_ok());
    let mut third = notify.notified(&cx);
    assert!(!third.enable());
    notify.notify_waiters();
    assert!(third.enable());
    assert!(now(third).is_ok());
    waiting(notify.notified(&cx));
}

#[test]
fn an_enabled_wait_wakes_the_task_that_polls_it() {
    let (cx, _) = loose();
    let notify = Notify::new();
    let mut wait = notify.notified(&cx);
    wait.enable();
    let mut wait = waiting(wait);
    notify.notify_one();
    assert_eq!(wait.wakes(), 1);
    assert!(wait.ready().is_ok());
}

#[test]
fn what_an_enabled_wait_has_is_passed_on_when_it_is_dropped_or_cancelled() {
    let (cx, _) = loose();
    let (stopped, cancel) = loose();
    let notify = Notify::new();
    notify.notify_one();
    let mut taken = notify.notified(&cx);
    assert!(taken.enable());
    waiting(notify.notified(&cx));
    drop(taken);
    let mut taken = notify.notified(&stopped);
    assert!(taken.enable(), "it is stored again");
    cancel();
    assert!(now(&mut taken).is_err());
    assert!(now(notify.notified(&cx)).is_ok(), "a cancelled wait takes nothing");
    let mut all = notify.notified(&cx);
    notify.notify_waiters();
    assert!(all.enable());
    drop(all);
    waiting(notify.notified(&cx));
}

#[test]
fn an_owned_wait_keeps_its_notify_alive() {
    let (cx, _) = loose();
    let notify = std::sync::Arc::new(Notify::new());
    let weak = std::sync::Arc::downgrade(&notify);
    let mut enabled = notify.notified_owned(&cx);
    assert!(!enabled.enable());
    let mut other = waiting(notify.notified_owned(&cx));
    notify.notify_one();
    notify.notify_one();
    drop(notify);
    assert!(now(enabled).is_ok() && other.ready().is_ok());
    drop(other);
    assert!(weak.upgrade().is_none());
}
