//! The rules of the bounded channel, each through the futures people use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::testing::{Polls, cancelled_cx, live_cx, reason};
use super::*;
use crate::Cx;

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
    assert_eq!(try_bounded::<u8>(3).unwrap().0.capacity(), 3);
}

#[test]
fn permits_and_messages_share_the_capacity() {
    let (tx, mut rx) = bounded(2);
    let permit = tx.try_reserve().unwrap();
    tx.try_send(1).unwrap();
    assert_eq!(tx.try_reserve().unwrap_err(), TryReserveError::Full);
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    permit.send(3);
    assert_eq!((tx.len(), rx.len(), rx.capacity(), tx.is_empty()), (2, 2, 2, false));
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(3)), "in the order of commit");
    assert_eq!((rx.try_recv(), rx.is_empty()), (Err(TryRecvError::Empty), true));
}

#[test]
fn a_permit_aborted_or_dropped_frees_its_slot_and_wakes_the_head() {
    let give_backs: [fn(Permit<'_, usize>); 2] = [|permit| permit.abort(), |permit| drop(permit)];
    for give_back in give_backs {
        let (cx, (tx, _rx)) = (live_cx(), bounded(1));
        let permit = tx.try_reserve().unwrap();
        let (mut head, mut next) = (Polls::new(tx.reserve(&cx)), Polls::new(tx.reserve(&cx)));
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
    assert_eq!(tx.send_evict_oldest(9), Err(TrySendError::Full(9)), "nothing to evict");
    head.ready().unwrap().send(1);
    rx.try_recv().unwrap();
    assert_eq!((newcomer.wakes(), newcomer.ready()), (1, Ok(())));
}

#[test]
fn a_head_that_takes_its_slot_wakes_the_next_while_there_is_room() {
    let (cx, (tx, mut rx)) = (live_cx(), full(2));
    let (mut one, mut two) = (Polls::new(tx.reserve(&cx)), Polls::new(tx.reserve(&cx)));
    assert!(one.is_pending() && two.is_pending());
    let mut taken = Vec::new();
    assert_eq!(Polls::new(rx.recv_many(&cx, &mut taken, 9)).ready(), Ok(2));
    assert_eq!((taken, one.wakes(), two.wakes()), (vec![0, 1], 1, 0));
    let permit = one.ready().unwrap();
    assert_eq!(two.wakes(), 1);
    two.ready().unwrap().send(2);
    permit.send(1);
    assert_eq!(queued(&tx), [2, 1]);
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
    let moved = Arc::<testing::Count>::default();
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

#[test]
fn evicting_gives_the_oldest_back_and_spares_permits() {
    let (tx, mut rx) = full(2);
    assert_eq!(tx.send_evict_oldest(2), Ok(Some(0)));
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
    let permits = (tx.try_reserve().unwrap(), tx.try_reserve().unwrap());
    assert_eq!(tx.send_evict_oldest(3), Err(TrySendError::Full(3)));
    drop((permits, rx));
    assert_eq!(tx.send_evict_oldest(3), Err(TrySendError::Disconnected(3)));
}

#[test]
fn a_missing_receiver_hands_every_value_back() {
    let (cx, (tx, rx)) = (live_cx(), bounded(2));
    let (permit, owned) = (tx.try_reserve().unwrap(), tx.try_reserve_owned().unwrap());
    assert!(!tx.is_closed());
    drop(rx);
    assert!(tx.is_closed());
    assert_eq!(permit.try_send(1), Err(Disconnected(1)));
    assert_eq!(owned.try_send(2), Err(Disconnected(2)));
    assert_eq!(tx.try_send(3), Err(TrySendError::Disconnected(3)));
    assert_eq!(tx.try_reserve().unwrap_err(), TryReserveError::Disconnected);
    assert_eq!(Polls::new(tx.send(&cx, 4)).ready(), Err(SendError::Disconnected(4)));
    let reserved = Polls::new(tx.reserve(&cx)).ready();
    assert_eq!(reserved.unwrap_err(), SendError::Disconnected(()));
}

#[test]
fn a_dropped_receiver_wakes_every_waiting_sender() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let (mut one, mut two) = (Polls::new(tx.send(&cx, 5)), Polls::new(tx.send(&cx, 6)));
    assert!(one.is_pending() && two.is_pending());
    rx.try_recv().unwrap();
    assert_eq!(one.wakes(), 1);
    drop(rx);
    assert_eq!((one.wakes(), two.wakes()), (0, 1), "a woken one is not woken again");
    assert_eq!(one.ready(), Err(SendError::Disconnected(5)));
    assert_eq!(two.ready(), Err(SendError::Disconnected(6)));
    check(&tx);
}

#[test]
fn closing_hands_out_what_was_not_taken() {
    let (tx, mut rx) = full(2);
    assert_eq!(rx.close(), [0, 1]);
    assert!(rx.close().is_empty() && tx.is_closed());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn the_queue_drains_before_the_end_and_the_last_sender_wakes() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let clone = tx.clone();
    assert!(clone.same_channel(&tx) && !clone.same_channel(&bounded(1).0));
    drop(tx);
    assert_eq!(Polls::new(rx.next(&cx)).ready(), Ok(Some(0)));
    let mut recv = Polls::new(rx.next(&cx));
    assert!(recv.is_pending());
    drop(clone);
    assert_eq!((recv.wakes(), recv.ready()), (1, Ok(None)));
    drop(recv);
    assert_eq!(Polls::new(rx.recv(&cx)).ready(), Err(RecvError::Disconnected));
}

#[test]
fn an_owned_permit_is_a_sender_until_it_is_resolved() {
    let resolve: [fn(OwnedPermit<u8>); 3] = [|permit| permit.send(1), OwnedPermit::abort, drop];
    for resolve in resolve {
        let (cx, (tx, mut rx)) = (live_cx(), bounded(1));
        let weak = tx.downgrade();
        let permit = Polls::new(tx.reserve_owned(&cx)).ready().unwrap();
        drop(tx);
        assert!(weak.upgrade().is_some());
        let mut recv = Polls::new(rx.recv(&cx));
        assert!(recv.is_pending());
        resolve(permit);
        assert_eq!(recv.wakes(), 1);
        assert!(matches!(recv.ready(), Ok(1) | Err(RecvError::Disconnected)));
        assert!(weak.upgrade().is_none());
    }
}

#[test]
fn a_weak_sender_keeps_nothing_alive_and_comes_back_only_before_the_last() {
    let (tx, mut rx) = bounded(1);
    let weak = tx.downgrade();
    let back = weak.upgrade().unwrap();
    drop(tx);
    back.try_send(1).unwrap();
    drop(back);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Err(TryRecvError::Disconnected)));
    assert!(weak.clone().upgrade().is_none());
}

#[test]
fn a_region_that_closes_a_channel_wakes_both_sides() {
    let (cx, (tx, mut rx)) = (live_cx(), bounded(1));
    let shared = tx.shared.clone();
    let mut recv = Polls::new(rx.recv(&cx));
    assert!(recv.is_pending());
    shared.close();
    assert_eq!((recv.wakes(), recv.ready()), (1, Err(RecvError::Disconnected)));
    assert!(tx.is_closed() && tx.downgrade().upgrade().is_none());
    let clone = tx.clone();
    drop(tx);
    assert_eq!(clone.try_send(1), Err(TrySendError::Disconnected(1)));

    let (tx, mut rx) = full(1);
    let mut send = Polls::new(tx.send(&cx, 1));
    assert!(send.is_pending());
    tx.shared.close();
    assert_eq!((send.wakes(), send.ready()), (1, Err(SendError::Disconnected(1))));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

/// Looks into the channel when it is dropped, woken or cloned: under the lock it would hang.
struct Nosy {
    tx: Sender<Option<Nosy>>,
    looks: Arc<AtomicUsize>,
}

impl Drop for Nosy {
    fn drop(&mut self) {
        self.looks.fetch_add(usize::from(self.tx.len() <= 2), Ordering::Relaxed);
    }
}

#[test]
fn messages_are_dropped_outside_the_lock() {
    let looks = Arc::<AtomicUsize>::default();
    let nosy = |tx: &Sender<_>| Some(Nosy { tx: tx.clone(), looks: looks.clone() });
    let (tx, rx) = bounded(2);
    tx.try_send(nosy(&tx)).unwrap();
    tx.try_send(nosy(&tx)).unwrap();
    assert!(tx.send_evict_oldest(None).unwrap().is_some());
    drop(rx);
    assert_eq!(looks.load(Ordering::Relaxed), 2);
    let (tx, rx) = bounded(2);
    let permit = tx.try_reserve().unwrap();
    tx.try_send(nosy(&tx)).unwrap();
    tx.shared.close();
    permit.send(nosy(&tx));
    assert_eq!(looks.load(Ordering::Relaxed), 4);
    drop(rx);
}

#[test]
fn wakers_are_woken_outside_the_lock() {
    struct Looks(Sender<usize>, AtomicUsize);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            self.1.store(1 + self.0.len(), Ordering::Relaxed);
        }
    }
    let (cx, (tx, mut rx)) = (live_cx(), bounded(1));
    let looks = Arc::new(Looks(tx.clone(), AtomicUsize::new(0)));
    let waker = Waker::from(looks.clone());
    let mut recv = std::pin::pin!(rx.recv(&cx));
    assert!(recv.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    tx.try_send(1).unwrap();
    assert_eq!(looks.1.load(Ordering::Relaxed), 2);
}

#[test]
fn a_head_that_was_woken_and_a_wait_polled_again_keep_no_second_waker() {
    let (cx, (tx, mut rx)) = (live_cx(), full(1));
    let count = Arc::<testing::Count>::default();
    let waker = Waker::from(count.clone());
    let kept = || Arc::strong_count(&count) - 2;
    let mut send = Polls::new(tx.send(&cx, 3));
    assert!(send.poll_by(&waker).is_pending() && send.poll_by(&waker).is_pending());
    assert_eq!(kept(), 1);
    rx.try_recv().unwrap();
    assert_eq!((kept(), send.poll_by(&waker)), (0, Poll::Ready(Ok(()))));
    rx.try_recv().unwrap();
    let mut recv = Polls::new(rx.recv(&cx));
    assert!(recv.poll_by(&waker).is_pending() && recv.poll_by(&waker).is_pending());
    assert_eq!(kept(), 1);
    drop(recv);
    assert_eq!(kept(), 0);
}
