//! What tasks have to do with a pool: a [`Claim`] waits for permits, a [`Held`] has them.

use std::borrow::Borrow;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use asx_task::footprint;
use asx_task::holders::Holder;
use asx_task::operation::{Registration, Wait};
use asx_task::waits::Note;
use asx_task::{Cancelled, Cx};

use super::AcquireError;
use super::line::Place;
use super::pool::{Answer, Pool, Refusal};

/// What has a pool.
pub(crate) trait HasPool {
    fn pool(&self) -> &Pool;
}

/// How a claim and what it yields hold on to the owner of the pool: a borrow or an `Arc`, both of
/// which lead to the same place however often they are followed.
pub(crate) trait RegionRef: Deref<Target: HasPool> + Unpin {}

impl<L: HasPool + ?Sized> RegionRef for &L {}
impl<L: HasPool + ?Sized> RegionRef for Arc<L> {}

impl HasPool for Pool {
    fn pool(&self) -> &Pool {
        self
    }
}

/// A wait for permits, from its first poll on, with a context that is borrowed or its own.
pub(crate) struct Claim<C: Borrow<Cx>, H: RegionRef> {
    cx: C,
    /// Gone once the claim is answered.
    home: Option<H>,
    wants: usize,
    place: Option<Place>,
    /// While it is in the line.
    note: Note,
    on: Wait,
    registration: Registration,
    at: &'static Location<'static>,
}

impl<C: Borrow<Cx>, H: RegionRef> Claim<C, H> {
    #[track_caller]
    pub(crate) fn new(cx: C, home: H, wants: usize, on: Wait) -> Self {
        let note = Note::NOTHING;
        let at = Location::caller();
        Claim {
            cx,
            home: Some(home),
            wants,
            place: None,
            note,
            on,
            registration: Registration::NONE,
            at,
        }
    }

    /// What comes first in every poll, as [`Cx::poll_proceed`]: leaves the line if the task is to
    /// stop.
    pub(crate) fn poll_proceed(&mut self, task: &Context<'_>) -> Poll<Result<(), Cancelled>> {
        let proceeds = self.cx.borrow().poll_proceed(task, &mut self.registration);
        if let Poll::Ready(Err(_)) = proceeds {
            self.withdraw();
        }
        proceeds
    }

    /// Takes the permits, or stands in the line for them.
    pub(crate) fn step(&mut self, task: &mut Context<'_>) -> Step<H> {
        let pool = self.home.as_deref().expect("a future is not polled once it is ready").pool();
        let waited = self.place.is_some();
        let answer = match self.place {
            Some(_) => pool.look(&mut self.place, task.waker()),
            None => {
                let answer = pool.enter(self.wants, task.waker(), &mut self.place);
                if answer.is_none() {
                    self.note = Note::waits(pool, pool.is_all(self.wants), self.at);
                }
                answer
            }
        };
        let permits = match answer {
            None => return Step::Waits,
            Some(Answer::Closed) => {
                self.note = Note::NOTHING;
                return Step::Closed;
            }
            Some(Answer::Granted) => self.wants,
            Some(Answer::Excused) => 0,
        };
        self.note = Note::NOTHING;
        let home = self.home.take().expect("it was there above");
        let note = Note::holds(home.pool(), Some(self.at));
        let holder = || Holder::of(self.cx.borrow());
        match waited {
            // The waker it was handed to may have told nothing of the task.
            true => home.pool().handed_to(permits, holder()),
            false => home.pool().taken_by(permits, holder),
        }
        Step::Has(Held { home, permits, note })
    }

    /// Says what the task waits for, which is the last thing before it does.
    pub(crate) fn pending<T>(&mut self, task: &Context<'_>) -> Poll<T> {
        self.cx.borrow().waits(self.on, self.at, task.waker(), &mut self.registration);
        Poll::Pending
    }

    /// Leaves the line, if in it.
    pub(crate) fn withdraw(&mut self) {
        self.leave();
        self.home = None;
    }

    /// Leaves the line, if in it; it may be asked again.
    pub(crate) fn leave(&mut self) {
        if let (Some(home), Some(place)) = (&self.home, self.place.take()) {
            self.note = Note::NOTHING;
            home.pool().leave(place, self.wants);
        }
    }

    /// A new wait of the same kind, once this one is answered.
    #[cfg(feature = "stream")]
    pub(crate) fn renew(&mut self, home: H) {
        self.withdraw();
        self.registration = Registration::NONE;
        self.home = Some(home);
    }

    /// No permits, as if it had been excused: it is answered.
    pub(crate) fn nothing(&mut self) -> Held<H> {
        let home = self.home.take().expect("a future is not polled once it is ready");
        Held { home, permits: 0, note: Note::NOTHING }
    }

    /// Where it is asked for.
    #[inline]
    pub(crate) fn place_in_source(&self) -> &'static Location<'static> {
        self.at
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.place.is_some()
    }
}

/// How far a claim has come.
pub(crate) enum Step<H: RegionRef> {
    /// It has what it wanted, or was excused and has nothing.
    Has(Held<H>),
    /// It stands in the line.
    Waits,
    /// The pool is closed.
    Closed,
}

impl<C: Borrow<Cx> + Unpin, H: RegionRef> Future for Claim<C, H> {
    type Output = Result<Held<H>, AcquireError>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let this = self.get_mut();
        ready!(this.poll_proceed(task))?;
        match this.step(task) {
            Step::Has(held) => Poll::Ready(Ok(held)),
            Step::Waits => this.pending(task),
            Step::Closed => Poll::Ready(Err(AcquireError::Closed)),
        }
    }
}

impl<C: Borrow<Cx>, H: RegionRef> Drop for Claim<C, H> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl<C: Borrow<Cx>, H: RegionRef> fmt::Debug for Claim<C, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("wants", &self.wants).field("place", &self.place).finish()
    }
}

/// Permits taken out of their home's pool, given back when dropped. Only a claim and
/// [`Held::try_new`] make one, and only from permits they took.
pub(crate) struct Held<H: RegionRef> {
    home: H,
    permits: usize,
    /// For as long as it is held.
    #[allow(dead_code, reason = "what matters is when it is dropped")]
    note: Note,
}

impl<H: RegionRef> Held<H> {
    pub(crate) fn try_new(home: H, count: usize) -> Result<Self, Refusal> {
        home.pool().try_take(count)?;
        home.pool().taken_by(count, Holder::current);
        let note = Note::holds(home.pool(), None);
        Ok(Held { home, permits: count, note })
    }

    pub(crate) fn home(&self) -> &H {
        &self.home
    }

    pub(crate) fn permits(&self) -> usize {
        self.permits
    }

    /// Gives back all but `count`.
    pub(crate) fn keep(&mut self, count: usize) {
        let surplus = self.permits.saturating_sub(count);
        if surplus > 0 {
            self.home.pool().is_left(self.permits);
        }
        self.permits -= surplus;
        self.home.pool().give(surplus);
    }

    /// Takes `count` of them out, if there are so many.
    pub(crate) fn split(&mut self, count: usize) -> Option<Self>
    where
        H: Clone,
    {
        let left = self.permits.checked_sub(count)?;
        let home = self.home.clone();
        let note = Note::holds(home.pool(), None);
        self.permits = left;
        Some(Held { home, permits: count, note })
    }

    /// Takes those of another one, which are of the same pool.
    #[track_caller]
    pub(crate) fn merge(&mut self, mut other: Self) {
        let same = std::ptr::eq(self.home.pool(), other.home.pool());
        assert!(same, "permits of different semaphores");
        self.permits += std::mem::take(&mut other.permits);
    }

    /// The same permits, of a home that leads to the same pool in another way.
    pub(crate) fn rehome<G: RegionRef>(mut self, to: impl FnOnce(&H) -> G) -> Held<G> {
        let home = to(&self.home);
        debug_assert!(std::ptr::eq(self.home.pool(), home.pool()));
        let permits = std::mem::take(&mut self.permits);
        let note = std::mem::take(&mut self.note);
        Held { home, permits, note }
    }

    /// Lets the permits vanish.
    pub(crate) fn forget(mut self) {
        self.permits = 0;
    }
}

impl<H: RegionRef> fmt::Debug for Held<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("permits", &self.permits).finish_non_exhaustive()
    }
}

impl<H: RegionRef> Drop for Held<H> {
    fn drop(&mut self) {
        if self.permits > 0 {
            let _after = footprint::operation();
            self.home.pool().is_left(self.permits);
            self.home.pool().give(self.permits);
        }
    }
}
