//! Workers without threads: one step at a time, under a manual clock.
//!
//! This is a driver, not a second scheduler. The workers, their queues, channels, timers and the
//! parking protocol are those of [`Runtime`](crate::Runtime); the driver replaces their threads. It
//! fires due timers before each step. A parked worker is stepped again only if it was woken, so
//! that a lost wakeup stops the run. A run is a function of its program, its script and its seed.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use asx_kernel::lanes::{Certificate, Lane, Suggestion, TieBreak};
use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use asx_runtime::{Core, Host, Region, Settings};

use crate::blocking::Pool;
use crate::clock::Clock;
use crate::governor::{Adaptive, Governor, View};
use crate::idle::ParkKind;
use crate::queue::Queue;
use crate::shared::{Remote, Rules, Shared};
use crate::worker::{self, Worker};

/// The settings of a [`Stepped`] runtime.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of workers; 0 counts as 1.
    pub workers: usize,
    /// The seed of random choices.
    pub seed: u64,
    /// The order of equal entries in a worker's own ready lane.
    pub tie_break: TieBreak,
    /// The limit of consecutive cancel dispatches while other work waits.
    pub cancel_streak_limit: u32,
    /// The source of the lane preference.
    pub governed_by: GovernedBy,
    /// The settings of the tasks.
    pub settings: Settings,
}

/// The source of the lane preference of a [`Stepped`] runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GovernedBy {
    /// [`Stepped::suggest`]. As for a user-defined governor, it is called before every dispatch, so
    /// workers do not take the fast path.
    #[default]
    Script,
    /// No preference.
    Nobody,
    /// The default governor of a runtime: [`Adaptive`] with its defaults.
    Adaptive,
}

impl Default for Setup {
    fn default() -> Self {
        let settings = Settings { operations: u32::MAX, ..Settings::default() };
        let tie_break = TieBreak::Fifo;
        let cancel_streak_limit = 16;
        let governed_by = GovernedBy::default();
        Setup { workers: 1, seed: 0, tie_break, cancel_streak_limit, governed_by, settings }
    }
}

/// A runtime that runs only when stepped.
///
/// ```
/// use asx_native::stepped::{Setup, Stepped};
/// let mut run = Stepped::new(Setup::default());
/// assert_eq!(run.step(), None);
/// ```
///
/// The thread that created it runs all its workers. It is therefore not `Send`, and tasks that are
/// not `Send` stay on that thread.
///
/// ```compile_fail,E0277
/// fn sent<T: Send>() {}
/// sent::<asx_native::stepped::Stepped>();
/// ```
pub struct Stepped {
    shared: Arc<Shared>,
    core: Arc<Core>,
    root: Arc<Region>,
    workers: Vec<(Worker, State)>,
    advice: Arc<Advice>,
    /// Chooses the worker that steps.
    rng: DetRng,
    /// Makes it `!Send`.
    _here: PhantomData<*const ()>,
}

/// The state of a worker between two steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    /// It was woken.
    Searching,
    Parked(ParkKind),
}

/// The poll of a task in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the task.
    pub task: u64,
    /// The lane it came from.
    pub lane: Lane,
}

/// A governor that returns the suggestion set by the script.
#[derive(Default)]
struct Advice(AtomicU8);

impl Governor for Advice {
    fn suggest(&self, _: View) -> Suggestion {
        Suggestion::ALL[usize::from(self.0.load(Ordering::Relaxed))]
    }
}

impl Stepped {
    /// Creates an empty runtime at time 0.
    pub fn new(setup: Setup) -> Stepped {
        let (queues, remotes): (Vec<_>, Vec<_>) = (0..setup.workers.max(1))
            .map(|_| {
                let (queue, shared) = Queue::of(setup.workers.max(1));
                (queue, Remote::new(shared))
            })
            .unzip();
        let advice = Arc::new(Advice::default());
        let rules = Rules {
            cancel_streak_limit: setup.cancel_streak_limit,
            tie_break: setup.tie_break,
            seed: setup.seed,
            governor: match setup.governed_by {
                GovernedBy::Script => Some(advice.clone()),
                GovernedBy::Nobody => None,
                GovernedBy::Adaptive => Some(Arc::new(Adaptive::default())),
            },
            governs_all: setup.governed_by == GovernedBy::Script,
        };
        let pool = Pool::new(1, "asx");
        let clock = Clock::manual();
        let shared = Shared::new(remotes.into(), pool, rules, clock);
        let core = shared.core(setup.settings);
        let workers = queues.into_iter().zip(0..);
        let workers = workers
            .map(|(queue, index)| Worker::new(index, shared.clone(), core.clone(), queue))
            .map(|worker| (worker, State::Active))
            .collect::<Vec<_>>();
        if workers.len() == 1 {
            // A single worker is vacant at first.
            shared.idle.join();
        }
        let root = core.root();
        let rng = DetRng::new(setup.seed, u64::MAX);
        Stepped { shared, core, root, workers, advice, rng, _here: PhantomData }
    }

    /// Returns the state shared by its tasks.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Returns its root region.
    pub fn root(&self) -> &Arc<Region> {
        &self.root
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// Returns a function that advances the clock, for code without access to the runtime, such as
    /// a task.
    pub fn clock(&self) -> impl Fn(Time) + Send + Sync + use<> {
        let shared = self.shared.clone();
        move |to| shared.set_now(to)
    }

    /// Advances the clock without running anything. An earlier time has no effect.
    pub fn advance(&mut self, to: Time) {
        self.shared.set_now(to);
        self.core.advance_timers(self.now());
    }

    /// Returns the next instant at which a timer or deadline is due.
    pub fn next_wake(&self) -> Option<Time> {
        self.core.next_wake()
    }

    /// Fires the timers that are due; returns their number.
    pub fn fire(&mut self) -> usize {
        self.core.fire_timers(self.now())
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Polls one task on any worker. Returns `None` if nothing is runnable now.
    pub fn step(&mut self) -> Option<Step> {
        self.step_among(0..self.workers.len())
    }

    /// Polls one task on this worker. Returns `None` if nothing is runnable there now.
    pub fn step_on(&mut self, worker: usize) -> Option<Step> {
        self.step_among(worker..worker + 1)
    }

    fn step_among(&mut self, among: std::ops::Range<usize>) -> Option<Step> {
        // True for workers that parked during this call: their timeout has not passed.
        let mut rests = vec![false; self.workers.len()];
        loop {
            self.fire();
            for (worker, state) in &mut self.workers {
                if let State::Parked(_) = state
                    && worker.is_woken()
                {
                    *state = State::Searching;
                }
            }
            let able = |at: &usize| match self.workers.get(*at) {
                None => false,
                Some((_, State::Active | State::Searching)) => true,
                // A watcher wakes by its timeout.
                Some((_, State::Parked(kind))) => *kind == ParkKind::Watch && !rests[*at],
            };
            let able: Vec<_> = among.clone().filter(able).collect();
            let nth = if able.len() < 2 { 0 } else { self.rng.below(able.len()) };
            let at = *able.get(nth)?;
            let (worker, state) = &mut self.workers[at];
            if let State::Parked(_) = *state {
                worker.cancel_park();
            }
            match worker.step(*state != State::Active) {
                worker::Step::Polled(task, lane) => {
                    *state = State::Active;
                    return Some(Step { task, lane });
                }
                worker::Step::Parked(kind) => {
                    *state = State::Parked(kind);
                    rests[at] = true;
                }
            }
        }
    }

    /// Sets the suggestion for later dispatches, if workers are [governed by](GovernedBy) the
    /// script.
    pub fn suggest(&mut self, suggestion: Suggestion) {
        self.advice.0.store(suggestion as u8, Ordering::Relaxed);
    }

    /// Returns the number of entries that wait in a lane, in all queues.
    pub fn queued(&self, lane: Lane) -> usize {
        self.shared.queued(lane)
    }

    /// Returns the counted dispatches of a worker.
    pub fn certificate(&self, worker: usize) -> Option<Certificate> {
        self.workers.get(worker).map(|(worker, _)| worker.certificate())
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        // Entries own their tasks, which own the queues with the entries.
        self.shared.closed.store(true, Ordering::Release);
        self.shared.expire_if_closed();
    }
}

impl std::fmt::Debug for Stepped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stepped").field("now", &self.now()).finish_non_exhaustive()
    }
}
