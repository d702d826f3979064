//! Something happened.
//!
//! A single notification is a permit of a pool that never has more than one free and to which
//! nothing is given back. A notification of all calls everybody in the line, and counts, so that
//! futures that were made before and join the line later know of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use asx_task::backtrace::{Side, Thing, Usage};
use asx_task::footprint;
use asx_task::operation::Wait;
use asx_task::{CancelSafe, Cancelled, Cx};

use super::claim::{Claim, HasPool, Held, RegionRef, Step};
use super::pool::Pool;
use crate::prim::atomic::{AtomicUsize, Ordering};

/// Wakes tasks that wait for something to happen.
///
/// ```
/// use asx::{Cancelled, Cx, sync::Notify};
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// async fn until_ready(cx: &Cx, ready: &AtomicBool, changed: &Notify) -> Result<(), Cancelled> {
///     loop {
///         let notified = changed.notified(cx); // knows of every `notify_waiters` from here on
///         if ready.load(Ordering::Acquire) {
///             return Ok(());
///         }
///         notified.await?;
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Notify {
    pool: Pool,
    /// How often all were notified.
    rounds: AtomicUsize,
    usage: Usage,
}

impl Notify {
    /// Nothing has happened yet.
    #[track_caller]
    pub fn new() -> Notify {
        Notify { pool: Pool::new(0, 1), ..Notify::const_new() }
    }

    const_fn! {
        /// The same for a `static`: see [`Mutex::const_new`](super::Mutex::const_new).
        #[track_caller]
        pub fn const_new() -> Notify {
            let rounds = AtomicUsize::new(0);
            Notify { pool: Pool::const_new(0, 1), rounds, usage: Usage::new() }
        }
    }

    /// Notifies the task that has waited longest. If none waits, the next one that does won't have
    /// to; several such notifications are stored as one.
    #[inline]
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn notify_one(&self) {
        let _after = footprint::operation();
        self.usage.used(Side::Sends);
        self.pool.give(1);
    }

    /// Notifies every [`notified`](Self::notified) future that exists and hasn't been notified,
    /// polled or not. Nothing is stored for later ones.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn notify_waiters(&self) {
        let _after = footprint::operation();
        self.usage.used(Side::Sends);
        self.pool.object().write();
        // Counted before the line is called: who joins it too late for the call sees the count.
        self.rounds.fetch_add(1, Ordering::Release);
        self.pool.excuse_all();
    }

    /// Waits to be notified. Cancel-safe: when dropped, a single notification that was meant for it
    /// goes to the next in line, or is stored.
    #[inline]
    #[track_caller]
    pub fn notified<'a, 'c>(&'a self, cx: &'c Cx) -> Notified<'a, 'c> {
        let _after = footprint::operation();
        Notified(Round::new(cx, self))
    }

    /// [`notified`](Self::notified), with a wait that keeps this alive instead of borrowing it.
    #[track_caller]
    pub fn notified_owned<'c>(self: &Arc<Self>, cx: &'c Cx) -> NotifiedOwned<'c> {
        let _after = footprint::operation();
        NotifiedOwned(Round::new(cx, self.clone()))
    }
}

impl Default for Notify {
    fn default() -> Self {
        Notify::new()
    }
}

impl HasPool for Notify {
    fn pool(&self) -> &Pool {
        &self.pool
    }
}

/// The wait of [`Notify::notified`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Notified<'a, 'c>(Round<'c, &'a Notify>);

/// The wait of [`Notify::notified_owned`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct NotifiedOwned<'c>(Round<'c, Arc<Notify>>);

impl Notified<'_, '_> {
    /// Takes its place in line now, before it is polled: whether it is notified already. What is
    /// notified from here on, [one](Notify::notify_one) or all, reaches it.
    ///
    /// It looks for no cancel and waits for nothing. If it is dropped instead of awaited, a
    /// notification that was meant for it is passed on.
    ///
    /// ```
    /// use asx::{Cancelled, Cx, sync::Notify};
    ///
    /// async fn ask(cx: &Cx, answered: &Notify, send: impl Fn()) -> Result<(), Cancelled> {
    ///     let mut answer = answered.notified(cx);
    ///     answer.enable();
    ///     send(); // even if the answer comes before the next line, it is ours
    ///     answer.await
    /// }
    /// ```
    pub fn enable(&mut self) -> bool {
        self.0.enable()
    }
}

impl NotifiedOwned<'_> {
    /// Takes its place in line now, as [`Notified::enable`] does.
    pub fn enable(&mut self) -> bool {
        self.0.enable()
    }
}

/// A wait for a single notification or the next one of all.
#[derive(Debug)]
struct Round<'c, H: RegionRef<Target = Notify>> {
    notify: H,
    /// As many rounds as there were when it was made.
    rounds: usize,
    claim: Claim<&'c Cx, H>,
    /// What came before it was polled: given back if it is not taken.
    came: Option<Held<H>>,
}

impl<'c, H: RegionRef<Target = Notify> + Clone> Round<'c, H> {
    #[track_caller]
    fn new(cx: &'c Cx, notify: H) -> Self {
        notify.pool.object().read();
        let rounds = notify.rounds.load(Ordering::Acquire);
        let claim = Claim::new(cx, notify.clone(), 1, Wait::Signal);
        Round { notify, rounds, claim, came: None }
    }

    fn enable(&mut self) -> bool {
        let _after = footprint::operation();
        if self.came.is_none() {
            // Whoever polls it leaves its own waker.
            let context = &mut Context::from_waker(Waker::noop());
            self.came = self.step(context);
        }
        self.came.is_some()
    }

    /// Looks whether it was notified, or stands in the line for it.
    fn step(&mut self, task: &mut Context<'_>) -> Option<Held<H>> {
        let first = !self.claim.is_waiting();
        if first && self.is_past() {
            return Some(self.claim.nothing());
        }
        match self.claim.step(task) {
            Step::Has(held) => Some(held),
            // A round that came before it stood in the line hasn't called it.
            Step::Waits if first && self.is_past() => {
                self.claim.leave();
                Some(self.claim.nothing())
            }
            Step::Waits => None,
            Step::Closed => unreachable!("it is never closed"),
        }
    }

    /// Whether all were notified since it was made.
    fn is_past(&self) -> bool {
        self.notify.rounds.load(Ordering::Acquire) != self.rounds
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Cancelled>> {
        let _after = footprint::after_operation();
        if let Err(cancelled) = ready!(self.claim.poll_proceed(task)) {
            self.came = None;
            return Poll::Ready(Err(cancelled));
        }
        match self.came.take().or_else(|| self.step(task)) {
            Some(held) => {
                held.forget();
                Poll::Ready(Ok(()))
            }
            None => {
                let pending = self.claim.pending(task);
                self.notify.usage.awaits(Thing::Notify, Side::Sends);
                pending
            }
        }
    }
}

impl Future for Notified<'_, '_> {
    type Output = Result<(), Cancelled>;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll(task)
    }
}

impl CancelSafe for Notified<'_, '_> {}

impl Future for NotifiedOwned<'_> {
    type Output = Result<(), Cancelled>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll(task)
    }
}

impl CancelSafe for NotifiedOwned<'_> {}
