//! What happens when a side goes, and what never happens under the lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use asx_task::testing::Count;

use super::*;

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
    let permit = tx.try_reserve().unwrap();
    let owned = tx.try_reserve_owned().unwrap();
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
    let mut one = Polls::new(tx.send(&cx, 5));
    let mut two = Polls::new(tx.send(&cx, 6));
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
    assert_eq!(rx.close_and_take(), [0, 1]);
    assert!(rx.close_and_take().is_empty() && tx.is_closed());
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
    let count = Arc::<Count>::default();
    let waker = Waker::from(count.clone());
    let kept = || Arc::strong_count(&count) - 2;
    let mut send = Polls::new(tx.send(&cx, 3));
    assert!(send.poll_by(&waker).is_pending() && send.poll_by(&waker).is_pending());
    assert_eq!(kept(), 2, "one for a slot, one for a cancel");
    rx.try_recv().unwrap();
    assert_eq!((kept(), send.poll_by(&waker)), (1, Poll::Ready(Ok(()))));
    drop(send);
    assert_eq!(kept(), 0);
    rx.try_recv().unwrap();
    let mut recv = Polls::new(rx.recv(&cx));
    assert!(recv.poll_by(&waker).is_pending() && recv.poll_by(&waker).is_pending());
    assert_eq!(kept(), 2);
    drop(recv);
    assert_eq!(kept(), 0);
}
