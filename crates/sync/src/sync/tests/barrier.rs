use super::{loose, now, waiting};
use crate::sync::Barrier;

#[test]
fn the_last_to_arrive_leads_and_all_pass() {
    let (cx, _) = loose();
    let barrier = Barrier::new(3);
    for _ in 0..2 {
        let mut first = waiting(barrier.wait(&cx));
        let mut second = waiting(barrier.wait(&cx));
        assert!(now(barrier.wait(&cx)).unwrap().is_leader());
        assert_eq!((first.wakes(), second.wakes()), (1, 1));
        assert!(!first.ready().unwrap().is_leader());
        assert!(!second.ready().unwrap().is_leader());
    }
}

#[test]
fn who_leaves_before_the_group_is_complete_has_not_arrived() {
    let (cx, _) = loose();
    let (other, cancel) = loose();
    let barrier = Barrier::new(2);
    drop(waiting(barrier.wait(&cx)));
    let mut cancelled = waiting(barrier.wait(&other));
    cancel();
    assert!(cancelled.ready().is_err());
    let mut first = waiting(barrier.wait(&cx));
    assert!(now(barrier.wait(&cx)).unwrap().is_leader());
    assert!(first.ready().is_ok());
}

#[test]
fn who_leaves_after_the_group_is_complete_does_not_arrive_again() {
    let (cx, _) = loose();
    let barrier = Barrier::new(2);
    let passed = waiting(barrier.wait(&cx));
    let mut next = {
        drop(now(barrier.wait(&cx)));
        waiting(barrier.wait(&cx))
    };
    drop(passed);
    next.waits();
    assert_eq!(next.wakes(), 0);
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (cx, _) = loose();
    let barrier = Barrier::new(2);
    let mut first = waiting(barrier.wait(&cx));
    first.moves();
    first.waits();
    drop(now(barrier.wait(&cx)));
    assert_eq!(first.wakes(), 1);
}

#[test]
fn groups_of_none_or_one_never_wait() {
    let (cx, cancel) = loose();
    assert!(now(Barrier::new(0).wait(&cx)).unwrap().is_leader());
    assert!(now(Barrier::new(1).wait(&cx)).unwrap().is_leader());
    cancel();
    assert!(now(Barrier::new(1).wait(&cx)).is_err());
}
