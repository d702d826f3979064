//! Something happened.
//!
//! A single notification is a permit of a pool that never has more than one free and to which
//! nothing is given back. A notification of all calls everybody in the line, and counts, so that
//! futures that were made before and join the line later know of it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::operation::Wait;
use asx_task::{CancelSafe, Cancelled, Cx};

use super::claim::{Claim, HasPool, Step};
use super::pool::Pool;
use crate::prim::atomic::{AtomicUsize, Ordering};

/// Wakes tasks that wait for something to happen.
///
/// ```
/// use asx_runtime::{Cancelled, Cx, sync::Notify};
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
}

impl Notify {
    const_fn! {
        /// Nothing has happened yet.
        #[track_caller]
        pub fn new() -> Notify {
            Notify { pool: Pool::new(0, 1), rounds: AtomicUsize::new(0) }
        }
    }

    /// Notifies the task that has waited longest. If none waits, the next one that does won't have
    /// to; several such notifications are stored as one.
    #[inline]
    pub fn notify_one(&self) {
        self.pool.give(1);
    }

    /// Notifies every [`notified`](Self::notified) future that exists and hasn't been notified,
    /// polled or not. Nothing is stored for later ones.
    pub fn notify_waiters(&self) {
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
        self.pool.object().read();
        let rounds = self.rounds.load(Ordering::Acquire);
        Notified { notify: self, rounds, claim: Claim::new(cx, self, 1, Wait::Signal) }
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
pub struct Notified<'a, 'c> {
    notify: &'a Notify,
    /// As many rounds as there were when it was made.
    rounds: usize,
    claim: Claim<'c, &'a Notify>,
}

impl Future for Notified<'_, '_> {
    type Output = Result<(), Cancelled>;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        ready!(this.claim.poll_proceed(task))?;
        let first = !this.claim.is_waiting();
        if first && this.is_past() {
            return Poll::Ready(Ok(()));
        }
        match this.claim.step(task) {
            Step::Has(held) => {
                held.forget();
                Poll::Ready(Ok(()))
            }
            // A round that came before it stood in the line hasn't called it.
            Step::Waits if first && this.is_past() => {
                this.claim.withdraw();
                Poll::Ready(Ok(()))
            }
            Step::Waits => this.claim.pending(task),
            Step::Closed => unreachable!("it is never closed"),
        }
    }
}

impl Notified<'_, '_> {
    /// Whether all were notified since it was made.
    fn is_past(&self) -> bool {
        self.notify.rounds.load(Ordering::Acquire) != self.rounds
    }
}

impl CancelSafe for Notified<'_, '_> {}
