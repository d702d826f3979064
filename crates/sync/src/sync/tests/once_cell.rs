use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};

use asx_task::Cancelled;

use super::{Probe, loose, now, waiting};
use crate::sync::{OnceCell, SetError};

#[derive(Debug, PartialEq)]
enum Failure {
    Cancelled,
    Mine,
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Failure::Cancelled
    }
}

#[test]
fn the_first_makes_the_value_for_all() {
    let (cx, _) = loose();
    let cell = OnceCell::new();
    let gate = crate::sync::Notify::new();
    let mut first = waiting(cell.get_or_init(&cx, async || {
        gate.notified(&cx).await.unwrap();
        1
    }));
    let mut others = [2, 3].map(|value| waiting(cell.get_or_init(&cx, async move || value)));
    assert_eq!(cell.set(4), Err(SetError::Initialising(4)));
    gate.notify_one();
    assert_eq!(first.ready().unwrap(), &1);
    assert_eq!(others.each_ref().map(|other| other.wakes()), [1, 1]);
    assert_eq!(others.each_mut().map(|other| *other.ready().unwrap()), [1, 1]);
    assert_eq!(cell.set(4).unwrap_err().into_inner(), 4);
    assert_eq!(now(cell.get_or_init(&cx, async || 5)).unwrap(), &1);
}

#[test]
fn after_a_failure_the_next_in_line_takes_over() {
    let (cx, _) = loose();
    let cell = OnceCell::new();
    let gate = crate::sync::Notify::new();
    let mut first = waiting(cell.get_or_try_init(&cx, async || {
        gate.notified(&cx).await?;
        Err(Failure::Mine)
    }));
    let mut second = waiting(cell.get_or_try_init(&cx, async || Ok::<_, Failure>(2)));
    let mut third = waiting(cell.get_or_try_init(&cx, async || Ok::<_, Failure>(3)));
    gate.notify_one();
    assert_eq!(first.ready(), Err(Failure::Mine));
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    third.waits();
    assert_eq!(second.ready(), Ok(&2));
    assert_eq!(third.ready(), Ok(&2));
}

#[test]
fn after_a_dropped_maker_the_next_in_line_takes_over() {
    let (cx, _) = loose();
    let cell = OnceCell::new();
    let first = waiting(cell.get_or_init(&cx, async || pending().await));
    let mut second = waiting(cell.get_or_init(&cx, async || 2));
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert_eq!(second.ready().unwrap(), &2);
}

#[test]
fn after_a_panic_the_next_in_line_takes_over() {
    let (cx, _) = loose();
    let cell = OnceCell::new();
    let gate = crate::sync::Notify::new();
    let mut first = waiting(cell.get_or_init(&cx, async || {
        gate.notified(&cx).await.unwrap();
        panic!("as planned")
    }));
    let mut second = waiting(cell.get_or_init(&cx, async || 2));
    gate.notify_one();
    assert!(catch_unwind(AssertUnwindSafe(|| first.poll().is_ready())).is_err());
    assert_eq!(second.wakes(), 1);
    assert_eq!(second.ready().unwrap(), &2);
}

#[test]
fn a_cancel_ends_the_wait_but_not_a_running_init() {
    let (cx, cancel) = loose();
    let (other, cancel_other) = loose();
    let (inner, _) = loose();
    let cell = OnceCell::new();
    let gate = crate::sync::Notify::new();
    let mut first = waiting(cell.get_or_init(&cx, async || gate.notified(&inner).await.is_ok()));
    let mut second = waiting(cell.get_or_try_init(&other, async || Ok::<_, Failure>(false)));
    cancel();
    cancel_other();
    first.waits();
    assert_eq!(second.ready(), Err(Failure::Cancelled));
    gate.notify_one();
    assert!(first.ready().unwrap());
    assert!(now(cell.get_or_init(&cx, async || false)).is_err(), "a cancel is seen first");
}

#[test]
fn a_cell_can_be_filled_and_emptied_by_hand() {
    let (cx, _) = loose();
    let mut cell = OnceCell::new();
    assert_eq!((cell.get(), cell.set(1), cell.set(2)), (None, Ok(()), Err(SetError::Full(2))));
    assert_eq!(cell.get_mut().copied(), Some(1));
    assert_eq!((cell.take(), cell.get()), (Some(1), None));
    assert_eq!(now(cell.get_or_init(&cx, async || 3)).unwrap(), &3);
    let full = OnceCell::from(4);
    assert_eq!(now(full.get_or_init(&cx, async || 5)).unwrap(), &4);
    assert_eq!(full.into_inner(), Some(4));
}

#[test]
fn waits_can_move_between_threads() {
    fn send<T: Send>(future: T) -> T {
        future
    }
    let (cx, _) = loose();
    let cell = OnceCell::new();
    let future = send(cell.get_or_init(&cx, async || ready(1).await));
    assert_eq!(Probe::new(future).ready().unwrap(), &1);
}
