//! What is allowed to what is inside a region: how much cleanup, and to know of a stop to come.

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Cleanup, Kind};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::lanes::Priority;

use super::Region;
use crate::prim::atomic::Ordering;

impl Region {
    /// What a cancel allows a task of this region that allows this by its kind.
    pub(crate) fn allowed(&self, cleanup: Cleanup) -> Cleanup {
        match self.cleanup_polls.load(Ordering::Relaxed) {
            0 => cleanup,
            u32::MAX => Cleanup { polls: u64::MAX, ..cleanup },
            polls => Cleanup { polls: polls.into(), ..cleanup },
        }
    }

    /// What cancels allow from now on in here, and in regions that are opened inside.
    pub(crate) fn set_cleanup_polls(&self, polls: u32) {
        self.cleanup_polls.store(polls, Ordering::Relaxed);
    }

    /// What a finalizer of this region may use up: the allowance of the close.
    pub(crate) fn finalizer_budget(&self) -> Budget {
        let cleanup =
            self.lock().cancel.as_ref().map_or(Kind::User.cleanup(), |(_, allowed)| *allowed);
        let cleanup = self.allowed(cleanup);
        let priority = Priority(cleanup.priority);
        Budget { poll_quota: cleanup.polls, priority, ..Budget::INFINITE }
    }

    /// Tells everything inside that it is about to be stopped.
    pub(crate) fn stop(&self) {
        if !self.stopping.swap(true, Ordering::AcqRel) {
            self.core.note(Subject::default(), EventKind::SoftStop {});
            self.span.soft_stop();
            self.core.wake_stopping();
        }
    }

    /// Whether this region or one around it is about to be stopped.
    pub(crate) fn is_stopping(&self) -> bool {
        let around = std::iter::successors(Some(self), |region| region.parent.as_deref());
        around.into_iter().any(|region| region.stopping.load(Ordering::Acquire))
    }

    /// Whether this region or one around it was cancelled with a time for cleanup that somebody has
    /// stated: what is inside is then bounded by that, and not by its allowance of polls. When the
    /// time is over force ends whatever is left.
    pub(crate) fn has_stated_time(&self) -> bool {
        let around = std::iter::successors(Some(self), |region| region.parent.as_deref());
        around.into_iter().any(|region| region.patient.load(Ordering::Acquire))
    }
}
