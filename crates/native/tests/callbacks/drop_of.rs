//! Values that panic when they are dropped.

use super::*;

/// The panic is the outcome of the task, both at its normal end and at an abort.
#[test]
fn a_future() {
    contained(NONE, async |_cx, s| {
        let (fuse, bomb) = (Fuse::default(), Fuse::default().bomb());
        let ends = s.spawn(async move |_cx: Cx| {
            let _bomb = bomb;
            Ok(())
        });
        assert_eq!(panic_of(ends.await), "drop");
        let bomb = fuse.bomb();
        let forced = s
            .spawn(async move |cx: Cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    let deaf = s.spawn(async move |_cx: Cx| {
                        let _bomb = bomb;
                        std::future::pending::<Result>().await
                    });
                    cx.sleep(5.millis()).await?;
                    s.stop_within(Duration::ZERO);
                    cx.shield(async |_| Ok(panic_of(deaf.await))).await
                })
                .await
            })
            .await;
        assert!(fuse.blown() == 1, "{forced:?}");
    });
}

/// The handle returns the panic. It is counted in any case.
#[test]
fn a_refused_future() {
    contained(callbacks(2), async |cx, _| {
        let fuse = Fuse::default();
        let scope = cx.try_scope(async |s: Scope<Cancelled>| {
            s.cancel("enough");
            let [mut told, dropped] = [(); 2].map(|()| {
                let bomb = fuse.bomb();
                s.spawn(async move |_cx: Cx| {
                    let _bomb = bomb;
                    Ok(())
                })
            });
            drop(dropped);
            assert_eq!(panic_of(told.outcome().unwrap()), "drop");
            Ok(())
        });
        let _ = scope.await;
        assert_eq!(fuse.blown(), 2);
    });
}

#[test]
fn an_unclaimed_result() {
    contained(lost(4), async |cx, s| {
        let fuse = Fuse::default();
        for _ in 0..2 {
            let bomb = fuse.bomb();
            s.spawn(async move |_cx: Cx| Ok(bomb));
        }
        until(cx, || fuse.blown() == 2).await;
        // The handles are dropped after the end, one of them in another task.
        let tasks = [(); 2].map(|()| {
            let bomb = fuse.bomb();
            s.spawn(async move |_cx: Cx| Ok(bomb))
        });
        until(cx, || tasks.iter().all(|task| task.is_finished())).await;
        let [first, second] = tasks;
        drop(first);
        let drops = s.spawn(async move |_cx: Cx| {
            drop(second);
            Ok(())
        });
        drops.await.unwrap();
        assert_eq!(fuse.blown(), 4);
    });
}

#[test]
#[cfg_attr(asx_no_reuse, ignore = "leaks the payload of the third panic, as it should")]
fn a_panic_payload() {
    /// Its destructor panics with another one.
    struct Chain(Fuse);
    impl Drop for Chain {
        fn drop(&mut self) {
            self.0.0.fetch_add(1, SeqCst);
            panic_any(Chain(self.0.clone()));
        }
    }
    contained(callbacks(1 + 1 + 2), async |cx, s| {
        let fuse = Fuse::default();
        let bomb = fuse.bomb();
        let task = s.spawn(async move |_cx: Cx| -> Result { panic_any(bomb) });
        let outcome = task.await;
        assert!(matches!(outcome, Err(TaskError::Panicked(_))));
        drop(outcome);
        let bomb = fuse.bomb();
        s.spawn(async move |_cx: Cx| -> Result { panic_any(bomb) });
        until(cx, || fuse.blown() == 2).await;
        let chain = fuse.clone();
        s.spawn(async move |_cx: Cx| -> Result { panic_any(Chain(chain)) });
        until(cx, || fuse.blown() == 4).await;
    });
}

/// The region holds the last references.
#[test]
fn local_values() {
    static FIRST: Local<Bomb> = Local::new();
    static SECOND: Local<Bomb> = Local::new();
    contained(callbacks(2), async |cx, _| {
        let fuse = Fuse::default();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let mut inner = Box::pin(cx.with_local(&FIRST, fuse.bomb(), async |cx| {
            cx.with_local(&SECOND, fuse.bomb(), async |cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    let is_dropped = is_dropped.clone();
                    s.spawn(async move |cx: Cx| {
                        let ended = cx.sleep(600.secs()).await;
                        // Otherwise the region may be freed before the remaining values.
                        while !is_dropped.load(SeqCst) {
                            std::thread::yield_now();
                        }
                        ended
                    });
                    cx.sleep(600.secs()).await
                })
                .await
            })
            .await
        }));
        begin(inner.as_mut(), Waker::noop());
        // The scope closes after this.
        drop(inner);
        is_dropped.store(true, SeqCst);
        until(cx, || fuse.blown() == 2).await;
    });
}

#[test]
fn messages_of_a_closing_channel() {
    contained(callbacks(2), async |cx, _| {
        let fuse = Fuse::default();
        let inner = cx.scope(async |_s: Scope<Cancelled>| {
            let (tx, rx) = cx.channel(2).unwrap();
            assert!(tx.try_send(fuse.bomb()).is_ok() && tx.try_send(fuse.bomb()).is_ok());
            Ok((tx, rx))
        });
        let ends = inner.await.unwrap();
        assert_eq!(fuse.blown(), 2);
        drop(ends);
    });
}
