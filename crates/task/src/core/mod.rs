//! What all tasks of one runtime share, and the seam to its host.

pub(crate) mod alarm;
mod callbacks;
pub(crate) mod coarse;
mod journal;
pub(crate) mod latency;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
pub(crate) mod limits;
#[cfg(not(any(loom, target_family = "wasm")))]
pub(crate) mod long_poll;
pub(crate) mod metrics;
mod report;
pub(crate) mod timer_token;
pub(crate) mod timers;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::task::Waker;
use std::time::Duration;

use asx_journal::Recording;
use asx_kernel::cancel::ChainLimits;
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::Lane;
use asx_kernel::rng::mix64;
use asx_kernel::time::Time;
use asx_kernel::wheel::WheelConfig;

use crate::inline_map::InlineMap;
use crate::prim::{Mutex, lock_unseen};
use crate::raw::audit::{End, Registry, Seal};
use crate::raw::contain_panic::PanicCounter;
use crate::raw::{Runnable, TaskRef};
use coarse::Coarse;
use latency::Latency;
use limits::{Limits, Quota};
use metrics::Metrics;
#[cfg(not(loom))]
use report::Reports;
use timer_token::TimerToken;
use timers::Timers;

/// Where and when things run: threads, queues, the clock.
///
/// # Safety
/// Memory safety rests on what a host does with tasks that need not be `Send`:
/// 1. [`here`](Host::here) answers a worker's number only on the thread that is this worker, and as
///    long as a task pinned to it lives no other thread becomes that worker.
/// 2. [`unschedule`](Host::unschedule) answers an entry of the task with this number that it was
///    given and has neither run nor given up.
pub unsafe trait Host: Send + Sync + 'static {
    /// Puts a runnable task into a queue.
    fn schedule(&self, entry: Runnable);

    /// Puts several into queues, in order.
    fn schedule_all(&self, entries: Vec<Runnable>) {
        entries.into_iter().for_each(|entry| self.schedule(entry));
    }

    /// Puts a runnable task into a queue all workers share, whoever asks.
    fn schedule_globally(&self, entry: Runnable) {
        self.schedule(entry);
    }

    /// Puts a task into a queue that was woken during the poll that has just ended, mostly by
    /// itself: it waits only for its next turn.
    fn schedule_again(&self, entry: Runnable) {
        self.schedule(entry);
    }

    /// The time.
    fn now(&self) -> Time;

    /// Whether the time passes by itself, and not only when somebody sets it.
    fn time_passes(&self) -> bool {
        false
    }

    /// A timer was registered that is earlier than all others.
    fn timer_moved(&self, deadline: Time);

    /// Whether somebody looks at the timers. If not, nobody can wait for one: this is asked for
    /// contexts of tasks that have ended, as while one lives somebody does.
    fn drives_timers(&self) -> bool {
        true
    }

    /// A task was refused a timer because the host [denies](Core::deny_time) the clock or the
    /// timer: for the host's record. `site` names the caller.
    fn deny_wait(&self, _site: &'static str) {}

    /// Does something to a task that is not that task's doing: what becomes runnable is nobody's
    /// own work.
    fn on_behalf(&self, f: &mut dyn FnMut()) {
        f();
    }

    /// Takes the entry of a task out of its queue, if the host can find it.
    fn unschedule(&self, _task: u64) -> Option<Runnable> {
        None
    }

    /// So many entries of this lane are dead from now on (a negative number: fewer): their tasks
    /// were given others by a cancel, or have ended. A host that leaves dead entries in its queues
    /// lets them pass without a turn, and does not count them as queued.
    fn dead_entries(&self, _lane: Lane, _more: isize) {}

    /// How many entries wait in a lane, in all queues.
    fn queued(&self, _lane: Lane) -> usize {
        0
    }

    /// The worker the calling thread is, if it is one of this host.
    fn here(&self) -> Option<u16>;

    /// Whether a task may be pinned to this worker: there is one of that number.
    fn has_worker(&self, _worker: u16) -> bool {
        true
    }

    /// A task pinned to this worker, which the calling thread is, begins to live, or has ended: the
    /// thread stays the worker for as long as one lives.
    fn pinned(&self, _worker: u16, _lives: bool) {}

    /// A random number: of the host's seed, if it has one.
    fn entropy(&self) -> u64 {
        mix64(self.now().as_nanos())
    }

    /// A random choice among `count >= 2`. A host that explores opens it.
    fn choose(&self, count: u64) -> u64 {
        // The high bits of a product: as good as even for any count that matters.
        ((u128::from(self.entropy()) * u128::from(count)) >> 64) as u64
    }

    /// A task was woken that needs no entry, as it has one or is being polled. Only with the
    /// feature `lab`.
    #[cfg(feature = "lab")]
    fn rewoken(&self) {}

    /// A task of this host is polled here, and is before or after an operation: others may be
    /// polled before this returns. Only with the feature `lab`, and if [points are
    /// set](crate::pausing::set_points).
    #[cfg(feature = "lab")]
    fn pause(&self) {}

    /// Whether something goes wrong here that a program has a name for. A host that explores opens
    /// it; with all others nothing does.
    fn fault(&self, _name: &'static str) -> bool {
        false
    }

    /// The network, if tasks of this host have one.
    #[cfg(not(target_family = "wasm"))]
    fn net(&self) -> Option<&dyn crate::net::Net> {
        None
    }

    /// The thread that checks polls which do not return, if this host has one. Without it,
    /// [`Settings::long_poll`] has no effect.
    #[cfg(not(any(loom, target_family = "wasm")))]
    fn poll_monitor(&self) -> Option<&dyn long_poll::PollMonitor> {
        None
    }

    /// Whether [`report`](Host::report) has a reader. Where it has none, nothing is put in words.
    fn has_reports(&self) -> bool {
        false
    }

    /// Tells whoever runs the program a line that `tracing` does not hear of, as it has no
    /// subscriber: once for each cause.
    fn report(&self, _line: &str) {}

    /// What the workers have done so far, if the host has workers that count.
    fn metrics(&self) -> Option<Metrics> {
        None
    }

    /// Whether the programs of a runtime stop together: a [`Handle`](crate::Handle) stops them all,
    /// and not only the one it was taken in.
    fn stops_whole(&self) -> bool {
        false
    }

    /// Runs an entry on a thread where it may block; gives it back if there is none to be had.
    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable>;
}

/// What went wrong in tasks without anybody having to notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Wakes of tasks that were over.
    pub stale_wakes: u64,
    /// Cleanup that took more than it was allowed: tasks ended by force, and shields that hid a
    /// cancel for too long.
    pub overruns: u64,
    /// Panics nobody was told of: in the destructors of results nobody wanted, in finalizers after
    /// the first that panicked, or of a scope whose future was dropped.
    pub lost_panics: u64,
    /// Panics of callbacks that belong to the outcome of no task that ran: wakers, destructors of
    /// what the runtime drops outside of a poll (futures of tasks that were refused among them),
    /// governors, subscribers of `tracing`. Each was contained where it happened.
    pub callback_panics: u64,
    /// Calls of [`Task::cancel`](crate::Task::cancel) that
    /// [`Limits::cancel_queue`](crate::Limits::cancel_queue) refused.
    pub refused_cancels: u64,
    /// Tasks that were asked to stop and did not look for more polls than
    /// [they may take](Settings::cancel_latency). Each is counted once. In a page on wasm they are
    /// not counted.
    pub unheeded_cancels: u64,
    /// Tasks that were cancelled and stayed inside one poll for longer than
    /// [allowed](Settings::long_poll) without observing it. Each is counted once.
    pub long_polls: u64,
    /// Timeouts that were over for a second without anything inside having looked for a cancel:
    /// mostly around futures of other crates, for which there is
    /// [`Cx::abandon_on_cancel`](crate::Cx::abandon_on_cancel). Each is counted once. In a page on
    /// wasm they are not counted.
    pub unheeded_timeouts: u64,
    /// Obligations that leaked: their scope closed before they were committed or aborted. A tracked
    /// permit (`channel::session`) that was dropped unresolved counts too, if a task reserved or
    /// dropped it.
    pub leaked_obligations: u64,
}

/// What a host decides for its tasks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The operation budget: the number of operations that a task may complete in one poll without
    /// waiting before it yields. A socket operation counts as eight; `u32::MAX` is no limit.
    pub operations: u32,
    /// Whether events are recorded, how many are retained, and what happens beyond that.
    pub journal: Option<Recording>,
    /// How far away timers may be (7 days unless set), and how many there may be.
    pub wheel: WheelConfig,
    /// How long chains of causes may get.
    pub chain: ChainLimits,
    /// How many polls of cleanup a cancel allows; 0: as its kind says, `u32::MAX`: any number.
    pub cleanup_polls: u32,
    /// How long cleanup may take, and a shield hides a cancel; `None`: for ever.
    pub cleanup_time: Option<Duration>,
    /// How many polls a task may take from when it is asked to stop to where it sees that, before
    /// it counts as [unheeding](Health::unheeded_cancels); `None`, or more than 65 533: any number.
    pub cancel_latency: Option<u16>,
    /// How long a poll may take after its task was cancelled, if it does not observe that, before
    /// it counts as [too long](Health::long_polls); `None`: any time. In a page on wasm polls are
    /// not timed.
    pub long_poll: Option<Duration>,
    /// How many of each thing there may be; `None`: any number, and nothing is counted.
    pub limits: Option<Limits>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            operations: 128,
            journal: None,
            wheel: WheelConfig::default(),
            chain: ChainLimits::default(),
            cleanup_polls: 0,
            cleanup_time: None,
            cancel_latency: Some(1000),
            long_poll: None,
            limits: None,
        }
    }
}

/// The shared part of a runtime.
pub struct Core {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) recorder: Option<asx_journal::Recorder>,
    pub(crate) timers: Timers<TimerToken>,
    /// When budgets and graces run out: no timers of anybody's, so that they count for no limit.
    pub(crate) alarms: Timers<TimerToken>,
    /// How many operations a poll may do before it lets others run; `u32::MAX`: any number.
    pub(crate) operations: u32,
    /// The time, for dumps.
    pub(crate) coarse: Coarse,
    /// Those who wait for a soft stop.
    stop_waiters: Mutex<InlineMap<Waker>>,
    /// Tasks, regions and other things are numbered from 1, each kind on its own.
    next_task: AtomicU64,
    next_region: AtomicU64,
    pub(crate) next_channel: AtomicU64,
    #[cfg(not(any(loom, target_family = "wasm")))]
    pub(crate) next_socket: AtomicU64,
    pub(crate) next_permit: AtomicU64,
    pub(crate) next_obligation: AtomicU64,
    /// Counts those who ask for something, so that they keep their order.
    next_place: AtomicU64,
    pub(crate) chain: ChainLimits,
    pub(crate) cleanup_polls: u32,
    pub(crate) cleanup_time: Option<Duration>,
    pub(crate) quota: Option<Quota>,
    stale_wakes: AtomicU64,
    overruns: AtomicU64,
    lost_panics: AtomicU64,
    leaked_obligations: AtomicU64,
    refused_cancels: AtomicU64,
    /// Panics of callbacks. Shared with spans, whose subscriber is user code.
    pub(crate) panics: Arc<PanicCounter>,
    pub(crate) latency: Latency,
    #[cfg(not(any(loom, target_family = "wasm")))]
    long_polls: long_poll::LongPolls,
    #[cfg(not(loom))]
    reports: Reports,
    /// Regions that were cancelled and are not closed, and what is outstanding in them.
    closing_regions: AtomicUsize,
    closing_obligations: AtomicUsize,
    pub(crate) registry: Registry,
    /// After all else, in an audit.
    pub(crate) seal: Seal<Core>,
}

/// Timers of forgotten futures are still armed, maybe with wakers of the user's.
#[cfg(not(any(loom, target_family = "wasm")))]
impl Drop for Core {
    fn drop(&mut self) {
        // One by one: two panics in one drop would abort.
        for timers in [&self.timers, &self.alarms] {
            timers.close().into_iter().for_each(|left| left.token.discard(self));
        }
        self.registry.close();
    }
}

impl Core {
    /// The shared part over a host.
    pub fn new(host: Arc<dyn Host>, settings: Settings) -> Arc<Core> {
        let now = host.now();
        let passes = host.time_passes();
        #[cfg(not(any(loom, target_family = "wasm")))]
        let long_poll = settings.long_poll.filter(|_| host.poll_monitor().is_some());
        // Deadlines and graces may be any time away.
        let endless = WheelConfig { max_timer_duration: Duration::MAX, ..WheelConfig::default() };
        let first = || AtomicU64::new(1);
        let core = Arc::new(Core {
            host,
            recorder: settings.journal.map(|journal| journal.recorder(passes)),
            timers: Timers::new(now, settings.wheel),
            alarms: Timers::new(now, endless),
            operations: settings.operations,
            coarse: Coarse::new(now),
            stop_waiters: Mutex::default(),
            next_task: first(),
            next_region: first(),
            next_channel: first(),
            #[cfg(not(any(loom, target_family = "wasm")))]
            next_socket: first(),
            next_permit: first(),
            next_obligation: first(),
            next_place: first(),
            chain: settings.chain,
            cleanup_polls: settings.cleanup_polls,
            cleanup_time: settings.cleanup_time,
            quota: settings.limits.map(Quota::new),
            stale_wakes: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            lost_panics: AtomicU64::new(0),
            leaked_obligations: AtomicU64::new(0),
            refused_cancels: AtomicU64::new(0),
            panics: Arc::default(),
            latency: Latency::new(settings.cancel_latency),
            #[cfg(not(any(loom, target_family = "wasm")))]
            long_polls: long_poll::LongPolls::new(long_poll),
            #[cfg(not(loom))]
            reports: Reports::default(),
            closing_regions: AtomicUsize::new(0),
            closing_obligations: AtomicUsize::new(0),
            registry: Registry::open(),
            seal: Seal::open(),
        });
        core.seal.set(&core, "core", 0, &core.registry);
        core
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.host.now()
    }

    /// What time it is, for whom an old time will do: a host says so after each sleep, and from
    /// time to time while it polls. Looking at timers does the same.
    #[inline]
    pub fn note_time(&self, now: Time) {
        self.coarse.set(now);
    }

    /// To be dropped when no thread of the host runs a task any more, and its queues are gone.
    #[doc(hidden)]
    pub fn audit_end(&self) -> End {
        End(self.registry.clone())
    }

    /// The worker the calling thread is, if it is one.
    pub fn here(&self) -> Option<u16> {
        self.host.here()
    }

    /// Wakes the tasks whose timers are due, and cancels those whose time is up.
    ///
    /// Timers first, then deadlines, then what was told to stop; each in the order of its time,
    /// deadlines at the same instant in the order of their tasks. Answers how many timers fired.
    pub fn fire_timers(&self, now: Time) -> usize {
        self.fire_some(now, usize::MAX)
    }

    /// The same, with at most so many timers; what else is due stays so.
    pub fn fire_some(&self, now: Time, most: usize) -> usize {
        self.note_time(now);
        let fired = self.fire(now, most);
        // One may lead to another that is due at once.
        while self.alarms.next().is_some_and(|next| next <= now) {
            self.ring_alarms(now);
        }
        fired
    }

    /// When [`fire_timers`](Core::fire_timers) has something to do next.
    pub fn next_timer(&self) -> Option<Time> {
        match (self.timers.next(), self.alarms.next()) {
            (Some(timer), Some(alarm)) => Some(timer.min(alarm)),
            (timer, alarm) => timer.or(alarm),
        }
    }

    /// [`next_timer`](Core::next_timer), exactly: that may be too early after a cancel.
    pub fn next_wake(&self) -> Option<Time> {
        let timer = self.timers.with_wheel(|wheel| wheel?.next_deadline());
        let alarm = self.alarms.with_wheel(|wheel| wheel?.next_deadline());
        timer.into_iter().chain(alarm).min()
    }

    /// The first deadline after `now` at which a task is ended by force, or reported because it
    /// takes too long to stop: grace periods, cleanup times, shields and unheeded timeouts.
    #[cfg(feature = "lab")]
    pub fn next_enforcement(&self, now: Time) -> Option<Time> {
        self.alarms.with_wheel(|wheel| {
            let armed = wheel?.iter().filter(|(deadline, _)| now < *deadline);
            armed.filter(|(_, token)| token.enforces()).map(|(deadline, _)| deadline).min()
        })
    }

    /// Brings the timers up to a time, and fires none.
    pub fn advance_timers(&self, now: Time) {
        self.note_time(now);
        self.timers.advance(now);
        self.alarms.advance(now);
    }

    pub(crate) fn next_task(&self) -> u64 {
        self.next_task.fetch_add(1, Relaxed)
    }

    /// Numbers and times begin anew, as for a first program.
    ///
    /// # Safety
    /// No task of this core lives: a host finds entries by the numbers of their tasks.
    #[cfg(feature = "lab")]
    #[inline]
    pub unsafe fn renumber(&self) {
        for kind in [
            &self.next_task,
            &self.next_channel,
            #[cfg(not(any(loom, target_family = "wasm")))]
            &self.next_socket,
            &self.next_permit,
            &self.next_obligation,
            &self.next_place,
        ] {
            kind.store(1, Relaxed);
        }
        // The root stays.
        self.next_region.store(2, Relaxed);
        self.timers.restart();
        self.alarms.restart();
    }

    pub(crate) fn tasks_made(&self) -> u64 {
        self.next_task.load(Relaxed) - 1
    }

    pub(crate) fn next_region(&self) -> u64 {
        self.next_region.fetch_add(1, Relaxed)
    }

    pub(crate) fn next_place(&self) -> u64 {
        self.next_place.fetch_add(1, Relaxed)
    }

    /// How many timers are armed: sleeps, timeouts, and what the runtime itself waits for.
    #[inline]
    pub fn live_timers(&self) -> usize {
        self.timers.len() + self.alarms.len()
    }

    /// Has `waker` woken at the next soft stop anywhere; `place` is where it is noted.
    pub(crate) fn watch_stop(&self, place: &mut Option<u64>, waker: &Waker) {
        let place = *place.get_or_insert_with(|| self.next_place());
        // Cloned and dropped outside the lock.
        let waker = waker.clone();
        let old = lock_unseen(&self.stop_waiters).insert(place, waker);
        self.drop_waker(old);
    }

    pub(crate) fn forget_stop(&self, place: u64) {
        let waker = lock_unseen(&self.stop_waiters).remove(place);
        self.drop_waker(waker);
    }

    pub(crate) fn wake_stopping(&self) {
        let waiters = std::mem::take(&mut *lock_unseen(&self.stop_waiters));
        waiters.take_each(|waker| self.wake(waker));
    }

    /// How many regions were cancelled and are not closed yet.
    pub fn closing_regions(&self) -> usize {
        self.closing_regions.load(Relaxed)
    }

    /// How many obligations are outstanding in regions that were cancelled.
    pub fn closing_obligations(&self) -> usize {
        self.closing_obligations.load(Relaxed)
    }

    /// A region is cancelled for the first time, with so many obligations outstanding.
    pub(crate) fn region_closing(&self, outstanding: usize) {
        self.closing_regions.fetch_add(1, Relaxed);
        self.closing_obligations.fetch_add(outstanding, Relaxed);
    }

    /// A region that was cancelled is closed.
    pub(crate) fn closing_done(&self) {
        self.closing_regions.fetch_sub(1, Relaxed);
    }

    /// An obligation was resolved, or leaked, in a region that was cancelled.
    pub(crate) fn closing_obligation_done(&self) {
        self.closing_obligations.fetch_sub(1, Relaxed);
    }

    #[inline]
    pub(crate) fn health(&self) -> Health {
        Health {
            stale_wakes: self.stale_wakes.load(Relaxed),
            overruns: self.overruns.load(Relaxed),
            lost_panics: self.lost_panics.load(Relaxed),
            callback_panics: self.panics.count(),
            refused_cancels: self.refused_cancels.load(Relaxed),
            unheeded_cancels: self.latency.count(),
            #[cfg(not(any(loom, target_family = "wasm")))]
            long_polls: self.long_polls.count(),
            #[cfg(any(loom, target_family = "wasm"))]
            long_polls: 0,
            unheeded_timeouts: self.latency.timeouts(),
            leaked_obligations: self.leaked_obligations.load(Relaxed),
        }
    }

    /// An obligation or a tracked permit has leaked.
    pub(crate) fn obligation_leaked(&self) {
        self.leaked_obligations.fetch_add(1, Relaxed);
    }

    /// A waker outlived its task.
    pub(crate) fn stale_wake(&self, task: &TaskRef) {
        self.stale_wakes.fetch_add(1, Relaxed);
        task.tell(EventKind::StaleWake {});
    }

    /// Records that a task has used up its cleanup allowance after `polls` polls. `is_counted`:
    /// its cleanup time was over before, and was reported then.
    pub(crate) fn overrun(&self, task: &TaskRef, polls: u64, is_counted: bool) {
        if !is_counted {
            self.count_overrun(task);
        }
        task.tell(EventKind::CleanupOverrun { polls });
        task.span.overrun(polls);
        self.report_overrun(task);
    }

    fn count_overrun(&self, task: &TaskRef) {
        self.overruns.fetch_add(1, Relaxed);
        crate::wait_list::overran(task.id(), task.wait().map(|(_, at)| at));
    }

    /// A shield has hidden a cancel for as long as it may.
    #[cold]
    pub(crate) fn shield_overrun(&self, task: &TaskRef) {
        self.count_overrun(task);
        task.tell(EventKind::GraceExpired {});
        task.span.shield_overrun();
        self.report_shield(task);
    }

    /// Cleanup of a task has taken as long as it may.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn time_overrun(&self, task: &TaskRef) {
        self.count_overrun(task);
        task.tell(EventKind::GraceExpired {});
        task.span.time_overrun();
        self.report_overrun(task);
    }

    /// There was a panic that nobody is told of.
    pub(crate) fn lost_panic(&self) {
        self.lost_panics.fetch_add(1, Relaxed);
        self.report_lost_panic();
    }

    /// A limit refused a cancel by a handle.
    #[cold]
    pub(crate) fn cancel_refused(&self) {
        self.refused_cancels.fetch_add(1, Relaxed);
    }

    /// The future of a task that was refused has panicked when it was dropped.
    pub(crate) fn refused_panicked(&self) {
        self.panics.add(1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::test_util::loose_region;

    /// Panics when it is dropped.
    struct Bomb(Arc<AtomicU64>);

    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
            panic!("a bomb");
        }
    }

    impl std::task::Wake for Bomb {
        fn wake(self: Arc<Self>) {}
    }

    /// What is still armed when a core goes is dropped one by one: two panics at once would abort.
    #[test]
    fn timers_that_are_left_are_dropped_one_by_one() {
        let blown = Arc::new(AtomicU64::new(0));
        let region = loose_region();
        let core = &region.core;
        for n in 0..3 {
            let waker = || Waker::from(Arc::new(Bomb(blown.clone())));
            let alarm = TimerToken::alarm(alarm::Alarm::Wake(waker()));
            core.alarms.register(&*core.host, Time::from_nanos(n), alarm).unwrap();
            let timer = TimerToken::boxed(timer_token::TimerOwner::Task(1), Some(waker()));
            core.timers.register(&*core.host, Time::from_nanos(n), timer).unwrap();
        }
        drop(region);
        assert_eq!(blown.load(Relaxed), 6);
    }
}
