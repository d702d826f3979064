//! The operations of the runtime, on numbers that `Things` turns into handles.

use super::channels::{Held, dropped};
use super::script::{Entry, Script};
use super::waits::Pending;
use super::{Engine, TaskEntry, World};
use crate::api::{
    Came, CancelSeen, ChannelOp, Control, Done, Driver, Handle, HostApi, JournalView, RegionOp,
    Scripted, Wait,
};
use crate::book::Book;
use crate::events::HostEvent;
use crate::host::Reply;
use crate::interpreter;
use crate::scenario::{BrowserOp, Checked, Scenario, When};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::session::{LEAK_MESSAGE, PermitState, Resolution};
use asx_kernel::status::{Coded, Status};
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Placement, TimerHandle};
use asx_kernel::world::{Ask, ChannelView, Policy, RegionOptions, TaskError, TaskOptions};
use asx_runtime::probe::{ChannelProbe, RegionProbe, TaskProbe};
use asx_runtime::{Cx, Scope, Task};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An obligation by its region and its number.
#[derive(Clone, Copy)]
pub(super) struct Obligation {
    region: u64,
    id: u64,
}

impl Handle for Obligation {
    fn ordinal(self) -> u64 {
        self.id
    }
}

/// The task that is being polled.
pub(super) struct Current<'a> {
    pub(super) cx: &'a Cx,
    /// The wait it is in.
    pub(super) wait: &'a mut Option<Pending>,
    /// What it has to resolve before it ends.
    pub(super) stack: &'a mut Vec<Entry>,
    /// Whether its cancel is hidden from it.
    pub(super) shielded: bool,
    pub(super) waker: &'a Waker,
}

/// A region of a scenario as the scope of its tasks.
fn scope_of(region: &RegionProbe) -> Scope<TaskError> {
    // SAFETY: all tasks of a scenario are scripts, finalizers too: they fail with a `TaskError`.
    unsafe { region.scope() }
}

impl World {
    /// Makes a finalizer, which gets its name when it is started.
    fn finalizer(
        self: &Arc<Self>,
        body: Scripted,
    ) -> impl FnOnce(Cx) -> Script + Send + 'static + use<> {
        let world = Arc::clone(self);
        move |cx: Cx| {
            let probe = TaskProbe::of(&cx);
            world.book().bind_task(&body.name, probe.id());
            world.enter(probe, None);
            Script::new(world, cx, body)
        }
    }

    /// Notes a task: its number.
    fn enter(&self, probe: TaskProbe, handle: Option<Task<(), TaskError>>) -> u64 {
        let id = probe.id();
        self.things().tasks.insert(id, TaskEntry::new(probe, handle));
        id
    }

    /// Takes a permit out of its holder's hands.
    fn take(&self, permit: u64) -> Done<Held> {
        // Types do not let it come to this.
        self.things().permits.remove(&permit).ok_or(Status::ObligationAlreadyResolved)
    }
}

impl HostApi for Arc<World> {
    type Task = u64;
    type Region = u64;
    type Channel = u64;
    type Permit = u64;
    type Obligation = Obligation;
    type Current<'a> = Current<'a>;

    fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn book(&self) -> MutexGuard<'_, Book<Arc<World>>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        self.core.now()
    }

    fn advance(&mut self, to: Time) -> Done {
        (self.clock)(to);
        Ok(())
    }

    fn root(&self) -> Done<u64> {
        Ok(self.root.id())
    }

    fn region_of(&self, current: &Current<'_>) -> Done<u64> {
        Ok(TaskProbe::of(current.cx).region().id())
    }

    fn open(&mut self, parent: u64, options: RegionOptions) -> Done<u64> {
        let policy = match options.policy {
            Policy::FailFast => asx_runtime::Policy::FailFast,
            Policy::CollectAll => asx_runtime::Policy::CollectAll,
        };
        let region = self.region(parent)?.open(policy, options.budget, options.max_children)?;
        let id = region.id();
        self.things().regions.insert(id, region);
        Ok(id)
    }

    fn close(&mut self, region: u64, ask: Ask, force_after: Option<Duration>) -> Done<bool> {
        Ok(self.region(region)?.close(ask.kind, ask.message, force_after))
    }

    fn region_op(&mut self, region: u64, op: RegionOp) -> Done {
        let region = self.region(region)?;
        match op {
            RegionOp::End => region.end(),
            RegionOp::Gate(true) => scope_of(&region).open_admission(),
            RegionOp::Gate(false) => scope_of(&region).close_admission(),
            RegionOp::Move(to) => region.word().check(to)?,
            RegionOp::UseStorage(_) | RegionOp::Release => return Err(Status::Internal),
        }
        Ok(())
    }

    fn defer(&mut self, region: u64, body: Scripted) -> Done {
        let body = self.finalizer(body);
        // SAFETY: as in `scope_of`.
        unsafe { self.region(region)?.defer(body) }
    }

    fn spawn_finalizer(&mut self, region: u64, body: Scripted) -> Done<Option<u64>> {
        let body = self.finalizer(body);
        // SAFETY: as in `scope_of`.
        unsafe { self.region(region)?.spawn_finalizer(body) }?;
        Ok(None)
    }

    fn spawn(&mut self, region: u64, options: TaskOptions, body: Scripted) -> Done<u64> {
        let TaskOptions { budget, priority, pinned } = options;
        let scope = scope_of(&self.region(region)?);
        let mut builder = scope.task(&*body.name);
        if let Some(priority) = priority {
            builder = builder.priority(priority);
        }
        if let Some(deadline) = budget.deadline {
            builder = builder.deadline(deadline);
        }
        if budget.poll_quota != u64::MAX {
            builder = builder.polls(budget.poll_quota);
        }
        if let Some(cost) = budget.cost_quota {
            builder = builder.cost(cost);
        }
        if pinned {
            builder = builder.pinned_to(self.core.here().unwrap_or(0));
        }
        let world = Arc::clone(self);
        let born = Arc::new(Mutex::new(None));
        let probe = Arc::clone(&born);
        let handle = builder.try_spawn(move |cx: Cx| {
            *probe.lock().unwrap_or_else(PoisonError::into_inner) = Some(TaskProbe::of(&cx));
            Script::new(world, cx, body)
        })?;
        let born = born.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(self.enter(born.ok_or(Status::Internal)?, Some(handle)))
    }

    fn spawn_failed(&mut self, region: u64, error: TaskError) -> Done<u64> {
        // SAFETY: as in `scope_of`.
        let handle = unsafe { self.region(region)?.spawn_failed(error.clone()) }?;
        let id = self.enter(TaskProbe::of_task(&handle), Some(handle));
        if let Some(entry) = self.things().tasks.get_mut(&id) {
            entry.error = Some(error);
        }
        Ok(id)
    }

    fn cancel(&mut self, task: u64, ask: Ask) -> Done<bool> {
        self.task(task)?.cancel(ask.kind, ask.message)
    }

    fn wake(&mut self, task: u64) -> Done {
        self.task(task)?.wake()
    }

    fn try_task(&mut self, task: u64, to: TaskState) -> Done {
        self.task(task)?.state().check(to)
    }

    fn spend(&mut self, current: &Current<'_>, cost: u64) -> Done {
        current.cx.try_consume(cost).map_err(|exhausted| exhausted.status())
    }

    fn wait(&mut self, wait: Wait<Self>, current: &mut Current<'_>) -> Done<Poll<Came<Self>>> {
        let mut pending = match current.wait.take() {
            Some(pending) => pending,
            None => self.begin(wait, current.cx, current.shielded)?,
        };
        let Poll::Ready(came) = pending.as_mut().poll(&mut Context::from_waker(current.waker))
        else {
            *current.wait = Some(pending);
            return Ok(Poll::Pending);
        };
        drop(pending);
        let came = came?;
        if let Came::Permit(id) = came {
            current.stack.push(Entry::Permit(id));
        }
        Ok(Poll::Ready(came))
    }

    fn cancel_seen(&self, current: &Current<'_>) -> CancelSeen {
        let probe = TaskProbe::of(current.cx);
        let reason = probe.reason();
        let reason = reason.as_deref();
        CancelSeen {
            kind: reason.map(|reason| reason.kind),
            message: reason.and_then(|reason| reason.message.as_deref()).map(str::to_owned),
            polls_left: probe.cleanup().map(|cleanup| cleanup.polls),
        }
    }

    fn oblige(&mut self, region: u64) -> Done<Obligation> {
        let id = self.region(region)?.oblige()?;
        Ok(Obligation { region, id })
    }

    fn resolve(&mut self, obligation: Obligation, how: Resolution) -> Done {
        self.region(obligation.region)?.resolve(obligation.id, how)
    }

    fn channel(&mut self, region: Option<u64>, capacity: usize) -> Done<u64> {
        let region = region.map(|region| self.region(region)).transpose()?;
        let channel = ChannelProbe::new(region.as_ref(), &self.root, capacity)?;
        let id = channel.id();
        self.things().channels.insert(id, channel);
        Ok(id)
    }

    fn channel_op(&mut self, channel: u64, op: ChannelOp) -> Done {
        let channel = self.channel_by_id(channel)?;
        match op {
            ChannelOp::Send(value) => {
                let sent = channel.with_sender(|sender| sender.try_send(value));
                sent.map_err(|error| error.status())
            }
            ChannelOp::AddSender => channel.add_sender(),
            ChannelOp::DropSender => channel.drop_sender(),
            ChannelOp::DropReceiver => channel.drop_receiver(),
        }
    }

    fn evict(&mut self, channel: u64, value: i64) -> Done<Option<i64>> {
        let channel = self.channel_by_id(channel)?;
        let sent = channel.with_sender(|sender| sender.send_evict_oldest(value));
        sent.map_err(|error| error.status())
    }

    fn try_recv(&mut self, channel: u64) -> Done<i64> {
        self.channel_by_id(channel)?.try_recv().map_err(|error| error.status())
    }

    fn try_reserve(
        &mut self,
        channel: u64,
        tracked: bool,
        holder: Option<&mut Current<'_>>,
    ) -> Done<u64> {
        let channel = self.channel_by_id(channel)?;
        let held = match tracked {
            true => Held::Tracked(channel.try_reserve_tracked()?),
            false => {
                let held = channel.with_sender(|sender| sender.try_reserve_owned());
                Held::Plain(held.map_err(|error| error.status())?)
            }
        };
        let id = self.hold(held);
        if let Some(holder) = holder {
            holder.stack.push(Entry::Permit(id));
        }
        Ok(id)
    }

    fn send(&mut self, permit: u64, value: i64) -> Done {
        let sent = match self.take(permit)? {
            Held::Plain(permit) => permit.try_send(value),
            Held::Tracked(permit) => {
                let (_proof, sent) = permit.try_send(value);
                sent
            }
        };
        sent.map_err(|_| Status::Disconnected)
    }

    fn abort(&mut self, permit: u64) -> Done {
        self.take(permit)?.abort();
        Ok(())
    }

    fn drop_permit(&mut self, permit: u64) -> Done<bool> {
        let held = self.take(permit)?;
        Ok(dropped(held).is_err_and(|payload| {
            payload.downcast_ref::<&str>() == Some(&LEAK_MESSAGE)
                || payload.downcast_ref::<String>().is_some_and(|text| text == LEAK_MESSAGE)
        }))
    }

    fn arm(
        &mut self,
        old: Option<TimerHandle>,
        region: u64,
        when: When,
        wakes: Option<u64>,
    ) -> Done<TimerHandle> {
        let wakes = wakes.map(|task| self.task(task)).transpose()?.map(|task| task.waker());
        let region = self.region(region)?;
        let deadline = when.from(self.now());
        match old {
            Some(old) => region.rearm(old, deadline, wakes),
            None => region.arm(deadline, wakes),
        }
    }

    fn disarm(&mut self, timer: TimerHandle) -> Done<bool> {
        Ok(self.core.probe_disarm(timer))
    }

    fn task_fields(&self, task: u64) -> Done<Reply> {
        self.look_at_task(task)
    }

    fn region_fields(&self, region: u64) -> Done<Reply> {
        self.look_at_region(region)
    }

    fn channel_view(&self, channel: u64) -> Done<ChannelView> {
        let channel = self.channel_by_id(channel)?;
        Ok(channel.look(|law| ChannelView {
            state: law.state(),
            capacity: law.capacity(),
            len: law.len(),
            reserved: law.reserved(),
            waiters: law.waiters(),
            senders: law.senders(),
        }))
    }

    fn obligation(&self, obligation: Obligation) -> Done<ObligationState> {
        self.region(obligation.region)?.obligation(obligation.id)
    }

    fn permit(&self, permit: u64) -> Done<PermitState> {
        self.permit_state(permit)
    }

    fn timer(&self, timer: TimerHandle) -> Done<Option<(Time, Option<Placement>)>> {
        Ok(self.core.probe_timer(timer))
    }

    fn timers(&self) -> Done<(usize, Option<Time>, usize)> {
        Ok(self.core.probe_timers())
    }

    fn next_wake(&self) -> Option<Time> {
        self.core.next_wake()
    }

    fn lanes(&self) -> Done<[usize; 3]> {
        let page = self.page.as_ref().ok_or(Status::Internal)?;
        Ok(page.queued())
    }

    fn pump_fields(&self) -> Done<Reply> {
        let page = self.page.as_ref().ok_or(Status::Internal)?;
        Ok(page.pump_fields())
    }

    fn browser_op(&mut self, op: &BrowserOp, _in_body: bool) -> Reply {
        match (&self.gate, &self.page) {
            (Some(gate), _) => gate.op(op),
            (None, Some(page)) => page.op(op),
            (None, None) => Status::InvalidArgument.into(),
        }
    }

    fn outcome(&self, task: u64) -> Option<Severity> {
        self.outcome_of(task)
    }

    fn journal(&self) -> JournalView {
        let Some(recorded) = self.core.recorded() else { return JournalView::default() };
        JournalView {
            events: recorded.events,
            digest: recorded.digest,
            recorded: recorded.recorded,
            lost: recorded.lost,
        }
    }

    fn host_events(&self) -> Vec<HostEvent> {
        self.gate.as_ref().map(|gate| gate.events()).unwrap_or_default()
    }

    fn not_quiescent(&self) -> Vec<Status> {
        let public = asx_runtime::Handle::of(self.root.region()).quiescence();
        let mut codes = public.err().map(|alive| alive.codes()).unwrap_or_default();
        // Programs cannot make recorded channels without a scope, so only the scenario knows them.
        let holds = |channel: &ChannelProbe<i64>| {
            channel.scope().is_none() && channel.look(|law| law.len() + law.reserved()) > 0
        };
        let is_listed = codes.contains(&Status::ChannelNotDrained);
        if !is_listed && self.things().channels.values().any(holds) {
            codes.push(Status::ChannelNotDrained);
        }
        codes
    }
}

impl Driver for Engine {
    type Api = Arc<World>;

    fn api(&mut self) -> &mut Arc<World> {
        &mut self.world
    }

    fn advance(&mut self, to: Time) -> Done {
        self.world.advance(to)?;
        self.world.core.advance_timers(self.world.now());
        Ok(())
    }

    fn fire(&mut self) -> Done<u64> {
        Ok(self.world.core.fire_timers(self.world.now()) as u64)
    }

    fn step(&mut self, worker: Option<usize>) -> Done<Option<(u64, Lane)>> {
        if worker.is_some_and(|worker| worker >= self.run.workers()) {
            return Err(Status::InvalidArgument);
        }
        let step = self.run.step(worker);
        self.steps.fetch_add(u64::from(step.is_some()), Relaxed);
        Ok(step)
    }

    fn control(&mut self, control: Control) -> Done {
        match control {
            Control::Suggest(mode) => self.run.suggest(mode),
            Control::SoftStop => self.world.root.soft_stop(),
            Control::Shutdown { soft, force_after } => self.world.root.shutdown(soft, force_after),
        }
        Ok(())
    }

    fn is_driven(&self) -> bool {
        self.run.browser().is_some_and(|browser| browser.drives)
    }

    fn run_loop(&mut self, max_steps: u64) -> Option<u64> {
        self.run.browser()?.run_loop(max_steps)
    }

    fn look(&self, subject: &Checked) -> Option<Reply> {
        Some(match subject {
            Checked::Lanes => {
                interpreter::queries::lanes(Lane::ALL.map(|lane| self.run.queued(lane)))
            }
            Checked::Certificate(worker) => match self.run.certificate(*worker) {
                Some(certificate) => interpreter::certificate(&certificate),
                None => Status::InvalidArgument.into(),
            },
            _ => return None,
        })
    }

    fn browser_op(&mut self, op: &BrowserOp) -> Reply {
        self.turn_loop(op)
    }
}
