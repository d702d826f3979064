//! Channels that are closed while others use them, several slots at once, several receivers.

use std::sync::{Arc, Mutex};

use asx_runtime::channel::{self, RecvError, ReserveManyError, SendError};
use asx_runtime::sync::{Mutex as Lock, MutexGuard, Notify};
use asx_runtime::{Cancelled, Cx, Scope, TaskError};

use super::{Count, holds, pause};

type Book = Arc<Mutex<Vec<u32>>>;

fn sorted(book: &Book) -> Vec<u32> {
    let mut numbers = book.lock().unwrap().clone();
    numbers.sort_unstable();
    numbers
}

#[test]
fn what_was_accepted_before_a_close_is_received_and_the_rest_handed_back() {
    holds(async |cx: Cx| {
        let (sent, came) = (Book::default(), Book::default());
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for task in 0..2 {
                    let (tx, sent) = (tx.clone(), sent.clone());
                    s.spawn(async move |cx: Cx| {
                        for number in [10, 20] {
                            let Ok(permit) = tx.reserve(&cx).await else { break };
                            // A permit that is out when the channel is closed still sends.
                            pause(&cx).await;
                            if permit.try_send(task + number).is_ok() {
                                sent.lock().unwrap().push(task + number);
                            }
                        }
                        cx.checkpoint()
                    });
                }
                drop(tx);
                let end = rx.next(&cx).await.map(|first| came.lock().unwrap().extend(first));
                rx.close();
                // What is left comes though the task may be asked to stop: senders end.
                cx.shield(async |cx| {
                    while let Ok(Some(number)) = rx.next(cx).await {
                        came.lock().unwrap().push(number);
                    }
                })
                .await;
                end
            })
            .await;
        assert_eq!(sorted(&sent), sorted(&came));
        assert!(rx.is_closed() && rx.is_empty());
        ended
    });
}

#[test]
fn who_waits_for_the_close_learns_of_it_or_of_its_cancel() {
    holds(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let (reply, mut answer) = channel::oneshot::<u32>();
        let (publisher, subscriber) = channel::broadcast::<u32>(1);
        cx.scope(async |s: Scope<Cancelled>| {
            let waiting = [
                s.spawn(async move |cx: Cx| {
                    tx.closed(&cx).await?;
                    assert!(tx.is_closed() && tx.try_send(1).is_err());
                    Ok(())
                }),
                s.spawn(async move |cx: Cx| {
                    reply.closed(&cx).await?;
                    assert!(reply.is_closed() && reply.send(1).is_err());
                    Ok(())
                }),
                s.spawn(async move |cx: Cx| {
                    publisher.closed(&cx).await?;
                    assert!(publisher.is_closed() && publisher.send(1).is_err());
                    Ok(())
                }),
            ];
            pause(&cx).await;
            rx.close();
            assert_eq!(answer.close(), None);
            drop(subscriber);
            // None waits for ever: the scope ends.
            for waits in waiting {
                assert!(!matches!(waits.await, Err(TaskError::Err(_))));
            }
            cx.checkpoint()
        })
        .await
    });
}

#[test]
fn several_slots_are_had_together_and_all_come_back() {
    holds(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(2);
        let together = Count::default();
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for task in 0..2 {
                    let (tx, together) = (tx.clone(), together.clone());
                    s.spawn(async move |cx: Cx| {
                        let permits = match tx.reserve_many(&cx, 2).await {
                            Ok(permits) => permits,
                            Err(ReserveManyError::Cancelled(cancelled)) => return Err(cancelled),
                            Err(refused) => {
                                assert_eq!(refused, ReserveManyError::Disconnected);
                                return Ok(());
                            }
                        };
                        assert_eq!((permits.len(), tx.capacity()), (2, 0));
                        let inside = together.inside();
                        assert_eq!(together.get(), 1, "nobody else has one");
                        pause(&cx).await;
                        drop(inside);
                        // One is sent, the other given back.
                        permits.take(1).for_each(|permit| permit.send(task));
                        Ok(())
                    });
                }
                let third = tx.clone();
                s.spawn(async move |cx: Cx| {
                    drop(third.reserve(&cx).await);
                    cx.checkpoint()
                });
                pause(&cx).await;
                let _ = rx.next(&cx).await;
                // Whoever is left in line is refused.
                rx.close();
                cx.checkpoint()
            })
            .await;
        while rx.try_recv().is_ok() {}
        assert_eq!(tx.capacity(), 2, "slots are gone");
        ended
    });
}

#[test]
fn each_message_goes_to_one_of_several_receivers() {
    holds(async |cx: Cx| {
        let (sent, came) = (Book::default(), Book::default());
        let (tx, rx) = channel::mpmc::<u32>(1);
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for _ in 0..2 {
                    let (rx, came) = (rx.clone(), came.clone());
                    s.spawn(async move |cx: Cx| {
                        loop {
                            match rx.recv(&cx).await {
                                Ok(number) => came.lock().unwrap().push(number),
                                Err(RecvError::Disconnected) => return Ok(()),
                                Err(RecvError::Cancelled(cancelled)) => return Err(cancelled),
                            }
                        }
                    });
                }
                for number in 0..3 {
                    match tx.send(&cx, number).await {
                        Ok(()) => sent.lock().unwrap().push(number),
                        Err(SendError::Cancelled(_, cancelled)) => return Err(cancelled),
                        Err(SendError::Disconnected(_)) => unreachable!("one is kept below"),
                    }
                }
                drop(tx);
                Ok(())
            })
            .await;
        // What nobody took, because all who receive were cancelled.
        came.lock().unwrap().extend(rx.close_and_take());
        assert_eq!(sorted(&sent), sorted(&came));
        ended
    });
}

#[test]
fn an_enabled_wait_that_goes_passes_its_notification_on() {
    holds(async |cx: Cx| {
        let (notify, came) = (Arc::new(Notify::new()), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                let (waits, counts) = (notify.clone(), came.clone());
                let waiting = s.spawn(async move |cx: Cx| {
                    let mut wait = waits.notified_owned(&cx);
                    wait.enable();
                    pause(&cx).await;
                    wait.await?;
                    counts.add(1);
                    Ok(())
                });
                notify.notify_one();
                let _ = cx.shield(|_| waiting).await;
                Ok(())
            })
            .await;
        // It was taken, or is stored for the next.
        let stored = notify.notified(&cx).enable();
        assert_eq!(came.get() + u32::from(stored), 1);
        ended
    });
}

#[test]
fn a_mapped_guard_keeps_others_out_and_is_released_by_a_cancel() {
    holds(async |cx: Cx| {
        let (lock, inside) = (Arc::new(Lock::new((0, 0))), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for _ in 0..2 {
                    let (lock, inside) = (lock.clone(), inside.clone());
                    s.spawn(async move |cx: Cx| {
                        let guard = lock.lock(&cx).await?;
                        let mut part = MutexGuard::map(guard, |pair| &mut pair.1);
                        let _inside = inside.inside();
                        assert_eq!(inside.get(), 1);
                        let before = *part;
                        pause(&cx).await;
                        *part = before + 1;
                        cx.checkpoint()
                    });
                }
                Ok(())
            })
            .await;
        let pair = *lock.try_lock().expect("it is free");
        assert!(pair.0 == 0 && pair.1 <= 2 && inside.get() == 0);
        ended
    });
}
