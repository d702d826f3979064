//! One holder at a time.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use asx_task::footprint;
use asx_task::operation::Wait;
use asx_task::{CancelSafe, Cancelled, Cx};

use super::TryLockError;
use super::claim::{Claim, HasPool, Held};
use super::pool::Pool;
use super::slot::{FULL, HasSlot, MappedSole, Slot, Sole};

/// A lock whose guard may be held across awaits.
///
/// The lock goes to those who wait in the order they came. It isn't reentrant: a task that locks
/// twice waits for itself. A panic while it is held releases it; there is no poison.
///
/// ```
/// use asx::{Cancelled, Cx, sync::Mutex};
///
/// static TOTAL: Mutex<u64> = Mutex::const_new(0);
///
/// async fn add(cx: &Cx, amount: u64) -> Result<(), Cancelled> {
///     *TOTAL.lock(cx).await? += amount;
///     Ok(())
/// }
/// ```
pub struct Mutex<T: ?Sized> {
    slot: Slot<T>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    #[track_caller]
    pub fn new(value: T) -> Mutex<T> {
        Mutex { slot: Slot::new(value) }
    }

    const_fn! {
        /// An unlocked mutex, for a `static`. In the lab it is known by the place where it is made;
        /// one that is made with [`new`](Mutex::new) also by the task that makes it.
        #[track_caller]
        pub fn const_new(value: T) -> Mutex<T> {
            Mutex { slot: Slot::const_new(value) }
        }
    }

    /// The value, which nobody else can hold any more.
    pub fn into_inner(self) -> T {
        self.slot.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock. Cancel-safe: a dropped wait gives up its place in line.
    #[track_caller]
    pub fn lock<'a, 'c>(&'a self, cx: &'c Cx) -> Lock<'a, 'c, T> {
        Lock(Claim::new(cx, self, FULL, Wait::Lock))
    }

    /// Waits for the lock, with a guard that keeps the mutex alive instead of borrowing it.
    #[track_caller]
    pub fn lock_owned<'c>(self: &Arc<Self>, cx: &'c Cx) -> LockOwned<'c, T> {
        LockOwned(Claim::new(cx, self.clone(), FULL, Wait::Lock))
    }

    /// The lock if it is free now and nobody waits for it.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        let _after = footprint::operation();
        Ok(MutexGuard::new(Held::try_new(self, FULL)?))
    }

    /// Like [`try_lock`](Self::try_lock), with a guard that keeps the mutex alive.
    pub fn try_lock_owned(self: &Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        let _after = footprint::operation();
        Ok(OwnedMutexGuard::new(Held::try_new(self.clone(), FULL)?))
    }

    /// The value, which nobody else can hold meanwhile.
    pub fn get_mut(&mut self) -> &mut T {
        self.slot.get_mut()
    }
}

impl<T: ?Sized> HasSlot for Mutex<T> {
    type Value = T;

    fn slot(&self) -> &Slot<T> {
        &self.slot
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Ok(guard) => f.debug_tuple("Mutex").field(&&*guard).finish(),
            Err(_) => f.write_str("Mutex(<locked>)"),
        }
    }
}

claims! {
    /// The wait of [`Mutex::lock`].
    Lock<'a; T>(&'a Mutex<T>) -> Result<MutexGuard<'a, T>, Cancelled> = super::never_closed;
    /// The wait of [`Mutex::lock_owned`].
    LockOwned<; T>(Arc<Mutex<T>>) -> Result<OwnedMutexGuard<T>, Cancelled> = super::never_closed;
}

guards! {
    /// Holds a [`Mutex`] until dropped, on whichever thread.
    MutexGuard<'a; T> = Sole<&'a Mutex<T>>;
    /// Holds a [`Mutex`] until dropped and keeps it alive.
    OwnedMutexGuard<; T> = Sole<Arc<Mutex<T>>>;
}

mapped_guards! {
    /// Holds a [`Mutex`] until dropped, and leads to a part of its value; see [`MutexGuard::map`].
    ///
    /// ```
    /// use asx::sync::{MappedMutexGuard, Mutex, MutexGuard};
    ///
    /// struct Ledger(Mutex<Vec<(String, u64)>>);
    ///
    /// impl Ledger {
    ///     /// The balance of an account, which nobody else changes meanwhile.
    ///     fn balance(&self, name: &str) -> Option<MappedMutexGuard<'_, u64>> {
    ///         let guard = self.0.try_lock().ok()?;
    ///         MutexGuard::filter_map(guard, |accounts| {
    ///             accounts.iter_mut().find(|(owner, _)| owner == name).map(|(_, sum)| sum)
    ///         })
    ///         .ok()
    ///     }
    /// }
    ///
    /// let ledger = Ledger(Mutex::new(vec![("ann".to_owned(), 7)]));
    /// *ledger.balance("ann").unwrap() += 1;
    /// assert_eq!(*ledger.balance("ann").unwrap(), 8);
    /// assert!(ledger.balance("bob").is_none());
    /// ```
    MappedMutexGuard<'a; ; U> = MappedSole<&'a Pool> of MutexGuard(&mut), |home| home.pool();
    /// Holds a [`Mutex`] until dropped and keeps it alive, and leads to a part of its value.
    OwnedMappedMutexGuard<; T; U> = MappedSole<Arc<Mutex<T>>> of OwnedMutexGuard(&mut), Arc::clone;
}
