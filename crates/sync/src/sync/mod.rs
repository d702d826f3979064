//! Locks and signals between tasks.
//!
//! | to | use |
//! |---|---|
//! | change a value in turns, across awaits | [`Mutex`] |
//! | read it together, change it alone | [`RwLock`] |
//! | let only so many do something at once | [`Semaphore`] |
//! | tell that something happened | [`Notify`] |
//! | go on when all have arrived | [`Barrier`] |
//! | make a value once, when first needed | [`OnceCell`] |
//!
//! All keep to the same rules:
//!
//! - **Cancel-aware.** Whatever waits takes the task's [`Cx`](asx_task::Cx) and ends with
//!   [`Cancelled`](asx_task::Cancelled) once the task was asked to stop, even if it could go on.
//!   The `try_*` operations and the release of a guard are not checked.
//! - **Fair.** Waiters are served strictly in the order of their first poll; nobody overtakes, not
//!   even a `try_*` when there is room for it. What is released goes to the first in line directly.
//! - **Nothing is lost.** A waiting future that is dropped or cancelled leaves the line, and passes
//!   on what it had been given without knowing. Waiting futures that lose at most their place in
//!   line implement [`CancelSafe`](asx_task::CancelSafe).
//! - **No poison.** A panic while a guard is held releases it like any other way out of its scope;
//!   the value stays as the panic left it.
//!
//! A value that is never locked across an await is better off in a `std::sync::Mutex`.

use std::fmt;

use pool::Refusal;

#[macro_use]
mod macros;

mod barrier;
pub(crate) mod claim;
#[cfg(all(test, loom))]
mod interleavings;
mod line;
mod mutex;
mod notify;
mod once_cell;
pub(crate) mod pool;
mod rwlock;
mod semaphore;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;

pub use barrier::{Barrier, BarrierPass, BarrierWait};
pub use mutex::{Lock, LockOwned, Mutex, MutexGuard, OwnedMutexGuard};
pub use mutex::{MappedMutexGuard, OwnedMappedMutexGuard};
pub use notify::{Notified, NotifiedOwned, Notify};
pub use once_cell::{OnceCell, SetError};
pub use rwlock::{MappedRwLockReadGuard, MappedRwLockWriteGuard};
pub use rwlock::{OwnedMappedRwLockReadGuard, OwnedMappedRwLockWriteGuard};
pub use rwlock::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLockReadGuard, RwLockWriteGuard};
pub use rwlock::{Read, ReadOwned, RwLock, Write, WriteOwned};
pub use semaphore::{Acquire, AcquireError, AcquireOwned, TryAcquireError};
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Why a lock was not had at once: somebody holds it, or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryLockError(());

impl From<Refusal> for TryLockError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy => TryLockError(()),
            Refusal::Closed => unreachable!("locks are never closed"),
        }
    }
}

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is held or waited for")
    }
}

impl std::error::Error for TryLockError {}

/// Why a lock, which is never closed, was not had.
fn never_closed(error: AcquireError) -> asx_task::Cancelled {
    match error {
        AcquireError::Cancelled(cancelled) => cancelled,
        AcquireError::Closed => unreachable!("locks are never closed"),
    }
}
