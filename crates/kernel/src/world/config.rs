//! What a world is given: configuration, options, requests and poll results.

use super::*;

/// What an operation answers: its result, or the code of its refusal.
pub type Answer<T = ()> = Result<T, Status>;

/// What an operation answers that is given something: its result, or the code of its refusal and
/// the thing back.
pub type Offer<P, T = ()> = Result<T, (Status, P)>;

/// An answer together with what was given, which a refusal hands back.
pub(super) fn with<P, T>(given: P, answer: Answer<T>) -> Offer<P, (P, T)> {
    match answer {
        Ok(answer) => Ok((given, answer)),
        Err(status) => Err((status, given)),
    }
}

settings! {
    /// How a world is set up.
    pub struct Config {
        /// Workers, fairness and tie-break.
        scheduler: SchedulerConfig = SchedulerConfig::default(),
        /// Timers.
        wheel: WheelConfig = WheelConfig::default(),
        /// How long cause chains may get.
        chain: ChainLimits = ChainLimits::default(),
        /// How many of each thing there may be.
        limits: Limits = Limits::default(),
        /// Whether there is a journal.
        journal: bool = true,
        /// How many events the journal retains.
        journal_capacity: usize = usize::MAX,
        /// What happens beyond that.
        when_full: WhenFull = WhenFull::Overwrite,
        /// Whether a task that is ended by force at the end of a grace still runs its cleanup
        /// stack, within its allowance. Off for hosts whose payloads clean up when dropped.
        forced_cleanup: bool = false,
        /// Whether what went with a closed parent is kept until it is released: it is stale, but
        /// how it ended can still be read.
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
    /// How many of each thing there may be at once. The timer limit is in [`WheelConfig`].
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
        /// Ready entries beyond which spawns and outside wakes are refused.
        ready_queue: usize = usize::MAX,
        /// Timed entries beyond which spawns and outside wakes are refused.
        timed_queue: usize = usize::MAX,
        /// Cancel entries beyond which targeted cancels are refused.
        cancel_queue: usize = usize::MAX,
        /// The memory estimate in bytes.
        memory: usize = usize::MAX - 1,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The task itself.
    #[default]
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
