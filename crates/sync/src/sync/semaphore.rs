//! A counted number of permits.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use asx_task::footprint;
use asx_task::operation::Wait;
use asx_task::{CancelSafe, Cancelled, Cx};

use super::claim::{Claim, HasPool, Held};
use super::pool::{MAX, Pool, Refusal};

/// Permits that tasks take and give back.
///
/// Strictly first come, first served: a task that wants many isn't overtaken by tasks that want
/// few, so that free permits may gather until the head of the line has enough.
///
/// ```
/// use asx::{Cx, sync::{AcquireError, Semaphore}};
///
/// static SLOTS: Semaphore = Semaphore::const_new(8);
///
/// async fn fetch(cx: &Cx, url: &str) -> Result<(), AcquireError> {
///     let _slot = SLOTS.acquire(cx).await?; // given back when dropped
///     let _ = url;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Semaphore {
    pool: Pool,
}

impl Semaphore {
    /// The most permits a semaphore can have free. What would exceed it is lost.
    pub const MAX_PERMITS: usize = MAX;

    /// A semaphore with so many permits, at most [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[track_caller]
    pub fn new(permits: usize) -> Semaphore {
        Semaphore { pool: Pool::new(permits, MAX) }
    }

    const_fn! {
        /// The same for a `static`: see [`Mutex::const_new`](super::Mutex::const_new).
        #[track_caller]
        pub fn const_new(permits: usize) -> Semaphore {
            Semaphore { pool: Pool::const_new(permits, MAX) }
        }
    }

    /// How many permits are free. While tasks wait, these are for the head of the line.
    pub fn available_permits(&self) -> usize {
        let _after = footprint::operation();
        self.pool.free()
    }

    /// Adds new permits; the first waiters get them.
    pub fn add_permits(&self, count: usize) {
        let _after = footprint::operation();
        self.pool.give(count);
    }

    /// Waits for a permit. Cancel-safe: a dropped wait gives up its place in line.
    #[inline]
    #[track_caller]
    pub fn acquire<'a, 'c>(&'a self, cx: &'c Cx) -> Acquire<'a, 'c> {
        self.acquire_many(cx, 1)
    }

    /// Waits for several permits at once: all or none. Cancel-safe: a dropped wait gives up its
    /// place in line. More than [`MAX_PERMITS`](Self::MAX_PERMITS) are never free: that waits until
    /// the semaphore is closed.
    #[inline]
    #[track_caller]
    pub fn acquire_many<'a, 'c>(&'a self, cx: &'c Cx, count: usize) -> Acquire<'a, 'c> {
        Acquire(Claim::new(cx, self, count, Wait::Lock))
    }

    /// Waits for a permit that keeps the semaphore alive instead of borrowing it.
    #[inline]
    #[track_caller]
    pub fn acquire_owned<'c>(self: &Arc<Self>, cx: &'c Cx) -> AcquireOwned<'c> {
        self.acquire_many_owned(cx, 1)
    }

    /// Waits for several permits at once, which keep the semaphore alive.
    #[inline]
    #[track_caller]
    pub fn acquire_many_owned<'c>(self: &Arc<Self>, cx: &'c Cx, count: usize) -> AcquireOwned<'c> {
        AcquireOwned(Claim::new(cx, self.clone(), count, Wait::Lock))
    }

    /// A permit, if one is free now and nobody waits.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let _after = footprint::operation();
        self.try_acquire_many(1)
    }

    /// Several permits, if they are free now and nobody waits.
    pub fn try_acquire_many(&self, count: usize) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let _after = footprint::operation();
        Ok(SemaphorePermit::new(Held::try_new(self, count)?))
    }

    /// A permit that keeps the semaphore alive, if one is free now and nobody waits.
    pub fn try_acquire_owned(self: &Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let _after = footprint::operation();
        self.try_acquire_many_owned(1)
    }

    /// Several permits that keep the semaphore alive, if they are free now and nobody waits.
    pub fn try_acquire_many_owned(
        self: &Arc<Self>,
        count: usize,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let _after = footprint::operation();
        Ok(OwnedSemaphorePermit::new(Held::try_new(self.clone(), count)?))
    }

    /// From now on nobody gets a permit: all who wait or come end with `Closed`. Permits granted
    /// before remain valid.
    pub fn close(&self) {
        let _after = footprint::operation();
        self.pool.close();
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        let _after = footprint::operation();
        self.pool.is_closed()
    }
}

impl HasPool for Semaphore {
    fn pool(&self) -> &Pool {
        &self.pool
    }
}

claims! {
    /// The wait of [`Semaphore::acquire`] and [`Semaphore::acquire_many`].
    Acquire<'a;>(&'a Semaphore) -> Result<SemaphorePermit<'a>, AcquireError>
        = std::convert::identity;
    /// The wait of [`Semaphore::acquire_owned`] and [`Semaphore::acquire_many_owned`].
    AcquireOwned<;>(Arc<Semaphore>) -> Result<OwnedSemaphorePermit, AcquireError>
        = std::convert::identity;
}

/// Permits of a [`Semaphore`], given back when dropped.
#[must_use = "permits are given back when dropped"]
pub struct SemaphorePermit<'a>(Held<&'a Semaphore>);

/// Permits of a [`Semaphore`], given back when dropped, which keep it alive.
#[must_use = "permits are given back when dropped"]
pub struct OwnedSemaphorePermit(Held<Arc<Semaphore>>);

impl<'a> SemaphorePermit<'a> {
    fn new(held: Held<&'a Semaphore>) -> Self {
        SemaphorePermit(held)
    }

    /// How many permits these are.
    pub fn count(&self) -> usize {
        self.0.permits()
    }

    /// Takes `count` of them out, to be given back on their own: `None`, and nothing has changed,
    /// if these are fewer.
    ///
    /// ```
    /// let semaphore = asx::sync::Semaphore::new(4);
    /// let mut all = semaphore.try_acquire_many(4)?;
    /// let one = all.split(1).expect("there are four");
    /// assert_eq!((all.count(), one.count()), (3, 1));
    /// drop(one);
    /// assert_eq!(semaphore.available_permits(), 1);
    /// all.merge(semaphore.try_acquire()?);
    /// assert_eq!(all.count(), 4);
    /// # Ok::<(), asx::sync::TryAcquireError>(())
    /// ```
    pub fn split(&mut self, count: usize) -> Option<Self> {
        self.0.split(count).map(Self::new)
    }

    /// Takes in those of another one, to be given back together.
    ///
    /// # Panics
    /// If they are of another semaphore; the others are given back then.
    #[track_caller]
    pub fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Never gives them back: the semaphore has so many fewer.
    pub fn forget(self) {
        let _after = footprint::operation();
        self.0.forget();
    }
}

impl OwnedSemaphorePermit {
    fn new(held: Held<Arc<Semaphore>>) -> Self {
        OwnedSemaphorePermit(held)
    }

    /// How many permits these are.
    pub fn count(&self) -> usize {
        self.0.permits()
    }

    /// Takes `count` of them out, to be given back on their own: `None`, and nothing has changed,
    /// if these are fewer.
    pub fn split(&mut self, count: usize) -> Option<Self> {
        self.0.split(count).map(Self::new)
    }

    /// Takes in those of another one, to be given back together.
    ///
    /// # Panics
    /// If they are of another semaphore; the others are given back then.
    #[track_caller]
    pub fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Never gives them back: the semaphore has so many fewer.
    pub fn forget(self) {
        let _after = footprint::operation();
        self.0.forget();
    }
}

impl fmt::Debug for SemaphorePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SemaphorePermit").field(&self.count()).finish()
    }
}

impl fmt::Debug for OwnedSemaphorePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedSemaphorePermit").field(&self.count()).finish()
    }
}

/// Why a wait for permits ended without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireError {
    /// The task was asked to stop.
    Cancelled(Cancelled),
    /// The semaphore is closed.
    Closed,
}

impl From<Cancelled> for AcquireError {
    fn from(cancelled: Cancelled) -> Self {
        AcquireError::Cancelled(cancelled)
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcquireError::Cancelled(cancelled) => cancelled.fmt(f),
            AcquireError::Closed => f.write_str("the semaphore is closed"),
        }
    }
}

impl Error for AcquireError {}

/// Why there is no permit at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// Too few are free, or others wait for them.
    NoPermits,
    /// The semaphore is closed.
    Closed,
}

impl From<Refusal> for TryAcquireError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy => TryAcquireError::NoPermits,
            Refusal::Closed => TryAcquireError::Closed,
        }
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryAcquireError::NoPermits => "no permits are free",
            TryAcquireError::Closed => "the semaphore is closed",
        })
    }
}

impl Error for TryAcquireError {}
