//! The last reference to a runtime is dropped in a callback, on any thread that runs it.

use std::cell::RefCell;
use std::sync::Weak;
use std::thread::JoinHandle;
use std::time::Instant;

use asx_native::wait;

use super::*;

/// The remains of a runtime after its drop: operations of other threads that only the drop
/// completes, and the state that its threads share.
struct Remains {
    cx: Cx,
    handle: Handle,
    waiting: Vec<JoinHandle<()>>,
    /// Operations that were begun with a waker of the test.
    begun: Vec<Pin<Box<dyn Future<Output = Result>>>>,
    /// Has an owner until the last thread of the runtime has released the state.
    state: Weak<()>,
}

/// A governor without a preference. The state that all threads share owns it.
struct Neutral(#[allow(dead_code, reason = "dropped with the runtime's state")] Arc<()>);

impl Governor for Neutral {
    fn suggest(&self, _: View) -> Suggestion {
        Suggestion::NoPreference
    }
}

/// A runtime with threads, and its remains.
fn subject() -> (Arc<Runtime>, Remains) {
    let owned = Arc::new(());
    let state = Arc::downgrade(&owned);
    let builder = Runtime::builder().workers(2).governor(Neutral(owned));
    let runtime = Arc::new(builder.build().unwrap());
    let cx = runtime.block_on(async |cx: Cx| {
        // Afterwards a thread for blocking jobs waits for the next one.
        assert_eq!(cx.spawn_blocking(|| 7).await.unwrap(), 7);
        cx.clone()
    });
    let waiting = [
        waits_for_timer(cx.clone()),
        #[cfg(unix)]
        waits_for_socket(cx.clone()),
    ];
    let handle = runtime.handle();
    let waiting = Vec::from(waiting);
    (runtime, Remains { cx, handle, waiting, begun: Vec::new(), state })
}

impl Remains {
    /// Has a worker call the waker soon.
    fn call_on_worker(&mut self, waker: Waker) {
        // A thread that is preempted here for longer than the sleep has to try again.
        loop {
            let cx = self.cx.clone();
            let mut sleep = Box::pin(async move { cx.sleep(1.millis()).await });
            if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                return self.begun.push(sleep);
            }
        }
    }

    /// Waits until the runtime is shut down: waiting operations have completed, its threads have
    /// released everything, and `panics` panics of callbacks were counted.
    #[track_caller]
    fn assert_shut_down(self, panics: u64) {
        self.assert_shut_down_with(panics, ());
    }

    /// The same with a value that owns a context or a socket until the waiting operations have
    /// completed.
    #[track_caller]
    fn assert_shut_down_with(self, panics: u64, owner: impl Sized) {
        let Remains { cx, handle, waiting, begun, state } = self;
        let end = Instant::now() + HANG;
        let until = |is_so: &dyn Fn() -> bool, what: &str| {
            while !is_so() {
                assert!(Instant::now() < end, "{what}");
                thread::sleep(Duration::from_millis(1));
            }
        };
        until(&|| waiting.iter().all(JoinHandle::is_finished), "an operation never completes");
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
        until(&|| handle.health().callback_panics > panics, "the drop has not completed");
        assert_eq!(handle.health().callback_panics, panics + 1, "one is from `waits_for_timer`");
        drop((cx, handle, begun, owner));
        until(&|| state.strong_count() == 0, "a thread does not end");
    }
}

/// A thread that sleeps for longer than a test takes. Before that it begins another sleep, with a
/// waker that panics.
fn waits_for_timer(cx: Cx) -> JoinHandle<()> {
    let (begun, begins) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let mut panics = pin!(cx.sleep(600.secs()));
        begin(panics.as_mut(), &Fuse::default().waker());
        let mut sleep = pin!(cx.sleep(600.secs()));
        begin(sleep.as_mut(), Waker::noop());
        begun.send(()).unwrap();
        assert!(wait(sleep).is_err(), "the sleep completed");
    });
    begins.recv().unwrap();
    waiting
}

/// A thread that waits at a socket where nothing arrives.
#[cfg(unix)]
fn waits_for_socket(cx: Cx) -> JoinHandle<()> {
    let (begun, begins) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = watched(&cx, &near);
        let mut slot = WaitSlot::default();
        begun.send(()).unwrap();
        let gone = std::future::poll_fn(|context| poll_gone(&*socket, &mut slot, context.waker()));
        wait(gone);
    });
    begins.recv().unwrap();
    waiting
}

/// Waits until the runtime of a socket is dropped. The first event of a socket may arrive late and
/// report it as readable, although nothing has arrived.
#[cfg(unix)]
fn poll_gone(socket: &dyn Socket, slot: &mut WaitSlot, waker: &Waker) -> Poll<()> {
    loop {
        match socket.poll_ready(Direction::Read, slot, waker) {
            Poll::Ready(Ok(seen)) => socket.clear_ready(Direction::Read, seen),
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Pending => return Poll::Pending,
        }
    }
}

/// A waker that owns a runtime, and passes it to a closure when it is woken.
struct Owns<F> {
    runtime: Mutex<Option<Arc<Runtime>>>,
    wake: F,
}

impl<F: Fn(Arc<Runtime>) + Send + Sync + 'static> Wake for Owns<F> {
    fn wake(self: Arc<Self>) {
        let runtime = self.runtime.lock().unwrap().take();
        runtime.into_iter().for_each(&self.wake);
    }
}

fn owns(runtime: Arc<Runtime>, wake: impl Fn(Arc<Runtime>) + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Owns { runtime: Mutex::new(Some(runtime)), wake }))
}

/// Repeats a test: the threads of a runtime end in many orders.
fn repeat(test: impl Fn()) {
    (0..20).for_each(|_| test());
}

#[test]
fn in_a_wake_on_its_own_worker() {
    repeat(|| {
        let (runtime, mut remains) = subject();
        remains.call_on_worker(owns(runtime, drop));
        remains.assert_shut_down(0);
    });
}

#[test]
#[cfg(unix)]
fn in_a_wake_by_a_socket_on_its_own_worker() {
    repeat(|| {
        let (runtime, remains) = subject();
        let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = watched(&remains.cx, &near);
        let mut slot = WaitSlot::default();
        let waker = owns(runtime, drop);
        assert!(poll_gone(&*socket, &mut slot, &waker).is_pending());
        drop(waker);
        std::io::Write::write_all(&mut far, b"x").unwrap();
        remains.assert_shut_down_with(0, (socket, slot));
    });
}

/// During the unwinding of a panic, and with the payload of one.
#[test]
fn in_a_panic_on_its_own_worker() {
    repeat(|| {
        let (runtime, mut remains) = subject();
        remains.call_on_worker(owns(runtime, |_runtime| panic!("dropped by unwinding")));
        remains.assert_shut_down(1);
        let (runtime, mut remains) = subject();
        remains.call_on_worker(owns(runtime, |runtime| panic_any(runtime)));
        remains.assert_shut_down(1);
    });
}

/// Each runtime of a ring is dropped on a worker of the one before it, all at the same time. None
/// waits for another.
#[test]
fn on_workers_of_each_other() {
    repeat(|| {
        for count in 1..=3 {
            let (mut runtimes, mut all): (Vec<_>, Vec<_>) = (0..count).map(|_| subject()).unzip();
            let begin = Arc::new(Barrier::new(count));
            runtimes.rotate_left(1);
            for (runtime, remains) in runtimes.into_iter().zip(&mut all) {
                let begin = begin.clone();
                remains.call_on_worker(owns(runtime, move |runtime| {
                    begin.wait();
                    drop(runtime);
                }));
            }
            all.into_iter().for_each(|remains| remains.assert_shut_down(0));
        }
    });
}

/// A waker of a blocking job owns the runtime. The thread of the job or the one in `block_on` drops
/// the last reference.
#[test]
fn on_a_thread_for_blocking_jobs() {
    repeat(|| {
        let (runtime, remains) = subject();
        let waker = owns(runtime.clone(), drop);
        let own = runtime.clone();
        let ran: Result = runtime.block_on(async move |cx: Cx| {
            cx.scope(async |s: Scope<Cancelled>| {
                let mut job = s.spawn_blocking(|| Ok(()));
                drop(own);
                let begun = pin!(&mut job).poll(&mut Context::from_waker(&waker));
                drop((begun, waker));
                Ok(())
            })
            .await
        });
        assert!(ran.is_ok());
        drop(runtime);
        remains.assert_shut_down(0);
    });
}

/// Positions in a program of another runtime: the body, a task, its unwinding, a finalizer, a job.
#[test]
fn in_a_program_of_another_runtime() {
    repeat(|| {
        for workers in [1, 2] {
            let other = Runtime::builder().workers(workers).build().unwrap();
            let (runtimes, all): (Vec<_>, Vec<_>) = (0..5).map(|_| subject()).unzip();
            let Ok([body, task, unwound, finalizer, job]) = <[_; 5]>::try_from(runtimes) else {
                unreachable!("there are five positions");
            };
            other.block_on(async |cx: Cx| {
                drop(body);
                let outcome = cx.scope_with(Policy::CollectAll).run(async |s: Scope<Cancelled>| {
                    s.defer(async move |_| drop(finalizer)).unwrap();
                    s.spawn(async move |_| {
                        drop(task);
                        Ok(())
                    });
                    s.spawn_blocking(move || {
                        drop(job);
                        Ok(())
                    });
                    let panics = s.spawn(async move |_| -> Result {
                        let _unwound = unwound;
                        panic!("unwinds");
                    });
                    assert_eq!(panic_of(panics.await), "unwinds");
                    Ok(())
                });
                assert!(outcome.await.is_ok());
            });
            all.into_iter().for_each(|remains| remains.assert_shut_down(0));
        }
    });
}

/// A thread-local value owns the last reference: of a thread of another runtime, and of any other.
#[test]
fn in_the_destructor_of_a_thread_local() {
    thread_local!(static LAST: RefCell<Option<Arc<Runtime>>> = const { RefCell::new(None) });
    repeat(|| {
        let (runtime, remains) = subject();
        thread::spawn(|| LAST.set(Some(runtime))).join().unwrap();
        remains.assert_shut_down(0);
        let (runtime, remains) = subject();
        let (other, other_remains) = subject();
        other.block_on(async |cx: Cx| {
            cx.spawn_blocking(|| LAST.set(Some(runtime))).await.unwrap();
        });
        drop(other);
        other_remains.assert_shut_down(0);
        remains.assert_shut_down(0);
    });
}
