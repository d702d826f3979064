//! Checks: what can be seen of each thing, as results.

use super::Engine;
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::{Checked, Name};
use crate::value::Value;
use asx_kernel::cancel::Reason;
use asx_kernel::ids::{ObligationId, TaskId};
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::{Lattice, Stop};
use asx_kernel::region::RegionState;
use asx_kernel::session::PermitState;
use asx_kernel::status::Status;
use asx_kernel::wheel::Placement;
use asx_kernel::world::{RegionView, TaskView};

fn chain(reason: Option<&Reason>) -> Value {
    let kinds = reason.into_iter().flat_map(|reason| reason.chain().map(|link| link.kind.name()));
    Value::texts(kinds)
}

impl Engine {
    pub(super) fn look(&self, subject: &Checked, scope: Option<&str>) -> Result<Reply, Status> {
        match subject {
            Checked::Task(name) => self.look_at_task(self.task(name)?),
            Checked::Region(name) => self.look_at_region(name),
            Checked::Obligation(name) => {
                let id = self.obligations.find(scope, name).ok_or(Status::StaleHandle)?;
                Ok(Reply::ok().with("state", self.obligation_state(id)?.name()))
            }
            Checked::Channel(name) => {
                let view = self.world.channel_view(self.channel(name)?)?;
                Ok(Reply::ok()
                    .with("state", format!("{:?}", view.state))
                    .with("capacity", view.capacity)
                    .with("len", view.len)
                    .with("reserved", view.reserved)
                    .with("waiters", view.waiters)
                    .with("senders", view.senders))
            }
            Checked::Permit(name) => self.look_at_permit(name, scope),
            Checked::Timer(name) => self.look_at_timer(name, scope),
            Checked::Pump => Ok(match &self.browser {
                Some(browser) => browser.look(),
                None => Reply::status(Status::InvalidArgument).note("there is no [config.browser]"),
            }),
            _ => self.look_at_rest(subject),
        }
    }

    fn look_at_rest(&self, subject: &Checked) -> Result<Reply, Status> {
        let (wheel, journal) = (self.world.timers(), self.world.journal());
        Ok(match subject {
            Checked::Timers => Reply::ok()
                .with("active", wheel.len())
                .with("next", Value::maybe(wheel.next_deadline()))
                .with("storage", wheel.storage()),
            Checked::Lanes => Reply::ok()
                .with("cancel", self.world.queued_in(Lane::Cancel))
                .with("timed", self.world.queued_in(Lane::Timed))
                .with("ready", self.world.queued_in(Lane::Ready))
                .with("total", self.world.scheduler().total()),
            Checked::Certificate(worker) => {
                if *worker >= self.world.scheduler().workers() {
                    return Err(Status::InvalidArgument);
                }
                let certificate = self.world.scheduler().certificate(*worker);
                Reply::ok()
                    .with("cancel", certificate.cancel)
                    .with("timed", certificate.timed)
                    .with("ready", certificate.ready)
                    .with("fallback", certificate.fallback)
                    .with("base_exceedances", certificate.base_exceedances)
                    .with("effective_exceedances", certificate.effective_exceedances)
                    .with("max_limit", certificate.max_effective_limit)
                    .with("hash", format!("{:016x}", certificate.witness_hash()))
            }
            Checked::Journal => Reply::ok()
                .with("recorded", journal.recorded())
                .with("lost", journal.lost())
                .with("retained", journal.events().len()),
            Checked::Clock => Reply::ok()
                .with("now", self.world.now())
                .with("next_wake", Value::maybe(self.world.next_wake())),
            _ => return Err(Status::Internal),
        })
    }

    fn look_at_task(&self, task: TaskId) -> Result<Reply, Status> {
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
            Some(Err(Stop::Err(error))) => (error.status, Some(&*error.message)),
            Some(Err(Stop::Panicked(message))) => (None, Some(&**message)),
            _ => (None, why),
        };
        let region = self.ordinals.name(Named::Region, region.ordinal());
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

    fn look_at_region(&self, name: &Name) -> Result<Reply, Status> {
        let view: RegionView = self.world.region(self.region(name)?)?;
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

    /// The world forgets a resolved obligation; the journal knows how it was resolved.
    fn obligation_state(&self, id: ObligationId) -> Result<ObligationState, Status> {
        let resolved = |event: &Event| match event.kind {
            EventKind::ObligationResolved { obligation, to } if obligation == id.ordinal() => {
                Some(to)
            }
            _ => None,
        };
        match self.world.obligation(id) {
            Err(Status::ObligationAlreadyResolved) => {
                let found = self.world.journal().events().find_map(resolved);
                found.ok_or(Status::ObligationAlreadyResolved)
            }
            answer => answer,
        }
    }

    /// The world forgets a plain permit once it is resolved; the model remembers how.
    fn look_at_permit(&self, name: &Name, scope: Option<&str>) -> Result<Reply, Status> {
        let id = self.permits.find(scope, name).ok_or(Status::StaleHandle)?;
        let state = match self.world.permit(id) {
            Ok(state) => state,
            Err(Status::ObligationAlreadyResolved) => {
                self.resolved.get(&id).copied().unwrap_or(PermitState::Aborted)
            }
            Err(status) => return Err(status),
        };
        Ok(Reply::ok().with("state", format!("{state:?}")))
    }

    fn look_at_timer(&self, name: &Name, scope: Option<&str>) -> Result<Reply, Status> {
        let handle = self.timer(name, scope)?;
        let wheel = self.world.timers();
        let deadline = wheel.get(handle).map(|(deadline, _)| deadline);
        let level = match wheel.level_of(handle) {
            None => Value::none(),
            Some(Placement::Ready) => "ready".into(),
            Some(Placement::Level(level)) => level.into(),
            Some(Placement::Overflow) => "overflow".into(),
        };
        Ok(Reply::ok()
            .with("active", deadline.is_some())
            .with("deadline", Value::maybe(deadline))
            .with("level", level)
            .with("id", handle.id)
            .with("generation", handle.generation))
    }
}
