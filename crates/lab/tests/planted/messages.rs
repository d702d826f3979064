//! Messages that are lost, and those that nobody sends.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use asx_lab::check;
use asx_runtime::channel::broadcast::ListenError;
use asx_runtime::channel::{self, Receiver, TryRecvError};
use asx_runtime::sync::Mutex;
use asx_runtime::{Cancelled, Cx, Scope, select};

use super::planted;

/// Receives, and then does something with it: not to be dropped half-way.
async fn handle(cx: &Cx, rx: &mut Receiver<u32>, sum: &AtomicU32) -> bool {
    let Ok(number) = rx.recv(cx).await else { return false };
    cx.yield_now().await;
    sum.fetch_add(number, Relaxed);
    true
}

/// A selection that drops the loser half-way.
async fn lossy_select<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let sum = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(2);
        let (tick, mut ticks) = channel::bounded::<()>(2);
        s.spawn(async move |cx: Cx| {
            let _ = tx.send(&cx, 1).await;
            let _ = tick.send(&cx, ()).await;
            let _ = tx.send(&cx, 2).await;
            Ok(())
        });
        let sum = sum.clone();
        s.spawn(async move |cx: Cx| {
            let mut more = true;
            while more && BUG {
                let mut work = Box::pin(handle(&cx, &mut rx, &sum));
                let mut tick = Box::pin(ticks.recv(&cx));
                more = poll_fn(|context| {
                    if let Poll::Ready(more) = work.as_mut().poll(context) {
                        return Poll::Ready(more);
                    }
                    match tick.as_mut().poll(context) {
                        Poll::Ready(Ok(())) => Poll::Ready(true),
                        _ => Poll::Pending,
                    }
                })
                .await;
            }
            let mut ticking = true;
            while more {
                select! {
                    number = rx.recv(&cx) => match number {
                        Ok(number) => drop(sum.fetch_add(number, Relaxed)),
                        Err(_) => more = false,
                    },
                    tick = ticks.recv(&cx), if ticking => ticking = tick.is_ok(),
                }
            }
            Ok(())
        });
        Ok(())
    })
    .await?;
    assert_eq!(sum.load(Relaxed), 3, "a message was lost");
    Ok(())
}
planted!(lossy_select_is_found: lossy_select, Panic, 2, Proved);

/// Has a slot, and waits for what comes only when another slot is free.
async fn kept_permit<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let (go, mut wait) = channel::oneshot::<()>();
        let other = tx.clone();
        s.spawn(async move |cx: Cx| {
            if BUG {
                let Ok(permit) = tx.reserve(&cx).await else { return Ok(()) };
                let _ = wait.recv(&cx).await;
                permit.send(1);
            } else {
                let _ = wait.recv(&cx).await;
                let _ = tx.send(&cx, 1).await;
            }
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let _ = other.send(&cx, 2).await;
            let _ = go.send(());
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            while rx.next(&cx).await?.is_some() {}
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(kept_permit_is_found: kept_permit, Deadlock, 2, Proved);

/// A server that puts a request aside, and does not come back to it.
async fn forgotten_reply<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<channel::oneshot::Reply<u32>>(2);
        for _ in 0..2 {
            let tx = tx.clone();
            s.spawn(async move |cx: Cx| {
                let (reply, mut answer) = channel::oneshot();
                let _ = tx.send(&cx, reply).await;
                answer.recv(&cx).await.map_or(Ok(()), |_| Ok(()))
            });
        }
        drop(tx);
        s.spawn(async move |cx: Cx| {
            let mut aside = Vec::new();
            let mut served = 0;
            while let Some(reply) = rx.next(&cx).await? {
                // Another one waits already: this one has time.
                if rx.len() == 1 {
                    aside.push(reply);
                    continue;
                }
                served += 1;
                let _ = reply.send(served);
                if !BUG {
                    for reply in aside.drain(..) {
                        let _ = reply.send(0);
                    }
                }
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(forgotten_reply_is_found: forgotten_reply, Deadlock, 2, Proved);

/// A subscriber that falls behind and does not mind.
async fn ignored_lag<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::broadcast::<u32>(if BUG { 2 } else { 3 });
        s.spawn(async move |cx: Cx| {
            for number in [1, 2, 3] {
                let _ = tx.send(number);
                cx.yield_now().await;
            }
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let mut sum = 0;
            loop {
                match rx.recv(&cx).await {
                    Ok(number) => sum += number,
                    Err(ListenError::Lagged(_)) => {}
                    Err(_) => break,
                }
            }
            assert_eq!(sum, 6, "something was missed");
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(ignored_lag_is_found: ignored_lag, Panic, 1, Proved);

/// Looks at a value, and later marks as seen what it has not looked at.
async fn missed_value<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::watch(false);
        s.spawn(async move |cx: Cx| {
            while !*(if BUG { rx.borrow() } else { rx.borrow_and_update() }) {
                cx.yield_now().await;
                if BUG {
                    rx.borrow_and_update();
                }
                if rx.changed(&cx).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let _ = tx.send(true);
            tx.closed(&cx).await
        });
        Ok(())
    })
    .await
}
planted!(missed_value_is_found: missed_value, Deadlock, 1, Proved);

/// Takes "nothing yet" for "nothing any more".
async fn empty_is_not_over<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(2);
        s.spawn(async move |cx: Cx| {
            for number in [1, 2] {
                cx.yield_now().await;
                let _ = tx.send(&cx, number).await;
            }
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let mut sum = 0;
            loop {
                match rx.try_recv() {
                    Ok(number) => sum += number,
                    Err(TryRecvError::Empty) if !BUG => match rx.recv(&cx).await {
                        Ok(number) => sum += number,
                        Err(_) => break,
                    },
                    Err(_) => break,
                }
            }
            assert_eq!(sum, 3, "not all of them");
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(empty_is_not_over_is_found: empty_is_not_over, Panic, 1, Proved);

/// Waits for all senders to go, and keeps one.
async fn own_sender<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let (tx, mut rx) = channel::unbounded::<u32>();
    cx.scope(async |s: Scope<Cancelled>| {
        let other = tx.clone();
        s.spawn(async move |_cx: Cx| {
            let _ = other.send(1);
            Ok(())
        });
        if !BUG {
            drop(tx);
        }
        while rx.next(&cx).await?.is_some() {}
        Ok(())
    })
    .await
}
planted!(own_sender_is_found: own_sender, Deadlock, 0, Proved);

/// A time limit around what takes a message and then needs a moment.
async fn timeout_loses<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let second = Duration::from_secs(1);
    let sum = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(1);
        s.spawn(async move |cx: Cx| {
            cx.sleep(second).await?;
            let _ = tx.send(&cx, 1).await;
            Ok(())
        });
        let sum = sum.clone();
        s.spawn(async move |cx: Cx| {
            loop {
                let taken = cx
                    .timeout(second, async |cx| {
                        let number = rx.recv(cx).await.map_err(|error| error.into_cancelled())?;
                        if BUG {
                            cx.sleep(Duration::from_millis(1)).await.map_err(Some)?;
                        }
                        Ok::<_, Option<Cancelled>>(number)
                    })
                    .await;
                match taken {
                    Ok(number) => drop(sum.fetch_add(number, Relaxed)),
                    Err(None) => return Ok(()),
                    Err(Some(_)) => cx.checkpoint()?,
                }
            }
        });
        Ok(())
    })
    .await?;
    assert_eq!(sum.load(Relaxed), 1, "the message was lost");
    Ok(())
}
planted!(timeout_loses_is_found: timeout_loses, Panic, 2, Proved);

/// Two clients with one line for answers: each takes what comes first.
async fn crossed_answers<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (tx, mut rx) = channel::bounded::<u32>(2);
        let (back, answers) = channel::bounded::<u32>(2);
        let answers = Arc::new(Mutex::new(answers));
        for number in [10, 20] {
            let (tx, answers) = (tx.clone(), answers.clone());
            s.spawn(async move |cx: Cx| {
                if BUG {
                    let _ = tx.send(&cx, number).await;
                }
                let mut answers = answers.lock(&cx).await?;
                if !BUG {
                    let _ = tx.send(&cx, number).await;
                }
                if let Ok(answer) = answers.recv(&cx).await {
                    assert_eq!(answer, number + 1, "the answer to another question");
                }
                Ok(())
            });
        }
        drop(tx);
        s.spawn(async move |cx: Cx| {
            while let Some(number) = rx.next(&cx).await? {
                let _ = back.send(&cx, number + 1).await;
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(crossed_answers_is_found: crossed_answers, Panic, 1, Proved);

/// Two stages that each fill the other's line before they empty their own.
async fn fed_back<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let (there, mut here) = channel::bounded::<u32>(1);
        let (back, mut again) = channel::bounded::<u32>(1);
        s.task("first").spawn(async move |cx: Cx| {
            for number in 0..3 {
                if BUG {
                    let _ = there.send(&cx, number).await;
                    continue;
                }
                loop {
                    select! {
                        permit = there.reserve(&cx) => {
                            if let Ok(permit) = permit {
                                permit.send(number);
                            }
                            break;
                        }
                        _ = again.recv(&cx) => {}
                    }
                }
            }
            drop(there);
            while again.next(&cx).await?.is_some() {}
            Ok(())
        });
        s.task("second").spawn(async move |cx: Cx| {
            while let Some(number) = here.next(&cx).await? {
                for _ in 0..2 {
                    let _ = back.send(&cx, number).await;
                }
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(fed_back_is_found: fed_back, Deadlock, 1, Proved);
