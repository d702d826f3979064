//! tokio: the multi-threaded runtime with that many workers, or the current-thread one for 1.

use std::future::{pending, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, coop::unconstrained, yield_now};
use tokio::time::{Sleep, error::Elapsed, sleep, timeout};

use super::channels::Host;
use super::meter::{Clock, Growth, Tally};
use super::{BACKLOG, BATCH, SWAPS_PER_TURN, Service, Swap, TIMEOUT, Tasks, Timers};

pub(super) struct Tokio<const WORKERS: usize>;

impl<const WORKERS: usize> Host for Tokio<WORKERS> {
    fn run<T: Send + 'static>(root: impl Future<Output = T> + Send + 'static) -> T {
        let mut builder =
            if WORKERS == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        let runtime = builder.worker_threads(WORKERS).enable_all().build().expect("a runtime");
        // A task of its own: `block_on` would run it beside the workers, not on one.
        runtime.block_on(async { tokio::spawn(root).await.expect("no panic") })
    }

    fn spawn(
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let handle = tokio::spawn(task);
        async { handle.await.expect("no panic") }
    }
}

impl<const WORKERS: usize> Tasks for Tokio<WORKERS> {
    fn spawn_join(tasks: u32) -> f64 {
        Self::run(async move {
            let clock = Clock::wall();
            let handles: Vec<_> = (0..tasks).map(|n| tokio::spawn(async move { n })).collect();
            for handle in handles {
                black_box(handle.await.expect("no panic"));
            }
            clock.per(tasks)
        })
    }

    fn spawn_await(tasks: u32) -> f64 {
        Self::run(async move {
            let clock = Clock::wall();
            for n in 0..tasks {
                black_box(tokio::spawn(async move { n }).await.expect("no panic"));
            }
            clock.per(tasks)
        })
    }

    fn yields(tasks: u32, times: u32) -> f64 {
        Self::run(async move {
            let clock = Clock::wall();
            let yielding = || async move {
                for _ in 0..times {
                    yield_now().await;
                }
            };
            let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(yielding())).collect();
            for handle in handles {
                handle.await.expect("no panic");
            }
            clock.per(tasks * times)
        })
    }

    fn chain_spawn(tasks: u32) -> f64 {
        fn spawn(left: u32, last: oneshot::Sender<()>) {
            tokio::spawn(async move {
                if left == 1 {
                    last.send(()).expect("a receiver");
                } else {
                    spawn(left - 1, last);
                }
            });
        }
        Self::run(async move {
            let clock = Clock::wall();
            let (last, ended) = oneshot::channel();
            spawn(tasks, last);
            ended.await.expect("a last task");
            clock.per(tasks)
        })
    }

    fn cancel(tasks: u32) -> f64 {
        Self::run(async move {
            let running = Tally::new(tasks);
            let mut children = JoinSet::new();
            for _ in 0..tasks {
                let running = running.clone();
                children.spawn(async move {
                    running.hit();
                    pending::<()>().await;
                });
            }
            running.zero().await;
            let clock = Clock::wall();
            children.abort_all();
            while let Some(end) = children.join_next().await {
                assert!(end.is_err_and(|end| end.is_cancelled()));
            }
            clock.per(tasks)
        })
    }

    fn park(tasks: u32) -> f64 {
        Self::run(async move {
            let running = Tally::new(tasks);
            let growth = Growth::start();
            for n in 0..tasks {
                let running = running.clone();
                tokio::spawn(async move {
                    running.hit();
                    pending::<()>().await;
                });
                // Parked as they come: no long queue that would count as theirs.
                if n % 64 == 0 {
                    yield_now().await;
                }
            }
            running.zero().await;
            growth.per(tasks)
        })
    }
}

impl<const WORKERS: usize> Timers for Tokio<WORKERS> {
    fn churn(live: Vec<Duration>, swaps: Vec<Swap>) -> f64 {
        // Constrained, every poll of a timer after the first few would do nothing but yield.
        Self::run(unconstrained(async move {
            let mut timers: Vec<_> = live.iter().map(|far| Box::pin(sleep(*far))).collect();
            poll_fn(|cx| {
                timers.iter_mut().for_each(|timer| _ = timer.as_mut().poll(cx));
                Poll::Ready(())
            })
            .await;
            let clock = Clock::wall();
            for turn in swaps.chunks(SWAPS_PER_TURN) {
                poll_fn(|cx| {
                    for (at, far) in turn {
                        replace(&mut timers[*at], *far, cx.waker());
                    }
                    Poll::Ready(())
                })
                .await;
                yield_now().await;
            }
            clock.per(swaps.len() as u32)
        }))
    }

    fn fire(delays: Vec<Duration>) -> f64 {
        Self::run(unconstrained(async move {
            let unused = |_: &Duration| Box::pin(sleep(Duration::ZERO));
            let mut timers: Vec<_> = delays.iter().map(unused).collect();
            let count = delays.len() as u32;
            let fired = Tally::new(count);
            let waker = Waker::from(fired.clone());
            let clock = Clock::cpu();
            for (timer, far) in timers.iter_mut().zip(delays) {
                if replace(timer, far, &waker) {
                    fired.hit();
                }
            }
            fired.zero().await;
            let figure = clock.per(count);
            assert!(timers.iter().all(|timer| timer.is_elapsed()));
            figure
        }))
    }

    fn sleeps(tasks: u32, nap: Duration, clock: fn() -> Clock) -> f64 {
        Self::run(async move {
            let clock = clock();
            let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(sleep(nap))).collect();
            for handle in handles {
                handle.await.expect("no panic");
            }
            clock.per(tasks)
        })
    }
}

/// A new timer in the place of an old one, polled once; whether it is over already.
fn replace(timer: &mut Pin<Box<Sleep>>, far: Duration, waker: &Waker) -> bool {
    timer.as_mut().set(sleep(far));
    timer.as_mut().poll(&mut Context::from_waker(waker)).is_ready()
}

type Request = (u32, oneshot::Sender<u32>);

impl<const WORKERS: usize> Service for Tokio<WORKERS> {
    fn mixed(requests: u32) -> f64 {
        Self::run(async move {
            let (queue, queued) = mpsc::channel(BACKLOG);
            let worker = tokio::spawn(serve(queued));
            let clock = Clock::wall();
            for first in (0..requests).step_by(BATCH as usize) {
                let stuck = tokio::spawn(request(first, queue.clone()));
                let spawn = |n| (n, tokio::spawn(request(n, queue.clone())));
                let others: Vec<_> = (first + 1..first + BATCH).map(spawn).collect();
                for (n, task) in others {
                    assert_eq!(task.await.expect("no panic"), Ok(n));
                }
                stuck.abort();
                assert!(stuck.await.is_err_and(|end| end.is_cancelled()));
            }
            drop(queue);
            worker.await.expect("no panic");
            clock.per(requests)
        })
    }
}

async fn request(n: u32, queue: mpsc::Sender<Request>) -> Result<u32, Elapsed> {
    timeout(TIMEOUT, async {
        let (reply, answer) = oneshot::channel();
        queue.send((n, reply)).await.expect("a worker");
        answer.await.expect("an answer")
    })
    .await
}

async fn serve(mut queued: mpsc::Receiver<Request>) {
    let mut unanswered = Vec::new();
    while let Some((n, reply)) = queued.recv().await {
        if n % BATCH == 0 {
            unanswered.push(reply);
        } else {
            reply.send(n).expect("a requester");
        }
    }
}
