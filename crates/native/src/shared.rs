//! What all threads of a runtime share: the global lanes, and what workers show each other.

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
#[cfg(not(any(loom, miri)))]
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
    #[cfg(not(any(loom, miri)))]
    pub(crate) monitor: Arc<PollMonitor>,
    pub(crate) reactor: Arc<Reactor>,
    pub(crate) rules: Rules,
    /// Where guests sit, each made when it is first taken.
    pub(crate) seats: Box<[OnceLock<Box<BlockOnSlot>>]>,
    /// When, at the latest, one gets up by itself to look at the timers: of those that sleep until
    /// woken, and the one that sleeps until the next timer. Nanoseconds; `u64::MAX`: none does.
    pub(crate) backstops: [AtomicU64; 2],
    clock: Clock,
    /// Random numbers drawn by threads that are no workers.
    drawn: AtomicU64,
    /// Entries of each lane that are in the queues and dead.
    dead: [AtomicIsize; 3],
    /// How many threads are in `block_on`: without one, and without another worker, nobody looks at
    /// the timers.
    pub(crate) programs: AtomicUsize,
}

/// How workers choose.
#[derive(Clone)]
pub(crate) struct Rules {
    /// Cancel dispatches in a row while other work waits.
    pub(crate) cancel_streak_limit: u32,
    /// The order of equals in a worker's own ready lane. By task key only with one worker: then in
    /// every lane.
    pub(crate) tie_break: TieBreak,
    /// What the workers' random numbers come from.
    pub(crate) seed: u64,
    pub(crate) governor: Option<Arc<dyn Governor>>,
    /// The governor is asked before every dispatch, and not only where there is a choice.
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

/// What a worker shows the others.
pub(crate) struct Remote {
    /// Ready entries of the usual priority.
    pub(crate) queue: queue::Shared,
    /// Everything else, and what others sent to this worker.
    pub(crate) lanes: SharedLanes,
    /// What it has done.
    pub(crate) counters: Counters,
    /// How many tasks live that must run there.
    pub(crate) pins: AtomicUsize,
    /// How many plainly ready entries wait that must run there.
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
    /// How many entries others may take.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.lanes.stealable()
    }
}

/// What a governor says. One that panics has no preference: no worker ends of it.
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
            // That worker is whoever calls `block_on`.
            idle.leave();
        }
        let global = SharedLanes::in_line();
        if rules.tie_break == TieBreak::TaskKey {
            let own = remotes.iter().map(|remote| &remote.lanes);
            own.chain([&global]).for_each(SharedLanes::order_by_task);
        }
        #[cfg(not(any(loom, miri)))]
        let monitor = PollMonitor::new(&blocking.name, blocking.owner.clone());
        Arc::new(Shared {
            idle,
            global,
            remotes,
            closed: AtomicBool::new(false),
            rules,
            seats: (0..GUESTS).map(|_| OnceLock::new()).collect(),
            backstops: [(); 2].map(|()| AtomicU64::new(u64::MAX)),
            clock,
            blocking,
            #[cfg(not(any(loom, miri)))]
            monitor,
            reactor,
            drawn: AtomicU64::new(0),
            dead: [(); 3].map(|()| AtomicIsize::new(0)),
            programs: AtomicUsize::new(0),
        })
    }

    /// What the governor advises who sees these lanes besides the global ones. The default one has
    /// no preference where there is no choice, and is not asked.
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

    /// Whether there is anything that could be dispatched, or stolen.
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

    /// Moves a manual clock; a time that has passed already changes nothing.
    pub(crate) fn set_now(&self, now: Time) {
        self.clock.set(now);
    }

    fn lanes(&self) -> impl Iterator<Item = &SharedLanes> {
        let workers = self.remotes.iter().map(|remote| &remote.lanes);
        let guests = self.seats().map(|seat| &seat.lanes);
        std::iter::once(&self.global).chain(workers).chain(guests)
    }

    pub(crate) fn core(self: &Arc<Self>, settings: Settings) -> Arc<Core> {
        Core::new(self.clone(), settings)
    }

    /// The seats that were ever taken.
    pub(crate) fn seats(&self) -> impl Iterator<Item = &BlockOnSlot> {
        // Those that are made first are taken first.
        self.seats.iter().map_while(|seat| seat.get()).map(|seat| &**seat)
    }

    /// The seat of a guest; guests are numbered after the workers.
    pub(crate) fn seat(&self, pin: u16) -> Option<&BlockOnSlot> {
        let at = usize::from(pin).checked_sub(self.remotes.len())?;
        self.seats.get(at)?.get().map(|seat| &**seat)
    }

    /// The calling worker may be held up by a poll when the timer is due. Somebody else is to see
    /// that then: a sleeper that gets up in time, or else one that is woken to watch.
    pub(crate) fn back_up_timer(&self, deadline: Time) {
        fence(SeqCst);
        let late = (deadline + LATE).as_nanos();
        if self.backstops.iter().all(|backstop| backstop.load(Relaxed) > late) {
            self.idle.notify_local();
        }
    }

    /// Puts an entry where only one thread takes it.
    pub(crate) fn send_to(&self, pin: u16, entry: Runnable) {
        match (self.remotes.get(usize::from(pin)), self.seat(pin)) {
            (Some(remote), _) => remote.lanes.push(entry),
            (None, Some(seat)) => seat.lanes.push(entry),
            (None, None) => unreachable!("tasks are pinned to places that exist"),
        }
        self.call(pin);
        self.expire_if_closed();
    }

    /// Has one thread look at what is only for it.
    pub(crate) fn call(&self, pin: u16) {
        match self.seat(pin) {
            Some(_) if Guest::is_here(self, pin) => {}
            Some(seat) => seat.call(&self.idle),
            None => self.idle.notify_worker(pin.into()),
        }
    }

    /// Puts an entry where others than the caller take it too.
    #[inline(never)]
    fn send(&self, entry: Runnable) {
        match entry.pin() {
            Some(pin) => self.send_to(pin, entry),
            None => self.send_to_any(entry),
        }
    }

    /// Puts an entry where any worker takes it.
    fn send_to_any(&self, entry: Runnable) {
        self.global.push(entry);
        self.idle.notify_remote();
        self.expire_if_closed();
    }

    /// Empties the lanes of what nobody will take any more: late entries of tasks that have ended.
    /// They would keep the runtime's memory, as it would keep them.
    pub(crate) fn expire_if_closed(&self) {
        // Whoever adds an entry looks after that whether the end has come; whoever brings the end
        // empties them after that. Between the two is the lock, so one of them sees the other.
        if self.closed.load(Acquire) {
            self.lanes().for_each(SharedLanes::expire);
        }
    }
}

// SAFETY: `here` answers the worker or guest this thread is (rule 2 of `worker`; a seat has one
// guest), and entries are found by the number of their task, which no other task here has.
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
        if let Some(f) = Worker::with(self, f, |worker, f| worker.as_outside(f)) {
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
        // One that dies may be discarded before it is counted as dead.
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
        // The worker looks at the timers before it sleeps. Should this poll hold it up, another
        // does.
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
        // Other threads share a stream of their own.
        drawn.unwrap_or_else(|| {
            let nth = self.drawn.fetch_add(1, Relaxed);
            mix64(self.rules.seed ^ mix64(!nth))
        })
    }

    fn has_worker(&self, pin: u16) -> bool {
        // A guest stays for what it pinned to its own seat. Others cannot count on it.
        usize::from(pin) < self.remotes.len() || self.here() == Some(pin)
    }

    fn pinned(&self, pin: u16, lives: bool) {
        let pins = match (self.remotes.get(usize::from(pin)), self.seat(pin)) {
            (Some(remote), _) => &remote.pins,
            (None, Some(seat)) => &seat.pins,
            (None, None) => unreachable!("tasks are pinned to places that exist"),
        };
        // Only the thread of that place counts, and looks.
        match lives {
            true => pins.fetch_add(1, Relaxed),
            false => pins.fetch_sub(1, Relaxed),
        };
    }

    #[cfg(all(any(unix, windows), not(loom)))]
    fn net(&self) -> Option<&dyn asx_runtime::net::Net> {
        Some(self)
    }

    /// Under a clock that is stepped, a thread would find polls at times that no script set.
    #[cfg(not(any(loom, miri)))]
    fn poll_monitor(&self) -> Option<&dyn asx_runtime::PollMonitor> {
        self.clock.passes().then_some(self as _)
    }

    /// Where the time is the machine's, somebody reads what a program writes.
    fn has_reports(&self) -> bool {
        self.clock.passes()
    }

    fn report(&self, line: &str) {
        // It may be closed, which is no reason to panic.
        let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
    }

    fn metrics(&self) -> Option<Metrics> {
        let base = self.rules.cancel_streak_limit.max(1);
        let workers = self.remotes.iter().map(|remote| remote.counters.read(base)).collect();
        let guests = self.seats().map(|seat| seat.counters.read(base));
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

#[cfg(not(any(loom, miri)))]
impl asx_runtime::PollMonitor for Shared {
    fn check_at(&self, due: Time) -> bool {
        let left = due - self.now();
        // `None`: later than any clock goes.
        let due = std::time::Instant::now().checked_add(left);
        due.is_some_and(|due| self.monitor.check_at(due))
    }
}
