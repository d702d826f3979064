//! Tasks, their cancels and the decisions to run them.

use super::{Judged, Refinement, breach, ensure};
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
    /// Phase, severity and allowance of its cancel.
    witness: Option<(Phase, u8, u64)>,
    /// The phases of it that the task has come to, and those that a witness has told of: a bit
    /// each.
    came_to: u8,
    told_of: u8,
    /// It was chosen to run, and it has run.
    chosen: bool,
    ran: bool,
    /// It was completed by force.
    forced: bool,
    ended: bool,
}

impl Refinement {
    pub(super) fn look_at_task(&mut self, event: &Event) -> Judged {
        let id = event.subject.task.ok_or_else(|| breach("no_task", "no task is named"))?;
        if let EventKind::TaskSpawned { finalizer, .. } = event.kind {
            return self.spawned(id, event.subject.region, finalizer);
        }
        let seen = self.tasks.get_mut(&id);
        let seen = seen.ok_or_else(|| breach("unknown_task", "an unknown task"))?;
        let region = event.subject.region.unwrap_or(seen.region);
        ensure(region == seen.region, "task_region", "it lives in another region")?;
        match event.kind {
            EventKind::TaskMoved { from, to } => {
                let was = || format!("it was {}", seen.state.name());
                ensure(seen.state == from, "task_state", was())?;
                from.check(to).map_err(|_| breach("task_step", "no such step of a task"))?;
                seen.state = to;
                seen.ran |= to == TaskState::Running;
                seen.came_to |= phase_of(to).map_or(0, bit);
                if let (TaskState::Completed, Some(home)) = (to, self.regions.get_mut(&region)) {
                    home.tasks -= 1;
                }
                Ok(())
            }
            EventKind::CancelWitness { epoch, phase, kind, polls, strengthened } => {
                ensure(epoch == 1, "cancel_epoch", "a task is cancelled once")?;
                let now = (phase, kind.severity(), polls);
                seen.told_of |= bit(phase);
                seen.cancel_came_to(now, strengthened)
            }
            EventKind::TaskEnded { outcome } => {
                let over = seen.state == TaskState::Completed;
                ensure(over, "task_alive", "it is not over")?;
                ensure(!seen.ended, "task_ended", "it has ended before")?;
                seen.ended = true;
                let cancelled = outcome == Severity::Cancelled;
                let was = seen.witness.is_some() || seen.forced;
                let text = "it ends as cancelled but never was";
                ensure(!cancelled || was, "task_uncancelled", text)?;
                let saw = seen.forced || seen.came_to & bit(Phase::Cancelling) != 0;
                let text = "it ends as cancelled but has not seen its cancel";
                ensure(!cancelled || saw, "task_unseen", text)?;
                // A finalizer that is ended by force has no cancel.
                if cancelled && seen.came_to != 0 {
                    seen.came_to |= bit(Phase::Completed);
                }
                if let Some(home) = self.regions.get_mut(&region) {
                    home.fold = home.fold.join(outcome);
                }
                Ok(())
            }
            EventKind::BudgetExhausted { kind } => {
                let own = matches!(kind, Kind::Deadline | Kind::PollQuota | Kind::CostBudget);
                ensure(own, "budget_kind", "no part of a budget is called so")
            }
            EventKind::Decision {
                lane, decision_seq, decision_hash, cancel_streak, limit, ..
            } => {
                ensure(seen.state != TaskState::Completed, "task_over", "it is over")?;
                let in_time = seen.chosen || !seen.ran;
                seen.chosen = true;
                let told = DecisionChain { seq: decision_seq, hash: decision_hash };
                self.decided(id, lane, [cancel_streak, limit], told)?;
                ensure(in_time, "decision_late", "it ran before it was first chosen")
            }
            EventKind::CleanupOverrun { .. } => {
                let new = !core::mem::replace(&mut seen.forced, true);
                ensure(new, "task_forced", "it was ended by force before")
            }
            EventKind::StaleWake {} => {
                let over = seen.state == TaskState::Completed;
                ensure(over, "task_fresh", "it is not over, so no wake is stale")
            }
            _ => Ok(()),
        }
    }

    fn spawned(&mut self, id: u64, region: Option<u64>, finalizer: bool) -> Judged {
        let wanted = if finalizer { RegionState::Finalizing } else { RegionState::Open };
        let text = || format!("its region is not {}", wanted.name());
        let home = region.and_then(|region| self.regions.get_mut(&region));
        let home = home.filter(|home| home.state == wanted);
        home.ok_or_else(|| breach("task_home", text()))?.tasks += 1;
        let state = TaskState::Created;
        let region = region.unwrap_or(0);
        let seen = TaskSeen {
            state,
            region,
            witness: None,
            came_to: 0,
            told_of: 0,
            chosen: false,
            ran: false,
            forced: false,
            ended: false,
        };
        let new = self.tasks.insert(id, seen).is_none();
        ensure(new, "task_twice", "a task is spawned twice")
    }

    fn decided(&mut self, task: u64, lane: Lane, counts: [u64; 2], told: DecisionChain) -> Judged {
        let [Ok(streak), Ok(limit)] = counts.map(u32::try_from) else {
            return Err(breach("decision_counts", "a streak or its limit is out of range"));
        };
        self.chain.extend(lane, task, streak, limit);
        let seq = self.chain.seq;
        let hash = self.chain.hash;
        let text = || format!("the chain of decisions is broken: this is number {seq}");
        if told.seq != seq {
            return Err(breach("decision_seq", text()));
        }
        ensure(told.hash == hash, "decision_hash", "the chain of decisions is broken: another hash")
    }
}

impl TaskSeen {
    /// Whether it has begun: before that it can't have done anything.
    pub(super) fn has_begun(&self) -> bool {
        self.state != TaskState::Created
    }

    pub(super) fn is_over(&self) -> bool {
        self.state == TaskState::Completed
    }

    /// Whether all was told of it that there is to tell, at the end of the record.
    pub(super) fn is_told(&self, id: u64) -> Judged {
        let ended = self.ended || self.state != TaskState::Completed;
        ensure(ended, "task_unended", format!("task {id} is over, but its end was not told"))?;
        let text = format!("the cancel of task {id} came to where no witness tells of it");
        ensure(self.came_to & !self.told_of == 0, "cancel_untold", text)
    }

    /// A cancel only ever goes on and grows, and what it allows only shrinks.
    fn cancel_came_to(&mut self, now: (Phase, u8, u64), strengthened: bool) -> Judged {
        let before = self.witness.replace(now);
        let Some((phase, severity, polls)) = before else {
            let text = "a first witness that strengthens";
            return ensure(!strengthened, "cancel_first", text);
        };
        ensure(phase <= now.0, "cancel_phase", "its cancel goes back")?;
        let goes_on = phase < now.0 || strengthened;
        ensure(goes_on, "cancel_same", "its cancel neither goes on nor grows")?;
        ensure(severity <= now.1, "cancel_weaker", "its cancel gets weaker")?;
        ensure(polls >= now.2, "cancel_wider", "its cleanup is allowed more than before")
    }
}

/// The phase of its cancel that a task in this state has come to.
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
