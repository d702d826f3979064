use super::*;
use crate::status::{Coded, Status};
use std::cell::Cell;
use std::format;
use std::rc::Rc;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

type Numbers = Channel<u32, u32>;

const RECEIVER: u32 = 99;

fn channel(capacity: usize) -> Numbers {
    Channel::new(capacity).unwrap()
}

/// Returns a channel with all slots reserved and the given senders in line.
fn full(capacity: usize, waiting: &[u32]) -> (Numbers, Vec<WaiterId>) {
    let mut channel = channel(capacity);
    (0..capacity).for_each(|_| channel.try_reserve().unwrap());
    let places = waiting.iter().map(|&token| wait(&mut channel, token)).collect();
    channel.check().unwrap();
    (channel, places)
}

fn wait(channel: &mut Numbers, token: u32) -> WaiterId {
    let mut place = None;
    let answer = channel.reserve(&mut place, token);
    assert_eq!(answer, Ok(Reserve::Waiting(place.unwrap())));
    place.unwrap()
}

const GRANTED: Result<Reserve, Disconnected> = Ok(Reserve::Granted);

#[test]
fn capacity_zero_is_refused_and_one_suffices() {
    let error = Numbers::new(0).unwrap_err();
    assert_eq!((error, error.status()), (ZeroCapacity, Status::InvalidArgument));
    assert_eq!(error.to_string(), "a channel's capacity must be at least 1");
    let channel = channel(1);
    assert_eq!((channel.capacity(), channel.len(), channel.reserved()), (1, 0, 0));
    assert_eq!((channel.senders(), channel.waiters()), (1, 0));
    assert!(channel.is_empty() && !channel.is_receiver_closed());
    assert_eq!(channel.state(), ChannelState::Open);
}

/// The setup of a one-shot reply, in one step and in three.
#[test]
fn a_channel_with_a_permit_equals_reserve_and_drop_on_a_new_one() {
    let mut steps = channel(1);
    assert_eq!(steps.try_reserve(), Ok(()));
    assert_eq!(steps.drop_sender(), None);
    let made = Numbers::with_permit();
    assert_eq!(format!("{made:?}"), format!("{steps:?}"));
}

#[test]
fn messages_and_permits_together_never_exceed_capacity() {
    let mut channel = channel(2);
    assert_eq!(channel.reserve(&mut None, 1), GRANTED);
    assert_eq!(channel.try_send(10), Ok(None));
    assert_eq!((channel.len(), channel.reserved()), (1, 1));
    assert_eq!(channel.try_reserve(), Err(TryReserveError::Full));
    assert_eq!(channel.try_send(11), Err(TrySendError::Full(11)));
    assert_eq!(channel.send(12), Sent::Queued { wake: None });
    assert_eq!((channel.capacity(), channel.len(), channel.reserved()), (2, 2, 0));
    assert!(!channel.is_empty());
    assert_eq!(channel.try_reserve(), Err(TryReserveError::Full));
    assert_eq!(channel.messages().copied().collect::<Vec<_>>(), [10, 12]);
}

#[test]
fn messages_arrive_in_commit_order_regardless_of_reserve_order() {
    let mut channel = channel(3);
    channel.try_reserve().unwrap();
    channel.try_send(1).unwrap();
    assert_eq!(channel.send(2), Sent::Queued { wake: None });
    assert_eq!(channel.try_recv(), Ok((1, None)));
    assert_eq!(channel.recv(RECEIVER), Recv::Message { value: 2, wake: None });
    assert_eq!(channel.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
}

#[test]
fn waiting_senders_are_served_fifo() {
    let (mut channel, places) = full(1, &[1, 2, 3]);
    assert!(places[0] < places[1] && places[1] < places[2]);
    assert_eq!(places[2].0, places[0].0 + 2);
    let mut served = vec![];
    while let Some(token) = channel.abort() {
        served.push(token);
        let mut place = Some(places[token as usize - 1]);
        assert_eq!(channel.reserve(&mut place, token), GRANTED);
        assert_eq!(place, None);
    }
    assert_eq!((served, channel.reserved()), (vec![1, 2, 3], 0));
}

#[test]
fn a_freed_slot_belongs_to_the_head_and_the_line_cannot_be_bypassed() {
    let (mut channel, places) = full(1, &[1, 2]);
    assert_eq!(channel.abort(), Some(1));
    assert_eq!((channel.reserved(), channel.granted(), channel.waiters()), (1, 1, 1));
    assert!(channel.has_grant(places[0]) && !channel.has_grant(places[1]));
    assert_eq!(channel.try_reserve(), Err(TryReserveError::Full));
    assert_eq!(channel.try_send(5), Err(TrySendError::Full(5)));
    let newcomer = wait(&mut channel, 3);
    let mut second = Some(places[1]);
    assert_eq!(channel.reserve(&mut second, 2), Ok(Reserve::Waiting(places[1])));
    assert!(newcomer > places[1]);
    channel.check().unwrap();
    assert_eq!(channel.reserve(&mut Some(places[0]), 1), GRANTED);
    assert_eq!((channel.reserved(), channel.granted()), (1, 0));
}

#[test]
fn reserving_again_replaces_the_token_and_keeps_the_place() {
    let (mut channel, places) = full(1, &[1, 2]);
    let mut place = Some(places[0]);
    let answer = channel.reserve_with(&mut place, 10);
    assert_eq!(answer, (Ok(Reserve::Waiting(places[0])), Some(1)));
    assert_eq!(place, Some(places[0]));
    let seen: Vec<_> = channel.waiting().collect();
    assert_eq!(seen, [(places[0], &10), (places[1], &2)]);
    assert_eq!(channel.abort(), Some(10));
}

#[test]
fn a_place_that_is_no_longer_in_line_is_replaced_by_a_new_one() {
    let (mut channel, places) = full(1, &[1, 2]);
    let _ = channel.leave(places[0]);
    let mut place = Some(places[0]);
    let answer = channel.reserve(&mut place, 1);
    assert_eq!(answer, Ok(Reserve::Waiting(place.unwrap())));
    assert!(place.unwrap() > places[1]);
}

#[test]
fn each_freed_slot_is_granted_to_the_next_in_line() {
    let (mut channel, places) = full(2, &[1, 2, 3]);
    assert_eq!((channel.abort(), channel.abort()), (Some(1), Some(2)));
    assert_eq!((channel.reserved(), channel.granted(), channel.waiters()), (2, 2, 1));
    // Grants may be collected in any order.
    assert_eq!(channel.reserve(&mut Some(places[1]), 2), GRANTED);
    assert_eq!(channel.reserve(&mut Some(places[0]), 1), GRANTED);
    assert_eq!((channel.granted(), channel.waiters()), (0, 1));
}

#[test]
fn an_abandoned_grant_goes_to_the_next_in_line() {
    let (mut channel, places) = full(1, &[1, 2]);
    assert_eq!(channel.abort(), Some(1));
    let left = Left { was_there: true, token: None, wake: Some(2) };
    assert_eq!(channel.leave(places[0]), left);
    let left = Left { was_there: true, token: None, wake: None };
    assert_eq!(channel.leave(places[1]), left);
    assert_eq!(channel.try_reserve(), Ok(()), "no stale waiter is left in line");
}

#[test]
fn leaving_without_room_wakes_no_sender_and_returns_the_token() {
    let (mut channel, places) = full(1, &[1, 2, 3]);
    let before = (channel.len(), channel.reserved());
    let left =
        |token| Left { was_there: token > 0, token: (token > 0).then_some(token), wake: None };
    assert_eq!(channel.leave(places[1]), left(2));
    assert_eq!(channel.leave(places[0]), left(1));
    assert_eq!(channel.leave(places[0]), left(0));
    assert_eq!((channel.len(), channel.reserved()), before, "no capacity was consumed");
    assert_eq!((channel.waiters(), channel.abort()), (1, Some(3)));
}

#[test]
fn an_aborted_permit_frees_its_slot_and_wakes_the_head() {
    let (mut channel, _) = full(2, &[1]);
    assert_eq!((channel.abort(), channel.reserved(), channel.granted()), (Some(1), 2, 1));
}

#[test]
fn without_a_permit_neither_send_nor_abort_changes_anything() {
    let mut channel = channel(1);
    assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
    assert_eq!(channel.abort(), None);
    assert_eq!(channel.send(1), Sent::NoPermit { value: 1 });
    assert_eq!((channel.len(), channel.reserved()), (0, 0));
    assert_eq!(channel.receiver_waiting(), Some(&RECEIVER));
}

#[test]
fn a_granted_slot_is_no_permit_until_it_is_collected() {
    let (mut channel, places) = full(1, &[1]);
    assert_eq!(channel.abort(), Some(1));
    assert_eq!((channel.send(7), channel.abort()), (Sent::NoPermit { value: 7 }, None));
    assert_eq!((channel.reserved(), channel.granted()), (1, 1));
    assert_eq!(channel.reserve(&mut Some(places[0]), 1), GRANTED);
    assert_eq!(channel.send(8), Sent::Queued { wake: None });
}

#[test]
fn every_kind_of_send_wakes_the_receiver_once() {
    let sends: [fn(&mut Numbers) -> Option<u32>; 3] = [
        |channel| {
            channel.try_reserve().unwrap();
            match channel.send(1) {
                Sent::Queued { wake } => wake,
                _ => None,
            }
        },
        |channel| channel.try_send(1).unwrap(),
        |channel| channel.send_evict_oldest(1).unwrap().wake,
    ];
    for send in sends {
        let mut channel = channel(4);
        assert_eq!(channel.recv_with(1), (Recv::Waiting, None));
        assert_eq!(channel.recv_with(RECEIVER), (Recv::Waiting, Some(1)));
        assert_eq!(send(&mut channel), Some(RECEIVER));
        assert_eq!(send(&mut channel), None);
        assert_eq!(channel.len(), 2);
    }
}

#[test]
fn a_received_message_frees_a_slot_for_the_head() {
    let (mut channel, _) = full(2, &[1]);
    let _ = (channel.send(7), channel.send(8));
    assert_eq!(channel.recv(RECEIVER), Recv::Message { value: 7, wake: Some(1) });
    assert_eq!(channel.try_recv(), Ok((8, None)));
}

#[test]
fn a_cancelled_receive_consumes_nothing() {
    let mut channel = channel(1);
    assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
    assert_eq!((channel.cancel_recv(), channel.cancel_recv()), (Some(RECEIVER), None));
    assert_eq!(channel.try_send(1), Ok(None));
    assert_eq!((channel.cancel_recv(), channel.len()), (None, 1));
}

#[test]
fn evicting_removes_the_oldest_message_only_if_necessary() {
    let mut channel = channel(2);
    assert_eq!(channel.send_evict_oldest(1), Ok(Evicted { old: None, wake: None }));
    assert_eq!(channel.send_evict_oldest(2), Ok(Evicted { old: None, wake: None }));
    assert_eq!(channel.send_evict_oldest(3), Ok(Evicted { old: Some(1), wake: None }));
    assert_eq!(channel.messages().copied().collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn evicting_never_evicts_a_permit() {
    let (mut channel, _) = full(2, &[1]);
    assert_eq!(channel.send_evict_oldest(5), Err(TrySendError::Full(5)));
    let _ = channel.send(6);
    assert_eq!(channel.send_evict_oldest(7), Ok(Evicted { old: Some(6), wake: None }));
    assert_eq!((channel.len(), channel.reserved(), channel.waiters()), (1, 1, 1));
    channel.check().unwrap();
}

#[test]
fn evicting_revokes_an_uncollected_grant_and_its_waiter_is_the_head_again() {
    let (mut channel, places) = full(2, &[1, 2]);
    let _ = channel.send(6);
    assert_eq!(channel.abort(), Some(1));
    assert_eq!(channel.try_send(7), Err(TrySendError::Full(7)), "other sends respect the line");
    assert_eq!(channel.send_evict_oldest(7), Ok(Evicted { old: None, wake: None }));
    assert_eq!(channel.messages().copied().collect::<Vec<_>>(), [6, 7]);
    assert_eq!((channel.granted(), channel.waiters()), (0, 2));
    channel.check().unwrap();
    // It was woken before: a slot that becomes free before it retries does not wake it again.
    assert_eq!(channel.clone().try_recv(), Ok((6, None)));
    // It retries, finds no slot, and is woken for the next one.
    let mut head = Some(places[0]);
    assert_eq!(channel.reserve(&mut head, 1), Ok(Reserve::Waiting(places[0])));
    assert_eq!(channel.try_recv(), Ok((6, Some(1))));
    assert_eq!(channel.reserve(&mut head, 1), GRANTED);
    assert_eq!((head, channel.waiters()), (None, 1));
    assert_eq!(channel.send_evict_oldest(8), Ok(Evicted { old: Some(7), wake: None }));
    channel.check().unwrap();
}

#[test]
fn a_closed_receiver_returns_everything_once_and_refuses_every_sender() {
    let (mut channel, places) = full(2, &[1, 2, 3]);
    let _ = channel.send(7);
    assert_eq!(channel.try_recv(), Ok((7, Some(1))));
    let _ = channel.send(8);
    let closed = channel.close_receiver();
    assert_eq!(
        (closed.messages, closed.wakes.collect::<Vec<_>>(), closed.receiver),
        (vec![8].into(), vec![2, 3], None)
    );
    assert!(channel.is_receiver_closed());
    let again = channel.close_receiver();
    assert!(again.messages.is_empty() && again.wakes.count() == 0 && channel.is_receiver_closed());
    for place in [Some(places[0]), Some(places[2]), None] {
        let mut place = place;
        assert_eq!(channel.reserve_with(&mut place, 4), (Err(Disconnected), Some(4)));
        assert_eq!(place, None);
    }
    assert_eq!(channel.try_reserve(), Err(TryReserveError::Disconnected));
    assert_eq!(channel.try_send(9), Err(TrySendError::Disconnected(9)));
    assert_eq!(channel.send_evict_oldest(9), Err(TrySendError::Disconnected(9)));
    assert_eq!(channel.try_recv(), Err(TryRecvError::Disconnected));
    assert_eq!(channel.recv_with(RECEIVER), (Recv::Disconnected, Some(RECEIVER)));
    assert_eq!(channel.state(), ChannelState::ReceiverClosed);
}

#[test]
fn a_closing_receiver_gets_its_own_token_back() {
    let mut channel = channel(1);
    assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
    assert_eq!(channel.close_receiver().receiver, Some(RECEIVER));
    assert_eq!(channel.receiver_waiting(), None);
}

#[test]
fn a_permit_outlives_the_receiver_and_still_frees_its_slot() {
    let (mut channel, _) = full(2, &[]);
    let _ = channel.close_receiver();
    assert_eq!((channel.send(1), channel.reserved()), (Sent::Refused { value: 1 }, 1));
    assert_eq!((channel.abort(), channel.reserved(), channel.len()), (None, 0, 0));
}

#[test]
fn the_last_sender_wakes_the_receiver_after_the_queue_is_drained() {
    let mut idle = channel(1);
    assert!(idle.add_sender());
    assert_eq!((idle.senders(), idle.recv(RECEIVER)), (2, Recv::Waiting));
    assert_eq!((idle.drop_sender(), idle.drop_sender()), (None, Some(RECEIVER)));
    assert_eq!(idle.recv(RECEIVER), Recv::Disconnected);

    let mut queued = channel(1);
    queued.try_send(1).unwrap();
    assert_eq!((queued.drop_sender(), queued.state()), (None, ChannelState::SenderClosed));
    assert_eq!(queued.recv(RECEIVER), Recv::Message { value: 1, wake: None });
    assert_eq!(queued.recv(RECEIVER), Recv::Disconnected);
    assert_eq!(queued.try_recv(), Err(TryRecvError::Disconnected));
    let _ = queued.close_receiver();
    assert_eq!(queued.state(), ChannelState::FullyClosed);
}

#[test]
fn no_sender_can_be_added_after_the_last() {
    let mut channel = channel(1);
    assert_eq!((channel.drop_sender(), channel.drop_sender()), (None, None));
    assert!(!channel.add_sender());
    assert_eq!(channel.senders(), 0);
    assert_eq!(channel.reserve_with(&mut None, 1), (Err(Disconnected), Some(1)));
    assert_eq!(channel.try_reserve(), Err(TryReserveError::Disconnected));
    assert_eq!(channel.state(), ChannelState::SenderClosed);
}

#[test]
fn a_live_permit_keeps_its_sender_counted() {
    for resolve in [Numbers::abort, |channel: &mut Numbers| match channel.send(1) {
        Sent::Queued { wake } => wake,
        _ => None,
    }] {
        let (mut channel, _) = full(1, &[]);
        assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
        assert_eq!((channel.drop_sender(), channel.senders()), (None, 0));
        assert_eq!(channel.state(), ChannelState::Open);
        assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
        assert_eq!(resolve(&mut channel), Some(RECEIVER));
        assert_eq!(channel.state(), ChannelState::SenderClosed);
    }
    let (mut channel, _) = full(1, &[]);
    assert_eq!(channel.drop_sender(), None);
    assert!(channel.add_sender(), "a weak sender can be upgraded while the permit is live");
}

#[test]
fn a_waiting_sender_is_still_a_sender() {
    let (mut channel, places) = full(1, &[1]);
    assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
    assert_eq!((channel.drop_sender(), channel.abort()), (None, Some(1)));
    assert_eq!(channel.state(), ChannelState::Open);
    let left = Left { was_there: true, token: None, wake: Some(RECEIVER) };
    assert_eq!(channel.leave(places[0]), left);
    assert_eq!(channel.state(), ChannelState::SenderClosed);
}

#[test]
fn draining_receives_all_messages_and_advances_the_line() {
    let (mut channel, places) = full(2, &[1, 2]);
    let _ = (channel.send(7), channel.send(8));
    assert_eq!(channel.drain(), (vec![7, 8].into(), vec![1, 2]));
    assert!(places.iter().all(|place| channel.has_grant(*place)));
    assert_eq!(channel.drain(), (vec![].into(), vec![]));
    assert_eq!(channel.len(), 0);
}

#[test]
fn errors_have_their_code_and_return_the_value() {
    struct Opaque(u8);
    let error = TrySendError::Full(Opaque(3));
    assert_eq!((error.status(), format!("{error:?}")), (Status::Full, "Full(..)".into()));
    assert_eq!(error.to_string(), Status::Full.text());
    assert_eq!(error.into_inner().0, 3);
    let error = TrySendError::Disconnected(Opaque(4));
    assert_eq!(
        (error.status(), format!("{error:?}")),
        (Status::Disconnected, "Disconnected(..)".into())
    );
    assert_eq!(error.into_inner().0, 4);
    let codes = [
        (Disconnected.status(), Disconnected.to_string()),
        (TryReserveError::Disconnected.status(), TryReserveError::Disconnected.to_string()),
        (TryReserveError::Full.status(), TryReserveError::Full.to_string()),
        (TryRecvError::Empty.status(), TryRecvError::Empty.to_string()),
        (TryRecvError::Disconnected.status(), TryRecvError::Disconnected.to_string()),
    ];
    use Status::{Disconnected as Gone, Empty, Full};
    let expected = [Gone, Gone, Full, Empty, Gone].map(|code| (code, code.text().into()));
    assert_eq!(codes, expected);
}

#[test]
fn check_reports_each_broken_rule() {
    let broken = |capacity, waiting: &[u32], harm: fn(&mut Numbers)| {
        let (mut channel, _) = full(capacity, waiting);
        harm(&mut channel);
        channel.check().unwrap_err()
    };
    assert_eq!(broken(1, &[], |c| c.reserved = 2), "more slots are used than exist");
    assert_eq!(broken(1, &[], |c| c.queue.push_back(1)), "more slots are used than exist");
    let order = "the waiters are out of order";
    assert_eq!(broken(1, &[1, 2], |c| c.waiters.line.make_contiguous().reverse()), order);
    assert_eq!(broken(1, &[1, 2], |c| c.waiters.line[1].id = c.waiters.line[0].id), order);
    assert_eq!(broken(1, &[1], |c| c.waiters.next -= 1), order);
    assert_eq!(broken(1, &[1], |c| c.reserved = 0), "a sender waits although a slot is free");
    let grants = "the grants are out of order";
    assert_eq!(broken(1, &[1], |c| c.granted.push_back(WaiterId(7))), grants);
    assert_eq!(broken(2, &[], |c| c.granted.extend([WaiterId(1), WaiterId(0)])), grants);
    let more = "more grants than reserved slots";
    assert_eq!(broken(1, &[], |c| c.granted.extend([WaiterId(0), WaiterId(1)])), more);
    let beside = "the receiver waits although a message is queued";
    let harm: fn(&mut Numbers) = |c| {
        c.receiver = Some(RECEIVER);
        c.queue.push_back(1);
        c.reserved = 0;
    };
    assert_eq!(broken(1, &[], harm), beside);
    let alone = "the receiver waits although no sender is left";
    let harm: fn(&mut Numbers) = |c| {
        c.receiver = Some(RECEIVER);
        (c.senders, c.reserved) = (0, 0);
    };
    assert_eq!(broken(1, &[], harm), alone);
    let behind = "a closed receiver has left something behind";
    assert_eq!(broken(1, &[1], |c| c.receiving = Receiving::Nothing), behind);
    let harms: [fn(&mut Numbers); 2] = [|c| c.queue.push_back(1), |c| c.receiver = Some(RECEIVER)];
    for harm in harms {
        let mut channel = channel(1);
        channel.receiving = Receiving::Nothing;
        channel.check().unwrap();
        harm(&mut channel);
        assert_eq!(channel.check(), Err(behind));
    }
    let refused = "a sender waits although senders are refused";
    assert_eq!(broken(1, &[1], |c| c.receiving = Receiving::Rest), refused);
    let harm: fn(&mut Numbers) = |c| {
        c.receiver = Some(RECEIVER);
        c.reserved = 0;
        c.receiving = Receiving::Rest;
    };
    assert_eq!(broken(1, &[], harm), alone);
}

#[test]
fn a_channel_that_refuses_senders_delivers_sent_and_permitted_messages() {
    let (mut channel, places) = full(2, &[1, 2]);
    assert_eq!(channel.send(10), Sent::Queued { wake: None });
    let refused = channel.refuse_senders();
    assert_eq!((refused.wakes.collect::<Vec<_>>(), refused.receiver), (vec![1, 2], None));
    assert!(channel.is_refusing() && !channel.is_receiver_closed());
    assert_eq!(channel.state(), ChannelState::Open);
    assert_eq!(channel.reserve(&mut Some(places[0]), 1), Err(Disconnected));
    assert_eq!(channel.try_reserve(), Err(TryReserveError::Disconnected));
    assert_eq!(channel.try_reserve_many(9), Err(TryReserveManyError::Disconnected));
    assert_eq!(channel.try_send(5), Err(TrySendError::Disconnected(5)));
    assert_eq!(channel.send_evict_oldest(5), Err(TrySendError::Disconnected(5)));
    assert_eq!(channel.recv(RECEIVER), Recv::Message { value: 10, wake: None });
    assert_eq!(channel.recv(RECEIVER), Recv::Waiting, "a permit is outstanding");
    assert_eq!(channel.send(11), Sent::Queued { wake: Some(RECEIVER) });
    assert_eq!(channel.recv(RECEIVER), Recv::Message { value: 11, wake: None });
    assert_eq!(channel.recv(RECEIVER), Recv::Disconnected, "although a sender exists");
    channel.check().unwrap();
}

#[test]
fn the_last_permit_of_a_refusing_channel_wakes_the_receiver() {
    let mut channel = channel(1);
    channel.try_reserve().unwrap();
    assert_eq!(channel.recv(RECEIVER), Recv::Waiting);
    assert_eq!(channel.refuse_senders().receiver, None, "the permit may send");
    assert_eq!(channel.abort(), Some(RECEIVER));
    let mut idle = super::tests::channel(1);
    assert_eq!(idle.recv(RECEIVER), Recv::Waiting);
    assert_eq!(idle.refuse_senders().receiver, Some(RECEIVER));
    let _ = idle.close_receiver();
    let again = idle.refuse_senders();
    assert!(
        again.receiver.is_none() && idle.is_receiver_closed(),
        "a closed receiver stays closed"
    );
}

#[test]
fn several_slots_are_collected_in_order_and_wake_once() {
    let mut channel = channel(3);
    channel.try_reserve_many(2).unwrap();
    let mut many = None;
    let asked = channel.reserve_many_with(&mut many, 3, 1);
    assert!(matches!(asked, (Ok(Reserve::Waiting(_)), None)));
    assert_eq!((channel.reserved(), channel.granted(), channel.waiters()), (3, 1, 2));
    let last = wait(&mut channel, 2);
    assert_eq!(channel.abort(), None, "one slot is missing");
    assert_eq!(channel.abort(), Some(1));
    channel.check().unwrap();
    assert_eq!(channel.reserve_many_with(&mut many, 3, 1), (Ok(Reserve::Granted), Some(1)));
    assert_eq!((many, channel.reserved(), channel.granted()), (None, 3, 0));
    assert_eq!(channel.abort(), Some(2));
    assert!(channel.has_grant(last));
}

#[test]
fn a_request_for_more_slots_than_exist_is_refused_immediately() {
    let mut channel = channel(2);
    for count in [3, usize::MAX] {
        let mut many = None;
        let asked = channel.reserve_many_with(&mut many, count, 1);
        assert_eq!((asked, many), ((Err(ReserveManyRefused::TooMany), Some(1)), None));
        assert_eq!(channel.try_reserve_many(count), Err(TryReserveManyError::TooMany));
    }
    channel.try_reserve_many(2).unwrap();
    assert_eq!(channel.try_reserve_many(3), Err(TryReserveManyError::TooMany), "even if full");
    assert_eq!(channel.try_reserve_many(2), Err(TryReserveManyError::Full));
    assert_eq!(channel.try_reserve_many(0), Ok(()));
    let _ = channel.refuse_senders();
    let asked = channel.reserve_many_with(&mut None, 3, 1).0;
    assert_eq!(asked, Err(ReserveManyRefused::Disconnected));
    assert_eq!((channel.reserved(), channel.waiters()), (2, 0));
}

#[test]
fn a_waiter_that_leaves_passes_on_all_its_slots() {
    let mut channel = channel(2);
    channel.try_reserve().unwrap();
    let mut many = None;
    let _ = channel.reserve_many_with(&mut many, 2, 1);
    let places = [wait(&mut channel, 2), wait(&mut channel, 3)];
    assert_eq!(channel.abort(), Some(1));
    let left = channel.leave_many(many.unwrap());
    assert_eq!(left, LeftMany { was_there: true, token: None, wakes: vec![2, 3] });
    assert!(places.iter().all(|place| channel.has_grant(*place)));
    channel.check().unwrap();
}

/// Counts its drops.
struct Counted(Rc<Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_channel_drops_no_token_and_no_message() {
    fn keep<A>(answer: A) {
        core::mem::forget(answer);
    }
    let drops = Rc::new(Cell::new(0));
    let new = || Counted(drops.clone());
    let mut channel: Channel<Counted, Counted> = Channel::new(1).unwrap();
    let mut first = None;
    let mut second = None;
    keep(channel.reserve_with(&mut None, new()));
    keep(channel.reserve_with(&mut first, new()));
    keep(channel.reserve_with(&mut first, new()));
    keep(channel.reserve_with(&mut second, new()));
    keep(channel.recv_with(new()));
    keep(channel.recv_with(new()));
    keep(channel.send(new()));
    keep(channel.send_evict_oldest(new()));
    keep(channel.try_send(new()));
    keep(channel.recv_with(new()));
    keep(channel.reserve_with(&mut first, new()));
    keep(channel.abort());
    keep(channel.leave(second.unwrap()));
    keep(channel.recv_with(new()));
    keep(channel.cancel_recv());
    keep(channel.try_send(new()));
    keep(channel.drain());
    keep(channel.try_reserve());
    let mut many = None;
    keep(channel.reserve_many_with(&mut many, 1, new()));
    keep(channel.reserve_many_with(&mut many, 1, new()));
    keep(channel.leave_many(many.unwrap()));
    keep(channel.refuse_senders());
    keep(channel.close_receiver());
    keep(channel.reserve_with(&mut None, new()));
    keep(channel.send(new()));
    keep(channel.try_send(new()));
    keep(channel.recv_with(new()));
    assert_eq!((channel.len(), channel.waiters(), channel.reserved()), (0, 0, 0));
    assert_eq!(drops.get(), 0);
}
