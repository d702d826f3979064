//! Finalizers, supervisors, starts.

use std::time::Duration;

use asx_runtime::{Cancelled, Cx, NotReady, Ready, Restart, Scope, TaskError};

use super::{Count, holds};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn what_is_deferred_runs_once_after_all_else() {
    holds(async |cx: Cx| {
        let (live, deferred, ran) = (Count::default(), Count::default(), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                for number in [2, 1] {
                    let (inside, done) = (live.clone(), ran.clone());
                    let registered = s.defer(async move |cx: Cx| {
                        assert_eq!(inside.get(), 0, "something lives");
                        cx.yield_now().await;
                        cx.sleep(SECOND).await.expect("no cancel reaches it");
                        assert_eq!(done.add(1), number, "last in, first out");
                    });
                    if registered.is_ok() {
                        deferred.add(1);
                    }
                }
                let live = live.clone();
                s.spawn(async move |cx: Cx| {
                    let _inside = live.inside();
                    let slept = cx.sleep(SECOND).await;
                    cx.yield_now().await;
                    slept
                });
                cx.sleep(SECOND / 2).await
            })
            .await;
        assert_eq!((ran.get(), live.get()), (deferred.get(), 0));
        ended
    });
}

#[test]
fn a_supervisor_has_one_at_a_time() {
    holds(async |cx: Cx| {
        let (live, lives) = (Count::default(), Count::default());
        let ended = cx
            .scope(async |s: Scope<Option<Cancelled>>| {
                let (inside, born) = (live.clone(), lives.clone());
                let restart = Restart::times(3, Duration::MAX).backoff(SECOND, SECOND);
                drop(s.supervise("worker", restart, move || {
                    let (live, lives) = (inside.clone(), born.clone());
                    async move |cx: Cx| {
                        let _inside = live.inside();
                        assert_eq!(live.get(), 1, "two at once");
                        let life = lives.add(1);
                        cx.sleep(SECOND).await.map_err(Some)?;
                        if life < 3 { Err(None) } else { Ok(()) }
                    }
                }));
                Ok(())
            })
            .await;
        assert_eq!(live.get(), 0);
        assert!(lives.get() <= 3);
        ended
    });
}

#[test]
fn a_start_is_heard_or_called_off() {
    holds(async |cx: Cx| {
        let (live, said, heard) = (Count::default(), Count::default(), Count::default());
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                let (inside, says) = (live.clone(), said.clone());
                let start = s.start(async move |cx: Cx, ready: Ready<u32>| {
                    let _inside = inside.inside();
                    cx.sleep(SECOND).await?;
                    says.add(1);
                    ready.set(7);
                    cx.cancelled().await;
                    cx.yield_now().await;
                    Ok(())
                });
                match start.await {
                    Ok((seven, task)) => {
                        assert_eq!((seven, said.get()), (7, 1));
                        heard.add(1);
                        task.cancel("enough");
                        Ok(())
                    }
                    Err(NotReady::Ended(Err(TaskError::Cancelled(why)))) => Err(why),
                    Err(NotReady::Cancelled(why)) => Err(why),
                    Err(other) => panic!("{other:?}"),
                }
            })
            .await;
        assert_eq!(live.get(), 0);
        assert!(heard.get() <= said.get());
        ended
    });
}

#[test]
fn a_handle_tells_how_its_task_ended() {
    holds(async |cx: Cx| {
        let done = Count::default();
        let ended = cx
            .scope(async |s: Scope<Cancelled>| {
                let does = done.clone();
                let task = s.spawn(async move |cx: Cx| {
                    cx.sleep(SECOND).await?;
                    does.add(1);
                    Ok(7)
                });
                match task.await {
                    Ok(seven) => assert_eq!((seven, done.get()), (7, 1)),
                    Err(TaskError::Cancelled(_)) => assert!(done.get() == 0 || cx.is_cancelled()),
                    Err(other) => panic!("{other:?}"),
                }
                Ok(())
            })
            .await;
        assert!(done.get() <= 1);
        ended
    });
}
