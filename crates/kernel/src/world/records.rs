//! The stored state of each object.

use super::*;

/// Identifies a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId(pub Key);

pub(super) struct RegionRecord<P> {
    pub(super) parent: Option<RegionId>,
    /// The creation number among the children of its parent, tasks included.
    pub(super) order: u64,
    pub(super) word: RegionWord,
    pub(super) options: RegionOptions,
    pub(super) gate_open: bool,
    pub(super) reason: Option<Reason>,
    pub(super) cleanup: Cleanup,
    pub(super) tasks: Set<TaskId>,
    pub(super) children: Set<RegionId>,
    /// Ended tasks and closed child regions. Their slots are freed when they are released, when
    /// this region's slot is freed (tasks) or when this region closes (regions). With `keep_ended`
    /// the regions remain here, retired.
    pub(super) ended_tasks: Set<TaskId>,
    pub(super) closed_children: Set<RegionId>,
    pub(super) finalizers: Vec<P>,
    pub(super) obligations: Set<ObligationId>,
    pub(super) channels: Set<ChannelId>,
    /// In the order of arming.
    pub(super) timers: Map<u64, TimerHandle>,
    pub(super) fold: Fold<(), TaskError>,
    pub(super) first_cause: Option<TaskOutcome>,
    pub(super) next_order: u64,
    pub(super) storage: usize,
    /// Whether its handle is stale because its parent has closed, and it is kept for its outcome.
    pub(super) retired: bool,
    /// The key of the grace period at the end of which the contents are aborted.
    pub(super) force: Option<(Time, u64)>,
}

impl<P> RegionRecord<P> {
    pub(super) fn new(
        parent: Option<RegionId>,
        order: u64,
        options: RegionOptions,
    ) -> RegionRecord<P> {
        RegionRecord {
            parent,
            order,
            word: RegionWord::default(),
            options,
            gate_open: true,
            reason: None,
            cleanup: Kind::User.cleanup(),
            tasks: Set::default(),
            children: Set::default(),
            ended_tasks: Set::default(),
            closed_children: Set::default(),
            finalizers: Vec::new(),
            obligations: Set::default(),
            channels: Set::default(),
            timers: Map::default(),
            fold: Fold::default(),
            first_cause: None,
            next_order: 0,
            storage: 0,
            retired: false,
            force: None,
        }
    }
}

impl<P> RegionRecord<P> {
    /// Returns the fold of its children's outcomes, once Closed.
    pub(super) fn outcome(&self) -> Option<Severity> {
        (self.word.state() == RegionState::Closed).then(|| self.fold.severity())
    }

    /// Returns the number of the next child.
    pub(super) fn take_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }
}

/// An entry of a task's cleanup stack.
pub(super) enum Entry<P> {
    Permit(PermitId),
    Payload(P),
}

/// A wait of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Send(ChannelId, WaiterId),
    Recv(ChannelId),
    /// The number orders the waiters.
    Watch(Watched, u64),
    /// The watched event has happened with this outcome, which the task has not yet observed.
    Seen(Watched, Severity),
}

/// A one-time event that any number of tasks can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watched {
    /// The task has ended.
    Task(TaskId),
    /// The region has closed.
    Region(RegionId),
    /// The soft stop has begun.
    NoValue,
}

pub(super) struct TaskRecord<P> {
    pub(super) region: RegionId,
    /// The creation number among the children of its region.
    pub(super) order: u64,
    pub(super) life: Lifecycle,
    pub(super) budget: Budget,
    pub(super) finalizer: bool,
    pub(super) pinned: bool,
    /// The worker of a pinned task.
    pub(super) home: usize,
    pub(super) payload: Option<P>,
    pub(super) part: Part,
    pub(super) stack: Vec<Entry<P>>,
    /// The outcome of the body, while the cleanup stack runs.
    pub(super) ended: Option<TaskOutcome>,
    pub(super) outcome: Option<TaskOutcome>,
    pub(super) queued: Option<(Ticket, Place)>,
    pub(super) polling: bool,
    /// Whether it was woken during its own poll.
    pub(super) woken: bool,
    pub(super) shields: u32,
    pub(super) waits: Vec<Wait>,
    /// In the order of arming.
    pub(super) timers: Map<u64, TimerHandle>,
    pub(super) polls: u64,
    pub(super) polls_since_request: u64,
    pub(super) cleanup_polls: u64,
    pub(super) noticed: Noticed,
    pub(super) overrun: bool,
    /// Whether it was aborted at the end of a grace period; its cleanup stack may run.
    pub(super) forced: bool,
    /// Whether it was aborted during its poll, and the poll has not returned.
    pub(super) cut_in_poll: bool,
    /// Whether its handle is stale because its region's is, and it is kept for its outcome.
    pub(super) retired: bool,
    /// The last recorded phase of its cancel.
    pub(super) phase: Option<Phase>,
    pub(super) cleanup_error: Option<TaskError>,
}

impl<P> TaskRecord<P> {
    pub(super) fn new(region: RegionId, order: u64, budget: Budget) -> TaskRecord<P> {
        TaskRecord {
            region,
            order,
            life: Lifecycle::default(),
            budget,
            finalizer: false,
            pinned: false,
            home: 0,
            payload: None,
            part: Part::default(),
            stack: Vec::new(),
            ended: None,
            outcome: None,
            queued: None,
            polling: false,
            woken: false,
            shields: 0,
            waits: Vec::new(),
            timers: Map::default(),
            polls: 0,
            polls_since_request: 0,
            cleanup_polls: 0,
            noticed: Noticed::default(),
            overrun: false,
            forced: false,
            cut_in_poll: false,
            retired: false,
            phase: None,
            cleanup_error: None,
        }
    }
}

pub(super) struct ChannelRecord<V> {
    pub(super) law: Channel<V, TaskId>,
    pub(super) scope: Option<RegionId>,
    pub(super) permits: Set<PermitId>,
    /// The accounted bytes; 0 once fully closed.
    pub(super) bytes: usize,
    /// Whether it is recorded that the last sender is gone.
    pub(super) senders_gone: bool,
}

#[derive(Clone, Copy)]
pub(super) struct PermitRecord {
    pub(super) channel: ChannelId,
    pub(super) holder: Option<TaskId>,
    pub(super) state: PermitState,
    pub(super) obligation: Option<ObligationId>,
}

/// The owner of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerOwner {
    /// The timer is a task's own wait.
    Task(TaskId),
    /// The timer belongs to the region and wakes the task, if any.
    Region(RegionId, Option<TaskId>),
}

/// The value that a world's wheel carries for each timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerToken {
    pub(super) owner: TimerOwner,
    /// The creation number among the timers of the world.
    pub(super) order: u64,
}

impl TimerToken {
    /// The token of a timer that belongs to no world.
    pub const UNOWNED: TimerToken = TimerToken {
        owner: TimerOwner::Region(RegionId(Key { generation: 0, index: 0 }), None),
        order: 0,
    };
}

/// The action at the end of a grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grace {
    /// The end of the soft stop: close with Shutdown, and abort after this duration.
    Close(Option<Duration>),
    /// Abort live tasks. Repeated after this duration if finalizers are still alive.
    Force(Duration),
}
