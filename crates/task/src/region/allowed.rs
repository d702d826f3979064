//! What is allowed to what is inside a region: how much cleanup, and to know of a stop to come.

use std::sync::Arc;
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Cleanup, Kind, Reason};
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

    /// How long cleanup may take in here.
    #[inline]
    pub(crate) fn cleanup_time(&self) -> Option<Duration> {
        let time = self.cleanup_time.load(Ordering::Relaxed);
        (time < u64::MAX).then(|| Duration::from_nanos(time))
    }

    /// How long cleanup may take from now on in here, and in regions that are opened inside.
    pub(crate) fn set_cleanup_time(&self, time: Option<Duration>) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.cleanup_time.store(time.map_or(u64::MAX, nanos), Ordering::Relaxed);
    }

    /// What the caller, who is about to cancel the region, allows for cleanup in here and below. A
    /// time takes the place of polls, unless there are both.
    pub(crate) fn allow(&self, polls: Option<u32>, time: Option<Duration>) {
        if polls.is_none() && time.is_some() {
            self.patient.store(true, Ordering::Release);
        }
        self.each_inside(&mut |region| {
            if let Some(polls) = polls {
                region.set_cleanup_polls(polls);
            }
            if time.is_some() {
                region.set_cleanup_time(time);
            }
            // After that: a region that is opened later has the same.
            region.lock().children()
        });
    }

    /// [`close`](Region::close), with what the caller allows for cleanup. What still lives when
    /// that time is over is ended by force.
    pub(crate) fn close_within(
        self: &Arc<Self>,
        reason: Arc<Reason>,
        cleanup: Cleanup,
        polls: Option<u32>,
        time: Option<Duration>,
    ) {
        // Before anybody sees the cancel.
        if polls.is_some() || time.is_some() {
            self.allow(polls, time);
        }
        self.close(reason, cleanup);
        if let Some(time) = time {
            self.force_after(time);
        }
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
