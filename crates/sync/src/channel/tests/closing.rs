//! A channel that takes no more senders, and who waits for that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use asx_task::testing::cancelled_cx;

use super::*;
use crate::channel::unbounded;

#[test]
fn a_closed_channel_is_drained_and_then_disconnected() {
    let (cx, (tx, mut rx)) = (live_cx(), full(3));
    rx.close();
    rx.close();
    assert!(tx.is_closed() && rx.is_closed());
    assert_eq!(tx.try_send(9), Err(TrySendError::Disconnected(9)));
    assert_eq!(tx.send_evict_oldest(9), Err(TrySendError::Disconnected(9)));
    assert_eq!(Polls::new(tx.send(&cx, 9)).ready(), Err(SendError::Disconnected(9)));
    assert_eq!(Polls::new(rx.recv(&cx)).ready(), Ok(0));
    let mut taken = Vec::new();
    assert_eq!(Polls::new(rx.recv_many(&cx, &mut taken, 9)).ready(), Ok(2));
    assert_eq!(taken, [1, 2]);
    assert_eq!(Polls::new(rx.recv(&cx)).ready(), Err(RecvError::Disconnected));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(tx.senders(), 1, "although there is a sender");
}

#[test]
fn permits_of_a_closed_channel_still_send_and_the_last_ends_it() {
    let (cx, (tx, mut rx)) = (live_cx(), bounded(3));
    let one = tx.try_reserve().unwrap();
    let other = tx.try_reserve_owned().unwrap();
    let tracked = tx.clone().tracked().try_reserve().unwrap();
    rx.close();
    one.send(1);
    let _ = tracked.send(2);
    assert_eq!(
        (rx.try_recv(), rx.try_recv(), rx.try_recv()),
        (Ok(1), Ok(2), Err(TryRecvError::Empty))
    );
    let mut recv = Polls::new(rx.recv(&cx));
    assert!(recv.is_pending(), "a permit is out");
    other.abort();
    assert_eq!((recv.wakes(), recv.ready()), (1, Err(RecvError::Disconnected)));
    check(&tx);
}

#[test]
fn a_close_wakes_senders_in_line_and_those_that_had_been_granted_a_slot() {
    let (cx, (tx, mut rx)) = (live_cx(), full(2));
    let mut granted = Polls::new(tx.send(&cx, 5));
    let mut waiting = Polls::new(tx.reserve(&cx));
    let mut several = Polls::new(tx.reserve_many(&cx, 2));
    assert!(granted.is_pending() && waiting.is_pending() && several.is_pending());
    assert_eq!((rx.try_recv(), granted.wakes()), (Ok(0), 1));
    rx.close();
    assert_eq!((granted.wakes(), waiting.wakes(), several.wakes()), (0, 1, 1));
    assert_eq!(granted.ready(), Err(SendError::Disconnected(5)));
    assert_eq!(waiting.ready().unwrap_err(), SendError::Disconnected(()));
    assert_eq!(several.ready().unwrap_err(), ReserveManyError::Disconnected);
    check(&tx);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Err(TryRecvError::Disconnected)));
}

#[test]
fn a_receiver_is_closed_when_no_sender_is_left() {
    let (tx, rx) = full(1);
    let permit = tx.try_reserve_owned();
    assert!(permit.is_err() && !rx.is_closed());
    let other = tx.clone();
    assert_eq!((tx.senders(), rx.senders()), (2, 2));
    drop((tx, other));
    assert!(rx.is_closed() && rx.len() == 1, "messages may be left");
    let (reply, answer) = oneshot::<u8>();
    assert!(!answer.is_closed());
    drop(reply);
    assert!(answer.is_closed());
}

#[test]
fn whoever_waits_for_the_close_is_woken_by_either_way_to_close() {
    for drains in [true, false] {
        let (cx, (tx, mut rx)) = (live_cx(), bounded::<u8>(1));
        let clone = tx.clone();
        let mut one = Polls::new(tx.closed(&cx));
        let mut two = Polls::new(clone.closed(&cx));
        assert!(one.is_pending() && two.is_pending() && one.is_pending());
        if drains {
            rx.close();
        } else {
            drop(rx);
        }
        assert_eq!((one.wakes(), two.wakes()), (1, 1));
        assert_eq!((one.ready(), two.ready()), (Ok(()), Ok(())));
        assert_eq!(Polls::new(tx.closed(&cx)).ready(), Ok(()));
    }
}

#[test]
fn every_kind_of_sender_can_wait_for_the_close() {
    let cx = live_cx();
    let (tx, rx) = unbounded::<u8>();
    let mut closed = Polls::new(tx.closed(&cx));
    assert!(closed.is_pending());
    drop(rx);
    assert_eq!((closed.wakes(), closed.ready()), (1, Ok(())));
    let (tx, rx) = session::bounded::<u8>(1);
    let mut closed = Polls::new(tx.closed(&cx));
    assert!(closed.is_pending() && !tx.is_closed());
    drop(rx);
    assert_eq!((closed.wakes(), closed.ready(), tx.is_closed()), (1, Ok(()), true));
    let (reply, mut answer) = oneshot::<u8>();
    let mut closed = Polls::new(reply.closed(&cx));
    assert!(closed.is_pending());
    assert_eq!(answer.close(), None);
    assert_eq!((closed.wakes(), closed.ready()), (1, Ok(())));
    drop(closed);
    assert_eq!(reply.send(1), Err(Disconnected(1)));
}

#[test]
fn a_wait_for_the_close_that_is_dropped_or_cancelled_leaves_nothing_behind() {
    let (cx, cancel) = Cx::loose();
    let (tx, rx) = bounded::<u8>(1);
    assert!(Polls::new(tx.closed(&cx)).is_pending());
    let mut waiting = Polls::new(tx.closed(&cx));
    assert!(waiting.is_pending());
    cancel(reason());
    assert!(waiting.ready().is_err());
    assert!(Polls::new(tx.closed(&cancelled_cx())).ready().is_err(), "a cancel counts for more");
    drop(rx);
    assert_eq!(waiting.wakes(), 0);
    assert!(Polls::new(tx.closed(&cancelled_cx())).ready().is_err());
}

/// Panics when woken, and counts.
struct Hostile(AtomicUsize);

impl Wake for Hostile {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a hostile waker");
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_learning_of_the_close() {
    for drains in [true, false] {
        let (cx, (tx, mut rx)) = (live_cx(), bounded::<u8>(1));
        tx.try_send(1).unwrap();
        let hostile = Arc::new(Hostile(AtomicUsize::new(0)));
        let waker = Waker::from(hostile.clone());
        let mut first = Polls::new(tx.closed(&cx));
        let mut sender = Polls::new(tx.reserve(&cx));
        assert!(first.poll_by(&waker).is_pending() && sender.poll_by(&waker).is_pending());
        let mut second = Polls::new(tx.closed(&cx));
        let mut behind = Polls::new(tx.reserve_many(&cx, 1));
        assert!(second.is_pending() && behind.is_pending());
        let closed = catch_unwind(AssertUnwindSafe(|| match drains {
            true => rx.close(),
            false => drop(rx.close_and_take()),
        }));
        assert!(closed.is_ok(), "it is contained");
        assert_eq!((hostile.0.load(Ordering::Relaxed), second.wakes(), behind.wakes()), (2, 1, 1));
        assert!(first.ready().is_ok() && sender.ready().is_err());
    }
}

#[test]
fn several_slots_are_had_at_once_and_given_back_if_not_used() {
    let (cx, (tx, mut rx)) = (live_cx(), full(3));
    let mut several = Polls::new(tx.reserve_many(&cx, 2));
    let mut next = Polls::new(tx.reserve(&cx));
    assert!(several.is_pending() && next.is_pending());
    assert_eq!((rx.try_recv(), several.wakes(), next.wakes()), (Ok(0), 0, 0));
    assert!(several.is_pending(), "one is missing");
    assert_eq!((rx.try_recv(), several.wakes(), next.wakes()), (Ok(1), 1, 0));
    let mut permits = several.ready().unwrap();
    assert_eq!((permits.len(), tx.capacity(), tx.max_capacity()), (2, 0, 3));
    permits.next().unwrap().send(7);
    drop(permits);
    assert_eq!(next.wakes(), 1);
    next.ready().unwrap().send(8);
    assert_eq!(queued(&tx), [2, 7, 8]);
    check(&tx);
}

#[test]
fn a_wait_for_several_slots_that_goes_passes_on_what_it_had_gathered() {
    let (cx, cancel) = Cx::loose();
    let live = live_cx();
    for cancels in [false, true] {
        let (tx, mut rx) = full(2);
        let mut several = Polls::new(tx.reserve_many(&cx, 2));
        let mut one = Polls::new(tx.reserve(&live));
        let mut two = Polls::new(tx.send(&live, 9));
        assert!(several.is_pending() && one.is_pending() && two.is_pending());
        assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(0), Ok(1)));
        assert_eq!((several.wakes(), one.wakes(), two.wakes()), (1, 0, 0));
        if cancels {
            cancel(reason());
            assert!(matches!(several.ready(), Err(ReserveManyError::Cancelled(_))));
        } else {
            drop(several);
        }
        assert_eq!((one.wakes(), two.wakes()), (1, 1));
        assert!(one.ready().is_ok() && two.ready().is_ok());
        check(&tx);
        if cancels {
            return;
        }
    }
}

#[test]
fn several_slots_can_be_tried_for_and_more_than_there_are_are_refused() {
    let (cx, (tx, rx)) = (live_cx(), bounded::<u8>(2));
    assert_eq!(tx.try_reserve_many(2).unwrap().map(Permit::abort).count(), 2);
    let permits = tx.try_reserve_many(1).unwrap();
    assert_eq!(tx.try_reserve_many(2).unwrap_err(), TryReserveManyError::Full);
    assert_eq!(Polls::new(tx.reserve_many(&cx, 0)).ready().unwrap().len(), 0);
    drop(permits);
    assert_eq!(tx.capacity(), 2);
    for count in [3, usize::MAX] {
        assert_eq!(tx.try_reserve_many(count).unwrap_err(), TryReserveManyError::TooMany);
        let refused = Polls::new(tx.reserve_many(&cx, count)).ready().unwrap_err();
        assert_eq!(refused, ReserveManyError::TooMany);
    }
    drop(rx);
    let gone = Polls::new(tx.reserve_many(&cx, 3)).ready().unwrap_err();
    assert_eq!(gone, ReserveManyError::Disconnected);
}
