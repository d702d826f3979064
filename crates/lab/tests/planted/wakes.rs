//! Wakeups that are lost.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use asx_lab::check;
use asx_runtime::sync::{Barrier, Notify};
use asx_runtime::{Cancelled, Cx, Scope};

use super::planted;

/// Looks at a flag, and then waits for word of a change that may have come before.
async fn flag_then_wait<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let ready = Arc::new((Notify::new(), AtomicBool::new(false)));
        let other = ready.clone();
        s.spawn(async move |cx: Cx| {
            let early = ready.0.notified(&cx);
            if !ready.1.load(Relaxed) {
                cx.yield_now().await;
                if BUG { ready.0.notified(&cx).await? } else { early.await? }
            }
            Ok(())
        });
        s.spawn(async move |_cx: Cx| {
            other.1.store(true, Relaxed);
            other.0.notify_waiters();
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(flag_then_wait_is_found: flag_then_wait, Deadlock, 2, Proved);

/// Two wait, and one is told.
async fn one_for_two<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let gate = Arc::new((Notify::new(), AtomicBool::new(false)));
        for _ in 0..2 {
            let gate = gate.clone();
            s.spawn(async move |cx: Cx| {
                let told = gate.0.notified(&cx);
                if gate.1.load(Relaxed) { Ok(()) } else { told.await }
            });
        }
        s.spawn(async move |_cx: Cx| {
            gate.1.store(true, Relaxed);
            if BUG {
                gate.0.notify_one()
            } else {
                gate.0.notify_waiters()
            }
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(one_for_two_is_found: one_for_two, Deadlock, 2, Proved);

/// A home-made event with room for one waker, and two who wait.
#[derive(Default)]
struct Event {
    set: bool,
    wakers: Vec<Waker>,
}

async fn one_waker_slot<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let event = Arc::new(Mutex::new(Event::default()));
        for _ in 0..2 {
            let event = event.clone();
            s.spawn(async move |_cx: Cx| {
                poll_fn(|cx| {
                    let mut event = event.lock().unwrap();
                    if event.set {
                        return Poll::Ready(());
                    }
                    if BUG {
                        event.wakers.clear();
                    }
                    event.wakers.push(cx.waker().clone());
                    Poll::Pending
                })
                .await;
                Ok(())
            });
        }
        s.spawn(async move |_cx: Cx| {
            let wakers = {
                let mut event = event.lock().unwrap();
                event.set = true;
                std::mem::take(&mut event.wakers)
            };
            wakers.into_iter().for_each(Waker::wake);
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(one_waker_slot_is_found: one_waker_slot, LostWakeup, 2, Unseen);

/// A future that says it waits without having left a waker anywhere.
async fn no_waker<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let event = Arc::new(Mutex::new(Event::default()));
        let setter = event.clone();
        s.spawn(async move |_cx: Cx| {
            poll_fn(|cx| {
                let mut event = event.lock().unwrap();
                if event.set {
                    return Poll::Ready(());
                }
                if !BUG {
                    event.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            })
            .await;
            Ok(())
        });
        s.spawn(async move |_cx: Cx| {
            let wakers = {
                let mut event = setter.lock().unwrap();
                event.set = true;
                std::mem::take(&mut event.wakers)
            };
            wakers.into_iter().for_each(Waker::wake);
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(no_waker_is_found: no_waker, LostWakeup, 1, Unseen);

/// More are waited for than come.
async fn one_too_many<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let barrier = Arc::new(Barrier::new(if BUG { 3 } else { 2 }));
        for _ in 0..2 {
            let barrier = barrier.clone();
            s.spawn(async move |cx: Cx| barrier.wait(&cx).await.map(|_| ()));
        }
        Ok(())
    })
    .await
}
planted!(one_too_many_is_found: one_too_many, Deadlock, 0, Proved);

/// A thread that the lab knows nothing of wakes a task.
async fn thread<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let event = Arc::new(Mutex::new(Event::default()));
    let setter = event.clone();
    let set = move || {
        let mut event = setter.lock().unwrap();
        event.set = true;
        let wakers = std::mem::take(&mut event.wakers);
        drop(event);
        wakers.into_iter().for_each(Waker::wake);
    };
    let mut thread = None;
    poll_fn(|cx| {
        let mut event = event.lock().unwrap();
        if event.set {
            return Poll::Ready(());
        }
        event.wakers.push(cx.waker().clone());
        if BUG {
            thread.get_or_insert_with(|| std::thread::spawn(set.clone()));
        } else {
            drop(event);
            set();
        }
        Poll::Pending
    })
    .await;
    cx.checkpoint()
}
planted!(thread_is_found: thread, Foreign, 0, Proved);
