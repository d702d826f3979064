//! The cancel of a task: its reason, and the allowance for cleanup.
//!
//! Both are guarded by a bit of the state word (rule 4). Requests come from any thread, and the
//! task reads them when it observes the request. The bit is held for a copy of a few words or the
//! record of an event. Recorded steps of the task's state are taken under the same bit, so that the
//! journal has them in order.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::cancel::{Cleanup, Combined, Phase, Reason};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::outcome::Severity;
use asx_kernel::task::{TaskEffect, TaskState};

use super::owner::TaskOwner;
use super::word::{CancelRequest, Requested};
use super::{Activity, Header, Runnable};
use crate::footprint::{Object, Part};

/// The allowance for cleanup in polls. Its priority is in the header.
#[derive(Clone, Copy, Default)]
pub(super) struct Allowance {
    polls: u16,
    /// Polls used up.
    used: u16,
    /// The polls left for cleanup after an end without a cancel. While the body runs: the polls it
    /// has taken without observing the cancel.
    natural: u16,
}

impl Allowance {
    /// Takes one of the polls that are left; `u16::MAX` is no limit. Returns whether there was one.
    /// `timed`: a time bounds the cleanup instead.
    fn take_poll(&mut self, of: fn(&mut Allowance) -> &mut u16, timed: bool) -> bool {
        let left = of(self);
        let goes = timed || *left > 0;
        if *left < u16::MAX {
            *left = left.saturating_sub(1);
        }
        self.used = self.used.saturating_add(goes.into());
        goes
    }
}

impl Header {
    /// Runs `f` on the reason and the allowance, under the bit.
    fn with_cancel<R>(&self, f: impl FnOnce(&mut Option<Arc<Reason>>, &mut Allowance) -> R) -> R {
        self.word.lock_cancel();
        // SAFETY: rule 4: the bit is set by this thread.
        let answer = unsafe { self.with_locked_cancel(f) };
        self.word.unlock_cancel();
        answer
    }

    /// Like [`with_cancel`](Header::with_cancel), for a function that records events: they are in
    /// order with the other events of the task.
    pub(super) fn with_cancel_on_record<R>(
        &self,
        f: impl FnOnce(&mut Option<Arc<Reason>>, &mut Allowance) -> R,
    ) -> R {
        let owner = &self.owner;
        owner.see_mark(self.word.lock_cancel().mark());
        // SAFETY: rule 4: the bit is set by this thread.
        let answer = unsafe { self.with_locked_cancel(f) };
        self.word.sign(owner.mark_of_seen());
        self.word.unlock_cancel();
        answer
    }

    /// Runs `f` on the reason and the allowance.
    ///
    /// # Safety
    /// Rule 4: the caller has set the bit.
    unsafe fn with_locked_cancel<R>(
        &self,
        f: impl FnOnce(&mut Option<Arc<Reason>>, &mut Allowance) -> R,
    ) -> R {
        self.reason.with_mut(|reason| {
            // SAFETY: the caller's promise.
            self.cleanup.with_mut(|cleanup| unsafe { f(&mut *reason, &mut *cleanup) })
        })
    }

    /// The reason, if the task was cancelled.
    pub(crate) fn reason(&self) -> Option<Arc<Reason>> {
        self.with_cancel(|reason, _| reason.clone())
    }

    /// The remaining allowance, if the task was cancelled.
    pub(crate) fn cleanup(&self) -> Option<Cleanup> {
        let priority = self.cleanup_priority.load(Relaxed);
        self.with_cancel(|reason, allowance| {
            reason.as_ref().map(|_| Cleanup { polls: allowance.polls.into(), priority })
        })
    }

    /// Whether a cancel of this task alone would add an entry to the cancel lane.
    pub(crate) fn is_requeued_by_cancel(&self) -> bool {
        let word = self.word.load();
        if word.is_completed() || self.is_finalizer() {
            return false;
        }
        match word.activity() {
            Activity::Runnable => !word.state().in_cancel_lane(),
            Activity::Waiting => !word.state().acknowledged(),
            Activity::Running => false,
        }
    }

    /// Requests a cancel: the stronger reason stays, the allowances are combined.
    pub(crate) fn request(&self, new: &Arc<Reason>, cleanup: Cleanup) -> Requested {
        Object::of_task(self.id(), Part::Own).write();
        let mark = self.word.lock_cancel().mark();
        let before = self.word.load();
        if before.is_completed() {
            self.word.unlock_cancel();
            return Requested::Completed;
        }
        // SAFETY: rule 4: the bit is set by this thread.
        let moves = unsafe {
            self.with_locked_cancel(|reason, allowance| {
                self.combine(reason, allowance, new, cleanup)
            })
        };
        if !self.owner.recording() {
            return self.word.request_cancel(CancelRequest { moves, unlock: true });
        }
        self.owner.see_mark(mark);
        let requested = self.word.request_cancel(CancelRequest { moves, unlock: false });
        if let Requested::Live { effect, .. } = requested {
            // SAFETY: as above.
            unsafe {
                self.with_locked_cancel(|reason, allowance| {
                    self.note_requested(effect, before.state(), reason, allowance);
                });
            }
        }
        self.word.sign(self.owner.mark_of_seen());
        self.word.unlock_cancel();
        requested
    }

    /// Combines a request with the previous ones. Returns whether the place in the cancel lane has
    /// changed.
    fn combine(
        &self,
        reason: &mut Option<Arc<Reason>>,
        allowance: &mut Allowance,
        new: &Arc<Reason>,
        cleanup: Cleanup,
    ) -> bool {
        let priority = self.cleanup_priority.load(Relaxed);
        let before = Cleanup { polls: allowance.polls.into(), priority };
        let both = match reason {
            None => Combined { stronger: true, cleanup },
            Some(old) => old.combine(before, new, cleanup),
        };
        let allowed = both.cleanup;
        allowance.polls = u16::try_from(allowed.polls).unwrap_or(u16::MAX);
        self.cleanup_priority.store(allowed.priority, Relaxed);
        if both.stronger {
            *reason = Some(new.clone());
        }
        let own = self.priority().0;
        allowed.priority.max(own) != priority.max(own)
    }

    /// Takes one poll from the allowance. Returns false if none is left, unless a time bounds the
    /// cleanup instead.
    pub(crate) fn consume_cleanup(&self) -> bool {
        self.consume(|allowance| &mut allowance.polls)
    }

    /// Begins the cleanup after an end without a cancel, with its allowance.
    pub(crate) fn begin_cleaning(&self) {
        self.with_cancel(|reason, allowance| {
            let user = u16::try_from(self.owner.cleanup_polls()).unwrap_or(u16::MAX);
            allowance.natural = if reason.is_some() { allowance.polls } else { user };
        });
        self.word.begin_cleaning();
    }

    /// Counts a poll of a cancelled body that has not observed the cancel. Returns their number.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn count_unheeded(&self) -> u16 {
        self.with_cancel(|_, allowance| {
            allowance.natural = allowance.natural.saturating_add(1);
            allowance.natural
        })
    }

    /// Whether the task is reported as unheeding for the first time. Its polls are not counted from
    /// then on.
    #[cfg(not(any(loom, target_family = "wasm")))]
    pub(crate) fn is_first_unheeded(&self) -> bool {
        let before =
            self.with_cancel(|_, allowance| std::mem::replace(&mut allowance.natural, u16::MAX));
        before != u16::MAX
    }

    /// Like [`consume_cleanup`](Header::consume_cleanup), for cleanup after an end without a
    /// cancel.
    pub(crate) fn consume_natural(&self) -> bool {
        self.consume(|allowance| &mut allowance.natural)
    }

    fn consume(&self, of: fn(&mut Allowance) -> &mut u16) -> bool {
        let take = |timed| self.with_cancel(|_, allowance| allowance.take_poll(of, timed));
        let timed = || self.owner.is_cleanup_timed(self.id());
        take(false) || (timed() && take(true))
    }

    /// The number of polls taken from the allowance.
    pub(crate) fn cleanup_used(&self) -> u64 {
        self.with_cancel(|_, allowance| allowance.used.into())
    }

    /// Observes the request. Returns its reason, or `None` if there is none.
    pub(crate) fn acknowledge(&self) -> Option<Arc<Reason>> {
        if self.owner.recording() {
            return self.acknowledge_on_record();
        }
        self.word.acknowledge_and_lock()?;
        // SAFETY: rule 4: the bit is set by this thread.
        let reason = unsafe { self.with_locked_cancel(|reason, _| reason.clone()) };
        self.word.unlock_cancel();
        reason
    }

    #[cold]
    fn acknowledge_on_record(&self) -> Option<Arc<Reason>> {
        self.with_cancel_on_record(|reason, allowance| {
            let from = self.word.load().state();
            let effect = self.word.acknowledge()?;
            self.note_moved(from);
            if effect == TaskEffect::Acknowledged {
                self.note_witness(reason, allowance, Phase::Cancelling, false);
            }
            reason.clone()
        })
    }

    /// Notes the end of the body, with this severity. Returns whether the task ends cancelled. The
    /// values that the future still holds have not been dropped yet.
    #[inline]
    pub(crate) fn body_ended(&self, severity: Severity) -> bool {
        // Shortcut: `Header::body_ended`: a task that has not observed a cancel ends with the
        // outcome of its body.
        // Law: `task::TaskState::step`.
        // Equal: `a_body_ends_as_the_law_says` (every word); other threads cannot change the answer
        // meanwhile: `only_an_acknowledgement_makes_a_task_end_cancelled`.
        // Worth: 5.5 % of `chain_spawn`.

        let cancelled = self.word.load().state().acknowledged();
        if cancelled {
            self.cancelled_body_ended(severity);
        }
        cancelled
    }

    fn cancelled_body_ended(&self, severity: Severity) {
        if !self.owner.recording() {
            self.word.body_ended();
            return;
        }
        self.with_cancel_on_record(|reason, allowance| {
            if severity == Severity::Err {
                self.note(EventKind::CleanupError {});
            }
            let from = self.word.load().state();
            self.word.body_ended();
            if self.note_moved(from) {
                self.note_witness(reason, allowance, Phase::Finalizing, false);
            }
        });
    }

    #[inline]
    pub(crate) fn ids(&self) -> (u64, u64) {
        (self.id(), self.owner.id())
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject { task: Some(self.id()), region: Some(self.owner.id()), ..Subject::default() }
    }

    /// Records an event of the task after the events of its state, if `holds` for that state.
    #[inline]
    pub(crate) fn tell_if(&self, holds: impl FnOnce(TaskState) -> bool, kind: EventKind) {
        if self.owner.recording() {
            self.with_cancel_on_record(|_, _| {
                holds(self.word.load().state()).then(|| self.note(kind))
            });
        }
    }

    /// Records an event of the task after the events of its state.
    #[inline]
    pub(crate) fn tell(&self, kind: EventKind) {
        self.tell_if(|_| true, kind);
    }

    /// Records an event of the task, under the bit.
    pub(super) fn note(&self, kind: EventKind) {
        self.owner.note(self.subject(), kind);
    }

    /// The event of a changed state, if it has changed.
    pub(super) fn moved(&self, from: TaskState) -> Option<EventKind> {
        let to = self.word.load().state();
        (from != to).then_some(EventKind::TaskMoved { from, to })
    }

    /// Records a changed state. Returns whether it has changed.
    pub(super) fn note_moved(&self, from: TaskState) -> bool {
        self.moved(from).inspect(|moved| self.note(*moved)).is_some()
    }

    fn note_requested(
        &self,
        effect: TaskEffect,
        from: TaskState,
        reason: &Option<Arc<Reason>>,
        allowance: &Allowance,
    ) {
        if self.owner.recording() {
            self.note_moved(from);
            let phase = self.word.load().state().phase().unwrap_or(Phase::Completed);
            let strengthened = effect != TaskEffect::Requested;
            self.note_witness(reason, allowance, phase, strengthened);
        }
    }

    /// The witness of the cancel's phase, if there is a cancel.
    pub(super) fn witness(
        &self,
        reason: &Option<Arc<Reason>>,
        allowance: &Allowance,
        phase: Phase,
        strengthened: bool,
    ) -> Option<EventKind> {
        let kind = reason.as_ref()?.kind;
        let polls = allowance.polls.into();
        Some(EventKind::CancelWitness { epoch: 1, phase, kind, polls, strengthened })
    }

    /// Records the witness of the cancel's phase.
    fn note_witness(
        &self,
        reason: &Option<Arc<Reason>>,
        allowance: &Allowance,
        phase: Phase,
        strengthened: bool,
    ) {
        let witness = self.witness(reason, allowance, phase, strengthened);
        witness.into_iter().for_each(|witness| self.note(witness));
    }
}

#[cfg(feature = "lab")]
impl Runnable {
    /// Whether the task was cancelled and has not observed it.
    #[inline]
    pub fn is_unheeding(&self) -> bool {
        self.header().word.load().state() == asx_kernel::task::TaskState::CancelRequested
    }

    /// Clears the noted wait, so that dumps show only waits of later polls.
    #[inline]
    pub fn forget_wait(&self) {
        self.header().clear_wait();
    }
}

impl Runnable {
    /// Merges two entries of the same task: the other one is dropped.
    ///
    /// # Panics
    /// If they are not of the same task.
    pub fn merge(self, other: Runnable) -> Runnable {
        assert!(self.0.as_ptr() == other.0.as_ptr(), "entries of two tasks do not merge");
        self
    }
}
