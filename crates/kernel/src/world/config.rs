//! What a world is given: configuration, options, requests and poll results.

use super::*;

/// What an operation answers: its result, or the code of its refusal.
pub type Answer<T = ()> = Result<T, Status>;

/// How a world is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Workers, fairness and tie-break.
    pub scheduler: SchedulerConfig,
    /// Timers.
    pub wheel: WheelConfig,
    /// How long cause chains may get.
    pub chain: ChainLimits,
    /// How many of each thing there may be.
    pub limits: Limits,
    /// How many events the journal retains.
    pub journal_capacity: usize,
    /// What happens beyond that.
    pub when_full: WhenFull,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            scheduler: SchedulerConfig::default(),
            wheel: WheelConfig::default(),
            chain: ChainLimits::default(),
            limits: Limits::default(),
            journal_capacity: usize::MAX,
            when_full: WhenFull::Overwrite,
        }
    }
}

/// How many of each thing there may be at once. The timer limit is in [`WheelConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tasks not Completed.
    pub tasks: usize,
    /// Regions not Closed, the root included.
    pub regions: usize,
    /// Obligations still Reserved.
    pub obligations: usize,
    /// Channels not fully closed.
    pub channels: usize,
    /// Ready entries beyond which spawns and outside wakes are refused.
    pub ready_queue: usize,
    /// Timed entries beyond which spawns and outside wakes are refused.
    pub timed_queue: usize,
    /// Cancel entries beyond which targeted cancels are refused.
    pub cancel_queue: usize,
    /// The memory estimate in bytes.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            tasks: usize::MAX,
            regions: usize::MAX,
            obligations: usize::MAX,
            channels: usize::MAX,
            ready_queue: usize::MAX,
            timed_queue: usize::MAX,
            cancel_queue: usize::MAX,
            memory: usize::MAX - 1,
        }
    }
}

/// What a region does about a child that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Lets the others go on.
    #[default]
    CollectAll,
    /// Cancels the siblings; the first failure is the scope's result.
    FailFast,
}

/// How a region is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionOptions {
    /// Its own budget; what counts is the tighter of this and its parent's.
    pub budget: Budget,
    /// How many live children it admits.
    pub max_children: Option<usize>,
    /// What it does about failures.
    pub policy: Policy,
}

/// How a task is spawned.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskOptions {
    /// Deadline, polls and cost; the priority in here is not used.
    pub budget: Budget,
    /// Its priority; 128 if not given.
    pub priority: Option<u8>,
    /// Whether it must stay on the worker it was spawned on.
    pub pinned: bool,
}

/// A request to cancel.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Why.
    pub kind: Kind,
    /// A word for people.
    pub message: Option<Arc<str>>,
}

impl Ask {
    /// A request without a message.
    pub const fn new(kind: Kind) -> Ask {
        Ask { kind, message: None }
    }
}

/// A task's own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    /// The registry code it came from, if any.
    pub status: Option<Status>,
    /// A word for people.
    pub message: Arc<str>,
}

/// How a task ended.
pub type TaskOutcome = Outcome<(), TaskError>;

/// How a poll ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollEnd {
    /// It waits for a wake.
    Pending,
    /// It is done.
    Ready,
    /// It is done, with an error.
    Failed(TaskError),
    /// It panicked; the host caught it.
    Panicked(Arc<str>),
    /// It gave up because an operation said CANCELLED or BUDGET_EXHAUSTED.
    Cancelled,
}

/// What of a task is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The task itself.
    Body,
    /// An entry of its cleanup stack.
    Cleanup,
}

/// What the host is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Poll this task.
    Poll {
        /// On this worker.
        worker: usize,
        /// Whom.
        task: TaskId,
        /// The lane it came from.
        lane: Lane,
        /// What of it.
        part: Part,
    },
    /// Nothing is runnable before `until`, or before an outside event if there is none.
    Idle {
        /// The next instant at which something happens by itself.
        until: Option<Time>,
    },
}

/// When a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepUntil {
    /// So long after now.
    After(Duration),
    /// At this instant.
    At(Time),
}
