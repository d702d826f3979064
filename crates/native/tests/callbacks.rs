//! A panic in a callback of the user's, wherever the runtime calls it: the cells of the table in
//! `docs/CALLBACKS.md`. Each is counted, and everything else goes on.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

use asx_kernel::lanes::Suggestion;
use asx_native::{Governor, Handle, Runtime, View};
use asx_runtime::channel;
use asx_runtime::sync;
use asx_runtime::time::DurationExt;
use asx_runtime::{Cancelled, Cx, Local, Outcome, Policy, Restart, Scope, Stop, group};

type Result<T = (), E = Cancelled> = std::result::Result<T, E>;

/// Longer than any test takes on a busy machine.
const HANG: Duration = Duration::from_secs(60);

/// Ends the process with a dump if it is not dropped in time.
struct Watchdog(Option<mpsc::Sender<()>>);

impl Watchdog {
    fn new(handle: Handle) -> Watchdog {
        let (alive, ends) = mpsc::channel::<()>();
        thread::spawn(move || {
            if ends.recv_timeout(HANG) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("hangs:\n{}", handle.dump());
                std::process::exit(1);
            }
        });
        Watchdog(Some(alive))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// How many panics there are: of destructors of results, and of callbacks.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    lost: u64,
    callbacks: u64,
}

const NONE: Counted = Counted { lost: 0, callbacks: 0 };

fn callbacks(callbacks: u64) -> Counted {
    Counted { callbacks, ..NONE }
}

fn lost(lost: u64) -> Counted {
    Counted { lost, ..NONE }
}

fn counted(runtime: &Runtime) -> Counted {
    let health = runtime.metrics().health;
    Counted { lost: health.lost_panics, callbacks: health.callback_panics }
}

/// Runs a program on one worker and on two. Besides the program's own checks: a task that has
/// nothing to do with it goes on, the scope around both closes, all workers live, and the panics
/// are counted.
fn contained(expected: Counted, program: impl AsyncFn(&Cx, &Scope<Cancelled>)) {
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        contained_on(&runtime, &program);
        all_workers_live(&runtime, workers);
        assert_eq!(counted(&runtime), expected, "{workers} workers");
    }
}

fn contained_on(runtime: &Runtime, program: impl AsyncFn(&Cx, &Scope<Cancelled>)) {
    let _watchdog = Watchdog::new(runtime.handle());
    let ticks = Arc::new(AtomicU64::new(0));
    let outcome: Outcome<(), Cancelled> = runtime.block_on(async |cx: Cx| {
        cx.scope_with(Policy::CollectAll)
            .run(async |s: Scope<Cancelled>| {
                let own = ticks.clone();
                let bystander = s.spawn(async move |cx: Cx| -> Result {
                    loop {
                        cx.sleep(1.millis()).await?;
                        own.fetch_add(1, SeqCst);
                    }
                });
                program(&cx, &s).await;
                let before = ticks.load(SeqCst);
                until(&cx, || ticks.load(SeqCst) > before + 1).await;
                bystander.cancel("over");
                Ok(())
            })
            .await
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// As many tasks as there are workers run at the same time.
fn all_workers_live(runtime: &Runtime, workers: usize) {
    let _watchdog = Watchdog::new(runtime.handle());
    let all = Arc::new(Barrier::new(workers));
    let result: Result = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s| {
            for _ in 0..workers {
                let all = all.clone();
                drop(s.spawn(async move |_cx: Cx| {
                    all.wait();
                    Ok(())
                }));
            }
            Ok(())
        })
        .await
    });
    assert!(result.is_ok());
}

async fn until(cx: &Cx, is_so: impl Fn() -> bool) {
    while !is_so() {
        cx.sleep(1.millis()).await.unwrap();
    }
}

/// Counts the panics of what was made by it.
#[derive(Clone, Default)]
struct Fuse(Arc<AtomicU64>);

impl Fuse {
    fn blown(&self) -> u64 {
        self.0.load(SeqCst)
    }

    fn blow(&self, what: &str) -> ! {
        self.0.fetch_add(1, SeqCst);
        panic!("{what}");
    }

    /// Panics when it is dropped.
    fn bomb(&self) -> Bomb {
        Bomb(self.clone())
    }

    /// A waker that panics when it is used.
    fn waker(&self) -> Waker {
        Waker::from(Arc::new(OnWake(self.clone())))
    }

    /// A waker that panics when the last copy is dropped, or used.
    fn waker_bomb(&self) -> Waker {
        Waker::from(Arc::new(self.bomb()))
    }

    /// A waker that cannot be copied.
    fn unique_waker(&self) -> Waker {
        static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, ignore, ignore, ignore);
        unsafe fn clone(data: *const ()) -> RawWaker {
            // SAFETY: made of a reference below, to what is never freed.
            let fuse: &Fuse = unsafe { &*data.cast() };
            fuse.blow("clone of a waker")
        }
        unsafe fn ignore(_: *const ()) {}
        let fuse: &'static Fuse = Box::leak(Box::new(self.clone()));
        let raw = RawWaker::new(std::ptr::from_ref(fuse).cast(), &VTABLE);
        // SAFETY: the functions of the vtable may be called on any thread, any number of times.
        unsafe { Waker::from_raw(raw) }
    }
}

struct OnWake(Fuse);

impl Wake for OnWake {
    fn wake(self: Arc<Self>) {
        self.0.blow("wake");
    }
}

struct Bomb(Fuse);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.blow("drop");
    }
}

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {}
}

/// Polls once with a waker of the test's; it is not ready.
fn begin<F: Future>(future: Pin<&mut F>, waker: &Waker) {
    assert!(future.poll(&mut Context::from_waker(waker)).is_pending());
}

/// Polls with a waker that is used up by that.
fn begin_owned<F: Future>(future: Pin<&mut F>, waker: Waker) {
    begin(future, &waker);
}

fn panic_of<T>(outcome: Outcome<T, Cancelled>) -> String {
    match outcome {
        Err(Stop::Panicked(panic)) => panic.message().into(),
        Err(stop) => panic!("{stop}"),
        Ok(_) => panic!("no panic"),
    }
}

async fn short(cx: Cx) -> Result<u32> {
    cx.sleep(5.millis()).await?;
    Ok(7)
}

mod wake {
    use super::*;

    #[test]
    fn of_who_awaits_a_task() {
        contained(callbacks(1), async |cx, s| {
            let (fuse, mut task) = (Fuse::default(), s.spawn(short));
            begin(pin!(&mut task), &fuse.waker());
            until(cx, || fuse.blown() == 1).await;
            assert_eq!(task.await.unwrap(), 7);
        });
    }

    #[test]
    fn of_who_awaits_a_scope() {
        contained(callbacks(1), async |cx, _| {
            let fuse = Fuse::default();
            let mut inner = pin!(cx.scope(async |s: Scope<Cancelled>| {
                drop(s.spawn(short));
                Ok(3)
            }));
            begin(inner.as_mut(), &fuse.waker());
            until(cx, || fuse.blown() == 1).await;
            assert_eq!(inner.await.unwrap(), 3);
        });
    }

    /// The body of a cancelled scope, and what waits in it by the same waker.
    #[test]
    fn of_the_body_of_a_scope_that_is_cancelled() {
        contained(callbacks(1), async |cx, _| {
            let (fuse, ended) = (Fuse::default(), Arc::new(AtomicU64::new(0)));
            let scope = Mutex::new(None);
            let mut inner = pin!(cx.try_scope(async |s: Scope<Cancelled>| {
                for _ in 0..2 {
                    let ended = ended.clone();
                    drop(s.spawn(async move |cx: Cx| {
                        cx.cancelled().await;
                        ended.fetch_add(1, SeqCst);
                        Ok(())
                    }));
                }
                *scope.lock().unwrap() = Some(s);
                std::future::pending::<Result>().await
            }));
            begin(inner.as_mut(), &fuse.waker());
            let scope = scope.lock().unwrap().take().unwrap();
            scope.cancel("test");
            until(cx, || ended.load(SeqCst) == 2).await;
            assert_eq!(fuse.blown(), 1);
        });
    }

    #[test]
    fn of_who_sleeps() {
        contained(callbacks(3), async |cx, _| {
            let fuse = Fuse::default();
            let mut sleeps: Vec<_> = (0..3).map(|_| Box::pin(cx.sleep(5.millis()))).collect();
            let mut last = pin!(cx.sleep(5.millis()));
            sleeps.iter_mut().for_each(|sleep| begin(sleep.as_mut(), &fuse.waker()));
            begin(last.as_mut(), Waker::noop());
            last.await.unwrap();
            until(cx, || fuse.blown() == 3).await;
            for sleep in sleeps {
                sleep.await.unwrap();
            }
        });
    }

    #[test]
    fn of_who_receives() {
        contained(callbacks(1), async |cx, s| {
            let (fuse, (tx, mut rx)) = (Fuse::default(), channel::bounded(1));
            let mut recv = pin!(rx.recv(cx));
            begin(recv.as_mut(), &fuse.waker());
            let sent = s.spawn(async move |_cx: Cx| Ok(tx.try_send(7).is_ok()));
            assert!(sent.await.unwrap());
            assert_eq!(recv.await, Ok(7));
            assert_eq!(fuse.blown(), 1);
        });
    }

    /// All of them are woken by the end of the other side, the last one too.
    #[test]
    fn of_who_sends() {
        contained(callbacks(3), async |cx, _| {
            let (fuse, (tx, rx)) = (Fuse::default(), channel::bounded(1));
            tx.try_send(0).unwrap();
            let mut sends: Vec<_> = (0..3).map(|n| Box::pin(tx.send(cx, n))).collect();
            sends.iter_mut().for_each(|send| begin(send.as_mut(), &fuse.waker()));
            let last = tx.send(cx, 9);
            let ((), last) = asx_runtime::join(cx, async |_| drop(rx), async |_| last.await).await;
            assert!(last.is_err());
            assert_eq!(fuse.blown(), 3);
        });
    }

    #[test]
    fn of_who_watches_or_listens() {
        contained(callbacks(2), async |cx, _| {
            let fuse = Fuse::default();
            let (tx, mut rx) = channel::watch(1);
            let mut changed = pin!(rx.changed(cx));
            begin(changed.as_mut(), &fuse.waker());
            tx.send(2).unwrap();
            changed.await.unwrap();
            let (tx, mut rx) = channel::broadcast(1);
            let mut listen = pin!(rx.recv(cx));
            begin(listen.as_mut(), &fuse.waker());
            assert_eq!(tx.send(2), Ok(1));
            assert_eq!(listen.await, Ok(2));
        });
    }

    #[test]
    fn of_who_wants_a_lock() {
        contained(callbacks(1), async |cx, s| {
            let (fuse, mutex) = (Fuse::default(), Arc::new(sync::Mutex::new(1)));
            let guard = mutex.lock_owned(cx).await.unwrap();
            let mut lock = pin!(mutex.lock(cx));
            begin(lock.as_mut(), &fuse.waker());
            let unlocks = s.spawn(async move |_cx: Cx| {
                drop(guard);
                Ok(())
            });
            unlocks.await.unwrap();
            assert_eq!((*lock.await.unwrap(), fuse.blown()), (1, 1));
        });
    }

    #[test]
    fn of_those_who_are_notified_together() {
        contained(callbacks(2 + 1), async |cx, s| {
            let (fuse, notify) = (Fuse::default(), Arc::new(sync::Notify::new()));
            let mut bad: Vec<_> = (0..2).map(|_| Box::pin(notify.notified(cx))).collect();
            bad.iter_mut().for_each(|wait| begin(wait.as_mut(), &fuse.waker()));
            let (own, ready) = (notify.clone(), Arc::new(AtomicU64::new(0)));
            let joined = ready.clone();
            let good = s.spawn(async move |cx: Cx| {
                let mut wait = pin!(own.notified(&cx));
                begin(wait.as_mut(), Waker::noop());
                joined.store(1, SeqCst);
                wait.await
            });
            until(cx, || ready.load(SeqCst) == 1).await;
            notify.notify_waiters();
            good.await.unwrap();
            for wait in bad {
                wait.await.unwrap();
            }
            let barrier = sync::Barrier::new(2);
            let mut early = pin!(barrier.wait(cx));
            begin(early.as_mut(), &fuse.waker());
            assert!(barrier.wait(cx).await.unwrap().is_leader());
            early.await.unwrap();
        });
    }

    #[test]
    fn of_who_waits_for_a_soft_stop() {
        contained(callbacks(2), async |cx, _| {
            let fuse = Fuse::default();
            let inner = cx.scope(async |s: Scope<Cancelled>| {
                let wait = s.spawn(async |cx: Cx| cx.stopping().await);
                let mut waits = [(); 2].map(|()| Box::pin(cx.stopping()));
                waits.iter_mut().for_each(|wait| begin(wait.as_mut(), &fuse.waker()));
                cx.yield_now().await;
                s.stop_within(Duration::from_secs(600));
                Ok(wait.await.is_ok())
            });
            assert!(inner.await.unwrap());
            assert_eq!(fuse.blown(), 2);
        });
    }

    /// An operation of the task waits by a waker of its own, as in a `FuturesUnordered`, and the
    /// task is cancelled.
    #[test]
    fn of_what_waits_in_a_task_that_is_cancelled() {
        contained(callbacks(1), async |cx, s| {
            let (fuse, begun) = (Fuse::default(), Arc::new(AtomicU64::new(0)));
            let (own, told) = (fuse.clone(), begun.clone());
            let task = s.spawn(async move |cx: Cx| {
                let mut sleep = pin!(cx.sleep(600.secs()));
                begin(sleep.as_mut(), &own.waker());
                told.store(1, SeqCst);
                cx.cancelled().await;
                Ok(())
            });
            until(cx, || begun.load(SeqCst) == 1).await;
            task.cancel("test");
            assert!(matches!(task.await, Err(Stop::Cancelled(_))));
            assert_eq!(fuse.blown(), 1);
        });
    }

    #[test]
    fn of_who_starts_a_task_or_awaits_a_group() {
        contained(callbacks(3), async |cx, s| {
            let fuse = Fuse::default();
            let mut starting = pin!(s.start(async |cx: Cx, ready: asx_runtime::Ready<u32>| {
                cx.sleep(5.millis()).await?;
                ready.set(5);
                Ok(())
            }));
            begin(starting.as_mut(), &fuse.waker());
            // That it is ready, and that it has ended.
            until(cx, || fuse.blown() == 2).await;
            assert_eq!(starting.await.map(|(said, _)| said).ok(), Some(5));
            let ended: Result<Option<u32>> = group(cx, async |g| {
                g.add(async |cx| {
                    cx.yield_now().await;
                    6
                });
                begin(pin!(g.next(cx)), &fuse.waker());
                g.next(cx).await
            })
            .await;
            assert_eq!(ended, Ok(Some(6)));
        });
    }

    /// A region asks its child regions to stop: each of their bodies' wakers panics, and all of
    /// their tasks are asked.
    #[test]
    fn of_bodies_whose_scopes_are_cancelled_together() {
        contained(callbacks(3), async |cx, s| {
            let (fuse, ended) = (Fuse::default(), Arc::new(AtomicU64::new(0)));
            let (own, done, begun) = (fuse.clone(), ended.clone(), Fuse::default());
            let told = begun.clone();
            let task = s.spawn(async move |cx: Cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    let open = |_| {
                        Box::pin(cx.try_scope(async |s: Scope<Cancelled>| {
                            let done = done.clone();
                            drop(s.spawn(async move |cx: Cx| {
                                cx.cancelled().await;
                                done.fetch_add(1, SeqCst);
                                Ok(())
                            }));
                            std::future::pending::<Result>().await
                        }))
                    };
                    let mut scopes: Vec<_> = (0..3).map(open).collect();
                    scopes.iter_mut().for_each(|scope| begin(scope.as_mut(), &own.waker()));
                    s.cancel("all");
                    told.0.store(1, SeqCst);
                    cx.shield(async |cx| until(cx, || done.load(SeqCst) == 3).await).await;
                    Ok(())
                })
                .await
            });
            until(cx, || begun.blown() == 1 && ended.load(SeqCst) == 3).await;
            drop(task.await);
            assert_eq!(fuse.blown(), 3);
        });
    }
}

mod drop_of_a_waker {
    use super::*;

    #[test]
    fn of_who_awaited_a_task() {
        contained(callbacks(1), async |cx, s| {
            let (fuse, mut task) = (Fuse::default(), s.spawn(short));
            begin_owned(pin!(&mut task), fuse.waker_bomb());
            drop(task);
            until(cx, || fuse.blown() == 1).await;
        });
    }

    #[test]
    fn that_another_takes_the_place_of() {
        contained(callbacks(2), async |cx, s| {
            let (fuse, mut task) = (Fuse::default(), s.spawn(short));
            begin_owned(pin!(&mut task), fuse.waker_bomb());
            assert_eq!(task.await.unwrap(), 7);
            let mut inner = pin!(cx.scope(async |s: Scope<Cancelled>| {
                drop(s.spawn(short));
                Ok(3)
            }));
            begin_owned(inner.as_mut(), fuse.waker_bomb());
            assert_eq!(inner.await.unwrap(), 3);
            until(cx, || fuse.blown() == 2).await;
        });
    }

    /// What was granted is not lost with the waker.
    #[test]
    fn of_who_is_granted_something() {
        contained(callbacks(4), async |cx, _| {
            let fuse = Fuse::default();
            let mutex = sync::Mutex::new(1);
            let guard = mutex.lock(cx).await.unwrap();
            let mut lock = pin!(mutex.lock(cx));
            begin_owned(lock.as_mut(), fuse.waker_bomb());
            begin(lock.as_mut(), Waker::noop());
            assert_eq!(fuse.blown(), 1);
            drop(guard);
            assert_eq!(*lock.await.unwrap(), 1);

            let (tx, mut rx) = channel::bounded(1);
            let mut recv = Box::pin(rx.recv(cx));
            begin_owned(recv.as_mut(), fuse.waker_bomb());
            begin(recv.as_mut(), Waker::noop());
            tx.try_send(1).unwrap();
            assert_eq!(recv.await, Ok(1));
            tx.try_send(1).unwrap();
            let mut send = pin!(tx.send(cx, 2));
            begin_owned(send.as_mut(), fuse.waker_bomb());
            begin(send.as_mut(), Waker::noop());
            assert_eq!(rx.recv(cx).await, Ok(1));
            send.await.unwrap();

            let mut sleep = Box::pin(cx.sleep(5.millis()));
            begin_owned(sleep.as_mut(), fuse.waker_bomb());
            sleep.await.unwrap();
            until(cx, || fuse.blown() == 4).await;
        });
    }

    /// The futures are dropped before what they wait for comes.
    #[test]
    fn of_who_gives_up() {
        contained(callbacks(6), async |cx, _| {
            let fuse = Fuse::default();
            begin_owned(pin!(cx.sleep(600.secs())), fuse.waker_bomb());
            let (tx, mut rx) = channel::bounded(1);
            begin_owned(pin!(rx.recv(cx)), fuse.waker_bomb());
            tx.try_send(1).unwrap();
            begin_owned(pin!(tx.send(cx, 2)), fuse.waker_bomb());
            let (_set, mut watch) = channel::watch(1);
            begin_owned(pin!(watch.changed(cx)), fuse.waker_bomb());
            begin_owned(pin!(sync::Notify::new().notified(cx)), fuse.waker_bomb());
            begin_owned(pin!(cx.stopping()), fuse.waker_bomb());
            until(cx, || fuse.blown() == 6).await;
        });
    }
}

/// The panic is one of the poll that the waker was given to; the operation can be polled again.
#[test]
fn clone_of_a_waker() {
    contained(NONE, async |cx, s| {
        let fuse = Fuse::default();
        let unique = fuse.unique_waker();
        let fails = |future: Pin<&mut dyn Future<Output = ()>>| {
            let mut context = Context::from_waker(&unique);
            let polled = catch_unwind(AssertUnwindSafe(|| future.poll(&mut context)));
            assert!(polled.is_err());
        };
        let mut task = s.spawn(short);
        fails(pin!(async { drop((&mut task).await) }));
        assert_eq!(task.await.unwrap(), 7);
        let (tx, mut rx) = channel::bounded(1);
        fails(pin!(async { drop(rx.recv(cx).await) }));
        tx.try_send(1).unwrap();
        fails(pin!(async { drop(tx.send(cx, 2).await) }));
        assert_eq!(rx.recv(cx).await, Ok(1));
        let mutex = sync::Mutex::new(1);
        let guard = mutex.lock(cx).await.unwrap();
        fails(pin!(async { drop(mutex.lock(cx).await) }));
        drop(guard);
        assert_eq!(*mutex.lock(cx).await.unwrap(), 1);
        fails(pin!(async { drop(cx.sleep(5.millis()).await) }));
        fails(pin!(async {
            drop(cx.scope(async |_| std::future::pending::<Result>().await).await)
        }));
        assert_eq!(fuse.blown(), 6);
    });
}

mod drop_of {
    use super::*;

    /// It is the task's panic: when it ends by itself, and when it is ended by force.
    #[test]
    fn a_future() {
        contained(NONE, async |_cx, s| {
            let (fuse, bomb) = (Fuse::default(), Fuse::default().bomb());
            let ends = s.spawn(async move |_cx: Cx| {
                let _bomb = bomb;
                Ok(())
            });
            assert_eq!(panic_of(ends.await), "drop");
            let bomb = fuse.bomb();
            let forced = s
                .spawn(async move |cx: Cx| {
                    cx.scope(async |s: Scope<Cancelled>| {
                        let deaf = s.spawn(async move |_cx: Cx| {
                            let _bomb = bomb;
                            std::future::pending::<Result>().await
                        });
                        cx.sleep(5.millis()).await?;
                        s.stop_within(Duration::ZERO);
                        cx.shield(async |_| Ok(panic_of(deaf.await))).await
                    })
                    .await
                })
                .await;
            assert!(fuse.blown() == 1, "{forced:?}");
        });
    }

    #[test]
    fn a_result_nobody_wants() {
        contained(lost(4), async |cx, s| {
            let fuse = Fuse::default();
            for _ in 0..2 {
                let bomb = fuse.bomb();
                drop(s.spawn(async move |_cx: Cx| Ok(bomb)));
            }
            until(cx, || fuse.blown() == 2).await;
            // The handles are dropped after the end, one of them in another task.
            let tasks = [(); 2].map(|()| {
                let bomb = fuse.bomb();
                s.spawn(async move |_cx: Cx| Ok(bomb))
            });
            until(cx, || tasks.iter().all(|task| task.is_finished())).await;
            let [first, second] = tasks;
            drop(first);
            let drops = s.spawn(async move |_cx: Cx| {
                drop(second);
                Ok(())
            });
            drops.await.unwrap();
            assert_eq!(fuse.blown(), 4);
        });
    }

    #[test]
    fn what_a_panic_carries() {
        /// Its destructor panics with another one.
        struct Chain(Fuse);
        impl Drop for Chain {
            fn drop(&mut self) {
                self.0.0.fetch_add(1, SeqCst);
                panic_any(Chain(self.0.clone()));
            }
        }
        contained(callbacks(1 + 1 + 2), async |cx, s| {
            let fuse = Fuse::default();
            let bomb = fuse.bomb();
            let task = s.spawn(async move |_cx: Cx| -> Result { panic_any(bomb) });
            let outcome = task.await;
            assert!(matches!(outcome, Err(Stop::Panicked(_))));
            drop(outcome);
            let bomb = fuse.bomb();
            drop(s.spawn(async move |_cx: Cx| -> Result { panic_any(bomb) }));
            until(cx, || fuse.blown() == 2).await;
            let chain = fuse.clone();
            drop(s.spawn(async move |_cx: Cx| -> Result { panic_any(Chain(chain)) }));
            until(cx, || fuse.blown() == 4).await;
        });
    }

    /// The region is the last to have them.
    #[test]
    fn local_values() {
        static FIRST: Local<Bomb> = Local::new();
        static SECOND: Local<Bomb> = Local::new();
        contained(callbacks(2), async |cx, _| {
            let fuse = Fuse::default();
            let mut inner = Box::pin(cx.with_local(&FIRST, fuse.bomb(), async |cx| {
                cx.with_local(&SECOND, fuse.bomb(), async |cx| {
                    cx.scope(async |s: Scope<Cancelled>| {
                        drop(s.spawn(async |cx: Cx| cx.sleep(600.secs()).await));
                        cx.sleep(600.secs()).await
                    })
                    .await
                })
                .await
            }));
            begin(inner.as_mut(), Waker::noop());
            // The scope closes after this.
            drop(inner);
            until(cx, || fuse.blown() == 2).await;
        });
    }

    #[test]
    fn messages_of_a_channel_that_closes_with_its_scope() {
        contained(callbacks(2), async |cx, _| {
            let fuse = Fuse::default();
            let inner = cx.scope(async |_s: Scope<Cancelled>| {
                let (tx, rx) = cx.channel(2).unwrap();
                assert!(tx.try_send(fuse.bomb()).is_ok() && tx.try_send(fuse.bomb()).is_ok());
                Ok((tx, rx))
            });
            let ends = inner.await.unwrap();
            assert_eq!(fuse.blown(), 2);
            drop(ends);
        });
    }
}

/// It is the outcome of its scope; the other finalizers run.
#[test]
fn finalizers() {
    contained(NONE, async |cx, _| {
        type Made = asx_runtime::BoxFuture<'static, ()>;
        for how in ["made", "polled", "dropped"] {
            let (fuse, others) = (Fuse::default(), Arc::new(AtomicU64::new(0)));
            let outcome = cx
                .try_scope(async |s: Scope<Cancelled>| {
                    for n in 0..3 {
                        let (others, fuse) = (others.clone(), fuse.clone());
                        s.defer(move |_cx| -> Made {
                            if n != 1 {
                                others.fetch_add(1, SeqCst);
                                return Box::pin(async {});
                            }
                            match how {
                                "made" => fuse.blow("made"),
                                "polled" => Box::pin(async move { fuse.blow("polled") }),
                                _ => {
                                    let bomb = fuse.bomb();
                                    Box::pin(async move {
                                        let _bomb = bomb;
                                    })
                                }
                            }
                        })
                        .unwrap();
                    }
                    Ok(())
                })
                .await;
            assert!(matches!(outcome, Err(Stop::Panicked(_))), "{how}");
            assert_eq!((fuse.blown(), others.load(SeqCst)), (1, 2), "{how}");
        }
    });
}

/// The closure that makes what is supervised: a failure like any other, after which it is called
/// again.
#[test]
fn a_supervised_closure() {
    contained(NONE, async |_cx, s| {
        let (fuse, own) = (Fuse::default(), Fuse::default());
        let fails = fuse.clone();
        let task = s.supervise("worker", Restart::times(3, Duration::MAX), move || {
            if fails.blown() < 2 {
                fails.blow("closure");
            }
            let own = own.clone();
            async move |_cx: Cx| {
                own.0.fetch_add(1, SeqCst);
                Ok(())
            }
        });
        task.await.unwrap();
        assert_eq!(fuse.blown(), 2);
    });
}

/// Its panic is its outcome, that of its result is counted, and the thread takes the next job.
#[test]
fn blocking_jobs() {
    contained(lost(1), async |cx, s| {
        let fuse = Fuse::default();
        let own = fuse.clone();
        let job = s.spawn_blocking(move || -> Result { own.blow("job") });
        assert_eq!(panic_of(job.await), "job");
        let bomb = fuse.bomb();
        drop(s.spawn_blocking(move || Ok(bomb)));
        until(cx, || fuse.blown() == 2).await;
        assert_eq!(s.spawn_blocking(|| Ok(7)).await.unwrap(), 7);
    });
}

#[test]
fn governors() {
    struct Panics(Fuse);
    impl Governor for Panics {
        fn suggest(&self, _: View) -> Suggestion {
            self.0.blow("governor")
        }
    }
    for workers in [1, 2] {
        let fuse = Fuse::default();
        let builder = Runtime::builder().workers(workers).governor(Panics(fuse.clone()));
        let runtime = builder.build().unwrap();
        contained_on(&runtime, async |cx, s| {
            let ends = Arc::new(AtomicU64::new(0));
            // There is a choice between lanes until one of each is seen together.
            while fuse.blown() == 0 {
                for timed in [true, false] {
                    let (ends, task) = (ends.clone(), s.task("busy"));
                    let task = if timed { task.within(600.secs()) } else { task };
                    drop(task.spawn(async move |cx: Cx| {
                        cx.yield_now().await;
                        ends.fetch_add(1, SeqCst);
                        Ok(())
                    }));
                }
                cx.yield_now().await;
            }
        });
        all_workers_live(&runtime, workers);
        assert_eq!(counted(&runtime), callbacks(fuse.blown()), "{workers} workers");
    }
}

/// A panic of a poll, or of the closure that makes the future, is the outcome of the task.
#[test]
fn polls() {
    contained(NONE, async |_cx, s| {
        let task = s.spawn(async |_cx: Cx| -> Result { panic!("poll") });
        assert_eq!(panic_of(task.await), "poll");
        let made = s.spawn(|_cx| -> std::future::Ready<Result> { panic!("closure") });
        assert_eq!(panic_of(made.await), "closure");
    });
}
