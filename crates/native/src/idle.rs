//! Who sleeps, and who must be woken when there is work.
//!
//! To wake a thread on another core is the dearest thing a scheduler does, and a wakeup that is
//! lost is a hang. So a worker is woken only when nobody else is about to look:
//!
//! ```text
//!            start_search              prepare_park     Watching: parked for a while; just one,
//!   Active --------------> Searching --------------->     while another is Active, now and then
//!          <--------------           <---------------   Asleep: parked until woken; the last one
//!            found_work          notify_*, time over,           until the next timer is due
//!                                cancel_park, shutdown
//! ```
//!
//! A worker out of work goes round like this (which queues there are is its own business):
//!
//! ```text
//! start_search()
//! loop:  if look everywhere finds a task:
//!            if found_work() and more is visible: notify_remote() or notify_local()
//!            run it
//!        match prepare_park(me):   Closed: end   otherwise: if anything is seen: cancel_park(me)
//!                                                           else: park(me, timeout by kind)
//! ```
//!
//! # Why no wakeup is lost
//!
//! One word counts who searches, watches and sleeps; all that changes it is a read-modify-write.
//! A lock guards who exactly is parked; it is taken only to park and to wake.
//!
//! 1. *One of the two sees the other.* Who makes work publishes it, then fences, then reads the
//!    word. Who stops looking changes the word, then fences, then looks once more. The two fences
//!    are `SeqCst`, so one is first: either the word that was read has the change, or that last
//!    look sees the work.
//! 2. *Nobody is parked*: nobody is woken. Whoever parks later changes the word later, and so by 1
//!    sees the work in its last look.
//! 3. *Somebody searches*: nobody is woken. The count of searchers falls to zero later, by a worker
//!    that parks or by one that found work and is told by [`found_work`](Idle::found_work) that it
//!    was the last. Either looks once more after that, and by 1 sees the work.
//! 4. *Somebody watches* and the work is a worker's own: nobody is woken. The watcher gets up by
//!    itself: it first becomes a searcher, and then 3 holds.
//! 5. *Otherwise* one parked worker is taken off the list under the lock, counted as a searcher in
//!    its name (so that the next notification finds a searcher) and unparked; its parker keeps the
//!    token should it not sleep yet. It looks, and then 3 holds.
//!
//! # The fence before `notify_local`
//!
//! [`notify_remote`](Idle::notify_remote) fences. [`notify_local`](Idle::notify_local) is one load,
//! and leaves it to the caller. Even without a fence, work in a worker's own queue is not lost: its
//! worker is Active, and looks there before it parks. What can be missed is help. A worker that
//! parks next to an Active one watches, unless another does; so what the load missed is seen at
//! that one's next look. Only when this watcher gets up, misses the push, finds other work and is
//! Active, all while the push is still on its way out of the pushing core, do the sleepers sleep on
//! until the next notification. With a fence before the call, not even that.
//!
//! # Timers
//!
//! Active workers and the watcher look at the timers when they come by. The last worker to sleep
//! (none Active, none Searching) sleeps only until the next timer. This duty ends when it gets up,
//! or when some worker becomes Active and so may arm other timers: that one, or one after it, will
//! be the last again. Who arms a timer from outside calls [`notify_timers`](Idle::notify_timers),
//! which fences as `notify_remote` does; a worker that does and then runs on calls `notify_local`,
//! so that somebody watches, unless it knows that somebody gets up soon. The last searcher to find
//! work does the same if a timer is armed, since that may have been left to it.
//!
//! # The reactor
//!
//! Where sockets are registered, one thread at a time is in the reactor: the one that holds its
//! lock. A worker that parks, and does not merely watch, tries that lock. If it gets it, it sleeps
//! in the reactor ([`rest_in`](Idle::rest_in)), and is woken by an interrupt of that; if not, it
//! sleeps as usual. Active workers and the watcher try it from time to time, for a look that does
//! not wait. Nobody waits for the lock.
//!
//! 1. *An event is seen.* If a worker fails to get the lock, another has it, which sleeps in the
//!    reactor and sees the event, or looks and is not parked. One that looks parks later, and then
//!    tries the lock itself, or goes on looking from time to time as Active workers and watchers
//!    do. So whoever is the last to look is in the reactor, or will be. One that left the reactor
//!    for a task may be held up by that; so one of those who sleep beside it gets up from time to
//!    time and tries the lock again, while anything happens (`reactor/presence.rs`). If none does,
//!    the last searcher to find work wakes one.
//! 2. *The first source.* Without sources no worker sleeps in the reactor. Who registers one counts
//!    it and then calls [`notify_remote`](Idle::notify_remote), as if it were work: a worker that
//!    parks looks at the count after `prepare_park`, so by 1 of the list above it sees the count,
//!    or is woken if nobody searches, and then parks again.
//!
//! The word, the change and the last look are an eventcount (Reed, Kanodia, "Synchronization with
//! Eventcounts and Sequencers", Communications of the ACM, 1979). That at most one notification is
//! under way while a worker searches is the rule of the schedulers of Go and tokio.

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

/// How many workers there can be.
pub const MAX_WORKERS: usize = 1024;

/// How a worker is to park.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the worker is parked already, as far as the others know"]
pub enum ParkKind {
    /// For a short while, then it looks at the others' queues: some other worker is Active, or was
    /// just now.
    Watch,
    /// Until it is woken.
    Sleep,
    /// Until it is woken or the next timer is due: no other worker is Active or Searching. It must
    /// look at the timers after this call.
    Last,
    /// Not at all: there was a [`shutdown`](Idle::shutdown). The worker is still Searching.
    Closed,
}

/// Every source a worker runs entries from, and whether there is something in it: what it looks at
/// between [`prepare_park`](Idle::prepare_park) and parking. A source that is missing here is a
/// lost wakeup, since nobody is woken for what a worker that is still awake could have seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    /// Ready entries that must run on this worker.
    pub(crate) pinned: bool,
    /// This worker's ring, and the backlog behind it.
    pub(crate) queue: bool,
    /// This worker's lanes, which hold what others sent to it as well.
    pub(crate) lanes: bool,
    /// The lanes of all workers.
    pub(crate) global: bool,
    /// What could be stolen from other workers, if this one is the last to sleep.
    pub(crate) others: bool,
    /// A timer is due.
    pub(crate) timer: bool,
}

impl Sources {
    /// Whether a worker that sees this must not park.
    pub(crate) fn keep_awake(self) -> bool {
        let Sources { pinned, queue, lanes, global, others, timer } = self;
        pinned || queue || lanes || global || others || timer
    }
}

/// The states of a fixed number of workers, all of them Active at first.
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
/// assert!(idle.found_work()); // nobody else searches
/// ```
#[derive(Debug)]
pub struct Idle {
    /// [`Counts`], packed.
    word: AtomicU64,
    parked: Mutex<Parked>,
    parkers: Box<[Parker]>,
}

impl Idle {
    /// For so many workers, numbered from 0.
    ///
    /// # Panics
    /// If there are none, or more than [`MAX_WORKERS`].
    pub fn new(workers: usize) -> Idle {
        Idle::with_parkers(workers, Parker::default)
    }

    /// The same, for workers that may also [sleep elsewhere](Idle::rest_in).
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

    /// A thread takes the place of an absent worker: it is Active now.
    pub fn join(&self) {
        self.update(|counts| {
            counts.active += 1;
            counts.timers_covered = false;
        });
    }

    /// An Active worker leaves its place, which nobody is woken for any more. It must then look at
    /// the global queue once more, and notify if it sees anything, or if timers are armed.
    pub fn leave(&self) {
        self.update(|counts| counts.active -= 1);
        fence(SeqCst);
    }

    /// An Active worker has nothing left of its own: it is Searching now.
    pub fn start_search(&self) {
        self.update(|counts| {
            counts.active -= 1;
            counts.searching += 1;
        });
    }

    /// A Searching worker has found something to do: it is Active now.
    ///
    /// Whether it was the last to search: then nobody was woken for work or timers that came
    /// meanwhile, and it must look at all queues and the timers once more, and notify if it sees
    /// anything.
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

    /// A Searching worker has found nothing: for all others it is parked now. Before it really is,
    /// it must look at all queues once more, and [`cancel_park`](Idle::cancel_park) if it sees
    /// anything; otherwise [`park`](Idle::park).
    pub fn prepare_park(&self, worker: usize) -> ParkKind {
        self.prepare(worker, false)
    }

    /// [`prepare_park`](Idle::prepare_park) by a worker that watched, and would go on with it
    /// though nobody is Active just now: somebody will be again before it is worth to sleep.
    pub fn prepare_watch(&self, worker: usize) -> ParkKind {
        self.prepare(worker, true)
    }

    fn prepare(&self, worker: usize, watches_on: bool) -> ParkKind {
        let mut parked = lock(&self.parked);
        if parked.closed {
            return ParkKind::Closed;
        }
        let mut kind = ParkKind::Sleep;
        self.update(|counts| kind = counts.park(watches_on));
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

    /// The worker does not park after all: it is Searching again. It may find that it was woken
    /// already; then its next park may end at once, for no other reason.
    pub fn cancel_park(&self, worker: usize) {
        self.take_off(&mut lock(&self.parked), worker);
    }

    /// Parks the calling worker, which has called [`prepare_park`](Idle::prepare_park). Afterwards
    /// it is Searching, whatever woke it.
    pub fn park(&self, worker: usize, timeout: Option<Duration>) -> Woken {
        let woken = self.rest(worker, timeout);
        self.cancel_park(worker);
        woken
    }

    /// [`park`](Idle::park) after which the worker still counts as parked, if it was not woken. It
    /// rests again, or calls [`cancel_park`](Idle::cancel_park).
    pub fn rest(&self, worker: usize, timeout: Option<Duration>) -> Woken {
        self.parkers[worker].park(timeout)
    }

    /// [`rest`](Idle::rest) in a call of the operating system: see [`Parker::park_in`].
    pub fn rest_in(&self, worker: usize, wait: impl FnOnce()) -> Woken {
        self.parkers[worker].park_in(wait)
    }

    /// A worker has put work where others can steal it. One load unless somebody is to be woken;
    /// the module says when a `SeqCst` fence should come before it.
    #[inline]
    pub fn notify_local(&self) {
        if self.counts().lacks_eyes() {
            self.wake(|counts, parked| parked.newest_sleeper().filter(|_| counts.lacks_eyes()));
        }
    }

    /// Anyone has put work into the global queue. Active workers look there all the time.
    pub fn notify_remote(&self) {
        fence(SeqCst);
        if self.counts().lacks_searcher() {
            self.wake(|counts, parked| {
                let hottest = parked.watcher.or(parked.newest_sleeper());
                hottest.filter(|_| counts.lacks_searcher())
            });
        }
    }

    /// Anyone has put work where only this worker looks.
    pub fn notify_worker(&self, worker: usize) {
        fence(SeqCst);
        if self.counts().parked() > 0 {
            self.wake(|_, _| Some(worker));
        }
    }

    /// A timer was armed from outside that is due before all others: who sleeps until the next
    /// timer looks again; if nobody does so, somebody is to watch. While a worker searches it is
    /// left to that one, which looks at the timers before it parks, or after
    /// [`found_work`](Idle::found_work).
    pub fn notify_timers(&self) {
        fence(SeqCst);
        self.wake(|counts, parked| match counts.timers_covered {
            true => parked.driver,
            false => parked.newest_sleeper().filter(|_| counts.lacks_eyes()),
        });
    }

    /// Wakes everybody, and lets nobody park any more.
    pub fn shutdown(&self) {
        let mut parked = lock(&self.parked);
        parked.closed = true;
        let mut all = parked.sleepers.clone();
        all.extend(parked.watcher);
        for &worker in &all {
            self.take_off(&mut parked, worker);
        }
        drop(parked);
        all.into_iter().for_each(|worker| self.parkers[worker].unpark());
    }

    /// Wakes the chosen worker if it is parked. The choice is made under the lock.
    fn wake(&self, choose: impl FnOnce(Counts, &Parked) -> Option<usize>) {
        let mut parked = lock(&self.parked);
        let chosen = choose(self.counts(), &parked);
        let woken = chosen.filter(|&worker| self.take_off(&mut parked, worker));
        drop(parked);
        if let Some(worker) = woken {
            self.parkers[worker].unpark();
        }
    }

    /// Makes a parked worker a searcher. Whether it was parked.
    fn take_off(&self, parked: &mut Parked, worker: usize) -> bool {
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

    /// Changes the counts at once; returns the old ones.
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
