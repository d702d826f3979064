//! A pool of permits and the line in front of it: what every lock and signal here is made of.
//!
//! A semaphore is a pool; a mutex is a pool of which everybody takes all; a reader takes one permit
//! of its lock and a writer takes all; a stored notification is a permit that is never given back.
//! What tasks hold of it are the claims and permits of `super::claim`.
//!
//! Who holds a lock is noted for dumps, beside all this: see [`asx_task::holders`].
//!
//! The state is one word: the permits that are free, whether anybody waits, whether it is closed.
//!
//! - Nobody waits: taking and giving are one compare-and-swap each, without the lock.
//! - Somebody waits (`WAITING`, set exactly while the line is not empty): the word changes only
//!   under the lock. Newcomers join the line even if there is room, and what is given goes to the
//!   head, in the hand of the giver: nobody can come between.
//!
//! Joining sets `WAITING` by a compare-and-swap that fails if permits came meanwhile; so a giver
//! either leaves its permits to the one who joins or sees the bit and goes to the lock. A claim
//! that is dropped or cancelled leaves the line, and gives back what it was granted unknowingly.

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use asx_task::footprint::{self, Object};
use asx_task::holders::{self, Holder, HolderCell, LockLine};
use asx_task::operation::guard;
use asx_task::waits;

use super::line::{Left, Line, Look, Place, Wakes};
use crate::prim::atomic::{AtomicUsize, Ordering};
use crate::prim::{Mutex, MutexGuard, lock_unseen};

/// No more permits are granted.
const CLOSED: usize = 1;
/// Somebody is in the line.
const WAITING: usize = 2;
/// One free permit.
const ONE: usize = 4;

/// All permits of a lock: as many can read at once.
pub(super) const FULL: usize = (u32::MAX >> 3) as usize;

/// The most permits any pool can count.
pub(crate) const MAX: usize = usize::MAX / (2 * ONE);

pub(crate) struct Pool {
    word: AtomicUsize,
    /// No more than this are ever free: what is given beyond it is lost.
    limit: usize,
    /// There is a line from the first wait on.
    line: OnceLock<Arc<WaitingLine>>,
    /// Who holds the lock that this is the pool of.
    holder: HolderCell,
    object: Object,
}

/// The line, and who holds the lock that it is for while anybody is in it: dumps look at both.
struct WaitingLine {
    line: Mutex<Line<usize, Answer>>,
    holder: HolderCell,
}

impl LockLine for WaitingLine {
    fn each_waiting(&self, tell: &mut dyn FnMut(&Waker, Holder)) {
        let line = lock_unseen(&self.line);
        line.waiting().for_each(|waker| tell(waker, self.holder.get()));
    }
}

/// What a waiter is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has the permits it wanted.
    Granted,
    /// It needn't wait any longer, and has none.
    Excused,
    /// It will never have any.
    Closed,
}

/// Why permits can't be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too few are free, or others wait.
    Busy,
    /// The pool is closed.
    Closed,
}

impl Pool {
    /// `free` permits, and never more than `limit`.
    #[track_caller]
    pub(crate) fn new(free: usize, limit: usize) -> Pool {
        Pool { object: Object::new_at(Location::caller()), ..Pool::const_new(free, limit) }
    }

    const_fn! {
        /// The same for a `static`.
        #[track_caller]
        pub(crate) fn const_new(free: usize, limit: usize) -> Pool {
            let word = AtomicUsize::new(if free < limit { free } else { limit } * ONE);
            let object = Object::made_at(Location::caller());
            Pool { word, limit, line: OnceLock::new(), holder: HolderCell::new(), object }
        }
    }

    /// How many permits are free, whoever waits for them.
    pub(crate) fn free(&self) -> usize {
        self.object.read();
        self.word.load(Ordering::Acquire) / ONE
    }

    /// Whether whoever wants this many wants all there are.
    pub(crate) fn is_all(&self, count: usize) -> bool {
        count >= self.limit
    }

    /// Its name, for whatever else belongs to it.
    pub(crate) fn object(&self) -> Object {
        self.object
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.object.read();
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether somebody is at the line right now.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_locked(&self) -> bool {
        self.line.get().is_some_and(|shared| shared.line.try_lock().is_err())
    }

    /// Who holds the lock, and who does in the eyes of those in line, if there is one.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn holders(&self) -> (Holder, Option<Holder>) {
        (self.holder.get(), self.line.get().map(|line| line.holder.get()))
    }

    /// Takes permits if nobody waits.
    #[inline]
    pub(crate) fn try_take(&self, count: usize) -> Result<(), Refusal> {
        self.object.write();
        // Acquire: what the last holders did is seen by this one; and where the pool is closed,
        // what was done before that.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let next = take(word, count)?;
            match self.word.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// Takes as many as are free, and `most` at most, if nobody waits: how many.
    pub(crate) fn take_up_to(&self, most: usize) -> usize {
        self.object.write();
        // Acquire: as in `try_take`.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let count = most.min(word / ONE);
            let Ok(next) = take(word, count) else { return 0 };
            match self.word.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return count,
                Err(now) => word = now,
            }
        }
    }

    /// Gives permits to the head of the line, or leaves them free.
    #[inline]
    pub(crate) fn give(&self, count: usize) {
        let done = self.give_freely(count);
        if !done {
            self.give_waiters(count);
        }
    }

    fn line(&self) -> MutexGuard<'_, Line<usize, Answer>> {
        self.object.write();
        lock_unseen(&self.waiting_line().line)
    }

    fn waiting_line(&self) -> &WaitingLine {
        self.line.get_or_init(|| self.new_line())
    }

    #[cold]
    fn new_line(&self) -> Arc<WaitingLine> {
        let line = Mutex::new(Line::new());
        let line = Arc::new(WaitingLine { line, holder: HolderCell::new() });
        if self.is_lock() {
            holders::register(Arc::downgrade(&line) as _);
        }
        line
    }

    /// Whether it is the pool of a lock: who has all permits is its holder.
    fn is_lock(&self) -> bool {
        self.limit == FULL
    }

    /// The head of the line has got so many, whether or not it knows.
    #[cold]
    pub(crate) fn handed_to(&self, count: usize, holder: Holder) {
        if count == FULL {
            self.holder.set(holder);
            self.waiting_line().holder.set(holder);
        }
    }

    /// Somebody has taken so many.
    #[inline]
    pub(crate) fn taken_by(&self, count: usize, holder: impl FnOnce() -> Holder) {
        if count == FULL {
            self.holder.set(holder());
        }
    }

    /// Whoever has so many is about to give them back.
    #[inline]
    pub(crate) fn is_left(&self, count: usize) {
        if count == FULL {
            self.holder.set(Holder::UNKNOWN);
        }
    }

    fn give_waiters(&self, count: usize) {
        let mut wakes = Wakes::default();
        self.settle(&mut self.line(), count, &mut wakes);
    }

    /// Calls everybody in the line.
    pub(crate) fn excuse_all(&self) {
        let mut wakes = Wakes::default();
        let mut line = self.line();
        self.call_all(&mut line, Answer::Excused, &mut wakes);
    }

    /// From now on nothing is granted.
    pub(crate) fn close(&self) {
        let mut wakes = Wakes::default();
        let mut line = self.line();
        self.word.fetch_or(CLOSED, Ordering::Release);
        self.call_all(&mut line, Answer::Closed, &mut wakes);
    }

    fn call_all(&self, line: &mut Line<usize, Answer>, answer: Answer, wakes: &mut Wakes) {
        while let Some(waker) = line.call(answer) {
            wakes.push(waker);
        }
        self.word.fetch_and(!WAITING, Ordering::Release);
    }

    /// Leaves permits free; false if somebody waits for them.
    #[inline]
    fn give_freely(&self, count: usize) -> bool {
        self.object.write();
        let mut word = self.word.load(Ordering::Relaxed);
        while word & WAITING == 0 {
            let next = self.raise(word, count);
            // Release: what this holder did is seen by the next ones.
            match self.word.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Shares out what is free and what is given, head first, and stops at the first waiter that
    /// wants more than is left.
    fn settle(&self, line: &mut Line<usize, Answer>, given: usize, wakes: &mut Wakes) {
        let done = self.give_freely(given);
        if done {
            return; // The last waiter has left. Nobody can join while the lock is held.
        }
        // Whoever set `WAITING` acquired what was given freely before, and the lock passed it on.
        let mut word = self.raise(self.word.load(Ordering::Relaxed), given);
        while let Some(&wants) = line.head()
            && wants <= word / ONE
            && let Some(waker) = line.call(Answer::Granted)
        {
            word -= wants * ONE;
            waits::granted(self, &waker);
            self.handed_to(wants, Holder::of_waker(&waker));
            wakes.push(waker);
        }
        if line.len() == 0 {
            word &= !WAITING;
        }
        self.word.store(word, Ordering::Release);
    }

    fn raise(&self, word: usize, count: usize) -> usize {
        let free = (word / ONE).saturating_add(count).min(self.limit);
        (free * ONE) | (word % ONE)
    }

    /// Takes permits or joins the line.
    #[inline]
    pub(crate) fn enter(
        &self,
        count: usize,
        waker: &Waker,
        place: &mut Option<Place>,
    ) -> Option<Answer> {
        match self.try_take(count) {
            Ok(()) => Some(Answer::Granted),
            Err(Refusal::Closed) => Some(Answer::Closed),
            Err(Refusal::Busy) => self.join(count, waker, place),
        }
    }

    /// Joins the line, unless there are permits after all.
    fn join(&self, count: usize, waker: &Waker, place: &mut Option<Place>) -> Option<Answer> {
        let waker = waker.clone();
        let mut line = self.line();
        let mut word = self.word.load(Ordering::Relaxed);
        let answer = loop {
            let (next, joins) = match take(word, count) {
                Ok(next) => (next, false),
                Err(Refusal::Closed) => break Answer::Closed,
                Err(Refusal::Busy) => (word | WAITING, true),
            };
            match self.word.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) if joins => {
                    if line.len() == 0 {
                        // From now on the lock is handed over by who gives it back.
                        self.waiting_line().holder.set(self.holder.get());
                    }
                    *place = Some(line.join(waker, count));
                    return None;
                }
                Ok(_) => break Answer::Granted,
                Err(now) => word = now,
            }
        };
        drop(line);
        guard::drop_waker(Some(waker));
        Some(answer)
    }

    /// Looks whether a waiter was called.
    pub(crate) fn look(&self, place: &mut Option<Place>, waker: &Waker) -> Option<Answer> {
        let mut fresh = None;
        let answer = loop {
            // Who finds that it was called uses its place, and not what all the others do.
            let look = lock_unseen(&self.waiting_line().line).look(place, waker, &mut fresh);
            if !matches!(look, Look::Called(_)) {
                self.object.write();
            }
            match look {
                Look::Called(answer) => break Some(answer),
                Look::Waiting => break None,
                Look::Stranger => fresh = Some(waker.clone()),
            }
        };
        guard::drop_waker(fresh);
        answer
    }

    /// Takes a waiter of `count` permits out of the line and passes on what it was granted.
    pub(crate) fn leave(&self, place: Place, count: usize) {
        let mut wakes = Wakes::default();
        let mut line = self.line();
        let mut unused = None;
        match line.leave(place) {
            Left::Called(Answer::Granted) => {
                self.is_left(count);
                self.settle(&mut line, count, &mut wakes);
            }
            Left::Called(_) => {}
            Left::Waiting(waker) => {
                unused = Some(waker);
                // Those behind may want less than it did.
                self.settle(&mut line, 0, &mut wakes);
            }
        }
        drop(line);
        guard::drop_waker(unused);
    }
}

/// The word with `count` permits fewer.
fn take(word: usize, count: usize) -> Result<usize, Refusal> {
    if word & CLOSED != 0 {
        Err(Refusal::Closed)
    } else if word & WAITING != 0 || word / ONE < count {
        Err(Refusal::Busy)
    } else {
        Ok(word - count * ONE)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _after = footprint::operation();
        self.object().read();
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Pool")
            .field("free", &(word / ONE))
            .field("waited_for", &(word & WAITING != 0))
            .field("closed", &(word & CLOSED != 0))
            .finish()
    }
}
