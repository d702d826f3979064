//! Virtual workers: the scheduler's law over real tasks, one step at a time, with its choices open.
//!
//! [`Scheduler`] is the kernel's law for any number of workers; what waits in its lanes are entries
//! of real tasks. Each step asks the oracle which worker goes, where lanes tie, and where a thief
//! starts; the clock is moved by whoever steps. So a run is a function of its program, its script
//! and the answers of the oracle.
//!
//! # Rule
//! 1. [`Workers`] is not `Send`, and nothing else polls what its host is given: so all workers are
//!    the thread that made it, and no other thread is one.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use asx_kernel::choose::{Choose, Point};
use asx_kernel::lanes::{
    Certificate, Decision, Lane, Scheduler, SchedulerConfig, Source, Suggestion, Ticket, Token,
};
use asx_kernel::time::Time;
use asx_runtime::{Begun, Core, Dispatch, Host, Region, RunContext, Runnable, Settings, footprint};

/// Workers without threads.
///
/// ```
/// use asx_kernel::choose::First;
/// use asx::lab::workers::{Setup, Workers};
/// let mut run = Workers::new(Setup::default(), Box::new(First));
/// assert_eq!(run.step(), None);
/// ```
pub struct Workers {
    host: Arc<Bench>,
    core: Arc<Core>,
    root: Arc<Region>,
    choose: Box<dyn Choose>,
    suggestion: Suggestion,
    /// It stays on its thread (rule 1).
    _here: PhantomData<*const ()>,
}

/// How they are to be.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many workers, how lanes tie, how long cancels may go.
    pub scheduler: SchedulerConfig,
    /// What tasks are bound by.
    pub settings: Settings,
}

impl Default for Setup {
    fn default() -> Self {
        let settings = Settings { operations: u32::MAX, ..Settings::default() };
        Setup { scheduler: SchedulerConfig::default(), settings }
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the task that was polled.
    pub task: u64,
    /// The lane it came from.
    pub lane: Lane,
}

impl Workers {
    /// A runtime with nothing in it, at time 0.
    pub fn new(setup: Setup, choose: Box<dyn Choose>) -> Workers {
        let lanes = Lanes::new(setup.scheduler);
        let now = AtomicU64::new(0);
        let owner = footprint::this_thread();
        let host = Arc::new(Bench { now, owner, lanes: Mutex::new(lanes) });
        let core = Core::new(host.clone(), setup.settings);
        let root = core.root();
        let suggestion = Suggestion::NoPreference;
        Workers { host, core, root, choose, suggestion, _here: PhantomData }
    }

    /// What its tasks share.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Its root region.
    pub fn root(&self) -> &Arc<Region> {
        &self.root
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.host.now()
    }

    /// A function that moves the clock, for whoever has no hold of the runtime: a task, say.
    pub fn clock(&self) -> impl Fn(Time) + Send + Sync + use<> {
        let host = self.host.clone();
        move |to| host.set_now(to)
    }

    /// Moves the clock, and nothing else; a time that has passed changes nothing.
    pub fn advance(&mut self, to: Time) {
        self.host.set_now(to);
        self.core.advance_timers(self.now());
    }

    /// The next instant at which something happens by itself.
    pub fn next_wake(&self) -> Option<Time> {
        self.core.next_wake()
    }

    /// Fires the timers that are due: how many.
    pub fn fire(&mut self) -> usize {
        self.core.fire_timers(self.now())
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.host.lock().scheduler.workers()
    }

    /// Polls one task, on whichever worker: `None` if nothing is runnable now.
    pub fn step(&mut self) -> Option<Step> {
        let workers = self.workers();
        self.step_among(0..workers)
    }

    /// Polls one task on this worker: `None` if nothing is runnable there now.
    pub fn step_on(&mut self, worker: usize) -> Option<Step> {
        self.step_among(worker..worker.saturating_add(1))
    }

    fn step_among(&mut self, among: std::ops::Range<usize>) -> Option<Step> {
        loop {
            self.fire();
            let decision = {
                let mut lanes = self.host.lock();
                lanes.next_among(among.clone(), self.suggestion, &mut *self.choose)?
            };
            let task = decision.token.word();
            let lane = decision.lane;
            let polled = self.poll(decision);
            self.host.lock().worker = None;
            if polled {
                return Some(Step { task, lane });
            }
        }
    }

    fn poll(&self, decision: Decision<Entry>) -> bool {
        let Decision { worker, lane, streak, limit, fallback, token: Entry(entry), .. } = decision;
        let worker = u16::try_from(worker).unwrap_or(u16::MAX);
        let dispatch = || Dispatch::new(worker, lane, streak, limit).fallback(fallback);
        let dispatch = self.core.recording().then(dispatch);
        // SAFETY: rule 1.
        let begun = unsafe { entry.begin(RunContext::from_lane(lane).recorded(dispatch)) };
        begun.is_some_and(Begun::run)
    }

    /// Has workers advised so from now on.
    pub fn suggest(&mut self, suggestion: Suggestion) {
        self.suggestion = suggestion;
    }

    /// How many entries wait in a lane, in all queues.
    pub fn queued(&self, lane: Lane) -> usize {
        self.host.queued(lane)
    }

    /// The dispatches of a worker, counted.
    pub fn certificate(&self, worker: usize) -> Option<Certificate> {
        let lanes = self.host.lock();
        (worker < lanes.scheduler.workers()).then(|| lanes.scheduler.certificate(worker))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Entries keep their tasks, which keep the host they are in.
        let none = Lanes::new(SchedulerConfig::default());
        let lanes = std::mem::replace(&mut *self.host.lock(), none);
        drop(lanes.into_entries());
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// A runnable task in a lane.
pub(crate) struct Entry(pub(crate) Runnable);

impl Token for Entry {
    fn word(&self) -> u64 {
        self.0.id()
    }
}

/// What the tasks see of their workers.
struct Bench {
    now: AtomicU64,
    /// The thread of all workers.
    owner: u64,
    lanes: Mutex<Lanes>,
}

/// The lanes of all workers.
pub(crate) struct Lanes {
    scheduler: Scheduler<Entry>,
    /// The one entry of each runnable task.
    tickets: BTreeMap<u64, Ticket>,
    /// Who polls at the moment: what becomes runnable is its work.
    pub(crate) worker: Option<usize>,
}

impl Lanes {
    pub(crate) fn new(config: SchedulerConfig) -> Lanes {
        Lanes { scheduler: Scheduler::new(config), tickets: BTreeMap::new(), worker: None }
    }

    /// The next entry by law, on a worker of the oracle's choice: it polls from now on.
    pub(crate) fn next(&mut self, choose: &mut dyn Choose) -> Option<Decision<Entry>> {
        let workers = 0..self.scheduler.workers();
        self.next_among(workers, Suggestion::NoPreference, choose)
    }

    fn next_among(
        &mut self,
        among: std::ops::Range<usize>,
        suggestion: Suggestion,
        choose: &mut dyn Choose,
    ) -> Option<Decision<Entry>> {
        let able = |worker: &usize| self.scheduler.can_run(*worker);
        let able: Vec<_> = among.clone().filter(able).collect();
        let nth = choose.pick(Point::Worker, able.len());
        let Some(worker) = able.get(nth) else {
            among.for_each(|worker| self.scheduler.parked(worker));
            return None;
        };
        let decision = self.scheduler.next(*worker, suggestion, choose)?;
        self.tickets.remove(&decision.token.word());
        self.worker = Some(*worker);
        Some(decision)
    }

    /// How many entries wait in a lane, in all queues.
    pub(crate) fn queued(&self, lane: Lane) -> usize {
        let local = 0..self.scheduler.workers();
        let queues = local.map(Source::Local).chain([Source::Global]);
        queues.map(|queue| self.scheduler.lanes(queue).len(lane)).sum()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    /// What still waits.
    pub(crate) fn into_entries(mut self) -> Vec<Runnable> {
        let tickets = std::mem::take(&mut self.tickets).into_values();
        tickets.filter_map(|ticket| Some(self.scheduler.remove(ticket)?.0)).collect()
    }

    pub(crate) fn push(&mut self, entry: Runnable, source: Source) {
        let entry = match self.take(entry.id()) {
            Some(old) => entry.merge(old),
            None => entry,
        };
        let pin = entry.pin().map(usize::from);
        let source = pin.map_or(source, Source::Local);
        let id = entry.id();
        let place = entry.place();
        let ticket = self.scheduler.enqueue(source, place, Entry(entry), pin.is_some());
        self.tickets.insert(id, ticket);
    }

    pub(crate) fn take(&mut self, task: u64) -> Option<Runnable> {
        let ticket = self.tickets.remove(&task)?;
        self.scheduler.remove(ticket).map(|Entry(entry)| entry)
    }
}

impl Bench {
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn set_now(&self, now: Time) {
        self.now.fetch_max(now.as_nanos(), Relaxed);
    }
}

// SAFETY: rule 1; entries are found by the number of their task, which no other task here has.
unsafe impl Host for Bench {
    fn schedule(&self, entry: Runnable) {
        let mut lanes = self.lock();
        let source = lanes.worker.map_or(Source::Global, Source::Local);
        lanes.push(entry, source);
    }

    fn schedule_globally(&self, entry: Runnable) {
        self.lock().push(entry, Source::Global);
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(Relaxed))
    }

    fn timer_moved(&self, _: Time) {}

    fn on_behalf(&self, f: &mut dyn FnMut()) {
        let worker = self.lock().worker.take();
        f();
        self.lock().worker = worker;
    }

    fn unschedule(&self, task: u64) -> Option<Runnable> {
        self.lock().take(task)
    }

    fn queued(&self, lane: Lane) -> usize {
        self.lock().queued(lane)
    }

    fn here(&self) -> Option<u16> {
        let worker = self.lock().worker.filter(|_| footprint::is_thread(self.owner));
        worker.and_then(|worker| u16::try_from(worker).ok())
    }

    fn has_worker(&self, worker: u16) -> bool {
        usize::from(worker) < self.lock().scheduler.workers()
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        self.schedule(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use asx_kernel::budget::Budget;
    use asx_kernel::choose::First;
    use asx_runtime::probe::RegionProbe;
    use asx_runtime::{Cancelled, Cx, Policy, SpawnError};

    use super::*;

    #[test]
    fn another_thread_is_no_worker_even_while_one_polls() {
        let mut run = Workers::new(Setup::default(), Box::new(First));
        let root = RegionProbe::of(run.root().clone());
        let (_, scope) = root.open_scope(Policy::CollectAll, Budget::INFINITE).unwrap();
        let other = scope.clone();
        let mut task = scope.spawn(async move |_cx: Cx| {
            let here = other.task("here").try_spawn_local(async |_cx: Cx| Ok(()));
            let there = std::thread::spawn(move || {
                let task = other.task("there").try_spawn_local(async |_cx: Cx| Ok(()));
                task.map(drop)
            });
            Ok::<_, Cancelled>((here.is_ok(), there.join().unwrap()))
        });
        while run.step().is_some() {}
        let (here, there) = task.outcome().unwrap().unwrap();
        assert!(here);
        assert_eq!(there, Err(SpawnError::NoSuchWorker));
    }
}
