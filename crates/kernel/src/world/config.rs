//! Inputs of a world: configuration, options, requests and results of polls.

use super::*;

/// The result of an operation, or the status of its refusal.
pub type Answer<T = ()> = Result<T, Status>;

/// The result of an operation that takes ownership of a value. A refusal returns the value with the
/// status.
pub type Offer<P, T = ()> = Result<T, (Status, P)>;

/// Combines an answer with the value that a refusal returns.
pub(super) fn with<P, T>(given: P, answer: Answer<T>) -> Offer<P, (P, T)> {
    match answer {
        Ok(answer) => Ok((given, answer)),
        Err(status) => Err((status, given)),
    }
}

settings! {
    /// The configuration of a world.
    pub struct Config {
        /// Workers, fairness and tie-break.
        scheduler: SchedulerConfig = SchedulerConfig::default(),
        /// Timers.
        wheel: WheelConfig = WheelConfig::default(),
        /// The limits of cause chains.
        chain: ChainLimits = ChainLimits::default(),
        /// The maximal number of objects of each kind.
        limits: Limits = Limits::default(),
        /// Whether there is a journal.
        journal: bool = true,
        /// The number of events that the journal retains.
        journal_capacity: usize = usize::MAX,
        /// The behaviour beyond that.
        when_full: WhenFull = WhenFull::Overwrite,
        /// Whether an aborted task still runs its cleanup stack, within its allowance. Off for
        /// hosts with payloads that clean up when dropped.
        forced_cleanup: bool = false,
        /// Whether the contents of a closed parent are kept until they are released. Their handles
        /// are stale, but their outcomes can be read.
        keep_ended: bool = false,
        /// Whether leaked obligations are kept for [`World::next_leaked`], with or without a
        /// journal (no).
        tell_leaks: bool = false,
    }
}

impl Config {
    pub(super) fn new_journal(&self) -> Journal {
        match self.journal && cfg!(feature = "journal") {
            true => Journal::new(self.journal_capacity, self.when_full),
            false => Journal::off(),
        }
    }
}

settings! {
    /// The maximal number of objects of each kind. The timer limit is in [`WheelConfig`].
    #[derive(Copy)]
    pub struct Limits {
        /// Tasks not Completed.
        tasks: usize = usize::MAX,
        /// Regions not Closed, the root included.
        regions: usize = usize::MAX,
        /// Obligations still Reserved.
        obligations: usize = usize::MAX,
        /// Channels not fully closed.
        channels: usize = usize::MAX,
        /// The number of ready entries from which spawns and outside wakes are refused.
        ready_queue: usize = usize::MAX,
        /// The number of timed entries from which spawns and outside wakes are refused.
        timed_queue: usize = usize::MAX,
        /// The number of cancel entries from which targeted cancels are refused.
        cancel_queue: usize = usize::MAX,
        /// The maximal memory estimate in bytes.
        memory: usize = usize::MAX - 1,
    }
}

/// The reaction of a region to a child that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The other children continue.
    #[default]
    CollectAll,
    /// Cancels the siblings; the first failure is the scope's result.
    FailFast,
}

/// Options for opening a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionOptions {
    /// The region's own budget. The effective budget is the meet with the parent's.
    pub budget: Budget,
    /// The maximal number of live children.
    pub max_children: Option<usize>,
    /// The reaction to failures.
    pub policy: Policy,
}

/// Options for spawning a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskOptions {
    /// Deadline, polls and cost. The priority in it is not used.
    pub budget: Budget,
    /// The priority; the default is 128.
    pub priority: Option<u8>,
    /// Whether the task must stay on the worker on which it was spawned.
    pub pinned: bool,
}

/// A request to cancel.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The kind.
    pub kind: Kind,
    /// A message for people.
    pub message: Option<Arc<str>>,
}

impl Ask {
    /// Creates a request without a message.
    pub const fn new(kind: Kind) -> Ask {
        Ask { kind, message: None }
    }
}

/// A task's own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    /// The registry code of the error, if any.
    pub status: Option<Status>,
    /// A message for people.
    pub message: Arc<str>,
}

/// The outcome of a task.
pub type TaskOutcome = Outcome<(), TaskError>;

/// The result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollEnd {
    /// The task waits for a wake.
    Pending,
    /// The task is done.
    Ready,
    /// The task is done, with an error.
    Failed(TaskError),
    /// The task panicked; the host caught the panic.
    Panicked(Arc<str>),
    /// The task stopped because an operation returned CANCELLED or BUDGET_EXHAUSTED.
    Cancelled,
}

/// The part of a task that is polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The body.
    #[default]
    Body,
    /// An entry of its cleanup stack.
    Cleanup,
}

/// The host's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Poll this task.
    Poll {
        /// The worker that polls.
        worker: usize,
        /// The task.
        task: TaskId,
        /// The lane of the task.
        lane: Lane,
        /// The part to poll.
        part: Part,
    },
    /// Nothing is runnable before `until`, or before an outside event if it is `None`.
    Idle {
        /// The next instant with a scheduled event.
        until: Option<Time>,
    },
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepUntil {
    /// This long after now.
    After(Duration),
    /// At this instant.
    At(Time),
}
