//! What receivers see, and where a cancel is seen.

use std::sync::Arc;
use std::task::Waker;

use asx_task::testing::{Count, cancelled_cx};

use super::*;

#[test]
fn a_cancel_is_seen_before_room_a_missing_receiver_and_a_message() {
    let (cx, (tx, mut rx)) = (cancelled_cx(), bounded(2));
    let cancelled = cx.checkpoint().unwrap_err();
    tx.try_send(1).unwrap();
    assert_eq!(Polls::new(rx.recv(&cx)).ready(), Err(RecvError::Cancelled(cancelled.clone())));
    assert_eq!(Polls::new(rx.next(&cx)).ready(), Err(cancelled.clone()));
    let mut into = Vec::new();
    assert!(Polls::new(rx.recv_many(&cx, &mut into, 1)).ready().is_err() && into.is_empty());
    assert!(Polls::new(rx.recv_many(&cx, &mut into, 0)).ready().is_err());
    let refused = SendError::Cancelled(2, cancelled.clone());
    assert_eq!(Polls::new(tx.send(&cx, 2)).ready(), Err(refused.clone()));
    assert_eq!(queued(&tx), [1]);
    drop(rx);
    assert_eq!(Polls::new(tx.send(&cx, 2)).ready(), Err(refused));
    let reserved = Polls::new(tx.reserve_owned(&cx)).ready();
    assert_eq!(reserved.unwrap_err(), SendError::Cancelled((), cancelled));
}

#[test]
fn what_does_not_wait_does_not_look_for_a_cancel() {
    let (stopping, cancel) = Cx::loose();
    let (tx, mut rx) = bounded(1);
    let permit = Polls::new(tx.reserve(&stopping)).ready().unwrap();
    cancel(reason());
    permit.send(1);
    assert_eq!(tx.send_evict_oldest(2), Ok(Some(1)));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(tx.try_send(3), Ok(()));
}

#[test]
fn every_way_of_sending_wakes_the_receiver_once() {
    let ways: [fn(&Cx, &Sender<u8>); 6] = [
        |_, tx| tx.try_send(1).unwrap(),
        |_, tx| tx.try_reserve().unwrap().send(1),
        |_, tx| tx.try_reserve_owned().unwrap().send(1),
        |_, tx| assert_eq!(tx.send_evict_oldest(1), Ok(None)),
        |cx, tx| assert_eq!(Polls::new(tx.send(cx, 1)).ready(), Ok(())),
        |cx, tx| Polls::new(tx.reserve_owned(cx)).ready().unwrap().send(1),
    ];
    for way in ways {
        let (cx, (tx, mut rx)) = (live_cx(), bounded(4));
        let mut recv = Polls::new(rx.recv(&cx));
        assert!(recv.is_pending() && recv.is_pending());
        way(&cx, &tx);
        way(&cx, &tx);
        assert_eq!((recv.wakes(), recv.ready()), (1, Ok(1)));
        assert_eq!(tx.len(), 1);
    }
}

#[test]
fn a_receive_from_another_task_wakes_that_task_only() {
    let (cx, (tx, mut rx)) = (live_cx(), bounded(1));
    let mut recv = Polls::new(rx.recv(&cx));
    assert!(recv.is_pending());
    let moved = Arc::<Count>::default();
    let waker = Waker::from(moved.clone());
    assert!(recv.poll_by(&waker).is_pending());
    tx.try_send(1).unwrap();
    assert_eq!((recv.wakes(), moved.wakes()), (0, 1));
}

#[test]
fn a_dropped_receive_takes_no_message_and_forgets_its_waker() {
    let (cx, (tx, mut rx)) = (live_cx(), bounded(1));
    let mut recv = Polls::new(rx.recv(&cx));
    assert!(recv.is_pending());
    drop(recv);
    assert!(tx.shared.with(|channel| channel.receiver_waiting().is_none()));
    let (stopping, cancel) = Cx::loose();
    let mut recv = Polls::new(rx.recv(&stopping));
    assert!(recv.is_pending());
    cancel(reason());
    assert!(recv.ready().is_err());
    assert!(tx.shared.with(|channel| channel.receiver_waiting().is_none()));
    drop(recv);
    tx.try_send(1).unwrap();
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn many_are_taken_up_to_the_limit_or_not_at_all() {
    let (cx, (tx, mut rx)) = (live_cx(), full(4));
    let mut into = vec![9];
    assert_eq!(Polls::new(rx.recv_many(&cx, &mut into, 0)).ready(), Ok(0));
    assert_eq!(Polls::new(rx.recv_many(&cx, &mut into, 3)).ready(), Ok(3));
    assert_eq!(Polls::new(rx.recv_many(&cx, &mut into, 3)).ready(), Ok(1));
    let mut waiting = Polls::new(rx.recv_many(&cx, &mut into, 3));
    assert!(waiting.is_pending());
    drop(tx);
    assert_eq!((waiting.wakes(), waiting.ready()), (1, Err(RecvError::Disconnected)));
    drop(waiting);
    assert_eq!(into, [9, 0, 1, 2, 3]);
}
