//! A task's cancel: why, and how much cleanup it allows.
//!
//! Guarded by a bit of the word (rule 4): requests come from any thread, the task looks at it when
//! it sees the request, and nobody stays longer than to copy a few words.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::cancel::{Cleanup, Reason};

use super::Header;

/// The kernel's [`Cleanup`], small.
#[derive(Clone, Copy, Default)]
pub(super) struct Allowance {
    polls: u16,
    priority: u8,
}

impl From<Cleanup> for Allowance {
    fn from(cleanup: Cleanup) -> Self {
        let polls = u16::try_from(cleanup.polls).unwrap_or(u16::MAX);
        Allowance { polls, priority: cleanup.priority }
    }
}

impl From<Allowance> for Cleanup {
    fn from(allowance: Allowance) -> Self {
        Cleanup { polls: allowance.polls.into(), priority: allowance.priority }
    }
}

impl Header {
    /// Runs `f` on the cancel, alone.
    fn with_cancel<R>(&self, f: impl FnOnce(&mut Option<Arc<Reason>>, &mut Allowance) -> R) -> R {
        self.word.lock_cancel();
        let answer = self.reason.with_mut(|reason| {
            // SAFETY: rule 4: the bit is set by this thread.
            self.cleanup.with_mut(|cleanup| unsafe { f(&mut *reason, &mut *cleanup) })
        });
        self.word.unlock_cancel();
        answer
    }

    /// The reason, if the task was asked to stop.
    pub(crate) fn reason(&self) -> Option<Arc<Reason>> {
        self.with_cancel(|reason, _| reason.clone())
    }

    /// Adds a request: the stronger reason stays, the allowances combine.
    pub(crate) fn strengthen(&self, new: &Arc<Reason>, cleanup: Cleanup) {
        let priority = self.with_cancel(|reason, allowance| {
            match reason {
                None => *allowance = cleanup.into(),
                Some(_) => *allowance = Cleanup::from(*allowance).combine(cleanup).into(),
            }
            if reason.as_ref().is_none_or(|old| old.weaker_than(new)) {
                *reason = Some(new.clone());
            }
            allowance.priority
        });
        self.cleanup_priority.fetch_max(priority, Relaxed);
    }

    /// Takes one poll from the allowance; false if none is left.
    pub(crate) fn consume_cleanup(&self) -> bool {
        self.with_cancel(|_, allowance| {
            let left = allowance.polls > 0;
            allowance.polls = allowance.polls.saturating_sub(1);
            left
        })
    }
}
