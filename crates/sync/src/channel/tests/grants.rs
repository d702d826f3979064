//! A slot that comes free while somebody waits is theirs at once, before they are polled.

use asx_task::testing::cancelled;

use super::*;

/// Two slots full, two senders in line, and a receiver that takes all: both have a slot now.
fn both_granted(run: impl FnOnce(&Sender<usize>, &mut Receiver<usize>, [Waiting<'_>; 2])) {
    let (cx, (tx, mut rx)) = (live_cx(), full(2));
    let mut one = Polls::new(tx.reserve(&cx));
    let mut two = Polls::new(tx.reserve(&cx));
    assert!(one.is_pending() && two.is_pending());
    let mut taken = Vec::new();
    assert_eq!(Polls::new(rx.recv_many(&cx, &mut taken, 9)).ready(), Ok(2));
    assert_eq!((taken, one.wakes(), two.wakes()), (vec![0, 1], 1, 1));
    check(&tx);
    run(&tx, &mut rx, [one, two]);
}

type Waiting<'a> = Polls<Reserve<'a, usize>>;

#[test]
fn all_slots_that_come_free_at_once_are_granted_in_one_go() {
    both_granted(|tx, _, [mut one, mut two]| {
        assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)), "both slots are taken");
        two.ready().unwrap().send(2);
        one.ready().unwrap().send(1);
        assert_eq!((queued(tx), one.wakes(), two.wakes()), (vec![2, 1], 0, 0));
        check(tx);
    });
}

#[test]
fn an_evicting_send_takes_a_slot_nobody_has_come_for_and_whose_it_was_waits_on() {
    both_granted(|tx, rx, [mut one, mut two]| {
        assert_eq!(tx.send_evict_oldest(9), Ok(None));
        assert!(two.is_pending(), "it was the last to be granted one");
        one.ready().unwrap().send(1);
        assert_eq!(tx.send_evict_oldest(8), Ok(Some(9)), "a slot that is used is no room");
        assert_eq!((queued(tx), two.wakes()), (vec![1, 8], 0));
        assert_eq!((rx.try_recv(), two.wakes()), (Ok(1), 1));
        two.ready().unwrap().send(2);
        assert_eq!(queued(tx), [8, 2]);
        check(tx);
    });
}

#[test]
fn who_comes_when_the_line_has_its_slots_takes_what_is_left() {
    let (cx, (tx, mut rx)) = (live_cx(), full(3));
    let mut waiting = Polls::new(tx.send(&cx, 10));
    assert!(waiting.is_pending());
    assert_eq!([rx.try_recv(), rx.try_recv()], [Ok(0), Ok(1)]);
    assert_eq!(Polls::new(tx.send(&cx, 11)).ready(), Ok(()), "there is no line any more");
    assert_eq!(tx.try_send(12), Err(TrySendError::Full(12)), "nor any room");
    assert_eq!((waiting.wakes(), waiting.ready()), (1, Ok(())));
    assert_eq!(queued(&tx), [2, 11, 10]);
}

#[test]
fn a_granted_slot_that_nobody_comes_for_goes_to_the_next_or_is_free() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let mut line: Vec<_> = (0..3).map(|_| Polls::new(tx.reserve(&cx))).collect();
    assert!(line.iter_mut().all(Polls::is_pending));
    rx.try_recv().unwrap();
    for _ in 0..2 {
        drop(line.remove(0));
        assert_eq!(line[0].wakes(), 1);
        check(&tx);
    }
    drop(line);
    assert!(tx.try_send(7).is_ok());
    check(&tx);
}

#[test]
fn a_cancel_counts_for_more_than_a_slot_that_was_granted() {
    let (cx, (stopping, cancel), (tx, mut rx)) = (live_cx(), Cx::loose(), full(1));
    let mut head = Polls::new(tx.send(&stopping, 5));
    let mut next = Polls::new(tx.send(&cx, 6));
    assert!(head.is_pending() && next.is_pending());
    rx.try_recv().unwrap();
    assert_eq!((head.wakes(), next.wakes()), (1, 0));
    cancel(reason());
    assert_eq!(head.ready(), Err(SendError::Cancelled(5, cancelled())));
    assert_eq!((next.wakes(), next.ready(), queued(&tx)), (1, Ok(()), vec![6]));
}

#[test]
fn a_slot_granted_by_a_receiver_that_went_away_is_none() {
    both_granted(|tx, rx, [mut one, two]| {
        assert!(rx.close_and_take().is_empty());
        assert_eq!((one.wakes(), two.wakes()), (0, 0), "they were woken before");
        assert_eq!(one.ready().unwrap_err(), SendError::Disconnected(()));
        drop(two);
        assert_eq!(tx.try_reserve().unwrap_err(), TryReserveError::Disconnected);
        tx.shared.with(|channel| assert_eq!(channel.reserved(), 0));
        check(tx);
    });
}

#[test]
fn a_granted_slot_counts_as_a_sender_until_it_is_given_back() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let shared = tx.shared.clone();
    let mut place = None;
    assert!(shared.poll_reserve(&mut place, std::task::Waker::noop(), |_| ()).is_pending());
    drop(tx);
    rx.try_recv().unwrap();
    let mut recv = Polls::new(rx.recv(&cx));
    assert!(recv.is_pending(), "the sender that has a slot may still send");
    shared.leave(&mut place);
    assert_eq!((recv.wakes(), recv.ready()), (1, Err(RecvError::Disconnected)));
}
