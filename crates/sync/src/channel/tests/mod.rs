//! The rules of the bounded channel, each through the futures people use.

mod closing;
mod ends;
mod grants;
mod recv;
mod wakers;

use asx_task::Cx;
use asx_task::testing::{Polls, live_cx, reason};

use super::*;

fn queued<T: Clone>(tx: &Sender<T>) -> Vec<T> {
    tx.shared.with(|channel| channel.messages().cloned().collect())
}

fn check<T>(tx: &Sender<T>) {
    tx.shared.with(|channel| channel.check().unwrap());
}

/// A channel full of numbers from 0.
fn full(capacity: usize) -> (Sender<usize>, Receiver<usize>) {
    let (tx, rx) = bounded(capacity);
    (0..capacity).for_each(|n| tx.try_send(n).unwrap());
    (tx, rx)
}

#[test]
#[should_panic(expected = "a channel's capacity must be at least 1")]
fn no_room_at_all_is_refused() {
    let _ = bounded::<u8>(0);
}

#[test]
fn no_room_at_all_can_be_an_error() {
    assert_eq!(try_bounded::<u8>(0).unwrap_err(), ZeroCapacity);
    assert_eq!(try_bounded::<u8>(3).unwrap().0.max_capacity(), 3);
}

#[test]
fn permits_and_messages_share_the_capacity() {
    let (tx, mut rx) = bounded(2);
    let permit = tx.try_reserve().unwrap();
    tx.try_send(1).unwrap();
    assert_eq!(tx.try_reserve().unwrap_err(), TryReserveError::Full);
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    permit.send(3);
    assert_eq!((tx.len(), rx.len(), rx.capacity(), tx.is_empty()), (2, 2, 0, false));
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(3)), "in the order of commit");
    assert_eq!((rx.try_recv(), rx.is_empty()), (Err(TryRecvError::Empty), true));
}

#[test]
fn a_permit_aborted_or_dropped_frees_its_slot_and_wakes_the_head() {
    let give_backs: [fn(Permit<'_, usize>); 2] = [|permit| permit.abort(), |permit| drop(permit)];
    for give_back in give_backs {
        let (cx, (tx, _rx)) = (live_cx(), bounded(1));
        let permit = tx.try_reserve().unwrap();
        let mut head = Polls::new(tx.reserve(&cx));
        let mut next = Polls::new(tx.reserve(&cx));
        assert!(head.is_pending() && next.is_pending());
        give_back(permit);
        assert_eq!((head.wakes(), next.wakes()), (1, 0));
        head.ready().unwrap().send(1);
        assert_eq!(queued(&tx), [1]);
        check(&tx);
    }
}

#[test]
fn waiting_senders_are_served_in_the_order_of_asking() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let mut line: Vec<_> = (10..13).map(|n| Polls::new(tx.send(&cx, n))).collect();
    assert!(line.iter_mut().all(Polls::is_pending));
    assert!(line.iter_mut().all(Polls::is_pending), "asking again keeps the place");
    for n in 0..3 {
        rx.try_recv().unwrap();
        let wakes: Vec<usize> = line.iter().map(Polls::wakes).collect();
        assert_eq!(wakes, (0..3).map(|at| usize::from(at == n)).collect::<Vec<_>>());
        assert!(line[n + 1..].iter_mut().all(Polls::is_pending), "nobody overtakes");
        assert_eq!(line[n].ready(), Ok(()));
        assert_eq!(queued(&tx), [10 + n]);
        check(&tx);
    }
}

#[test]
fn room_does_not_let_a_newcomer_pass_the_line() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let mut head = Polls::new(tx.reserve(&cx));
    assert!(head.is_pending());
    rx.try_recv().unwrap();
    assert_eq!(tx.try_reserve().unwrap_err(), TryReserveError::Full);
    assert_eq!(tx.try_send(7), Err(TrySendError::Full(7)));
    let mut newcomer = Polls::new(tx.send(&cx, 8));
    assert!(newcomer.is_pending());
    head.ready().unwrap().send(1);
    rx.try_recv().unwrap();
    assert_eq!((newcomer.wakes(), newcomer.ready()), (1, Ok(())));
}

#[test]
fn a_waiter_that_leaves_lets_the_next_move_up() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let mut line: Vec<_> = (0..3).map(|_| Polls::new(tx.reserve(&cx))).collect();
    assert!(line.iter_mut().all(Polls::is_pending));
    drop(line.remove(1));
    rx.try_recv().unwrap();
    assert_eq!((line[0].wakes(), line[1].wakes()), (1, 0));
    drop(line.remove(0));
    assert_eq!(line[0].wakes(), 1, "the head went with room at hand");
    drop(line);
    check(&tx);
    assert!(tx.try_reserve().is_ok(), "no phantom is left in line");
}

#[test]
fn a_cancelled_reserve_leaves_the_line_at_once_and_takes_no_slot() {
    let (cx, (stopping, cancel), (tx, mut rx)) = (live_cx(), Cx::loose(), full(1));
    let mut head = Polls::new(tx.reserve(&stopping));
    let mut next = Polls::new(tx.send(&cx, 5));
    assert!(head.is_pending() && next.is_pending());
    rx.try_recv().unwrap();
    cancel(reason());
    let error = head.ready().unwrap_err();
    assert_eq!(error, SendError::Cancelled((), reason().into()));
    assert_eq!((next.wakes(), next.ready()), (1, Ok(())), "while the cancelled one still exists");
    check(&tx);
}

#[test]
fn handles_cross_threads_and_futures_need_no_pin() {
    fn crosses<T: Send + Sync>(_: &T) {}
    fn moves(_: &(impl Future + Unpin + Send)) {}
    let (cx, (tx, mut rx)) = (live_cx(), bounded(1));
    crosses(&(&tx, &rx, tx.downgrade(), tx.try_reserve_owned()));
    moves(&tx.reserve(&cx));
    moves(&tx.reserve_owned(&cx));
    moves(&tx.send(&cx, std::marker::PhantomPinned));
    moves(&rx.recv(&cx));
    moves(&rx.next(&cx));
    moves(&rx.recv_many(&cx, &mut Vec::new(), 1));
}
