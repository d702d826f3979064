//! Groups, through the public interface.

use crate::common;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};

use asx::cancel::Kind;
use asx::prelude::*;
use asx::{BoxFuture, Child, Group};
use common::{Log, on_each, until_cancelled};

#[test]
fn outputs_come_in_the_order_of_completion() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            group(&cx, async |g| {
                for n in [3, 1, 2] {
                    g.add(async move |cx| {
                        for _ in 0..n {
                            cx.yield_now().await;
                        }
                        n
                    });
                }
                let mut ended = Vec::new();
                while let Some(n) = g.next(&cx).await? {
                    ended.push(n);
                }
                assert!(g.is_empty());
                Ok::<_, Cancelled>(ended)
            })
            .await
        });
        assert_eq!(result, Ok(vec![1, 2, 3]));
    });
}

/// A child that ends when signalled, and counts its polls.
#[derive(Default)]
struct Gate {
    open: Cell<bool>,
    polls: Cell<usize>,
    waker: RefCell<Option<Waker>>,
}

impl Gate {
    async fn pass(&self) {
        poll_fn(|context| {
            self.polls.set(self.polls.get() + 1);
            *self.waker.borrow_mut() = Some(context.waker().clone());
            if self.open.get() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn wake(&self) {
        self.waker.borrow().as_ref().unwrap().wake_by_ref();
    }
}

#[test]
fn only_children_that_were_woken_are_polled() {
    on_each(|rt| {
        let gates = Vec::from_iter((0..1000).map(|_| Gate::default()));
        let polls = || gates.iter().map(|gate| gate.polls.get()).sum::<usize>();
        let result = rt.block_on(async |cx: Cx| {
            group(&cx, async |g| {
                let enter = |index: usize| {
                    let gate = &gates[index];
                    async move |_: &Cx| {
                        gate.pass().await;
                        index
                    }
                };
                for index in 0..1000 {
                    g.add(enter(index));
                }
                while polls() < 1000 {
                    cx.yield_now().await;
                }
                gates[7].wake();
                gates[7].wake();
                cx.yield_now().await;
                cx.yield_now().await;
                assert_eq!((polls(), gates[7].polls.get()), (1001, 2));
                for index in [500, 3] {
                    gates[index].open.set(true);
                    gates[index].wake();
                    assert_eq!(g.next(&cx).await?, Some(index));
                }
                assert_eq!((polls(), g.len()), (1003, 998));
                // A waker that outlives its child wakes no task.
                gates[3].wake();
                cx.yield_now().await;
                assert_eq!(polls(), 1003);
                gates.iter().for_each(|gate| gate.open.set(true));
                gates.iter().for_each(Gate::wake);
                Ok::<_, Cancelled>(())
            })
            .await
        });
        assert_eq!((result, polls()), (Ok(()), 2001));
    });
}

#[test]
fn children_run_whatever_the_body_waits_for() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            let (tx, mut rx) = channel::bounded(1);
            group(&cx, async |g| {
                g.add(async |cx| {
                    for n in 0..10 {
                        tx.send(cx, n).await.unwrap();
                    }
                });
                let mut got = Vec::new();
                while got.len() < 10 {
                    got.push(rx.recv(&cx).await.unwrap());
                }
                Ok::<_, Cancelled>(got)
            })
            .await
        });
        assert_eq!(result, Ok(Vec::from_iter(0..10)));
    });
}

#[test]
fn the_group_waits_for_children_the_body_left() {
    on_each(|rt| {
        let log = Log::default();
        let result = rt.block_on(async |cx: Cx| {
            group(&cx, async |g| {
                g.add(async |cx| {
                    cx.yield_now().await;
                    log.add(format!("child, cancelled: {}", cx.is_cancelled()));
                });
                log.add("body");
                Ok::<_, ()>(())
            })
            .await
        });
        assert_eq!(
            (result, log.take()),
            (Ok(()), vec!["body".into(), "child, cancelled: false".into()])
        );
    });
}

#[test]
fn an_error_of_the_body_cancels_and_drains_the_children() {
    on_each(|rt| {
        let log = Log::default();
        let result = rt.block_on(async |cx: Cx| {
            group(&cx, async |g| {
                for who in ["a", "b"] {
                    g.add(|cx| until_cancelled(cx, &log, who));
                }
                cx.yield_now().await;
                // Added, but never polled before the end.
                g.add(|cx| until_cancelled(cx, &log, "c"));
                Err::<(), _>("body")
            })
            .await
        });
        assert_eq!(result, Err("body"));
        assert_eq!(log.take(), ["a FailFast", "b FailFast", "c FailFast"]);
    });
}

#[test]
fn one_or_all_children_can_be_cancelled() {
    on_each(|rt| {
        let log = Log::default();
        let result = rt.block_on(async |cx: Cx| {
            group(&cx, async |g| {
                let add = |who| {
                    let log = &log;
                    g.add(async move |cx| {
                        until_cancelled(cx, log, who).await;
                        who
                    })
                };
                let [_, b, _] = ["a", "b", "c"].map(add);
                g.cancel(b);
                assert_eq!((g.next(&cx).await?, g.len()), (Some("b"), 2));
                g.cancel_all();
                add("d");
                assert_eq!([g.next(&cx).await?, g.next(&cx).await?], [Some("a"), Some("c")]);
                assert_eq!(log.take(), ["b User", "a User", "c User"]);
                g.cancel_all();
                assert_eq!([g.next(&cx).await?, g.next(&cx).await?], [Some("d"), None]);
                Ok::<_, Cancelled>(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
    });
}

#[test]
fn a_timeout_in_the_body_does_not_reach_the_children() {
    on_each(|rt| {
        let result = rt.block_on(async |cx: Cx| {
            group(&cx, async |g| {
                let kind = |why: Cancelled| why.kind();
                let waited: Result<_, Cancelled> =
                    cx.timeout(1.millis(), async |cx| g.next(cx).await).await;
                assert_eq!(waited.map_err(kind), Ok(None));
                let child: Child = g.add(async |cx| cx.cancelled().await.kind());
                let waited = cx.timeout(1.millis(), async |cx| g.next(cx).await).await;
                assert_eq!(waited.map_err(kind), Err(Kind::Timeout));
                g.cancel(child);
                g.next(&cx).await
            })
            .await
        });
        assert_eq!(result, Ok(Some(Kind::User)));
    });
}

#[test]
fn a_cancel_of_the_task_reaches_body_and_children_once_and_groups_inside() {
    on_each(|rt| {
        let log = Arc::new(Log::default());
        let result: Result<(), Cancelled> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let seen = log.clone();
                let (tx, mut rx) = channel::oneshot();
                let task = s.spawn(async move |cx: Cx| {
                    let log = &seen;
                    group(&cx, async |g| {
                        g.add(async |cx| {
                            group(cx, async |inner| {
                                inner.add(async |cx| until_cancelled(cx, log, "inmost").await);
                                until_cancelled(cx, log, "inner").await;
                                Ok::<_, Cancelled>(())
                            })
                            .await
                        });
                        cx.yield_now().await;
                        cx.yield_now().await;
                        tx.send(()).unwrap();
                        until_cancelled(&cx, log, "outer").await;
                        Ok::<_, Cancelled>(())
                    })
                    .await
                });
                rx.recv(&cx).await.unwrap();
                task.cancel("done with");
                assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
                Ok(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
        let mut seen = log.take();
        seen.sort();
        assert_eq!(seen, ["inmost User", "inner User", "outer User"]);
    });
}

#[test]
fn a_panic_resumes_when_body_and_children_have_ended() {
    on_each(|rt| {
        let log = Log::default();
        let run = |who_panics: &'static str| {
            let log = &log;
            let run = AssertUnwindSafe(|| {
                rt.block_on(async |cx: Cx| {
                    let part = async |cx: &Cx, who: &'static str| {
                        if who == who_panics {
                            cx.yield_now().await;
                            panic!("ouch");
                        }
                        until_cancelled(cx, log, who).await;
                    };
                    let part = &part;
                    group(&cx, async |g| {
                        for who in ["a", "b"] {
                            g.add(async move |cx| part(cx, who).await);
                        }
                        part(&cx, "body").await;
                        Ok::<_, ()>(())
                    })
                    .await
                })
            });
            assert_eq!(catch_unwind(run).unwrap_err().downcast_ref(), Some(&"ouch"));
            let mut seen = log.take();
            seen.sort();
            seen
        };
        assert_eq!(run("a"), ["b FailFast", "body FailFast"]);
        assert_eq!(run("body"), ["a FailFast", "b FailFast"]);
    });
}

#[test]
fn nothing_starts_in_a_group_whose_body_has_ended() {
    async fn log_it(log: &Log, what: &'static str, token: Arc<()>) {
        log.add(what);
        drop(token);
    }
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (log, token, kept) = (Log::default(), Arc::new(()), Cell::new(None));
            let result = group(&cx, async |g| {
                g.add(|_| log_it(&log, "in time", token.clone()));
                kept.set(Some(g));
                Ok::<_, ()>(())
            });
            assert_eq!((result.await, log.take()), (Ok(()), vec!["in time".into()]));
            let g: Group<'_, _> = kept.take().unwrap();
            g.add(|_| log_it(&log, "too late", token.clone()));
            cx.yield_now().await;
            assert_eq!((g.len(), Arc::strong_count(&token), log.take()), (0, 1, vec![]));
        });
    });
}

#[test]
fn children_of_several_kinds_are_boxed() {
    on_each(|rt| {
        let text = String::from("four");
        let result = rt.block_on(async |cx: Cx| {
            group(&cx, async |g: Group<'_, BoxFuture<'_, usize>>| {
                g.add(|_| Box::pin(async { text.len() }));
                g.add(|cx| Box::pin(cx.shield(async |_| 5)));
                let both = [g.next(&cx).await?, g.next(&cx).await?];
                Ok::<_, Cancelled>(both)
            })
            .await
        });
        assert_eq!(result, Ok([Some(4), Some(5)]));
    });
}

#[test]
fn groups_run_in_tasks_on_any_thread() {
    on_each(|rt| {
        let sum: Result<u64, Cancelled> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s| {
                let tasks = Vec::from_iter((0..20_u64).map(|n| {
                    s.spawn(async move |cx: Cx| {
                        group(&cx, async |g| {
                            for m in 0..n {
                                g.add(async move |cx| cx.sleep(m.micros()).await.map(|()| m));
                            }
                            let mut sum = 0;
                            while let Some(m) = g.next(&cx).await? {
                                sum += m?;
                            }
                            Ok(sum)
                        })
                        .await
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
        assert_eq!(sum, Ok((0..20).map(|n: u64| n * n.saturating_sub(1) / 2).sum()));
    });
}
