//! What can be seen of a task and of a region.

use super::Engine;
use crate::api::HostApi as _;
use crate::host::Reply;
use crate::interpreter::chain;
use crate::value::Value;
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::{Lattice, NoValue};
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::world::TaskView;

impl Engine {
    pub(super) fn look_at_task(&self, task: TaskId) -> Result<Reply, Status> {
        let TaskView {
            state,
            region,
            outcome,
            witness,
            polls_left,
            budget,
            lane,
            overrun,
            polls,
            polls_since_request,
            cleanup_error,
            finalizer,
        } = self.world.task(task)?;
        let reason = witness.as_ref().map(|witness| &witness.reason);
        let why = reason.and_then(|reason| reason.message.as_deref());
        let (status, message) = match &outcome {
            Some(Err(NoValue::Err(error))) => (error.status, Some(&*error.message)),
            Some(Err(NoValue::Panicked(message))) => (None, Some(&**message)),
            _ => (None, why),
        };
        let region = self.book().region_name(region.ordinal());
        let truncated = reason.is_some_and(|reason| reason.chain().any(|link| link.truncated));
        let error = cleanup_error.as_ref().map(|error| &*error.message);
        Ok(Reply::ok()
            .with("state", state.name())
            .with("outcome", Value::maybe(outcome.as_ref().map(|end| end.severity().name())))
            .with("message", Value::maybe(message))
            .with("status", Value::maybe(status.map(Status::name)))
            .with("kind", Value::maybe(reason.map(|reason| reason.kind.name())))
            .with("chain", chain(reason))
            .with("truncated", truncated)
            .with("epoch", witness.as_ref().map_or(0, |witness| witness.epoch))
            .with("phase", Value::maybe(witness.as_ref().map(|witness| witness.phase.name())))
            .with("polls_left", Value::maybe(polls_left))
            .with("overrun", overrun)
            .with("error", Value::maybe(error))
            .with("lane", Value::maybe(lane.map(Lane::name)))
            .with("polls", polls)
            .with("polls_since_request", polls_since_request)
            .with("priority", budget.priority.0)
            .with("deadline", Value::maybe(budget.deadline))
            .with("quota", budget.poll_quota)
            .with("cost", Value::maybe(budget.cost_quota))
            .with("region", Value::maybe(region))
            .with("finalizer", finalizer))
    }

    pub(super) fn look_at_region(&self, region: RegionId) -> Result<Reply, Status> {
        let view = self.world.region(region)?;
        let reason = view.reason.as_ref();
        let cause = view.first_cause.as_ref().map(|cause| cause.severity().name());
        let outcome = view.outcome.filter(|_| view.state == RegionState::Closed);
        Ok(Reply::ok()
            .with("state", view.state.name())
            .with("outcome", Value::maybe(outcome.map(|severity| severity.name())))
            .with("first_cause", Value::maybe(cause))
            .with("tasks", view.tasks)
            .with("children", view.children)
            .with("obligations", view.obligations)
            .with("finalizers", view.finalizers)
            .with("kind", Value::maybe(reason.map(|reason| reason.kind.name())))
            .with("message", Value::maybe(reason.and_then(|reason| reason.message.as_deref())))
            .with("chain", chain(reason))
            .with("memory", view.storage))
    }
}
