//! smol: its executor on that many threads, with its timers and its channel.

use std::future::{pending, poll_fn};
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_executor::{Executor, Task};
use async_io::{Timer, block_on};
use futures_lite::future::{or, poll_once, yield_now};

use super::channels::Host;
use super::meter::{Clock, Growth, Tally};
use super::{BACKLOG, BATCH, SWAPS_PER_TURN, Service, Swap, TIMEOUT, Tasks, Timers};

/// Global, as smol's own is. Between two runs it is empty and no thread runs it.
static EXECUTOR: Executor<'static> = Executor::new();

pub(super) struct Smol<const THREADS: usize>;

impl<const THREADS: usize> Host for Smol<THREADS> {
    fn run<T: Send + 'static>(root: impl Future<Output = T> + Send + 'static) -> T {
        thread::scope(|scope| {
            let (stop, stopped) = async_channel::bounded::<()>(1);
            for _ in 1..THREADS {
                let stopped = stopped.clone();
                scope.spawn(move || block_on(EXECUTOR.run(stopped.recv())).is_err());
            }
            let answer = block_on(EXECUTOR.run(EXECUTOR.spawn(root)));
            drop(stop);
            answer
        })
    }

    fn spawn(
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        EXECUTOR.spawn(task)
    }
}

impl<const THREADS: usize> Tasks for Smol<THREADS> {
    fn spawn_join(tasks: u32) -> f64 {
        Self::run(async move {
            let clock = Clock::wall();
            let handles: Vec<_> = (0..tasks).map(|n| EXECUTOR.spawn(async move { n })).collect();
            for handle in handles {
                black_box(handle.await);
            }
            clock.per(tasks)
        })
    }

    fn spawn_await(tasks: u32) -> f64 {
        Self::run(async move {
            let clock = Clock::wall();
            for n in 0..tasks {
                black_box(EXECUTOR.spawn(async move { n }).await);
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
            let handles: Vec<_> = (0..tasks).map(|_| EXECUTOR.spawn(yielding())).collect();
            for handle in handles {
                handle.await;
            }
            clock.per(tasks * times)
        })
    }

    fn chain_spawn(tasks: u32) -> f64 {
        fn spawn(left: u32, last: Sender<()>) {
            let task = async move {
                if left == 1 {
                    last.try_send(()).expect("a place");
                } else {
                    spawn(left - 1, last);
                }
            };
            EXECUTOR.spawn(task).detach();
        }
        Self::run(async move {
            let clock = Clock::wall();
            let (last, ended) = async_channel::bounded(1);
            spawn(tasks, last);
            ended.recv().await.expect("a last task");
            clock.per(tasks)
        })
    }

    fn cancel(tasks: u32) -> f64 {
        Self::run(async move {
            let running = Tally::new(tasks);
            let gone = Tally::new(tasks);
            let spawn = |_| {
                let running = running.clone();
                let gone = Gone(gone.clone());
                EXECUTOR.spawn(async move {
                    let _gone = gone;
                    running.hit();
                    pending::<()>().await;
                })
            };
            let children: Vec<Task<()>> = (0..tasks).map(spawn).collect();
            running.zero().await;
            let clock = Clock::wall();
            // Dropping a task cancels it. `Task::cancel` on one after the other is slower, each
            // waiting for its own turn, and so is boxing those futures to have all at once.
            drop(children);
            gone.zero().await;
            clock.per(tasks)
        })
    }

    fn park(tasks: u32) -> f64 {
        Self::run(async move {
            let running = Tally::new(tasks);
            let growth = Growth::start();
            for n in 0..tasks {
                let running = running.clone();
                let task = async move {
                    running.hit();
                    pending::<()>().await;
                };
                EXECUTOR.spawn(task).detach();
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

/// Hits when dropped.
struct Gone(Arc<Tally>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.hit();
    }
}

impl<const THREADS: usize> Timers for Smol<THREADS> {
    fn churn(live: Vec<Duration>, swaps: Vec<Swap>) -> f64 {
        Self::run(async move {
            let mut timers: Vec<_> = live.iter().map(|far| Timer::after(*far)).collect();
            poll_fn(|cx| {
                timers.iter_mut().for_each(|timer| _ = Pin::new(timer).poll(cx));
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
        })
    }

    fn fire(delays: Vec<Duration>) -> f64 {
        Self::run(async move {
            let mut timers: Vec<_> = delays.iter().map(|_| Timer::never()).collect();
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
            for timer in timers {
                assert!(poll_once(timer).await.is_some());
            }
            figure
        })
    }

    fn sleeps(tasks: u32, nap: Duration, clock: fn() -> Clock) -> f64 {
        Self::run(async move {
            let clock = clock();
            let handles: Vec<_> = (0..tasks)
                .map(|_| EXECUTOR.spawn(async move { Timer::after(nap).await }))
                .collect();
            for handle in handles {
                handle.await;
            }
            clock.per(tasks)
        })
    }
}

/// A new timer in the place of an old one, polled once; whether it is over already.
fn replace(timer: &mut Timer, far: Duration, waker: &Waker) -> bool {
    *timer = Timer::after(far);
    Pin::new(timer).poll(&mut Context::from_waker(waker)).is_ready()
}

/// A channel of one place is what smol has for an answer.
type Request = (u32, Sender<u32>);

impl<const THREADS: usize> Service for Smol<THREADS> {
    fn mixed(requests: u32) -> f64 {
        Self::run(async move {
            let (queue, queued) = async_channel::bounded(BACKLOG);
            let worker = EXECUTOR.spawn(serve(queued));
            let clock = Clock::wall();
            for first in (0..requests).step_by(BATCH as usize) {
                let stuck = EXECUTOR.spawn(request(first, queue.clone()));
                let spawn = |n| (n, EXECUTOR.spawn(request(n, queue.clone())));
                let others: Vec<_> = (first + 1..first + BATCH).map(spawn).collect();
                for (n, task) in others {
                    assert_eq!(task.await, Some(n));
                }
                assert!(stuck.cancel().await.is_none());
            }
            drop(queue);
            worker.await;
            clock.per(requests)
        })
    }
}

/// `None` after a timeout.
async fn request(n: u32, queue: Sender<Request>) -> Option<u32> {
    let answered = async {
        let (reply, answer) = async_channel::bounded(1);
        queue.send((n, reply)).await.expect("a worker");
        Some(answer.recv().await.expect("an answer"))
    };
    let late = async {
        Timer::after(TIMEOUT).await;
        None
    };
    or(answered, late).await
}

async fn serve(queued: Receiver<Request>) {
    let mut unanswered = Vec::new();
    while let Ok((n, reply)) = queued.recv().await {
        if n % BATCH == 0 {
            unanswered.push(reply);
        } else {
            reply.try_send(n).expect("a place");
        }
    }
}
