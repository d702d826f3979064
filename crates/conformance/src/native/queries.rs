//! What can be seen of tasks, regions and permits.

use super::World;
use crate::api::HostApi as _;
use crate::host::Reply;
use crate::interpreter::chain;
use crate::value::Value;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::session::PermitState;
use asx_kernel::status::Status;
use std::sync::Arc;

impl World {
    /// The first answer that some event gives, looking from the last one back.
    fn last_event<T>(&self, find: impl Fn(&Event) -> Option<T>) -> Option<T> {
        self.core.recorded()?.events.iter().rev().find_map(find)
    }

    /// How a task has ended.
    pub(super) fn outcome_of(&self, task: u64) -> Option<Severity> {
        let on_record = self.last_event(|event| match event.kind {
            EventKind::TaskEnded { outcome } if event.subject.task == Some(task) => Some(outcome),
            _ => None,
        });
        on_record.or_else(|| {
            // The record may have forgotten it: then the handle is asked.
            let mut things = self.things();
            let entry = things.tasks.get_mut(&task)?;
            let outcome = entry.handle.as_mut().and_then(|handle| handle.outcome());
            let severity = outcome.as_ref().map(super::joins::severity);
            entry.severity = entry.severity.or(severity);
            entry.severity
        })
    }

    pub(super) fn look_at_task(self: &Arc<Self>, id: u64) -> Result<Reply, Status> {
        let probe = self.task(id)?;
        let outcome = self.outcome_of(id);
        let of_task = |event: &Event| event.subject.task == Some(id);
        let phase = self.last_event(|event| match event.kind {
            EventKind::CancelWitness { phase, .. } if of_task(event) => Some(phase),
            _ => None,
        });
        let overrun = self.last_event(|event| {
            (of_task(event) && matches!(event.kind, EventKind::CleanupOverrun { .. })).then_some(())
        });
        let reason = probe.reason();
        let reason = reason.as_deref();
        let region = self.book().region_name(probe.region().id());
        let things = self.things();
        let entry = things.tasks.get(&id).ok_or(Status::StaleHandle)?;
        let why = reason.and_then(|reason| reason.message.as_deref());
        let (status, message) = match (outcome, &entry.error, &entry.panic) {
            (Some(Severity::Err), Some(error), _) => (error.status, Some(&*error.message)),
            (Some(Severity::Panicked), _, Some(message)) => (None, Some(&**message)),
            _ => (None, why),
        };
        let budget = probe.budget();
        let truncated = reason.is_some_and(|reason| reason.chain().any(|link| link.truncated));
        let cleanup = probe.cleanup();
        Ok(Reply::ok()
            .with("state", probe.state().name())
            .with("outcome", Value::maybe(outcome.map(Severity::name)))
            .with("message", Value::maybe(message))
            .with("status", Value::maybe(status.map(Status::name)))
            .with("kind", Value::maybe(reason.map(|reason| reason.kind.name())))
            .with("chain", chain(reason))
            .with("truncated", truncated)
            .with("epoch", u64::from(reason.is_some()))
            .with("phase", Value::maybe(phase.map(|phase| phase.name())))
            .with("polls_left", Value::maybe(cleanup.map(|cleanup| cleanup.polls)))
            .with("overrun", overrun.is_some())
            .with("error", Value::maybe(entry.cleanup_error.as_deref()))
            .with("lane", Value::maybe(probe.lane().map(Lane::name)))
            .with("polls", entry.polls)
            .with("polls_since_request", entry.polls_since_request)
            .with("priority", budget.priority.0)
            .with("deadline", Value::maybe(budget.deadline))
            .with("quota", budget.poll_quota)
            .with("cost", Value::maybe(budget.cost_quota))
            .with("region", Value::maybe(region))
            .with("finalizer", probe.is_finalizer()))
    }

    pub(super) fn look_at_region(&self, id: u64) -> Result<Reply, Status> {
        let region = self.region(id)?;
        let word = region.word();
        let reason = region.reason();
        let reason = reason.as_deref();
        let outcome = region.outcome().filter(|_| word.state() == RegionState::Closed);
        let cause = region.failure().and_then(|task| self.outcome_of(task));
        Ok(Reply::ok()
            .with("state", word.state().name())
            .with("outcome", Value::maybe(outcome.map(Severity::name)))
            .with("first_cause", Value::maybe(cause.map(Severity::name)))
            .with("tasks", word.live_tasks())
            .with("children", word.open_children())
            .with("obligations", word.outstanding())
            .with("finalizers", word.finalizers())
            .with("kind", Value::maybe(reason.map(|reason| reason.kind.name())))
            .with("message", Value::maybe(reason.and_then(|reason| reason.message.as_deref())))
            .with("chain", chain(reason)))
    }

    /// A permit is gone once it is resolved; the journal knows how.
    pub(super) fn permit_state(self: &Arc<Self>, id: u64) -> Result<PermitState, Status> {
        let tracked = self.book().tracked.contains(&id);
        let Some(recorded) = self.core.recorded() else { return Err(Status::Internal) };
        let is = |event: &&Event| match event.kind {
            EventKind::Sent { permit } => permit == Some(id),
            EventKind::SendAborted { permit } | EventKind::SendRefused { permit } => permit == id,
            _ => false,
        };
        Ok(match recorded.events.iter().position(|event| is(&event)) {
            None => PermitState::Live,
            Some(at) => match recorded.events[at].kind {
                EventKind::SendAborted { .. } => {
                    let next = recorded.events.get(at + 1..).unwrap_or_default();
                    let leaked = next.iter().find_map(|event| match event.kind {
                        EventKind::ObligationResolved { to, .. } => Some(to),
                        _ => None,
                    });
                    match leaked.filter(|_| tracked) {
                        Some(ObligationState::Leaked) => PermitState::Leaked,
                        Some(ObligationState::Committed) => PermitState::Sent,
                        _ => PermitState::Aborted,
                    }
                }
                _ => PermitState::Sent,
            },
        })
    }
}
