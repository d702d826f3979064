//! Locks are released, permits conserved, signals passed on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use asx_runtime::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope};

use super::{Count, holds, holds_at_polls, holds_in_exact_time, pause};

#[test]
fn a_mutex_lets_one_in_and_is_free_in_the_end() {
    holds(async |cx: Cx| {
        let (lock, inside) = (Arc::new(Mutex::new((0, 0))), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for _ in 0..3 {
                    let (lock, inside) = (lock.clone(), inside.clone());
                    s.spawn(async move |cx: Cx| {
                        let mut guard = lock.lock(&cx).await?;
                        let _inside = inside.inside();
                        assert_eq!(inside.get(), 1);
                        guard.0 += 1;
                        pause(&cx).await;
                        guard.1 += 1;
                        cx.checkpoint()
                    });
                }
                Ok(())
            })
            .await;
        let pair = *lock.try_lock().expect("it is free");
        assert!(pair.0 == pair.1 && inside.get() == 0);
        ended
    });
}

#[test]
fn a_rwlock_lets_readers_or_a_writer_in_and_is_free_in_the_end() {
    holds(async |cx: Cx| {
        let lock = Arc::new(RwLock::new(0));
        let (readers, writers) = (Count::default(), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for task in 0..3 {
                    let lock = lock.clone();
                    let (readers, writers) = (readers.clone(), writers.clone());
                    s.spawn(async move |cx: Cx| {
                        if task == 1 {
                            let mut guard = lock.write(&cx).await?;
                            let _inside = writers.inside();
                            assert_eq!((readers.get(), writers.get()), (0, 1));
                            *guard += 1;
                            pause(&cx).await;
                        } else {
                            let _guard = lock.read(&cx).await?;
                            let _inside = readers.inside();
                            assert_eq!(writers.get(), 0);
                            pause(&cx).await;
                        }
                        cx.checkpoint()
                    });
                }
                Ok(())
            })
            .await;
        assert!(lock.try_write().is_ok(), "it is free");
        ended
    });
}

#[test]
fn a_semaphore_keeps_its_permits() {
    holds(async |cx: Cx| {
        let (pool, used) = (Arc::new(Semaphore::new(3)), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for wants in [2, 3, 1] {
                    let (pool, used) = (pool.clone(), used.clone());
                    s.spawn(async move |cx: Cx| {
                        let Ok(permit) = pool.acquire_many(&cx, wants).await else {
                            return cx.checkpoint();
                        };
                        let all: Vec<_> = (0..wants).map(|_| used.inside()).collect();
                        assert!(used.get() <= 3);
                        pause(&cx).await;
                        drop((all, permit));
                        cx.checkpoint()
                    });
                }
                Ok(())
            })
            .await;
        assert_eq!((pool.available_permits(), used.get()), (3, 0));
        ended
    });
}

#[test]
fn who_leaves_the_line_lets_those_behind_go() {
    holds(async |cx: Cx| {
        let (pool, done) = (Arc::new(Semaphore::new(3)), Arc::new(Notify::new()));
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                let (all, told) = (pool.clone(), done.clone());
                s.spawn(async move |cx: Cx| {
                    let _two = all.acquire_many(&cx, 2).await;
                    told.notified(&cx).await
                });
                let all = pool.clone();
                s.spawn(async move |cx: Cx| {
                    let second = Duration::from_secs(1);
                    let _ = cx.timeout(second, |cx| all.acquire_many(cx, 3)).await;
                    cx.checkpoint()
                });
                let one = pool.clone();
                s.spawn(async move |cx: Cx| {
                    let _one = one.acquire(&cx).await;
                    done.notify_one();
                    cx.checkpoint()
                });
                Ok(())
            })
            .await;
        assert_eq!(pool.available_permits(), 3);
        ended
    });
}

#[test]
fn a_notification_goes_to_somebody_who_is_there() {
    holds_in_exact_time(async |cx: Cx| {
        let (told, left) = (Count::default(), Count::default());
        cx.scope(async |s: Scope<Cancelled>| {
            let notify = Arc::new(Notify::new());
            for _ in 0..2 {
                let (notify, told, left) = (notify.clone(), told.clone(), left.clone());
                s.spawn(async move |cx: Cx| {
                    let notified = notify.notified(&cx).await;
                    if notified.is_ok() {
                        told.add(1)
                    } else {
                        left.add(1)
                    };
                    notified
                });
            }
            s.spawn(async move |cx: Cx| {
                pause(&cx).await;
                notify.notify_one();
                pause(&cx).await;
                assert!(told.get() > 0 || left.get() == 2, "it went to one who has left");
                notify.notify_one();
                cx.checkpoint()
            });
            Ok(())
        })
        .await
    });
}

#[test]
fn all_that_wait_are_notified() {
    holds(async |cx: Cx| {
        cx.scope(async |s: Scope<Cancelled>| {
            let gate = Arc::new((Notify::new(), AtomicBool::new(false)));
            for _ in 0..2 {
                let gate = gate.clone();
                s.spawn(async move |cx: Cx| {
                    let open = gate.0.notified(&cx);
                    if gate.1.load(Relaxed) { Ok(()) } else { open.await }
                });
            }
            s.spawn(async move |cx: Cx| {
                pause(&cx).await;
                gate.1.store(true, Relaxed);
                gate.0.notify_waiters();
                cx.checkpoint()
            });
            Ok(())
        })
        .await
    });
}

#[test]
fn who_leaves_a_barrier_does_not_count() {
    // A cancel between two spawns would leave too few to pass it.
    holds_at_polls(async |cx: Cx| {
        let (passed, leaders) = (Count::default(), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                let barrier = Arc::new(Barrier::new(3));
                for _ in 0..3 {
                    let barrier = barrier.clone();
                    let (passed, leaders) = (passed.clone(), leaders.clone());
                    s.spawn(async move |cx: Cx| {
                        let pass = match barrier.wait(&cx).await {
                            Ok(pass) => pass,
                            // The group was complete when it was asked to stop.
                            Err(cancelled) if leaders.get() > 0 => {
                                passed.add(1);
                                return Err(cancelled);
                            }
                            // The others count on it.
                            Err(_) => cx.shield(|cx| barrier.wait(cx)).await?,
                        };
                        passed.add(1);
                        leaders.add(pass.is_leader().into());
                        cx.checkpoint()
                    });
                }
                Ok(())
            })
            .await;
        assert!(matches!((passed.get(), leaders.get()), (3, 1) | (0, 0)));
        ended
    });
}

#[test]
fn a_cell_is_filled_once() {
    holds(async |cx: Cx| {
        let (cell, made, got) = (Arc::new(OnceCell::new()), Count::default(), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for _ in 0..3 {
                    let (cell, made, got) = (cell.clone(), made.clone(), got.clone());
                    s.spawn(async move |cx: Cx| {
                        let make = async || {
                            pause(&cx).await;
                            cx.checkpoint()?;
                            Ok::<_, Cancelled>(made.add(1))
                        };
                        assert_eq!(*cell.get_or_try_init(&cx, make).await?, 1);
                        got.add(1);
                        Ok(())
                    });
                }
                Ok(())
            })
            .await;
        assert_eq!(made.get(), u32::from(cell.get().is_some()));
        assert!(got.get() == 0 || made.get() == 1);
        ended
    });
}
