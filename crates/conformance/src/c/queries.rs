//! What can be seen through the library.

use super::{Shared, ask};
use crate::api::{CancelSeen, Done, HostApi as _};
use crate::host::Reply;
use crate::value::Value;
use asx_capi::task::{ASX_TEXT_CLEANUP, ASX_TEXT_OUTCOME, ASX_TEXT_REASON};
use asx_capi::{
    ASX_NONE, ASX_TIMER_GONE, ASX_TIMER_READY, AsxCancelReason, AsxChannelId, AsxChannelInfo,
    AsxDiagnosis, AsxJournalInfo, AsxQueuesInfo, AsxRegionId, AsxRegionInfo, AsxTaskId,
    AsxTaskInfo, AsxTimerHandle, AsxTimerInfo,
};
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::channel::ChannelState;
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::Severity;
use asx_kernel::quiescence::Census;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::Placement;
use asx_kernel::world::ChannelView;
use core::mem::{size_of, zeroed};
use core::ptr::null_mut;
use std::rc::Rc;

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

impl Shared {
    pub(super) fn queues(&self) -> Done<AsxQueuesInfo> {
        let mut queues = empty!(AsxQueuesInfo);
        ask!(runtime::asx_get_queues(self.rt, &mut queues))?;
        Ok(queues)
    }

    pub(super) fn journal_info(&self) -> AsxJournalInfo {
        let mut info = empty!(AsxJournalInfo);
        let _ = ask!(journal::asx_journal_get_info(self.rt, &mut info));
        info
    }

    pub(super) fn diagnosis(&self) -> Vec<Status> {
        let mut told = empty!(AsxDiagnosis);
        let _ = ask!(runtime::asx_quiescent(self.rt, &mut told));
        let census = Census {
            tasks: told.tasks as usize,
            obligations: told.obligations as usize,
            regions: told.regions as usize,
            timers: told.timers as usize,
            channels: told.channels as usize,
        };
        census.check().err().map(|not| not.all()).unwrap_or_default()
    }

    pub(super) fn task_info(&self, task: AsxTaskId) -> Result<AsxTaskInfo, Status> {
        let mut info = empty!(AsxTaskInfo);
        ask!(task::asx_task_get_info(self.rt, task, &mut info))?;
        Ok(info)
    }

    pub(super) fn cancel_of(&self, task: AsxTaskId) -> Done<CancelSeen> {
        let info = self.task_info(task)?;
        Ok(CancelSeen {
            kind: usize::try_from(info.kind).ok().and_then(|at| Kind::ALL.get(at)).copied(),
            message: self.task_text(task, ASX_TEXT_REASON),
            polls_left: (info.polls_left != ASX_NONE).then_some(info.polls_left),
        })
    }

    fn task_text(&self, task: AsxTaskId, which: i32) -> Option<String> {
        let mut text = vec![0_u8; 8192];
        let room = text.len();
        let mut size = 0;
        let to = text.as_mut_ptr().cast();
        ask!(task::asx_task_get_text(self.rt, task, which, to, room, &mut size)).ok()?;
        text.truncate(size);
        String::from_utf8(text).ok()
    }

    pub(super) fn look_at_task(self: &Rc<Self>, task: AsxTaskId) -> Done<Reply> {
        let info = self.task_info(task)?;
        let why = self.task_text(task, ASX_TEXT_REASON);
        let failed = self.task_text(task, ASX_TEXT_OUTCOME);
        let error = self.task_text(task, ASX_TEXT_CLEANUP);
        let region = self.book().region_name(info.region.generation);
        let chain = self.chain(info.chain, |depth, reason| {
            ask!(task::asx_task_reason(self.rt, task, depth, reason, null_mut(), 0, null_mut()))
        });
        Ok(Reply::ok()
            .with("state", named!(TaskState, info.state))
            .with("outcome", named!(Severity, info.outcome))
            .with("message", Value::maybe(failed.or(why)))
            .with("status", Value::maybe(Status::from_number(info.error).map(Status::name)))
            .with("kind", named!(Kind, info.kind))
            .with("chain", chain)
            .with("truncated", info.truncated != 0)
            .with("epoch", info.epoch)
            .with("phase", named!(Phase, info.phase))
            .with("polls_left", number(info.polls_left))
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

    pub(super) fn look_at_region(&self, region: AsxRegionId) -> Done<Reply> {
        let mut info = empty!(AsxRegionInfo);
        ask!(region::asx_region_get_info(self.rt, region, &mut info))?;
        let mut text = vec![0_u8; 8192];
        let mut reason = empty!(AsxCancelReason);
        let mut size = 0;
        let rt = self.rt;
        let room = text.len();
        let to = text.as_mut_ptr().cast();
        let told = ask!(region::asx_region_reason(rt, region, 0, &mut reason, to, room, &mut size));
        text.truncate(size);
        let message = told.ok().filter(|()| size > 0).and_then(|()| String::from_utf8(text).ok());
        let chain = self.chain(info.chain, |depth, reason| {
            ask!(region::asx_region_reason(rt, region, depth, reason, null_mut(), 0, null_mut()))
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
    fn chain(
        &self,
        links: u32,
        ask: impl Fn(u32, *mut AsxCancelReason) -> Result<(), Status>,
    ) -> Value {
        let kind = |depth| {
            let mut reason = empty!(AsxCancelReason);
            ask(depth, &mut reason).ok()?;
            Kind::ALL.get(reason.kind as usize).map(|kind| kind.name())
        };
        Value::texts((0..links).filter_map(kind))
    }

    pub(super) fn look_at_channel(&self, channel: AsxChannelId) -> Done<ChannelView> {
        let mut info = empty!(AsxChannelInfo);
        ask!(channel::asx_channel_get_info(self.rt, channel, &mut info))?;
        Ok(ChannelView {
            state: match info.state {
                0 => ChannelState::Open,
                1 => ChannelState::SenderClosed,
                2 => ChannelState::ReceiverClosed,
                3 => ChannelState::FullyClosed,
                _ => return Err(Status::Internal),
            },
            capacity: info.capacity as usize,
            len: info.len as usize,
            reserved: info.reserved as usize,
            waiters: info.waiters as usize,
            senders: info.senders as usize,
        })
    }

    pub(super) fn look_at_timer(
        &self,
        timer: AsxTimerHandle,
    ) -> Done<Option<(Time, Option<Placement>)>> {
        let mut info = empty!(AsxTimerInfo);
        ask!(timer::asx_region_timer_get_info(self.rt, timer, &mut info))?;
        let level = match info.level {
            ASX_TIMER_GONE => return Ok(None),
            ASX_TIMER_READY => Placement::Ready,
            level @ 0..=3 => Placement::Level(level as u8),
            _ => Placement::Overflow,
        };
        Ok(Some((Time::from_nanos(info.deadline), Some(level))))
    }
}
