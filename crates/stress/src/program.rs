//! Programs as data: created by the generator and run by the interpreter.
//!
//! Every program ends in any case: every wait in it ends with a cancel, code that no cancel reaches
//! (shields, finalizers, jobs) is short, and each of its roots is cancelled after a while.

use crate::settings::RuntimeSettings;

/// A complete program: a runtime, and the code that runs in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) journal: Journal,
    /// The operation budget of a poll.
    pub(crate) operations: Option<u32>,
    /// The cleanup polls that a cancel allows, and the limit of the cancel streak.
    pub(crate) cleanup_polls: Option<u32>,
    pub(crate) cancel_streak: u32,
    pub(crate) settings: RuntimeSettings,
    /// The capacity of the channels.
    pub(crate) capacity: usize,
    /// Whether values, futures and handles may be forgotten. Leaks are then not reported.
    pub(crate) forgets: bool,
    /// Whether callbacks (destructors, wakers) may panic.
    pub(crate) callback_panics: bool,
    /// The roots, each in a `block_on` on a separate thread; the first on the main thread.
    pub(crate) roots: Vec<Root>,
    pub(crate) shutdown: Option<Shutdown>,
    /// Whether the threads that programs start are joined before the runtime is dropped, and
    /// whether the bag of leftovers is emptied before that.
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
    /// The number of microseconds after which everything in it is cancelled.
    pub(crate) reaped: u64,
    pub(crate) body: Vec<Op>,
}

/// A shutdown while the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shutdown {
    pub(crate) after: u64,
    pub(crate) soft: u64,
    pub(crate) hard: u64,
    /// Whether to wait for its end.
    pub(crate) waits: bool,
}

/// The number of a channel, lock or value.
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
    /// With an optional maximal duration.
    Shield(Option<Micros>, Vec<Op>),
    WithLocal(Nth, Vec<Op>),
    Scope(Box<ScopeOp>),
    /// Spawns a task in the innermost scope.
    Spawn(Box<Child>),
    Supervise(u32, Vec<Op>),
    Start(bool, Vec<Op>),
    CxJob(Micros),
    Defer(Vec<Op>),
    /// With an optional time limit for cleanup.
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
    /// Whether to downgrade the guard first.
    Write(RwHow, bool, Vec<Op>),
    Acquire(usize, AcquireHow, Vec<Op>),
    Notify(bool),
    Notified,
    Barrier,
    Once(OnceHow),
    Obligation(Resolve),
    /// Polls a future a few times by hand, and then leaves it in this way.
    HalfPoll(Half, usize, Fate),
    /// Takes a leftover out of the bag and uses it.
    FromBag,
    /// Polls the operations with a separate waker, as executors inside a task do.
    SeparateWaker(bool, Vec<Op>),
    /// Starts a thread.
    Thread(Where, ThreadDoes),
    NestedBlockOn,
    Dump,
    Fail,
    Panic,
    /// Accepts this many connections, and uses each in a separate task.
    Serve(Family, usize, Vec<Use>),
    /// Connects to a listener, which may have been closed.
    Dial(Family, Vec<Use>),
    /// A connection with its other end used by a task.
    Connection(Family, Vec<Use>, Vec<Use>),
    /// Receives frames from a task.
    Frames(Family, usize),
    /// Exchanges this many datagrams.
    Datagrams(Family, usize),
    /// Uses a registered descriptor.
    Descriptor(Family, Vec<Use>),
    /// Sends to a channel with several receivers.
    Post(Nth, PostHow),
    /// Receives from a channel with several receivers.
    Fetch(Nth, FetchHow),
    /// Tasks that send and tasks that receive, until all senders are gone.
    Crew(CrewOp),
    /// Takes this many items of a stream that owns its source.
    Stream(StreamHow, usize, Fate),
    /// Waits until the receivers of this kind of sender are gone.
    Closed(ClosedOf),
    /// A foreign future that is abandoned on cancel.
    Abandon(ForeignFuture, Vec<Op>),
    SelectOf(SelectHow, Micros, Vec<Op>),
    /// Up to the first number of attempts, of which the second one succeeds.
    Attempts(AttemptHow, u32, u32, Vec<Op>),
    /// Parts with counted ends.
    Parts(PartsHow, Vec<Vec<Op>>),
    /// Takes the value of a task.
    Value(Box<Child>),
    Reset(ResetHow, Micros, usize),
    /// A queue of this many delayed values.
    Delays(usize, Fate),
    /// Mapped guards.
    Parted(LockKind, Where, Vec<Op>),
    /// Permits of a semaphore that are split and merged.
    Permits(bool, Vec<Op>),
    /// A semaphore that is closed while a task waits for it.
    Shut,
    /// A notification that is enabled before it is polled.
    Enabled(bool),
    Runtime(HandleDoes),
    /// An operation that is polled a few times by hand, and then left in this way.
    HalfOf(Box<Op>, usize, Fate),
}

/// The family of a socket: internet or unix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Inet,
    Unix,
}

/// A use of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read(usize),
    ReadVectored(usize),
    Write(usize),
    WriteVectored(usize),
    WriteAll(usize),
    /// With a maximal duration.
    Within(Micros, Box<Use>),
    /// Shuts down one direction or both.
    Shutdown(std::net::Shutdown),
    /// Uses both directions at the same time, borrowed.
    Split(usize),
    /// Moves one half elsewhere and uses the other one here.
    Halves {
        reads: bool,
        elsewhere: Where,
        bytes: usize,
        reunites: bool,
    },
    /// Discards unsent data on close.
    Reset,
    /// Queries settings and addresses.
    Look,
    /// Uses the traits of another library, polled with the task's waker.
    Bound(usize),
    /// Converts the stream to std and back.
    Std,
    /// A read that is polled by hand, and then left in this way with the connection.
    Half(usize, Fate),
    Yield,
    /// Leaves the connection in the bag.
    Bag,
    ToThread,
    Drop,
}

/// Ways to send to a channel with several receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostHow {
    Send,
    Try,
    Reserve,
    Owned,
    /// Releases the permit.
    Abort,
    NextPermit,
    /// This many slots, of which the second number is used.
    Many(usize, usize),
    TryMany(usize, usize),
    Evict,
    Sink,
    OwnedSink,
    /// Uses a sender that is the only strong one at the end.
    Weak,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchHow {
    Recv,
    Try,
    Many(usize),
    Stream(usize),
    Look,
    /// Refuses further senders and receives the rest.
    Drain,
    CloseAndTake,
    /// Drops the receiver that the program keeps.
    DropOne,
    /// Replaces the channel.
    Renew,
}

/// Tasks around a channel with several receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrewOp {
    pub(crate) producers: usize,
    pub(crate) consumers: usize,
    /// `None`: unbounded.
    pub(crate) capacity: Option<usize>,
    pub(crate) messages: usize,
    pub(crate) batches: bool,
}

/// The source of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamHow {
    Messages,
    Shared,
    Throttled(Micros),
    /// This many merged streams.
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

/// A foreign future, which does not observe cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignFuture {
    /// Never completes.
    Never,
    /// Wakes itself this many times.
    Polls(usize),
    /// Is woken by a thread.
    Thread,
    /// Runs operations.
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectHow {
    Assumed(ForeignFuture),
    Abandoned(ForeignFuture),
    /// The body is borrowed and continues afterwards.
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

/// Uses of the runtime's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandleDoes {
    Dump,
    Metrics,
    Health,
    /// Stops everything, with these grace periods.
    Stop(Micros, Micros),
}

/// The form of a combinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    /// The tuple form, for up to four.
    Few,
    All,
}

/// The place of execution.
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
    /// `cx.scope`: panics propagate.
    Plain,
    Try,
    Collect,
    /// With a budget: a deadline after this many microseconds.
    Within(Micros),
    /// With this many polls of cleanup.
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
    /// A closure that drops its context immediately.
    NoCx,
    Local,
    Pinned(usize),
    Blocking(Micros),
    /// A job that waits for the body.
    Waiting,
    Priority(u8),
    Within(Micros),
    Polls(u64),
    /// With this cost budget.
    Cost(u64),
    /// With a deadline this many microseconds after the start of the runtime.
    By(Micros),
    /// With an error if it cannot be spawned.
    Try,
    TryBlocking,
}

/// The end of a body, unless something else ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Value,
    Error,
    Panic,
}

/// The use of a handle.
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

/// The sender of a reply.
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
    /// An initialisation that may fail.
    TryInit(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcquireHow {
    Plain,
    Owned,
    One,
    Try,
    TryOwned,
    /// The permit is never released; others are added in its place.
    Replace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolve {
    Commit,
    Abort,
    Leave,
}

/// A future that is polled by hand.
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

/// The fate of an unfinished future.
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
    /// Returns the name of the kind; [`KINDS`] has all of them.
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
            Op::SeparateWaker(..) => "foreign",
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
