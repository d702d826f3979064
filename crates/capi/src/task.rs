//! Tasks: spawning, waking, cancelling, and what a task does while it is polled.

use crate::abi::{
    ASX_NONE, ASX_PRIORITY_DEFAULT, ASX_TASK_AUTO_RELEASE, ASX_TASK_DEFAULT_WATCHDOG, AsxBody,
    AsxBudget, AsxCancelKind, AsxCancelReason, AsxRegionId, AsxTaskEntry, AsxTaskId, AsxTaskInfo,
    AsxTaskOptions, AsxTimerHandle, AsxWhen,
};
use crate::error::{Bad, Checked, Field, Why, field};
use crate::ghost::{ASX_GHOST_DOUBLE_CANCEL, ASX_GHOST_STALE};
use crate::guard::{self, Look, Out};
use crate::info;
use crate::region::{ask, budget};
use crate::state::{Core, Kernel, Role};
use asx_kernel::cancel::Kind;
use asx_kernel::ids::TaskId;
use asx_kernel::outcome::{Lattice, NoValue};
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::world::{Answer, TaskError, TaskOptions};
use core::ffi::c_char;
use core::mem::size_of;
use core::task::Poll;

/// The error or panic a task ended with.
pub const ASX_TEXT_OUTCOME: i32 = 0;
/// The message of its cancel.
pub const ASX_TEXT_REASON: i32 = 1;
/// The error that came out of its cleanup.
pub const ASX_TEXT_CLEANUP: i32 = 2;

export! {
    /// Spawns a task into an open region.
    ///
    /// - Parameters: `body.poll` is not NULL; `options` is NULL or begins with its struct_size;
    ///   `out` is writable.
    /// - Ownership: `body.ctx` is the runtime's until `body.drop`; on a refusal it stays the
    ///   caller's.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
    ///   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_spawn(
        rt,
        region: AsxRegionId,
        body: AsxBody,
        options: *const AsxTaskOptions,
        out: *mut AsxTaskId,
    ) {
        let region = region.id()?;
        let body = body.checked()?;
        let options = guard::options(options, NO_OPTIONS)?;
        let kernels = task_options(&options)?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            let spawn = |world: &mut Kernel, body| {
                world.spawn(region, kernels, body).map(|task| (task, body))
            };
            let (task, body) = core.offer(body, Role::Task, spawn)?;
            core.belongs(body, task);
            core.spawned(task, &options);
            guard::publish(rt, task)?;
            out.set(core.task_handle(task));
            Ok(())
        }
    }

    /// Records a task that failed to start. It is completed at once, with an error.
    ///
    /// - Parameters: `status` is one of the ASX_E_ constants, or -1 for none: codes of the
    ///   program's own belong in the message; `message` is NULL or UTF-8 of less than 4096 bytes;
    ///   `out` is writable.
    /// - Returns: as asx_task_spawn.
    fn asx_task_spawn_failed(
        rt,
        region: AsxRegionId,
        status: i32,
        message: *const c_char,
        out: *mut AsxTaskId,
    ) {
        let region = region.id()?;
        let status = error_status(status)?;
        let message = guard::text(message)?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, message.map_or(0, str::len))?;
            let task = core.world.spawn_failed(region, task_error(status, message))?;
            out.set(core.task_handle(task));
            Ok(())
        }
    }

    /// Wakes a task. A wake of a completed task is recorded in the journal and does nothing.
    ///
    /// - Thread: the owner's; elsewhere asx_external_wake.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when
    ///   its queue is full; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_wake(rt, task: AsxTaskId) {
        let id = task.id()?;
        |core| {
            let core = core.keeps_all();
            core.world.wake(id).inspect_err(|status| core.stale(*status, task))
        }
    }

    /// Requests that a task stops. The task observes the request at its next checked call. Later
    /// requests strengthen the reason.
    ///
    /// - Parameters: `message` is NULL or UTF-8 of less than 4096 bytes; `first` is NULL or
    ///   writable: whether it was the first request to a living task.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when
    ///   the cancel queue is full, or there is no memory for the message; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_cancel(
        rt,
        task: AsxTaskId,
        kind: AsxCancelKind,
        message: *const c_char,
        first: *mut i32,
    ) {
        let id = task.id()?;
        let kind = info::nth(&Kind::ALL, kind)?;
        let message = guard::text(message)?;
        let first = Out::maybe(first)?;
        |core| {
            if let Some(message) = message {
                core.prepare(rt, message.len())?;
            }
            let asked = core.world.cancel_task(id, ask(kind, message));
            if asked == Ok(false) {
                let by = core.current_handle();
                let handle = (task.bits, task.generation);
                core.ghosts.note(ASX_GHOST_DOUBLE_CANCEL, 0, handle, by);
            }
            first.set(i32::from(asked.inspect_err(|status| core.stale(*status, task))?));
            Ok(())
        }
    }

    /// Reads the state of a task. A task whose region is stale is stale too: use asx_task_outcome.
    ///
    /// - Parameters: `info` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_get_info(rt, task: AsxTaskId, info: *mut AsxTaskInfo) {
        let task = task.id()?;
        let info = Look::new(info)?;
        |core| info.set(info::task(core, &core.world.task(task)?))
    }

    /// Makes a handle of the task with its current state, for asx_handle_mask. Also for tasks that
    /// are kept (asx_task_outcome).
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_snapshot(rt, task: AsxTaskId, out: *mut AsxTaskId) {
        let task = task.id()?;
        let out = Out::new(out)?;
        |core| {
            core.world.kept_task(task)?;
            out.set(core.task_handle(task));
            Ok(())
        }
    }

    /// Reads how a task ended, ASX_OUTCOME_. Outcome, texts and reason are kept until the task or
    /// its region is released, or the runtime is destroyed, whatever has closed meanwhile.
    ///
    /// - Parameters: `outcome` is writable.
    /// - Returns: ASX_OK; ASX_E_TASKS_STILL_ACTIVE when it is not over; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_outcome(rt, task: AsxTaskId, outcome: *mut i32) {
        let task = task.id()?;
        let outcome = Out::new(outcome)?;
        |core| {
            let ended = core.world.kept_task(task)?.outcome.ok_or(Status::TasksStillActive)?;
            outcome.set(ended.severity() as i32);
            Ok(())
        }
    }

    /// Reads a text of a task, ASX_TEXT_.
    ///
    /// - Parameters: `text` has room for `room` bytes; `size` is NULL or writable: its length.
    /// - Returns: ASX_OK; ASX_E_EMPTY when there is none; ASX_E_FULL when it was cut;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_get_text(
        rt,
        task: AsxTaskId,
        which: i32,
        text: *mut c_char,
        room: usize,
        size: *mut usize,
    ) {
        let task = task.id()?;
        let which = info::nth(&[ASX_TEXT_OUTCOME, ASX_TEXT_REASON, ASX_TEXT_CLEANUP], which)?;
        let text = guard::room(text.cast::<u8>(), room)?;
        let size = Out::maybe(size)?;
        |core| {
            let view = core.world.kept_task(task)?;
            let found = match which {
                ASX_TEXT_REASON => view.witness.and_then(|witness| witness.reason.message.clone()),
                ASX_TEXT_CLEANUP => view.cleanup_error.map(|error| error.message),
                _ => match view.outcome {
                    Some(Err(NoValue::Err(error))) => Some(error.message),
                    Some(Err(NoValue::Panicked(message))) => Some(message),
                    _ => None,
                },
            };
            guard::put_text(text, format_args!("{}", found.ok_or(Status::Empty)?), size)
        }
    }

    /// Reads a link of the chain of causes of a task's cancel. Link 0 is the reason itself.
    ///
    /// - Parameters: as asx_region_reason.
    /// - Returns: ASX_OK; ASX_E_EMPTY when there is no such link; ASX_E_FULL when the message was
    ///   cut; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_reason(
        rt,
        task: AsxTaskId,
        depth: u32,
        reason: *mut AsxCancelReason,
        text: *mut c_char,
        room: usize,
        size: *mut usize,
    ) {
        let task = task.id()?;
        let reason = Look::new(reason)?;
        let text = guard::room(text.cast::<u8>(), room)?;
        let size = Out::maybe(size)?;
        |core| {
            let witness = core.world.kept_task(task)?.witness;
            info::reason(core, witness.as_ref().map(|w| &w.reason), depth, reason, text, size)
        }
    }

    /// Lists the tasks that wait to be polled, with their context pointers, by slot.
    ///
    /// - Parameters: `entries` has room for `room` of them; `count` is writable: how many there
    ///   are.
    /// - Returns: ASX_OK; ASX_E_FULL when some were left out; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_list(rt, entries: *mut AsxTaskEntry, room: usize, count: *mut usize) {
        let entries = guard::room(entries, room)?;
        let count = Out::new(count)?;
        |core| {
            let mut found = 0;
            let mut places = entries.iter_mut();
            for (task, body) in core.world.payloads() {
                found += 1;
                let (Some(to), Some(body)) = (places.next(), core.body(*body)) else { continue };
                to.write(AsxTaskEntry { task: core.task_handle(task), ctx: body.0.ctx });
            }
            count.set(found);
            if found <= room { Ok(()) } else { Err(Status::Full) }
        }
    }

    /// Reads the task that is being polled.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_EMPTY outside a poll; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_current(rt, out: *mut AsxTaskId) {
        let out = Out::new(out)?;
        |core| {
            out.set(core.task_handle(core.current.ok_or(Status::Empty)?));
            Ok(())
        }
    }

    /// Checks for a cancel as asx_is_cancelled does, with the result in `*out` and a status.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   it is over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_is_cancelled(rt, task: AsxTaskId, out: *mut i32) {
        let task = task.id()?;
        let out = Out::new(out)?;
        |core| {
            out.set(i32::from(core.world.is_cancelled(task)?));
            Ok(())
        }
    }

    /// Acknowledges a cancel on behalf of the task. A second acknowledgement is no error.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_TRANSITION when there is nothing to acknowledge;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_acknowledge(rt, task: AsxTaskId) {
        let task = task.id()?;
        |core| match core.world.is_cancelled(task)? {
            true => Ok(()),
            false => Err(Status::InvalidTransition),
        }
    }

    /// Hides cancels from the task until the matching asx_task_unshield.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_shield(rt, task: AsxTaskId) {
        let task = task.id()?;
        |core| core.world.shield(task)
    }

    /// Ends the innermost shield.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION
    ///   without a shield; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_unshield(rt, task: AsxTaskId) {
        let task = task.id()?;
        |core| core.world.unshield(task)
    }

    /// Spends cost from the task's budget.
    ///
    /// - Returns: ASX_OK; ASX_E_BUDGET_EXHAUSTED, with nothing spent and the cancel begun;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when it is over;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_spend(rt, task: AsxTaskId, cost: u64) {
        let task = task.id()?;
        |core| core.world.spend(task, cost)
    }

    /// Pushes an entry on the task's cleanup stack, which runs however the task ends, last in
    /// first: by itself, by a cancel, by force at the end of a grace, or with its runtime. Entries
    /// the allowance or the grace does not reach are dropped; the journal records it
    /// (cleanup_overrun, with the task), and asx_stats counts them.
    ///
    /// - Parameters: `body.poll` is not NULL.
    /// - Ownership: `body.ctx` is the runtime's until `body.drop`; on a refusal it stays the
    ///   caller's.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   it is over; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_push_cleanup(rt, task: AsxTaskId, body: AsxBody) {
        let task = task.id()?;
        let body = body.checked()?;
        |core| {
            core.prepare(rt, 0)?;
            core.prepare_task(guard::runtime(rt)?, task)?;
            if core.is_full(Role::Cleanup) {
                core.living(task)?;
                return Err(Status::ResourceExhausted);
            }
            let push = |world: &mut Kernel, body| {
                world.push_cleanup(task, body).map(|()| body)
            };
            let body = core.offer(body, Role::Cleanup, push)?;
            core.belongs(body, task);
            guard::publish(rt, task)
        }
    }

    /// Begins a sleep of the task, no longer than its deadline. See asx_task_sleep_over.
    ///
    /// - Parameters: `out` is writable.
    /// - Ownership: the timer is the task's.
    /// - Returns: ASX_OK; ASX_E_CANCELLED; ASX_E_BUDGET_EXHAUSTED; ASX_E_TIMER_DURATION_EXCEEDED;
    ///   ASX_E_RESOURCE_EXHAUSTED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE;
    ///   ASX_E_INVALID_TRANSITION when it is over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_sleep(rt, task: AsxTaskId, when: AsxWhen, out: *mut AsxTimerHandle) {
        let task = task.id()?;
        let when = when.checked()?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            out.set(AsxTimerHandle::of(core.world.sleep(task, when)?));
            Ok(())
        }
    }

    /// Checks whether a sleep has ended.
    ///
    /// - Parameters: `timer` came from asx_task_sleep.
    /// - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it is; ASX_E_CANCELLED;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the task is
    ///   over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_sleep_over(rt, task: AsxTaskId, timer: AsxTimerHandle) {
        let task = task.id()?;
        |core| match core.world.slept(task, timer.id())? {
            Poll::Pending => Err(Status::WouldBlock),
            Poll::Ready(()) => Ok(()),
        }
    }

    /// Waits for another task to end, on behalf of a task, and reads its outcome, ASX_OUTCOME_.
    ///
    /// - Parameters: `target` is not the task itself; `outcome` is writable.
    /// - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it has ended;
    ///   ASX_E_CANCELLED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   the task is over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_join(rt, task: AsxTaskId, target: AsxTaskId, outcome: *mut i32) {
        let id = task.id()?;
        let other = target.id()?;
        let () = guard::other_than(&target.id()?, &task.id()?)?;
        let outcome = Out::new(outcome)?;
        |core| {
            core.prepare_wait(rt, id)?;
            match core.world.join(id, other)? {
                Poll::Pending => Err(Status::WouldBlock),
                Poll::Ready(severity) => {
                    outcome.set(severity as i32);
                    Ok(())
                }
            }
        }
    }

    /// Waits for the soft stop, on behalf of a task.
    ///
    /// - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it begins; ASX_E_CANCELLED;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the task is
    ///   over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_stopping(rt, task: AsxTaskId) {
        let task = task.id()?;
        |core| {
            core.prepare_wait(rt, task)?;
            match core.world.stopping(task)? {
                Poll::Pending => Err(Status::WouldBlock),
                Poll::Ready(()) => Ok(()),
            }
        }
    }

    /// Sets the error for ASX_POLL_ERROR, or the message for ASX_POLL_PANICKED, of the poll that
    /// is under way.
    ///
    /// - Parameters: `status` is one of the ASX_E_ constants, or -1 for none: codes of the
    ///   program's own belong in the message; `message` is NULL or UTF-8 of less than 4096 bytes.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_INVALID_TRANSITION when this task is not
    ///   being polled; ASX_E_RESOURCE_EXHAUSTED without memory for it; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_set_error(rt, task: AsxTaskId, status: i32, message: *const c_char) {
        let task = task.id()?;
        let status = error_status(status)?;
        let message = guard::text(message)?;
        |core| {
            if core.current != Some(task) {
                return Err(Status::InvalidTransition);
            }
            core.prepare(rt, message.map_or(0, str::len))?;
            core.error = Some(task_error(status, message));
            Ok(())
        }
    }

    /// Arms the task's watchdog anew: unless it is kicked within `span_ns` it is cancelled with
    /// ASX_CANCEL_TIMEOUT. ASX_NONE takes the watchdog away. If it lives `grace_ns` later
    /// (ASX_NONE: however long) it is completed by force: its body is dropped, and its cleanup
    /// stack runs for as long again. The watchdog hook is called for both. A watchdog that has
    /// expired is not changed.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   the task is over; ASX_E_RESOURCE_EXHAUSTED without memory; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_task_set_watchdog(rt, task: AsxTaskId, span_ns: u64, grace_ns: u64) {
        let task = task.id()?;
        |core| {
            core.living(task)?;
            core.prepare(rt, 0)?;
            core.watch(task, (span_ns != ASX_NONE).then_some(span_ns), grace_ns);
            Ok(())
        }
    }

    /// Restarts the watchdog of a task.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   the task is over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_kick_watchdog(rt, task: AsxTaskId) {
        let task = task.id()?;
        |core| {
            core.living(task)?;
            core.kick(task);
            Ok(())
        }
    }

    /// Frees the slot of a Completed task and forgets its outcome. Its handle becomes stale.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when
    ///   it is not over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_release(rt, task: AsxTaskId) {
        let id = task.id()?;
        |core| core.world.release_task(id).inspect_err(|status| core.stale(*status, task))
    }

    /// Checks what an explicit step of the task to a state would return. Nothing changes.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown state; ASX_E_STALE_HANDLE;
    ///   ASX_E_INVALID_TRANSITION; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_task_check(rt, task: AsxTaskId, state: i32) {
        let task = task.id()?;
        let state = info::nth(&TaskState::ALL, state)?;
        |core| core.world.try_task(task, state)
    }
}

const NO_OPTIONS: AsxTaskOptions = AsxTaskOptions {
    struct_size: size_of::<AsxTaskOptions>() as u32,
    priority: ASX_PRIORITY_DEFAULT,
    budget: AsxBudget::INFINITE,
    watchdog_ns: ASX_NONE,
    flags: ASX_TASK_DEFAULT_WATCHDOG,
    reserved: 0,
    watchdog_grace_ns: ASX_NONE,
};

fn task_options(options: &AsxTaskOptions) -> Checked<TaskOptions> {
    let known = ASX_TASK_AUTO_RELEASE | ASX_TASK_DEFAULT_WATCHDOG;
    field(options.flags & !known == 0, Field::Flags)?;
    field(options.reserved == 0, Field::Reserved)?;
    let budget = budget(options.budget, options.priority)?;
    Ok(TaskOptions { budget, priority: Some(budget.priority.0), pinned: false })
}

/// The status of an error: none, or one that is not a success.
fn error_status(status: i32) -> Checked<Option<Status>> {
    match (status, Status::from_number(status)) {
        (-1, _) => Ok(None),
        (_, None | Some(Status::Ok)) => Err(Bad::new(Why::Range)),
        (_, known) => Ok(known),
    }
}

/// An error of a task's. It allocates: made inside the call, where memory is the runtime's.
fn task_error(status: Option<Status>, message: Option<&str>) -> TaskError {
    TaskError { status, message: message.unwrap_or("failed").into() }
}

impl Core {
    /// Remembers what is ours to do for a task.
    fn spawned(&mut self, task: TaskId, options: &AsxTaskOptions) {
        if options.flags & ASX_TASK_AUTO_RELEASE != 0 {
            self.auto_release.insert(task);
        }
        let (span, grace) = match options.flags & ASX_TASK_DEFAULT_WATCHDOG {
            0 => (options.watchdog_ns, options.watchdog_grace_ns),
            _ => (self.default_watchdog, self.default_grace),
        };
        if span != ASX_NONE {
            self.watch(task, Some(span), grace);
        }
    }

    /// Refuses a task that is over or gone.
    fn living(&self, task: TaskId) -> Answer {
        let handle = self.world.task_handle(task)?;
        let over = handle.allows(TaskState::Completed.mask());
        if over { Err(Status::InvalidTransition) } else { Ok(()) }
    }

    /// Tells the ghosts of a stale handle.
    fn stale(&mut self, status: Status, task: AsxTaskId) {
        if status == Status::StaleHandle {
            let by = self.current_handle();
            let handle = (task.bits, task.generation);
            self.ghosts.note(ASX_GHOST_STALE, status.number(), handle, by);
        }
    }
}
