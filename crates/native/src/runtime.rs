//! The runtime as its owner sees it.

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

/// How a [`Runtime`] is to be.
#[derive(Clone)]
#[must_use = "build it"]
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
    /// How many threads run tasks; as many as there are processors unless set. 0 counts as 1.
    ///
    /// With two or more, each is a thread of the runtime's own. A thread that calls `block_on`
    /// then polls only the body of its program and what was started there with `spawn_local`, so
    /// that no other task can hold it up. With one worker, the first thread in `block_on` is it.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, MAX_WORKERS);
        self
    }

    /// Only threads that call `block_on` run tasks: one at a time, besides what is pinned to the
    /// others.
    pub fn current_thread(self) -> Self {
        self.workers(1)
    }

    /// What the threads are called.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How many threads there may be for blocking jobs; 512 unless set. They are started when they
    /// are needed; when there are that many, jobs wait for one. 0 counts as 1.
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

    /// Records what happens, as [`Runtime::journal`] then tells; of more than `capacity` events the
    /// oldest are forgotten. Off unless set; it costs time at every step, and up to 32 bytes times
    /// `capacity` for each thread.
    pub fn journal(mut self, capacity: usize) -> Self {
        self.settings.journal = Some(Recording::new(capacity, WhenFull::Overwrite));
        self
    }

    /// As [`journal`](Builder::journal), but nothing is forgotten: when `capacity` events have been
    /// recorded, new tasks, regions, timers and channels are refused (`RESOURCE_EXHAUSTED`).
    pub fn whole_journal(mut self, capacity: usize) -> Self {
        self.settings.journal = Some(Recording::new(capacity, WhenFull::Refuse));
        self
    }

    /// What all randomness comes from: [`Cx::random`](asx_runtime::Cx::random), and the workers'
    /// own choices. Another one each time unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Has each worker draw from the [seed](Builder::seed) which of its own ready tasks of the same
    /// priority goes next, instead of the one that has waited longest: for tests of programs that
    /// must not depend on that order.
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

    /// How many tasks that are being cancelled go in a row while other work waits; 16 unless set.
    pub fn cancel_streak_limit(mut self, limit: u32) -> Self {
        self.rules.cancel_streak_limit = limit;
        self
    }

    /// Who advises workers which lane to prefer; [`Adaptive`] unless set. It is asked before every
    /// dispatch, which costs time; the default one only where there is a choice.
    pub fn governor(mut self, governor: impl Governor) -> Self {
        self.rules.governor = Some(Arc::new(governor));
        self.rules.governs_all = true;
        self
    }

    /// How many of each thing there may be at once; any number unless set. What is refused for that
    /// says `RESOURCE_EXHAUSTED`. Timers have [a limit of their own](Builder::max_timers).
    ///
    /// [`Limits::cancel_queue`] applies to [`Task::try_cancel`](asx_runtime::Task::try_cancel) and
    /// [`Task::cancel`](asx_runtime::Task::cancel). Cancels by scopes, timeouts, deadlines, failed
    /// siblings and shutdown are never refused.
    ///
    /// [`Limits::memory`] bounds an estimate that is the same on every host, not what the allocator
    /// gives: 256 bytes for a task or region that lives, 64 for an obligation or an armed timer,
    /// and for a channel [of a scope](asx_runtime::channel::ChannelExt::channel) 256 and 64 for
    /// each slot.
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

    /// Sets how long the chain of causes of a cancel may get: the number of links (16 by default)
    /// and their size in bytes (4096 by default), where a link costs 88 bytes and its message. Both
    /// count the reason itself, which is always kept. The chain of a reason beyond a limit is cut
    /// off at the far end, and the last link that is kept says so
    /// ([`Reason::truncated`](asx_kernel::cancel::Reason::truncated)).
    pub fn cancel_chain(mut self, depth: usize, bytes: usize) -> Self {
        self.settings.chain = ChainLimits { depth, bytes };
        self
    }

    /// How many sleeps, timeouts and ticks may wait at once; any number unless set. One more fails:
    /// a task that waits for it is cancelled (`ResourceUnavailable`), and
    /// [`Cx::try_sleep`](asx_runtime::Cx::try_sleep) answers `RESOURCE_EXHAUSTED`.
    pub fn max_timers(mut self, timers: usize) -> Self {
        self.settings.wheel.limit = timers;
        self
    }

    /// Has timers that are nearly due fire together, early, so that a worker gets up for all of
    /// them; off unless set. When at least `min_group_size` timers are due before the next multiple
    /// of `window`, all of them fire. A window of zero is off.
    pub fn coalesce_timers(mut self, window: Duration, min_group_size: usize) -> Self {
        let coalesce = (!window.is_zero()).then_some(Coalesce { window, min_group_size });
        self.settings.wheel.coalesce = coalesce;
        self
    }

    /// How many polls a task may take for its cleanup once it has seen that it is cancelled, and a
    /// finalizer in all; `u32::MAX` for any number. Unless set that depends on the
    /// [kind](asx_kernel::cancel::Kind) of the cancel: from 1000 for `User` to 50 for `Shutdown`. 0
    /// counts as 1. A scope may set its own
    /// ([`ScopeBuilder::cleanup_polls`](asx_runtime::ScopeBuilder::cleanup_polls)), and a cancel
    /// too ([`Why::cleanup_polls`](asx_runtime::Why::cleanup_polls)).
    ///
    /// A time that was stated with the cancel ([`Grace::hard`],
    /// [`Why::cleanup_time`](asx_runtime::Why::cleanup_time)) takes the place of any number of
    /// polls: nothing is ended by force before it is over.
    pub fn cleanup_polls(mut self, polls: u32) -> Self {
        self.cleanup_polls = Some(polls.max(1));
        self
    }

    /// How long cleanup may take: of a task once it has seen that it is cancelled, of each
    /// finalizer, and of a [shield](asx_runtime::Cx::shield) that hides a cancel. 30 seconds unless
    /// set, `None` for ever. What happens then is said at
    /// [`ScopeBuilder::cleanup_time`](asx_runtime::ScopeBuilder::cleanup_time), by which a scope
    /// may set its own; a cancel and a shield may, too
    /// ([`Why::cleanup_time`](asx_runtime::Why::cleanup_time),
    /// [`Cx::shield_for`](asx_runtime::Cx::shield_for)).
    ///
    /// A time that is set takes the place of polls, unless [these](Builder::cleanup_polls) are set
    /// as well.
    pub fn cleanup_time(mut self, time: Option<Duration>) -> Self {
        self.cleanup_time = Some(time);
        self
    }

    /// How many polls a task may take from when it is asked to stop to where it sees that; 1000
    /// unless set, `None` or more than 65 533 for any number. A task that takes more is counted
    /// ([`Health::unheeded_cancels`](asx_runtime::Health::unheeded_cancels)) and told of by
    /// `tracing`, once. The task continues. A poll that does not return is found by
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
    /// The report comes while the poll is running, from a thread that runs no tasks. The thread
    /// exists only while a cancelled task that has not observed its cancel is being polled, and for
    /// up to this time afterwards. A runtime without cancels never starts it.
    ///
    /// ```
    /// use asx::{Cancelled, Cx, Runtime, Scope};
    /// use std::time::Duration;
    ///
    /// let limit = Duration::from_millis(5);
    /// let runtime = Runtime::builder().workers(1).long_poll(Some(limit)).build()?;
    /// let _ = runtime.block_on(async |cx: Cx| {
    ///     cx.scope(async |s: Scope<Cancelled>| {
    ///         let busy = s.task("busy").spawn(async move |_cx: Cx| {
    ///             std::thread::sleep(3 * limit); // a loop that does not look
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

    /// Has programs fail whose cancels are unheeded, for tests: once everything has ended,
    /// [`block_on`](Runtime::block_on) panics instead of giving its value, and names the first task
    /// that took more polls than [it may](Builder::cancel_latency) or a
    /// [longer poll](Builder::long_poll). Of several programs at a time,
    /// the first that ends is told.
    pub fn deny_unheeded_cancels(mut self) -> Self {
        self.denies_unheeded = true;
        self
    }

    /// What is set, with what counts where nothing is.
    fn settings(&self) -> Settings {
        let any = self.cleanup_time.flatten().map(|_| u32::MAX);
        Settings {
            cleanup_polls: self.cleanup_polls.or(any).unwrap_or(0),
            cleanup_time: self.cleanup_time.unwrap_or(Some(CLEANUP_TIME)),
            ..self.settings.clone()
        }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// The error of the system if a thread cannot be started. `InvalidInput` with a [`BuildError`]
    /// inside if settings contradict each other.
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
        #[cfg(not(any(loom, miri)))]
        shared.monitor.watch(&core);
        let mut workers = queues
            .into_iter()
            .zip(0..)
            .map(|(queue, index)| Worker::new(index, shared.clone(), core.clone(), queue));
        // See decision 036: the body of a program cannot leave its thread, so where another worker
        // can run a task, that thread takes none.
        let first = if self.workers == 1 { workers.next().map(Box::new) } else { None };
        let mut runtime = Runtime {
            root: core.root(),
            core: core.clone(),
            places: BlockOnSlots::new(shared.clone(), first),
            threads: Vec::new(),
            shared: shared.clone(),
            denies_unheeded: self.denies_unheeded,
            reported_alive: AtomicBool::new(false),
            end_audit: Some(core.audit_end()),
        };
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

/// Settings of a [`Builder`] that do not make a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The name of the threads contains a zero byte.
    ThreadName,
    /// [`task_key_order`](Builder::task_key_order) with several workers.
    TaskKeyOrder {
        /// How many workers were set.
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
    /// For the threads that call `block_on`.
    pub(crate) places: BlockOnSlots,
    threads: Vec<JoinHandle<()>>,
    pub(crate) shared: Arc<Shared>,
    /// Whether programs fail whose cancels are unheeded.
    pub(crate) denies_unheeded: bool,
    /// Whether what is alive after a shutdown was reported.
    reported_alive: AtomicBool,
    /// Checks in an audit build which references are left. Dropped last.
    end_audit: Option<End>,
}

impl Runtime {
    /// A runtime with a worker per processor.
    pub fn new() -> io::Result<Runtime> {
        Builder::default().build()
    }

    /// Sets a runtime up.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What other threads need to look at the runtime and to stop it.
    pub fn handle(&self) -> Handle {
        Handle::of(&self.root)
    }

    /// What lives, where, and what it waits for.
    pub fn dump(&self) -> Dump {
        Dump::of(&self.root)
    }

    /// What was recorded so far, if [`Builder::journal`] asked for it. While tasks run it may lack
    /// what threads are writing just then.
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

    /// What the runtime has done so far.
    pub fn metrics(&self) -> Metrics {
        self.handle().metrics()
    }

    /// Checks whether nothing is alive; see [`Handle::quiescence`]. A runtime is quiescent after a
    /// [`shutdown`](Runtime::shutdown) that succeeded, unless another thread still waits for a
    /// timer. Before that the root region is open.
    ///
    /// # Errors
    /// The failures in the order of the check, and everything that is alive.
    pub fn quiescence(&self) -> Result<(), QuiescenceError> {
        self.handle().quiescence()
    }

    /// Stops everything gently and waits for it: told now, cancelled after `grace.soft`, ended by
    /// force after `grace.hard` more. It waits no longer than something lives. No program starts
    /// afterwards.
    ///
    /// # Errors
    /// What still lives a second after that: tasks whose polls do not return. The runtime also
    /// reports it, once: as an event of `tracing` if that has a subscriber, else on the error
    /// output.
    pub fn shutdown(&self, grace: impl Into<Grace>) -> Result<(), Dump> {
        let grace = grace.into();
        self.handle().stop(grace);
        let signal = Arc::new(Ended::default());
        let waker = Waker::from(signal.clone());
        let place = self.places.take_free();
        let patience = grace.soft.saturating_add(grace.hard).saturating_add(STUCK);
        let end = Instant::now().checked_add(patience);
        let late = || end.is_some_and(|end| Instant::now() >= end);
        let mut closed = self.root.poll_closed(&waker);
        match place {
            // No thread in `block_on` is worker 0: this one drives.
            Some(worker) => {
                self.shared.idle.join();
                // What was pinned to this thread meanwhile ends here, whatever else does not.
                while !closed && (!late() || worker.pins() > 0) {
                    worker.run_for(Duration::from_millis(1));
                    closed = self.root.poll_closed(&waker);
                }
                self.leave(Some(worker), None);
            }
            None => {
                while !closed && !late() {
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

/// Reports what is alive after a shutdown, if anything is and it was not reported before.
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

/// How long a shield hides a cancel unless set.
const CLEANUP_TIME: Duration = Duration::from_secs(30);

/// How long a poll may take after its task was cancelled, unless set.
const LONG_POLL: Duration = Duration::from_secs(1);

/// Beyond its grace, how long a shutdown waits for polls that do not return.
const STUCK: Duration = Duration::from_secs(1);

/// Wakes a thread that waits for the end.
#[derive(Default)]
struct Ended {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Ended {
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

impl Wake for Ended {
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
        #[cfg(not(any(loom, miri)))]
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
    fn entries_that_come_late_keep_nothing() {
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
