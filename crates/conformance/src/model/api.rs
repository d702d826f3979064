//! The model's operations: those of the world.

use super::{Engine, Script};
use crate::api::{
    Came, CancelSeen, ChannelOp, Control, Done, Driver, Handle, HostApi, JournalView, Polled,
    RegionOp, Scripted, Wait,
};
use crate::book::Book;
use crate::events::HostEvent;
use crate::host::Reply;
use crate::interpreter;
use crate::scenario::{BrowserOp, Scenario, When};
use asx_kernel::ids::{ChannelId, ObligationId, RegionId, TaskId};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::{Lattice, Severity};
use asx_kernel::session::{DropContext, PermitState, Resolution};
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Placement, TimerHandle};
use asx_kernel::world::{
    Ask, ChannelView, PermitId, RegionOptions, SleepUntil, Step, TaskError, TaskOptions,
};
use core::task::Poll;
use core::time::Duration;
use std::sync::{Arc, MutexGuard, PoisonError};

macro_rules! handles {
    ($($type:ty),*) => {$(
        impl Handle for $type {
            fn ordinal(self) -> u64 {
                self.0.generation
            }
        }
    )*};
}

handles!(TaskId, RegionId, ChannelId, ObligationId, PermitId);

fn until(when: When) -> SleepUntil {
    match when {
        When::After(span) => SleepUntil::After(span),
        When::At(time) => SleepUntil::At(time),
    }
}

/// The status of a refused offer; what was offered is dropped.
fn refused<T>((status, _): (Status, T)) -> Status {
    status
}

impl HostApi for Engine {
    type Task = TaskId;
    type Region = RegionId;
    type Channel = ChannelId;
    type Permit = PermitId;
    type Obligation = ObligationId;
    type Current<'a> = Polled<'a, TaskId>;

    fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn book(&self) -> MutexGuard<'_, Book<Engine>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name_finalizers(&mut self) {
        let mut book = self.book();
        for (task, script) in self.world.payloads() {
            if !book.knows_task(task.ordinal()) {
                book.bind_task(&script.own.name, task);
            }
        }
    }

    fn now(&self) -> Time {
        self.world.now()
    }

    fn advance(&mut self, to: Time) -> Done {
        self.world.set_now(to);
        Ok(())
    }

    fn root(&self) -> Done<RegionId> {
        Ok(self.world.root())
    }

    fn region_of(&self, current: &Polled<'_, TaskId>) -> Done<RegionId> {
        Ok(self.world.task(current.task)?.region)
    }

    fn open(&mut self, parent: RegionId, options: RegionOptions) -> Done<RegionId> {
        self.world.open_region(parent, options)
    }

    fn close(&mut self, region: RegionId, ask: Ask, force_after: Option<Duration>) -> Done<bool> {
        self.world.close_region(region, ask, force_after)
    }

    fn region_op(&mut self, region: RegionId, op: RegionOp) -> Done {
        match op {
            RegionOp::End => self.world.end_region(region),
            RegionOp::Gate(open) => self.world.set_admission(region, open),
            RegionOp::UseStorage(bytes) => self.world.use_storage(region, bytes),
            RegionOp::Release => self.world.release_region(region),
            RegionOp::Move(to) => self.world.try_region(region, to),
        }
    }

    fn defer(&mut self, region: RegionId, body: Scripted) -> Done {
        self.world.defer(region, Script::new(body)).map_err(refused)
    }

    fn spawn_finalizer(&mut self, region: RegionId, body: Scripted) -> Done<Option<TaskId>> {
        let task = self.world.spawn_finalizer(region, Script::new(body)).map_err(refused)?;
        Ok(Some(task))
    }

    fn spawn(&mut self, region: RegionId, options: TaskOptions, body: Scripted) -> Done<TaskId> {
        self.world.spawn(region, options, Script::new(body)).map_err(refused)
    }

    fn spawn_failed(&mut self, region: RegionId, error: TaskError) -> Done<TaskId> {
        self.world.spawn_failed(region, error)
    }

    fn cancel(&mut self, task: TaskId, ask: Ask) -> Done<bool> {
        self.world.cancel_task(task, ask)
    }

    fn wake(&mut self, task: TaskId) -> Done {
        self.world.wake(task)
    }

    fn try_task(&mut self, task: TaskId, to: TaskState) -> Done {
        self.world.try_task(task, to)
    }

    fn spend(&mut self, current: &Polled<'_, TaskId>, cost: u64) -> Done {
        self.world.spend(current.task, cost)
    }

    fn wait(
        &mut self,
        wait: Wait<Engine>,
        current: &mut Polled<'_, TaskId>,
    ) -> Done<Poll<Came<Engine>>> {
        let world = &mut self.world;
        let task = current.task;
        Ok(match wait {
            Wait::Checkpoint => {
                world.checkpoint(task)?;
                Poll::Ready(Came::Nothing)
            }
            Wait::IsCancelled => Poll::Ready(Came::Cancelled(world.is_cancelled(task)?)),
            Wait::Sleep(when) => {
                let timer = match *current.sleep {
                    Some(timer) => timer,
                    None => {
                        self.may_wait()?;
                        self.world.sleep(task, until(when))?
                    }
                };
                let world = &mut self.world;
                let slept = world.slept(task, timer);
                *current.sleep = matches!(slept, Ok(Poll::Pending)).then_some(timer);
                slept?.map(|()| Came::Nothing)
            }
            Wait::Join(target) => world.join(task, target)?.map(Came::Outcome),
            Wait::Closed(region) => world.closed(task, region)?.map(Came::Outcome),
            Wait::Stopping => world.stopping(task)?.map(|()| Came::Nothing),
            Wait::Reserve { channel, tracked } => {
                world.reserve(task, channel, tracked)?.map(Came::Permit)
            }
            Wait::Recv(channel) => world.recv(task, channel)?.map(Came::Value),
        })
    }

    fn cancel_seen(&self, current: &Polled<'_, TaskId>) -> CancelSeen {
        let Ok(view) = self.world.task(current.task) else { return CancelSeen::default() };
        let reason = view.witness.as_ref().map(|witness| &witness.reason);
        CancelSeen {
            kind: reason.map(|reason| reason.kind),
            message: reason.and_then(|reason| reason.message.as_deref()).map(str::to_owned),
            polls_left: view.polls_left,
        }
    }

    fn oblige(&mut self, region: RegionId) -> Done<ObligationId> {
        self.world.oblige(region)
    }

    fn resolve(&mut self, obligation: ObligationId, how: Resolution) -> Done {
        self.world.resolve(obligation, how)
    }

    fn channel(&mut self, region: Option<RegionId>, capacity: usize) -> Done<ChannelId> {
        self.world.channel(region, capacity)
    }

    fn channel_op(&mut self, channel: ChannelId, op: ChannelOp) -> Done {
        match op {
            ChannelOp::Send(value) => self.world.try_send(channel, value).map_err(refused),
            ChannelOp::AddSender => self.world.clone_sender(channel),
            ChannelOp::DropSender => self.world.drop_sender(channel),
            ChannelOp::DropReceiver => self.world.drop_receiver(channel),
        }
    }

    fn evict(&mut self, channel: ChannelId, value: i64) -> Done<Option<i64>> {
        self.world.evict(channel, value).map_err(refused)
    }

    fn try_recv(&mut self, channel: ChannelId) -> Done<i64> {
        self.world.try_recv(channel)
    }

    fn try_reserve(
        &mut self,
        channel: ChannelId,
        tracked: bool,
        holder: Option<&mut Polled<'_, TaskId>>,
    ) -> Done<PermitId> {
        self.world.try_reserve(holder.map(|holder| holder.task), channel, tracked)
    }

    fn send(&mut self, permit: PermitId, value: i64) -> Done {
        self.world.send(permit, value).map_err(refused)
    }

    fn abort(&mut self, permit: PermitId) -> Done {
        self.world.abort(permit)
    }

    fn drop_permit(&mut self, permit: PermitId) -> Done<bool> {
        self.world.drop_permit(permit, DropContext::User)
    }

    fn arm(
        &mut self,
        old: Option<TimerHandle>,
        region: RegionId,
        when: When,
        wakes: Option<TaskId>,
    ) -> Done<TimerHandle> {
        match old {
            Some(old) => self.world.update_timer(old, region, until(when), wakes),
            None => self.world.arm(region, until(when), wakes),
        }
    }

    fn disarm(&mut self, timer: TimerHandle) -> Done<bool> {
        Ok(self.world.disarm(timer))
    }

    fn task_fields(&self, task: TaskId) -> Done<Reply> {
        self.look_at_task(task)
    }

    fn region_fields(&self, region: RegionId) -> Done<Reply> {
        self.look_at_region(region)
    }

    fn channel_view(&self, channel: ChannelId) -> Done<ChannelView> {
        self.world.channel_view(channel)
    }

    fn obligation(&self, obligation: ObligationId) -> Done<ObligationState> {
        self.world.obligation(obligation)
    }

    fn permit(&self, permit: PermitId) -> Done<PermitState> {
        self.world.permit(permit)
    }

    fn timer(&self, timer: TimerHandle) -> Done<Option<(Time, Option<Placement>)>> {
        let wheel = self.world.timers();
        Ok(wheel.get(timer).map(|(deadline, _)| (deadline, wheel.level_of(timer))))
    }

    fn timers(&self) -> Done<(usize, Option<Time>, usize)> {
        let wheel = self.world.timers();
        Ok((wheel.len(), wheel.next_deadline(), wheel.storage()))
    }

    fn lanes(&self) -> Done<[usize; 3]> {
        Ok(Lane::ALL.map(|lane| self.world.queued_in(lane)))
    }

    fn certificate(&self, worker: usize) -> Done<Reply> {
        if worker >= self.world.scheduler().workers() {
            return Err(Status::InvalidArgument);
        }
        Ok(interpreter::certificate(&self.world.scheduler().certificate(worker)))
    }

    fn next_wake(&self) -> Option<Time> {
        self.world.next_wake()
    }

    fn pump_fields(&self) -> Done<Reply> {
        Ok(match &self.browser {
            Some(browser) => browser.look(),
            None => Reply::status(Status::InvalidArgument).note("there is no [config.browser]"),
        })
    }

    fn browser_op(&mut self, op: &BrowserOp, in_body: bool) -> Reply {
        self.turn_loop(op, in_body)
    }

    fn outcome(&self, task: TaskId) -> Option<Severity> {
        self.world.task(task).ok()?.outcome.map(|outcome| outcome.severity())
    }

    fn journal(&self) -> JournalView {
        let journal = self.world.journal();
        JournalView {
            events: journal.events().copied().collect(),
            digest: journal.digest(),
            recorded: journal.recorded(),
            lost: journal.lost(),
        }
    }

    fn host_events(&self) -> Vec<HostEvent> {
        self.browser.as_ref().map(|browser| browser.events()).unwrap_or_default()
    }

    fn not_quiescent(&self) -> Vec<Status> {
        self.world.quiescent().err().map(|not| not.all()).unwrap_or_default()
    }
}

impl Driver for Engine {
    type Api = Engine;

    fn api(&mut self) -> &mut Engine {
        self
    }

    fn fire(&mut self) -> Done<u64> {
        Ok(self.world.expire() as u64)
    }

    fn step(&mut self, worker: Option<usize>) -> Done<Option<(u64, Lane)>> {
        let now = self.world.now();
        let step = match worker {
            Some(worker) => self.world.next_on(worker, now, &mut self.choose)?,
            None => self.world.next(now, &mut self.choose)?,
        };
        match step {
            Step::Poll { task, lane, .. } => {
                self.poll(task);
                Ok(Some((task.ordinal(), lane)))
            }
            Step::Idle { .. } => Ok(None),
        }
    }

    fn control(&mut self, control: Control) -> Done {
        match control {
            Control::Suggest(mode) => {
                self.suggestion = mode;
                self.world.suggest(mode);
            }
            Control::SoftStop => self.world.soft_stop(),
            Control::Shutdown { soft, force_after } => self.world.shutdown(soft, force_after)?,
        }
        Ok(())
    }

    fn is_driven(&self) -> bool {
        self.browser.is_some()
    }

    fn run_loop(&mut self, max_steps: u64) -> Option<u64> {
        self.turn_until_idle(max_steps)
    }
}
