//! What was accepted is received, once, or handed back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use asx_kernel::time::Time;
use asx_runtime::channel::broadcast::ListenError;
use asx_runtime::channel::{self, Receiver, SendError};
use asx_runtime::{Cancelled, Cx, Scope, select};

use super::{Count, holds, holds_in_exact_time, holds_with_one_cancel, pause};

/// The numbers that came, and those that were accepted.
#[derive(Clone, Default)]
struct Book {
    sent: Arc<Mutex<Vec<u32>>>,
    came: Arc<Mutex<Vec<u32>>>,
}

impl Book {
    fn sent(&self, number: u32) {
        self.sent.lock().unwrap().push(number);
    }

    fn came(&self, number: u32) {
        self.came.lock().unwrap().push(number);
    }

    /// Takes all, and what is left when it is asked to stop.
    async fn receive(self, cx: Cx, mut rx: Receiver<u32>) -> Result<(), Cancelled> {
        let end = loop {
            match rx.next(&cx).await {
                Ok(Some(number)) => self.came(number),
                Ok(None) => break Ok(()),
                Err(cancelled) => break Err(cancelled),
            }
        };
        rx.close_and_take().into_iter().for_each(|number| self.came(number));
        end
    }

    fn is_balanced(&self) {
        let mut sent = self.sent.lock().unwrap().clone();
        let mut came = self.came.lock().unwrap().clone();
        sent.sort_unstable();
        came.sort_unstable();
        assert_eq!(sent, came);
    }
}

#[test]
fn bounded_loses_and_doubles_nothing() {
    holds(async |cx: Cx| {
        let book = Book::default();
        let (tx, rx) = channel::bounded::<u32>(1);
        // So that what was accepted before the receiver was taken in is received too.
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for task in 0..2 {
                    let (tx, book) = (tx.clone(), book.clone());
                    s.spawn(async move |cx: Cx| {
                        for number in [10, 20] {
                            match tx.send(&cx, task + number).await {
                                Ok(()) => book.sent(task + number),
                                Err(SendError::Cancelled(back, why)) => {
                                    assert_eq!(back, task + number);
                                    return Err(why);
                                }
                                Err(SendError::Disconnected(_)) => {}
                            }
                        }
                        Ok(())
                    });
                }
                drop(tx);
                book.clone().receive(cx.clone(), rx).await
            })
            .await;
        book.is_balanced();
        ended
    });
}

#[test]
fn reserved_slots_come_back() {
    holds_with_one_cancel(async |cx: Cx| {
        let (tx, mut rx) = channel::bounded::<u32>(2);
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for task in 0..3 {
                    let tx = tx.clone();
                    s.spawn(async move |cx: Cx| {
                        let Ok(permit) = tx.reserve(&cx).await else { return Ok(()) };
                        pause(&cx).await;
                        cx.checkpoint()?;
                        if task == 0 {
                            permit.abort()
                        } else {
                            permit.send(task)
                        }
                        Ok(())
                    });
                }
                let _ = rx.recv(&cx).await;
                Ok(())
            })
            .await;
        while rx.try_recv().is_ok() {}
        let free: Vec<_> = std::iter::from_fn(|| tx.try_reserve().ok()).collect();
        assert_eq!(free.len(), 2, "slots are gone");
        ended
    });
}

#[test]
fn a_slot_is_not_kept_for_one_who_gave_up() {
    holds_in_exact_time(async |cx: Cx| {
        let second = Duration::from_secs(1);
        cx.scope(async |s: Scope<Cancelled>| {
            let (tx, mut rx) = channel::bounded::<u32>(1);
            tx.try_send(0).expect("there is room");
            let first = tx.clone();
            s.spawn(async move |cx: Cx| {
                select! {
                    permit = first.reserve(&cx) => drop(permit),
                    slept = cx.sleep(second) => slept?,
                }
                // It is still a sender.
                cx.sleep(3 * second).await?;
                drop(first);
                Ok(())
            });
            s.spawn(async move |cx: Cx| {
                let sent = tx.send(&cx, 1).await;
                assert!(sent.is_err() || cx.now() <= Time::ZERO + 2 * second);
                Ok(())
            });
            s.spawn(async move |cx: Cx| {
                pause(&cx).await;
                pause(&cx).await;
                while rx.next(&cx).await?.is_some() {}
                Ok(())
            });
            Ok(())
        })
        .await
    });
}

#[test]
fn unbounded_loses_and_doubles_nothing() {
    holds(async |cx: Cx| {
        let book = Book::default();
        let (tx, rx) = channel::unbounded::<u32>();
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                let sends = book.clone();
                s.spawn(async move |cx: Cx| {
                    for number in 0..3 {
                        if tx.send(number).is_ok() {
                            sends.sent(number);
                        }
                        pause(&cx).await;
                        cx.checkpoint()?;
                    }
                    Ok(())
                });
                book.clone().receive(cx.clone(), rx).await
            })
            .await;
        book.is_balanced();
        ended
    });
}

#[test]
fn a_select_loses_nothing() {
    holds(async |cx: Cx| {
        let book = Book::default();
        let (one, mut ones) = channel::bounded::<u32>(1);
        let (two, mut twos) = channel::bounded::<u32>(1);
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for (tx, first) in [(one, 10), (two, 20)] {
                    let book = book.clone();
                    s.spawn(async move |cx: Cx| {
                        for number in first..first + 2 {
                            if tx.send(&cx, number).await.is_ok() {
                                book.sent(number);
                            }
                        }
                        Ok(())
                    });
                }
                let mut open = [true; 2];
                let end = loop {
                    let came = select! {
                        number = ones.next(&cx), if open[0] => (0, number),
                        number = twos.next(&cx), if open[1] => (1, number),
                        else => break Ok(()),
                    };
                    match came {
                        (_, Ok(Some(number))) => book.came(number),
                        (side, Ok(None)) => open[side] = false,
                        (_, Err(cancelled)) => break Err(cancelled),
                    }
                };
                ones.close_and_take()
                    .into_iter()
                    .chain(twos.close_and_take())
                    .for_each(|number| book.came(number));
                end
            })
            .await;
        book.is_balanced();
        ended
    });
}

#[test]
fn a_reply_comes_or_is_handed_back() {
    holds(async |cx: Cx| {
        let (sent, came) = (Count::default(), Count::default());
        let (reply, mut answer) = channel::oneshot::<u32>();
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                let sends = sent.clone();
                s.spawn(async move |cx: Cx| {
                    pause(&cx).await;
                    cx.checkpoint()?;
                    sends.add(u32::from(reply.send(1).is_ok()));
                    Ok(())
                });
                let got = answer.recv(&cx).await.ok().or_else(|| answer.close());
                came.add(got.unwrap_or(0));
                Ok(())
            })
            .await;
        assert_eq!(sent.get(), came.get());
        ended
    });
}

#[test]
fn broadcast_has_no_gaps() {
    holds(async |cx: Cx| {
        let (tx, rx) = channel::broadcast::<u32>(4);
        let sent = Count::default();
        cx.scope(async |s: Scope<Cancelled>| {
            for mut rx in [rx, tx.subscribe()] {
                let sent = sent.clone();
                s.spawn(async move |cx: Cx| {
                    let mut last = 0;
                    loop {
                        match rx.recv(&cx).await {
                            Ok(number) => {
                                assert_eq!(number, last + 1);
                                last = number;
                            }
                            Err(ListenError::Disconnected) => break,
                            Err(ListenError::Cancelled(cancelled)) => return Err(cancelled),
                            Err(ListenError::Lagged(count)) => panic!("{count} missed"),
                        }
                    }
                    assert_eq!(last, sent.get(), "the last ones are missing");
                    Ok(())
                });
            }
            s.spawn(async move |cx: Cx| {
                for number in 1..=3 {
                    if tx.send(number).is_ok() {
                        sent.add(1);
                    }
                    pause(&cx).await;
                    cx.checkpoint()?;
                }
                Ok(())
            });
            Ok(())
        })
        .await
    });
}

#[test]
fn watch_shows_the_last_value() {
    holds_in_exact_time(async |cx: Cx| {
        let (tx, rx) = channel::watch(0);
        let sent = Count::default();
        cx.scope(async |s: Scope<Cancelled>| {
            for _ in 0..2 {
                let (mut rx, sent) = (rx.clone(), sent.clone());
                s.spawn(async move |cx: Cx| {
                    let mut last = *rx.borrow_and_update();
                    while rx.changed(&cx).await.is_ok() {
                        let now = *rx.borrow();
                        assert!(now > last, "a change is a change");
                        last = now;
                    }
                    cx.checkpoint()?;
                    assert_eq!(last, sent.get(), "the last value is missing");
                    Ok(())
                });
            }
            drop(rx);
            s.spawn(async move |cx: Cx| {
                for number in 1..=3 {
                    if tx.send(number).is_ok() {
                        sent.add(1);
                    }
                    pause(&cx).await;
                    cx.checkpoint()?;
                }
                Ok(())
            });
            Ok(())
        })
        .await
    });
}
