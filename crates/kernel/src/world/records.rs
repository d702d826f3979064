//! What the world remembers of each object.

use super::*;

/// Names a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId(pub Key);

pub(super) struct RegionRecord<P> {
    pub(super) parent: Option<RegionId>,
    /// Which child of its parent it is, tasks counted too.
    pub(super) order: u64,
    pub(super) word: RegionWord,
    pub(super) options: RegionOptions,
    pub(super) gate_open: bool,
    pub(super) reason: Option<Reason>,
    pub(super) cleanup: Cleanup,
    pub(super) tasks: Set<TaskId>,
    pub(super) children: Set<RegionId>,
    /// Ended tasks and closed child regions, whose slots live until they are released, this
    /// region's is freed (tasks) or this region closes (regions). With `keep_ended` the latter
    /// stay here, retired.
    pub(super) ended_tasks: Set<TaskId>,
    pub(super) closed_children: Set<RegionId>,
    pub(super) finalizers: Vec<P>,
    pub(super) obligations: Set<ObligationId>,
    pub(super) channels: Set<ChannelId>,
    /// In order of arming.
    pub(super) timers: Map<u64, TimerHandle>,
    pub(super) fold: Fold<(), TaskError>,
    pub(super) first_cause: Option<TaskOutcome>,
    pub(super) next_order: u64,
    pub(super) storage: usize,
    /// Stale since its parent has closed, and kept for its outcome.
    pub(super) retired: bool,
    /// When what lives inside is completed by force: the key of that grace.
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
    /// The fold of its children's outcomes, once Closed.
    pub(super) fn outcome(&self) -> Option<Severity> {
        (self.word.state() == RegionState::Closed).then(|| self.fold.severity())
    }

    /// The number of the next child.
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

/// Something a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Send(ChannelId, WaiterId),
    Recv(ChannelId),
    /// Its turn among those who wait.
    Watch(Watched, u64),
    /// What was watched has happened, with this outcome; the task has not looked yet.
    Seen(Watched, Severity),
}

/// Something that happens once, for any number of tasks to wait for.
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
    /// Which child of its region it is.
    pub(super) order: u64,
    pub(super) life: Lifecycle,
    pub(super) budget: Budget,
    pub(super) finalizer: bool,
    pub(super) pinned: bool,
    /// The worker a pinned task stays on.
    pub(super) home: usize,
    pub(super) payload: Option<P>,
    pub(super) part: Part,
    pub(super) stack: Vec<Entry<P>>,
    /// What the body said, while the cleanup stack runs.
    pub(super) ended: Option<TaskOutcome>,
    pub(super) outcome: Option<TaskOutcome>,
    pub(super) queued: Option<(Ticket, Place)>,
    pub(super) polling: bool,
    /// Woken during its own poll.
    pub(super) woken: bool,
    pub(super) shields: u32,
    pub(super) waits: Vec<Wait>,
    /// In order of arming.
    pub(super) timers: Map<u64, TimerHandle>,
    pub(super) polls: u64,
    pub(super) polls_since_request: u64,
    pub(super) cleanup_polls: u64,
    pub(super) noticed: Noticed,
    pub(super) overrun: bool,
    /// Ended by force at the end of a grace; its cleanup stack runs, or ran.
    pub(super) forced: bool,
    /// That happened while it was polled, and the poll has not returned.
    pub(super) cut_in_poll: bool,
    /// Stale since its region is, and kept for its outcome.
    pub(super) retired: bool,
    /// The last cancel phase journaled.
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
    /// Bytes counted in the memory estimate; 0 once fully closed.
    pub(super) bytes: usize,
    /// Journaled that the last sender is gone.
    pub(super) senders_gone: bool,
}

#[derive(Clone, Copy)]
pub(super) struct PermitRecord {
    pub(super) channel: ChannelId,
    pub(super) holder: Option<TaskId>,
    pub(super) state: PermitState,
    pub(super) obligation: Option<ObligationId>,
}

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerOwner {
    /// A task's own wait.
    Task(TaskId),
    /// A region's timer, and whom it wakes.
    Region(RegionId, Option<TaskId>),
}

/// The value that a world's wheel carries for each timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerToken {
    pub(super) owner: TimerOwner,
    /// Which timer of the world it is.
    pub(super) order: u64,
}

impl TimerToken {
    /// The token of a timer that belongs to no world.
    pub const UNOWNED: TimerToken = TimerToken {
        owner: TimerOwner::Region(RegionId(Key { generation: 0, index: 0 }), None),
        order: 0,
    };
}

/// What happens when a grace period is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grace {
    /// The soft stop has lasted long enough: close with Shutdown, and force after so long.
    Close(Option<Duration>),
    /// Complete by force what still lives; again after so long if finalizers live on.
    Force(Duration),
}
