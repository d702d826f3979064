//! Reserved slots. Each is filled or given back, exactly once.

use std::fmt;
use std::mem;

use super::Disconnected;
use super::shared::Shared;
use crate::prim::Arc;

/// A slot reserved through a [`Sender`](super::Sender), which it borrows. Dropping it gives the
/// slot back.
#[must_use = "a permit holds a slot until it is sent, aborted or dropped"]
pub struct Permit<'a, T> {
    shared: &'a Shared<T>,
}

impl<'a, T> Permit<'a, T> {
    #[inline]
    pub(super) fn new(shared: &'a Shared<T>) -> Self {
        Permit { shared }
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
        // The slot is about to be filled: nothing is left to give back.
        mem::forget(self);
        shared.fill(value)
    }

    /// Gives the slot back, as dropping does.
    pub fn abort(self) {}
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.shared.free();
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
}

impl<T> OwnedPermit<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        OwnedPermit { shared: Some(shared) }
    }

    /// Sends. It never waits and never fails; if the receiver is gone, the value is dropped.
    pub fn send(self, value: T) {
        drop(self.try_send(value));
    }

    /// Sends, and hands the value back if the receiver is gone.
    pub fn try_send(mut self, value: T) -> Result<(), Disconnected<T>> {
        match self.shared.take() {
            Some(shared) => shared.fill(value),
            None => Err(Disconnected(value)),
        }
    }

    /// Gives the slot back, as dropping does.
    pub fn abort(self) {}

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
            shared.free();
        }
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").finish_non_exhaustive()
    }
}
