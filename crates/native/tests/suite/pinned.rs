//! Tasks that stay on one thread, through the public interface.

use crate::common;

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::Duration;

use asx_runtime::{Cx, Scope, SpawnError, TaskError};
use common::{AppError, on_each};

/// Counts polls, drops, and those of them on another thread than that of its creation.
#[derive(Clone, Default)]
struct Watch {
    polls: Arc<AtomicUsize>,
    drops: Arc<AtomicUsize>,
    strays: Arc<AtomicUsize>,
}

impl Watch {
    fn counts(&self) -> [usize; 2] {
        [&self.drops, &self.strays].map(|count| count.load(Ordering::SeqCst))
    }

    /// Wraps a future to count its polls and its drop.
    fn over<F: Future>(&self, future: F) -> Watched<F> {
        let place =
            Place { watch: self.clone(), home: thread::current().id(), not_send: Rc::default() };
        Watched { place, future: Box::pin(future) }
    }
}

struct Place {
    watch: Watch,
    home: ThreadId,
    not_send: Rc<Cell<usize>>,
}

impl Place {
    fn look(&self, count: &AtomicUsize) {
        count.fetch_add(1, Ordering::SeqCst);
        self.not_send.set(self.not_send.get() + 1);
        let stray = self.home != thread::current().id();
        self.watch.strays.fetch_add(stray.into(), Ordering::SeqCst);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.look(&self.watch.drops);
    }
}

struct Watched<F> {
    place: Place,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.place.look(&self.place.watch.polls);
        self.future.as_mut().poll(cx)
    }
}

/// Runs `each` in many tasks, which spread over the workers.
fn in_many_tasks<F>(rt: &asx_native::Runtime, each: F) -> Result<(), TaskError<AppError>>
where
    F: Fn(usize, &Scope<AppError>) + Send + Sync + 'static,
{
    let each = Arc::new(each);
    rt.block_on(async |cx: Cx| {
        cx.try_scope(async |s: Scope<AppError>| {
            for n in 0..100 {
                let (own, each) = (s.clone(), each.clone());
                s.spawn(async move |cx: Cx| {
                    cx.sleep(Duration::from_micros(50 * (n as u64 % 5))).await?;
                    each(n, &own);
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    })
}

#[test]
fn a_local_task_runs_on_its_thread() {
    on_each(|rt| {
        let watch = Watch::default();
        let inner = watch.clone();
        in_many_tasks(rt, move |n, s| {
            let watch = inner.clone();
            s.spawn_local(move |cx| {
                watch.over(async move {
                    let shared = Rc::new(Cell::new(0));
                    for _ in 0..5 {
                        shared.set(shared.get() + 1);
                        cx.yield_now().await;
                        // Woken by the worker that fires the timers.
                        cx.sleep(Duration::from_micros(100)).await?;
                    }
                    if n % 2 == 0 {
                        let cx = &cx;
                        cx.spawn_blocking(|| ()).await.unwrap();
                    }
                    assert_eq!(shared.get(), 5);
                    Ok(())
                })
            });
        })
        .unwrap();
        assert_eq!(watch.counts(), [100, 0]);
        assert!(watch.polls.load(Ordering::SeqCst) >= 1000);
    });
}

#[test]
fn a_local_task_with_priority_or_deadline_stays_on_its_thread() {
    on_each(|rt| {
        let watch = Watch::default();
        let inner = watch.clone();
        in_many_tasks(rt, move |n, s| {
            let watch = inner.clone();
            let task = s.task("local");
            let task = match n % 2 {
                0 => task.priority(200),
                _ => task.within(Duration::from_secs(3600)),
            };
            task.spawn_local(move |cx| {
                watch.over(async move {
                    for _ in 0..5 {
                        cx.sleep(Duration::from_micros(100)).await?;
                    }
                    Ok(())
                })
            });
        })
        .unwrap();
        assert_eq!(watch.counts(), [100, 0]);
    });
}

#[test]
fn a_cancelled_local_task_cleans_up_and_is_dropped_on_its_thread() {
    on_each(|rt| {
        let watch = Watch::default();
        let inner = watch.clone();
        in_many_tasks(rt, move |n, s| {
            let watch = inner.clone();
            // Some are cancelled by a deadline, delivered by the worker that fires the timers.
            let task = s.task("local").within(match n % 2 {
                0 => Duration::from_micros(300),
                _ => Duration::from_secs(3600),
            });
            let task = task.spawn_local(move |cx| {
                watch.over(async move {
                    cx.cancelled().await;
                    cx.yield_now().await;
                    Ok(())
                })
            });
            if n % 2 == 1 {
                // Some are cancelled by another thread.
                s.spawn_blocking(move || Ok(task.cancel("done with")));
            }
        })
        .unwrap();
        assert_eq!(watch.counts(), [100, 0]);
    });
}

#[test]
fn an_aborted_local_task_is_dropped_on_its_thread() {
    on_each(|rt| {
        let watch = Watch::default();
        let inner = watch.clone();
        in_many_tasks(rt, move |n, s| {
            let watch = inner.clone();
            let task = s.spawn_local(move |cx| {
                watch.over(async move {
                    if n % 2 == 0 {
                        cx.cancelled().await;
                    }
                    loop {
                        // Uses up its cleanup polls, or never observes its cancel.
                        if n % 2 == 0 { cx.yield_now().await } else { std::future::pending().await }
                    }
                })
            });
            drop::<asx_runtime::Task<(), AppError>>(task);
            if n == 99 {
                s.stop_within(Duration::from_millis(2));
            }
        })
        .ok();
        let [drops, strays] = watch.counts();
        assert!(drops > 0 && strays == 0, "{drops} {strays}");
        assert_eq!(rt.dump().tasks(), 0);
    });
}

#[test]
fn panics_and_handles_on_other_threads_do_not_move_a_future() {
    on_each(|rt| {
        let watch = Watch::default();
        let inner = watch.clone();
        let result = rt.block_on(async |cx: Cx| {
            cx.scope_with(asx_runtime::Policy::CollectAll)
                .run(async |s: Scope<AppError>| {
                    for n in 0..60 {
                        let (own, watch) = (s.clone(), inner.clone());
                        s.spawn(async move |cx: Cx| {
                            cx.yield_now().await;
                            let task = own.spawn_local(move |cx| {
                                watch.over(async move {
                                    cx.yield_now().await;
                                    assert!(n % 3 != 0, "a third panics");
                                    Ok(n)
                                })
                            });
                            // Awaited or dropped on the worker that runs this task.
                            own.spawn(async move |_cx: Cx| {
                                match task.await {
                                    Ok(value) => assert_eq!(value, n),
                                    Err(stop) => assert!(matches!(stop, TaskError::Panicked(_))),
                                }
                                Ok(())
                            });
                            Ok(())
                        });
                    }
                    Ok(())
                })
                .await
        });
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(watch.counts(), [60, 0]);
    });
}

#[test]
fn a_local_task_is_refused_outside_a_worker() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let result: Result<(), AppError> = cx
                .scope(async |s| {
                    let (own, (say, said)) = (s.clone(), mpsc::channel());
                    let job = s.spawn_blocking(move || {
                        let body = |_| -> std::future::Pending<_> { unreachable!("not called") };
                        let refused = own.task("refused").try_spawn_local::<_, _, ()>(body);
                        say.send(refused.unwrap_err()).unwrap();
                        Ok(own.spawn_local::<_, _, ()>(body))
                    });
                    let refused = job.await.unwrap();
                    assert_eq!(said.recv().unwrap(), SpawnError::NoSuchWorker);
                    assert!(refused.is_finished());
                    assert!(matches!(refused.await, Err(TaskError::Cancelled(_))));
                    Ok(())
                })
                .await;
            assert_eq!(result, Ok(()));
        });
    });
}

#[test]
fn a_closing_scope_drops_a_local_future_on_its_thread() {
    on_each(|rt| {
        let watch = Watch::default();
        rt.block_on(async |cx: Cx| {
            let _: Result<(), TaskError<AppError>> = cx
                .try_scope(async |s| {
                    s.cancel("done with");
                    let task =
                        s.spawn_local(|_| watch.over(std::future::pending::<Result<(), _>>()));
                    assert!(task.is_finished());
                    Ok(())
                })
                .await;
        });
        assert_eq!(watch.counts(), [1, 0]);
        assert_eq!(watch.polls.load(Ordering::SeqCst), 0);
    });
}

/// A worker that decides for an entry of another lane, and loses it to another worker, still runs
/// its pinned work, above all the body of the program. Each round cancels tasks from outside and
/// from the body, so that both workers take cancel entries while the body waits in the pinned
/// queue.
#[test]
fn a_worker_with_pinned_work_does_not_park_when_it_loses_a_cancel_entry() {
    common::ends(|| {
        for workers in [2, 2, 4] {
            let runtime = asx_native::Runtime::builder().workers(workers).build().unwrap();
            let (jobs, line) = mpsc::sync_channel::<asx_runtime::Task<(), AppError>>(64);
            let canceller = thread::spawn(move || {
                for task in line {
                    task.cancel("x");
                }
            });
            runtime.block_on(async |cx: Cx| {
                for _ in 0..10_000 {
                    let _ = cx
                        .scope_with(asx_runtime::Policy::CollectAll)
                        .run(async |s: Scope<AppError>| {
                            for _ in 0..6 {
                                let task = s.spawn(async |cx: Cx| {
                                    cx.cancelled().await;
                                    Ok(())
                                });
                                let _ = jobs.try_send(task);
                            }
                            cx.yield_now().await;
                            s.cancel("over");
                            Ok(())
                        })
                        .await;
                }
            });
            drop(jobs);
            canceller.join().unwrap();
        }
    });
}

/// A pin to a worker that does not exist: the task is refused before its scope knows of it.
#[test]
fn a_pin_to_a_worker_that_does_not_exist_is_refused() {
    common::ends(|| {
        on_each(|runtime| {
            let result = runtime.block_on(async |cx: Cx| {
                cx.scope(async |s: Scope<AppError>| {
                    // Number 4 may be this thread.
                    for worker in [5, 300, 60_000] {
                        let lost = s.task("lost").pinned_to(worker).spawn(async |_cx: Cx| Ok(1));
                        assert!(matches!(lost.await, Err(TaskError::Cancelled(_))));
                        let lost = s.task("lost").pinned_to(worker);
                        let status = lost.try_spawn(async |_cx: Cx| Ok(1)).map(drop);
                        assert_eq!(status, Err(SpawnError::NoSuchWorker));
                    }
                    Ok(7)
                })
                .await
            });
            assert_eq!(result, Ok(7));
        });
    });
}
