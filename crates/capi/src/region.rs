//! Regions: opening, ending, closing, finalizers.

use crate::abi::{
    ASX_NONE, ASX_POLICY_COLLECT_ALL, ASX_POLICY_FAIL_FAST, AsxBody, AsxBudget, AsxCancelKind,
    AsxCancelReason, AsxRegionId, AsxRegionInfo, AsxRegionOptions, AsxTaskId, AsxTime,
};
use crate::error::{Bad, Checked, Field, field};
use crate::guard::{self, Look, Out};
use crate::info;
use crate::state::{Kernel, Role};
use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::lanes::Priority;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::world::{Ask, Policy, RegionOptions};
use core::ffi::c_char;
use core::mem::size_of;
use core::task::Poll;
use core::time::Duration;

export! {
    /// The root region, which every other is inside of.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_root(rt, out: *mut AsxRegionId) {
        let out = Out::new(out)?;
        |core| {
            out.set(core.region_handle(core.world.root()));
            Ok(())
        }
    }

    /// Opens a child region.
    ///
    /// - Parameters: `options` is NULL or begins with its struct_size; `out` is writable.
    /// - Ownership: the region belongs to its parent.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
    ///   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_open(
        rt,
        parent: AsxRegionId,
        options: *const AsxRegionOptions,
        out: *mut AsxRegionId,
    ) {
        let parent = parent.id()?;
        let options = region_options(guard::options(options, NO_OPTIONS)?)?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            let region = core.world.open_region(parent, options)?;
            out.set(core.region_handle(region));
            Ok(())
        }
    }

    /// Declares that nothing more will be added from outside: the region closes when nothing lives
    /// inside. Nothing is cancelled.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_end(rt, region: AsxRegionId) {
        let region = region.id()?;
        |core| core.world.end_region(region)
    }

    /// Closes a region with a reason and cancels everything inside. Later calls strengthen the
    /// reason.
    ///
    /// `force_ns` is the grace of each round: what still lives that long after the request is
    /// completed by force, then the finalizers run, and each of them has the same time again from
    /// its start. ASX_NONE: nothing is forced. So a close of a region with n finalizers may take up
    /// to n + 1 times `force_ns`.
    ///
    /// - Parameters: `message` is NULL or UTF-8 of less than 4096 bytes; `first` is NULL or
    ///   writable: whether it was the first request.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when
    ///   there is no memory for the message, without which it always goes;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_close(
        rt,
        region: AsxRegionId,
        kind: AsxCancelKind,
        message: *const c_char,
        force_ns: AsxTime,
        first: *mut i32,
    ) {
        let region = region.id()?;
        let kind = info::nth(&Kind::ALL, kind)?;
        let message = guard::text(message)?;
        let first = Out::maybe(first)?;
        |core| {
            core.refill(guard::runtime(rt)?);
            if let Some(message) = message {
                core.prepare(rt, message.len())?;
            }
            let ask = ask(kind, message);
            let force = (force_ns != ASX_NONE).then(|| Duration::from_nanos(force_ns));
            first.set(i32::from(core.world.close_region(region, ask, force)?));
            Ok(())
        }
    }

    /// Opens (nonzero) or shuts the gate of a region. A region with a shut gate admits nothing new.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_gate(rt, region: AsxRegionId, open: i32) {
        let region = region.id()?;
        |core| core.world.set_admission(region, open != 0)
    }

    /// Registers a finalizer. Finalizers run when everything else in the region has ended, the last
    /// one first.
    ///
    /// - Parameters: `body.poll` is not NULL.
    /// - Ownership: `body.ctx` is the runtime's until `body.drop`; on a refusal it stays the
    ///   caller's.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
    ///   ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_defer(rt, region: AsxRegionId, body: AsxBody) {
        let region = region.id()?;
        let body = body.checked()?;
        |core| {
            core.prepare(rt, 0)?;
            core.prepare_defer(guard::runtime(rt)?, region)?;
            let full = core.is_full(Role::Finalizer);
            core.offer(body, Role::Finalizer, |world, body| match full {
                // The region's own refusal comes first.
                true => {
                    let status = world.may_defer(region).err();
                    Err((status.unwrap_or(Status::ResourceExhausted), body))
                }
                false => world.defer(region, body),
            })
        }
    }

    /// Spawns a finalizer task into a region that is finalizing.
    ///
    /// - Parameters: `body.poll` is not NULL; `out` is writable.
    /// - Ownership: as asx_region_defer.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION;
    ///   ASX_E_REGION_CLOSED; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_spawn_finalizer(rt, region: AsxRegionId, body: AsxBody, out: *mut AsxTaskId) {
        let region = region.id()?;
        let body = body.checked()?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            let spawn = |world: &mut Kernel, body| {
                world.spawn_finalizer(region, body).map(|task| (task, body))
            };
            let (task, body) = core.offer(body, Role::Task, spawn)?;
            core.belongs(body, task);
            guard::publish(rt, task)?;
            out.set(core.task_handle(task));
            Ok(())
        }
    }

    /// Counts bytes against the memory limit, on behalf of a region, until it closes.
    ///
    /// - Ownership: nothing is allocated.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_CLOSED;
    ///   ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_use_storage(rt, region: AsxRegionId, bytes: usize) {
        let region = region.id()?;
        |core| core.world.use_storage(region, bytes)
    }

    /// Frees the slot of a Closed region and forgets its outcome, and those of everything that was
    /// inside. Their handles become stale.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   it is not closed, or the root; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_release(rt, region: AsxRegionId) {
        let region = region.id()?;
        |core| core.world.release_region(region)
    }

    /// Reads how a region ended: the fold of its children's outcomes, ASX_OUTCOME_. Outcome and
    /// reason are kept until the region or one around it is released, or the runtime is destroyed.
    ///
    /// - Parameters: `outcome` is writable.
    /// - Returns: ASX_OK; ASX_E_INCOMPLETE_CHILDREN when it is not closed; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_outcome(rt, region: AsxRegionId, outcome: *mut i32) {
        let region = region.id()?;
        let outcome = Out::new(outcome)?;
        |core| {
            let ended = core.world.kept_region(region)?.outcome;
            outcome.set(ended.ok_or(Status::IncompleteChildren)? as i32);
            Ok(())
        }
    }

    /// Reads the state of a region. A region whose parent has closed is stale: use
    /// asx_region_outcome.
    ///
    /// - Parameters: `info` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_get_info(rt, region: AsxRegionId, info: *mut AsxRegionInfo) {
        let region = region.id()?;
        let info = Look::new(info)?;
        |core| info.set(info::region(&core.world.region(region)?))
    }

    /// Makes a handle of the region with its current state, for asx_handle_mask. Also for regions
    /// that are kept (asx_region_outcome).
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_snapshot(rt, region: AsxRegionId, out: *mut AsxRegionId) {
        let region = region.id()?;
        let out = Out::new(out)?;
        |core| {
            core.world.kept_region(region)?;
            out.set(core.region_handle(region));
            Ok(())
        }
    }

    /// Reads a link of the chain of causes of a region's close. Link 0 is the reason itself.
    ///
    /// - Parameters: `reason` begins with its struct_size; `text` has room for `room` bytes of the
    ///   message, 0 if it is not wanted; `size` is NULL or writable: its length.
    /// - Returns: ASX_OK; ASX_E_EMPTY when there is no such link; ASX_E_FULL when the message was
    ///   cut; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_reason(
        rt,
        region: AsxRegionId,
        depth: u32,
        reason: *mut AsxCancelReason,
        text: *mut c_char,
        room: usize,
        size: *mut usize,
    ) {
        let region = region.id()?;
        let reason = Look::new(reason)?;
        let text = guard::room(text.cast::<u8>(), room)?;
        let size = Out::maybe(size)?;
        |core| {
            let own = core.world.kept_region(region)?.reason;
            info::reason(core, own.as_ref(), depth, reason, text, size)
        }
    }

    /// Waits for a region to close, on behalf of a task, and reads its outcome, ASX_OUTCOME_.
    ///
    /// - Parameters: `outcome` is writable.
    /// - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it has closed;
    ///   ASX_E_CANCELLED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   the task is over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_wait(rt, region: AsxRegionId, task: AsxTaskId, outcome: *mut i32) {
        let region = region.id()?;
        let task = task.id()?;
        let outcome = Out::new(outcome)?;
        |core| {
            core.prepare_wait(rt, task)?;
            match core.world.closed(task, region)? {
                Poll::Pending => Err(Status::WouldBlock),
                Poll::Ready(severity) => {
                    outcome.set(severity as i32);
                    Ok(())
                }
            }
        }
    }

    /// Checks what an explicit step of the region to a state would return. Nothing changes.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown state; ASX_E_STALE_HANDLE;
    ///   ASX_E_INVALID_TRANSITION; ASX_E_INCOMPLETE_CHILDREN; ASX_E_UNRESOLVED_OBLIGATIONS;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_check(rt, region: AsxRegionId, state: i32) {
        let region = region.id()?;
        let state = info::nth(&RegionState::ALL, state)?;
        |core| core.world.try_region(region, state)
    }
}

const NO_OPTIONS: AsxRegionOptions = AsxRegionOptions {
    struct_size: size_of::<AsxRegionOptions>() as u32,
    policy: ASX_POLICY_COLLECT_ALL,
    max_children: ASX_NONE,
    budget: AsxBudget::INFINITE,
    priority: 0,
    reserved: 0,
};

fn region_options(options: AsxRegionOptions) -> Checked<RegionOptions> {
    field(options.reserved == 0, Field::Reserved)?;
    let max_children = match options.max_children {
        ASX_NONE => None,
        most => Some(usize::try_from(most).unwrap_or(usize::MAX)),
    };
    let policy = match options.policy {
        ASX_POLICY_COLLECT_ALL => Policy::CollectAll,
        ASX_POLICY_FAIL_FAST => Policy::FailFast,
        _ => return Err(Bad::field(Field::Policy)),
    };
    Ok(RegionOptions { budget: budget(options.budget, options.priority)?, max_children, policy })
}

/// A budget as the kernel has it.
pub(crate) fn budget(budget: AsxBudget, priority: u32) -> Checked<Budget> {
    let maybe = |value: u64| (value != ASX_NONE).then_some(value);
    Ok(Budget {
        deadline: maybe(budget.deadline).map(Time::from_nanos),
        poll_quota: budget.poll_quota,
        cost_quota: maybe(budget.cost_quota),
        priority: Priority(u8::try_from(priority).map_err(|_| Bad::field(Field::Priority))?),
    })
}

/// A request to cancel. It allocates: made inside the call, where memory is the runtime's.
pub(crate) fn ask(kind: Kind, message: Option<&str>) -> Ask {
    Ask { kind, message: message.map(Into::into) }
}
