//! A task's cancel: why, and how much cleanup it allows.
//!
//! Guarded by a bit of the word (rule 4): requests come from any thread, the task looks at it when
//! it sees the request, and nobody stays longer than to copy a few words.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::cancel::{Cleanup, Reason};

use super::Header;

impl Header {
    /// Runs `f` on the reason and the polls of cleanup that are left, alone.
    fn with_cancel<R>(&self, f: impl FnOnce(&mut Option<Arc<Reason>>, &mut u16) -> R) -> R {
        self.word.lock_cancel();
        let answer = self.reason.with_mut(|reason| {
            // SAFETY: rule 4: the bit is set by this thread.
            self.cleanup.with_mut(|polls| unsafe { f(&mut *reason, &mut *polls) })
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
        self.with_cancel(|reason, polls| {
            let allowed = match reason {
                None => cleanup,
                Some(_) => {
                    let priority = self.cleanup_priority.load(Relaxed);
                    Cleanup { polls: (*polls).into(), priority }.combine(cleanup)
                }
            };
            *polls = u16::try_from(allowed.polls).unwrap_or(u16::MAX);
            self.cleanup_priority.store(allowed.priority, Relaxed);
            if reason.as_ref().is_none_or(|old| old.weaker_than(new)) {
                *reason = Some(new.clone());
            }
        });
    }

    /// Takes one poll from the allowance; false if none is left.
    pub(crate) fn consume_cleanup(&self) -> bool {
        self.with_cancel(|_, polls| {
            let left = *polls > 0;
            *polls = polls.saturating_sub(1);
            left
        })
    }
}
