//! Locks and permits.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use asx_lab::check;
use asx_runtime::sync::{Mutex, OnceCell, RwLock, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope, Task, channel};

use super::planted;

/// Two take two locks, each in its own order.
async fn crossed<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
        for name in ["left", "right"] {
            let locks = locks.clone();
            let (first, second) = if BUG && name == "right" { (1, 0) } else { (0, 1) };
            s.task(name).spawn(async move |cx: Cx| {
                let mut one = locks[first].lock(&cx).await?;
                cx.yield_now().await;
                let mut two = locks[second].lock(&cx).await?;
                *one += 1;
                *two += 1;
                Ok(())
            });
        }
        Ok(())
    })
    .await
}
planted!(crossed_is_found: crossed, Deadlock, 1, Proved);

/// The same beside a task that goes on until both are done.
async fn crossed_beside<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let ticker: Task<(), _> = s.task("ticker").spawn(async |cx: Cx| {
            loop {
                cx.sleep(Duration::from_secs(1)).await?;
            }
        });
        crossed::<BUG>(cx.clone()).await?;
        ticker.cancel("done");
        Ok(())
    })
    .await
}
planted!(crossed_beside_is_found: crossed_beside, Deadlock, 1, Proved);

/// Three take two locks each, in a circle.
async fn three_in_a_circle<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let locks = Arc::new([Mutex::new(0), Mutex::new(0), Mutex::new(0)]);
        for task in 0..3 {
            let locks = locks.clone();
            let (one, two) = (task, (task + 1) % 3);
            let (one, two) = if BUG { (one, two) } else { (one.min(two), one.max(two)) };
            s.spawn(async move |cx: Cx| {
                let _one = locks[one].lock(&cx).await?;
                cx.yield_now().await;
                let _two = locks[two].lock(&cx).await?;
                Ok(())
            });
        }
        Ok(())
    })
    .await
}
planted!(three_in_a_circle_is_found: three_in_a_circle, Deadlock, 2, Proved);

/// Locks what it has locked.
async fn locked_twice<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let lock = Mutex::new(0);
    let mut guard = lock.lock(&cx).await?;
    *guard += 1;
    if !BUG {
        drop(guard);
    }
    *lock.lock(&cx).await? += 1;
    Ok(())
}
planted!(locked_twice_is_found: locked_twice, Deadlock, 0, Proved);

/// Two readers want to write, and each waits for the other to stop reading.
async fn upgrade<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let lock = Arc::new(RwLock::new(0));
        for _ in 0..2 {
            let lock = lock.clone();
            s.spawn(async move |cx: Cx| {
                let read = lock.read(&cx).await?;
                let seen = *read;
                cx.yield_now().await;
                if !BUG {
                    drop(read);
                    *lock.write(&cx).await? += 1;
                } else {
                    *lock.write(&cx).await? = seen + 1;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await
}
planted!(upgrade_is_found: upgrade, Deadlock, 1, Proved);

/// Reads under the lock, and writes under it what it has read, but lets go in between.
async fn released_too_early<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let count = Arc::new(Mutex::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            let count = count.clone();
            s.spawn(async move |cx: Cx| {
                let mut guard = count.lock(&cx).await?;
                let before = *guard;
                if BUG {
                    drop(guard);
                    cx.yield_now().await;
                    guard = count.lock(&cx).await?;
                }
                *guard = before + 1;
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(*count.lock(&cx).await?, 2, "an increment was lost");
    Ok(())
}
planted!(released_too_early_is_found: released_too_early, Panic, 1, Proved);

/// One permit is given back twice, so that two are where one may be.
async fn over_release<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let one = Arc::new(Semaphore::new(1));
    let inside = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for task in 0..3 {
            let (one, inside) = (one.clone(), inside.clone());
            s.spawn(async move |cx: Cx| {
                let Ok(permit) = one.acquire(&cx).await else { return Ok(()) };
                assert_eq!(inside.fetch_add(1, Relaxed), 0, "two are inside");
                cx.yield_now().await;
                inside.fetch_sub(1, Relaxed);
                drop(permit);
                if BUG && task == 0 {
                    one.add_permits(1);
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await
}
planted!(over_release_is_found: over_release, Panic, 2, Proved);

/// A permit is forgotten where work fails, and the last in line waits for it.
async fn under_release<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let two = Arc::new(Semaphore::new(1));
        for task in 0..2 {
            let two = two.clone();
            s.spawn(async move |cx: Cx| {
                let Ok(permit) = two.acquire(&cx).await else { return Ok(()) };
                cx.yield_now().await;
                if BUG && task == 1 {
                    permit.forget();
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await
}
planted!(under_release_is_found: under_release, Deadlock, 1, Proved);

/// A guard that nobody drops: nobody waits for it, and still it is gone for good.
async fn leaked_guard<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let lock = Arc::new(Mutex::new(0));
    let guard = lock.lock_owned(&cx).await?;
    if BUG {
        std::mem::forget(guard);
    }
    Ok(())
}
planted!(leaked_guard_is_found: leaked_guard, Leak, 0, Proved);

/// Waits for a lock in one future, stops polling it, and waits for the same lock in another.
async fn futurelock<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let lock = Arc::new(Mutex::new(0));
        let held = lock.clone();
        s.task("holder").spawn(async move |cx: Cx| {
            let _guard = held.lock(&cx).await?;
            cx.yield_now().await;
            cx.yield_now().await;
            Ok(())
        });
        s.task("chooser").spawn(async move |cx: Cx| {
            let mut slow = Box::pin(async { lock.lock(&cx).await.map(|guard| *guard) });
            let mut fast = pin!(cx.yield_now());
            let first = poll_fn(|context| {
                let done = slow.as_mut().poll(context).is_ready();
                let tired = fast.as_mut().poll(context).is_ready();
                if done || tired { Poll::Ready(done) } else { Poll::Pending }
            })
            .await;
            if first {
                return Ok(());
            }
            if !BUG {
                drop(slow);
            }
            *lock.lock(&cx).await? += 1;
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(futurelock_is_found: futurelock, Futurelock, 2, Proved);

/// Keeps a lock while it waits for a message, whose sender wants the lock.
async fn lock_and_message<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let lock = Arc::new(Mutex::new(0));
        let (tx, mut rx) = channel::bounded::<u32>(1);
        let other = lock.clone();
        s.spawn(async move |cx: Cx| {
            let guard = other.lock(&cx).await?;
            if BUG {
                let _ = rx.recv(&cx).await;
            } else {
                drop(guard);
                let _ = rx.recv(&cx).await;
            }
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            let value = *lock.lock(&cx).await?;
            let _ = tx.send(&cx, value).await;
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(lock_and_message_is_found: lock_and_message, Deadlock, 1, Proved);

/// Two values that are made once each, and each needs the other first.
async fn made_in_a_circle<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let cells = Arc::new([OnceCell::new(), OnceCell::new()]);
        for me in 0..2_usize {
            let cells = cells.clone();
            s.spawn(async move |cx: Cx| {
                let (own, other) = if BUG { (me, 1 - me) } else { (0, 1) };
                let make = async || cells[other].get_or_init(&cx, async || 1).await.is_ok();
                cells[own].get_or_init(&cx, async || u32::from(make().await)).await?;
                Ok(())
            });
        }
        Ok(())
    })
    .await
}
planted!(made_in_a_circle_is_found: made_in_a_circle, Deadlock, 1, Proved);
