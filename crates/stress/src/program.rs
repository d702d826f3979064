//! Programs as data: what the generator makes and the interpreter runs.
//!
//! A program ends whatever happens to it: every wait in it ends with a cancel, what no cancel
//! reaches (shields, finalizers, jobs) is short, and each of its roots is cancelled after a while.

use crate::rules::Rules;

/// A whole program: a runtime, and what runs in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) journal: Journal,
    /// How many operations a poll may do at once.
    pub(crate) operations: Option<u32>,
    /// How many polls of cleanup a cancel allows, and how many cancelled tasks go before others.
    pub(crate) cleanup_polls: Option<u32>,
    pub(crate) cancel_streak: u32,
    pub(crate) rules: Rules,
    /// The capacity of the channels.
    pub(crate) capacity: usize,
    /// Whether values, futures and handles may be forgotten: then leaks say nothing.
    pub(crate) forgets: bool,
    /// Whether callbacks (destructors, wakers) may panic.
    pub(crate) bombs: bool,
    /// Each runs in a `block_on` of its own thread; the first on the main one.
    pub(crate) roots: Vec<Root>,
    pub(crate) shutdown: Option<Shutdown>,
    /// Whether the threads that programs start are waited for before the runtime is dropped, and
    /// whether the bag of leftovers is emptied before.
    pub(crate) threads_first: bool,
    pub(crate) bag_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    Off,
    Ring,
    Whole,
}

/// The body of a `block_on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) collect: bool,
    /// After so many microseconds everything in it is cancelled.
    pub(crate) reaped: u64,
    pub(crate) body: Vec<Op>,
}

/// A shutdown while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shutdown {
    pub(crate) after: u64,
    pub(crate) soft: u64,
    pub(crate) hard: u64,
    /// Whether somebody waits for its end.
    pub(crate) waits: bool,
}

/// What a channel, a lock or a value is used for, by its number.
pub(crate) type Nth = usize;
/// Microseconds.
pub(crate) type Micros = u64;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Yield,
    Sleep(Micros),
    SleepUntilPast,
    TrySleep(Micros),
    Ticks(Micros, usize),
    Checkpoint,
    Look,
    Consume,
    Timeout(Micros, Vec<Op>),
    Deadline(Micros, Vec<Op>),
    Race(Many, Vec<Vec<Op>>),
    Join(Many, Vec<Vec<Op>>),
    TryJoin(Many, Vec<Vec<Op>>),
    Group(Vec<Vec<Op>>),
    Select(Micros, Nth),
    /// For so long at the most.
    Shield(Option<Micros>, Vec<Op>),
    WithLocal(Nth, Vec<Op>),
    Scope(Box<ScopeOp>),
    /// A task in the innermost scope.
    Spawn(Box<Child>),
    Supervise(u32, Vec<Op>),
    Start(bool, Vec<Op>),
    CxJob(Micros),
    Defer(Vec<Op>),
    /// With a time for cleanup, or a number of polls.
    CancelScope(Where, Option<Micros>),
    StopScope,
    StopWithin(Micros, Micros),
    Stopping(Micros),
    Cancelled(Micros),
    Send(Nth, SendHow),
    Recv(Nth, RecvHow),
    SendUnbounded,
    RecvUnbounded(bool),
    Tracked(TrackedHow),
    RecvTracked,
    Ask(ReplyBy, Micros),
    Publish,
    Listen(ListenHow),
    Set(SetHow),
    Watch(WatchHow),
    RegionChannel(usize),
    Lock(Where, LockHow, Vec<Op>),
    Read(RwHow, Vec<Op>),
    /// Downgrades the guard first, or not.
    Write(RwHow, bool, Vec<Op>),
    Acquire(usize, AcquireHow, Vec<Op>),
    Notify(bool),
    Notified,
    Barrier,
    Once(OnceHow),
    Obligation(Resolve),
    /// A future polled a few times by hand, and then left like this.
    HalfPoll(Half, usize, Fate),
    /// Takes something out of the bag and does with it what can be done.
    FromBag,
    /// Polls the operations with a waker of its own, as executors inside a task do.
    Foreign(bool, Vec<Op>),
    /// A thread of the program's own.
    Thread(Where, ThreadDoes),
    NestedBlockOn,
    Dump,
    Fail,
    Panic,
    /// Takes so many connections, and uses each in a task of its own.
    Serve(Family, usize, Vec<Use>),
    /// Connects to where somebody takes connections, or does not any more.
    Dial(Family, Vec<Use>),
    /// A connection, whose other end is used by a task.
    Connection(Family, Vec<Use>, Vec<Use>),
    /// Frames from a task to this one.
    Frames(Family, usize),
    /// So many datagrams.
    Datagrams(Family, usize),
    /// A descriptor that is watched.
    Descriptor(Family, Vec<Use>),
    /// Sends to a channel with several receivers.
    Post(Nth, PostHow),
    /// Receives from it.
    Fetch(Nth, FetchHow),
    /// Tasks that send and tasks that receive, until all senders are gone.
    Crew(CrewOp),
    /// So many items of a stream that owns what it is made of.
    Stream(StreamHow, usize, Fate),
    /// Waits until nobody receives what a sender of this kind sends.
    Closed(ClosedOf),
    /// A future of others that is given up with a cancel.
    Abandon(Stranger, Vec<Op>),
    SelectOf(SelectHow, Micros, Vec<Op>),
    /// So many attempts at most, of which this one succeeds.
    Attempts(AttemptHow, u32, u32, Vec<Op>),
    /// Parts whose ends are counted.
    Parts(PartsHow, Vec<Vec<Op>>),
    /// The value of a task.
    Value(Box<Child>),
    Reset(ResetHow, Micros, usize),
    /// A queue of so many values that are due some time.
    Delays(usize, Fate),
    /// Guards of parts.
    Parted(LockKind, Where, Vec<Op>),
    /// Permits of a semaphore that are split and merged.
    Permits(bool, Vec<Op>),
    /// A semaphore that is closed while somebody waits at it.
    Shut,
    /// A wait for a notification that takes its place before it is polled.
    Enabled(bool),
    Runtime(HandleDoes),
    /// An operation polled a few times by hand, and then left like this.
    HalfOf(Box<Op>, usize, Fate),
}

/// What kind of socket: one of the internet or a unix one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Inet,
    Unix,
}

/// What is done with a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read(usize),
    ReadVectored(usize),
    Write(usize),
    WriteVectored(usize),
    WriteAll(usize),
    /// For so long at the most.
    Within(Micros, Box<Use>),
    /// Ends one direction or both.
    Shutdown(std::net::Shutdown),
    /// Both directions at the same time, borrowed.
    Split(usize),
    /// The direction to the peer goes elsewhere, the other one is used here; or the other way.
    Halves {
        reads: bool,
        elsewhere: Where,
        bytes: usize,
        reunites: bool,
    },
    /// Throws away what was not sent when it is closed.
    Reset,
    /// Settings and addresses.
    Look,
    /// By the traits of another library, which polls with the task's waker.
    Bound(usize),
    /// Out of the runtime and into it again.
    Std,
    /// A read that is polled by hand, and then left like this with the connection.
    Half(usize, Fate),
    Yield,
    /// Whoever finds it may have it.
    Bag,
    ToThread,
    Drop,
}

/// How something is sent to several receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostHow {
    Send,
    Try,
    Reserve,
    Owned,
    /// Gives the permit back.
    Abort,
    NextPermit,
    /// So many slots, of which so many are used.
    Many(usize, usize),
    TryMany(usize, usize),
    Evict,
    Sink,
    OwnedSink,
    /// By a sender that is the only strong one at the end.
    Weak,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchHow {
    Recv,
    Try,
    Many(usize),
    Stream(usize),
    Look,
    /// Closes it to senders and takes what is left.
    Drain,
    CloseAndTake,
    /// Drops the receiver that the program keeps.
    DropOne,
    /// A new channel in place of this one.
    Renew,
}

/// Tasks around a channel with several receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrewOp {
    pub(crate) producers: usize,
    pub(crate) consumers: usize,
    /// `None`: without a bound.
    pub(crate) capacity: Option<usize>,
    pub(crate) messages: usize,
    pub(crate) batches: bool,
}

/// What a stream is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamHow {
    Messages,
    Shared,
    Throttled(Micros),
    /// So many streams in one.
    Map(usize),
    Heard,
    Snapshots,
    Ticks(Micros),
}

/// A kind of sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClosedOf {
    Unbounded,
    Tracked,
    Publisher,
    Reply,
    Shared(Nth),
}

/// A future that knows nothing of cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// Is never done.
    Never,
    /// Wakes itself so often.
    Polls(usize),
    /// Is woken by a thread.
    Thread,
    /// Operations.
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectHow {
    Assumed(Stranger),
    Abandoned(Stranger),
    /// The body is borrowed and goes on afterwards.
    Resumed,
    Random(Nth),
    Refutable(Nth),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptHow {
    Retry(Micros),
    RetryIf(Micros),
    Hedge(Micros),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartsHow {
    RaceOk,
    RaceOkAll,
    JoinMacro,
    TryJoinMacro,
    RaceMacro,
    RaceOkMacro,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetHow {
    Sleep,
    Interval,
    Ticks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind {
    Mutex,
    OwnedMutex,
    Read,
    OwnedRead,
    Write,
    OwnedWrite,
}

/// What is done with the handle of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandleDoes {
    Dump,
    Metrics,
    Health,
    /// Stops everything, with these times.
    Stop(Micros, Micros),
}

/// Which form of a combinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    /// The form for exactly as many as there are, up to four.
    Few,
    All,
}

/// Where something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    Here,
    Thread,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScopeOp {
    pub(crate) how: ScopeHow,
    pub(crate) finalizers: usize,
    pub(crate) body: Vec<Op>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeHow {
    /// `cx.scope`: panics go on.
    Plain,
    Try,
    Collect,
    /// With a budget: a deadline after so many microseconds.
    Within(Micros),
    /// So many polls of cleanup.
    CleanupPolls(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) kind: ChildKind,
    pub(crate) body: Vec<Op>,
    pub(crate) end: End,
    pub(crate) handle: Handle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildKind {
    Plain,
    /// A closure that drops its context at once.
    NoCx,
    Local,
    Pinned(usize),
    Blocking(Micros),
    /// A job that waits for the body.
    Waiting,
    Priority(u8),
    Within(Micros),
    Polls(u64),
    /// At most so many units of what it consumes.
    Cost(u64),
    /// With a deadline so many microseconds after the start of the runtime.
    By(Micros),
    /// With an error if it can't be spawned.
    Try,
    TryBlocking,
}

/// How a body ends, if nothing else ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Value,
    Error,
    Panic,
}

/// What becomes of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handle {
    Drop,
    Await,
    Cancel,
    CancelThenAwait,
    Outcome,
    Bag,
    ToThread,
    Forget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendHow {
    Send,
    ReserveSend,
    ReserveAbort,
    ReserveDrop,
    Owned(Where),
    Try,
    TryReserve,
    Evict,
    Sink,
    Several,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecvHow {
    Recv,
    Next,
    Try,
    Many,
    Stream,
    Refuse,
    Close,
    DropIt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrackedHow {
    Send,
    Abort,
    Leak,
    Try,
}

/// Who answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyBy {
    Task,
    Thread,
    Bag,
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenHow {
    Recv,
    Try,
    Subscribe,
    Resubscribe,
    SkipLagged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetHow {
    Send,
    Replace,
    Modify,
    IfModified(bool),
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchHow {
    Changed,
    WaitFor,
    Borrow,
    Subscribe,
    Marks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockHow {
    Lock,
    Owned,
    Try,
    TryOwned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RwHow {
    Wait,
    Owned,
    Try,
    TryOwned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnceHow {
    Set,
    Init,
    /// An initialisation that fails, or does not.
    TryInit(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcquireHow {
    Plain,
    Owned,
    One,
    Try,
    TryOwned,
    /// The permit is never given back; others are added in its place.
    Replace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolve {
    Commit,
    Abort,
    Leave,
}

/// Which future is polled by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Sleep,
    Send(Nth),
    Recv(Nth),
    Lock,
    Acquire,
    Notified,
    Barrier,
    Listen,
    Changed,
    Join,
    Cancelled,
}

/// What becomes of a future that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Drop,
    Forget,
    Bag,
    ToThread,
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadDoes {
    CancelScope,
    StopScope,
    Notify,
    Send(Nth),
    Publish,
    Set,
    FromBag,
    Spawn,
}

impl Op {
    /// The name of the kind, of which [`KINDS`] has all.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Op::Yield => "yield",
            Op::Sleep(_) => "sleep",
            Op::SleepUntilPast => "sleep_until",
            Op::TrySleep(_) => "try_sleep",
            Op::Ticks(..) => "interval",
            Op::Checkpoint => "checkpoint",
            Op::Look => "look",
            Op::Consume => "consume",
            Op::Timeout(..) => "timeout",
            Op::Deadline(..) => "deadline",
            Op::Race(..) => "race",
            Op::Join(..) => "join",
            Op::TryJoin(..) => "try_join",
            Op::Group(_) => "group",
            Op::Select(..) => "select",
            Op::Shield(..) => "shield",
            Op::WithLocal(..) => "with_local",
            Op::Scope(_) => "scope",
            Op::Spawn(_) => "spawn",
            Op::Supervise(..) => "supervise",
            Op::Start(..) => "start",
            Op::CxJob(_) => "cx_job",
            Op::Defer(_) => "defer",
            Op::CancelScope(..) => "cancel_scope",
            Op::StopScope => "stop",
            Op::StopWithin(..) => "stop_within",
            Op::Stopping(_) => "stopping",
            Op::Cancelled(_) => "cancelled",
            Op::Send(..) => "send",
            Op::Recv(..) => "recv",
            Op::SendUnbounded => "send_unbounded",
            Op::RecvUnbounded(_) => "recv_unbounded",
            Op::Tracked(_) => "tracked",
            Op::RecvTracked => "recv_tracked",
            Op::Ask(..) => "oneshot",
            Op::Publish => "publish",
            Op::Listen(_) => "listen",
            Op::Set(_) => "set",
            Op::Watch(_) => "watch",
            Op::RegionChannel(_) => "region_channel",
            Op::Lock(..) => "mutex",
            Op::Read(..) => "read",
            Op::Write(..) => "write",
            Op::Acquire(..) => "semaphore",
            Op::Notify(_) => "notify",
            Op::Notified => "notified",
            Op::Barrier => "barrier",
            Op::Once(_) => "once_cell",
            Op::Obligation(_) => "obligation",
            Op::HalfPoll(..) => "half_poll",
            Op::FromBag => "from_bag",
            Op::Foreign(..) => "foreign",
            Op::Thread(..) => "thread",
            Op::NestedBlockOn => "nested_block_on",
            Op::Dump => "dump",
            Op::Fail => "fail",
            Op::Panic => "panic",
            Op::Serve(..) => "serve",
            Op::Dial(..) => "dial",
            Op::Connection(..) => "connection",
            Op::Frames(..) => "frames",
            Op::Datagrams(..) => "datagrams",
            Op::Descriptor(..) => "descriptor",
            Op::Post(..) => "post",
            Op::Fetch(..) => "fetch",
            Op::Crew(_) => "crew",
            Op::Stream(..) => "stream",
            Op::Closed(_) => "closed",
            Op::Abandon(..) => "abandon",
            Op::SelectOf(..) => "select_of",
            Op::Attempts(..) => "attempts",
            Op::Parts(..) => "parts",
            Op::Value(_) => "value",
            Op::Reset(..) => "reset",
            Op::Delays(..) => "delay_queue",
            Op::Parted(..) => "guard_parts",
            Op::Permits(..) => "permits",
            Op::Shut => "shut",
            Op::Enabled(_) => "enabled",
            Op::Runtime(_) => "handle",
            Op::HalfOf(..) => "half_of",
        }
    }
}

/// All kinds of operations.
pub(crate) const KINDS: [&str; 81] = [
    "yield",
    "sleep",
    "sleep_until",
    "try_sleep",
    "interval",
    "checkpoint",
    "look",
    "consume",
    "timeout",
    "deadline",
    "race",
    "join",
    "try_join",
    "group",
    "select",
    "shield",
    "with_local",
    "scope",
    "spawn",
    "supervise",
    "start",
    "cx_job",
    "defer",
    "cancel_scope",
    "stop",
    "stop_within",
    "stopping",
    "cancelled",
    "send",
    "recv",
    "send_unbounded",
    "recv_unbounded",
    "tracked",
    "recv_tracked",
    "oneshot",
    "publish",
    "listen",
    "set",
    "watch",
    "region_channel",
    "mutex",
    "read",
    "write",
    "semaphore",
    "notify",
    "notified",
    "barrier",
    "once_cell",
    "obligation",
    "half_poll",
    "from_bag",
    "foreign",
    "thread",
    "nested_block_on",
    "dump",
    "fail",
    "panic",
    "serve",
    "dial",
    "connection",
    "frames",
    "datagrams",
    "descriptor",
    "post",
    "fetch",
    "crew",
    "stream",
    "closed",
    "abandon",
    "select_of",
    "attempts",
    "parts",
    "value",
    "reset",
    "delay_queue",
    "guard_parts",
    "permits",
    "shut",
    "enabled",
    "handle",
    "half_of",
];
