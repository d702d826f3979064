//! Panics of user code that the runtime calls: a test for each row of the tables in
//! `docs/CALLBACKS.md`. Each panic is counted, and everything else continues.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
#[cfg(unix)]
use std::task::Poll;
use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

use asx_kernel::lanes::Suggestion;
use asx_native::{Governor, Handle, Runtime, View};
use asx_runtime::channel::{self, ChannelExt};
#[cfg(unix)]
use asx_runtime::net::{Direction, Socket, WaitSlot};
use asx_runtime::sync;
use asx_runtime::time::DurationExt;
use asx_runtime::{Cancelled, Cx, Local, Outcome, Policy, Restart, Scope, TaskError, group};

type Result<T = (), E = Cancelled> = std::result::Result<T, E>;

/// A limit that no test reaches, even on a busy machine.
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

/// The numbers of panics of destructors of results, and of callbacks.
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

/// Runs a program on one worker and on two. Besides the program's checks: an unrelated task
/// continues, the scope around both closes, all workers are alive, and the panics are counted.
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
                bystander.cancel("the end");
                Ok(())
            })
            .await
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// A registered socket without known readiness.
#[cfg(unix)]
fn watched(cx: &Cx, fd: &std::os::unix::net::UnixStream) -> Arc<dyn Socket> {
    let socket = cx.net().unwrap().watch(std::os::fd::AsFd::as_fd(fd)).unwrap();
    let ready = socket.poll_ready(Direction::Read, &mut WaitSlot::default(), Waker::noop());
    let Poll::Ready(Ok(seen)) = ready else { panic!("not ready after registration") };
    socket.clear_ready(Direction::Read, seen);
    socket
}

/// Runs one task for each worker, all at the same time.
fn all_workers_live(runtime: &Runtime, workers: usize) {
    let _watchdog = Watchdog::new(runtime.handle());
    let all = Arc::new(Barrier::new(workers));
    let result: Result = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s| {
            for _ in 0..workers {
                let all = all.clone();
                s.spawn(async move |_cx: Cx| {
                    all.wait();
                    Ok(())
                });
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

/// Makes wakers and values that panic, and counts their panics.
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

    /// A waker of which every copy panics when it is dropped, once it is armed.
    fn armed_waker(&self) -> (Waker, Arc<AtomicBool>) {
        type Data = (Arc<AtomicBool>, Fuse);
        static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, drop_copy, ignore, drop_copy);
        unsafe fn clone(data: *const ()) -> RawWaker {
            // SAFETY: created from an `Arc` below, of which the cloned waker has a count.
            unsafe { Arc::increment_strong_count(data.cast::<Data>()) };
            RawWaker::new(data, &VTABLE)
        }
        unsafe fn ignore(_: *const ()) {}
        unsafe fn drop_copy(data: *const ()) {
            // SAFETY: the count of the waker, which ends here.
            let data = unsafe { Arc::from_raw(data.cast::<Data>()) };
            if data.0.load(SeqCst) {
                data.1.blow("drop of a copy");
            }
        }
        let armed = Arc::new(AtomicBool::new(false));
        let data: Arc<Data> = Arc::new((armed.clone(), self.clone()));
        let raw = RawWaker::new(Arc::into_raw(data).cast(), &VTABLE);
        // SAFETY: the functions of the vtable may be called on any thread.
        (unsafe { Waker::from_raw(raw) }, armed)
    }

    /// A waker that cannot be copied.
    fn unique_waker(&self) -> Waker {
        static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, ignore, ignore, ignore);
        unsafe fn clone(data: *const ()) -> RawWaker {
            // SAFETY: the pointer is the leaked reference below, so the value is never freed.
            let fuse: &Fuse = unsafe { &*data.cast() };
            fuse.blow("clone of a waker")
        }
        unsafe fn ignore(_: *const ()) {}
        // Reachable from a static, so leak checkers do not report it.
        static KEPT: Mutex<Vec<&Fuse>> = Mutex::new(Vec::new());
        let fuse: &'static Fuse = Box::leak(Box::new(self.clone()));
        KEPT.lock().unwrap().push(fuse);
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

/// Polls once with a waker of the test; the future is not ready.
fn begin<F: Future>(future: Pin<&mut F>, waker: &Waker) {
    assert!(future.poll(&mut Context::from_waker(waker)).is_pending());
}

/// Polls with a waker that is dropped afterwards.
fn begin_owned<F: Future>(future: Pin<&mut F>, waker: Waker) {
    begin(future, &waker);
}

fn panic_of<T>(outcome: Outcome<T, Cancelled>) -> String {
    match outcome {
        Err(TaskError::Panicked(panic)) => panic.message().into(),
        Err(stop) => panic!("{stop}"),
        Ok(_) => panic!("no panic"),
    }
}

async fn short(cx: Cx) -> Result<u32> {
    cx.sleep(5.millis()).await?;
    Ok(7)
}

mod drop_of;
mod drop_of_a_waker;
mod drop_of_runtime;
mod wake;

/// The panic unwinds through the poll that received the waker; the operation can be polled again.
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
            assert!(matches!(outcome, Err(TaskError::Panicked(_))), "{how}");
            assert_eq!((fuse.blown(), others.load(SeqCst)), (1, 2), "{how}");
        }
    });
}

/// The closure that creates the supervised future: its panic is a failure like any other, after
/// which it is called again.
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

/// A panic is the outcome of the job, one of its result is counted, and the thread takes the next
/// job.
#[test]
fn blocking_jobs() {
    contained(lost(1), async |cx, s| {
        let fuse = Fuse::default();
        let own = fuse.clone();
        let job = s.spawn_blocking(move || -> Result { own.blow("job") });
        assert_eq!(panic_of(job.await), "job");
        let bomb = fuse.bomb();
        s.spawn_blocking(move || Ok(bomb));
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
                    task.spawn(async move |cx: Cx| {
                        cx.yield_now().await;
                        ends.fetch_add(1, SeqCst);
                        Ok(())
                    });
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
