//! What goes wrong when a task is asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use asx_lab::check;
use asx_runtime::sync::{Notify, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope, channel};

use super::planted;

/// Goes on in spite of the error.
async fn swallowed<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let done = Arc::new(AtomicBool::new(false));
        let set = done.clone();
        s.spawn(async move |cx: Cx| {
            let slept = cx.sleep(Duration::from_secs(1)).await;
            set.store(true, Relaxed);
            slept
        });
        s.spawn(async move |cx: Cx| {
            while !done.load(Relaxed) {
                let slept = cx.sleep(Duration::from_millis(100)).await;
                if !BUG {
                    slept?;
                }
                cx.yield_now().await;
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(swallowed_is_found: swallowed, Overrun by a cancel);

/// Works on without looking: forbidden behaviour FB-203.
async fn never_looks<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    for round in 0..1500 {
        cx.yield_now().await;
        if !BUG && round % 100 == 0 {
            cx.checkpoint()?;
        }
    }
    Ok(())
}

#[test]
fn never_looks_is_found() {
    let (bug, fixed) = (check(stop_a_worker::<true>), check(stop_a_worker::<false>));
    let (kind, twin) = (asx_lab::Kind::Unheeded, crate::Twin::Passes);
    crate::judge("never_looks", bug, fixed, kind, 2, twin);
}

async fn stop_a_worker<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let worker = s.spawn(never_looks::<BUG>);
        s.spawn(async move |cx: Cx| {
            cx.yield_now().await;
            worker.cancel("enough");
            Ok(())
        });
        Ok(())
    })
    .await
}

/// Cleans up as if it could only be called when all went well.
async fn cleanup_panics<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| {
            let (tx, mut rx) = channel::bounded::<u32>(1);
            let sent = tx.send(&cx, 1).await.is_ok();
            let slept = cx.sleep(Duration::from_secs(1)).await;
            if BUG {
                assert_eq!(rx.recv(&cx).await.expect("it was sent"), 1);
            } else if sent && slept.is_ok() {
                // A receive could see a cancel that came after the sleep.
                assert_eq!(rx.try_recv(), Ok(1));
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(cleanup_panics_is_found: cleanup_panics, Panic by a cancel);

/// Says goodbye, and waits for an answer that nobody gives.
async fn cleanup_blocks<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| {
            let slept = cx.sleep(Duration::from_secs(1)).await;
            if slept.is_err() {
                let goodbye = Notify::new();
                if !BUG {
                    goodbye.notify_one();
                }
                let _ = cx.shield(|cx| goodbye.notified(cx)).await;
            }
            slept
        });
        Ok(())
    })
    .await
}
planted!(cleanup_blocks_is_found: cleanup_blocks, Deadlock by a cancel);

/// Counts a message as sent before it is.
async fn half_sent<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let (counted, received) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let sum = (counted.clone(), received.clone());
    let done = cx
        .scope(async |s: Scope<Cancelled>| {
            let (tx, mut rx) = channel::bounded::<u32>(1);
            s.spawn(async move |cx: Cx| {
                for number in 0..2 {
                    if BUG {
                        counted.fetch_add(1, Relaxed);
                        let _ = tx.send(&cx, number).await;
                    } else if let Ok(permit) = tx.reserve(&cx).await {
                        counted.fetch_add(1, Relaxed);
                        permit.send(number);
                    }
                }
                Ok(())
            });
            s.spawn(async move |cx: Cx| {
                // Whatever was sent is taken, cancelled or not.
                while let Ok(Some(_)) = cx.shield(|cx| rx.next(cx)).await {
                    received.fetch_add(1, Relaxed);
                }
                Ok(())
            });
            Ok(())
        })
        .await;
    let (counted, received) = (sum.0.load(Relaxed), sum.1.load(Relaxed));
    // A receiver that was never polled has received nothing.
    assert!(received == counted || received == 0, "{counted} counted, {received} received");
    done
}
planted!(half_sent_is_found: half_sent, Panic by a cancel);

/// A flag that says "busy", taken back by hand.
async fn stuck_flag<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let busy = Arc::new(AtomicBool::new(false));
    struct Reset(Arc<AtomicBool>);
    impl Drop for Reset {
        fn drop(&mut self) {
            self.0.store(false, Relaxed);
        }
    }
    let flag = busy.clone();
    let done = cx
        .scope(async |s: Scope<Cancelled>| {
            s.spawn(async move |cx: Cx| {
                flag.store(true, Relaxed);
                let guard = (!BUG).then(|| Reset(flag.clone()));
                cx.sleep(Duration::from_secs(1)).await?;
                drop(guard);
                flag.store(false, Relaxed);
                Ok(())
            });
            Ok(())
        })
        .await;
    assert!(!busy.load(Relaxed), "busy for ever");
    done
}
planted!(stuck_flag_is_found: stuck_flag, Panic by a cancel);

/// Takes a permit for good, and gives another back when it is done.
async fn permit_by_hand<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let two = Arc::new(Semaphore::new(2));
    let pool = two.clone();
    let done = cx
        .scope(async |s: Scope<Cancelled>| {
            s.spawn(async move |cx: Cx| {
                let Ok(permit) = pool.acquire(&cx).await else { return Ok(()) };
                if BUG {
                    permit.forget();
                    cx.sleep(Duration::from_secs(1)).await?;
                    pool.add_permits(1);
                } else {
                    cx.sleep(Duration::from_secs(1)).await?;
                }
                Ok(())
            });
            Ok(())
        })
        .await;
    assert_eq!(two.available_permits(), 2, "a permit is gone");
    done
}
planted!(permit_by_hand_is_found: permit_by_hand, Panic by a cancel);

/// A promise that is left open when the task is asked to stop.
async fn open_promise<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| {
            let Ok(promise) = cx.obligation() else { return Ok(()) };
            let slept = cx.sleep(Duration::from_secs(1)).await;
            if !BUG && slept.is_err() {
                let _ = promise.abort();
                return slept;
            }
            slept?;
            let _ = promise.commit();
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(open_promise_is_found: open_promise, Leak by a cancel);

/// Counts on finalizers to run in the order they were registered.
async fn defer_order<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let open = Arc::new(AtomicBool::new(true));
    cx.scope(async |s: Scope<Cancelled>| {
        let (log, close) = (open.clone(), open.clone());
        let flush = async move |_cx: Cx| assert!(log.load(Relaxed), "flushed after the close");
        let close = async move |_cx: Cx| close.store(false, Relaxed);
        if BUG {
            let _ = s.defer(flush);
            let _ = s.defer(close);
        } else {
            let _ = s.defer(close);
            let _ = s.defer(flush);
        }
        Ok(())
    })
    .await
}
planted!(defer_order_is_found: defer_order, Panic, 0, Unseen);
