//! The load: each driver does one thing after the other, at random from its seed.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use asx_kernel::rng::DetRng;
use asx_runtime::channel::{SendError, bounded, oneshot};
use asx_runtime::sync::{Mutex, Semaphore};
use asx_runtime::{Cancelled, Cx, Policy, Scope, Stop, Task};

use crate::ledger::{Expected, Inbox, Ledger, Message};
use crate::watch::Beat;

/// The payload of panics that belong to the load.
pub(crate) struct Meant;

/// Why a task of the load ends early.
#[derive(Debug)]
pub(crate) enum End {
    Cancelled,
    /// As meant.
    Failed,
}

impl From<Cancelled> for End {
    fn from(_: Cancelled) -> Self {
        End::Cancelled
    }
}

/// What is wrong with the runtime.
type Verdict = Result<(), String>;

pub(crate) struct Driver {
    rng: DetRng,
    ledger: Arc<Ledger>,
    beat: Beat,
}

impl Driver {
    pub(crate) fn new(seed: u64, index: usize, ledger: Arc<Ledger>, beat: Beat) -> Driver {
        Driver { rng: DetRng::new(seed, index as u64), ledger, beat }
    }

    /// One round after the other until the end; an error says what went wrong.
    pub(crate) async fn run(mut self, cx: Cx, end: Instant) -> Verdict {
        while Instant::now() < end {
            match self.rng.below(8) {
                0 => self.crowd(&cx).await?,
                1 | 2 => self.market(&cx).await?,
                3 => self.questions(&cx).await?,
                4 => self.locks(&cx).await?,
                5 => self.failures(&cx).await?,
                6 => self.tree(&cx).await?,
                _ => self.limits(&cx).await?,
            }
            self.beat.beat();
        }
        Ok(())
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.rng.below(100) < percent
    }

    /// A short while: none at all, a turn of the others, or some time.
    fn pause(&mut self) -> Pause {
        match self.rng.below(4) {
            0 => Pause::None,
            1 => Pause::Turn,
            _ => Pause::Time(Duration::from_micros(self.rng.below(3000) as u64)),
        }
    }

    /// Cancels some of the tasks, waits for others, and forgets the rest.
    async fn stir<T>(&mut self, cx: &Cx, tasks: Vec<Task<T, End>>) {
        for task in tasks {
            match self.rng.below(4) {
                0 => drop(task),
                1 => {
                    task.cancel("done with");
                }
                2 => {
                    task.cancel("done with");
                    let _ = task.await;
                }
                _ => {
                    if self.chance(20) {
                        let _ = self.pause().run(cx).await;
                    }
                    let _ = task.await;
                }
            }
        }
    }

    /// Many tasks that wait a little, some cancelled; all of them have ended after the scope.
    async fn crowd(&mut self, cx: &Cx) -> Verdict {
        let (begun, ended) = (self.rng.below(40) + 1, Arc::new(AtomicUsize::new(0)));
        let close = self.chance(20);
        let outcome = cx.scope_with(Policy::CollectAll).run(async |s: Scope<End>| {
            let mut tasks = Vec::new();
            for _ in 0..begun {
                let (pause, ended) = (self.pause(), Counted(ended.clone()));
                tasks.push(s.spawn(async move |cx| {
                    let _ended = ended;
                    pause.run(&cx).await?;
                    Ok(())
                }));
            }
            self.stir(cx, tasks).await;
            if close {
                cancel_from_outside(&s, self.chance(50));
            }
            Ok(())
        });
        tolerate(outcome.await)?;
        want(ended.load(Relaxed) == begun, "a scope returned before its tasks had ended")
    }

    /// Senders of all kinds and one receiver; either side may be cancelled at any moment.
    async fn market(&mut self, cx: &Cx) -> Verdict {
        let (tx, rx) = bounded::<Message>(self.rng.below(4) + 1);
        let mut inbox = Inbox(rx);
        let (senders, each) = (self.rng.below(6) + 1, self.rng.below(30));
        let outcome = cx.scope_with(Policy::CollectAll).run(async |s: Scope<End>| {
            let mut tasks = Vec::new();
            for _ in 0..senders {
                let (tx, ledger, how) = (tx.clone(), self.ledger.clone(), self.rng.below(3));
                tasks.push(s.spawn(async move |cx| {
                    for _ in 0..each {
                        send(&cx, &tx, &ledger, how).await?;
                    }
                    Ok(())
                }));
            }
            drop(tx);
            let limit = self.chance(50).then(|| self.rng.below(senders * each + 1));
            let pause = self.pause();
            tasks.push(s.spawn(async move |cx| {
                let mut left = limit.unwrap_or(usize::MAX);
                while left > 0 {
                    let Ok(message) = inbox.0.recv(&cx).await else { break };
                    message.received();
                    left -= 1;
                }
                pause.run(&cx).await?;
                Ok(())
            }));
            if self.chance(50) {
                self.stir(cx, tasks).await;
            }
            if self.chance(20) {
                let _ = self.pause().run(cx).await;
                cancel_from_outside(&s, self.chance(50));
            }
            Ok(())
        });
        tolerate(outcome.await)
    }

    /// Questions and their replies, some of which never come or are no longer wanted.
    async fn questions(&mut self, cx: &Cx) -> Verdict {
        let count = self.rng.below(20) + 1;
        let outcome = cx.scope_with(Policy::CollectAll).run(async |s: Scope<End>| {
            let mut tasks = Vec::new();
            for _ in 0..count {
                let (reply, answer) = oneshot::<Message>();
                let mut answer = Expected(answer);
                let (ledger, forget, pause) = (self.ledger.clone(), self.chance(20), self.pause());
                tasks.push(s.spawn(async move |cx| {
                    pause.run(&cx).await?;
                    if !forget && let Err(back) = reply.send(ledger.message()) {
                        back.into_inner().refused();
                    }
                    Ok(())
                }));
                let patience = Duration::from_micros(self.rng.below(2000) as u64);
                tasks.push(s.spawn(async move |cx| {
                    let wait = cx.timeout(patience, async |cx| {
                        let message = answer.0.recv(cx).await.map_err(|_| End::Failed)?;
                        message.received();
                        Ok::<_, End>(())
                    });
                    wait.await
                }));
            }
            self.stir(cx, tasks).await;
            Ok(())
        });
        tolerate(outcome.await)
    }

    /// A lock and permits under contention and cancels.
    async fn locks(&mut self, cx: &Cx) -> Verdict {
        let permits = self.rng.below(3) + 1;
        let shared = Arc::new((Mutex::new((0, 0)), Semaphore::new(permits), AtomicUsize::new(0)));
        let (count, turns) = (self.rng.below(12) + 1, self.rng.below(20));
        let outcome = cx.scope_with(Policy::CollectAll).run(async |s: Scope<End>| {
            let mut tasks = Vec::new();
            for _ in 0..count {
                let (shared, pause) = (shared.clone(), self.pause());
                tasks.push(s.spawn(async move |cx| {
                    let (mutex, semaphore, inside) = &*shared;
                    for _ in 0..turns {
                        let permit = semaphore.acquire(&cx).await.map_err(|_| End::Cancelled)?;
                        let entered = inside.fetch_add(1, Relaxed) + 1;
                        let mut guard = match mutex.lock(&cx).await {
                            Ok(guard) => guard,
                            Err(_) => {
                                inside.fetch_sub(1, Relaxed);
                                return Err(End::Cancelled);
                            }
                        };
                        guard.0 += 1;
                        cx.yield_now().await;
                        guard.1 += 1;
                        // Seen by the scope: two inside at once break the balance.
                        assert!(guard.0 == guard.1 && entered <= permits, "no mutual exclusion");
                        drop(guard);
                        inside.fetch_sub(1, Relaxed);
                        drop(permit);
                    }
                    pause.run(&cx).await?;
                    Ok(())
                }));
            }
            self.stir(cx, tasks).await;
            Ok(())
        });
        tolerate(outcome.await)?;
        want(shared.1.available_permits() == permits, "permits are missing")?;
        want(shared.0.try_lock().is_some(), "a lock is held by nobody")
    }

    /// A child that panics or fails takes its siblings along; finalizers run all the same.
    async fn failures(&mut self, cx: &Cx) -> Verdict {
        let (panics, siblings) = (self.chance(50), self.rng.below(10));
        let (deferred, finalized) = (self.rng.below(4), Arc::new(AtomicUsize::new(0)));
        let outcome = cx.try_scope(async |s: Scope<End>| {
            for _ in 0..deferred {
                let (finalized, pause) = (finalized.clone(), self.pause());
                let defer = s.defer(async move |cx| {
                    let _ = pause.run(&cx).await;
                    finalized.fetch_add(1, Relaxed);
                });
                defer.map_err(|_| End::Cancelled)?;
            }
            for _ in 0..siblings {
                drop(s.spawn(async |cx| {
                    cx.sleep(Duration::from_secs(3600)).await?;
                    Ok(())
                }));
            }
            let pause = self.pause();
            drop(s.spawn(async move |cx| -> Result<(), End> {
                pause.run(&cx).await?;
                if panics {
                    panic_any(Meant);
                }
                Err(End::Failed)
            }));
            Ok(())
        });
        let as_meant = match outcome.await {
            Err(Stop::Panicked(_)) => panics,
            Err(Stop::Err(End::Failed)) => !panics,
            _ => false,
        };
        want(as_meant, "a failure did not come out of its scope")?;
        want(finalized.load(Relaxed) == deferred, "a finalizer did not run")
    }

    /// Scopes in scopes, one of which is cancelled.
    async fn tree(&mut self, cx: &Cx) -> Verdict {
        let (depth, at, pause) = (self.rng.below(5) + 1, self.rng.below(5), self.pause());
        let live = Arc::new(AtomicUsize::new(0));
        let outcome = nest(cx.clone(), depth, at, pause, live.clone()).await;
        drop(outcome);
        want(live.load(Relaxed) == 0, "a scope returned before what is inside had ended")
    }

    /// Deadlines, poll budgets and timeouts end what would go on for ever.
    async fn limits(&mut self, cx: &Cx) -> Verdict {
        let limit = Duration::from_micros(self.rng.below(3000) as u64);
        let polls = self.rng.below(20) as u64 + 1;
        let outcome = cx.scope_with(Policy::CollectAll).run(async |s: Scope<End>| {
            let dozing = s.task("dozing").within(limit).spawn(async |cx| {
                cx.sleep(Duration::from_secs(3600)).await?;
                Ok(())
            });
            let busy = s.task("busy").polls(polls).spawn(async |cx| -> Result<(), End> {
                loop {
                    cx.yield_now().await;
                    cx.checkpoint()?;
                }
            });
            let timed = cx.timeout(limit, async |cx| {
                cx.sleep(Duration::from_secs(3600)).await?;
                Ok::<_, End>(())
            });
            let ends = (timed.await.is_err(), dozing.await, busy.await);
            let stopped = |end| matches!(end, Err(Stop::Cancelled(_)));
            if ends.0 && stopped(ends.1) && stopped(ends.2) { Ok(()) } else { Err(End::Failed) }
        });
        want(outcome.await.is_ok(), "something went on beyond its limits")
    }
}

/// What a task does before it goes on.
#[derive(Clone, Copy)]
enum Pause {
    None,
    Turn,
    Time(Duration),
}

impl Pause {
    async fn run(self, cx: &Cx) -> Result<(), Cancelled> {
        match self {
            Pause::None => cx.checkpoint(),
            Pause::Turn => {
                cx.yield_now().await;
                cx.checkpoint()
            }
            Pause::Time(time) => cx.sleep(time).await,
        }
    }
}

/// Counts when it goes.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Sends one message in one of three ways.
async fn send(
    cx: &Cx,
    tx: &asx_runtime::channel::Sender<Message>,
    ledger: &Arc<Ledger>,
    how: usize,
) -> Result<(), End> {
    match how {
        0 => match tx.send(cx, ledger.message()).await {
            Ok(()) => Ok(()),
            Err(SendError::Disconnected(back) | SendError::Cancelled(back, _)) => {
                back.refused();
                Err(End::Cancelled)
            }
        },
        1 => match tx.reserve(cx).await {
            Ok(permit) => {
                cx.yield_now().await;
                if let Err(back) = permit.try_send(ledger.message()) {
                    back.into_inner().refused();
                }
                Ok(())
            }
            Err(_) => Err(End::Cancelled),
        },
        _ => {
            if let Ok(permit) = tx.reserve(cx).await {
                cx.yield_now().await;
                permit.abort();
            }
            tx.try_send(ledger.message()).unwrap_or_else(|error| error.into_inner().refused());
            Ok(cx.checkpoint()?)
        }
    }
}

/// Cancels a scope, from another thread if so wished.
fn cancel_from_outside(scope: &Scope<End>, thread: bool) {
    let scope = scope.clone();
    if thread {
        drop(std::thread::spawn(move || scope.cancel("done with")));
    } else {
        scope.cancel("done with");
    }
}

/// A scope with a task beside the scope inside it; the one at level `at` is cancelled.
fn nest(cx: Cx, depth: usize, at: usize, pause: Pause, live: Arc<AtomicUsize>) -> Boxed {
    Box::pin(async move {
        live.fetch_add(1, Relaxed);
        let result = cx.scope(async |s: Scope<End>| {
            if depth == 0 {
                cx.cancelled().await;
                return Err(End::Cancelled);
            }
            let below = live.clone();
            let inner = s.spawn(move |cx| nest(cx, depth - 1, at, pause, below));
            pause.run(&cx).await?;
            if depth <= at + 1 {
                s.cancel("done with");
            }
            if depth == 1 {
                inner.cancel("done with");
            }
            Ok(())
        });
        let result = result.await;
        live.fetch_sub(1, Relaxed);
        result
    })
}

type Boxed = std::pin::Pin<Box<dyn Future<Output = Result<(), End>> + Send>>;

/// How many tasks [`endless`] has.
pub(crate) const ENDLESS: usize = 20;

/// A program that ends when it is told to; some of its tasks do not listen.
pub(crate) async fn endless(cx: Cx) {
    let _ = cx
        .try_scope(async |s: Scope<End>| {
            for index in 0..ENDLESS {
                drop(s.spawn(async move |cx| {
                    match index % 4 {
                        0 => cx.stopping().await?,
                        1 => std::future::pending().await,
                        2 => loop {
                            cx.sleep(Duration::from_micros(500)).await?;
                        },
                        _ => loop {
                            cx.yield_now().await;
                        },
                    }
                    Ok(())
                }));
            }
            Ok(())
        })
        .await;
}

/// A scope of the load may be cancelled, but no task of it fails unless meant.
fn tolerate<T>(outcome: Result<T, Stop<End>>) -> Verdict {
    match outcome {
        Ok(_) | Err(Stop::Cancelled(_)) | Err(Stop::Err(End::Cancelled)) => Ok(()),
        Err(stop) => Err(format!("a scope ended with {stop:?}")),
    }
}

fn want(held: bool, else_wrong: &str) -> Verdict {
    if held { Ok(()) } else { Err(else_wrong.into()) }
}
