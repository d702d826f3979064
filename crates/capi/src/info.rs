//! The kernel's views as the structs that cross the boundary.

use crate::abi::{ASX_NONE, AsxCancelReason, AsxRegionInfo, AsxTaskId, AsxTaskInfo};
use crate::error::{Bad, Checked, Why};
use crate::guard::{self, Look, Out};
use crate::state::Core;
use asx_kernel::cancel::Reason;
use asx_kernel::outcome::{Lattice, NoValue};
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::world::{Answer, RegionView, TaskView};
use core::mem::MaybeUninit;

/// The value an enum's number stands for.
pub(crate) fn nth<T: Copy>(all: &[T], number: i32) -> Checked<T> {
    let at = usize::try_from(number).ok();
    at.and_then(|at| all.get(at)).copied().ok_or(Bad::new(Why::Range))
}

/// A number, or -1.
fn or_none(number: Option<i32>) -> i32 {
    number.unwrap_or(-1)
}

fn links(reason: Option<&Reason>) -> u32 {
    reason.map_or(0, |reason| reason.chain().count() as u32)
}

pub(crate) fn region(view: &RegionView) -> AsxRegionInfo {
    let reason = view.reason.as_ref();
    AsxRegionInfo {
        struct_size: 0,
        state: view.state as i32,
        outcome: or_none(view.outcome.map(|outcome| outcome as i32)),
        first_cause: or_none(view.first_cause.as_ref().map(|cause| cause.severity() as i32)),
        kind: or_none(reason.map(|reason| reason.kind as i32)),
        chain: links(reason),
        tasks: view.tasks as u64,
        children: view.children as u64,
        obligations: view.obligations as u64,
        finalizers: view.finalizers as u64,
        storage: view.storage as u64,
    }
}

pub(crate) fn task(core: &Core, view: &TaskView) -> AsxTaskInfo {
    let witness = view.witness.as_ref();
    let reason = witness.map(|witness| &witness.reason);
    let error = match &view.outcome {
        Some(Err(NoValue::Err(error))) => error.status,
        _ => None,
    };
    AsxTaskInfo {
        struct_size: 0,
        state: view.state as i32,
        outcome: or_none(view.outcome.as_ref().map(|outcome| outcome.severity() as i32)),
        error: or_none(error.map(Status::number)),
        kind: or_none(reason.map(|reason| reason.kind as i32)),
        phase: or_none(witness.map(|witness| witness.phase as i32)),
        lane: or_none(view.lane.map(|lane| lane as i32)),
        overrun: i32::from(view.overrun),
        finalizer: i32::from(view.finalizer),
        truncated: i32::from(reason.is_some_and(|r| r.chain().any(|link| link.truncated))),
        chain: links(reason),
        priority: u32::from(view.budget.priority.0),
        region: core.region_handle(view.region),
        epoch: witness.map_or(0, |witness| witness.epoch),
        polls: view.polls,
        polls_since_request: view.polls_since_request,
        polls_left: view.polls_left.unwrap_or(ASX_NONE),
        deadline: view.budget.deadline.map_or(ASX_NONE, Time::as_nanos),
        quota: view.budget.poll_quota,
        cost: view.budget.cost_quota.unwrap_or(ASX_NONE),
    }
}

/// A link of a chain, with its message.
pub(crate) fn reason(
    core: &Core,
    reason: Option<&Reason>,
    depth: u32,
    out: Look<AsxCancelReason>,
    text: &mut [MaybeUninit<u8>],
    size: Out<usize>,
) -> Answer {
    let link = reason.and_then(|reason| reason.chain().nth(depth as usize));
    let link = link.ok_or(Status::Empty)?;
    out.set(AsxCancelReason {
        struct_size: 0,
        kind: link.kind as i32,
        time: link.timestamp.as_nanos(),
        region: core.region_handle(link.origin_region),
        task: link.origin_task.map_or(AsxTaskId::NONE, |task| core.task_handle(task)),
        has_task: i32::from(link.origin_task.is_some()),
        truncated: i32::from(link.truncated),
    })?;
    let message = link.message.as_deref().unwrap_or("");
    if text.is_empty() {
        size.set(message.len());
        return Ok(());
    }
    guard::put_text(text, format_args!("{message}"), size)
}
