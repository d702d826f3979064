//! Wakers that panic when they are used.

use super::*;

#[test]
fn joiner() {
    contained(callbacks(1), async |cx, s| {
        let (fuse, mut task) = (Fuse::default(), s.spawn(short));
        begin(pin!(&mut task), &fuse.waker());
        until(cx, || fuse.blown() == 1).await;
        assert_eq!(task.await.unwrap(), 7);
    });
}

#[test]
fn scope_awaiter() {
    contained(callbacks(1), async |cx, _| {
        let fuse = Fuse::default();
        let mut inner = pin!(cx.scope(async |s: Scope<Cancelled>| {
            s.spawn(short);
            Ok(3)
        }));
        begin(inner.as_mut(), &fuse.waker());
        until(cx, || fuse.blown() == 1).await;
        assert_eq!(inner.await.unwrap(), 3);
    });
}

/// The body of a cancelled scope, and an operation in it with the same waker.
#[test]
fn body_of_a_cancelled_scope() {
    contained(callbacks(1), async |cx, _| {
        let (fuse, ended) = (Fuse::default(), Arc::new(AtomicU64::new(0)));
        let scope = Mutex::new(None);
        let mut inner = pin!(cx.try_scope(async |s: Scope<Cancelled>| {
            for _ in 0..2 {
                let ended = ended.clone();
                s.spawn(async move |cx: Cx| {
                    cx.cancelled().await;
                    ended.fetch_add(1, SeqCst);
                    Ok(())
                });
            }
            *scope.lock().unwrap() = Some(s);
            std::future::pending::<Result>().await
        }));
        begin(inner.as_mut(), &fuse.waker());
        let scope = scope.lock().unwrap().take().unwrap();
        scope.cancel("test");
        until(cx, || ended.load(SeqCst) == 2).await;
        assert_eq!(fuse.blown(), 1);
    });
}

#[test]
fn sleeper() {
    contained(callbacks(3), async |cx, _| {
        let fuse = Fuse::default();
        let mut sleeps: Vec<_> = (0..3).map(|_| Box::pin(cx.sleep(5.millis()))).collect();
        let mut last = pin!(cx.sleep(5.millis()));
        sleeps.iter_mut().for_each(|sleep| begin(sleep.as_mut(), &fuse.waker()));
        begin(last.as_mut(), Waker::noop());
        last.await.unwrap();
        until(cx, || fuse.blown() == 3).await;
        for sleep in sleeps {
            sleep.await.unwrap();
        }
    });
}

/// The other waiter is woken too, and the socket stays ready.
#[cfg(unix)]
#[test]
fn socket_waiter() {
    contained(callbacks(2), async |cx, _| {
        let fuse = Fuse::default();
        let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = watched(cx, &near);
        let mut slots = [WaitSlot::default(), WaitSlot::default()];
        for slot in &mut slots {
            assert!(socket.poll_ready(Direction::Read, slot, &fuse.waker()).is_pending());
        }
        std::io::Write::write_all(&mut far, b"news").unwrap();
        until(cx, || fuse.blown() == 2).await;
        let ready = socket.poll_ready(Direction::Read, &mut slots[0], Waker::noop());
        assert!(matches!(ready, Poll::Ready(Ok(_))));
    });
}

#[test]
fn receiver() {
    contained(callbacks(1), async |cx, s| {
        let (fuse, (tx, mut rx)) = (Fuse::default(), channel::bounded(1));
        let mut recv = pin!(rx.recv(cx));
        begin(recv.as_mut(), &fuse.waker());
        let sent = s.spawn(async move |_cx: Cx| Ok(tx.try_send(7).is_ok()));
        assert!(sent.await.unwrap());
        assert_eq!(recv.await, Ok(7));
        assert_eq!(fuse.blown(), 1);
    });
}

/// The end of the other side wakes all of them, including the last one.
#[test]
fn senders_of_a_closed_channel() {
    contained(callbacks(3), async |cx, _| {
        let (fuse, (tx, rx)) = (Fuse::default(), channel::bounded(1));
        tx.try_send(0).unwrap();
        let mut sends: Vec<_> = (0..3).map(|n| Box::pin(tx.send(cx, n))).collect();
        sends.iter_mut().for_each(|send| begin(send.as_mut(), &fuse.waker()));
        let last = tx.send(cx, 9);
        let ((), last) = asx_runtime::join(cx, async |_| drop(rx), async |_| last.await).await;
        assert!(last.is_err());
        assert_eq!(fuse.blown(), 3);
    });
}

#[test]
fn watch_and_broadcast_receivers() {
    contained(callbacks(2), async |cx, _| {
        let fuse = Fuse::default();
        let (tx, mut rx) = channel::watch(1);
        let mut changed = pin!(rx.changed(cx));
        begin(changed.as_mut(), &fuse.waker());
        tx.send(2).unwrap();
        changed.await.unwrap();
        let (tx, mut rx) = channel::broadcast(1);
        let mut listen = pin!(rx.recv(cx));
        begin(listen.as_mut(), &fuse.waker());
        assert_eq!(tx.send(2), Ok(1));
        assert_eq!(listen.await, Ok(2));
    });
}

#[test]
fn lock_waiter() {
    contained(callbacks(1), async |cx, s| {
        let (fuse, mutex) = (Fuse::default(), Arc::new(sync::Mutex::new(1)));
        let guard = mutex.lock_owned(cx).await.unwrap();
        let mut lock = pin!(mutex.lock(cx));
        begin(lock.as_mut(), &fuse.waker());
        let unlocks = s.spawn(async move |_cx: Cx| {
            drop(guard);
            Ok(())
        });
        unlocks.await.unwrap();
        assert_eq!((*lock.await.unwrap(), fuse.blown()), (1, 1));
    });
}

#[test]
fn notified_waiters() {
    contained(callbacks(2 + 1), async |cx, s| {
        let (fuse, notify) = (Fuse::default(), Arc::new(sync::Notify::new()));
        let mut bad: Vec<_> = (0..2).map(|_| Box::pin(notify.notified(cx))).collect();
        bad.iter_mut().for_each(|wait| begin(wait.as_mut(), &fuse.waker()));
        let (own, ready) = (notify.clone(), Arc::new(AtomicU64::new(0)));
        let joined = ready.clone();
        let good = s.spawn(async move |cx: Cx| {
            let mut wait = pin!(own.notified(&cx));
            begin(wait.as_mut(), Waker::noop());
            joined.store(1, SeqCst);
            wait.await
        });
        until(cx, || ready.load(SeqCst) == 1).await;
        notify.notify_waiters();
        good.await.unwrap();
        for wait in bad {
            wait.await.unwrap();
        }
        let barrier = sync::Barrier::new(2);
        let mut early = pin!(barrier.wait(cx));
        begin(early.as_mut(), &fuse.waker());
        assert!(barrier.wait(cx).await.unwrap().is_leader());
        early.await.unwrap();
    });
}

#[test]
fn soft_stop_waiters() {
    contained(callbacks(2), async |cx, _| {
        let fuse = Fuse::default();
        let inner = cx.scope(async |s: Scope<Cancelled>| {
            let wait = s.spawn(async |cx: Cx| cx.stopping().await);
            let mut waits = [(); 2].map(|()| Box::pin(cx.stopping()));
            waits.iter_mut().for_each(|wait| begin(wait.as_mut(), &fuse.waker()));
            cx.yield_now().await;
            s.stop_within(Duration::from_secs(600));
            Ok(wait.await.is_ok())
        });
        assert!(inner.await.unwrap());
        assert_eq!(fuse.blown(), 2);
    });
}

/// An operation of the task waits with a separate waker, as in a `FuturesUnordered`, and the
/// task is cancelled.
#[test]
fn operation_in_a_cancelled_task() {
    contained(callbacks(1), async |cx, s| {
        let (fuse, begun) = (Fuse::default(), Arc::new(AtomicU64::new(0)));
        let (own, told) = (fuse.clone(), begun.clone());
        let task = s.spawn(async move |cx: Cx| {
            let mut sleep = pin!(cx.sleep(600.secs()));
            begin(sleep.as_mut(), &own.waker());
            told.store(1, SeqCst);
            cx.cancelled().await;
            Ok(())
        });
        until(cx, || begun.load(SeqCst) == 1).await;
        task.cancel("test");
        assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
        assert_eq!(fuse.blown(), 1);
    });
}

#[test]
fn start_and_group_waiters() {
    contained(callbacks(3), async |cx, s| {
        let fuse = Fuse::default();
        let mut starting = pin!(s.start(async |cx: Cx, ready: asx_runtime::Ready<u32>| {
            cx.sleep(5.millis()).await?;
            ready.set(5);
            Ok(())
        }));
        begin(starting.as_mut(), &fuse.waker());
        // That it is ready, and that it has ended.
        until(cx, || fuse.blown() == 2).await;
        assert_eq!(starting.await.map(|(said, _)| said).ok(), Some(5));
        let ended: Result<Option<u32>> = group(cx, async |g| {
            g.add(async |cx| {
                cx.yield_now().await;
                6
            });
            begin(pin!(g.next(cx)), &fuse.waker());
            g.next(cx).await
        })
        .await;
        assert_eq!(ended, Ok(Some(6)));
    });
}

/// A region cancels its child regions: the waker of each body panics, and all of
/// their tasks are cancelled.
#[test]
fn bodies_of_nested_cancelled_scopes() {
    contained(callbacks(3), async |cx, s| {
        let (fuse, ended) = (Fuse::default(), Arc::new(AtomicU64::new(0)));
        let (own, done, begun) = (fuse.clone(), ended.clone(), Fuse::default());
        let told = begun.clone();
        let task = s.spawn(async move |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let open = |_| {
                    Box::pin(cx.try_scope(async |s: Scope<Cancelled>| {
                        let done = done.clone();
                        s.spawn(async move |cx: Cx| {
                            cx.cancelled().await;
                            done.fetch_add(1, SeqCst);
                            Ok(())
                        });
                        std::future::pending::<Result>().await
                    }))
                };
                let mut scopes: Vec<_> = (0..3).map(open).collect();
                scopes.iter_mut().for_each(|scope| begin(scope.as_mut(), &own.waker()));
                s.cancel("all");
                told.0.store(1, SeqCst);
                cx.shield(async |cx| until(cx, || done.load(SeqCst) == 3).await).await;
                Ok(())
            })
            .await
        });
        until(cx, || begun.blown() == 1 && ended.load(SeqCst) == 3).await;
        drop(task.await);
        assert_eq!(fuse.blown(), 3);
    });
}
