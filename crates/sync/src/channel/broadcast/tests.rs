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
