//! What a runtime knows of a tracked permit of a channel that belongs to no scope.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::raw::poll_context;
use crate::region::Region;

/// A permit, or something else that must be resolved, that is no obligation of a scope.
///
/// While it lives it is listed in the dumps of the region of the task that reserved it. No close
/// waits for it. Dropping it says that it was resolved; [`leaked`](PermitRecord::leaked) counts a
/// leak in [`Health::leaked_obligations`](crate::Health::leaked_obligations) and reports it.
pub struct PermitRecord {
    /// The region it is listed in, and its place in that list; `None` outside of all tasks.
    listed: Option<(Arc<Region>, u64)>,
    at: &'static Location<'static>,
}

impl PermitRecord {
    /// Lists a permit that the running task has reserved at this place. Nothing lists it outside of
    /// all tasks.
    pub fn new(at: &'static Location<'static>) -> PermitRecord {
        let region = poll_context::with_current(|task| task.region().clone());
        let listed = region.map(|region| {
            let place = region.keep_permit(at);
            (region, place)
        });
        PermitRecord { listed, at }
    }

    /// The permit was dropped unresolved. The leak of one that was reserved outside of all tasks is
    /// counted by the runtime of the running task, if there is one.
    pub fn leaked(mut self) {
        if let Some((region, place)) = self.listed.take() {
            return region.permit_leaked(place);
        }
        if let Some(region) = poll_context::with_current(|task| task.region().clone()) {
            region.unlisted_permit_leaked(self.at);
        }
    }
}

impl Drop for PermitRecord {
    fn drop(&mut self) {
        if let Some((region, place)) = self.listed.take() {
            region.forget_permit(place);
        }
    }
}

impl fmt::Debug for PermitRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PermitRecord({})", self.at)
    }
}
