//! Pages have no time for cleanup, and no room for what watches it (`overdue`): there polls bound
//! it, and the grace of a stop or of the cancel of a scope.

use std::sync::Arc;
use std::time::Duration;

use super::Region;
use crate::raw::TaskRef;

/// Nobody is noticed cleaning up.
#[derive(Default)]
pub(crate) struct Cleaning;

impl Cleaning {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        true
    }
}

impl Region {
    #[inline(always)]
    pub(crate) fn watch_cleanup(self: &Arc<Self>) {}

    #[inline(always)]
    pub(crate) fn shield_is_open(self: &Arc<Self>, _: &TaskRef) {}

    #[inline(always)]
    pub(crate) fn state_time(self: &Arc<Self>, _: &TaskRef, _: Duration, _: bool) {}

    #[inline(always)]
    pub(crate) fn time_for(&self, _: u64) -> Option<Duration> {
        None
    }

    #[inline(always)]
    pub(crate) fn allows_any_polls(&self, _: u64) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn is_reported(&self, _: u64) -> bool {
        false
    }
}
