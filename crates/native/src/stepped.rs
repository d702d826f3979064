//! Workers without threads: one step at a time, under a clock that somebody moves.
//!
//! This is a driver, not a second scheduler. The workers, their queues, channels, timers and the
//! parking protocol are those of [`Runtime`](crate::Runtime); the driver takes the place of their
//! threads. It looks for due timers before each step, and a worker that parked is stepped again
//! only if somebody woke it, so that a wakeup that is lost stops the run. So a run is a function of
//! its program, its script and its seed.

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

/// How a [`Stepped`] runtime is to be.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many workers; 0 counts as 1.
    pub workers: usize,
    /// What random choices come from.
    pub seed: u64,
    /// The order of equals in a worker's own ready lane.
    pub tie_break: TieBreak,
    /// Cancel dispatches in a row while other work waits.
    pub cancel_streak_limit: u32,
    /// Who advises the workers which lane to prefer.
    pub governed_by: GovernedBy,
    /// What tasks are bound by.
    pub settings: Settings,
}

/// Who advises the workers of a [`Stepped`] runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GovernedBy {
    /// [`Stepped::suggest`]. It is asked before every dispatch, as is a governor that a user sets,
    /// so that workers do not take the fast path.
    #[default]
    Script,
    /// Nobody: there is no preference.
    Nobody,
    /// The governor that a runtime has unless another is set: [`Adaptive`] with its defaults.
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

/// A runtime that does nothing by itself.
///
/// ```
/// use asx_native::stepped::{Setup, Stepped};
/// let mut run = Stepped::new(Setup::default());
/// assert_eq!(run.step(), None);
/// ```
///
/// The thread that made it is all its workers: tasks that are not `Send` stay there, and so does
/// it.
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
    /// Which worker steps.
    rng: DetRng,
    /// It stays on its thread.
    _here: PhantomData<*const ()>,
}

/// What a worker is doing between two steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    /// It was woken.
    Searching,
    Parked(ParkKind),
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the task that was polled.
    pub task: u64,
    /// The lane it came from.
    pub lane: Lane,
}

/// A governor that says what it was told to say.
#[derive(Default)]
struct Advice(AtomicU8);

impl Governor for Advice {
    fn suggest(&self, _: View) -> Suggestion {
        Suggestion::ALL[usize::from(self.0.load(Ordering::Relaxed))]
    }
}

impl Stepped {
    /// A runtime with nothing in it, at time 0.
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
            // The place of a single worker is empty at first.
            shared.idle.join();
        }
        let root = core.root();
        let rng = DetRng::new(setup.seed, u64::MAX);
        Stepped { shared, core, root, workers, advice, rng, _here: PhantomData }
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
        self.shared.now()
    }

    /// A function that moves the clock, for whoever has no hold of the runtime: a task, say.
    pub fn clock(&self) -> impl Fn(Time) + Send + Sync + use<> {
        let shared = self.shared.clone();
        move |to| shared.set_now(to)
    }

    /// Moves the clock, and nothing else; a time that has passed changes nothing.
    pub fn advance(&mut self, to: Time) {
        self.shared.set_now(to);
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
        self.workers.len()
    }

    /// Polls one task, on whichever worker: `None` if nothing is runnable now.
    pub fn step(&mut self) -> Option<Step> {
        self.step_among(0..self.workers.len())
    }

    /// Polls one task on this worker: `None` if nothing is runnable there now.
    pub fn step_on(&mut self, worker: usize) -> Option<Step> {
        self.step_among(worker..worker + 1)
    }

    fn step_among(&mut self, among: std::ops::Range<usize>) -> Option<Step> {
        // Those that parked since this began: their time is not over yet.
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
                // One that watches gets up by itself after a while.
                Some((_, State::Parked(kind))) => *kind == ParkKind::Watch && !rests[*at],
            };
            let able: Vec<_> = among.clone().filter(able).collect();
            let nth = if able.len() < 2 { 0 } else { self.rng.below(able.len()) };
            let at = *able.get(nth)?;
            let (worker, state) = &mut self.workers[at];
            if let State::Parked(_) = *state {
                worker.get_up();
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

    /// Has workers advised so from now on, if they are [governed by](GovernedBy) the script.
    pub fn suggest(&mut self, suggestion: Suggestion) {
        self.advice.0.store(suggestion as u8, Ordering::Relaxed);
    }

    /// How many entries wait in a lane, in all queues.
    pub fn queued(&self, lane: Lane) -> usize {
        self.shared.queued(lane)
    }

    /// The dispatches of a worker, counted.
    pub fn certificate(&self, worker: usize) -> Option<Certificate> {
        self.workers.get(worker).map(|(worker, _)| worker.certificate())
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        // Entries keep their tasks, which keep the queues they are in.
        self.shared.closed.store(true, Ordering::Release);
        self.shared.expire_if_closed();
    }
}

impl std::fmt::Debug for Stepped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stepped").field("now", &self.now()).finish_non_exhaustive()
    }
}
