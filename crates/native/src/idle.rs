//! Worker states, and the protocol that wakes a parked worker when there is work.
//!
//! Waking a thread on another core is the most expensive operation of a scheduler, and a lost
//! wakeup is a hang. A worker is therefore woken only if no other worker is about to search:
//!
//! ```text
//!            start_search              prepare_park     Watching: parked with a short timeout; at
//!   Active --------------> Searching --------------->     most one, beside an Active worker
//!          <--------------           <---------------   Asleep: parked until woken; the last one
//!            found_work          notify_*, timeout,         until the next timer is due
//!                                cancel_park, shutdown
//! ```
//!
//! The loop of a worker without work (the caller knows which queues there are):
//!
//! ```text
//! start_search() loop:  if a search of all queues finds a task: if found_work() and more is
//! visible: notify_remote() or notify_local() run it match prepare_park(me):   Closed: end
//! otherwise: if any work is visible: cancel_park(me) else: park(me, timeout by kind)
//! ```
//!
//! # Why no wakeup is lost
//!
//! One word counts the searching, watching and sleeping workers. Every change of it is a
//! read-modify-write. A lock guards the list of parked workers; it is taken only to park and to
//! wake.
//!
//! 1. *One of the two sees the other.* A producer publishes work, then fences, then reads the word.
//!    A worker that stops searching changes the word, then fences, then checks the queues once
//!    more. Both fences are `SeqCst`, so one is first: either the producer reads the changed word,
//!    or the last check sees the work.
//! 2. *No worker is parked*: none is woken. A worker that parks later changes the word later, and
//!    by 1 sees the work in its last check.
//! 3. *A worker is searching*: none is woken. The count of searchers reaches zero later, by a
//!    worker that parks or by one that found work and learns from
//!    [`found_work`](Idle::found_work) that it was the last. Either checks the queues once more
//!    after that, and by 1 sees the work.
//! 4. *A worker is watching* and the work is local to its producer: none is woken. The watcher
//!    wakes by its timeout and becomes a searcher first; then 3 holds.
//! 5. *Otherwise* one parked worker is removed from the list under the lock, counted as a searcher
//!    on its behalf (so the next notification finds a searcher) and unparked. Its parker keeps the
//!    token if it does not sleep yet. The worker searches, and 3 holds.
//!
//! # The fence before `notify_local`
//!
//! [`notify_remote`](Idle::notify_remote) fences. [`notify_local`](Idle::notify_local) is one load
//! and leaves the fence to the caller. Without one, work in a worker's own queue is still not lost:
//! that worker is Active and checks its queue before it parks. Only help can be missed. A worker
//! that parks beside an Active one watches, unless another does, so the next check of the watcher
//! sees work that the load missed. The sleepers miss a push until the next notification only if the
//! watcher wakes, misses the push, finds other work and becomes Active, all while the push is still
//! in the store buffer of the pushing core. A fence before the call excludes that too.
//!
//! # Timers
//!
//! Active workers and the watcher check the timers regularly. The last worker to sleep (none
//! Active, none Searching) sleeps only until the next timer. This duty ends when it wakes, or when
//! a worker becomes Active and so may arm timers: that worker, or one after it, is the last again.
//! A thread outside the workers that arms a timer calls [`notify_timers`](Idle::notify_timers),
//! which fences as `notify_remote` does. A worker that arms a timer and continues to run calls
//! `notify_local`, so that another worker watches, unless it knows that one wakes soon. The last
//! searcher to find work does the same if a timer is armed, because the timer may have been left to
//! it.
//!
//! # The reactor
//!
//! If sockets are registered, at most one thread at a time is in the reactor: the owner of its
//! lock. A worker that parks without watching tries this lock. If it succeeds, it sleeps in the
//! reactor ([`rest_in`](Idle::rest_in)) and is woken by an interrupt; otherwise it sleeps as usual.
//! Active workers and the watcher try the lock regularly to poll without waiting. No thread waits
//! for the lock.
//!
//! 1. *An event is seen.* If a worker fails to get the lock, its owner either sleeps in the reactor
//!    and sees the event, or polls and is not parked. A worker that polls parks later, and then
//!    tries the lock itself, or keeps polling regularly as Active workers and watchers do. The last
//!    worker to poll is therefore in the reactor, or will be. A worker that left the reactor for a
//!    task may be delayed by that task. While there is activity, one of the workers that sleep
//!    outside the reactor therefore wakes regularly and tries the lock again
//!    (`reactor/presence.rs`). If none does, the last searcher to find work wakes one.
//! 2. *The first source.* Without sources no worker sleeps in the reactor. A thread that registers
//!    the first source counts it and then calls [`notify_remote`](Idle::notify_remote), as for
//!    work. A parking worker reads the count after `prepare_park`, so by 1 of the list above it
//!    sees the count, or is woken if no worker searches, and then parks again.
//!
//! The word, its change and the last check form an eventcount (Reed, Kanodia, "Synchronization with
//! Eventcounts and Sequencers", Communications of the ACM, 1979). The schedulers of Go and tokio
//! have the same rule that a searching worker suppresses further notifications.

#![forbid(unsafe_code)]

mod counts;
#[cfg(all(test, loom))]
mod model;
mod parked;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::{
    parker::{Interrupt, Parker, Woken},
    prim::{
        Mutex,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, SeqCst},
            fence,
        },
        lock,
    },
};
use counts::Counts;
use parked::Parked;
use std::sync::Arc;
use std::time::Duration;

/// The largest number of workers.
pub const MAX_WORKERS: usize = 1024;

/// How a worker parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the worker already counts as parked"]
pub enum ParkKind {
    /// With a short timeout, after which it searches the queues of the others: another worker is
    /// Active, or was a moment ago.
    Watch,
    /// Until it is woken.
    Sleep,
    /// Until it is woken or the next timer is due: no other worker is Active or Searching. It must
    /// check the timers after this call.
    Last,
    /// It does not park, because of a [`shutdown`](Idle::shutdown). The worker is still Searching.
    Closed,
}

/// The sources from which a worker runs entries, each true if it has any. A worker checks them
/// between [`prepare_park`](Idle::prepare_park) and parking. A source that is missing here is a
/// lost wakeup: no worker is woken for work that a worker still awake could have seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    /// Ready entries that are pinned to this worker.
    pub(crate) pinned: bool,
    /// This worker's ring, and the backlog behind it.
    pub(crate) queue: bool,
    /// This worker's lanes, which also receive entries that others send to it.
    pub(crate) lanes: bool,
    /// The lanes shared by all workers.
    pub(crate) global: bool,
    /// Work that could be stolen, if this worker is the last to sleep.
    pub(crate) others: bool,
    /// A timer is due.
    pub(crate) timer: bool,
}

impl Sources {
    /// Returns true if a worker that sees this must not park.
    pub(crate) fn keep_awake(self) -> bool {
        let Sources { pinned, queue, lanes, global, others, timer } = self;
        pinned || queue || lanes || global || others || timer
    }
}

/// The states of a fixed number of workers, all of them initially Active.
///
/// ```
/// use asx_native::idle::{Idle, ParkKind};
/// use asx_native::parker::Woken;
///
/// let idle = Idle::new(2);
/// idle.start_search();
/// assert_eq!(idle.prepare_park(1), ParkKind::Watch); // worker 0 is Active
/// idle.notify_remote();
/// assert_eq!(idle.park(1, None), Woken::Notified);
/// assert!(idle.found_work()); // no other worker searches
/// ```
#[derive(Debug)]
pub struct Idle {
    /// [`Counts`], packed.
    word: AtomicU64,
    parked: Mutex<Parked>,
    parkers: Box<[Parker]>,
}

impl Idle {
    /// Creates the states of `workers` workers, numbered from 0.
    ///
    /// # Panics
    /// If `workers` is 0 or more than [`MAX_WORKERS`].
    pub fn new(workers: usize) -> Idle {
        Idle::with_parkers(workers, Parker::default)
    }

    /// Creates the states of workers that may also sleep [in the reactor](Idle::rest_in).
    ///
    /// # Panics
    /// As [`new`](Idle::new) does.
    pub fn with_interrupt(workers: usize, interrupt: &Arc<dyn Interrupt>) -> Idle {
        Idle::with_parkers(workers, || Parker::with_interrupt(interrupt.clone()))
    }

    fn with_parkers(workers: usize, parker: impl Fn() -> Parker) -> Idle {
        assert!((1..=MAX_WORKERS).contains(&workers), "1 to {MAX_WORKERS} workers, not {workers}");
        Idle {
            word: AtomicU64::new(Counts { active: workers as u16, ..Counts::default() }.pack()),
            parked: Mutex::default(),
            parkers: (0..workers).map(|_| parker()).collect(),
        }
    }

    /// Makes a thread the worker at a vacant place. The worker is Active.
    pub fn join(&self) {
        self.update(|counts| {
            counts.active += 1;
            counts.timers_covered = false;
        });
    }

    /// Vacates the place of an Active worker, for which no thread is woken any more. The caller
    /// must then check the global queue once more, and notify if it has work or timers are armed.
    pub fn leave(&self) {
        self.update(|counts| counts.active -= 1);
        fence(SeqCst);
    }

    /// Makes an Active worker without local work Searching.
    pub fn start_search(&self) {
        self.update(|counts| {
            counts.active -= 1;
            counts.searching += 1;
        });
    }

    /// Makes a Searching worker that has found work Active.
    ///
    /// Returns true if it was the last searcher. No worker was then woken for work or timers that
    /// came during the search, and the caller must check all queues and the timers once more, and
    /// notify if there are any.
    pub fn found_work(&self) -> bool {
        let before = self.update(|counts| {
            counts.searching -= 1;
            counts.active += 1;
            counts.timers_covered = false;
        });
        let last = before.searching == 1;
        if last {
            fence(SeqCst);
        }
        last
    }

    /// Makes a Searching worker that has found nothing count as parked. Before it actually parks,
    /// the caller must check all queues once more, and call [`cancel_park`](Idle::cancel_park) if
    /// it sees work, otherwise [`park`](Idle::park).
    pub fn prepare_park(&self, worker: usize) -> ParkKind {
        self.prepare(worker, false)
    }

    /// [`prepare_park`](Idle::prepare_park) by a worker that was watching and prefers to continue,
    /// although no worker is Active now. It is used where work is expected again soon.
    pub fn prepare_watch(&self, worker: usize) -> ParkKind {
        self.prepare(worker, true)
    }

    fn prepare(&self, worker: usize, prefers_watch: bool) -> ParkKind {
        let mut parked = lock(&self.parked);
        if parked.closed {
            return ParkKind::Closed;
        }
        let mut kind = ParkKind::Sleep;
        self.update(|counts| kind = counts.park(prefers_watch));
        match kind {
            ParkKind::Watch => parked.watcher = Some(worker),
            _ => parked.sleepers.push(worker),
        }
        if kind == ParkKind::Last {
            parked.driver = Some(worker);
        }
        drop(parked);
        fence(SeqCst);
        kind
    }

    /// Makes a parked worker Searching again. If it has been woken meanwhile, its next park may
    /// return immediately without another reason.
    pub fn cancel_park(&self, worker: usize) {
        self.remove_parked(&mut lock(&self.parked), worker);
    }

    /// Parks the calling worker, which has called [`prepare_park`](Idle::prepare_park). Afterwards
    /// it is Searching, whatever woke it.
    pub fn park(&self, worker: usize, timeout: Option<Duration>) -> Woken {
        let woken = self.rest(worker, timeout);
        self.cancel_park(worker);
        woken
    }

    /// [`park`](Idle::park) after which a worker that was not woken still counts as parked. The
    /// caller rests again or calls [`cancel_park`](Idle::cancel_park).
    pub fn rest(&self, worker: usize, timeout: Option<Duration>) -> Woken {
        self.parkers[worker].park(timeout)
    }

    /// [`rest`](Idle::rest) in a call of the operating system. See [`Parker::park_in`].
    pub fn rest_in(&self, worker: usize, wait: impl FnOnce()) -> Woken {
        self.parkers[worker].park_in(wait)
    }

    /// Notifies that a worker has queued work that others can steal. This is one load unless a
    /// worker has to be woken. The module documentation says when a `SeqCst` fence should precede.
    #[inline]
    pub fn notify_local(&self) {
        if self.counts().needs_helper() {
            self.wake(|counts, parked| parked.newest_sleeper().filter(|_| counts.needs_helper()));
        }
    }

    /// Notifies that any thread has queued global work. Active workers check that queue regularly.
    pub fn notify_remote(&self) {
        fence(SeqCst);
        if self.counts().needs_searcher() {
            self.wake(|counts, parked| {
                let preferred = parked.watcher.or(parked.newest_sleeper());
                preferred.filter(|_| counts.needs_searcher())
            });
        }
    }

    /// Notifies that any thread has queued work that only this worker runs.
    pub fn notify_worker(&self, worker: usize) {
        fence(SeqCst);
        if self.counts().parked() > 0 {
            self.wake(|_, _| Some(worker));
        }
    }

    /// Notifies that a thread outside the workers has armed a timer that is due before all others.
    /// The worker that sleeps until the next timer is woken to check it. If there is none, a worker
    /// is woken to watch. A searching worker makes both unnecessary: it checks the timers before it
    /// parks, or after [`found_work`](Idle::found_work).
    pub fn notify_timers(&self) {
        fence(SeqCst);
        self.wake(|counts, parked| match counts.timers_covered {
            true => parked.driver,
            false => parked.newest_sleeper().filter(|_| counts.needs_helper()),
        });
    }

    /// Wakes all workers and lets none park any more.
    pub fn shutdown(&self) {
        let mut parked = lock(&self.parked);
        parked.closed = true;
        let mut all = parked.sleepers.clone();
        all.extend(parked.watcher);
        for &worker in &all {
            self.remove_parked(&mut parked, worker);
        }
        drop(parked);
        all.into_iter().for_each(|worker| self.parkers[worker].unpark());
    }

    /// Wakes the chosen worker if it is parked. `choose` runs under the lock.
    fn wake(&self, choose: impl FnOnce(Counts, &Parked) -> Option<usize>) {
        let mut parked = lock(&self.parked);
        let chosen = choose(self.counts(), &parked);
        let woken = chosen.filter(|&worker| self.remove_parked(&mut parked, worker));
        drop(parked);
        if let Some(worker) = woken {
            self.parkers[worker].unpark();
        }
    }

    /// Makes a parked worker a searcher; returns whether it was parked.
    fn remove_parked(&self, parked: &mut Parked, worker: usize) -> bool {
        let Some(was) = parked.remove(worker) else { return false };
        self.update(|counts| {
            counts.searching += 1;
            if was.watcher {
                counts.watching = false;
            } else {
                counts.asleep -= 1;
            }
            counts.timers_covered &= !was.driver;
        });
        true
    }

    #[inline]
    fn counts(&self) -> Counts {
        Counts::unpack(self.word.load(Relaxed))
    }

    /// Applies `change` to the counts atomically; returns the previous counts.
    fn update(&self, mut change: impl FnMut(&mut Counts)) -> Counts {
        let mut word = self.word.load(Relaxed);
        loop {
            let mut counts = Counts::unpack(word);
            change(&mut counts);
            match self.word.compare_exchange_weak(word, counts.pack(), SeqCst, Relaxed) {
                Ok(_) => return Counts::unpack(word),
                Err(other) => word = other,
            }
        }
    }
}
