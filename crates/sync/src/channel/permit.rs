//! Reserved slots. Each is filled or given back, exactly once.

use std::fmt;
use std::iter::FusedIterator;
use std::mem::ManuallyDrop;
use std::panic::Location;

use asx_kernel::session::Resolution;
use asx_kernel::status::Status;
use asx_task::backtrace::{Endpoint, Side};
use asx_task::footprint;

use super::Disconnected;
use super::shared::Shared;
use crate::prim::Arc;

/// A slot reserved through a [`Sender`](super::Sender), which it borrows. Dropping it gives the
/// slot back.
#[must_use = "a permit holds a slot until it is sent, aborted or dropped"]
pub struct Permit<'a, T> {
    shared: &'a Shared<T>,
    id: u64,
    /// Names the origin of the permit in reports of the lab.
    origin: Endpoint,
}

impl<'a, T> Permit<'a, T> {
    #[inline]
    pub(super) fn new(shared: &'a Shared<T>, id: u64, at: &'static Location<'static>) -> Self {
        Permit { shared, id, origin: Endpoint::permit(&shared.usage, at) }
    }

    /// Sends. It never waits and never fails; if the receiver is gone, the value is dropped.
    #[inline]
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send(self, value: T) {
        drop(self.try_send(value));
    }

    /// Sends, and hands the value back if the receiver is gone.
    #[inline]
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_send(self, value: T) -> Result<(), Disconnected<T>> {
        let _after = footprint::operation();
        // The slot is about to be filled: nothing is left to give back.
        let mut permit = ManuallyDrop::new(self);
        permit.origin = Endpoint::NOTHING;
        let Permit { shared, id, .. } = *permit;
        shared.usage.used(Side::Sends);
        shared.fill(id, value)
    }

    /// Gives the slot back, as dropping does.
    pub fn abort(self) {}
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        self.shared.free(self.id, Resolution::Abort);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// Slots reserved at once by [`Sender::reserve_many`](super::Sender::reserve_many): it gives a
/// [`Permit`] for each. Dropping it gives back those that were not taken out.
#[must_use = "permits hold slots until they are sent, aborted or dropped"]
pub struct Permits<'a, T> {
    shared: &'a Shared<T>,
    count: usize,
    /// The numbers of the permits, last first; none if nobody counts.
    ids: Vec<u64>,
    /// Name the origins of the permits in reports of the lab.
    at: &'static Location<'static>,
    origins: Vec<Endpoint>,
}

impl<'a, T> Permits<'a, T> {
    pub(super) fn new(
        shared: &'a Shared<T>,
        count: usize,
        mut ids: Vec<u64>,
        at: &'static Location<'static>,
    ) -> Self {
        ids.reverse();
        let origins = (0..count).map(|_| Endpoint::permit(&shared.usage, at)).collect();
        Permits { shared, count, ids, at, origins }
    }
}

impl<'a, T> Iterator for Permits<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.count = self.count.checked_sub(1)?;
        self.origins.pop();
        Some(Permit::new(self.shared, self.ids.pop().unwrap_or(0), self.at))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl<T> ExactSizeIterator for Permits<'_, T> {}
impl<T> FusedIterator for Permits<'_, T> {}

impl<T> Drop for Permits<'_, T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<T> fmt::Debug for Permits<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits").field("count", &self.count).finish_non_exhaustive()
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
    #[allow(dead_code, reason = "what matters is when it is dropped")]
    end: Endpoint,
    /// Names the origin of the permit in reports of the lab.
    #[allow(dead_code, reason = "what matters is when it is dropped")]
    origin: Endpoint,
}

impl<T> OwnedPermit<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    pub(super) fn new(shared: Arc<Shared<T>>, id: u64) -> Self {
        OwnedPermit::new_at(shared, id, Location::caller())
    }

    #[cfg_attr(feature = "lab", track_caller)]
    pub(super) fn new_at(shared: Arc<Shared<T>>, id: u64, at: &'static Location<'static>) -> Self {
        let end = Endpoint::new(&shared.usage, Side::Sends);
        let origin = Endpoint::permit(&shared.usage, at);
        OwnedPermit { shared: Some(shared), id, dropped: Resolution::Abort, end, origin }
    }

    /// A permit that is an obligation, if it can be one: else its slot is free again.
    pub(super) fn tracked(
        shared: &Arc<Shared<T>>,
        id: Result<u64, Status>,
        at: &'static Location<'static>,
    ) -> Result<Self, Status> {
        let id = id.inspect_err(|_| shared.give_up_slot())?;
        let mut permit = OwnedPermit::new_at(shared.clone(), id, at);
        permit.dropped = Resolution::Leak;
        Ok(permit)
    }

    /// Its number, 0 if nobody counts.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Sends. It never waits and never fails; if the receiver is gone, the value is dropped.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send(self, value: T) {
        drop(self.try_send(value));
    }

    /// Sends, and hands the value back if the receiver is gone.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn try_send(mut self, value: T) -> Result<(), Disconnected<T>> {
        let _after = footprint::operation();
        match self.shared.take() {
            Some(shared) => {
                shared.usage.used(Side::Sends);
                shared.fill(self.id, value)
            }
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

    /// The channel, which is there until the permit is resolved.
    pub(super) fn shared(&self) -> &Shared<T> {
        self.shared.as_ref().expect("a permit that is resolved is gone")
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
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
