//! The operations of the C library, called as a C program would.

use super::{Script, Shared, ask, call, drop_script, events};
use crate::api::{
    Came, CancelSeen, ChannelOp, Control, Done, Driver, Handle, HostApi, JournalView, Polled,
    RegionOp, Scripted, Wait,
};
use crate::book::Book;
use crate::host::Reply;
use crate::scenario::{Scenario, When};
use asx_capi::{
    ASX_NONE, ASX_POLICY_COLLECT_ALL, ASX_POLICY_FAIL_FAST, ASX_PRIORITY_DEFAULT, AsxBody,
    AsxBudget, AsxChannelId, AsxChannelReceiver, AsxChannelSender, AsxCx, AsxObligationId,
    AsxProgress, AsxRegionId, AsxRegionOptions, AsxSendPermit, AsxTaskEntry, AsxTaskId,
    AsxTaskOptions, AsxTimerHandle, AsxWhen,
};
use asx_kernel::budget::Budget;
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::session::{PermitState, Resolution};
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::{Time, nanos};
use asx_kernel::wheel::{Placement, TimerHandle};
use asx_kernel::world::{Ask, ChannelView, Policy, RegionOptions, TaskError, TaskOptions};
use core::ffi::c_char;
use core::mem::size_of;
use core::ptr::{null, null_mut};
use core::task::Poll;
use core::time::Duration;
use std::ffi::CString;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard, PoisonError};

/// The element size of every channel.
const SIZE: usize = size_of::<i64>();

macro_rules! handles {
    ($($type:ty),*) => {$(
        impl Handle for $type {
            fn ordinal(self) -> u64 {
                self.generation
            }
        }
    )*};
}

handles!(AsxTaskId, AsxRegionId, AsxChannelId, AsxObligationId, AsxSendPermit);

/// No handle.
macro_rules! blank {
    ($type:ident) => {
        $type { bits: 0, generation: 0 }
    };
}

fn when(when: When) -> AsxWhen {
    match when {
        When::After(span) => AsxWhen { ns: nanos(span), mode: 0, reserved: 0 },
        When::At(time) => AsxWhen { ns: time.as_nanos(), mode: 1, reserved: 0 },
    }
}

fn raw_timer(timer: TimerHandle) -> AsxTimerHandle {
    AsxTimerHandle { id: timer.id, generation: timer.generation }
}

fn kernel_timer(timer: AsxTimerHandle) -> TimerHandle {
    TimerHandle { id: timer.id, generation: timer.generation }
}

fn budget(budget: &Budget) -> AsxBudget {
    AsxBudget {
        deadline: budget.deadline.map_or(ASX_NONE, Time::as_nanos),
        poll_quota: budget.poll_quota,
        cost_quota: budget.cost_quota.unwrap_or(ASX_NONE),
    }
}

impl Shared {
    /// A permit to be filled in.
    fn no_permit(&self) -> AsxSendPermit {
        AsxSendPermit { rt: self.rt, bits: 0, generation: 0 }
    }

    fn cx(&self, task: AsxTaskId) -> AsxCx {
        AsxCx { rt: self.rt, task }
    }

    fn sender(&self, channel: AsxChannelId) -> AsxChannelSender {
        AsxChannelSender { rt: self.rt, channel }
    }

    fn receiver(&self, channel: AsxChannelId) -> AsxChannelReceiver {
        AsxChannelReceiver { rt: self.rt, channel }
    }
}

/// A pointer to a handle, or NULL.
fn maybe<T>(handle: Option<&T>) -> *const T {
    handle.map_or(null(), core::ptr::from_ref)
}

/// A text for the library, and the pointer to it.
struct Text(Option<CString>);

impl Text {
    fn new(text: Option<&str>) -> Text {
        Text(text.and_then(|text| CString::new(text).ok()))
    }

    fn pointer(&self) -> *const c_char {
        self.0.as_ref().map_or(null(), |text| text.as_ptr())
    }
}

/// A call that may have to wait.
fn waited(
    result: Result<(), Status>,
    came: impl FnOnce() -> Came<Rc<Shared>>,
) -> Done<Poll<Came<Rc<Shared>>>> {
    match result {
        Ok(()) => Ok(Poll::Ready(came())),
        Err(Status::WouldBlock) => Ok(Poll::Pending),
        Err(status) => Err(status),
    }
}

/// How something has ended, by the library's number.
fn severity(number: i32) -> Option<Severity> {
    Severity::ALL.get(usize::try_from(number).ok()?).copied()
}

fn outcome(number: i32) -> Came<Rc<Shared>> {
    severity(number).map_or(Came::Nothing, Came::Outcome)
}

/// What became of a body: a refused one is still ours.
pub(super) fn given(body: AsxBody, result: Result<(), Status>) -> Done {
    if result.is_err() {
        // SAFETY: the library refused it: its context is ours to free, once.
        unsafe { drop_script(body.ctx) };
    }
    result
}

impl HostApi for Rc<Shared> {
    type Task = AsxTaskId;
    type Region = AsxRegionId;
    type Channel = AsxChannelId;
    type Permit = AsxSendPermit;
    type Obligation = AsxObligationId;
    type Current<'a> = Polled<'a, AsxTaskId>;

    fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn book(&self) -> MutexGuard<'_, Book<Rc<Shared>>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name_finalizers(&mut self) {
        let mut entries = Vec::new();
        let mut count = 0;
        let list = |entries: &mut Vec<AsxTaskEntry>, count: &mut usize| {
            ask!(task::asx_task_list(self.rt, entries.as_mut_ptr(), entries.len(), count))
        };
        while list(&mut entries, &mut count) == Err(Status::Full) {
            entries.resize(count, AsxTaskEntry { task: blank!(AsxTaskId), ctx: null_mut() });
        }
        let mut book = self.book();
        for entry in entries.iter().take(count) {
            if !book.knows_task(entry.task.generation) {
                // SAFETY: every context is a boxed script, and this one waits to be polled.
                let name = unsafe { (*entry.ctx.cast::<Script>()).own.name.clone() };
                book.bind_task(&name, entry.task);
            }
        }
    }

    fn now(&self) -> Time {
        let mut now = 0;
        let _ = ask!(runtime::asx_now(self.rt, &mut now));
        Time::from_nanos(now)
    }

    fn advance(&mut self, to: Time) -> Done {
        call!(runtime::asx_advance(self.rt, to.as_nanos()))
    }

    fn root(&self) -> Done<AsxRegionId> {
        let mut region = blank!(AsxRegionId);
        ask!(region::asx_region_root(self.rt, &mut region))?;
        Ok(region)
    }

    fn region_of(&self, current: &Polled<'_, AsxTaskId>) -> Done<AsxRegionId> {
        Ok(self.task_info(current.task)?.region)
    }

    fn open(&mut self, parent: AsxRegionId, options: RegionOptions) -> Done<AsxRegionId> {
        let options = AsxRegionOptions {
            struct_size: size_of::<AsxRegionOptions>() as u32,
            policy: match options.policy {
                Policy::FailFast => ASX_POLICY_FAIL_FAST,
                Policy::CollectAll => ASX_POLICY_COLLECT_ALL,
            },
            max_children: options.max_children.map_or(ASX_NONE, |most| most as u64),
            budget: budget(&options.budget),
            priority: u32::from(options.budget.priority.0),
            reserved: 0,
        };
        let mut region = blank!(AsxRegionId);
        call!(region::asx_region_open(self.rt, parent, &options, &mut region))?;
        Ok(region)
    }

    fn close(
        &mut self,
        region: AsxRegionId,
        ask: Ask,
        force_after: Option<Duration>,
    ) -> Done<bool> {
        let text = Text::new(ask.message.as_deref());
        let why = text.pointer();
        let kind = ask.kind as i32;
        let force = force_after.map_or(ASX_NONE, nanos);
        let mut first = 0;
        call!(region::asx_region_close(self.rt, region, kind, why, force, &mut first))?;
        Ok(first != 0)
    }

    fn region_op(&mut self, region: AsxRegionId, op: RegionOp) -> Done {
        let rt = self.rt;
        match op {
            RegionOp::End => call!(region::asx_region_end(rt, region)),
            RegionOp::Gate(open) => call!(region::asx_region_gate(rt, region, i32::from(open))),
            RegionOp::UseStorage(bytes) => {
                call!(region::asx_region_use_storage(rt, region, bytes))
            }
            RegionOp::Release => call!(region::asx_region_release(rt, region)),
            RegionOp::Move(to) => call!(region::asx_region_check(rt, region, to as i32)),
        }
    }

    fn defer(&mut self, region: AsxRegionId, body: Scripted) -> Done {
        let body = self.body(body);
        given(body, call!(region::asx_region_defer(self.rt, region, body)))
    }

    fn spawn_finalizer(&mut self, region: AsxRegionId, body: Scripted) -> Done<Option<AsxTaskId>> {
        let body = self.body(body);
        let mut task = blank!(AsxTaskId);
        let spawned = call!(region::asx_region_spawn_finalizer(self.rt, region, body, &mut task));
        given(body, spawned)?;
        Ok(Some(task))
    }

    fn spawn(
        &mut self,
        region: AsxRegionId,
        options: TaskOptions,
        body: Scripted,
    ) -> Done<AsxTaskId> {
        let options = AsxTaskOptions {
            struct_size: size_of::<AsxTaskOptions>() as u32,
            priority: options.priority.map_or(ASX_PRIORITY_DEFAULT, u32::from),
            budget: budget(&options.budget),
            watchdog_ns: ASX_NONE,
            flags: 0,
            reserved: 0,
            watchdog_grace_ns: ASX_NONE,
        };
        let body = self.body(body);
        let mut task = blank!(AsxTaskId);
        given(body, call!(task::asx_task_spawn(self.rt, region, body, &options, &mut task)))?;
        Ok(task)
    }

    fn spawn_failed(&mut self, region: AsxRegionId, error: TaskError) -> Done<AsxTaskId> {
        let status = error.status.map_or(-1, Status::number);
        let text = Text::new(Some(&error.message));
        let why = text.pointer();
        let mut task = blank!(AsxTaskId);
        call!(task::asx_task_spawn_failed(self.rt, region, status, why, &mut task))?;
        Ok(task)
    }

    fn cancel(&mut self, task: AsxTaskId, ask: Ask) -> Done<bool> {
        let text = Text::new(ask.message.as_deref());
        let why = text.pointer();
        let kind = ask.kind as i32;
        let mut first = 0;
        call!(task::asx_task_cancel(self.rt, task, kind, why, &mut first))?;
        Ok(first != 0)
    }

    fn wake(&mut self, task: AsxTaskId) -> Done {
        call!(task::asx_task_wake(self.rt, task))
    }

    fn try_task(&mut self, task: AsxTaskId, to: TaskState) -> Done {
        call!(task::asx_task_check(self.rt, task, to as i32))
    }

    fn spend(&mut self, current: &Polled<'_, AsxTaskId>, cost: u64) -> Done {
        call!(task::asx_task_spend(self.rt, current.task, cost))
    }

    fn wait(
        &mut self,
        wait: Wait<Self>,
        current: &mut Polled<'_, AsxTaskId>,
    ) -> Done<Poll<Came<Self>>> {
        let rt = self.rt;
        let task = current.task;
        match wait {
            Wait::Checkpoint => {
                let mut cx = self.cx(task);
                waited(call!(cx::asx_checkpoint(&mut cx)), || Came::Nothing)
            }
            Wait::IsCancelled => {
                let mut value = 0;
                call!(task::asx_task_is_cancelled(rt, task, &mut value))?;
                Ok(Poll::Ready(Came::Cancelled(value != 0)))
            }
            Wait::Sleep(until) => self.sleep(until, current),
            Wait::Join(target) => {
                let mut end = -1;
                waited(call!(task::asx_task_join(rt, task, target, &mut end)), || outcome(end))
            }
            Wait::Closed(region) => {
                let mut end = -1;
                waited(call!(region::asx_region_wait(rt, region, task, &mut end)), || outcome(end))
            }
            Wait::Stopping => waited(call!(task::asx_task_stopping(rt, task)), || Came::Nothing),
            Wait::Reserve { channel, tracked } => {
                let mut cx = self.cx(task);
                let mut sender = self.sender(channel);
                let mut permit = self.no_permit();
                let (of, by, out) = (&mut sender, &mut cx, &mut permit);
                let reserved = match tracked {
                    false => call!(channel::asx_channel_reserve(of, by, out)),
                    true => call!(channel::asx_channel_reserve_tracked(of, by, out)),
                };
                waited(reserved, || Came::Permit(permit))
            }
            Wait::Recv(channel) => {
                let mut value = 0_i64;
                let to = (&raw mut value).cast();
                let mut cx = self.cx(task);
                let mut receiver = self.receiver(channel);
                let received = call!(channel::asx_channel_recv(&mut receiver, &mut cx, to));
                waited(received, || Came::Value(value))
            }
        }
    }

    fn cancel_seen(&self, current: &Polled<'_, AsxTaskId>) -> CancelSeen {
        self.cancel_of(current.task).unwrap_or_default()
    }

    fn oblige(&mut self, region: AsxRegionId) -> Done<AsxObligationId> {
        let mut obligation = blank!(AsxObligationId);
        call!(obligation::asx_obligation_reserve(self.rt, region, &mut obligation))?;
        Ok(obligation)
    }

    fn resolve(&mut self, obligation: AsxObligationId, how: Resolution) -> Done {
        match how {
            Resolution::Commit => call!(obligation::asx_obligation_commit(self.rt, obligation)),
            _ => call!(obligation::asx_obligation_abort(self.rt, obligation)),
        }
    }

    fn try_obligation(&mut self, obligation: AsxObligationId, to: ObligationState) -> Done {
        call!(obligation::asx_obligation_check(self.rt, obligation, to as i32))
    }

    fn channel(&mut self, region: Option<AsxRegionId>, capacity: usize) -> Done<AsxChannelId> {
        let of = maybe(region.as_ref());
        let mut sender = self.sender(blank!(AsxChannelId));
        let mut receiver = self.receiver(blank!(AsxChannelId));
        let (to, from) = (&mut sender, &mut receiver);
        call!(channel::asx_channel_create(self.rt, of, capacity, SIZE, to, from))?;
        Ok(sender.channel)
    }

    fn channel_op(&mut self, channel: AsxChannelId, op: ChannelOp) -> Done {
        let mut sender = self.sender(channel);
        match op {
            ChannelOp::Send(value) => {
                let data = (&raw const value).cast();
                call!(channel::asx_channel_try_send(&mut sender, data))
            }
            ChannelOp::AddSender => {
                let mut other = sender;
                call!(channel::asx_channel_sender_clone(&mut sender, &mut other))
            }
            ChannelOp::DropSender => call!(channel::asx_channel_sender_close(&mut sender)),
            ChannelOp::DropReceiver => {
                let mut receiver = self.receiver(channel);
                call!(channel::asx_channel_receiver_close(&mut receiver))
            }
        }
    }

    fn evict(&mut self, channel: AsxChannelId, value: i64) -> Done<Option<i64>> {
        let mut old = 0_i64;
        let mut evicted = 0;
        let data = (&raw const value).cast();
        let to = (&raw mut old).cast();
        let mut sender = self.sender(channel);
        call!(channel::asx_channel_evict(&mut sender, data, to, &mut evicted))?;
        Ok((evicted != 0).then_some(old))
    }

    fn try_recv(&mut self, channel: AsxChannelId) -> Done<i64> {
        let mut value = 0_i64;
        let to = (&raw mut value).cast();
        let mut receiver = self.receiver(channel);
        call!(channel::asx_channel_try_recv(&mut receiver, to))?;
        Ok(value)
    }

    fn try_reserve(
        &mut self,
        channel: AsxChannelId,
        tracked: bool,
        holder: Option<&mut Polled<'_, AsxTaskId>>,
    ) -> Done<AsxSendPermit> {
        let holder = holder.map(|holder| holder.task);
        let of = maybe(holder.as_ref());
        let tracks = i32::from(tracked);
        let mut sender = self.sender(channel);
        let mut permit = self.no_permit();
        call!(channel::asx_channel_try_reserve(&mut sender, of, tracks, &mut permit))?;
        Ok(permit)
    }

    fn send(&mut self, mut permit: AsxSendPermit, value: i64) -> Done {
        let data = (&raw const value).cast();
        call!(channel::asx_send_permit_send(&mut permit, data))
    }

    fn abort(&mut self, mut permit: AsxSendPermit) -> Done {
        call!(channel::asx_send_permit_try_abort(&mut permit))
    }

    fn drop_permit(&mut self, mut permit: AsxSendPermit) -> Done<bool> {
        let mut leaked = 0;
        call!(channel::asx_send_permit_drop(&mut permit, &mut leaked))?;
        Ok(leaked != 0)
    }

    fn arm(
        &mut self,
        old: Option<TimerHandle>,
        region: AsxRegionId,
        until: When,
        wakes: Option<AsxTaskId>,
    ) -> Done<TimerHandle> {
        let rt = self.rt;
        let until = when(until);
        let wakes = maybe(wakes.as_ref());
        let mut raw = AsxTimerHandle { id: 0, generation: 0 };
        match old.map(raw_timer) {
            Some(old) => {
                call!(timer::asx_region_timer_update(rt, old, region, until, wakes, &mut raw))?;
            }
            None => call!(timer::asx_region_timer_arm(rt, region, until, wakes, &mut raw))?,
        }
        Ok(kernel_timer(raw))
    }

    fn disarm(&mut self, timer: TimerHandle) -> Done<bool> {
        let mut cancelled = 0;
        call!(timer::asx_region_timer_cancel(self.rt, raw_timer(timer), &mut cancelled))?;
        Ok(cancelled != 0)
    }

    fn task_fields(&self, task: AsxTaskId) -> Done<Reply> {
        self.look_at_task(task)
    }

    fn region_fields(&self, region: AsxRegionId) -> Done<Reply> {
        self.look_at_region(region)
    }

    fn channel_view(&self, channel: AsxChannelId) -> Done<ChannelView> {
        self.look_at_channel(channel)
    }

    fn obligation(&self, obligation: AsxObligationId) -> Done<ObligationState> {
        let mut state = -1;
        ask!(obligation::asx_obligation_state(self.rt, obligation, &mut state))?;
        ObligationState::ALL.get(state as usize).copied().ok_or(Status::Internal)
    }

    fn permit(&self, mut permit: AsxSendPermit) -> Done<PermitState> {
        let mut state = 0;
        ask!(channel::asx_send_permit_state(&mut permit, &mut state))?;
        Ok(if state == 0 { PermitState::Live } else { PermitState::Leaked })
    }

    fn timer(&self, timer: TimerHandle) -> Done<Option<(Time, Option<Placement>)>> {
        self.look_at_timer(raw_timer(timer))
    }

    fn timers(&self) -> Done<(usize, Option<Time>, usize)> {
        let queues = self.queues()?;
        let next = (queues.next_timer != ASX_NONE).then(|| Time::from_nanos(queues.next_timer));
        Ok((queues.timers as usize, next, queues.timer_storage as usize))
    }

    fn lanes(&self) -> Done<[usize; 3]> {
        let queues = self.queues()?;
        Ok([queues.cancel, queues.timed, queues.ready].map(|queued| queued as usize))
    }

    fn certificate(&self, worker: usize) -> Done<Reply> {
        if worker > 0 {
            return Err(Status::InvalidArgument);
        }
        let queues = self.queues()?;
        Ok(Reply::ok()
            .with("cancel", queues.cancel_dispatches)
            .with("timed", queues.timed_dispatches)
            .with("ready", queues.ready_dispatches)
            .with("fallback", queues.fallback_dispatches)
            .with("base_exceedances", queues.base_exceedances)
            .with("effective_exceedances", queues.effective_exceedances)
            .with("max_limit", queues.max_limit)
            .with("hash", format!("{:016x}", queues.certificate)))
    }

    fn next_wake(&self) -> Option<Time> {
        let mut next = 0;
        ask!(runtime::asx_next_deadline(self.rt, &mut next)).ok()?;
        Some(Time::from_nanos(next))
    }

    fn outcome(&self, task: AsxTaskId) -> Option<Severity> {
        let mut seen = -1;
        ask!(task::asx_task_outcome(self.rt, task, &mut seen)).ok()?;
        severity(seen)
    }

    fn journal(&self) -> JournalView {
        let mut digest = 0;
        let _ = ask!(journal::asx_journal_digest(self.rt, &mut digest));
        let info = self.journal_info();
        let events = events::read(self.rt);
        JournalView { events, digest, recorded: info.recorded, lost: info.lost }
    }

    fn not_quiescent(&self) -> Vec<Status> {
        self.diagnosis()
    }
}

impl Shared {
    /// Goes to sleep, or goes on sleeping.
    fn sleep(
        &self,
        until: When,
        current: &mut Polled<'_, AsxTaskId>,
    ) -> Done<Poll<Came<Rc<Shared>>>> {
        let timer = match *current.sleep {
            Some(timer) => raw_timer(timer),
            None => {
                let mut timer = AsxTimerHandle { id: 0, generation: 0 };
                call!(task::asx_task_sleep(self.rt, current.task, when(until), &mut timer))?;
                timer
            }
        };
        let slept = call!(task::asx_task_sleep_over(self.rt, current.task, timer));
        let sleeps = slept == Err(Status::WouldBlock);
        *current.sleep = sleeps.then_some(kernel_timer(timer));
        waited(slept, || Came::Nothing)
    }

    /// At most so many steps.
    fn step_many(&self, now: Time, most: u64) -> Done<AsxProgress> {
        let mut progress = AsxProgress {
            struct_size: size_of::<AsxProgress>() as u32,
            idle: 0,
            polls: 0,
            next_deadline: 0,
            last_task: blank!(AsxTaskId),
            last_lane: -1,
            reserved: 0,
        };
        call!(runtime::asx_step(self.rt, now.as_nanos(), most, &mut progress))?;
        Ok(progress)
    }
}

impl Driver for Rc<Shared> {
    type Api = Rc<Shared>;

    fn api(&mut self) -> &mut Rc<Shared> {
        self
    }

    fn fire(&mut self) -> Done<u64> {
        let mut fired = 0;
        call!(runtime::asx_fire_timers(self.rt, &mut fired))?;
        Ok(fired)
    }

    fn step(&mut self, worker: Option<usize>) -> Done<Option<(u64, Lane)>> {
        if worker.is_some_and(|worker| worker > 0) {
            return Err(Status::InvalidArgument);
        }
        let progress = self.step_many(self.now(), 1)?;
        if progress.polls == 0 {
            return Ok(None);
        }
        let lane = Lane::ALL.get(progress.last_lane as usize).ok_or(Status::Internal)?;
        Ok(Some((progress.last_task.generation, *lane)))
    }

    /// A profile may bound the steps of a call: then there are several calls.
    fn run(&mut self, max_steps: u64) -> Option<u64> {
        let mut polls = 0;
        loop {
            let left = max_steps.saturating_add(1) - polls;
            let progress = self.step_many(self.now(), left).ok()?;
            polls += progress.polls;
            if polls > max_steps {
                return None;
            }
            if progress.idle != 0 {
                return Some(polls);
            }
        }
    }

    fn control(&mut self, control: Control) -> Done {
        let rt = self.rt;
        match control {
            Control::Suggest(mode) => call!(runtime::asx_set_governor_mode(rt, mode as i32)),
            Control::SoftStop => call!(runtime::asx_soft_stop(rt)),
            Control::Shutdown { soft, force_after } => {
                let force = force_after.map_or(ASX_NONE, nanos);
                call!(runtime::asx_shutdown(rt, nanos(soft), force))
            }
        }
    }
}
