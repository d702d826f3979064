//! Many readers or one writer.

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
use super::slot::{FULL, HasSlot, MappedPart, MappedSole, Part, Slot, Sole};

/// A lock that many may read or one may write, across awaits.
///
/// Readers and writers stand in one line, so neither starves: readers next to each other at the
/// head go in together, and a reader that comes after a waiting writer waits behind it. Hence a
/// task that holds a read guard must not wait for another one of the same lock: a writer between
/// the two would wait for the first and the second for the writer. A panic while it is held
/// releases it; there is no poison.
///
/// ```
/// use asx::{Cancelled, Cx, sync::RwLock};
///
/// async fn bump(cx: &Cx, limits: &RwLock<Vec<u32>>) -> Result<usize, Cancelled> {
///     let mut writer = limits.write(cx).await?;
///     writer.push(7);
///     let reader = writer.downgrade();
///     Ok(reader.len())
/// }
/// ```
pub struct RwLock<T: ?Sized> {
    slot: Slot<T>,
}

impl<T> RwLock<T> {
    /// An unlocked lock.
    #[track_caller]
    pub fn new(value: T) -> RwLock<T> {
        RwLock { slot: Slot::new(value) }
    }

    const_fn! {
        /// An unlocked lock, for a `static`: see [`Mutex::const_new`](super::Mutex::const_new).
        #[track_caller]
        pub fn const_new(value: T) -> RwLock<T> {
            RwLock { slot: Slot::const_new(value) }
        }
    }

    /// The value, which nobody else can hold any more.
    pub fn into_inner(self) -> T {
        self.slot.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits to read. Cancel-safe: a dropped wait gives up its place in line.
    #[track_caller]
    pub fn read<'a, 'c>(&'a self, cx: &'c Cx) -> Read<'a, 'c, T> {
        Read(Claim::new(cx, self, 1, Wait::Lock))
    }

    /// Waits to write. Cancel-safe: a dropped wait gives up its place in line.
    #[track_caller]
    pub fn write<'a, 'c>(&'a self, cx: &'c Cx) -> Write<'a, 'c, T> {
        Write(Claim::new(cx, self, FULL, Wait::Lock))
    }

    /// Waits to read, with a guard that keeps the lock alive instead of borrowing it.
    #[track_caller]
    pub fn read_owned<'c>(self: &Arc<Self>, cx: &'c Cx) -> ReadOwned<'c, T> {
        ReadOwned(Claim::new(cx, self.clone(), 1, Wait::Lock))
    }

    /// Waits to write, with a guard that keeps the lock alive instead of borrowing it.
    #[track_caller]
    pub fn write_owned<'c>(self: &Arc<Self>, cx: &'c Cx) -> WriteOwned<'c, T> {
        WriteOwned(Claim::new(cx, self.clone(), FULL, Wait::Lock))
    }

    /// A read guard if nobody writes now and nobody waits.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        let _after = footprint::operation();
        Ok(RwLockReadGuard::new(Held::try_new(self, 1)?))
    }

    /// A write guard if nobody reads or writes now and nobody waits.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        let _after = footprint::operation();
        Ok(RwLockWriteGuard::new(Held::try_new(self, FULL)?))
    }

    /// Like [`try_read`](Self::try_read), with a guard that keeps the lock alive.
    pub fn try_read_owned(self: &Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        let _after = footprint::operation();
        Ok(OwnedRwLockReadGuard::new(Held::try_new(self.clone(), 1)?))
    }

    /// Like [`try_write`](Self::try_write), with a guard that keeps the lock alive.
    pub fn try_write_owned(self: &Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        let _after = footprint::operation();
        Ok(OwnedRwLockWriteGuard::new(Held::try_new(self.clone(), FULL)?))
    }

    /// The value, which nobody else can hold meanwhile.
    pub fn get_mut(&mut self) -> &mut T {
        self.slot.get_mut()
    }
}

impl<T: ?Sized> HasSlot for RwLock<T> {
    type Value = T;

    fn slot(&self) -> &Slot<T> {
        &self.slot
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Ok(guard) => f.debug_tuple("RwLock").field(&&*guard).finish(),
            Err(_) => f.write_str("RwLock(<locked>)"),
        }
    }
}

claims! {
    /// The wait of [`RwLock::read`].
    Read<'a; T>(&'a RwLock<T>) -> Result<RwLockReadGuard<'a, T>, Cancelled>
        = super::never_closed;
    /// The wait of [`RwLock::write`].
    Write<'a; T>(&'a RwLock<T>) -> Result<RwLockWriteGuard<'a, T>, Cancelled>
        = super::never_closed;
    /// The wait of [`RwLock::read_owned`].
    ReadOwned<; T>(Arc<RwLock<T>>) -> Result<OwnedRwLockReadGuard<T>, Cancelled>
        = super::never_closed;
    /// The wait of [`RwLock::write_owned`].
    WriteOwned<; T>(Arc<RwLock<T>>) -> Result<OwnedRwLockWriteGuard<T>, Cancelled>
        = super::never_closed;
}

guards! {
    /// Reads a [`RwLock`] until dropped.
    RwLockReadGuard<'a; T> = Part<&'a RwLock<T>>;
    /// Writes a [`RwLock`] until dropped.
    RwLockWriteGuard<'a; T> = Sole<&'a RwLock<T>>;
    /// Reads a [`RwLock`] until dropped and keeps it alive.
    OwnedRwLockReadGuard<; T> = Part<Arc<RwLock<T>>>;
    /// Writes a [`RwLock`] until dropped and keeps it alive.
    OwnedRwLockWriteGuard<; T> = Sole<Arc<RwLock<T>>>;
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on as a reader, without a moment in which somebody else could write. Readers at the
    /// head of the line come in.
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let _after = footprint::operation();
        RwLockReadGuard(self.0.downgrade())
    }
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    /// Goes on as a reader, without a moment in which somebody else could write. Readers at the
    /// head of the line come in.
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        let _after = footprint::operation();
        OwnedRwLockReadGuard(self.0.downgrade())
    }
}

mapped_guards! {
    /// Reads a part of the value of a [`RwLock`] until dropped; see [`RwLockReadGuard::map`].
    MappedRwLockReadGuard<'a; ; U> = MappedPart<&'a Pool> of RwLockReadGuard(&), |home| home.pool();
    /// Writes a part of the value of a [`RwLock`] until dropped; see [`RwLockWriteGuard::map`].
    MappedRwLockWriteGuard<'a; ; U> = MappedSole<&'a Pool>
        of RwLockWriteGuard(&mut), |home| home.pool();
    /// Reads a part of the value of a [`RwLock`] until dropped, and keeps the lock alive.
    OwnedMappedRwLockReadGuard<; T; U> = MappedPart<Arc<RwLock<T>>>
        of OwnedRwLockReadGuard(&), Arc::clone;
    /// Writes a part of the value of a [`RwLock`] until dropped, and keeps the lock alive.
    OwnedMappedRwLockWriteGuard<; T; U> = MappedSole<Arc<RwLock<T>>>
        of OwnedRwLockWriteGuard(&mut), Arc::clone;
}
