//! The channel law: its invariants hold after every operation, and no message is lost, duplicated
//! or reordered.
#![no_main]

use asx_fuzz::Ops;
use asx_kernel::channel::{Channel, Recv, Reserve, Sent, TrySendError, WaiterId};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

fuzz_target!(|bytes: &[u8]| {
    let mut ops = Ops::new(bytes);
    let Ok(mut channel) = Channel::<u32, usize>::new(ops.below(5)) else { return };
    let mut expected: VecDeque<u32> = VecDeque::new();
    let mut places: [Option<WaiterId>; 6] = [None; 6];
    let mut permits = 0_usize;
    let mut message = 0;
    while !ops.is_done() {
        message += 1;
        match ops.below(12) {
            0 | 1 => {
                let who = ops.below(places.len());
                let before = places[who];
                match channel.reserve(&mut places[who], who) {
                    Ok(Reserve::Granted) => {
                        assert_eq!(places[who], None);
                        permits += 1;
                    }
                    Ok(Reserve::Waiting(id)) => {
                        assert!(before.is_none_or(|place| place == id));
                    }
                    Err(_) => assert_eq!(places[who], None),
                }
            }
            2 => {
                let who = ops.below(places.len());
                if let Some(place) = places[who].take() {
                    let _ = channel.leave(place);
                }
            }
            3 => permits += usize::from(channel.try_reserve().is_ok()),
            4 | 5 => match channel.send(message) {
                Sent::Queued { .. } => {
                    permits -= 1;
                    expected.push_back(message);
                }
                Sent::Refused { value } => {
                    permits -= 1;
                    assert_eq!(value, message);
                }
                Sent::NoPermit { value } => assert_eq!((permits, value), (0, message)),
            },
            6 => {
                let _ = channel.abort();
                permits = permits.saturating_sub(1);
            }
            7 => match channel.try_send(message) {
                Ok(_) => expected.push_back(message),
                Err(error) => assert_eq!(error.into_inner(), message),
            },
            8 => match channel.send_evict_oldest(message) {
                Ok(evicted) => {
                    if let Some(old) = evicted.old {
                        assert_eq!(expected.pop_front(), Some(old));
                    }
                    expected.push_back(message);
                }
                Err(TrySendError::Full(value) | TrySendError::Disconnected(value)) => {
                    assert_eq!(value, message);
                }
            },
            9 => match channel.recv(99) {
                Recv::Message { value, .. } => assert_eq!(expected.pop_front(), Some(value)),
                Recv::Disconnected | Recv::Waiting => assert!(expected.is_empty()),
            },
            10 => match ops.below(5) {
                0 => drop(channel.cancel_recv()),
                1 => drop(channel.add_sender()),
                2 => drop(channel.drop_sender()),
                3 => drop(channel.refuse_senders()),
                _ => {
                    assert_eq!(Vec::from(channel.drain().0), Vec::from(expected.split_off(0)));
                }
            },
            _ if ops.below(16) == 0 => {
                let closed = channel.close_receiver();
                assert_eq!(Vec::from(closed.messages), Vec::from(expected.split_off(0)));
            }
            _ => {
                if let Ok((value, _)) = channel.try_recv() {
                    assert_eq!(expected.pop_front(), Some(value));
                }
            }
        }
        assert!(channel.messages().eq(expected.iter()));
        assert_eq!(channel.reserved() - channel.granted(), permits);
        assert_eq!(channel.check(), Ok(()));
    }
});
