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
                if let (TaskState::Completed, Some(home)) = (to, self.regions.get_mut(&region)) {
                    home.tasks -= 1;
                }
                Ok(())
            }
            EventKind::CancelWitness { epoch, phase, kind, polls, strengthened } => {
                ensure(epoch == 1, "cancel_epoch", "a task is cancelled once")?;
                let now = (phase, kind.severity(), polls);
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
                let told = DecisionChain { seq: decision_seq, hash: decision_hash };
                self.decided(id, lane, [cancel_streak, limit], told)
            }
            EventKind::CleanupOverrun { .. } => {
                seen.forced = true;
                Ok(())
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
        let (state, region) = (TaskState::Created, region.unwrap_or(0));
        let seen = TaskSeen { state, region, witness: None, forced: false, ended: false };
        let new = self.tasks.insert(id, seen).is_none();
        ensure(new, "task_twice", "a task is spawned twice")
    }

    fn decided(&mut self, task: u64, lane: Lane, counts: [u64; 2], told: DecisionChain) -> Judged {
        let [Ok(streak), Ok(limit)] = counts.map(u32::try_from) else {
            return Err(breach("decision_counts", "a streak or its limit is out of range"));
        };
        self.chain.extend(lane, task, streak, limit);
        let (seq, hash) = (self.chain.seq, self.chain.hash);
        let text = || format!("the chain of decisions is broken: this is number {seq}");
        if told.seq != seq {
            return Err(breach("decision_seq", text()));
        }
        ensure(told.hash == hash, "decision_hash", "the chain of decisions is broken: another hash")
    }
}

impl TaskSeen {
    /// A cancel only ever goes on and grows, and what it allows only shrinks.
    fn cancel_came_to(&mut self, now: (Phase, u8, u64), strengthened: bool) -> Judged {
        let before = self.witness.replace(now);
        let Some((phase, severity, polls)) = before else {
            let text = "a first witness that strengthens";
            return ensure(!strengthened, "cancel_first", text);
        };
        ensure(phase <= now.0, "cancel_phase", "its cancel goes back")?;
        ensure(severity <= now.1, "cancel_weaker", "its cancel gets weaker")?;
        ensure(polls >= now.2, "cancel_wider", "its cleanup is allowed more than before")
    }
}
