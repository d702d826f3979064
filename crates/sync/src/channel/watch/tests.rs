use asx_task::testing::{Polls, cancelled_cx, live_cx};

use super::*;

#[test]
fn a_change_wakes_all_who_wait_and_the_latest_value_is_seen() {
    let (cx, (tx, mut one)) = (live_cx(), watch(0));
    let mut two = one.clone();
    let mut first = Polls::new(one.changed(&cx));
    let mut second = Polls::new(two.changed(&cx));
    assert!(first.is_pending() && second.is_pending() && second.is_pending());
    tx.send(1).unwrap();
    tx.send(2).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert_eq!((first.ready(), second.ready()), (Ok(()), Ok(())));
    assert!(first.is_pending(), "both changes were seen at once");
    drop(first);
    assert_eq!((*one.borrow(), one.has_changed()), (2, false));
}

#[test]
fn a_snapshot_stays_as_it_was_and_holds_nobody_up() {
    let (tx, mut rx) = watch(1);
    let snapshot = rx.borrow();
    tx.send(2).unwrap();
    assert_eq!((*snapshot, *tx.borrow(), rx.has_changed()), (1, 2, true));
    assert_eq!((*rx.borrow_and_update(), rx.has_changed()), (2, false));
}

#[test]
fn modifying_starts_over_when_another_setter_was_faster() {
    let (tx, rx) = watch(1);
    let other = tx.clone();
    let mut calls = 0;
    tx.send_modify(|value| {
        calls += 1;
        if calls == 1 {
            other.send(10).unwrap();
        }
        *value += 1;
    });
    assert_eq!((*rx.borrow(), calls), (11, 2));
}

#[test]
fn the_last_value_is_seen_before_the_end_and_the_end_wakes() {
    let (cx, (tx, mut rx)) = (live_cx(), watch(0));
    let other = tx.clone();
    tx.send(1).unwrap();
    drop(tx);
    assert_eq!(Polls::new(rx.changed(&cx)).ready(), Ok(()));
    let mut waiting = Polls::new(rx.changed(&cx));
    assert!(waiting.is_pending());
    drop(other);
    assert_eq!((waiting.wakes(), waiting.ready()), (1, Err(RecvError::Disconnected)));
}

#[test]
fn a_value_nobody_watches_comes_back_unless_it_is_to_replace() {
    let (tx, rx) = watch(0);
    drop(rx);
    assert!(tx.is_closed());
    assert_eq!((tx.send(1), *tx.borrow()), (Err(Disconnected(1)), 0));
    assert_eq!((*tx.send_replace(2), *tx.borrow()), (0, 2));
    tx.send_modify(|value| *value += 1);
    let rx = tx.subscribe();
    assert_eq!((*rx.borrow(), rx.has_changed(), tx.is_closed()), (3, false, false));
}

#[test]
fn the_last_watcher_wakes_those_who_wait_for_the_close() {
    let (cx, (tx, rx)) = (live_cx(), watch(0));
    let other = rx.clone();
    let mut one = Polls::new(tx.closed(&cx));
    let mut two = Polls::new(tx.closed(&cx));
    assert!(one.is_pending() && two.is_pending());
    drop(rx);
    assert_eq!((one.wakes(), two.wakes()), (0, 0));
    drop(other);
    assert_eq!((one.wakes(), two.wakes()), (1, 1));
    assert_eq!((one.ready(), two.ready()), (Ok(()), Ok(())));
}

#[test]
fn dropped_and_cancelled_waits_leave_their_lines_and_see_nothing() {
    let (cx, (tx, mut rx)) = (live_cx(), watch(0));
    assert!(Polls::new(rx.changed(&cx)).is_pending());
    assert!(Polls::new(tx.closed(&cx)).is_pending());
    assert!(lock(&tx.state).changed.wake_all().is_empty());
    assert!(lock(&tx.state).closed.wake_all().is_empty());
    tx.send(1).unwrap();
    let stopped = cancelled_cx();
    assert!(matches!(Polls::new(rx.changed(&stopped)).ready(), Err(RecvError::Cancelled(_))));
    assert!(Polls::new(tx.closed(&stopped)).ready().is_err());
    assert!(rx.has_changed());
}

#[test]
fn a_value_that_is_waited_for_is_the_one_that_is_given() {
    let (cx, (tx, mut rx)) = (live_cx(), watch(0));
    assert_eq!(Polls::new(rx.wait_for(&cx, |value| *value == 0)).ready().as_deref(), Ok(&0));
    let mut waiting = Polls::new(rx.wait_for(&cx, |value| *value > 1));
    assert!(waiting.is_pending());
    tx.send(1).unwrap();
    assert!(waiting.wakes() == 1 && waiting.is_pending());
    tx.send(2).unwrap();
    assert_eq!((waiting.wakes(), waiting.ready().as_deref()), (1, Ok(&2)));
    drop(waiting);
    assert!(!rx.has_changed());
    drop(tx);
    let gone = Polls::new(rx.wait_for(&cx, |_| false)).ready();
    assert_eq!(gone.unwrap_err(), RecvError::Disconnected);
    let cx = cancelled_cx();
    let cancelled = Polls::new(rx.wait_for(&cx, |_| true)).ready();
    assert!(matches!(cancelled, Err(RecvError::Cancelled(_))));
}

#[test]
fn a_change_that_is_none_is_told_to_nobody() {
    let (cx, (tx, mut rx)) = (live_cx(), watch(1));
    let mut waiting = Polls::new(rx.changed(&cx));
    assert!(waiting.is_pending());
    let mut seen = 0;
    let unchanged = tx.send_if_modified(|value| {
        seen = std::mem::replace(value, 9);
        false
    });
    assert_eq!((unchanged, seen, *tx.borrow(), waiting.wakes()), (false, 1, 1, 0));
    assert!(tx.send_if_modified(|value| std::mem::replace(value, 2) == 1));
    assert_eq!((waiting.wakes(), waiting.ready(), *tx.borrow()), (1, Ok(()), 2));
}

#[test]
fn a_change_that_panics_changes_nothing() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let (tx, rx) = watch(1);
    let hostile = AssertUnwindSafe(|| tx.send_if_modified(|_| panic!("a hostile change")));
    assert!(catch_unwind(hostile).is_err());
    assert_eq!((*rx.borrow(), rx.has_changed()), (1, false));
    assert!(tx.send_if_modified(|value| std::mem::replace(value, 2) == 1));
}

#[test]
fn modifying_if_starts_over_when_another_setter_was_faster() {
    let (tx, rx) = watch(1);
    let other = tx.clone();
    let mut calls = 0;
    let changed = tx.send_if_modified(|value| {
        calls += 1;
        if calls == 1 {
            other.send(10).unwrap();
        }
        *value += 1;
        calls == 1
    });
    assert_eq!((changed, *rx.borrow(), calls), (false, 10, 2), "the second look decides");
}

#[test]
fn what_counts_as_seen_can_be_set_by_hand() {
    let (cx, (tx, mut rx)) = (live_cx(), watch(0));
    rx.mark_changed();
    assert!(rx.has_changed());
    assert_eq!(Polls::new(rx.changed(&cx)).ready(), Ok(()));
    assert!(Polls::new(rx.changed(&cx)).is_pending());
    tx.send(1).unwrap();
    let clone = rx.clone();
    rx.mark_unchanged();
    assert!(!rx.has_changed() && clone.has_changed(), "each watcher for itself");
    rx.mark_changed();
    drop(tx);
    assert!(rx.is_closed());
    assert_eq!(Polls::new(rx.changed(&cx)).ready(), Ok(()));
    assert_eq!(Polls::new(rx.changed(&cx)).ready(), Err(RecvError::Disconnected));
}

#[test]
fn both_sides_are_counted() {
    let (tx, rx) = watch(0);
    let (other, clone) = (tx.clone(), rx.clone());
    assert_eq!((tx.setters(), tx.watchers()), (2, 2));
    assert!(tx.same_channel(&other) && rx.same_channel(&clone));
    assert!(!tx.same_channel(&watch(0).0) && !rx.same_channel(&watch(0).1));
    drop((other, clone));
    assert_eq!((tx.setters(), tx.watchers(), rx.is_closed()), (1, 1, false));
}
