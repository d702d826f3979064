//! The public interface of a runtime.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use asx_kernel::cancel::ChainLimits;
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::TieBreak;
use asx_kernel::wheel::Coalesce;
use asx_runtime::audit::End;
use asx_runtime::{
    Core, Dump, Grace, Handle, Limits, Metrics, QuiescenceError, Recorded, Recording, Region,
    Settings,
};

use crate::block_on_slots::BlockOnSlots;
use crate::blocking::Pool;
use crate::clock::Clock;
use crate::governor::{Adaptive, Governor};
use crate::idle::MAX_WORKERS;
use crate::prim::atomic::Ordering::Release;
use crate::queue::Queue;
use crate::shared::{Remote, Rules, Shared};
use crate::worker::Worker;

/// Configures and builds a [`Runtime`].
#[derive(Clone)]
#[must_use = "call `build` to get the runtime"]
pub struct Builder {
    workers: usize,
    name: String,
    blocking_threads: usize,
    settings: Settings,
    cleanup_polls: Option<u32>,
    cleanup_time: Option<Option<Duration>>,
    rules: Rules,
    seed: Option<u64>,
    denies_unheeded: bool,
}

impl Default for Builder {
    fn default() -> Self {
        let workers = thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
        Builder {
            workers,
            name: "asx".into(),
            blocking_threads: 512,
            settings: Settings { long_poll: Some(LONG_POLL), ..Settings::default() },
            cleanup_polls: None,
            cleanup_time: None,
            rules: Rules { governor: Some(Arc::new(Adaptive::default())), ..Rules::default() },
            seed: None,
            denies_unheeded: false,
        }
    }
}

impl Builder {
    /// Sets the number of workers, which run tasks. The default is the number of processors; 0
    /// counts as 1.
    ///
    /// With two or more, each worker is a thread of the runtime. A thread that calls `block_on`
    /// then polls only the body of its program and the tasks that `spawn_local` started there, so
    /// that no other task can delay it. With one worker, the first thread in `block_on` is the
    /// worker.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, MAX_WORKERS);
        self
    }

    /// Runs tasks only on threads that call `block_on`: one of them is the worker, the others poll
    /// only what is pinned to them. The same as [`workers(1)`](Builder::workers).
    pub fn current_thread(self) -> Self {
        self.workers(1)
    }

    /// Sets the prefix of the threads' names. The default is `asx`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the largest number of threads for blocking jobs. The default is 512; 0 counts as 1.
    /// Threads are started on demand. When all of them are in use, jobs are queued.
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.blocking_threads = threads.max(1);
        self
    }

    /// Sets the operation budget: the number of operations that a task may complete in one poll
    /// without waiting before it yields. A socket operation counts as eight. The default is 128;
    /// `None` removes the limit, and 0 counts as 1.
    pub fn operations_per_poll(mut self, operations: Option<u32>) -> Self {
        self.settings.operations = operations.map_or(u32::MAX, |operations| operations.max(1));
        self
    }

    /// Enables the journal, which [`Runtime::journal`] returns. It keeps the last `capacity`
    /// events. It is off by default: recording takes time at every step, and up to 32 bytes times
    /// `capacity` for each thread.
    pub fn journal(mut self, capacity: usize) -> Self {
        self.settings.journal = Some(Recording::new(capacity, WhenFull::Overwrite));
        self
    }

    /// Enables a [`journal`](Builder::journal) that loses no event. Once `capacity` events have
    /// been recorded, new tasks, regions, timers and channels are refused (`RESOURCE_EXHAUSTED`).
    pub fn whole_journal(mut self, capacity: usize) -> Self {
        self.settings.journal = Some(Recording::new(capacity, WhenFull::Refuse));
        self
    }

    /// Sets the seed of all random numbers: those of [`Cx::random`](asx_runtime::Cx::random), and
    /// the workers' own choices. The default is a different one for each runtime.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes each worker choose among its own ready tasks of equal priority by the
    /// [seed](Builder::seed), instead of taking the one that has waited longest. This is for tests
    /// of programs that must not depend on the order.
    pub fn seeded_order(mut self) -> Self {
        self.rules.tie_break = TieBreak::Seeded;
        self
    }

    /// Orders tasks of the same lane and priority, or of the same deadline, by their ids instead of
    /// by the time they became runnable: the order (lane, deadline, task id, sequence). It needs a
    /// runtime with one worker, since several workers take from separate queues.
    ///
    /// [`build`](Builder::build) refuses the setting for more workers with
    /// [`BuildError::TaskKeyOrder`].
    ///
    /// ```
    /// use asx::{BuildError, Runtime};
    ///
    /// assert!(Runtime::builder().current_thread().task_key_order().build().is_ok());
    /// let error = Runtime::builder().workers(2).task_key_order().build().unwrap_err();
    /// let typed = error.get_ref().and_then(|error| error.downcast_ref());
    /// assert_eq!(typed, Some(&BuildError::TaskKeyOrder { workers: 2 }));
    /// ```
    pub fn task_key_order(mut self) -> Self {
        self.rules.tie_break = TieBreak::TaskKey;
        self
    }

    /// Sets the limit of consecutive dispatches of cancelled tasks while other work waits. The
    /// default is 16.
    pub fn cancel_streak_limit(mut self, limit: u32) -> Self {
        self.rules.cancel_streak_limit = limit;
        self
    }

    /// Sets the governor, which advises workers which lane to prefer. The default is [`Adaptive`],
    /// which is called only if there is a choice. Any other one is called before every dispatch,
    /// which takes time.
    pub fn governor(mut self, governor: impl Governor) -> Self {
        self.rules.governor = Some(Arc::new(governor));
        self.rules.governs_all = true;
        self
    }

    /// Limits the number of objects of each kind that exist at once. By default there is no limit.
    /// A refused operation fails with `RESOURCE_EXHAUSTED`. Timers have [a separate
    /// limit](Builder::max_timers).
    ///
    /// [`Limits::cancel_queue`] applies to [`Task::try_cancel`](asx_runtime::Task::try_cancel) and
    /// [`Task::cancel`](asx_runtime::Task::cancel). Cancels by scopes, timeouts, deadlines, failed
    /// siblings and shutdown are never refused.
    ///
    /// [`Limits::memory`] bounds an estimate that is the same on every host, not the allocated
    /// memory: 256 bytes for each live task or region, 64 for each obligation or armed timer, and
    /// for a channel [of a scope](asx_runtime::channel::ChannelExt::channel) 256 and 64 for each
    /// slot.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = Some(limits);
        self
    }

    /// Sets how far away a sleep, timeout or tick may be, exactly that far included. The default is
    /// 7 days; `Duration::MAX` removes the limit. A timer that is further away is refused with
    /// `TIMER_DURATION_EXCEEDED`: [`Cx::try_sleep`](asx_runtime::Cx::try_sleep) returns
    /// [`TimerError::TooFar`](asx_runtime::TimerError::TooFar). Operations that can only return
    /// [`Cancelled`](asx_runtime::Cancelled) cancel their task (`ResourceUnavailable`), with that
    /// error as the [`source`](std::error::Error::source).
    ///
    /// Deadlines of tasks and grace periods are not timers and are not limited.
    ///
    /// ```
    /// use asx::{Cx, Runtime, TimerError};
    /// use std::{error::Error, time::Duration};
    ///
    /// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    /// let runtime = Runtime::builder().max_timer_duration(30 * DAY).build()?;
    /// runtime.block_on(async |cx: Cx| {
    ///     assert!(cx.try_sleep(cx.now() + 30 * DAY).is_ok());
    ///     assert_eq!(cx.try_sleep(cx.now() + 31 * DAY).err(), Some(TimerError::TooFar));
    ///     let cancelled = cx.sleep(31 * DAY).await.unwrap_err();
    ///     let source = cancelled.source().and_then(|error| error.downcast_ref());
    ///     assert_eq!(source, Some(&TimerError::TooFar));
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn max_timer_duration(mut self, longest: Duration) -> Self {
        self.settings.wheel.max_timer_duration = longest;
        self
    }

    /// Sets the range of the timer wheel. The default is 24 hours. Timers at least this far away
    /// are kept in a heap and move to the wheel when they are in range. The setting affects speed
    /// only.
    pub fn max_wheel_duration(mut self, range: Duration) -> Self {
        self.settings.wheel.max_wheel_duration = range;
        self
    }

    /// Limits the chain of causes of a cancel: the number of links (16 by default) and their size
    /// in bytes (4096 by default), where a link takes 88 bytes and its message. Both include the
    /// reason itself, which is always kept. A longer chain is cut off at the far end, and its last
    /// link is marked ([`Reason::truncated`](asx_kernel::cancel::Reason::truncated)).
    pub fn cancel_chain(mut self, depth: usize, bytes: usize) -> Self {
        self.settings.chain = ChainLimits { depth, bytes };
        self
    }

    /// Limits the number of armed sleeps, timeouts and ticks. By default there is no limit. A
    /// further one fails: a task that waits for it is cancelled (`ResourceUnavailable`), and
    /// [`Cx::try_sleep`](asx_runtime::Cx::try_sleep) returns `RESOURCE_EXHAUSTED`.
    pub fn max_timers(mut self, timers: usize) -> Self {
        self.settings.wheel.limit = timers;
        self
    }

    /// Fires timers that are nearly due together, early, so that a worker wakes once for all of
    /// them. Off by default. When at least `min_group_size` timers are due before the next multiple
    /// of `window`, all of them fire. A `window` of zero disables this.
    pub fn coalesce_timers(mut self, window: Duration, min_group_size: usize) -> Self {
        let coalesce = (!window.is_zero()).then_some(Coalesce { window, min_group_size });
        self.settings.wheel.coalesce = coalesce;
        self
    }

    /// Sets the number of polls that a task may take for its cleanup once it has observed its
    /// cancel, and a finalizer in total; `u32::MAX` removes the limit. The default depends on the
    /// [kind](asx_kernel::cancel::Kind) of the cancel, from 1000 for `User` to 50 for `Shutdown`. 0
    /// counts as 1. A scope may set its own limit
    /// ([`ScopeBuilder::cleanup_polls`](asx_runtime::ScopeBuilder::cleanup_polls)), and so may a
    /// cancel ([`Why::cleanup_polls`](asx_runtime::Why::cleanup_polls)).
    ///
    /// A time that the cancel states ([`Grace::hard`],
    /// [`Why::cleanup_time`](asx_runtime::Why::cleanup_time)) replaces the limit of polls: nothing
    /// is aborted before that time has passed.
    pub fn cleanup_polls(mut self, polls: u32) -> Self {
        self.cleanup_polls = Some(polls.max(1));
        self
    }

    /// Sets how long cleanup may take: that of a task once it has observed its cancel, each
    /// finalizer, and each [shield](asx_runtime::Cx::shield) that hides a cancel. The default is 30
    /// seconds; `None` removes the limit.
    /// [`ScopeBuilder::cleanup_time`](asx_runtime::ScopeBuilder::cleanup_time), which sets the time
    /// of a scope, describes what happens afterwards. A cancel and a shield may also set their own
    /// time ([`Why::cleanup_time`](asx_runtime::Why::cleanup_time),
    /// [`Cx::shield_for`](asx_runtime::Cx::shield_for)).
    ///
    /// Setting a time removes the limit of polls, unless
    /// [`cleanup_polls`](Builder::cleanup_polls) is set as well.
    pub fn cleanup_time(mut self, time: Option<Duration>) -> Self {
        self.cleanup_time = Some(time);
        self
    }

    /// Sets the number of polls that a task may take from its cancel until it observes it. The
    /// default is 1000; `None` or more than 65 533 removes the limit. A task that takes more is
    /// counted in [`Health::unheeded_cancels`](asx_runtime::Health::unheeded_cancels) and reported
    /// by `tracing`, once. The task continues. A poll that does not return is found by
    /// [`long_poll`](Builder::long_poll).
    pub fn cancel_latency(mut self, polls: Option<u16>) -> Self {
        self.settings.cancel_latency = polls;
        self
    }

    /// Sets how long a task that was cancelled may stay inside one poll without observing it: 1
    /// second by default, `None` for any time. A longer poll is counted in
    /// [`Health::long_polls`](asx_runtime::Health::long_polls) and reported once for each task, by
    /// `tracing` or on the error output. The task continues.
    ///
    /// The report comes while the poll is running, at most a quarter of the limit late. It comes
    /// from a thread that runs no tasks and exists only while tasks are being polled that have not
    /// observed their cancel, and shortly afterwards. A runtime without cancels never starts it.
    ///
    /// ```
    /// use asx::{Cancelled, Cx, Runtime, Scope};
    /// use std::time::Duration;
    ///
    /// let limit = Duration::from_millis(5);
    /// let runtime = Runtime::builder().workers(1).long_poll(Some(limit)).build()?;
    /// let handle = runtime.handle();
    /// let _ = runtime.block_on(async |cx: Cx| {
    ///     cx.scope(async |s: Scope<Cancelled>| {
    ///         let busy = s.task("busy").spawn(async move |_cx: Cx| {
    ///             // A poll that does not observe the cancel.
    ///             while handle.metrics().health.long_polls == 0 {}
    ///             Ok(())
    ///         });
    ///         busy.cancel("enough");
    ///         Ok(())
    ///     })
    ///     .await
    /// });
    /// assert_eq!(runtime.metrics().health.long_polls, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn long_poll(mut self, limit: Option<Duration>) -> Self {
        self.settings.long_poll = limit;
        self
    }

    /// Makes programs with unheeded cancels fail, for tests. Once everything has completed,
    /// [`block_on`](Runtime::block_on) panics instead of returning its value. The panic names the
    /// first task that exceeded the [cancel latency](Builder::cancel_latency) or the
    /// [poll time](Builder::long_poll). With several concurrent programs, the first to complete
    /// fails.
    pub fn deny_unheeded_cancels(mut self) -> Self {
        self.denies_unheeded = true;
        self
    }

    /// Returns the settings, with defaults for those that are not set.
    fn settings(&self) -> Settings {
        let any = self.cleanup_time.flatten().map(|_| u32::MAX);
        Settings {
            cleanup_polls: self.cleanup_polls.or(any).unwrap_or(0),
            cleanup_time: self.cleanup_time.unwrap_or(Some(CLEANUP_TIME)),
            ..self.settings.clone()
        }
    }

    /// Builds the runtime and starts its threads.
    ///
    /// # Errors
    /// The error of the operating system if a thread cannot be started. `InvalidInput` with a
    /// [`BuildError`] inside if settings contradict each other.
    pub fn build(self) -> io::Result<Runtime> {
        self.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let (queues, remotes): (Vec<_>, Vec<_>) = (0..self.workers)
            .map(|_| {
                let (queue, shared) = Queue::of(self.workers);
                (queue, Remote::new(shared))
            })
            .unzip();
        let pool = Pool::new(self.blocking_threads, &self.name);
        let clock = Clock::machine();
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(()));
        let rules = Rules { seed, ..self.rules.clone() };
        let shared = Shared::new(remotes.into(), pool, rules, clock);
        let core = shared.core(self.settings());
        let mut workers = queues
            .into_iter()
            .zip(0..)
            .map(|(queue, index)| Worker::new(index, shared.clone(), core.clone(), queue));
        // See decision 036: the body of a program cannot leave its thread. With several workers,
        // that thread runs no other tasks, since another worker can.
        let first = if self.workers == 1 { workers.next().map(Box::new) } else { None };
        let mut runtime = Runtime {
            root: core.root(),
            core: core.clone(),
            slots: BlockOnSlots::new(shared.clone(), first),
            threads: Vec::new(),
            shared: shared.clone(),
            denies_unheeded: self.denies_unheeded,
            reported_alive: AtomicBool::new(false),
            end_audit: Some(core.audit_end()),
        };
        #[cfg(not(any(loom, miri, target_family = "wasm")))]
        shared.monitor.watch(&runtime.root);
        for worker in workers {
            let name = format!("{}-{}", self.name, worker.index);
            let thread = thread::Builder::new().name(name).spawn(move || worker.serve())?;
            runtime.threads.push(thread);
        }
        Ok(runtime)
    }
}

impl Builder {
    fn check(&self) -> Result<(), BuildError> {
        if self.name.contains('\0') {
            return Err(BuildError::ThreadName);
        }
        let workers = self.workers;
        if self.rules.tie_break == TieBreak::TaskKey && workers > 1 {
            return Err(BuildError::TaskKeyOrder { workers });
        }
        Ok(())
    }
}

/// Error for contradictory or invalid settings of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The name of the threads contains a zero byte.
    ThreadName,
    /// [`task_key_order`](Builder::task_key_order) with several workers.
    TaskKeyOrder {
        /// The number of workers that was set.
        workers: usize,
    },
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::ThreadName => {
                f.write_str("the name of a runtime's threads has a zero byte in it")
            }
            BuildError::TaskKeyOrder { workers } => write!(
                f,
                "`task_key_order` needs one worker, and the builder has {workers}: set `workers(1)`"
            ),
        }
    }
}

impl std::error::Error for BuildError {}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("name", &self.name)
            .field("settings", &self.settings())
            .finish_non_exhaustive()
    }
}

/// A runtime on threads.
///
/// # Drop
/// Dropping a runtime ends its threads and joins them. Operations of other threads that wait for
/// its timers or sockets complete with an error.
///
/// A runtime can be dropped on any thread. On a thread that it owns, where a third-party waker may
/// drop the last reference, the drop joins no thread: they end soon after it returns. The same
/// applies to a thread of another runtime that is being dropped.
///
/// # Memory
/// Memory of completed tasks is cached for later tasks, for all runtimes of the process together.
/// For each task size the cache and the live tasks take at most as much memory as the most tasks of
/// that size that have been live at once, plus 16 KiB for each thread. Beyond 32 MiB, and for tasks
/// larger than 2 KiB, memory is returned to the allocator.
pub struct Runtime {
    pub(crate) root: Arc<Region>,
    pub(crate) core: Arc<Core>,
    /// Slots for threads that call `block_on`.
    pub(crate) slots: BlockOnSlots,
    threads: Vec<JoinHandle<()>>,
    pub(crate) shared: Arc<Shared>,
    /// Whether programs with unheeded cancels fail.
    pub(crate) denies_unheeded: bool,
    /// Whether the tasks alive after a shutdown have been reported.
    reported_alive: AtomicBool,
    /// Checks in an audit build which references remain. Dropped last.
    end_audit: Option<End>,
}

impl Runtime {
    /// Creates a runtime with one worker per processor.
    pub fn new() -> io::Result<Runtime> {
        Builder::default().build()
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a handle by which other threads observe the runtime and stop it.
    pub fn handle(&self) -> Handle {
        Handle::of(&self.root)
    }

    /// Returns a snapshot of all live tasks and regions, with the operations they wait for.
    pub fn dump(&self) -> Dump {
        Dump::of(&self.root)
    }

    /// Returns the events recorded so far, if [`Builder::journal`] enabled that. While tasks are
    /// running, events that other threads are writing may be missing.
    ///
    /// ```
    /// let runtime = asx::Runtime::builder().journal(1000).build()?;
    /// runtime.block_on(async |_cx| ());
    /// let journal = runtime.journal().unwrap();
    /// assert!(journal.events.iter().any(|event| event.kind.name() == "task_ended"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn journal(&self) -> Option<Recorded> {
        self.core.recorded()
    }

    /// Returns the metrics of the runtime.
    pub fn metrics(&self) -> Metrics {
        self.handle().metrics()
    }

    /// Checks that nothing is alive; see [`Handle::quiescence`]. A runtime is quiescent after a
    /// successful [`shutdown`](Runtime::shutdown), unless another thread still waits for a timer.
    /// Before that the root region is open.
    ///
    /// # Errors
    /// The failures in the order of the checks, and everything that is alive.
    pub fn quiescence(&self) -> Result<(), QuiescenceError> {
        self.handle().quiescence()
    }

    /// Shuts everything down and waits for it: tasks are notified at once, cancelled after
    /// `grace.soft`, and aborted after a further `grace.hard`. Returns as soon as everything has
    /// completed. No program starts afterwards.
    ///
    /// # Errors
    /// The tasks still alive a second later, whose polls do not return. The runtime also reports
    /// them, once: as an event of `tracing` if that has a subscriber, otherwise on the error
    /// output.
    pub fn shutdown(&self, grace: impl Into<Grace>) -> Result<(), Dump> {
        let grace = grace.into();
        self.handle().stop(grace);
        let signal = Arc::new(CloseSignal::default());
        let waker = Waker::from(signal.clone());
        let place = self.slots.take_worker();
        let limit = grace.soft.saturating_add(grace.hard).saturating_add(EXTRA_SHUTDOWN_TIME);
        let end = Instant::now().checked_add(limit);
        let is_late = || end.is_some_and(|end| Instant::now() >= end);
        let mut closed = self.root.poll_closed(&waker);
        match place {
            // No thread in `block_on` is worker 0: this one runs the tasks.
            Some(worker) => {
                self.shared.idle.join();
                // Tasks pinned to this thread meanwhile have to complete here, even after the
                // limit.
                while !closed && (!is_late() || worker.pins() > 0) {
                    worker.run_for(Duration::from_millis(1));
                    closed = self.root.poll_closed(&waker);
                }
                self.leave(Some(worker), None);
            }
            None => {
                while !closed && !is_late() {
                    signal.wait(end);
                    closed = self.root.poll_closed(&waker);
                }
            }
        }
        if closed {
            return Ok(());
        }
        report_alive(&self.root, &self.core, &self.reported_alive);
        Err(self.dump())
    }
}

/// Reports what is alive after a shutdown, unless it was reported before.
fn report_alive(root: &Region, core: &Core, reported: &AtomicBool) {
    if root.is_closed() || reported.load(Relaxed) {
        return;
    }
    if let Err(alive) = root.quiescence()
        && !reported.swap(true, Relaxed)
    {
        // Subscribers of `tracing` may panic.
        core.contain(|| core.report_not_quiescent(&alive));
    }
}

/// The default limit of cleanup time.
const CLEANUP_TIME: Duration = Duration::from_secs(30);

/// The default limit of a poll after its task was cancelled.
const LONG_POLL: Duration = Duration::from_secs(1);

/// How much longer than its grace period a shutdown waits for polls that do not return.
const EXTRA_SHUTDOWN_TIME: Duration = Duration::from_secs(1);

/// Wakes a thread that waits for the root region to close.
#[derive(Default)]
struct CloseSignal {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl CloseSignal {
    fn wait(&self, end: Option<Instant>) {
        let mut ended = self.ended.lock().unwrap_or_else(|e| e.into_inner());
        while !*ended {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.unwrap_or(Duration::MAX);
            if left.is_zero() {
                return;
            }
            ended = self.changed.wait_timeout(ended, left).unwrap_or_else(|e| e.into_inner()).0;
        }
        *ended = false;
    }
}

impl Wake for CloseSignal {
    fn wake(self: Arc<Self>) {
        *self.ended.lock().unwrap_or_else(|e| e.into_inner()) = true;
        self.changed.notify_all();
    }
}

/// Shuts the runtime down. No program runs at this point, since one would borrow the runtime.
///
/// 1. Workers are notified and end their loops.
/// 2. The worker threads are joined.
/// 3. The threads for blocking jobs are notified and joined, and the one that checks long polls.
/// 4. Queue entries of completed tasks are dropped.
/// 5. Timers and sockets are closed, which wakes everything that still waits for them.
/// 6. The root region closes if nothing lives in it. Otherwise what is alive is reported, unless
///    [`shutdown`](Runtime::shutdown) did that.
///
/// Every step runs even if another one panics. A drop on a thread of this runtime, or of another
/// one that is being dropped, joins no thread: see `owner.rs`. The threads then end soon
/// afterwards. Step 4 and step 5 do not rely on the joins.
impl Drop for Runtime {
    fn drop(&mut self) {
        let Runtime { root, core, shared, threads, end_audit, reported_alive, .. } = self;
        let joins = shared.blocking.owner.mark_dropped();
        // Dropping a handle without a join detaches the thread.
        let end = |thread: JoinHandle<()>| {
            core.contain(|| if joins { drop(thread.join()) } else { drop(thread) });
        };
        shared.closed.store(true, Release);
        shared.idle.shutdown();
        threads.drain(..).for_each(end);
        shared.blocking.close().for_each(end);
        #[cfg(not(any(loom, miri, target_family = "wasm")))]
        shared.monitor.close().into_iter().for_each(end);
        core.contain(|| shared.expire_if_closed());
        core.contain(|| core.abandon_timers(true));
        for waker in shared.reactor.close() {
            core.contain(|| waker.wake());
        }
        core.contain(|| root.end_if_empty());
        core.contain(|| report_alive(root, core, reported_alive));
        if !joins {
            // The audit expects that no thread of the runtime is left.
            let _unchecked = end_audit.take().map(std::mem::ManuallyDrop::new);
        }
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("workers", &self.shared.remotes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use asx_runtime::{Cancelled, Cx, Scope};

    #[test]
    fn late_entries_do_not_keep_a_dropped_runtime_alive() {
        for round in 0..100 {
            let runtime = Runtime::builder().workers(1 + round % 3).build().unwrap();
            let shared = Arc::downgrade(&runtime.shared);
            let result: Result<(), Cancelled> = runtime.block_on(async |cx: Cx| {
                cx.scope(async |s: Scope<Cancelled>| {
                    for _ in 0..20 {
                        let own = s.clone();
                        s.spawn(async move |_cx: Cx| {
                            let local = own.spawn_local(async move |cx: Cx| {
                                cx.yield_now().await;
                                Ok(())
                            });
                            own.spawn_blocking(move || Ok(local.cancel("late")));
                            Ok(())
                        });
                    }
                    Ok(())
                })
                .await
            });
            drop(runtime);
            assert!(shared.upgrade().is_none(), "round {round}: {result:?}");
        }
    }
}
