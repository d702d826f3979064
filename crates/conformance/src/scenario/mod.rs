//! A scenario as typed data: what [`parse_str`](crate::parse_str) makes and every host runs.

mod groups;
mod question;

pub(crate) use groups::expand;
pub use question::{End, Law, Seen, Why};

use crate::pattern::Pattern;
use crate::value::Value;
use asx_kernel::cancel::{ChainLimits, Kind};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::{Suggestion, TieBreak};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::pump::{Capabilities, Capability, PumpConfig};
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Coalesce, WheelConfig};
use asx_kernel::world::Limits;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A name an author gave to something.
pub type Name = Arc<str>;
/// Ops that run one after another.
pub type Body = Arc<[ScriptStep]>;

/// One scenario file.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it was read from, for messages.
    pub file: String,
    /// Its id.
    pub id: String,
    /// What it asserts.
    pub title: String,
    /// The folder it belongs to.
    pub area: String,
    /// It is run once under each.
    pub seeds: Vec<u64>,
    /// How the world is set up.
    pub config: Settings,
    /// Scripted tasks by name.
    pub tasks: BTreeMap<Name, Definition>,
    /// The members of each group made by `count`.
    pub groups: BTreeMap<Name, Vec<Name>>,
    /// The initial state, encoded: what [`snapshot_id`](Scenario::snapshot_id) is the digest of.
    pub initial: String,
    /// The ops that make the initial state.
    pub setup: Body,
    /// What is done.
    pub steps: Body,
    /// What must hold of the run.
    pub expect: Expect,
}

impl Scenario {
    /// The id of the state that a run under this seed begins with.
    pub fn snapshot_id(&self, seed: u64) -> u64 {
        crate::snapshot::id(&self.initial, seed)
    }
}

/// A scripted task.
#[derive(Clone, Debug)]
pub struct Definition {
    /// What it runs.
    pub body: Body,
    /// What it runs after an unhandled cancel.
    pub on_cancel: Body,
}

/// One op with what is expected of it.
#[derive(Clone, Debug)]
pub struct ScriptStep {
    /// Where it stands.
    pub line: usize,
    /// The op's name.
    pub name: &'static str,
    /// What to do.
    pub op: Op,
    /// The status it must answer, if the author said.
    pub expect: Option<Status>,
    /// The results it must have.
    pub wants: Vec<Want>,
}

/// A result that must be equal.
#[derive(Clone, Debug)]
pub struct Want {
    /// Which.
    pub key: &'static str,
    /// Where it stands.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// The `[config]` table.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Virtual workers.
    pub workers: usize,
    /// How equals are ordered.
    pub tie_break: TieBreak,
    /// The fairness bound.
    pub cancel_streak_limit: u32,
    /// Bounds of a cause chain.
    pub chain: (usize, usize),
    /// Events retained.
    pub journal_capacity: usize,
    /// What happens beyond that.
    pub when_full: WhenFull,
    /// Limits by name.
    pub limits: BTreeMap<&'static str, usize>,
    /// Timers.
    pub timers: Timers,
    /// The browser's pump, if it drives.
    pub browser: Option<Browser>,
}

impl Settings {
    /// The limits of a host that keeps the kernel's.
    pub(crate) fn kernel_limits(&self) -> Limits {
        let limit = |name| self.limits.get(name).copied();
        let none = Limits::default();
        Limits {
            tasks: limit("tasks").unwrap_or(none.tasks),
            regions: limit("regions").unwrap_or(none.regions),
            obligations: limit("obligations").unwrap_or(none.obligations),
            channels: limit("channels").unwrap_or(none.channels),
            ready_queue: limit("ready_queue").unwrap_or(none.ready_queue),
            timed_queue: limit("timed_queue").unwrap_or(none.timed_queue),
            cancel_queue: limit("cancel_queue").unwrap_or(none.cancel_queue),
            memory: limit("memory").unwrap_or(none.memory),
        }
    }

    /// The bounds of a cause chain.
    pub(crate) fn chain_limits(&self) -> ChainLimits {
        ChainLimits { depth: self.chain.0, bytes: self.chain.1 }
    }
}

/// The `[config.timers]` table.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    /// Beyond it, the overflow heap.
    pub max_wheel_duration: Option<Duration>,
    /// Beyond it, refused.
    pub max_timer_duration: Option<Duration>,
    /// Live timers.
    pub limit: Option<usize>,
    /// Window and group size.
    pub coalesce: Option<(Duration, usize)>,
    /// The first id.
    pub first_id: Option<u64>,
    /// The first generation.
    pub first_generation: Option<u64>,
}

impl Timers {
    /// The settings of the kernel's timing wheel.
    pub(crate) fn wheel(&self) -> WheelConfig {
        let wheel = WheelConfig::default();
        WheelConfig {
            max_wheel_duration: self.max_wheel_duration.unwrap_or(wheel.max_wheel_duration),
            max_timer_duration: self.max_timer_duration.unwrap_or(wheel.max_timer_duration),
            limit: self.limit.unwrap_or(wheel.limit),
            coalesce: self
                .coalesce
                .map(|(window, min_group_size)| Coalesce { window, min_group_size }),
            first_id: self.first_id.unwrap_or(wheel.first_id),
            first_generation: self.first_generation.unwrap_or(wheel.first_generation),
        }
    }
}

/// The `[config.browser]` table.
#[derive(Clone, Debug)]
pub struct Browser {
    /// Steps per drain.
    pub burst_limit: u32,
    /// Time per drain.
    pub burst_time: Option<Duration>,
    /// Timers per drain.
    pub timer_batch: usize,
    /// Whether messages can be posted.
    pub message_channel: bool,
    /// What is granted.
    pub capabilities: Vec<Capability>,
}

impl Browser {
    /// The settings of the kernel's pump.
    pub(crate) fn pump(&self) -> PumpConfig {
        PumpConfig {
            microtask_burst_limit: self.burst_limit,
            burst_time_limit: self.burst_time,
            timer_batch_limit: self.timer_batch,
            has_message_channel: self.message_channel,
            clock_check_every: 1,
        }
    }

    /// What is granted in the beginning.
    pub(crate) fn granted(&self) -> Capabilities {
        let mut granted = Capabilities::none();
        self.capabilities.iter().for_each(|capability| granted.grant(*capability));
        granted
    }
}

/// The `[expect]` table.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// Where the table stands.
    pub line: usize,
    /// The journal digest: one for all seeds, or one per seed.
    pub fingerprints: Vec<u64>,
    /// An ordered subsequence of the journal.
    pub events: Vec<Pattern>,
    /// Whether it is the whole journal.
    pub exactly: bool,
    /// Patterns that match nothing.
    pub never: Vec<Pattern>,
    /// The dispatch order: one for all seeds, or one per seed.
    pub orders: Vec<Vec<Name>>,
    /// How tasks have ended.
    pub outcomes: Vec<(usize, Name, Severity)>,
    /// Whether the world is quiescent.
    pub quiescent: Option<bool>,
    /// Whether the run is repeated and compared decision by decision.
    pub replay: bool,
    /// A subsequence of the host-only events.
    pub host_events: Vec<Pattern>,
    /// Patterns that match no host-only event.
    pub host_never: Vec<Pattern>,
}

/// A budget as an author writes it.
#[derive(Clone, Debug, Default)]
pub struct BudgetKeys {
    /// Scheduling priority.
    pub priority: Option<u8>,
    /// When it ends.
    pub deadline: Option<When>,
    /// Polls.
    pub polls: Option<u64>,
    /// Cost.
    pub cost: Option<u64>,
}

/// An instant, absolute or from now.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// From now.
    After(Duration),
    /// Since the beginning.
    At(Time),
}

impl When {
    /// The instant, if it is `now` now.
    pub fn from(self, now: Time) -> Time {
        match self {
            When::After(span) => now + span,
            When::At(time) => time,
        }
    }
}

/// A value to send.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// This one.
    Value(i64),
    /// The sending task's number in its group.
    Index,
}

/// What an op does. Names are resolved by the host.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum Op {
    Open {
        name: Name,
        region: Option<Name>,
        budget: BudgetKeys,
        max_children: Option<usize>,
        fail_fast: bool,
    },
    End {
        region: Name,
    },
    Close {
        region: Name,
        kind: Kind,
        message: Option<String>,
        force_after: Option<Duration>,
    },
    Gate {
        region: Name,
        open: bool,
    },
    Defer {
        region: Name,
        task: Name,
        name: Name,
    },
    Finalizer {
        region: Name,
        task: Name,
        name: Name,
    },
    Storage {
        region: Name,
        bytes: usize,
    },
    Release {
        region: Name,
    },

    Spawn {
        task: Name,
        name: Name,
        region: Option<Name>,
        index: i64,
        pinned: bool,
        budget: BudgetKeys,
    },
    SpawnFailed {
        name: Name,
        region: Option<Name>,
        message: String,
        status: Option<Status>,
    },
    Cancel {
        task: Name,
        kind: Kind,
        message: Option<String>,
    },
    Wake {
        task: Name,
    },
    Checkpoint,
    IsCancelled,
    Park,
    Work {
        polls: u64,
    },
    Spend {
        cost: u64,
    },
    Sleep {
        when: When,
    },
    Join {
        task: Name,
    },
    ClosedWait {
        region: Name,
    },
    Stopping,
    Shield {
        body: Body,
    },
    Cleanup {
        body: Body,
    },
    Repeat {
        times: u64,
        body: Body,
    },
    Done,
    Fail {
        message: String,
    },
    Panic {
        message: String,
    },

    Oblige {
        obligation: Name,
        region: Option<Name>,
    },
    Commit {
        obligation: Name,
    },
    Abort {
        obligation: Name,
    },

    Channel {
        name: Name,
        capacity: usize,
        region: Option<Name>,
    },
    Reserve {
        channel: Name,
        permit: Name,
        tracked: bool,
    },
    TryReserve {
        channel: Name,
        permit: Name,
        tracked: bool,
    },
    Send {
        permit: Name,
        value: Message,
    },
    AbortPermit {
        permit: Name,
    },
    DropPermit {
        permit: Name,
    },
    TrySend {
        channel: Name,
        value: Message,
    },
    Evict {
        channel: Name,
        value: Message,
    },
    Recv {
        channel: Name,
    },
    TryRecv {
        channel: Name,
    },
    CloneSender {
        channel: Name,
    },
    DropSender {
        channel: Name,
    },
    DropReceiver {
        channel: Name,
    },

    Arm {
        timer: Name,
        when: When,
        region: Option<Name>,
        wakes: Option<Name>,
    },
    Disarm {
        timer: Name,
        id: Option<u64>,
        generation: Option<u64>,
    },
    Update {
        timer: Name,
        name: Name,
        when: When,
        region: Option<Name>,
        wakes: Option<Name>,
    },

    Advance {
        when: When,
    },
    Fire,
    Run {
        max_steps: u64,
    },
    StepOn {
        count: u64,
        worker: Option<usize>,
    },
    RunFor {
        when: When,
        max_steps: u64,
    },
    Suggest {
        mode: Suggestion,
    },
    SoftStop,
    Shutdown {
        soft: Duration,
        force_after: Option<Duration>,
    },
    Quiescent,
    TryMove(Move),
    Check(Checked),
    Law(Law),
    Browser(BrowserOp),
}

/// An explicit step of a live thing.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum Move {
    Task(Name, TaskState),
    Region(Name, RegionState),
    Obligation(Name, ObligationState),
}

/// What a check looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum Checked {
    Task(Name),
    Region(Name),
    Obligation(Name),
    Channel(Name),
    Permit(Name),
    Timer(Name),
    Timers,
    Lanes,
    Certificate(usize),
    Journal,
    Clock,
    Pump,
}

/// A browser op.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum BrowserOp {
    Microtasks,
    Turn { count: u64 },
    Pump,
    HostTimer { timer: Option<Name> },
    Suspend { span: Duration },
    Grant { capability: Capability },
    Revoke { capability: Capability },
    Require { capability: Capability },
}
