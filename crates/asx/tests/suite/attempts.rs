//! Combinators of any number of parts, and of several attempts at one operation.

use crate::common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use asx::cancel::Kind;
use asx::prelude::*;
use asx::{Backoff, hedge, race_ok, race_ok_all, retry, retry_if};
use common::{Log, on_each, until_cancelled};

#[derive(Clone, Debug, PartialEq)]
enum Own {
    Cancelled(Kind),
    Refused(u32),
}

impl From<Cancelled> for Own {
    fn from(cancelled: Cancelled) -> Self {
        Own::Cancelled(cancelled.kind())
    }
}

#[test]
fn joins_of_any_number_return_in_the_order_written() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let cx = &cx;
            let made = &Log::default();
            let yields = async |times: u32| {
                for _ in 0..times {
                    cx.yield_now().await;
                }
                times
            };
            let joined = join!(
                cx,
                |_| {
                    made.add("first");
                    yields(3)
                },
                async |_| "text",
                |_| {
                    made.add("third");
                    yields(1)
                },
                async |_| 'c',
                async |_| (),
                async |_| yields(0).await,
            );
            assert_eq!(made.take(), ["first", "third"], "made in order, before any is polled");
            assert_eq!(joined.await, (3, "text", 1, 'c', (), 0));
            assert_eq!(join!(cx, async |_| 1).await, (1,));
            let values =
                try_join!(cx, async |_| Ok::<_, Own>(1), async |_| Ok("two"), async |cx| {
                    Ok(cx.sleep(1.millis()).await.map(|()| 3)?)
                },);
            assert_eq!(values.await, Ok((1, "two", 3)));
        });
    });
}

#[test]
fn an_error_in_a_join_stops_the_others_and_waits_for_them() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let waits =
                async |cx: &Cx, who| Err::<u32, _>(until_cancelled(cx, log, who).await.into());
            for at in 0..5 {
                let part = async |cx: &Cx, index: u32| match index == at {
                    true => {
                        cx.yield_now().await;
                        Err(Own::Refused(at))
                    }
                    false => waits(cx, "part").await,
                };
                let result = try_join!(
                    &cx,
                    async |cx| part(cx, 0).await,
                    async |cx| part(cx, 1).await,
                    async |cx| part(cx, 2).await,
                    async |cx| part(cx, 3).await,
                    async |cx| part(cx, 4).await,
                );
                assert_eq!(result.await, Err(Own::Refused(at)));
                assert_eq!(log.take(), ["part FailFast"; 4]);
            }
        });
        let panics = catch_unwind(AssertUnwindSafe(|| {
            rt.block_on(async |cx: Cx| {
                let log = &Log::default();
                join!(
                    &cx,
                    async |cx| until_cancelled(cx, log, "a").await,
                    async |cx| {
                        cx.yield_now().await;
                        panic!("mine")
                    },
                    async |cx| until_cancelled(cx, log, "c").await,
                )
                .await
            })
        }));
        assert_eq!(panics.unwrap_err().downcast_ref(), Some(&"mine"));
    });
}

#[test]
fn a_race_of_any_number_waits_for_the_losers() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let begun = &Cell::new(false);
            let first = race!(
                &cx,
                async |cx| until_cancelled(cx, log, "a").await.kind(),
                async |cx| until_cancelled(cx, log, "b").await.kind(),
                async |_| Kind::User,
                async |_| {
                    begun.set(true);
                    Kind::Shutdown
                },
                async |cx| until_cancelled(cx, log, "e").await.kind(),
            );
            assert_eq!(first.await, Kind::User);
            assert_eq!(log.take(), ["a RaceLost", "b RaceLost"]);
            assert!(!begun.get(), "what had not begun never does");
        });
    });
}

#[test]
fn the_first_success_wins_over_failures() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let refuse = async |cx: &Cx, code| {
                cx.yield_now().await;
                Err::<u32, _>(Own::Refused(code))
            };
            let value = async |cx: &Cx| Ok(cx.sleep(1.millis()).await.map(|()| 7)?);
            let lose = async |cx: &Cx| {
                until_cancelled(cx, log, "loser").await;
                Err(Own::Refused(0))
            };
            assert_eq!(race_ok(&cx, async |cx| refuse(cx, 1).await, value).await, Ok(7));
            assert_eq!(race_ok(&cx, value, lose).await, Ok(7));
            assert_eq!(log.take(), ["loser RaceLost"]);
            // Both fail: the error of the first one, whichever was faster.
            let late = async |cx: &Cx| {
                cx.sleep(1.millis()).await?;
                Err(Own::Refused(1))
            };
            let both = race_ok(&cx, late, async |cx| refuse(cx, 2).await);
            assert_eq!(both.await, Err::<u32, _>(Own::Refused(1)));
            let any = race_ok!(&cx, async |cx| refuse(cx, 1).await, lose, value, lose);
            assert_eq!(any.await, Ok(7));
            assert_eq!(log.take(), ["loser RaceLost"; 2]);
            let none = race_ok!(&cx, late, async |cx| refuse(cx, 2).await, late);
            assert_eq!(none.await, Err::<u32, _>(Own::Refused(1)));
            let codes = [3, 4].map(|code| async move |cx: &Cx| refuse(cx, code).await);
            let all = race_ok_all(&cx, codes).await;
            assert_eq!(all, Err(vec![Own::Refused(3), Own::Refused(4)]));
            let one = race_ok_all(
                &cx,
                [0, 1].map(|n| {
                    async move |cx: &Cx| match n {
                        0 => lose(cx).await,
                        n => Ok(n),
                    }
                }),
            );
            assert_eq!(one.await, Ok(1));
            assert_eq!(log.take(), ["loser RaceLost"]);
        });
    });
}

#[test]
fn another_attempt_begins_when_the_first_fails_or_is_slow() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let log = &Log::default();
            let hedged = async |after, first: &'static str| {
                let mut attempts = 0;
                hedge(&cx, after, |cx| {
                    attempts += 1;
                    let attempt = attempts;
                    async move {
                        log.add(attempt);
                        match if attempt == 1 { first } else { "good" } {
                            "good" => Ok(attempt),
                            "bad" => Err(Own::Refused(attempt)),
                            _ => Err(until_cancelled(cx, log, "slow").await.into()),
                        }
                    }
                })
                .await
            };
            assert_eq!(hedged(60.minutes(), "good").await, Ok(1));
            assert_eq!(log.take(), ["1"]);
            assert_eq!(hedged(60.minutes(), "bad").await, Ok(2));
            assert_eq!(log.take(), ["1", "2"]);
            assert_eq!(hedged(1.millis(), "slow").await, Ok(2));
            assert_eq!(log.take(), ["1", "2", "slow RaceLost"]);
            // A cancel does not cause another attempt.
            let late: Result<u32, Own> =
                cx.timeout(1.millis(), async |_| hedged(60.minutes(), "slow").await).await;
            assert_eq!(late, Err(Own::Cancelled(Kind::Timeout)));
            assert_eq!(log.take(), ["1", "slow Timeout"]);
        });
    });
}

#[test]
fn retry_stops_after_the_allowed_attempts() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let calls = AtomicU32::new(0);
            let refuse = async |_: &Cx| Err::<u32, _>(Own::Refused(calls.fetch_add(1, SeqCst)));
            let soon = Backoff::new(1.micros());
            assert_eq!(retry(&cx, soon, refuse).await, Err(Own::Refused(4)));
            assert_eq!(retry(&cx, soon.attempts(0), refuse).await, Err(Own::Refused(5)));
            assert_eq!(retry(&cx, soon.attempts(2), refuse).await, Err(Own::Refused(7)));
            let below = |error: &Own| *error < Own::Refused(10);
            let stopped = retry_if(&cx, soon.attempts(u32::MAX), refuse, below).await;
            assert_eq!(stopped, Err(Own::Refused(10)));
            let fourth = retry(&cx, soon, async |_| match calls.fetch_add(1, SeqCst) {
                n @ ..14 => Err(Own::Refused(n)),
                n => Ok(n),
            });
            assert_eq!(fourth.await, Ok(14));
            // A cancel ends a wait between attempts.
            let late = cx.timeout(1.millis(), async |cx| {
                retry(cx, Backoff::new(60.minutes()), refuse).await
            });
            assert_eq!(late.await, Err(Own::Cancelled(Kind::Timeout)));
        });
    });
}

impl PartialOrd for Own {
    fn partial_cmp(&self, other: &Own) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Own::Refused(a), Own::Refused(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}

/// A user-defined helper, with the signature that the book recommends.
async fn twice<'a, M, F, T, E>(cx: &'a Cx, mut op: M) -> Result<(T, T), E>
where
    M: FnMut(&'a Cx) -> F,
    F: Future<Output = Result<T, E>>,
{
    Ok((op(cx).await?, op(cx).await?))
}

/// This test is about compiling: closures that borrow, in tasks that may move to other threads.
#[test]
fn helpers_take_borrowing_closures_inside_of_tasks() {
    async fn ask(cx: &Cx, server: &str) -> Result<usize, Cancelled> {
        cx.sleep(1.micros()).await?;
        Ok(server.len())
    }
    on_each(|rt| {
        let total = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let task = s.spawn(async |cx: Cx| {
                    let server = String::from("near");
                    let near = &server;
                    let asks = async |cx| ask(cx, near).await;
                    let soon = Backoff::new(1.micros());
                    let mut total = retry(&cx, soon, async |cx| ask(cx, &server).await).await?;
                    total += retry_if(&cx, soon, asks, |_| true).await?;
                    total += hedge(&cx, 1.secs(), async |cx| ask(cx, &server).await).await?;
                    total += race_ok(&cx, async |cx| ask(cx, &server).await, asks).await?;
                    total += race!(&cx, async |cx| ask(cx, &server).await, asks, asks).await?;
                    let (a, b) = twice(&cx, async |cx| ask(cx, &server).await).await?;
                    let (c, d, e) = try_join!(
                        &cx,
                        async |cx| ask(cx, &server).await,
                        async |cx| twice(cx, async |cx| ask(cx, &server).await).await,
                        asks,
                    )
                    .await?;
                    Ok(total + a + b + c + d.0 + d.1 + e)
                });
                task.value().await
            })
            .await
        });
        assert_eq!(total, Ok::<_, Cancelled>(44));
    });
}

#[cfg(feature = "lab")]
mod lab {
    use super::*;
    use std::sync::Arc;

    /// Counts operations between their begin and their end.
    struct Inside<'a>(&'a AtomicU32);

    impl<'a> Inside<'a> {
        fn new(count: &'a AtomicU32) -> Inside<'a> {
            count.fetch_add(1, SeqCst);
            Inside(count)
        }
    }

    impl Drop for Inside<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
        }
    }

    /// With a cancel anywhere, no operation is running when the combinator returns, which returns
    /// the cancel.
    #[asx::test(seeds = 50, cancel = "every await")]
    async fn nothing_continues_to_run(cx: &Cx) -> Result<(), Cancelled> {
        let inside = Arc::new(AtomicU32::new(0));
        cx.scope(async |s| {
            let task = s.spawn({
                let inside = inside.clone();
                async move |cx: Cx| {
                    let attempt = async |cx: &Cx, value: u32| {
                        let _inside = Inside::new(&inside);
                        cx.sleep(u64::from(value).millis()).await?;
                        if value < 2 { Err(Own::Refused(value)) } else { Ok(value) }
                    };
                    let mut values = 0..;
                    let tried = retry(&cx, Backoff::new(1.millis()), |cx| {
                        attempt(cx, values.next().unwrap_or(9))
                    });
                    let tried = tried.await;
                    assert_eq!(inside.load(SeqCst), 0);
                    let mut values = 0..;
                    let hedged =
                        hedge(&cx, 1.millis(), |cx| attempt(cx, values.next().unwrap_or(9) + 1));
                    let hedged = hedged.await;
                    assert_eq!(inside.load(SeqCst), 0);
                    let first = race_ok!(
                        &cx,
                        async |cx| attempt(cx, 1).await,
                        async |cx| attempt(cx, 5).await,
                        async |cx| attempt(cx, 3).await,
                    );
                    let first = first.await;
                    assert_eq!(inside.load(SeqCst), 0);
                    let clean = [&tried, &hedged, &first]
                        .iter()
                        .all(|result| !matches!(result, Err(Own::Refused(_))));
                    assert!(clean || cx.checkpoint().is_err(), "{tried:?} {hedged:?} {first:?}");
                    Ok(())
                }
            });
            let _ = task.await;
            cx.checkpoint()
        })
        .await
        .inspect(|()| assert_eq!(inside.load(SeqCst), 0))
        .inspect_err(|_| assert_eq!(inside.load(SeqCst), 0))
    }

    /// Half of each wait is random.
    #[test]
    fn waits_are_between_half_and_all_of_the_backoff() {
        let seen = std::sync::Mutex::new(std::collections::BTreeSet::new());
        let report = asx::lab::check(async |cx: Cx| {
            let mut ends = vec![cx.now()];
            let refused: Result<(), Own> =
                retry(&cx, Backoff::new(8.millis()).longest(16.millis()), |cx| {
                    ends.push(cx.now());
                    async { Err(Own::Refused(1)) }
                })
                .await;
            assert_eq!(refused, Err(Own::Refused(1)));
            let waits: Vec<_> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let most = [0, 8, 16, 16, 16].map(|millis: u64| millis.millis());
            assert_eq!(waits.len(), most.len());
            for (wait, most) in waits.iter().zip(most) {
                assert!(most / 2 <= *wait && *wait <= most, "{waits:?}");
            }
            seen.lock().unwrap().insert(waits[4]);
            Ok::<_, Cancelled>(())
        })
        .exact_time()
        .run();
        assert!(report.failure.is_none(), "{:?}", report.failure);
        assert!(seen.lock().unwrap().len() > 10, "they are drawn");
    }
}
