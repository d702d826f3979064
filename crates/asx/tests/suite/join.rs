//! Joins, through the public interface.

use crate::common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use asx::cancel::Kind;
use asx::prelude::*;
use asx::time::Sleep;
use asx::{join_all, join3, join4, try_join_all, try_join3, try_join4};
use common::{Log, on_each, until_cancelled};

#[test]
fn parts_borrow_and_run_concurrently() {
    on_each(|rt| {
        let turn = Cell::new(0);
        // Each part waits for the progress of the other.
        let play = async |cx: &Cx, odd: bool| {
            while turn.get() < 10 {
                if (turn.get() % 2 == 1) == odd {
                    turn.set(turn.get() + 1);
                }
                cx.yield_now().await;
            }
            odd
        };
        let both = rt.block_on(async |cx: Cx| {
            join(&cx, async |cx| play(cx, false).await, async |cx| play(cx, true).await).await
        });
        assert_eq!((both, turn.get()), ((false, true), 10));
    });
}

#[test]
fn each_output_is_in_its_position() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let cx = &cx;
            let late = async |cx: &Cx| {
                cx.yield_now().await;
                'a'
            };
            assert_eq!(join3(cx, late, async |_| 2, async |_| "c").await, ('a', 2, "c"));
            assert_eq!(join4(cx, async |_| 1, late, async |_| 3, late).await, (1, 'a', 3, 'a'));
            let parts = (0..100_usize).map(|n| {
                async move |cx: &Cx| {
                    for _ in n..100 {
                        cx.yield_now().await;
                    }
                    n
                }
            });
            assert_eq!(join_all(cx, parts).await, Vec::from_iter(0..100));
            let three = try_join3(cx, async |_| Ok(1), async |_| Ok('b'), async |_| Ok(3)).await;
            assert_eq!(three, Ok::<_, ()>((1, 'b', 3)));
            let all = try_join_all(cx, [1, 2].map(|n| async move |_: &Cx| Ok::<_, ()>(n))).await;
            assert_eq!(all, Ok(vec![1, 2]));
        });
    });
}

#[test]
fn the_first_error_cancels_and_drains_the_rest_and_is_the_result() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (cx, log) = (&cx, &Log::default());
            let other = async |who: &str| {
                until_cancelled(cx, log, who).await;
                Err::<(), _>("because of it")
            };
            let fail = async |cx: &Cx| {
                cx.yield_now().await;
                Err::<(), _>("first")
            };
            let result = try_join(cx, async |_| other("a").await, fail).await;
            assert_eq!((result, log.take()), (Err("first"), vec!["a FailFast".into()]));

            let parts = (async |_: &_| other("a").await, async |_: &_| Ok::<_, &str>(()));
            let result = try_join4(cx, parts.0, fail, parts.1, async |_| other("d").await).await;
            let drained = vec!["a FailFast".into(), "d FailFast".into()];
            assert_eq!((result, log.take()), (Err("first"), drained));

            let result = try_join_all(
                cx,
                ["x", "y", "fail", "z"].map(|who| {
                    async move |cx: &_| {
                        if who == "fail" { fail(cx).await } else { other(who).await }
                    }
                }),
            );
            let result = result.await;
            assert_eq!((result, log.take().len()), (Err("first"), 3));
        });
    });
}

#[test]
fn a_part_that_had_not_begun_never_begins() {
    on_each(|rt| {
        let begun = Cell::new(false);
        let result = rt.block_on(async |cx: Cx| {
            let second = async |_: &_| {
                begun.set(true);
                Ok(())
            };
            try_join(&cx, async |_| Err::<(), _>("at once"), second).await
        });
        assert_eq!((result, begun.get()), (Err("at once"), false));
    });
}

#[test]
fn a_cancel_of_the_task_reaches_every_part() {
    on_each(|rt| {
        let log = Arc::new(Log::default());
        let result: Result<(), Cancelled> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let seen = log.clone();
                let (tx, mut rx) = channel::oneshot();
                let task = s.spawn(async move |cx: Cx| {
                    let parts = ["c", "d"].map(|who| {
                        let seen = &seen;
                        async move |cx: &Cx| drop(until_cancelled(cx, seen, who).await)
                    });
                    join3(
                        &cx,
                        async |cx| drop(until_cancelled(cx, &seen, "a").await),
                        async |cx| drop(join_all(cx, parts).await),
                        async |_| tx.send(()),
                    )
                    .await
                    .2
                    .ok();
                    Ok(())
                });
                rx.recv(&cx).await.unwrap();
                task.cancel("done with");
                assert!(
                    matches!(task.await, Err(TaskError::Cancelled(why)) if why.kind() == Kind::User)
                );
                Ok(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
        assert_eq!(log.take(), ["a User", "c User", "d User"]);
    });
}

#[test]
fn a_panic_resumes_when_the_rest_has_ended() {
    on_each(|rt| {
        let log = Log::default();
        let ouch = async |cx: &Cx| {
            cx.yield_now().await;
            panic!("ouch");
        };
        let two = AssertUnwindSafe(|| {
            rt.block_on(async |cx: Cx| {
                join(&cx, async |cx| until_cancelled(cx, &log, "a").await, ouch).await.0
            })
        });
        assert_eq!(catch_unwind(two).unwrap_err().downcast_ref(), Some(&"ouch"));
        assert_eq!(log.take(), ["a FailFast"]);
        let many = AssertUnwindSafe(|| {
            rt.block_on(async |cx: Cx| {
                let parts = ["a", "ouch", "b"].map(|who| {
                    let log = &log;
                    async move |cx: &Cx| match who {
                        "ouch" => ouch(cx).await,
                        _ => drop(until_cancelled(cx, log, who).await),
                    }
                });
                join_all(&cx, parts).await
            })
        });
        assert_eq!(catch_unwind(many).unwrap_err().downcast_ref(), Some(&"ouch"));
        assert_eq!(log.take(), ["a FailFast", "b FailFast"]);
    });
}

#[test]
fn a_timer_uses_the_latest_waker_of_its_future() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            let mut sleep: Pin<&mut Sleep<'_>> = pin!(cx.sleep(2.millis()));
            // Armed with the waker of the task, then awaited with that of a child.
            std::future::poll_fn(|context| {
                let _ = sleep.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
            join_all(&cx, [async |_: &Cx| sleep.await]).await
        });
        assert!(matches!(result[..], [Ok(())]));
    });
}
