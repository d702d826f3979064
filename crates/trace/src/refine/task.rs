//! Tasks, their cancellation, and the decisions to poll them.

use super::{CheckResult, Refinement, breach, ensure};
use alloc::format;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::{DecisionChain, Lane};
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;

#[derive(Clone, Debug)]
pub(super) struct TaskSeen {
    state: TaskState,
    region: u64,
    /// The phase, severity and cleanup allowance of its cancellation, as last witnessed.
    witness: Option<(Phase, u8, u64)>,
    /// The phases of the cancellation that the task has reached, and those that were witnessed: one
    /// bit each.
    reached: u8,
    witnessed: u8,
    /// Whether the task was dispatched, and whether it has run.
    chosen: bool,
    ran: bool,
    /// Whether it was aborted.
    forced: bool,
    ended: bool,
}

impl Refinement {
    pub(super) fn check_task(&mut self, event: &Event) -> CheckResult {
        let id = event.subject.task.ok_or_else(|| breach("no_task", "the task is missing"))?;
        if let EventKind::TaskSpawned { finalizer, .. } = event.kind {
            return self.spawned(id, event.subject.region, finalizer);
        }
        let seen = self.tasks.get_mut(&id);
        let seen = seen.ok_or_else(|| breach("unknown_task", "unknown task"))?;
        let region = event.subject.region.unwrap_or(seen.region);
        ensure(region == seen.region, "task_region", "the task belongs to another region")?;
        match event.kind {
            EventKind::TaskMoved { from, to } => {
                let was = || format!("the task was {}", seen.state.name());
                ensure(seen.state == from, "task_state", was())?;
                from.check(to).map_err(|_| breach("task_step", "illegal transition of a task"))?;
                seen.state = to;
                seen.ran |= to == TaskState::Running;
                seen.reached |= phase_of(to).map_or(0, bit);
                if let (TaskState::Completed, Some(region_seen)) =
                    (to, self.regions.get_mut(&region))
                {
                    region_seen.tasks -= 1;
                }
                Ok(())
            }
            EventKind::CancelWitness { epoch, phase, kind, polls, strengthened } => {
                ensure(epoch == 1, "cancel_epoch", "the epoch of a cancel is always 1")?;
                let now = (phase, kind.severity(), polls);
                seen.witnessed |= bit(phase);
                seen.advance_cancel(now, strengthened)
            }
            EventKind::TaskEnded { outcome } => {
                let over = seen.state == TaskState::Completed;
                ensure(over, "task_alive", "the task is not completed")?;
                ensure(!seen.ended, "task_ended", "the end of the task was recorded before")?;
                seen.ended = true;
                let cancelled = outcome == Severity::Cancelled;
                let was = seen.witness.is_some() || seen.forced;
                let text = "the task ends as cancelled but was not cancelled";
                ensure(!cancelled || was, "task_uncancelled", text)?;
                let saw = seen.forced || seen.reached & bit(Phase::Cancelling) != 0;
                let text = "the task ends as cancelled but has not observed its cancel";
                ensure(!cancelled || saw, "task_unseen", text)?;
                // An aborted finalizer has no cancel.
                if cancelled && seen.reached != 0 {
                    seen.reached |= bit(Phase::Completed);
                }
                if let Some(region_seen) = self.regions.get_mut(&region) {
                    region_seen.fold = region_seen.fold.join(outcome);
                }
                Ok(())
            }
            EventKind::BudgetExhausted { kind } => {
                let own = matches!(kind, Kind::Deadline | Kind::PollQuota | Kind::CostBudget);
                ensure(own, "budget_kind", "no part of a budget has this kind")
            }
            EventKind::Decision {
                lane, decision_seq, decision_hash, cancel_streak, limit, ..
            } => {
                ensure(seen.state != TaskState::Completed, "task_over", "the task is completed")?;
                let on_time = seen.chosen || !seen.ran;
                seen.chosen = true;
                let told = DecisionChain { seq: decision_seq, hash: decision_hash };
                self.decided(id, lane, [cancel_streak, limit], told)?;
                ensure(on_time, "decision_late", "the task ran before its first dispatch")
            }
            EventKind::CleanupOverrun { .. } => {
                let new = !core::mem::replace(&mut seen.forced, true);
                ensure(new, "task_forced", "the task was aborted before")
            }
            EventKind::StaleWake {} => {
                let over = seen.state == TaskState::Completed;
                ensure(over, "task_fresh", "a stale wake of a task that is not completed")
            }
            _ => Ok(()),
        }
    }

    fn spawned(&mut self, id: u64, region: Option<u64>, finalizer: bool) -> CheckResult {
        let wanted = if finalizer { RegionState::Finalizing } else { RegionState::Open };
        let text = || format!("the region of the task is not {}", wanted.name());
        let region_seen = region.and_then(|region| self.regions.get_mut(&region));
        let region_seen = region_seen.filter(|region_seen| region_seen.state == wanted);
        region_seen.ok_or_else(|| breach("task_home", text()))?.tasks += 1;
        let state = TaskState::Created;
        let region = region.unwrap_or(0);
        let seen = TaskSeen {
            state,
            region,
            witness: None,
            reached: 0,
            witnessed: 0,
            chosen: false,
            ran: false,
            forced: false,
            ended: false,
        };
        let new = self.tasks.insert(id, seen).is_none();
        ensure(new, "task_twice", "the task was spawned before")
    }

    fn decided(
        &mut self,
        task: u64,
        lane: Lane,
        counts: [u64; 2],
        told: DecisionChain,
    ) -> CheckResult {
        let [Ok(streak), Ok(limit)] = counts.map(u32::try_from) else {
            return Err(breach("decision_counts", "the streak or its limit is out of range"));
        };
        self.chain.extend(lane, task, streak, limit);
        let seq = self.chain.seq;
        let hash = self.chain.hash;
        let text = || format!("the decision chain is broken: expected number {seq}");
        if told.seq != seq {
            return Err(breach("decision_seq", text()));
        }
        ensure(told.hash == hash, "decision_hash", "the decision chain is broken: wrong hash")
    }
}

impl TaskSeen {
    /// Whether the task has begun. Before that it cannot have done anything.
    pub(super) fn has_begun(&self) -> bool {
        self.state != TaskState::Created
    }

    pub(super) fn is_over(&self) -> bool {
        self.state == TaskState::Completed
    }

    /// Checks at the end of the record that a completed task has all of its final events.
    pub(super) fn check_complete(&self, id: u64) -> CheckResult {
        let ended = self.ended || self.state != TaskState::Completed;
        ensure(
            ended,
            "task_unended",
            format!("task {id} is completed, but its end was not recorded"),
        )?;
        let text = format!("task {id} reached a phase of its cancel without a witness");
        ensure(self.reached & !self.witnessed == 0, "cancel_untold", text)
    }

    /// Checks that a cancellation only advances and strengthens, and that its allowance shrinks.
    fn advance_cancel(&mut self, now: (Phase, u8, u64), strengthened: bool) -> CheckResult {
        let before = self.witness.replace(now);
        let Some((phase, severity, polls)) = before else {
            let text = "the first witness is recorded as strengthening";
            return ensure(!strengthened, "cancel_first", text);
        };
        ensure(phase <= now.0, "cancel_phase", "the phase of the cancel goes back")?;
        let advances = phase < now.0 || strengthened;
        ensure(advances, "cancel_same", "the witness neither advances nor strengthens the cancel")?;
        ensure(severity <= now.1, "cancel_weaker", "the cancel gets weaker")?;
        ensure(polls >= now.2, "cancel_wider", "the cleanup allowance grows")
    }
}

/// Returns the cancellation phase of a task in this state.
fn phase_of(state: TaskState) -> Option<Phase> {
    match state {
        TaskState::CancelRequested => Some(Phase::Requested),
        TaskState::Cancelling => Some(Phase::Cancelling),
        TaskState::Finalizing => Some(Phase::Finalizing),
        TaskState::Created | TaskState::Running | TaskState::Completed => None,
    }
}

fn bit(phase: Phase) -> u8 {
    1 << phase as u8
}
