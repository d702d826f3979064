//! What the interpreter asks of a host: the primitive operations on handles.
//!
//! A host implements [`HostApi`] (what the script and tasks can do) and [`Driver`] (what only the
//! script can do: move the clock and step). Names, expectations and replies are the interpreter's.

use crate::body::BodyRunner;
use crate::book::Book;
use crate::events::HostEvent;
use crate::host::Reply;
use crate::scenario::{BrowserOp, Checked, Name, Scenario, When};
use asx_kernel::cancel::Kind;
use asx_kernel::journal::Event;
use asx_kernel::lanes::{Lane, Suggestion};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::session::{PermitState, Resolution};
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Placement, TimerHandle};
use asx_kernel::world::{Ask, ChannelView, RegionOptions, TaskError, TaskOptions};
use core::task::Poll;
use core::time::Duration;
use std::sync::{Arc, MutexGuard};

/// The result of a primitive operation.
pub(crate) type Done<T = ()> = Result<T, Status>;

/// A host's handle of a thing; the journal shows it as a number.
pub(crate) trait Handle: Copy {
    /// That number.
    fn ordinal(self) -> u64;
}

impl Handle for u64 {
    fn ordinal(self) -> u64 {
        self
    }
}

impl Handle for TimerHandle {
    fn ordinal(self) -> u64 {
        self.generation
    }
}

/// The operations on a host's regions, tasks, channels and timers.
pub(crate) trait HostApi: Sized {
    type Task: Handle;
    type Region: Handle;
    type Channel: Handle;
    type Permit: Handle;
    type Obligation: Handle;
    /// How the host knows the task that is being polled.
    type Current<'a>;

    fn scenario(&self) -> &Arc<Scenario>;
    fn seed(&self) -> u64;
    /// The names. The lock is not held across a call of the host.
    fn book(&self) -> MutexGuard<'_, Book<Self>>;
    /// Names finalizers that have started since: only then do they have a handle.
    fn name_finalizers(&mut self) {}

    fn now(&self) -> Time;
    fn advance(&mut self, to: Time) -> Done;

    fn root(&self) -> Done<Self::Region>;
    fn region_of(&self, current: &Self::Current<'_>) -> Done<Self::Region>;
    fn open(&mut self, parent: Self::Region, options: RegionOptions) -> Done<Self::Region>;
    /// Whether it is the first close.
    fn close(
        &mut self,
        region: Self::Region,
        ask: Ask,
        force_after: Option<Duration>,
    ) -> Done<bool>;
    fn region_op(&mut self, region: Self::Region, op: RegionOp) -> Done;
    fn defer(&mut self, region: Self::Region, body: Scripted) -> Done;
    /// The handle of the finalizer, unless the host names it itself.
    fn spawn_finalizer(&mut self, region: Self::Region, body: Scripted)
    -> Done<Option<Self::Task>>;

    fn spawn(
        &mut self,
        region: Self::Region,
        options: TaskOptions,
        body: Scripted,
    ) -> Done<Self::Task>;
    fn spawn_failed(&mut self, region: Self::Region, error: TaskError) -> Done<Self::Task>;
    /// Whether it is the first request.
    fn cancel(&mut self, task: Self::Task, ask: Ask) -> Done<bool>;
    fn wake(&mut self, task: Self::Task) -> Done;
    fn try_task(&mut self, task: Self::Task, to: TaskState) -> Done;
    fn spend(&mut self, current: &Self::Current<'_>, cost: u64) -> Done;
    /// Begins an operation that may wait, or goes on with it.
    fn wait(&mut self, wait: Wait<Self>, current: &mut Self::Current<'_>)
    -> Done<Poll<Came<Self>>>;
    /// What the task can tell about its cancel.
    fn cancel_seen(&self, current: &Self::Current<'_>) -> CancelSeen;

    fn oblige(&mut self, region: Self::Region) -> Done<Self::Obligation>;
    fn resolve(&mut self, obligation: Self::Obligation, how: Resolution) -> Done;
    fn try_obligation(&mut self, obligation: Self::Obligation, to: ObligationState) -> Done {
        self.obligation(obligation)?.check(to)
    }

    fn channel(&mut self, region: Option<Self::Region>, capacity: usize) -> Done<Self::Channel>;
    fn channel_op(&mut self, channel: Self::Channel, op: ChannelOp) -> Done;
    fn evict(&mut self, channel: Self::Channel, value: i64) -> Done<Option<i64>>;
    fn try_recv(&mut self, channel: Self::Channel) -> Done<i64>;
    fn try_reserve(
        &mut self,
        channel: Self::Channel,
        tracked: bool,
        holder: Option<&mut Self::Current<'_>>,
    ) -> Done<Self::Permit>;
    fn send(&mut self, permit: Self::Permit, value: i64) -> Done;
    fn abort(&mut self, permit: Self::Permit) -> Done;
    /// Whether the drop panics.
    fn drop_permit(&mut self, permit: Self::Permit) -> Done<bool>;

    /// Arms a timer, in place of an old one if there is one.
    fn arm(
        &mut self,
        old: Option<TimerHandle>,
        region: Self::Region,
        when: When,
        wakes: Option<Self::Task>,
    ) -> Done<TimerHandle>;
    /// Whether it was armed.
    fn disarm(&mut self, timer: TimerHandle) -> Done<bool>;

    fn task_fields(&self, task: Self::Task) -> Done<Reply>;
    fn region_fields(&self, region: Self::Region) -> Done<Reply>;
    fn channel_view(&self, channel: Self::Channel) -> Done<ChannelView>;
    fn obligation(&self, obligation: Self::Obligation) -> Done<ObligationState>;
    fn permit(&self, permit: Self::Permit) -> Done<PermitState>;
    /// The deadline and place of an armed timer.
    fn timer(&self, timer: TimerHandle) -> Done<Option<(Time, Option<Placement>)>>;
    /// How many timers are armed, the first deadline, and the slots in use.
    fn timers(&self) -> Done<(usize, Option<Time>, usize)>;
    /// How many tasks are queued in each lane.
    fn lanes(&self) -> Done<[usize; 3]> {
        Err(Status::Internal)
    }
    fn certificate(&self, _worker: usize) -> Done<Reply> {
        Err(Status::Internal)
    }
    /// When something happens by itself next.
    fn next_wake(&self) -> Option<Time>;
    fn pump_fields(&self) -> Done<Reply> {
        Err(Status::Internal)
    }
    fn browser_op(&mut self, _op: &BrowserOp, _in_body: bool) -> Reply {
        Status::Internal.into()
    }

    /// How a task has ended, if the journal does not tell.
    fn outcome(&self, task: Self::Task) -> Option<Severity>;
    fn journal(&self) -> JournalView;
    fn host_events(&self) -> Vec<HostEvent> {
        Vec::new()
    }
    /// Every quiescence failure, in the order of the check.
    fn not_quiescent(&self) -> Vec<Status>;
}

/// What only the script can do.
pub(crate) trait Driver {
    /// The operations that tasks can do too.
    type Api: HostApi;

    fn api(&mut self) -> &mut Self::Api;
    fn advance(&mut self, to: Time) -> Done {
        self.api().advance(to)
    }
    fn fire(&mut self) -> Done<u64>;
    /// Polls a task, on that worker if one is named: its number and lane.
    fn step(&mut self, worker: Option<usize>) -> Done<Option<(u64, Lane)>>;
    /// Steps until nothing is runnable now: how often; nothing if that is too often.
    fn run(&mut self, max_steps: u64) -> Option<u64> {
        if self.is_driven() {
            return self.run_loop(max_steps);
        }
        let mut steps = 0;
        while let Ok(Some(_)) = self.step(None) {
            steps += 1;
            if steps > max_steps {
                return None;
            }
        }
        Some(steps)
    }
    fn control(&mut self, control: Control) -> Done;
    /// Whether an event loop steps, and not the script.
    fn is_driven(&self) -> bool {
        false
    }
    /// Turns the event loop until nothing is queued and nothing is due, as [`run`](Driver::run).
    fn run_loop(&mut self, _max_steps: u64) -> Option<u64> {
        None
    }
    /// What only the driver can see.
    fn look(&self, _subject: &Checked) -> Option<Reply> {
        None
    }
    fn browser_op(&mut self, op: &BrowserOp) -> Reply {
        self.api().browser_op(op, false)
    }
}

/// What is done to a region.
#[derive(Clone, Copy)]
pub(crate) enum RegionOp {
    End,
    /// Whether tasks are admitted.
    Gate(bool),
    UseStorage(usize),
    Release,
    /// Tries a step of its state.
    Move(RegionState),
}

/// What is done to a channel without waiting.
#[derive(Clone, Copy)]
pub(crate) enum ChannelOp {
    Send(i64),
    AddSender,
    DropSender,
    DropReceiver,
}

/// What is told to the whole run.
pub(crate) enum Control {
    Suggest(Suggestion),
    SoftStop,
    Shutdown { soft: Duration, force_after: Option<Duration> },
}

/// The body of a task, or an entry of its cleanup stack, with what belongs to it.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) name: Name,
    /// Its number in its group.
    pub(crate) index: i64,
    pub(crate) runner: BodyRunner,
}

/// The task on whose behalf an op is done.
pub(crate) struct Caller<'a, H: HostApi> {
    pub(crate) name: &'a str,
    pub(crate) index: i64,
    pub(crate) current: H::Current<'a>,
}

/// The task that is being polled, of hosts whose tasks wait by polling again.
pub(crate) struct Polled<'a, T> {
    pub(crate) task: T,
    /// The sleep it is in.
    pub(crate) sleep: &'a mut Option<TimerHandle>,
}

/// An operation that may wait.
pub(crate) enum Wait<H: HostApi> {
    Checkpoint,
    IsCancelled,
    Sleep(When),
    Join(H::Task),
    Closed(H::Region),
    Stopping,
    Reserve { channel: H::Channel, tracked: bool },
    Recv(H::Channel),
}

/// What a wait has brought.
pub(crate) enum Came<H: HostApi> {
    Nothing,
    Cancelled(bool),
    Outcome(Severity),
    Permit(H::Permit),
    Value(i64),
}

/// A task's cancel as the task sees it.
#[derive(Default)]
pub(crate) struct CancelSeen {
    pub(crate) kind: Option<Kind>,
    pub(crate) message: Option<String>,
    pub(crate) polls_left: Option<u64>,
}

/// A journal as it stands.
#[derive(Default)]
pub(crate) struct JournalView {
    pub(crate) events: Vec<Event>,
    pub(crate) digest: u64,
    pub(crate) recorded: u64,
    pub(crate) lost: u64,
}
