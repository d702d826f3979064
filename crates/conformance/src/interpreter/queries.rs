//! Checks: what can be seen of each thing, as results.

use super::Call;
use crate::api::{Handle, HostApi};
use crate::host::{Record, Reply};
use crate::scenario::Checked;
use crate::value::Value;
use asx_kernel::cancel::Reason;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::Certificate;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::session::PermitState;
use asx_kernel::status::Status;
use asx_kernel::wheel::{Placement, TimerHandle};
use std::collections::BTreeMap;

/// The kinds of a reason and its causes.
pub(crate) fn chain(reason: Option<&Reason>) -> Value {
    let kinds = reason.into_iter().flat_map(|reason| reason.chain().map(|link| link.kind.name()));
    Value::texts(kinds)
}

/// A worker's dispatches.
pub(crate) fn certificate(certificate: &Certificate) -> Reply {
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

/// How many tasks are queued in each lane.
pub(crate) fn lanes([cancel, timed, ready]: [usize; 3]) -> Reply {
    Reply::ok()
        .with("cancel", cancel)
        .with("timed", timed)
        .with("ready", ready)
        .with("total", cancel + timed + ready)
}

impl<H: HostApi> Call<'_, '_, H> {
    pub(super) fn look(&self, subject: &Checked) -> Result<Reply, Status> {
        let host = &*self.host;
        match subject {
            Checked::Task(name) => host.task_fields(self.task(name)?),
            Checked::Region(name) => host.region_fields(self.region(name)?),
            Checked::Obligation(name) => {
                let state = self.obligation_state(self.obligation(name)?)?;
                Ok(Reply::ok().with("state", state.name()))
            }
            Checked::Channel(name) => {
                let view = host.channel_view(self.channel(name)?)?;
                Ok(Reply::ok()
                    .with("state", format!("{:?}", view.state))
                    .with("capacity", view.capacity)
                    .with("len", view.len)
                    .with("reserved", view.reserved)
                    .with("waiters", view.waiters)
                    .with("senders", view.senders))
            }
            Checked::Permit(name) => {
                let state = self.permit_state(self.permit(name)?)?;
                Ok(Reply::ok().with("state", format!("{state:?}")))
            }
            Checked::Timer(name) => self.look_at_timer(self.timer(name)?),
            Checked::Timers => {
                let (active, next, storage) = host.timers()?;
                Ok(Reply::ok()
                    .with("active", active)
                    .with("next", Value::maybe(next))
                    .with("storage", storage))
            }
            Checked::Journal => {
                let journal = host.journal();
                Ok(Reply::ok()
                    .with("recorded", journal.recorded)
                    .with("lost", journal.lost)
                    .with("retained", journal.events.len()))
            }
            Checked::Lanes => host.lanes().map(lanes),
            Checked::Certificate(worker) => host.certificate(*worker),
            Checked::Clock => Ok(Reply::ok()
                .with("now", host.now())
                .with("next_wake", Value::maybe(host.next_wake()))),
            Checked::Pump => host.pump_fields(),
        }
    }

    /// A resolved obligation is forgotten; the journal knows how it was resolved.
    fn obligation_state(&self, id: H::Obligation) -> Result<ObligationState, Status> {
        let resolved = |event: &Event| match event.kind {
            EventKind::ObligationResolved { obligation, to } if obligation == id.ordinal() => {
                Some(to)
            }
            _ => None,
        };
        match self.host.obligation(id) {
            Err(Status::ObligationAlreadyResolved) => {
                let found = self.host.journal().events.iter().find_map(resolved);
                found.ok_or(Status::ObligationAlreadyResolved)
            }
            answer => answer,
        }
    }

    /// A plain permit is forgotten once it is resolved; the book knows how.
    fn permit_state(&self, permit: H::Permit) -> Result<PermitState, Status> {
        match self.host.permit(permit) {
            Err(Status::ObligationAlreadyResolved) => {
                let resolved = self.host.book().resolved.get(&permit.ordinal()).copied();
                Ok(resolved.unwrap_or(PermitState::Aborted))
            }
            answer => answer,
        }
    }

    fn look_at_timer(&self, handle: TimerHandle) -> Result<Reply, Status> {
        let armed = self.host.timer(handle)?;
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

/// What a run left behind.
pub(crate) fn record<H: HostApi>(host: &H) -> Record {
    let journal = host.journal();
    // A task may be gone by now: the journal still knows how it ended.
    let mut ended = BTreeMap::new();
    for event in &journal.events {
        if let (Some(task), EventKind::TaskEnded { outcome }) = (event.subject.task, event.kind) {
            ended.insert(task, outcome);
        }
    }
    let book = host.book();
    let tasks: Vec<_> = book.tasks.iter().map(|(name, task)| (name.to_owned(), task)).collect();
    let names = book.ordinals.clone();
    drop(book);
    let outcome = |task: H::Task| {
        let outcome = ended.get(&task.ordinal()).copied().or_else(|| host.outcome(task));
        outcome.map(Severity::name)
    };
    let outcomes = tasks.into_iter().map(|(name, task)| (name, outcome(task))).collect();
    Record {
        events: journal.events,
        digest: journal.digest,
        recorded: journal.recorded,
        host_events: host.host_events(),
        names,
        outcomes,
        not_quiescent: host.not_quiescent(),
    }
}
