//! The state shared by all threads of a runtime: global lanes, and the public part of each worker.

use std::io::{self, Write as _};
use std::sync::{Arc, OnceLock};

use asx_kernel::lanes::{Lane, Pending, SchedulerConfig, Suggestion, TieBreak};
use asx_kernel::rng::mix64;
use asx_kernel::time::Time;
use asx_runtime::{Core, Health, Host, Metrics, Runnable, Settings, WorkerMetrics};

use crate::blocking::Pool;
use crate::clock::Clock;
use crate::governor::{Governor, View};
use crate::guest::{BlockOnSlot, GUESTS, Guest};
use crate::idle::Idle;
use crate::lanes::SharedLanes;
use crate::metrics::Counters;
use crate::parker::Interrupt;
#[cfg(not(any(loom, miri, target_family = "wasm")))]
use crate::poll_monitor::PollMonitor;
use crate::prim::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use crate::prim::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, fence};
use crate::queue;
use crate::reactor::Reactor;
use crate::worker::{LATE, Worker};

pub(crate) struct Shared {
    pub(crate) idle: Idle,
    pub(crate) global: SharedLanes,
    pub(crate) remotes: Box<[Arc<Remote>]>,
    pub(crate) closed: AtomicBool,
    pub(crate) blocking: Arc<Pool>,
    #[cfg(not(any(loom, miri, target_family = "wasm")))]
    pub(crate) monitor: Arc<PollMonitor>,
    pub(crate) reactor: Arc<Reactor>,
    pub(crate) rules: Rules,
    /// The slots of guests, each created when it is first taken.
    pub(crate) guest_slots: Box<[OnceLock<Box<BlockOnSlot>>]>,
    /// When a worker wakes by itself to check the timers, at the latest: one that sleeps until
    /// woken, and one that sleeps until the next timer. In nanoseconds; `u64::MAX` for none.
    pub(crate) backstops: [AtomicU64; 2],
    clock: Clock,
    /// The number of random numbers drawn by threads that are no workers.
    drawn: AtomicU64,
    /// The number of dead entries in the queues, by lane.
    dead: [AtomicIsize; 3],
    /// The number of threads in `block_on`. If there is none and no other worker, the timers are
    /// not checked.
    pub(crate) programs: AtomicUsize,
}

/// The settings by which workers choose.
#[derive(Clone)]
pub(crate) struct Rules {
    /// The limit of consecutive cancel dispatches while other work waits.
    pub(crate) cancel_streak_limit: u32,
    /// The order of equal entries in a worker's own ready lane. The order by task key requires a
    /// single worker and then applies to every lane.
    pub(crate) tie_break: TieBreak,
    /// The seed of the workers' random numbers.
    pub(crate) seed: u64,
    pub(crate) governor: Option<Arc<dyn Governor>>,
    /// The governor is called before every dispatch, even if there is no choice.
    pub(crate) governs_all: bool,
}

impl Default for Rules {
    fn default() -> Self {
        let law = SchedulerConfig::default();
        Rules {
            cancel_streak_limit: law.cancel_streak_limit,
            tie_break: law.tie_break,
            seed: 0,
            governor: None,
            governs_all: false,
        }
    }
}

/// The part of a worker that other threads see.
pub(crate) struct Remote {
    /// Ready entries at the default priority.
    pub(crate) queue: queue::Shared,
    /// All other entries, and those that other threads sent to this worker.
    pub(crate) lanes: SharedLanes,
    /// Its metrics.
    pub(crate) counters: Counters,
    /// The number of live tasks pinned to it.
    pub(crate) pins: AtomicUsize,
    /// The number of waiting ready entries at the default priority that are pinned to it.
    pub(crate) pinned: AtomicUsize,
}

impl Remote {
    pub(crate) fn new(queue: queue::Shared) -> Arc<Remote> {
        let lanes = SharedLanes::default();
        let counters = Counters::default();
        let [pins, pinned] = [(); 2].map(|()| AtomicUsize::new(0));
        Arc::new(Remote { queue, lanes, counters, pins, pinned })
    }
}

impl Remote {
    /// Returns the number of entries that other workers may take.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.lanes.stealable()
    }
}

/// Calls the governor. A panic counts as no preference and does not end the worker.
fn advice(governor: &dyn Governor, core: &Core, view: View) -> Suggestion {
    core.contain(|| governor.suggest(view)).unwrap_or(Suggestion::NoPreference)
}

impl Shared {
    pub(crate) fn new(
        remotes: Box<[Arc<Remote>]>,
        blocking: Arc<Pool>,
        rules: Rules,
        clock: Clock,
    ) -> Arc<Shared> {
        let reactor = Arc::new(Reactor::new(remotes.len() > 1));
        let interrupt: Arc<dyn Interrupt> = reactor.clone();
        let idle = Idle::with_interrupt(remotes.len(), &interrupt);
        if remotes.len() == 1 {
            // The only worker is the thread that calls `block_on`.
            idle.leave();
        }
        let global = SharedLanes::with_fifo();
        if rules.tie_break == TieBreak::TaskKey {
            let own = remotes.iter().map(|remote| &remote.lanes);
            own.chain([&global]).for_each(SharedLanes::order_by_task);
        }
        #[cfg(not(any(loom, miri, target_family = "wasm")))]
        let monitor = PollMonitor::new(&blocking.name, blocking.owner.clone());
        Arc::new(Shared {
            idle,
            global,
            remotes,
            closed: AtomicBool::new(false),
            rules,
            guest_slots: (0..GUESTS).map(|_| OnceLock::new()).collect(),
            backstops: [(); 2].map(|()| AtomicU64::new(u64::MAX)),
            clock,
            blocking,
            #[cfg(not(any(loom, miri, target_family = "wasm")))]
            monitor,
            reactor,
            drawn: AtomicU64::new(0),
            dead: [(); 3].map(|()| AtomicIsize::new(0)),
            programs: AtomicUsize::new(0),
        })
    }

    /// Returns the governor's suggestion for a thread that sees these lanes besides the global
    /// ones. The default governor has no preference without a choice, and is not called then.
    #[inline]
    pub(crate) fn suggestion(
        &self,
        pending: Pending,
        own: &SharedLanes,
        core: &Core,
    ) -> Suggestion {
        let Pending { cancel, timed, ready } = pending;
        let choice = (cancel && (timed || ready)) || (timed && ready);
        match &self.rules.governor {
            Some(governor) if choice || (self.rules.governs_all && self.has_work(pending)) => {
                advice(&**governor, core, self.view(pending, own, core))
            }
            _ => Suggestion::NoPreference,
        }
    }

    /// Returns true if anything could be dispatched or stolen.
    fn has_work(&self, pending: Pending) -> bool {
        pending.any() || self.remotes.iter().any(|remote| remote.waiting() > 0)
    }

    #[inline(never)]
    fn view(&self, pending: Pending, own: &SharedLanes, core: &Core) -> View {
        let seen = |lane| self.global.len(lane) + own.len(lane);
        let nearest = self.global.nearest().into_iter().chain(own.nearest()).min();
        View {
            pending,
            cancel: seen(Lane::Cancel),
            timed: seen(Lane::Timed),
            nearest: nearest.map(|deadline| deadline - self.now()),
            closing: core.closing_regions(),
            obligations: core.closing_obligations(),
        }
    }

    /// Advances a manual clock. An earlier time has no effect.
    pub(crate) fn set_now(&self, now: Time) {
        self.clock.set(now);
    }

    fn lanes(&self) -> impl Iterator<Item = &SharedLanes> {
        let workers = self.remotes.iter().map(|remote| &remote.lanes);
        let guests = self.guest_slots().map(|slot| &slot.lanes);
        std::iter::once(&self.global).chain(workers).chain(guests)
    }

    pub(crate) fn core(self: &Arc<Self>, settings: Settings) -> Arc<Core> {
        Core::new(self.clone(), settings)
    }

    /// Returns the slots that were ever taken.
    pub(crate) fn guest_slots(&self) -> impl Iterator<Item = &BlockOnSlot> {
        // They are created in this order.
        self.guest_slots.iter().map_while(|slot| slot.get()).map(|slot| &**slot)
    }

    /// Returns the slot of a guest. Guests are numbered after the workers.
    pub(crate) fn guest_slot(&self, pin: u16) -> Option<&BlockOnSlot> {
        let at = usize::from(pin).checked_sub(self.remotes.len())?;
        self.guest_slots.get(at)?.get().map(|slot| &**slot)
    }

    /// Ensures that another worker notices when a timer is late, since the calling worker may be
    /// inside a long poll then: a sleeper that wakes in time, or else one that is woken to watch.
    pub(crate) fn back_up_timer(&self, deadline: Time) {
        fence(SeqCst);
        let late = (deadline + LATE).as_nanos();
        if self.backstops.iter().all(|backstop| backstop.load(Relaxed) > late) {
            self.idle.notify_local();
        }
    }

    /// Sends an entry to the thread to which it is pinned.
    pub(crate) fn send_to(&self, pin: u16, entry: Runnable) {
        match (self.remotes.get(usize::from(pin)), self.guest_slot(pin)) {
            (Some(remote), _) => remote.lanes.push(entry),
            (None, Some(slot)) => slot.lanes.push(entry),
            (None, None) => unreachable!("tasks are pinned to slots that exist"),
        }
        self.notify_pin(pin);
        self.expire_if_closed();
    }

    /// Notifies the thread of a worker or guest of work that is pinned to it.
    pub(crate) fn notify_pin(&self, pin: u16) {
        match self.guest_slot(pin) {
            Some(_) if Guest::is_here(self, pin) => {}
            Some(slot) => slot.notify(&self.idle),
            None => self.idle.notify_worker(pin.into()),
        }
    }

    /// Sends an entry from a thread that is no worker.
    #[inline(never)]
    fn send(&self, entry: Runnable) {
        match entry.pin() {
            Some(pin) => self.send_to(pin, entry),
            None => self.send_to_any(entry),
        }
    }

    /// Sends an entry to the global lanes.
    fn send_to_any(&self, entry: Runnable) {
        self.global.push(entry);
        self.idle.notify_remote();
        self.expire_if_closed();
    }

    /// Drops the entries in the lanes if the runtime was dropped: late entries of completed tasks.
    /// They would keep the runtime's memory alive, and it would keep them alive.
    pub(crate) fn expire_if_closed(&self) {
        // A thread that adds an entry checks `closed` afterwards. The drop of the runtime sets
        // `closed` and empties the lanes afterwards. The lock of the lanes orders the two, so one
        // sees the other.
        if self.closed.load(Acquire) {
            self.lanes().for_each(SharedLanes::expire);
        }
    }
}

// SAFETY: `here` returns the worker or guest that this thread is (rule 2 of `worker`; a slot has
// one guest). Entries are identified by their task id, which is unique in this runtime.
unsafe impl Host for Shared {
    fn schedule(&self, entry: Runnable) {
        let rest = Worker::with(self, entry, |worker, entry| worker.push(entry));
        if let Some(entry) = rest {
            self.send(entry);
        }
    }

    fn schedule_globally(&self, entry: Runnable) {
        self.send(entry);
    }

    fn on_behalf(&self, f: &mut dyn FnMut()) {
        if let Some(f) = Worker::with(self, f, |worker, f| worker.redirect_to_global(f)) {
            f();
        }
    }

    fn dead_entries(&self, lane: Lane, more: isize) {
        self.dead[lane as usize].fetch_add(more, Relaxed);
    }

    fn queued(&self, lane: Lane) -> usize {
        let plain = |remote: &Arc<Remote>| match lane {
            Lane::Ready => remote.queue.len() + remote.pinned.load(Relaxed),
            _ => 0,
        };
        let queues: usize = self.remotes.iter().map(plain).sum();
        let all = queues + self.lanes().map(|lanes| lanes.len(lane)).sum::<usize>();
        // An entry may be discarded before it is counted as dead.
        let dead = self.dead[lane as usize].load(Relaxed);
        all.saturating_sub(usize::try_from(dead).unwrap_or(0))
    }

    fn schedule_all(&self, entries: Vec<Runnable>) {
        let rest = Worker::with(self, entries, |worker, entries| worker.push_all(entries));
        if let Some(entries) = rest.filter(|entries| !entries.is_empty()) {
            let (pinned, free): (Vec<_>, Vec<_>) =
                entries.into_iter().partition(|entry| entry.pin().is_some());
            self.global.push_all(free);
            self.idle.notify_remote();
            self.expire_if_closed();
            pinned.into_iter().for_each(|entry| self.schedule(entry));
        }
    }

    fn drives_timers(&self) -> bool {
        self.remotes.len() > 1 || self.programs.load(SeqCst) > 0
    }

    fn time_passes(&self) -> bool {
        self.clock.passes()
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn timer_moved(&self, deadline: Time) {
        // The worker checks the timers before it sleeps. If this poll is long, another worker does.
        let by_worker = |_: &Worker, ()| self.back_up_timer(deadline);
        if Worker::with(self, (), by_worker).is_some() {
            self.idle.notify_timers();
        }
    }

    fn here(&self) -> Option<u16> {
        let mut here = None;
        Worker::with(self, &mut here, |worker, here| *here = Some(worker.index));
        here.or_else(|| Guest::here(self))
    }

    fn entropy(&self) -> u64 {
        let mut drawn = None;
        Worker::with(self, &mut drawn, |worker, drawn| *drawn = Some(worker.draw()));
        // Other threads share one stream.
        drawn.unwrap_or_else(|| {
            let nth = self.drawn.fetch_add(1, Relaxed);
            mix64(self.rules.seed ^ mix64(!nth))
        })
    }

    fn has_worker(&self, pin: u16) -> bool {
        // A guest remains for tasks that it pinned to its own slot. Other threads cannot rely on
        // it.
        usize::from(pin) < self.remotes.len() || self.here() == Some(pin)
    }

    fn pinned(&self, pin: u16, lives: bool) {
        let pins = match (self.remotes.get(usize::from(pin)), self.guest_slot(pin)) {
            (Some(remote), _) => &remote.pins,
            (None, Some(slot)) => &slot.pins,
            (None, None) => unreachable!("tasks are pinned to slots that exist"),
        };
        // Only the thread of that worker or slot writes and reads the count.
        match lives {
            true => pins.fetch_add(1, Relaxed),
            false => pins.fetch_sub(1, Relaxed),
        };
    }

    #[cfg(all(any(unix, windows), not(loom)))]
    fn net(&self) -> Option<&dyn asx_runtime::net::Net> {
        Some(self)
    }

    /// None under a manual clock: the thread would find polls at times that no script set.
    #[cfg(not(any(loom, miri, target_family = "wasm")))]
    fn poll_monitor(&self) -> Option<&dyn asx_runtime::PollMonitor> {
        self.clock.passes().then_some(self as _)
    }

    /// Reports are written under the machine's clock only, where a user reads them.
    fn has_reports(&self) -> bool {
        self.clock.passes()
    }

    fn report(&self, line: &str) {
        // The error output may be closed, which is no reason to panic.
        let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
    }

    fn metrics(&self) -> Option<Metrics> {
        let base = self.rules.cancel_streak_limit.max(1);
        let workers = self.remotes.iter().map(|remote| remote.counters.read(base)).collect();
        let guests = self.guest_slots().map(|slot| slot.counters.read(base));
        let guests = guests.fold(WorkerMetrics::default(), WorkerMetrics::plus);
        Some(Metrics { workers, guests, health: Health::default() })
    }

    fn stops_whole(&self) -> bool {
        true
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        self.blocking.run(entry)
    }
}

#[cfg(not(any(loom, miri, target_family = "wasm")))]
impl asx_runtime::PollMonitor for Shared {
    fn check_at(&self, due: Time) -> bool {
        let remaining = due - self.now();
        // `None` if the time is not representable.
        let due = std::time::Instant::now().checked_add(remaining);
        due.is_some_and(|due| self.monitor.check_at(due))
    }
}
