//! Cancels reach asx operations inside foreign futures, which poll only parts that were woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use asx::cancel::Kind;
use asx::prelude::*;
use asx::sync::{Barrier, Notify, Semaphore};
use asx::{BlockOnError, BoxFuture, Grace, Runtime, join_all, wait};

/// A future with a separate waker: as in a `FuturesUnordered`, it is polled only if that waker was
/// used, whatever else is polled around it.
struct Picky<F> {
    future: Pin<Box<F>>,
    own: Arc<Own>,
}

struct Own {
    woken: AtomicBool,
    polls: AtomicUsize,
    outer: Mutex<Option<Waker>>,
}

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, SeqCst);
        let outer = self.outer.lock().unwrap().clone();
        outer.inspect(Waker::wake_by_ref);
    }
}

fn picky<F: Future>(future: F) -> Picky<F> {
    let (woken, polls) = (AtomicBool::new(true), AtomicUsize::new(0));
    let own = Arc::new(Own { woken, polls, outer: Mutex::default() });
    Picky { future: Box::pin(future), own }
}

impl<F: Future> Future for Picky<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        *self.own.outer.lock().unwrap() = Some(context.waker().clone());
        if !self.own.woken.swap(false, SeqCst) {
            return Poll::Pending;
        }
        self.own.polls.fetch_add(1, SeqCst);
        let waker = Waker::from(self.own.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// Waits forever with one kind of operation, on a context that will be cancelled.
type Waits = fn(Cx) -> BoxFuture<'static, ()>;

const WAYS: [(&str, Waits); 14] = [
    ("abandoned", |cx| {
        Box::pin(async move { drop(cx.abandon_on_cancel(std::future::pending::<()>()).await) })
    }),
    ("sleep", |cx| Box::pin(async move { drop(cx.sleep(1000.secs()).await) })),
    ("tick", |cx| Box::pin(async move { drop(cx.interval(1000.secs()).tick(&cx).await) })),
    ("cancelled", |cx| Box::pin(async move { drop(cx.cancelled().await) })),
    ("stopping", |cx| Box::pin(async move { drop(cx.stopping().await) })),
    ("recv", |cx| {
        Box::pin(async move {
            let (_tx, mut rx) = channel::bounded::<u8>(1);
            drop(rx.recv(&cx).await);
        })
    }),
    ("send", |cx| {
        Box::pin(async move {
            let (tx, _rx) = channel::bounded(1);
            tx.try_send(1).unwrap();
            drop(tx.reserve(&cx).await);
            drop(tx.send(&cx, 2).await);
        })
    }),
    ("listen", |cx| {
        Box::pin(async move {
            let (_tx, mut rx) = channel::broadcast::<u8>(1);
            drop(rx.recv(&cx).await);
        })
    }),
    ("watch", |cx| {
        Box::pin(async move {
            let (tx, mut rx) = channel::watch(1);
            drop(rx.changed(&cx).await);
            drop(tx.closed(&cx).await);
        })
    }),
    ("locks", |cx| {
        Box::pin(async move {
            drop(Semaphore::new(0).acquire(&cx).await);
            drop(Notify::new().notified(&cx).await);
            drop(Barrier::new(2).wait(&cx).await);
        })
    }),
    ("scope", |cx| {
        Box::pin(async move {
            let forever = async |s: Scope<Cancelled>| {
                s.spawn(async |cx: Cx| cx.sleep(1000.secs()).await);
                Ok(())
            };
            drop(cx.scope(forever).await);
        })
    }),
    ("task", |cx| {
        Box::pin(async move {
            let forever = async |s: Scope<Cancelled>| {
                drop(picky(s.spawn(async |cx: Cx| cx.sleep(1000.secs()).await)).await);
                Ok(())
            };
            drop(cx.scope(forever).await);
        })
    }),
    ("group", |cx| {
        Box::pin(async move {
            let sleeps =
                [1000, 2000].map(|long: u64| async move |cx: &Cx| cx.sleep(long.secs()).await);
            drop(join_all(&cx, sleeps).await)
        })
    }),
    ("join", |cx| {
        Box::pin(async move {
            let sleep = async |cx: &Cx| cx.sleep(1000.secs()).await;
            drop(join(&cx, sleep, sleep).await);
        })
    }),
];

fn on_threads<B: Future>(body: impl FnOnce(Cx) -> B) -> B::Output {
    Runtime::builder().workers(2).build().unwrap().block_on(body)
}

/// Lets a task reach its wait.
async fn settle(cx: &Cx) -> Result<(), Cancelled> {
    cx.sleep(2.millis()).await
}

#[test]
fn a_cancel_of_a_task_reaches_every_kind_of_wait() {
    on_threads(async |cx: Cx| {
        cx.scope(async |s| {
            for (name, waits) in WAYS {
                println!("{name}");
                let task = s.spawn(async move |cx: Cx| {
                    picky(picky(waits(cx))).await;
                    Ok(())
                });
                settle(&cx).await?;
                task.cancel("enough");
                assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
            }
            Ok::<_, Cancelled>(())
        })
        .await
    })
    .unwrap();
}

#[test]
fn a_timeout_reaches_every_kind_of_wait() {
    on_threads(async |cx: Cx| {
        for (name, waits) in WAYS {
            println!("{name}");
            let limited = cx.timeout(1.millis(), async |cx| {
                picky(waits(cx.clone())).await;
                Ok::<_, Cancelled>(())
            });
            assert_eq!(limited.await.unwrap_err().kind(), Kind::Timeout);
        }
    });
}

#[test]
fn a_lost_race_reaches_every_kind_of_wait() {
    on_threads(async |cx: Cx| {
        for (_, waits) in WAYS {
            let won = race(
                &cx,
                async |cx| {
                    let _ = settle(cx).await;
                    1
                },
                async |cx| {
                    picky(waits(cx.clone())).await;
                    2
                },
            );
            assert_eq!(won.await, 1);
        }
    });
}

#[test]
fn the_failure_of_a_sibling_reaches_the_body_of_a_scope() {
    for (_, waits) in WAYS {
        let result = on_threads(async |cx: Cx| {
            cx.try_scope(async |s| {
                s.spawn(async |cx: Cx| {
                    let _ = settle(&cx).await;
                    Err::<(), _>("the cause")
                });
                picky(waits(cx.clone())).await;
                Ok(())
            })
            .await
        });
        assert!(matches!(result, Err(TaskError::Err("the cause"))), "{result:?}");
    }
}

#[test]
fn a_deadline_and_a_shutdown_reach_waits() {
    let late = on_threads(async |cx: Cx| {
        let body = async |s: Scope<Cancelled>| {
            let task = s.task("late").within(1.millis());
            let task = task.spawn(async |cx: Cx| picky(cx.sleep(1000.secs())).await);
            Ok(task.await.map_err(|stop| stop.to_string()))
        };
        cx.scope(body).await
    });
    assert!(late.unwrap().unwrap_err().contains("Deadline"));

    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (begun, handle) = (AtomicBool::new(false), runtime.handle());
    thread::scope(|threads| {
        threads.spawn(|| {
            let body = async |cx: Cx| {
                let waits = cx.sleep(1000.secs());
                begun.store(true, SeqCst);
                picky(waits).await
            };
            assert!(runtime.try_block_on(body).unwrap().is_err());
        });
        while !begun.load(SeqCst) {
            thread::yield_now();
        }
        handle.stop(Grace { soft: 0.secs(), hard: 1000.secs() });
    });
}

#[test]
fn a_cancel_reaches_a_job_that_waits() {
    fn waiting() -> Result<Kind, Cancelled> {
        let cx = Cx::current().expect("a job has a context");
        Ok(wait(cx.sleep(1000.secs())).unwrap_err().kind())
    }
    on_threads(async |cx: Cx| {
        let by_handle = async |s: Scope<Cancelled>| {
            let job = s.spawn_blocking(waiting);
            settle(&cx).await?;
            job.cancel("enough");
            assert!(matches!(job.await, Err(TaskError::Cancelled(_))));
            Ok(())
        };
        cx.scope(by_handle).await.unwrap();
        let by_scope = async |s: Scope<Cancelled>| {
            s.spawn_blocking(waiting);
            settle(&cx).await?;
            s.cancel("enough");
            Ok(())
        };
        let _ = cx.try_scope(by_scope).await;
    });
}

#[test]
fn a_shielded_wait_is_not_woken_at_every_poll() {
    let polls = on_threads(async |cx: Cx| {
        let body = async |s: Scope<Cancelled>| {
            let (tx, mut rx) = channel::bounded::<u8>(1);
            let task = s.spawn(async move |cx: Cx| {
                let shielded = cx.shield(async |cx| {
                    let waits = picky(rx.recv(cx));
                    let own = waits.own.clone();
                    waits.await.unwrap();
                    own.polls.load(SeqCst)
                });
                let both = join(
                    &cx,
                    async |_| shielded.await,
                    async |cx| {
                        for _ in 0..100 {
                            cx.yield_now().await;
                        }
                        tx.try_send(1).unwrap();
                    },
                );
                Ok(both.await.0)
            });
            task.cancel("enough");
            task.await.map_err(|_| unreachable!("nobody looks"))
        };
        cx.scope(body).await
    });
    assert!(polls.unwrap() <= 3);
}

#[test]
fn wait_panics_where_tasks_run() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let waited = runtime.try_block_on(async |_cx: Cx| wait(std::future::ready(1)));
    assert!(matches!(waited, Err(BlockOnError::Panicked(_))), "{waited:?}");
    assert_eq!(wait(std::future::ready(1)), 1);
}

#[test]
fn a_job_may_do_any_number_of_operations() {
    let sum = on_threads(async |cx: Cx| {
        let body = async |s: Scope<Cancelled>| {
            let (tx, mut rx) = channel::bounded(1);
            let job = s.spawn_blocking(move || {
                let (cx, mut sum) = (Cx::current().expect("a job has a context"), 0);
                while let Some(number) = wait(rx.next(&cx))? {
                    sum += number;
                }
                Ok(sum)
            });
            for number in 0..1000 {
                let _ = tx.send(&cx, number).await;
            }
            drop(tx);
            Ok(job.await.unwrap_or_default())
        };
        cx.scope(body).await
    });
    assert_eq!(sum, Ok(499_500));
}
