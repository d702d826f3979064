//! Programs: the futures that `block_on` runs.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::task::{Wake, Waker};

use asx_runtime::{
    AdmissionError, Cancelled, Cx, Host, Outcome, Panic, Root, SpawnError, TaskError, Unheeded,
};

use crate::block_on_slots::Role;
use crate::guest::Guest;
use crate::prim::atomic::AtomicBool;
use crate::prim::atomic::Ordering::{Acquire, Release, SeqCst};
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::worker::Worker;

/// Error returned by [`try_block_on`](crate::Runtime::try_block_on).
#[derive(Debug)]
#[non_exhaustive]
pub enum BlockOnError {
    /// The calling thread is running tasks, of this runtime or another, and would wait for itself.
    InsideTask,
    /// The runtime was shut down and accepts no more programs.
    ShutDown,
    /// The runtime refused the program, for example because a limit is reached.
    Refused(SpawnError),
    /// The program was aborted because it did not end within its grace period.
    Ended(Ended),
    /// The body panicked.
    Panicked(Panic),
    /// A task took too long to observe its cancel, and the runtime was built to
    /// [deny](crate::Builder::deny_unheeded_cancels) that.
    Unheeded(Unheeded),
}

impl fmt::Display for BlockOnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockOnError::InsideTask => {
                f.write_str("block_on inside a task would wait for itself: await instead")
            }
            BlockOnError::ShutDown => {
                f.write_str("the runtime was shut down and accepts no more programs")
            }
            BlockOnError::Refused(refused) => {
                write!(f, "the runtime refused the program: {refused}")
            }
            BlockOnError::Ended(ended) => ended.fmt(f),
            BlockOnError::Panicked(panic) => write!(f, "the program panicked: {}", panic.message()),
            BlockOnError::Unheeded(unheeded) => write!(f, "unheeded cancel: {unheeded}"),
        }
    }
}

impl std::error::Error for BlockOnError {}

/// Describes an aborted program: the reason, and the tasks aborted with it.
#[derive(Clone, Debug)]
pub struct Ended {
    cancelled: Cancelled,
    forced: Vec<String>,
}

impl Ended {
    /// Returns the reason why the body was cancelled.
    pub fn cancelled(&self) -> &Cancelled {
        &self.cancelled
    }

    /// Returns descriptions of the tasks aborted since the runtime was cancelled, each with the
    /// operation it was waiting for. Of many, only the last ones are kept.
    pub fn forced(&self) -> &[String] {
        &self.forced
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = self.cancelled.reason().chain().last().map_or("", |cause| cause.kind.name());
        write!(f, "the program did not end in the time it was given ({cause}): ended by force")?;
        for (at, forced) in self.forced.iter().enumerate() {
            write!(f, "{} {forced}", if at == 0 { "" } else { ";" })?;
        }
        Ok(())
    }
}

/// The exit status of a process whose `#[asx::main]` was aborted because it did not end within its
/// grace period. It is that of the program `timeout`.
///
/// A line on the error output names the aborted tasks. No destructors run except those of aborted
/// tasks. A `main` that has to do more then calls
/// [`try_block_on`](crate::Runtime::try_block_on).
pub const ENDED_BY_FORCE: i32 = 124;

impl Runtime {
    /// Runs a program on this thread and the workers. Returns its value when everything in it has
    /// completed.
    ///
    /// The body may borrow and need not be `Send`. Its panic is resumed on this thread.
    ///
    /// Several threads may call this at a time, each with its own program. With two or more workers
    /// each of them polls only the body of its program and the tasks that `spawn_local` started
    /// there, so that no other task can delay it. With one worker, the first thread becomes the
    /// worker, and another one takes over when its program has completed. At most 256 threads can
    /// be in such calls; further ones wait until a slot is vacant.
    ///
    /// Before this returns, all tasks have completed that `spawn_local` started on this thread,
    /// including those of another program if one of its tasks ran here.
    ///
    /// # Panics
    /// - If the calling thread is running tasks, since it would wait for itself.
    /// - After a [`shutdown`](Runtime::shutdown).
    /// - If the program was aborted.
    /// - If cancels were unheeded and that is [denied](crate::Builder::deny_unheeded_cancels).
    ///
    /// [`try_block_on`](Runtime::try_block_on) returns an error instead.
    #[track_caller]
    pub fn block_on<F, B, T>(&self, body: F) -> T
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        match self.try_block_on(body) {
            Ok(value) => value,
            Err(BlockOnError::Panicked(panic)) => panic.resume(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs `#[asx::main]`: [`block_on`](Runtime::block_on), except that an aborted program does
    /// not panic, but prints a line and exits with [a status](ENDED_BY_FORCE).
    #[doc(hidden)]
    #[track_caller]
    pub fn run_main<F, B, T>(&self, body: F) -> T
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        match self.try_block_on(body) {
            Ok(value) => value,
            Err(BlockOnError::Panicked(panic)) => panic.resume(),
            Err(BlockOnError::Ended(ended)) => {
                // The error output may be closed, which is no reason to panic.
                let _ = io::stderr().write_all(format!("asx: {ended}\n").as_bytes());
                std::process::exit(ENDED_BY_FORCE)
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// [`block_on`](Runtime::block_on) that never panics: a panic of the body and any other failure
    /// is returned as an error.
    ///
    /// ```
    /// use asx::{BlockOnError, Cx, Runtime};
    /// use std::time::Duration;
    ///
    /// let runtime = Runtime::new()?;
    /// assert_eq!(runtime.try_block_on(async |_cx: Cx| 7)?, 7);
    ///
    /// let nested = runtime.try_block_on(async |_cx: Cx| runtime.try_block_on(async |_cx| 7))?;
    /// assert!(matches!(nested, Err(BlockOnError::InsideTask)));
    ///
    /// runtime.shutdown(Duration::ZERO).unwrap();
    /// let late = runtime.try_block_on(async |_cx: Cx| 7);
    /// assert!(matches!(late, Err(BlockOnError::ShutDown)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`BlockOnError`]. If the program could not begin, `body` was not called, or its future
    /// was dropped without a poll.
    pub fn try_block_on<F, B, T>(&self, body: F) -> Result<T, BlockOnError>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        if is_inside() {
            return Err(BlockOnError::InsideTask);
        }
        let _inside = Inside::enter(self);
        let outcome = match self.slots.take() {
            Role::Worker(worker) => self.run_as_worker(worker, body),
            Role::Guest(pin) => self.run_as_guest(pin, body),
        };
        let unheeded = if self.denies_unheeded { self.core.take_unheeded() } else { None };
        match outcome {
            Ok(Ok(value)) => match unheeded {
                Some(unheeded) => Err(BlockOnError::Unheeded(unheeded)),
                None => Ok(value),
            },
            Ok(Err(TaskError::Panicked(panic))) => Err(BlockOnError::Panicked(panic)),
            Ok(Err(TaskError::Cancelled(cancelled))) => {
                let forced = self.core.take_forced();
                Err(BlockOnError::Ended(Ended { cancelled, forced }))
            }
            Ok(Err(TaskError::Err(never))) => match never {},
            Err(SpawnError::Refused(AdmissionError::Closing | AdmissionError::Closed)) => {
                Err(BlockOnError::ShutDown)
            }
            Err(refused) => Err(BlockOnError::Refused(refused)),
        }
    }

    fn run_as_worker<F, B, T>(&self, worker: Box<Worker>, body: F) -> Ran<T>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        self.shared.idle.join();
        let (signal, waker) = Signal::new(&self.shared, worker.index);
        let drive = || worker.run(|| signal.set.load(Acquire));
        // SAFETY: this thread holds the only worker of that index, until nothing is pinned to it.
        let outcome =
            unsafe { Root::run(&self.root, worker.index, body, &waker, signal.then(drive)) };
        while worker.pins() > 0 {
            worker.run(|| worker.pins() == 0);
        }
        self.leave(Some(worker), None);
        outcome
    }

    fn run_as_guest<F, B, T>(&self, pin: u16, body: F) -> Ran<T>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        let Some(guest) = Guest::enter(pin, &self.shared, &self.core, &self.slots) else {
            unreachable!("slots are created before they are reserved");
        };
        let (signal, waker) = Signal::new(&self.shared, pin);
        let drive = || guest.run(|| signal.set.load(Acquire));
        // SAFETY: this thread holds the only slot of that number, until nothing is pinned to it.
        let outcome = unsafe { Root::run(&self.root, pin, body, &waker, signal.then(drive)) };
        while guest.pins() > 0 {
            guest.run(|| guest.pins() == 0);
        }
        self.leave(guest.leave(), Some(pin));
        outcome
    }

    /// Releases the worker and the slot of the calling thread.
    pub(crate) fn leave(&self, worker: Option<Box<Worker>>, slot: Option<u16>) {
        if let Some(worker) = &worker {
            worker.release_entries();
            self.shared.idle.leave();
            // Other programs may be running, and other threads may still wait with a context of
            // this one.
            if self.shared.global.total() > 0 {
                self.shared.idle.notify_remote();
            }
            if self.core.next_timer().is_some() {
                self.shared.idle.notify_timers();
            }
        }
        self.slots.release(worker, slot);
    }
}

thread_local! {
    /// Whether this thread is in `block_on`.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns true if this thread runs tasks, or is about to: it must not block on a task.
pub(crate) fn is_inside() -> bool {
    INSIDE.get() || Worker::is_here() || Guest::is_any()
}

/// Marks the thread as being in `block_on` until it is dropped: also while the body is created and
/// between two polls.
struct Inside<'a>(&'a Runtime);

impl Inside<'_> {
    fn enter(runtime: &Runtime) -> Inside<'_> {
        INSIDE.set(true);
        runtime.shared.programs.fetch_add(1, SeqCst);
        runtime.shared.reactor.start_running();
        Inside(runtime)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        INSIDE.set(false);
        let Inside(Runtime { shared, core, .. }) = self;
        if shared.programs.fetch_sub(1, SeqCst) == 1 && !shared.drives_timers() {
            core.abandon_timers(false);
        }
        for waker in shared.reactor.stop_running() {
            // It may be a third-party waker, which may panic.
            core.contain(|| waker.wake());
        }
    }
}

/// The result of running a program.
type Ran<T> = Result<Outcome<T, Infallible>, SpawnError>;

/// Wakes the thread in `block_on`.
struct Signal {
    shared: Arc<Shared>,
    pin: u16,
    set: AtomicBool,
}

impl Signal {
    fn new(shared: &Arc<Shared>, pin: u16) -> (Arc<Signal>, Waker) {
        let signal = Arc::new(Signal { shared: shared.clone(), pin, set: AtomicBool::new(false) });
        (signal.clone(), Waker::from(signal))
    }

    /// Returns a function that calls `drive` and then resets the signal.
    fn then(&self, mut drive: impl FnMut()) -> impl FnMut() {
        move || {
            drive();
            self.set.store(false, Release);
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set.store(true, Release);
        self.shared.notify_pin(self.pin);
    }
}
