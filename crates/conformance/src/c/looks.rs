//! Checks: what can be seen of each thing through the library, as results.

use super::drive::Told;
use super::{Shared, ask, events};
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::{Checked, Name};
use crate::value::Value;
use asx_capi::task::{ASX_TEXT_CLEANUP, ASX_TEXT_OUTCOME, ASX_TEXT_REASON};
use asx_capi::{
    ASX_NONE, ASX_TIMER_GONE, ASX_TIMER_READY, AsxChannelInfo, AsxJournalInfo, AsxObligation,
    AsxQueuesInfo, AsxReason, AsxRegion, AsxRegionInfo, AsxTask, AsxTaskInfo, AsxTimerInfo,
};
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::session::PermitState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use core::mem::{size_of, zeroed};

/// A struct to be filled by the library.
macro_rules! empty {
    ($type:ident) => {{
        // SAFETY: such a struct is plain numbers, for which zero is a value.
        let mut empty: $type = unsafe { zeroed() };
        empty.struct_size = size_of::<$type>() as u32;
        empty
    }};
}

/// The name of an enum's number, or "none".
macro_rules! named {
    ($type:ident, $number:expr) => {{
        let at = usize::try_from($number).ok();
        Value::maybe(at.and_then(|at| $type::ALL.get(at)).map(|value| value.name()))
    }};
}

/// A number, or "none".
fn number(value: u64) -> Value {
    Value::maybe((value != ASX_NONE).then_some(value))
}

/// An instant, or "none".
fn time(value: u64) -> Value {
    Value::maybe((value != ASX_NONE).then(|| Time::from_nanos(value)))
}

/// A journal's look, to be filled.
pub(super) fn journal_info() -> AsxJournalInfo {
    empty!(AsxJournalInfo)
}

/// A look at a task, with its texts.
pub(super) struct TaskLook {
    info: AsxTaskInfo,
    pub(super) reason_message: Option<String>,
}

impl TaskLook {
    pub(super) fn kind(&self) -> Value {
        named!(Kind, self.info.kind)
    }

    pub(super) fn polls_left(&self) -> Value {
        number(self.info.polls_left)
    }
}

impl Shared {
    pub(super) fn look(&self, subject: &Checked, scope: Option<&str>) -> Told {
        match subject {
            Checked::Task(name) => self.look_at_task(self.task(name)?),
            Checked::Region(name) => self.look_at_region(self.region(name)?),
            Checked::Obligation(name) => {
                let found = self.book.with(|notes| notes.obligations.find(scope, name));
                let state = self.obligation_state(found.ok_or(Status::StaleHandle)?)?;
                Ok(Reply::ok().with("state", state.name()))
            }
            Checked::Channel(name) => {
                let mut info = empty!(AsxChannelInfo);
                ask!(channel::asx_channel_get_info(self.rt, self.channel(name)?, &mut info))?;
                let states = ["Open", "SenderClosed", "ReceiverClosed", "FullyClosed"];
                let state = states.get(info.state as usize).copied().unwrap_or("none");
                Ok(Reply::ok()
                    .with("state", state)
                    .with("capacity", info.capacity)
                    .with("len", info.len)
                    .with("reserved", info.reserved)
                    .with("waiters", info.waiters)
                    .with("senders", info.senders))
            }
            Checked::Permit(name) => self.look_at_permit(name, scope),
            Checked::Timer(name) => self.look_at_timer(name, scope),
            _ => self.look_at_rest(subject),
        }
    }

    fn look_at_rest(&self, subject: &Checked) -> Told {
        let (mut queues, mut journal) = (empty!(AsxQueuesInfo), journal_info());
        ask!(runtime::asx_get_queues(self.rt, &mut queues))?;
        ask!(journal::asx_journal_get_info(self.rt, &mut journal))?;
        Ok(match subject {
            Checked::Timers => Reply::ok()
                .with("active", queues.timers)
                .with("next", time(queues.next_timer))
                .with("storage", queues.timer_storage),
            Checked::Lanes => Reply::ok()
                .with("cancel", queues.cancel)
                .with("timed", queues.timed)
                .with("ready", queues.ready)
                .with("total", queues.cancel + queues.timed + queues.ready),
            Checked::Certificate(worker) if *worker > 0 => return Err(Status::InvalidArgument),
            Checked::Certificate(_) => Reply::ok()
                .with("cancel", queues.cancel_dispatches)
                .with("timed", queues.timed_dispatches)
                .with("ready", queues.ready_dispatches)
                .with("fallback", queues.fallback_dispatches)
                .with("base_exceedances", queues.base_exceedances)
                .with("effective_exceedances", queues.effective_exceedances)
                .with("max_limit", queues.max_limit)
                .with("hash", format!("{:016x}", queues.certificate)),
            Checked::Journal => Reply::ok()
                .with("recorded", journal.recorded)
                .with("lost", journal.lost)
                .with("retained", journal.retained),
            Checked::Clock => Reply::ok()
                .with("now", self.now())
                .with("next_wake", Value::maybe(self.next_wake())),
            _ => return Err(Status::Internal),
        })
    }

    pub(super) fn task_info(&self, task: AsxTask) -> Result<AsxTaskInfo, Status> {
        let mut info = empty!(AsxTaskInfo);
        ask!(task::asx_task_get_info(self.rt, task, &mut info))?;
        Ok(info)
    }

    pub(super) fn task_look(&self, task: AsxTask) -> Result<TaskLook, Status> {
        let info = self.task_info(task)?;
        Ok(TaskLook { info, reason_message: self.task_text(task, ASX_TEXT_REASON) })
    }

    fn task_text(&self, task: AsxTask, which: i32) -> Option<String> {
        let mut text = vec![0_u8; 8192];
        let (room, mut size) = (text.len(), 0);
        let to = text.as_mut_ptr().cast();
        ask!(task::asx_task_get_text(self.rt, task, which, to, room, &mut size)).ok()?;
        text.truncate(size);
        String::from_utf8(text).ok()
    }

    fn look_at_task(&self, task: AsxTask) -> Told {
        let look = self.task_look(task)?;
        let info = &look.info;
        let why = look.reason_message.clone();
        let failed = self.task_text(task, ASX_TEXT_OUTCOME);
        let error = self.task_text(task, ASX_TEXT_CLEANUP);
        let region = self.book.with(|notes| {
            notes.ordinals.name(Named::Region, info.region.generation).map(str::to_owned)
        });
        let chain = self.chain(info.chain, |depth, reason| {
            let (text, none) = (core::ptr::null_mut(), core::ptr::null_mut());
            ask!(task::asx_task_reason(self.rt, task, depth, reason, text, 0, none))
        });
        Ok(Reply::ok()
            .with("state", named!(TaskState, info.state))
            .with("outcome", named!(Severity, info.outcome))
            .with("message", Value::maybe(failed.or(why)))
            .with("status", Value::maybe(Status::from_number(info.error).map(Status::name)))
            .with("kind", look.kind())
            .with("chain", chain)
            .with("truncated", info.truncated != 0)
            .with("epoch", info.epoch)
            .with("phase", named!(Phase, info.phase))
            .with("polls_left", look.polls_left())
            .with("overrun", info.overrun != 0)
            .with("error", Value::maybe(error))
            .with("lane", named!(Lane, info.lane))
            .with("polls", info.polls)
            .with("polls_since_request", info.polls_since_request)
            .with("priority", info.priority)
            .with("deadline", time(info.deadline))
            .with("quota", info.quota)
            .with("cost", number(info.cost))
            .with("region", Value::maybe(region))
            .with("finalizer", info.finalizer != 0))
    }

    fn look_at_region(&self, region: AsxRegion) -> Told {
        let mut info = empty!(AsxRegionInfo);
        ask!(region::asx_region_get_info(self.rt, region, &mut info))?;
        let mut text = vec![0_u8; 8192];
        let (mut reason, mut size) = (empty!(AsxReason), 0);
        let (rt, room, to) = (self.rt, text.len(), text.as_mut_ptr().cast());
        let told = ask!(region::asx_region_reason(rt, region, 0, &mut reason, to, room, &mut size));
        text.truncate(size);
        let message = told.ok().filter(|()| size > 0).and_then(|()| String::from_utf8(text).ok());
        let chain = self.chain(info.chain, |depth, reason| {
            let (text, none) = (core::ptr::null_mut(), core::ptr::null_mut());
            ask!(region::asx_region_reason(rt, region, depth, reason, text, 0, none))
        });
        Ok(Reply::ok()
            .with("state", named!(RegionState, info.state))
            .with("outcome", named!(Severity, info.outcome))
            .with("first_cause", named!(Severity, info.first_cause))
            .with("tasks", info.tasks)
            .with("children", info.children)
            .with("obligations", info.obligations)
            .with("finalizers", info.finalizers)
            .with("kind", named!(Kind, info.kind))
            .with("message", Value::maybe(message))
            .with("chain", chain)
            .with("memory", info.storage))
    }

    /// The kinds of a chain, link by link.
    fn chain(&self, links: u32, ask: impl Fn(u32, *mut AsxReason) -> Result<(), Status>) -> Value {
        let kind = |depth| {
            let mut reason = empty!(AsxReason);
            ask(depth, &mut reason).ok()?;
            Kind::ALL.get(reason.kind as usize).map(|kind| kind.name())
        };
        Value::texts((0..links).filter_map(kind))
    }

    /// The library forgets a resolved obligation; the journal knows how it was resolved.
    fn obligation_state(&self, raw: AsxObligation) -> Result<ObligationState, Status> {
        let mut state = -1;
        match ask!(obligation::asx_obligation_state(self.rt, raw, &mut state)) {
            Err(Status::ObligationAlreadyResolved) => {
                let found = events::read(self.rt).into_iter().find_map(|event| match event.kind {
                    EventKind::ObligationResolved { obligation, to }
                        if obligation == raw.generation =>
                    {
                        Some(to)
                    }
                    _ => None,
                });
                found.ok_or(Status::ObligationAlreadyResolved)
            }
            answer => {
                answer?;
                ObligationState::ALL.get(state as usize).copied().ok_or(Status::Internal)
            }
        }
    }

    /// The library forgets a plain permit once it is resolved; the host remembers how.
    fn look_at_permit(&self, name: &Name, scope: Option<&str>) -> Told {
        let found = self.book.with(|notes| notes.permits.find(scope, name));
        let (raw, mut state) = (found.ok_or(Status::StaleHandle)?, 0);
        let state = match ask!(channel::asx_permit_state(self.rt, raw, &mut state)) {
            Ok(()) if state == 0 => PermitState::Live,
            Ok(()) => PermitState::Leaked,
            Err(Status::ObligationAlreadyResolved) => {
                let known = self.book.with(|notes| notes.resolved.get(&raw.generation).copied());
                known.unwrap_or(PermitState::Aborted)
            }
            Err(status) => return Err(status),
        };
        Ok(Reply::ok().with("state", format!("{state:?}")))
    }

    fn look_at_timer(&self, name: &Name, scope: Option<&str>) -> Told {
        let handle = self.timer(name, scope)?;
        let mut info = empty!(AsxTimerInfo);
        ask!(timer::asx_timer_get_info(self.rt, handle, &mut info))?;
        let level = match info.level {
            ASX_TIMER_GONE => Value::none(),
            ASX_TIMER_READY => "ready".into(),
            level @ 0..=3 => (level as u64).into(),
            _ => "overflow".into(),
        };
        Ok(Reply::ok()
            .with("active", info.level != ASX_TIMER_GONE)
            .with("deadline", time(info.deadline))
            .with("level", level)
            .with("id", handle.id)
            .with("generation", handle.generation))
    }
}
