//! Programs: what `block_on` runs.

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

use crate::block_on_slots::Place;
use crate::guest::Guest;
use crate::prim::atomic::AtomicBool;
use crate::prim::atomic::Ordering::{Acquire, Release, SeqCst};
use crate::runtime::Runtime;
use crate::shared::Shared;
use crate::worker::Worker;

/// Why a program gave no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum BlockOnError {
    /// The calling thread is running tasks, of this runtime or another: it would wait for itself.
    InsideTask,
    /// The runtime was shut down: it takes no more programs.
    ShutDown,
    /// The runtime takes no program now: a limit is reached, say.
    Refused(SpawnError),
    /// The program was ended by force: its body did not end in the time it was given to.
    Ended(Ended),
    /// The body panicked.
    Panicked(Panic),
    /// A task did not look at its cancel for too long, and the runtime was built to
    /// [deny](crate::Builder::deny_unheeded_cancels) that.
    Unheeded(Unheeded),
}

impl fmt::Display for BlockOnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockOnError::InsideTask => f.write_str("block_on inside a task would wait for itself"),
            BlockOnError::ShutDown => {
                f.write_str("the runtime takes no more programs: it was shut down")
            }
            BlockOnError::Refused(refused) => {
                write!(f, "the runtime takes no program now: {refused}")
            }
            BlockOnError::Ended(ended) => ended.fmt(f),
            BlockOnError::Panicked(panic) => write!(f, "the program panicked: {}", panic.message()),
            BlockOnError::Unheeded(unheeded) => write!(f, "unheeded cancel: {unheeded}"),
        }
    }
}

impl std::error::Error for BlockOnError {}

/// How a program was ended by force: for what, and what it was doing.
#[derive(Clone, Debug)]
pub struct Ended {
    cancelled: Cancelled,
    forced: Vec<String>,
}

impl Ended {
    /// Why its body was asked to stop.
    pub fn cancelled(&self) -> &Cancelled {
        &self.cancelled
    }

    /// What was ended by force in the runtime since it was told to stop, in words: tasks, each
    /// with what it was waiting for. Of many only the last.
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

/// The status a process exits with whose `#[asx::main]` was ended by force: it was told to stop,
/// and has not in the time it was given. The same as that of the program `timeout`.
///
/// A line on the error output names what was ended. No destructor runs but those of what was ended;
/// a `main` that wants to do something itself then calls
/// [`try_block_on`](crate::Runtime::try_block_on).
pub const ENDED_BY_FORCE: i32 = 124;

impl Runtime {
    /// Runs a program on this thread and the workers: its value, when everything in it has ended.
    ///
    /// The body may borrow and need not be `Send`. Its panic goes on here.
    ///
    /// Several threads may be in here at a time, each with a program of its own. With two workers
    /// or more they are guests of the workers: each polls the body of its program and what was
    /// started there with `spawn_local`, so that no other task can hold it up. With one worker, the
    /// first thread in here is the worker, and when it is done a guest takes its place. There can
    /// be 256 guests, beyond that a thread waits for one to leave.
    ///
    /// Before it returns, everything has ended that `spawn_local` started on this thread: for
    /// another program too, if a task of that happened to run here.
    ///
    /// # Panics
    /// If the calling thread is running tasks, since it would wait for itself; after a
    /// [`shutdown`](Runtime::shutdown); if the program was ended by force; or if cancels were
    /// unheeded and that is [denied](crate::Builder::deny_unheeded_cancels).
    /// [`try_block_on`](Runtime::try_block_on) answers an error instead.
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

    /// What `#[asx::main]` does: [`block_on`](Runtime::block_on), and a program that was ended by
    /// force is no panic, but a line and a [status](ENDED_BY_FORCE).
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
                // It may be closed, which is no reason to panic.
                let _ = io::stderr().write_all(format!("asx: {ended}\n").as_bytes());
                std::process::exit(ENDED_BY_FORCE)
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// [`block_on`](Runtime::block_on) that never panics: a program that gave no value, its panic
    /// included, is an error.
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
    /// See [`BlockOnError`]. If there is one before the body began, that was not called, or its
    /// future was dropped without a poll.
    pub fn try_block_on<F, B, T>(&self, body: F) -> Result<T, BlockOnError>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        if is_inside() {
            return Err(BlockOnError::InsideTask);
        }
        let _inside = Inside::enter(self);
        let outcome = match self.places.take() {
            Place::Worker(worker) => self.run_as_worker(worker, body),
            Place::Guest(pin) => self.run_as_guest(pin, body),
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
        let Some(guest) = Guest::sit(pin, &self.shared, &self.core, &self.places) else {
            unreachable!("seats are made before they are given");
        };
        let (signal, waker) = Signal::new(&self.shared, pin);
        let drive = || guest.run(|| signal.set.load(Acquire));
        // SAFETY: this thread holds the only seat of that number, until nothing is pinned to it.
        let outcome = unsafe { Root::run(&self.root, pin, body, &waker, signal.then(drive)) };
        while guest.pins() > 0 {
            guest.run(|| guest.pins() == 0);
        }
        self.leave(guest.leave(), Some(pin));
        outcome
    }

    /// The calling thread leaves its places.
    pub(crate) fn leave(&self, worker: Option<Box<Worker>>, seat: Option<u16>) {
        if let Some(worker) = &worker {
            worker.hand_over();
            self.shared.idle.leave();
            // Other programs go on, and threads of the user's own may still wait with a context of
            // this one.
            if self.shared.global.total() > 0 {
                self.shared.idle.notify_remote();
            }
            if self.core.next_timer().is_some() {
                self.shared.idle.notify_timers();
            }
        }
        self.places.give(worker, seat);
    }
}

thread_local! {
    /// Whether this thread is in `block_on`.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs tasks, or is about to: it may wait for none.
pub(crate) fn is_inside() -> bool {
    INSIDE.get() || Worker::is_here() || Guest::is_any()
}

/// The thread is in `block_on` for as long as this lives: also while it makes the body, before
/// that is polled, and in between two polls.
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
            // It may be a waker of the user's.
            core.contain(|| waker.wake());
        }
    }
}

/// What became of a program.
type Ran<T> = Result<Outcome<T, Infallible>, SpawnError>;

/// Tells the thread in `block_on` to look again.
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

    /// `drive`, after which the signal is down again.
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
        self.shared.call(self.pin);
    }
}
