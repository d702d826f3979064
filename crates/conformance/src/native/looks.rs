//! Checks: what can be seen of each thing, as results.

use super::{World, found};
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::{Checked, Name};
use crate::value::Value;
use asx_kernel::cancel::Reason;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::{Certificate, Lane};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::wheel::Placement;

fn chain(reason: Option<&Reason>) -> Value {
    let kinds = reason.into_iter().flat_map(|reason| reason.chain().map(|link| link.kind.name()));
    Value::texts(kinds)
}

pub(super) fn certificate(certificate: &Certificate) -> Reply {
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

impl World {
    /// Looks at a thing; what only the one who steps can see answers INTERNAL.
    pub(super) fn look(&self, subject: &Checked, scope: Option<&str>) -> Result<Reply, Status> {
        match subject {
            Checked::Task(name) => self.look_at_task(name),
            Checked::Region(name) => self.look_at_region(name),
            Checked::Obligation(name) => self.look_at_obligation(name, scope),
            Checked::Channel(name) => {
                let look = |law: &asx_kernel::channel::Channel<i64, _>| {
                    Reply::ok()
                        .with("state", format!("{:?}", law.state()))
                        .with("capacity", law.capacity())
                        .with("len", law.len())
                        .with("reserved", law.reserved())
                        .with("waiters", law.waiters())
                        .with("senders", law.senders())
                };
                Ok(self.channel(name)?.look(look))
            }
            Checked::Permit(name) => self.look_at_permit(name, scope),
            Checked::Timer(name) => self.look_at_timer(name, scope),
            Checked::Timers => {
                let (active, next, storage) = self.core.probe_timers();
                Ok(Reply::ok()
                    .with("active", active)
                    .with("next", Value::maybe(next))
                    .with("storage", storage))
            }
            Checked::Journal => {
                let recorded = self.core.recorded().ok_or(Status::Internal)?;
                Ok(Reply::ok()
                    .with("recorded", recorded.recorded)
                    .with("lost", recorded.lost)
                    .with("retained", recorded.events.len()))
            }
            Checked::Pump => self.look_at_pump(),
            Checked::Lanes if self.page.is_some() => self.look_at_lanes(),
            _ => Err(Status::Internal),
        }
    }

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
            let mut book = self.book();
            let entry = book.task.get_mut(&task)?;
            let outcome = entry.handle.as_mut().and_then(|handle| handle.outcome());
            let severity = outcome.as_ref().map(super::joins::severity);
            entry.severity = entry.severity.or(severity);
            entry.severity
        })
    }

    fn look_at_task(&self, name: &Name) -> Result<Reply, Status> {
        let probe = self.task(name)?;
        let id = probe.id();
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
        let book = self.book();
        let entry = book.task.get(&id).ok_or(Status::StaleHandle)?;
        let why = reason.and_then(|reason| reason.message.as_deref());
        let (status, message) = match (outcome, &entry.error, &entry.panic) {
            (Some(Severity::Err), Some(error), _) => (error.status, Some(&*error.message)),
            (Some(Severity::Panicked), _, Some(message)) => (None, Some(&**message)),
            _ => (None, why),
        };
        let budget = probe.budget();
        let region = book.names.name(Named::Region, probe.region().id());
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

    fn look_at_region(&self, name: &Name) -> Result<Reply, Status> {
        let region = self.region(name)?;
        let (word, reason) = (region.word(), region.reason());
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

    /// A resolved obligation is forgotten; the journal knows how it was resolved.
    fn look_at_obligation(&self, name: &Name, scope: Option<&str>) -> Result<Reply, Status> {
        let (id, state) = self.obligation(name, scope)?;
        let resolved = || {
            self.last_event(|event| match event.kind {
                EventKind::ObligationResolved { obligation, to } if obligation == id => Some(to),
                _ => None,
            })
        };
        let state: ObligationState = match state {
            Err(Status::ObligationAlreadyResolved) => {
                resolved().ok_or(Status::ObligationAlreadyResolved)?
            }
            state => state?,
        };
        Ok(Reply::ok().with("state", state.name()))
    }

    /// A permit is gone once it is resolved; the journal knows how.
    fn look_at_permit(&self, name: &Name, scope: Option<&str>) -> Result<Reply, Status> {
        let (id, tracked) = {
            let book = self.book();
            let id = found(&book.permits, scope, name)?;
            (id, book.tracked.get(&id) == Some(&true))
        };
        let Some(recorded) = self.core.recorded() else { return Err(Status::Internal) };
        let is = |event: &&Event| match event.kind {
            EventKind::Sent { permit } => permit == Some(id),
            EventKind::SendAborted { permit } | EventKind::SendRefused { permit } => permit == id,
            _ => false,
        };
        let state = match recorded.events.iter().position(|event| is(&event)) {
            None => "Live",
            Some(at) => match recorded.events[at].kind {
                EventKind::SendAborted { .. } => {
                    let next = recorded.events.get(at + 1..).unwrap_or_default();
                    let leaked = next.iter().find_map(|event| match event.kind {
                        EventKind::ObligationResolved { to, .. } => Some(to),
                        _ => None,
                    });
                    match leaked.filter(|_| tracked) {
                        Some(ObligationState::Leaked) => "Leaked",
                        Some(ObligationState::Committed) => "Sent",
                        _ => "Aborted",
                    }
                }
                _ => "Sent",
            },
        };
        Ok(Reply::ok().with("state", state))
    }

    fn look_at_timer(&self, name: &Name, scope: Option<&str>) -> Result<Reply, Status> {
        let handle = found(&self.book().timers, scope, name)?;
        let armed = self.core.probe_timer(handle);
        let level = match armed.and_then(|(_, level)| level) {
            None => Value::none(),
            Some(Placement::Ready) => "ready".into(),
            Some(Placement::Level(level)) => level.into(),
            Some(Placement::Overflow) => "overflow".into(),
        };
        Ok(Reply::ok()
            .with("active", armed.is_some())
            .with("deadline", Value::maybe(armed.map(|(deadline, _)| deadline)))
            .with("level", level)
            .with("id", handle.id)
            .with("generation", handle.generation))
    }
}
