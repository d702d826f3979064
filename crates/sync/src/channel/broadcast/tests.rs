use asx_task::testing::{Polls, cancelled_cx, live_cx};

use super::*;

#[test]
fn everybody_sees_every_message_sent_since_they_subscribed() {
    let (tx, mut one) = broadcast(4);
    assert_eq!(tx.send(1), Ok(1));
    let mut two = tx.subscribe();
    assert_eq!((tx.send(2), tx.subscribers()), (Ok(2), 2));
    assert_eq!((one.len(), two.len()), (2, 1));
    assert_eq!((one.try_recv(), one.try_recv()), (Ok(1), Ok(2)));
    assert_eq!((two.try_recv(), two.try_recv()), (Ok(2), Err(TryListenError::Empty)));
    assert!(tx.is_empty() && one.is_empty(), "what all have seen is not kept");
}

#[test]
fn a_slow_subscriber_learns_exactly_what_it_missed_and_blocks_nobody() {
    let (tx, mut slow) = broadcast(2);
    let mut quick = tx.subscribe();
    for n in 0..7 {
        assert_eq!((tx.send(n), quick.try_recv()), (Ok(2), Ok(n)));
    }
    assert_eq!((tx.len(), slow.len()), (2, 2));
    assert_eq!(slow.try_recv(), Err(TryListenError::Lagged(5)));
    assert_eq!((slow.try_recv(), slow.try_recv()), (Ok(5), Ok(6)));
    assert_eq!(slow.try_recv(), Err(TryListenError::Empty));
    (0..3).for_each(|n| assert!(tx.send(n).is_ok()));
    assert_eq!(Polls::new(slow.recv(&live_cx())).ready(), Err(ListenError::Lagged(1)));
}

#[test]
fn a_message_wakes_all_who_wait_once_in_order() {
    let (cx, (tx, mut one)) = (live_cx(), broadcast(1));
    let mut two = tx.subscribe();
    let mut first = Polls::new(one.recv(&cx));
    let mut second = Polls::new(two.recv(&cx));
    assert!(first.is_pending() && second.is_pending() && first.is_pending());
    tx.send(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
    assert_eq!((first.ready(), second.ready()), (Ok(1), Ok(1)));
}

#[test]
fn the_last_sender_wakes_all_who_wait_and_the_rest_is_seen_first() {
    let (cx, (tx, mut one)) = (live_cx(), broadcast(1));
    let other = tx.clone();
    let mut late = tx.subscribe();
    let mut waiting = Polls::new(one.recv(&cx));
    assert!(waiting.is_pending());
    drop(tx);
    assert_eq!(waiting.wakes(), 0);
    other.send(1).unwrap();
    assert_eq!(waiting.ready(), Ok(1));
    drop((waiting, other));
    assert_eq!((late.try_recv(), late.try_recv()), (Ok(1), Err(TryListenError::Disconnected)));
    assert_eq!(Polls::new(one.recv(&cx)).ready(), Err(ListenError::Disconnected));
}

#[test]
fn without_sender_those_who_wait_are_woken() {
    let (cx, (tx, mut rx)) = (live_cx(), broadcast::<u8>(1));
    let mut waiting = Polls::new(rx.recv(&cx));
    assert!(waiting.is_pending());
    drop(tx);
    assert_eq!((waiting.wakes(), waiting.ready()), (1, Err(ListenError::Disconnected)));
}

#[test]
fn a_dropped_or_cancelled_wait_takes_nothing_and_leaves_the_line() {
    let (cx, (tx, mut rx)) = (live_cx(), broadcast(1));
    let mut waiting = Polls::new(rx.recv(&cx));
    assert!(waiting.is_pending());
    drop(waiting);
    assert!(lock(&tx.ring).line.wake_all().is_empty());
    tx.send(1).unwrap();
    let stopped = cancelled_cx();
    assert!(matches!(Polls::new(rx.recv(&stopped)).ready(), Err(ListenError::Cancelled(_))));
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn a_subscriber_that_goes_takes_along_what_only_it_had_yet_to_see() {
    let (tx, mut one) = broadcast(8);
    let two = tx.subscribe();
    (0..4).for_each(|n| assert!(tx.send(n).is_ok()));
    assert_eq!((one.try_recv(), one.try_recv()), (Ok(0), Ok(1)));
    assert_eq!(tx.len(), 4);
    drop(two);
    assert_eq!((tx.len(), one.try_recv(), one.try_recv()), (2, Ok(2), Ok(3)));
    drop(one);
    assert_eq!((tx.send(9), tx.len()), (Err(Disconnected(9)), 0));
    let mut back = tx.subscribe();
    assert_eq!((tx.send(10), back.try_recv()), (Ok(1), Ok(10)));
}

#[test]
fn a_lagged_subscriber_that_goes_leaves_the_others_their_messages() {
    let (tx, slow) = broadcast(2);
    let mut quick = tx.subscribe();
    (0..3).for_each(|n| assert!(tx.send(n).is_ok()));
    drop(slow);
    assert_eq!(quick.try_recv(), Err(TryListenError::Lagged(1)));
    assert_eq!((quick.try_recv(), quick.try_recv()), (Ok(1), Ok(2)));
}

#[test]
#[should_panic(expected = "a channel's capacity must be at least 1")]
fn no_room_at_all_is_refused() {
    let _ = broadcast::<u8>(0);
}

#[test]
fn the_last_subscriber_wakes_those_who_wait_for_the_close() {
    let (cx, (tx, one)) = (live_cx(), broadcast::<u8>(1));
    let two = one.resubscribe();
    let mut closed = Polls::new(tx.closed(&cx));
    assert!(Polls::new(tx.closed(&cx)).is_pending(), "dropped at once");
    assert!(closed.is_pending() && !tx.is_closed());
    drop(one);
    assert_eq!(closed.wakes(), 0);
    drop(two);
    assert_eq!((closed.wakes(), closed.ready(), tx.is_closed()), (1, Ok(()), true));
    assert!(Polls::new(tx.closed(&cancelled_cx())).ready().is_err());
    let _again = tx.subscribe();
    assert!(closed.is_pending(), "somebody listens again");
    assert!(!lock(&tx.ring).closed.wake_all().is_empty());
}

#[test]
fn who_subscribes_again_begins_with_the_next_message() {
    let (tx, mut one) = broadcast(4);
    tx.send(1).unwrap();
    let mut two = one.resubscribe();
    assert_eq!((tx.send(2), one.len(), two.len()), (Ok(2), 2, 1));
    assert_eq!((two.try_recv(), one.try_recv(), one.try_recv()), (Ok(2), Ok(1), Ok(2)));
    let other = tx.clone();
    assert_eq!((tx.publishers(), tx.same_channel(&other), one.is_closed()), (2, true, false));
    drop((tx, other));
    assert!(one.is_closed() && two.is_closed());
    assert_eq!(two.resubscribe().try_recv(), Err(TryListenError::Disconnected));
}

#[test]
fn messages_that_are_not_sync_go_to_several_threads() {
    use std::cell::Cell;
    fn shared<T: Send + Sync>(_: &T) {}
    let (tx, rx) = broadcast(64);
    shared(&tx);
    shared(&rx);
    let listen = |mut rx: Subscriber<Cell<u32>>| {
        move || (0..50).map(|_| rx.try_recv().unwrap().into_inner()).sum::<u32>()
    };
    let others = [rx.resubscribe(), rx.resubscribe(), rx];
    (0..50).for_each(|n| assert_eq!(tx.send(Cell::new(n)), Ok(3)));
    std::thread::scope(|s| {
        let sums = others.map(|rx| s.spawn(listen(rx)));
        sums.into_iter().for_each(|sum| assert_eq!(sum.join().unwrap(), 1225));
    });
    assert!(tx.is_empty());
}

#[test]
fn a_clone_that_panics_loses_the_message_for_nobody_else() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    struct Panics(u8, Arc<AtomicBool>);
    impl Clone for Panics {
        fn clone(&self) -> Self {
            assert!(!self.1.swap(false, Ordering::Relaxed), "a hostile clone");
            Panics(self.0, self.1.clone())
        }
    }
    let (tx, mut one) = broadcast(2);
    let mut two = tx.subscribe();
    let mut three = tx.subscribe();
    let armed = Arc::new(AtomicBool::new(true));
    assert!(tx.send(Panics(7, armed)).is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| one.try_recv())).is_err());
    assert!(two.try_recv().is_ok_and(|got| got.0 == 7));
    assert!(three.try_recv().is_ok_and(|got| got.0 == 7));
    assert!(tx.is_empty(), "who could not clone it has seen it");
}

#[test]
fn a_receive_that_skips_what_was_missed_has_the_errors_of_other_channels() {
    let (cx, (tx, mut rx)) = (live_cx(), broadcast(2));
    (1..=5).for_each(|n| assert_eq!(tx.send(n), Ok(1)));
    assert_eq!(Polls::new(rx.recv(&cx).skip_lagged()).ready(), Ok(4));
    let stopped = Polls::new(rx.recv(&cancelled_cx()).skip_lagged()).ready();
    assert!(matches!(stopped, Err(RecvError::Cancelled(_))), "and takes nothing");
    assert_eq!(Polls::new(rx.recv(&cx).skip_lagged()).ready(), Ok(5));
    let mut waits = Polls::new(rx.recv(&cx).skip_lagged());
    assert!(waits.is_pending());
    (6..=9).for_each(|n| assert_eq!(tx.send(n), Ok(1)));
    assert_eq!((waits.wakes(), waits.ready()), (1, Ok(8)));
    drop(waits);
    drop(tx);
    assert_eq!(Polls::new(rx.recv(&cx).skip_lagged()).ready(), Ok(9));
    assert_eq!(Polls::new(rx.recv(&cx).skip_lagged()).ready(), Err(RecvError::Disconnected));
}
