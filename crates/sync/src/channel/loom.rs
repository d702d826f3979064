//! Every interleaving of the wake paths: no wakeup and no message is lost.
//!
//! A task that waits is a thread that polls until it is woken; if the wake is lost, it never
//! ends, which loom reports.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ::loom::sync::Notify;
use ::loom::thread;
use asx_task::testing::live_cx;

use super::*;

struct Unpark(Notify);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Runs all interleavings in which threads are interrupted at most three times; without a bound,
/// three threads would take hours.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// Polls to the end, asleep between the polls until woken.
fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark(Notify::new()));
    let waker = Waker::from(unpark.clone());
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => unpark.0.wait(),
        }
    }
}

/// Polls once and drops.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_send_finds_a_receiver_that_is_about_to_wait() {
    model(|| {
        let (tx, mut rx) = bounded(1);
        let sending = thread::spawn(move || {
            let cx = live_cx();
            assert_eq!(block_on(tx.send(&cx, 1)), Ok(()));
            assert_eq!(block_on(tx.send(&cx, 2)), Ok(()));
        });
        let cx = live_cx();
        assert_eq!(block_on(rx.recv(&cx)), Ok(1));
        assert_eq!(block_on(rx.recv(&cx)), Ok(2));
        assert_eq!(block_on(rx.recv(&cx)), Err(RecvError::Disconnected));
        sending.join().unwrap();
    });
}

#[test]
fn a_dropped_receiver_finds_a_sender_that_is_about_to_wait() {
    model(|| {
        let (tx, rx) = bounded(1);
        tx.try_send(1).unwrap();
        let sending = thread::spawn(move || {
            assert_eq!(block_on(tx.send(&live_cx(), 2)), Err(SendError::Disconnected(2)));
        });
        drop(rx);
        sending.join().unwrap();
    });
}

#[test]
fn a_region_that_closes_finds_both_sides() {
    model(|| {
        let (tx, mut rx) = bounded::<u8>(1);
        let shared = tx.shared.clone();
        let receiving = thread::spawn(move || {
            assert_eq!(block_on(rx.recv(&live_cx())), Err(RecvError::Disconnected));
        });
        shared.close();
        receiving.join().unwrap();
        drop(tx);
    });
}

#[test]
fn a_sender_that_leaves_as_it_is_granted_passes_its_slot_on() {
    model(|| {
        let (tx, mut rx) = bounded(1);
        tx.try_send(1).unwrap();
        let leaving = tx.clone();
        let staying = tx;
        let leaver = thread::spawn(move || {
            let cx = live_cx();
            // Granted or not: the slot is given back, or the place in line is given up.
            drop(poll_once(leaving.reserve(&cx)));
        });
        let stayer = thread::spawn(move || {
            assert_eq!(block_on(staying.send(&live_cx(), 2)), Ok(()));
        });
        let cx = live_cx();
        assert_eq!(block_on(rx.recv(&cx)), Ok(1));
        assert_eq!(block_on(rx.recv(&cx)), Ok(2));
        leaver.join().unwrap();
        stayer.join().unwrap();
    });
}

#[test]
fn a_sender_that_is_cancelled_as_it_is_granted_passes_its_slot_on() {
    model(|| {
        let (tx, mut rx) = bounded(1);
        tx.try_send(1).unwrap();
        let stopping = tx.clone();
        let staying = tx;
        let stopped = thread::spawn(move || {
            let (cx, cancel) = asx_task::Cx::loose();
            let mut reserve = pin!(stopping.reserve(&cx));
            let mut context = Context::from_waker(Waker::noop());
            if reserve.as_mut().poll(&mut context).is_pending() {
                // In line, or granted by now.
                cancel(asx_task::testing::reason());
                let Poll::Ready(Err(SendError::Cancelled(..))) = reserve.poll(&mut context) else {
                    panic!("a cancel counts for more than a slot");
                };
            }
        });
        let stayer = thread::spawn(move || {
            assert_eq!(block_on(staying.send(&live_cx(), 2)), Ok(()));
        });
        let cx = live_cx();
        assert_eq!(block_on(rx.recv(&cx)), Ok(1));
        assert_eq!(block_on(rx.recv(&cx)), Ok(2));
        stopped.join().unwrap();
        stayer.join().unwrap();
    });
}

#[test]
fn two_senders_are_granted_the_slots_of_two_messages() {
    model(|| {
        let (tx, mut rx) = bounded(2);
        (0..2).for_each(|_| tx.try_send(0).unwrap());
        let senders = [tx.clone(), tx]
            .map(|tx| thread::spawn(move || assert_eq!(block_on(tx.send(&live_cx(), 1)), Ok(()))));
        let cx = live_cx();
        let mut taken = Vec::new();
        while taken.len() < 4 {
            block_on(rx.recv_many(&cx, &mut taken, 4)).unwrap();
        }
        assert_eq!(taken, [0, 0, 1, 1]);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

#[test]
fn the_last_sender_or_permit_finds_a_receiver_that_is_about_to_wait() {
    model(|| {
        let (tx, mut rx) = bounded::<u8>(1);
        let permit = tx.try_reserve_owned().unwrap();
        let senders = thread::spawn(move || drop(tx));
        let permits = thread::spawn(move || permit.abort());
        assert_eq!(block_on(rx.recv(&live_cx())), Err(RecvError::Disconnected));
        senders.join().unwrap();
        permits.join().unwrap();
    });
}

#[test]
fn a_broadcast_finds_receivers_that_are_about_to_wait() {
    model(|| {
        let (tx, mut one) = broadcast(1);
        let mut two = tx.subscribe();
        let receiving = thread::spawn(move || {
            assert_eq!(block_on(one.recv(&live_cx())), Ok(1));
        });
        let sending = thread::spawn(move || assert!(tx.send(1).is_ok()));
        let cx = live_cx();
        assert_eq!(block_on(two.recv(&cx)), Ok(1));
        assert_eq!(block_on(two.recv(&cx)), Err(broadcast::ListenError::Disconnected));
        receiving.join().unwrap();
        sending.join().unwrap();
    });
}

#[test]
fn a_watched_value_changes_under_a_receiver_that_is_about_to_wait() {
    model(|| {
        let (tx, mut rx) = watch(0);
        let watching = thread::spawn(move || {
            let cx = live_cx();
            while *rx.borrow_and_update() < 2 {
                block_on(rx.changed(&cx)).unwrap();
            }
        });
        tx.send_modify(|value| *value += 1);
        tx.send_modify(|value| *value += 1);
        block_on(tx.closed(&live_cx())).unwrap();
        watching.join().unwrap();
    });
}

#[test]
fn a_message_finds_one_of_several_receivers_and_so_does_the_end() {
    model(|| {
        let (tx, rx) = mpmc(1);
        let sending = thread::spawn(move || assert_eq!(tx.try_send(1), Ok(())));
        let cx = live_cx();
        assert_eq!(block_on(rx.recv(&cx)), Ok(1));
        assert_eq!(block_on(rx.recv(&cx)), Err(RecvError::Disconnected));
        sending.join().unwrap();
    });
}

#[test]
fn the_end_finds_all_receivers_and_the_message_one_of_them() {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.check(|| {
        let (tx, one) = mpmc(1);
        let two = one.clone();
        let receiving = thread::spawn(move || block_on(one.recv(&live_cx())));
        let sending = thread::spawn(move || assert_eq!(tx.try_send(1), Ok(())));
        let taken = [block_on(two.recv(&live_cx())), receiving.join().unwrap()];
        sending.join().unwrap();
        assert_eq!(taken.iter().filter(|taken| **taken == Ok(1)).count(), 1);
    });
}

#[test]
fn a_drained_channel_finds_who_waits_for_its_close_and_its_last_permit() {
    model(|| {
        let (tx, mut rx) = bounded(1);
        let permit = tx.try_reserve_owned().unwrap();
        let closing = thread::spawn(move || block_on(tx.closed(&live_cx())).unwrap());
        let sending = thread::spawn(move || permit.abort());
        rx.close();
        assert_eq!(block_on(rx.recv(&live_cx())), Err::<u8, _>(RecvError::Disconnected));
        closing.join().unwrap();
        sending.join().unwrap();
    });
}
