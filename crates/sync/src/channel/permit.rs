//! Reserved slots. Each is filled or given back, exactly once.

use std::fmt;
use std::mem;

use asx_kernel::session::Resolution;
use asx_kernel::status::Status;

use super::Disconnected;
use super::shared::Shared;
use crate::prim::Arc;

/// A slot reserved through a [`Sender`](super::Sender), which it borrows. Dropping it gives the
/// slot back.
#[must_use = "a permit holds a slot until it is sent, aborted or dropped"]
pub struct Permit<'a, T> {
    shared: &'a Shared<T>,
    id: u64,
}

impl<'a, T> Permit<'a, T> {
    #[inline]
    pub(super) fn new(shared: &'a Shared<T>, id: u64) -> Self {
        Permit { shared, id }
    }

    /// Sends. It never waits and never fails; if the receiver is gone, the value is dropped.
    #[inline]
    pub fn send(self, value: T) {
        drop(self.try_send(value));
    }

    /// Sends, and hands the value back if the receiver is gone.
    #[inline]
    pub fn try_send(self, value: T) -> Result<(), Disconnected<T>> {
        let shared = self.shared;
        let id = self.id;
        // The slot is about to be filled: nothing is left to give back.
        mem::forget(self);
        shared.fill(id, value)
    }

    /// Gives the slot back, as dropping does.
    pub fn abort(self) {}
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.shared.free(self.id, Resolution::Abort);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// A reserved slot that borrows nothing: it can be moved into another task, and counts as a
/// sender as long as it lives. Dropping it gives the slot back.
#[must_use = "a permit holds a slot until it is sent, aborted or dropped"]
pub struct OwnedPermit<T> {
    /// `None` once resolved.
    shared: Option<Arc<Shared<T>>>,
    id: u64,
    /// What dropping it means.
    dropped: Resolution,
}

impl<T> OwnedPermit<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, id: u64) -> Self {
        OwnedPermit { shared: Some(shared), id, dropped: Resolution::Abort }
    }

    /// A permit that is an obligation, if it can be one: else its slot is free again.
    pub(super) fn tracked(
        shared: &Arc<Shared<T>>,
        id: Result<u64, Status>,
    ) -> Result<Self, Status> {
        let id = id.inspect_err(|_| shared.give_up_slot())?;
        Ok(OwnedPermit { shared: Some(shared.clone()), id, dropped: Resolution::Leak })
    }

    /// Its number, 0 if nobody counts.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Sends. It never waits and never fails; if the receiver is gone, the value is dropped.
    pub fn send(self, value: T) {
        drop(self.try_send(value));
    }

    /// Sends, and hands the value back if the receiver is gone.
    pub fn try_send(mut self, value: T) -> Result<(), Disconnected<T>> {
        match self.shared.take() {
            Some(shared) => shared.fill(self.id, value),
            None => Err(Disconnected(value)),
        }
    }

    /// Gives the slot back, as dropping does.
    pub fn abort(mut self) {
        self.dropped = Resolution::Abort;
    }

    /// Whether the receiver is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.shared
            .as_ref()
            .is_none_or(|shared| shared.with(|channel| channel.is_receiver_closed()))
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.free(self.id, self.dropped);
        }
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").finish_non_exhaustive()
    }
}
