//! asx: that many workers; 1 is the current-thread runtime.

use std::future::poll_fn;
use std::hint::black_box;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use asx_native::Runtime;
use asx_runtime::channel::{self, RecvError, SendError};
use asx_runtime::time::Sleep;
use asx_runtime::{Cancelled, Cx, Scope};

use super::meter::{Clock, Growth, Tally};
use super::{BACKLOG, BATCH, Channels, SWAPS_PER_TURN, Service, Swap, TIMEOUT, Tasks, Timers};

/// It records up to `JOURNAL` events, or nothing if that is 0.
pub(super) struct Asx<const WORKERS: usize, const JOURNAL: usize = 0>;

#[derive(Debug)]
enum Error {
    Cancelled,
    Disconnected,
}

impl From<Cancelled> for Error {
    fn from(_: Cancelled) -> Self {
        Error::Cancelled
    }
}

impl<T> From<SendError<T>> for Error {
    fn from(error: SendError<T>) -> Self {
        match error {
            SendError::Disconnected(_) => Error::Disconnected,
            SendError::Cancelled(..) => Error::Cancelled,
        }
    }
}

impl From<RecvError> for Error {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Disconnected => Error::Disconnected,
            RecvError::Cancelled(_) => Error::Cancelled,
        }
    }
}

impl<const WORKERS: usize, const JOURNAL: usize> Asx<WORKERS, JOURNAL> {
    /// Runs `body` in a scope of its own, in a task: the thread in `block_on` is no worker.
    fn run<F, B>(body: F) -> f64
    where
        F: FnOnce(Cx, Scope<Error>) -> B + Send + 'static,
        B: Future<Output = Result<f64, Error>> + Send + 'static,
    {
        let builder = Runtime::builder().workers(WORKERS);
        let builder = if JOURNAL > 0 { builder.journal(JOURNAL) } else { builder };
        let runtime = builder.build().expect("a runtime");
        let figure = runtime.block_on(async |cx: Cx| {
            cx.scope(async |s: Scope<Error>| {
                let task = s.spawn(move |cx: Cx| async move {
                    let own = cx.clone();
                    cx.scope(move |s| body(own, s)).await
                });
                task.await.map_err(|_| Error::Cancelled)
            })
            .await
        });
        figure.expect("no error")
    }
}

impl<const WORKERS: usize, const JOURNAL: usize> Tasks for Asx<WORKERS, JOURNAL> {
    fn spawn_join(tasks: u32) -> f64 {
        Self::run(move |_, s| async move {
            let clock = Clock::wall();
            let handles: Vec<_> = (0..tasks).map(|n| s.spawn(async move |_: Cx| Ok(n))).collect();
            for handle in handles {
                black_box(handle.await.expect("no error"));
            }
            Ok(clock.per(tasks))
        })
    }

    fn spawn_await(tasks: u32) -> f64 {
        Self::run(move |_, s| async move {
            let clock = Clock::wall();
            for n in 0..tasks {
                black_box(s.spawn(async move |_: Cx| Ok(n)).await.expect("no error"));
            }
            Ok(clock.per(tasks))
        })
    }

    fn yields(tasks: u32, times: u32) -> f64 {
        Self::run(move |_, s| async move {
            let clock = Clock::wall();
            let yielding = async move |cx: Cx| {
                for _ in 0..times {
                    cx.yield_now().await;
                }
                Ok(())
            };
            let handles: Vec<_> = (0..tasks).map(|_| s.spawn(yielding)).collect();
            for handle in handles {
                handle.await.expect("no error");
            }
            Ok(clock.per(tasks * times))
        })
    }

    fn chain_spawn(tasks: u32) -> f64 {
        fn spawn(s: &Scope<Error>, left: u32, last: channel::oneshot::Reply<()>) {
            let scope = s.clone();
            // The scope owns it.
            s.spawn(move |_: Cx| async move {
                if left == 1 {
                    last.send(()).expect("a receiver");
                } else {
                    spawn(&scope, left - 1, last);
                }
                Ok(())
            });
        }
        Self::run(move |cx, s| async move {
            let clock = Clock::wall();
            let (last, mut ended) = channel::oneshot();
            spawn(&s, tasks, last);
            ended.recv(&cx).await.expect("a last task");
            Ok(clock.per(tasks))
        })
    }

    fn cancel(tasks: u32) -> f64 {
        Self::run(move |cx, _| async move {
            let running = Tally::new(tasks);
            let mut clock = Clock::wall();
            cx.scope(async |s| {
                for _ in 0..tasks {
                    let running = running.clone();
                    s.spawn(async move |cx: Cx| {
                        running.hit();
                        cx.cancelled().await;
                        Ok(())
                    });
                }
                running.zero().await;
                clock = Clock::wall();
                s.cancel("done with");
                Ok::<(), Error>(())
            })
            .await?;
            Ok(clock.per(tasks))
        })
    }

    fn park(tasks: u32) -> f64 {
        Self::run(move |cx, s| async move {
            let running = Tally::new(tasks);
            let growth = Growth::start();
            for n in 0..tasks {
                let running = running.clone();
                s.spawn(async move |cx: Cx| {
                    running.hit();
                    cx.cancelled().await;
                    Ok(())
                });
                if n % 64 == 0 {
                    cx.yield_now().await;
                }
            }
            running.zero().await;
            let figure = growth.per(tasks);
            s.cancel("done with");
            Ok(figure)
        })
    }
}

impl<const WORKERS: usize, const JOURNAL: usize> Channels for Asx<WORKERS, JOURNAL> {
    fn ping_pong(rounds: u32) -> f64 {
        Self::run(move |_, s| async move {
            let (ping, mut pinged) = channel::bounded(1);
            let (pong, mut ponged) = channel::bounded(1);
            let clock = Clock::wall();
            let echo = s.spawn(async move |cx: Cx| {
                while let Ok(number) = pinged.recv(&cx).await {
                    pong.send(&cx, number).await?;
                }
                Ok(())
            });
            let player = s.spawn(async move |cx: Cx| {
                for number in 0..rounds {
                    ping.send(&cx, number).await?;
                    assert_eq!(ponged.recv(&cx).await?, number);
                }
                Ok(())
            });
            player.await.expect("no error");
            echo.await.expect("no error");
            Ok(clock.per(rounds))
        })
    }

    fn stream(producers: u32, capacity: usize, messages: u32) -> f64 {
        Self::run(move |_, s| async move {
            let (sender, mut receiver) = channel::bounded(capacity);
            let each = messages / producers;
            let clock = Clock::wall();
            let producing: Vec<_> = (0..producers)
                .map(|_| {
                    let sender = sender.clone();
                    s.spawn(async move |cx: Cx| {
                        for number in 0..each {
                            sender.send(&cx, number).await?;
                        }
                        Ok(())
                    })
                })
                .collect();
            drop(sender);
            let consumer = s.spawn(async move |cx: Cx| {
                let mut count = 0;
                while receiver.recv(&cx).await.is_ok() {
                    count += 1;
                }
                assert_eq!(count, each * producers);
                Ok(())
            });
            consumer.await.expect("no error");
            for producer in producing {
                producer.await.expect("no error");
            }
            Ok(clock.per(each * producers))
        })
    }
}

impl<const WORKERS: usize, const JOURNAL: usize> Timers for Asx<WORKERS, JOURNAL> {
    fn churn(live: Vec<Duration>, swaps: Vec<Swap>) -> f64 {
        Self::run(move |cx, _| async move {
            let mut timers: Vec<_> = live.iter().map(|far| Box::new(cx.sleep(*far))).collect();
            poll_fn(|context| {
                timers.iter_mut().for_each(|timer| _ = poll(timer, context.waker()));
                Poll::Ready(())
            })
            .await;
            let clock = Clock::wall();
            for turn in swaps.chunks(SWAPS_PER_TURN) {
                poll_fn(|context| {
                    for (at, far) in turn {
                        *timers[*at] = cx.sleep(*far);
                        poll(&mut timers[*at], context.waker());
                    }
                    Poll::Ready(())
                })
                .await;
                cx.yield_now().await;
            }
            Ok(clock.per(swaps.len() as u32))
        })
    }

    fn fire(delays: Vec<Duration>) -> f64 {
        Self::run(move |cx, _| async move {
            let unused = |_: &Duration| Box::new(cx.sleep(Duration::ZERO));
            let mut timers: Vec<_> = delays.iter().map(unused).collect();
            let count = delays.len() as u32;
            let fired = Tally::new(count);
            let waker = Waker::from(fired.clone());
            let clock = Clock::cpu();
            for (timer, far) in timers.iter_mut().zip(delays) {
                **timer = cx.sleep(far);
                if poll(timer, &waker) {
                    fired.hit();
                }
            }
            fired.zero().await;
            let figure = clock.per(count);
            for timer in timers {
                timer.await?;
            }
            Ok(figure)
        })
    }

    fn sleeps(tasks: u32, nap: Duration, clock: fn() -> Clock) -> f64 {
        Self::run(move |_, s| async move {
            let clock = clock();
            let sleeping = async move |cx: Cx| Ok(cx.sleep(nap).await?);
            let handles: Vec<_> = (0..tasks).map(|_| s.spawn(sleeping)).collect();
            for handle in handles {
                handle.await.expect("no error");
            }
            Ok(clock.per(tasks))
        })
    }
}

fn poll(timer: &mut Sleep<'_>, waker: &Waker) -> bool {
    std::pin::Pin::new(timer).poll(&mut Context::from_waker(waker)).is_ready()
}

type Request = (u32, channel::oneshot::Reply<u32>);

impl<const WORKERS: usize, const JOURNAL: usize> Service for Asx<WORKERS, JOURNAL> {
    fn mixed(requests: u32) -> f64 {
        Self::run(move |_, s| async move {
            let (queue, queued) = channel::bounded(BACKLOG);
            let worker = s.spawn(move |cx| serve(cx, queued));
            let clock = Clock::wall();
            for first in (0..requests).step_by(BATCH as usize) {
                let spawn = |n| {
                    let queue = queue.clone();
                    s.spawn(move |cx| request(cx, n, queue))
                };
                let stuck = spawn(first);
                let others: Vec<_> = (first + 1..first + BATCH).map(|n| (n, spawn(n))).collect();
                for (n, task) in others {
                    assert_eq!(task.await.expect("no error"), n);
                }
                stuck.cancel("done with");
                assert!(stuck.await.is_err());
            }
            drop(queue);
            worker.await.expect("no error");
            Ok(clock.per(requests))
        })
    }
}

async fn request(cx: Cx, n: u32, queue: channel::Sender<Request>) -> Result<u32, Error> {
    cx.timeout(TIMEOUT, async |cx| {
        let (reply, mut answer) = channel::oneshot();
        queue.send(cx, (n, reply)).await?;
        answer.recv(cx).await.map_err(|_| Error::Disconnected)
    })
    .await
}

async fn serve(cx: Cx, mut queued: channel::Receiver<Request>) -> Result<(), Error> {
    let mut unanswered = Vec::new();
    while let Ok((n, reply)) = queued.recv(&cx).await {
        if n % BATCH == 0 {
            unanswered.push(reply);
        } else {
            reply.send(n).expect("a requester");
        }
    }
    Ok(())
}
