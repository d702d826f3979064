//! Races, through the public interface.

use crate::common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use asx::cancel::Kind;
use asx::prelude::*;
use asx::time::Timed;
use asx::{Runtime, race_all, race3, race4};
use common::{Log, on_each, until_cancelled};

#[test]
fn the_loser_has_cleaned_up_when_the_race_returns() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (cx, log) = (&cx, &Log::default());
            let lose = async |who| {
                until_cancelled(cx, log, who).await;
                "loser"
            };
            let win = async |cx: &Cx| {
                cx.yield_now().await;
                "winner"
            };
            assert_eq!(race(cx, async |_| lose("a").await, win).await, "winner");
            assert_eq!(log.take(), ["a RaceLost"]);
            let first = race4(
                cx,
                async |_| lose("a").await,
                async |_| lose("b").await,
                win,
                async |_| lose("d").await,
            );
            assert_eq!(first.await, "winner");
            assert_eq!(log.take(), ["a RaceLost", "b RaceLost", "d RaceLost"]);
            let many = ["a", "win", "b"].map(|who| {
                async move |cx: &_| if who == "win" { win(cx).await } else { lose(who).await }
            });
            assert_eq!(race_all(cx, many).await, Some("winner"));
            assert_eq!(log.take(), ["a RaceLost", "b RaceLost"]);
        });
    });
}

#[test]
fn values_of_losers_are_dropped_when_all_have_ended() {
    struct Value<'a>(&'a Log, &'static str);
    impl Drop for Value<'_> {
        fn drop(&mut self) {
            self.0.add(format!("drop {}", self.1));
        }
    }
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let lose = async |cx: &Cx, who| {
                until_cancelled(cx, log, who).await;
                Value(log, who)
            };
            let first = race3(
                &cx,
                async |cx| lose(cx, "a").await,
                async |cx| {
                    cx.yield_now().await;
                    Value(log, "winner")
                },
                async |cx| {
                    let value = lose(cx, "c").await;
                    cx.yield_now().await;
                    log.add("c ends");
                    value
                },
            )
            .await;
            let events = log.take();
            assert_eq!(events, ["a RaceLost", "c RaceLost", "c ends", "drop a", "drop c"]);
            drop(first);
            assert_eq!(log.take(), ["drop winner"]);
        });
    });
}

#[test]
fn the_first_ready_branch_wins_and_the_rest_never_begins() {
    on_each(|rt| {
        let begun = Cell::new(0);
        let part = |n| {
            let begun = &begun;
            async move |_: &Cx| {
                begun.set(begun.get() + 1);
                n
            }
        };
        rt.block_on(async |cx: Cx| {
            assert_eq!(race(&cx, part(1), part(2)).await, 1);
            assert_eq!(race_all(&cx, [part(3), part(4), part(5)]).await, Some(3));
            assert_eq!(race_all(&cx, [part(6)].into_iter().take(0)).await, None);
        });
        assert_eq!(begun.get(), 2);
    });
}

#[test]
fn a_timeout_reaches_both_parts_of_a_race_inside() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let result: Result<(), Cancelled> = cx
                .timeout(1.millis(), async |cx| {
                    let wait = async |cx: &Cx, who| Err(until_cancelled(cx, log, who).await);
                    race(cx, async |cx| wait(cx, "a").await, async |cx| wait(cx, "b").await).await
                })
                .await;
            assert_eq!(result.map_err(|cancelled| cancelled.kind()), Err(Kind::Timeout));
            // The one that ends first wins; the other had observed the timeout before.
            assert_eq!(log.take(), ["a Timeout", "b Timeout"]);
        });
    });
}

/// A value that logs its drop.
struct Logged<'a>(&'a Log, &'static str);

impl Drop for Logged<'_> {
    fn drop(&mut self) {
        self.0.add(format!("drops {}", self.1));
    }
}

/// Waits until it is cancelled, then returns a value.
async fn late<'a>(cx: &Cx, log: &'a Log, name: &'static str) -> Result<Logged<'a>, Cancelled> {
    until_cancelled(cx, log, name).await;
    Ok(Logged(log, name))
}

/// Values, errors and drops of bodies with a time limit.
async fn late_values(cx: Cx) {
    let (cx, log) = (&cx, &Log::default());
    let now = cx.now();

    let dropped = cx.timeout(1.millis(), |cx| late(cx, log, "a")).await;
    assert_eq!(dropped.map(drop).unwrap_err().kind(), Kind::Timeout);
    assert_eq!(log.take(), ["a Timeout", "drops a"]);

    let kept = cx.timeout_or_late(1.millis(), |cx| late(cx, log, "b")).await;
    let Ok(Timed::Late { value, cancelled }) = kept else { panic!("late") };
    assert_eq!((value.1, cancelled.kind()), ("b", Kind::Timeout));
    assert_eq!(log.take(), ["b Timeout"]);
    drop(value);
    assert_eq!(log.take(), ["drops b"]);

    let kept = cx.deadline_or_late(now, |cx| late(cx, log, "c")).await;
    let Ok(Timed::Late { cancelled, .. }) = kept else { panic!("late") };
    assert_eq!(cancelled.kind(), Kind::Deadline);
    assert_eq!(log.take(), ["c Deadline"]);

    let early = cx.timeout_or_late(60.minutes(), async |cx| {
        cx.yield_now().await;
        Ok::<_, Cancelled>(1)
    });
    assert_eq!(early.await, Ok(Timed::InTime(1)));
    let unobserved = cx.deadline_or_late(now, async |_| Ok::<_, Cancelled>(2));
    assert_eq!(unobserved.await, Ok(Timed::InTime(2)));
    let shielded = cx.timeout_or_late(1.millis(), async |cx| {
        let sleep = async |cx: &Cx| cx.sleep(2.millis()).await;
        cx.shield(sleep).await.map(|()| 3)
    });
    assert_eq!(shielded.await, Ok(Timed::InTime(3)));
}

/// The body's error, an outer cancel, and a drop before the end.
async fn late_errors_and_drops(cx: Cx) {
    let (cx, log) = (&cx, &Log::default());
    let failed = cx.timeout_or_late(1.millis(), async |cx| -> Result<(), Cancelled> {
        Err(until_cancelled(cx, log, "a").await)
    });
    assert_eq!(failed.await.unwrap_err().kind(), Kind::Timeout);

    // Only the outer limit was observed: for the inner one the value is in time.
    let nested = cx.timeout_or_late(1.millis(), async |cx| {
        cx.timeout_or_late(60.minutes(), |cx| late(cx, log, "b")).await
    });
    let Ok(Timed::Late { value: Timed::InTime(value), .. }) = nested.await else { panic!("late") };
    assert_eq!(value.1, "b");
    drop(value);
    assert_eq!(log.take(), ["a Timeout", "b Timeout", "drops b"]);

    let mut pending = Box::pin(cx.timeout_or_late(60.minutes(), async |cx| {
        let _held = Logged(log, "c");
        cx.sleep(60.minutes()).await
    }));
    let first = std::future::poll_fn(|context| Poll::Ready(pending.as_mut().poll(context)));
    assert!(first.await.is_pending());
    drop(pending);
    assert_eq!(log.take(), ["drops c"]);
}

#[test]
fn timeout_or_late_returns_the_value_that_timeout_drops() {
    on_each(|rt| {
        rt.block_on(late_values);
        rt.block_on(late_errors_and_drops);
    });
}

#[cfg(feature = "lab")]
#[test]
fn timeout_or_late_in_the_lab_returns_the_value_that_timeout_drops() {
    asx::lab::check(late_values).runs(50).exact_time().assert();
    asx::lab::check(late_errors_and_drops).runs(50).exact_time().assert();
}

/// A cancel at any await: a message that was received is returned or still in the channel.
#[cfg(feature = "lab")]
#[test]
fn timeout_or_late_with_a_cancel_at_every_await_loses_no_message() {
    async fn receives(cx: Cx) -> Result<(), Cancelled> {
        let (sender, mut receiver) = channel::bounded(1);
        sender.try_send(7).unwrap();
        let received = cx
            .timeout_or_late(1.millis(), async |cx| {
                let message = receiver.next(cx).await?;
                let _ = cx.sleep(5.millis()).await;
                Ok::<_, Cancelled>(message)
            })
            .await;
        let left = receiver.try_recv().ok();
        match received {
            Ok(Timed::InTime(message) | Timed::Late { value: message, .. }) => {
                assert_eq!((message, left), (Some(7), None));
            }
            Err(_) => assert_eq!(left, Some(7)),
        }
        Ok(())
    }
    asx::lab::check(receives).runs(50).cancel_at_every_await().assert();
}

#[test]
fn an_inner_timeout_can_only_tighten() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let kinds = &Log::default();
            let inner = async |cx: &Cx, limit| -> Result<(), Cancelled> {
                let wait = async |cx: &Cx| Err(cx.cancelled().await);
                let result = cx.timeout(limit, wait).await;
                kinds.add(format!("{:?}", result.as_ref().map_err(|why| why.kind())));
                result
            };
            // The outer limit passes first: its deadline applies inside, whatever the inner one is.
            let now = cx.now();
            let outer = cx.deadline(now + 1.millis(), async |cx| inner(cx, 60.minutes()).await);
            assert_eq!(outer.await.map_err(|why| why.kind()), Err(Kind::Deadline));
            let outer = cx.deadline(now + 60.minutes(), async |cx| inner(cx, 1.millis()).await);
            assert_eq!(outer.await.map_err(|why| why.kind()), Err(Kind::Timeout));
            assert_eq!(kinds.take(), ["Err(Deadline)", "Err(Timeout)"]);
        });
    });
}

#[test]
fn a_shield_in_the_loser_is_not_broken() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let guarded = async |cx: &Cx| {
                let inside = async |cx: &Cx| {
                    for _ in 0..5 {
                        cx.yield_now().await;
                        assert!(!cx.is_cancelled());
                        cx.checkpoint().unwrap();
                    }
                    log.add("shielded part done");
                };
                cx.shield(inside).await;
                log.add(format!("then {:?}", cx.checkpoint().unwrap_err().kind()));
            };
            race(&cx, guarded, async |cx| cx.yield_now().await).await;
            assert_eq!(log.take(), ["shielded part done", "then RaceLost"]);
            assert!(!cx.is_cancelled());
        });
    });
}

#[test]
fn a_race_in_a_race_loses_as_a_whole() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (cx, log) = (&cx, &Log::default());
            let inner = async |cx: &Cx| {
                let wait = async |cx: &Cx, who| drop(until_cancelled(cx, log, who).await);
                race(cx, async |cx| wait(cx, "a").await, async |cx| wait(cx, "b").await).await;
            };
            race(cx, inner, async |cx| cx.yield_now().await).await;
            assert_eq!(log.take(), ["a RaceLost", "b RaceLost"]);
        });
    });
}

#[test]
fn a_scope_in_the_loser_is_closed_and_drained() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = std::sync::Arc::new(Log::default());
            let scoped = async |cx: &Cx| -> Result<(), Cancelled> {
                cx.scope(async |s| {
                    let log = log.clone();
                    s.spawn(async move |cx: Cx| {
                        Err::<(), _>(until_cancelled(&cx, &log, "child").await)
                    });
                    Err(cx.cancelled().await)
                })
                .await
            };
            let win = async |cx: &Cx| {
                cx.yield_now().await;
                Ok(())
            };
            assert_eq!(race(&cx, scoped, win).await, Ok(()));
            assert_eq!(log.take(), ["child ParentCancelled"]);
        });
    });
}

#[test]
fn a_panic_resumes_when_the_other_has_ended() {
    on_each(|rt: &Runtime| {
        let log = Log::default();
        let run = AssertUnwindSafe(|| {
            rt.block_on(async |cx: Cx| {
                let ouch = async |cx: &Cx| {
                    cx.yield_now().await;
                    panic!("ouch")
                };
                race(&cx, async |cx| drop(until_cancelled(cx, &log, "a").await), ouch).await
            })
        });
        assert_eq!(catch_unwind(run).unwrap_err().downcast_ref(), Some(&"ouch"));
        assert_eq!(log.take(), ["a RaceLost"]);
    });
}

#[test]
fn races_run_in_tasks_on_any_thread() {
    on_each(|rt| {
        let sum: Result<u32, Cancelled> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let tasks = Vec::from_iter((0..50).map(|n| {
                    s.spawn(async move |cx: Cx| {
                        let slow = async |cx: &Cx| Err(cx.cancelled().await);
                        let fast = async |cx: &Cx| {
                            cx.sleep(10.micros()).await?;
                            Ok(n)
                        };
                        race(&cx, slow, fast).await
                    })
                }));
                let mut sum = 0;
                for task in tasks {
                    sum += task.await.unwrap();
                }
                Ok(sum)
            })
            .await
        });
        assert_eq!(sum, Ok(1225));
    });
}
