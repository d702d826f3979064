//! A scenario as typed data: what [`parse_str`](crate::parse_str) makes and every host runs.

mod groups;
mod question;
mod settings;

pub(crate) use groups::expand;
pub use question::{End, JoinOrder, Law, Seen, Why};
pub use settings::{Browser, LimitKeys, Settings, Timers};

use crate::events::Named;
use crate::parse::words::{self, Word};
use crate::pattern::Pattern;
use crate::value::Value;
use asx_kernel::cancel::Kind;
use asx_kernel::digest::Digest;
use asx_kernel::lanes::Suggestion;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::pump::Capability;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::world::Policy;
use core::time::Duration;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A name an author gave to something.
pub type Name = Arc<str>;
/// Ops that run one after another.
pub type Body = Arc<[ScriptStep]>;

/// A property of hosts that a scenario can require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Regions that own storage.
    Storage,
    /// Slots that are released, so that their handles become stale.
    Slots,
}

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
    /// The properties that a host needs to run any line of it.
    pub needs: Vec<Word<Need>>,
    /// How the world is set up.
    pub config: Settings,
    /// Scripted tasks by name.
    pub tasks: BTreeMap<Name, Definition>,
    /// The members of each group made by `count`.
    pub groups: BTreeMap<Name, Vec<Name>>,
    /// The initial state, encoded: what [`snapshot_id`](Scenario::snapshot_id) is the digest of.
    pub initial: String,
    /// The digest of the canonical scenario, which replay tokens carry. It changes with the id, the
    /// initial state, `steps`, `tasks` and `[expect]`, but not with fingerprints or layout.
    pub digest: u64,
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
        let mut digest = Digest::new();
        digest.bytes(self.initial.as_bytes()).word(seed);
        digest.value()
    }

    /// Calls `look` for every op: of `setup`, `steps` and all bodies, nested ones included.
    pub fn visit(&self, look: &mut dyn FnMut(&ScriptStep)) {
        let bodies = self.tasks.values().flat_map(|task| [&task.body, &task.on_cancel]);
        bodies.chain([&self.setup, &self.steps]).for_each(|steps| visit(steps, look));
    }

    /// Whether a task is a finalizer. It has no handle, so that only events tell how it ended.
    pub(crate) fn is_finalizer(&self, task: &str) -> bool {
        self.any_step(|step| match &step.op {
            Op::Defer { name, .. } | Op::Finalizer { name, .. } => &**name == task,
            _ => false,
        })
    }

    /// Whether `is_it` holds for an op.
    pub fn any_step(&self, is_it: impl Fn(&ScriptStep) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |step| found |= is_it(step));
        found
    }
}

fn visit(steps: &[ScriptStep], look: &mut dyn FnMut(&ScriptStep)) {
    for step in steps {
        look(step);
        if let Op::Repeat { body, .. } | Op::Shield { body } | Op::Cleanup { body } = &step.op {
            visit(body, look);
        }
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
    /// Byte offset of the op in the file. The ops that one op of the file stands for share it.
    pub offset: usize,
    /// The op's name.
    pub name: &'static str,
    /// What to do.
    pub op: Op,
    /// The status it must answer, if the author said.
    pub expect: Option<Status>,
    /// The results it must have.
    pub wants: Vec<Want>,
    /// The objects that the op names and does not make.
    pub uses: Arc<[(Named, Name)]>,
}

impl ScriptStep {
    /// The object that the op makes if it succeeds as expected.
    pub fn makes(&self) -> Option<(Named, Name)> {
        let succeeds = self.expect.is_none_or(|status| status == Status::Ok);
        let (kind, name, _) = crate::parse::made(&self.op).filter(|_| succeeds)?;
        Some((kind, name.clone()))
    }
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
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "BudgetTable")]
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

#[derive(Deserialize)]
struct BudgetTable {
    priority: Option<u8>,
    deadline: Option<Duration>,
    within: Option<Duration>,
    polls: Option<u64>,
    cost: Option<u64>,
}

impl TryFrom<BudgetTable> for BudgetKeys {
    type Error = &'static str;

    fn try_from(table: BudgetTable) -> Result<BudgetKeys, &'static str> {
        let BudgetTable { priority, deadline, within, polls, cost } = table;
        if deadline.is_some() && within.is_some() {
            return Err("expected `deadline` or `within`, not both");
        }
        let deadline = deadline.map(|span| When::At(Time::ZERO + span));
        let deadline = deadline.or(within.map(When::After));
        Ok(BudgetKeys { priority, deadline, polls, cost })
    }
}

/// An instant, absolute or from now.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "WhenTable")]
pub enum When {
    /// From now.
    After(Duration),
    /// Since the beginning.
    At(Time),
}

#[derive(Deserialize)]
struct WhenTable {
    after: Option<Duration>,
    r#for: Option<Duration>,
    by: Option<Duration>,
    within: Option<Duration>,
    at: Option<Duration>,
    until: Option<Duration>,
    to: Option<Duration>,
}

impl TryFrom<WhenTable> for When {
    type Error = &'static str;

    fn try_from(table: WhenTable) -> Result<When, &'static str> {
        let spans = [table.after, table.r#for, table.by, table.within];
        let instants = [table.at, table.until, table.to];
        let spans = spans.into_iter().flatten().map(When::After);
        let instants = instants.into_iter().flatten().map(|span| When::At(Time::ZERO + span));
        let mut found = spans.chain(instants);
        match (found.next(), found.next()) {
            (Some(when), None) => Ok(when),
            _ => Err("needs one of a duration (`by`, `after`, `for`) and an instant (`to`, `at`, \
                      `until`)"),
        }
    }
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
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "expected an integer or \"index\"")]
pub enum Message {
    /// This one.
    Value(i64),
    /// The sending task's number in its group.
    Index(Index),
}

/// The word for a task's number in its group.
#[derive(Clone, Copy, Debug, Deserialize)]
pub enum Index {
    /// That word.
    #[serde(rename = "index")]
    OfGroup,
}

pub(crate) fn user() -> Word<Kind> {
    Word(Kind::User)
}

fn failed() -> String {
    "failed".to_owned()
}

fn panic() -> String {
    "panic".to_owned()
}

fn one<T: From<u8>>() -> T {
    1.into()
}

fn many_steps() -> u64 {
    100_000
}

fn permit() -> Name {
    "permit".into()
}

/// What an op does. Names are resolved by the interpreter. The keys of `when` and `limits` stand in
/// the op's own table; those of `body` are read by the parser.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum Op {
    Open {
        #[serde(rename = "as")]
        name: Name,
        #[serde(rename = "in")]
        region: Option<Name>,
        limits: BudgetKeys,
        max_children: Option<usize>,
        #[serde(default)]
        policy: Word<Policy>,
    },
    End {
        region: Name,
    },
    Close {
        region: Name,
        #[serde(default = "user")]
        kind: Word<Kind>,
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
        #[serde(rename = "as", default)]
        name: Name,
    },
    Finalizer {
        region: Name,
        task: Name,
        #[serde(rename = "as", default)]
        name: Name,
    },
    Storage {
        region: Name,
        #[serde(default = "one")]
        bytes: usize,
    },
    Release {
        region: Name,
    },

    Spawn {
        task: Name,
        #[serde(rename = "as", default)]
        name: Name,
        #[serde(rename = "in")]
        region: Option<Name>,
        #[serde(skip)]
        index: i64,
        #[serde(default)]
        pinned: bool,
        limits: BudgetKeys,
    },
    SpawnFailed {
        #[serde(rename = "as")]
        name: Name,
        #[serde(rename = "in")]
        region: Option<Name>,
        #[serde(default = "failed")]
        message: String,
        status: Option<Word<Status>>,
    },
    Cancel {
        task: Name,
        #[serde(default = "user")]
        kind: Word<Kind>,
        message: Option<String>,
    },
    Wake {
        task: Name,
    },
    Checkpoint,
    IsCancelled,
    Yield,
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
    #[serde(rename = "closed")]
    ClosedWait {
        region: Name,
    },
    Stopping,
    Shield {
        #[serde(skip)]
        body: Body,
    },
    Cleanup {
        #[serde(skip)]
        body: Body,
    },
    Repeat {
        #[serde(deserialize_with = "words::within::<_, _, 0, 100_000>")]
        times: u64,
        #[serde(skip)]
        body: Body,
    },
    Done,
    Fail {
        #[serde(default = "failed")]
        message: String,
    },
    Panic {
        #[serde(default = "panic")]
        message: String,
    },

    Oblige {
        obligation: Name,
        #[serde(rename = "in")]
        region: Option<Name>,
    },
    Commit {
        obligation: Name,
    },
    Abort {
        obligation: Name,
    },

    Channel {
        #[serde(rename = "as")]
        name: Name,
        #[serde(default = "one")]
        capacity: usize,
        #[serde(rename = "in")]
        region: Option<Name>,
    },
    Reserve {
        channel: Name,
        #[serde(default = "permit")]
        permit: Name,
        #[serde(default)]
        tracked: bool,
    },
    TryReserve {
        channel: Name,
        #[serde(default = "permit")]
        permit: Name,
        #[serde(default)]
        tracked: bool,
    },
    Send {
        permit: Name,
        value: Message,
    },
    AbortPermit {
        permit: Name,
    },
    #[serde(rename = "drop")]
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
        #[serde(rename = "in")]
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
        #[serde(rename = "as", default)]
        name: Name,
        when: When,
        #[serde(rename = "in")]
        region: Option<Name>,
        wakes: Option<Name>,
    },

    Advance {
        when: When,
    },
    Fire,
    Run {
        #[serde(default = "many_steps")]
        max_steps: u64,
    },
    #[serde(rename = "step")]
    StepOn {
        #[serde(default = "one", deserialize_with = "words::within::<_, _, 1, 1_000_000>")]
        count: u64,
        worker: Option<usize>,
    },
    RunFor {
        when: When,
        #[serde(default = "many_steps")]
        max_steps: u64,
    },
    Suggest {
        mode: Word<Suggestion>,
    },
    SoftStop,
    Shutdown {
        #[serde(default)]
        soft: Duration,
        force_after: Option<Duration>,
    },
    Quiescent,
    MoveTask {
        task: Name,
        to: Word<TaskState>,
    },
    MoveRegion {
        region: Name,
        to: Word<RegionState>,
    },
    MoveObligation {
        obligation: Name,
        to: Word<ObligationState>,
    },
    #[serde(skip)]
    Check(Checked),
    #[serde(skip)]
    Law(Law),
    #[serde(skip)]
    Browser(BrowserOp),
}

/// What a check looks at.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the keys are documented for authors in docs/SCENARIOS.md")]
pub enum BrowserOp {
    Microtasks,
    Turn {
        #[serde(default = "one", deserialize_with = "words::within::<_, _, 1, 1_000_000>")]
        count: u64,
    },
    Pump,
    HostTimer {
        timer: Option<Name>,
    },
    Suspend {
        when: When,
    },
    Grant {
        capability: Word<Capability>,
    },
    Revoke {
        capability: Word<Capability>,
    },
    Require {
        capability: Word<Capability>,
    },
}
