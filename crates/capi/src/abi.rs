//! What crosses the boundary: handles, bodies, options and looks, all plain data.
//!
//! Enums are `int32_t` with constants, because a C caller can put any number into one; yes or no is
//! an `int32_t` too. A struct that may grow leads with `struct_size`, which the caller sets.

use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};

/// The result of a call: ASX_OK, which is 0, or one of the ASX_E_ constants.
pub type AsxStatus = i32;

/// A time in nanoseconds: an instant of a clock, or a span.
pub type AsxTime = u64;

/// The word of a handle, opaque to programs: its type (16 bits), the state in which it was made
/// (16 bits) and a slot (32 bits). See asx_handle_tag and asx_handle_mask.
pub type AsxId = u64;

/// One of the cancel kinds, ASX_CANCEL_USER to ASX_CANCEL_SHUTDOWN.
pub type AsxCancelKind = i32;

/// One of the cancel phases, ASX_CANCEL_REQUESTED to ASX_CANCEL_COMPLETED; -1 for none.
pub type AsxCancelPhase = i32;

/// One of the channel states, ASX_CHANNEL_OPEN to ASX_CHANNEL_FULLY_CLOSED.
pub type AsxChannelState = i32;

/// Names a region. A forged or stale one is refused.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxRegionId {
    /// Type tag, state snapshot, slot.
    pub bits: AsxId,
    /// Which of the slot's tenants.
    pub generation: u64,
}

/// Names a task.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxTaskId {
    /// Type tag, state snapshot, slot.
    pub bits: AsxId,
    /// Which of the slot's tenants.
    pub generation: u64,
}

/// Names an obligation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxObligationId {
    /// Type tag, state snapshot, slot.
    pub bits: AsxId,
    /// Which of the slot's tenants.
    pub generation: u64,
}

/// Names a channel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxChannelId {
    /// Type tag, state snapshot, slot.
    pub bits: AsxId,
    /// Which of the slot's tenants.
    pub generation: u64,
}

/// Names a witness of a cancel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxWitnessId {
    /// Type tag, snapshot of the phase, slot.
    pub bits: AsxId,
    /// Which of the slot's tenants.
    pub generation: u64,
}

/// A runtime has changed hands.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxTransfer {
    /// Set by the caller: sizeof(asx_transfer).
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The thread that gave it away.
    pub from: u64,
    /// The thread that owns it now.
    pub to: u64,
    /// How often it has changed hands, this time included.
    pub epoch: u64,
}

/// The type of a handle is in the upper 16 bits of `bits`, the state in which it was made in the
/// next 16: see asx_handle_tag and asx_handle_mask. Region.
pub const ASX_TAG_REGION: u32 = 1;
/// Task.
pub const ASX_TAG_TASK: u32 = 2;
/// Obligation.
pub const ASX_TAG_OBLIGATION: u32 = 3;
/// Witness of a cancel.
pub const ASX_TAG_CANCEL_WITNESS: u32 = 4;
/// Timer: in reports of misuse only, as a timer's handle has no `bits`.
pub const ASX_TAG_TIMER: u32 = 5;
/// Channel.
pub const ASX_TAG_CHANNEL: u32 = 6;
/// Permit: without a state.
pub const ASX_TAG_PERMIT: u32 = 7;

/// Names a timer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxTimerHandle {
    /// Its slot; reused, but never while the timer lives.
    pub id: u64,
    /// Which registration.
    pub generation: u64,
}

/// A runtime. Opaque to C.
#[repr(C)]
pub struct AsxRuntime {
    _opaque: [u8; 0],
    /// It stays where it is, and is not sent to another thread but by asx_runtime_transfer.
    _stays: PhantomData<(*mut u8, PhantomPinned)>,
}

/// The context of a task: the runtime it lives in, and the task. A poll function gets a pointer to
/// one, which is valid until it returns; asx_cx_of makes one for any task. Calls on behalf of a
/// task take it, and refuse one of another runtime or of a task that is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxCx {
    /// The runtime.
    pub rt: *mut AsxRuntime,
    /// The task.
    pub task: AsxTaskId,
}

/// The sending side of a channel. A plain value: copies are the same sender, and
/// asx_channel_sender_clone adds one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxChannelSender {
    /// The runtime the channel is in.
    pub rt: *mut AsxRuntime,
    /// The channel.
    pub channel: AsxChannelId,
}

/// The receiving side of a channel. A plain value: copies are the same receiver.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxChannelReceiver {
    /// The runtime the channel is in.
    pub rt: *mut AsxRuntime,
    /// The channel.
    pub channel: AsxChannelId,
}

/// A permit: one reserved slot of a channel, resolved exactly once. A plain value: a copy is the
/// same permit, and using it after the other was resolved is ASX_E_OBLIGATION_ALREADY_RESOLVED.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxSendPermit {
    /// The runtime the channel is in.
    pub rt: *mut AsxRuntime,
    /// Type tag, slot.
    pub bits: AsxId,
    /// Which of the slot's tenants.
    pub generation: u64,
}

/// The function of a waker: gets what the waker was made with.
pub type AsxWakeFn = unsafe extern "C" fn(data: *mut c_void, task: AsxTaskId);

/// Something to be called when a timer of a wheel has expired; asx_waker_wake calls it. A zeroed
/// one does nothing. asx_cx_waker makes one that wakes a task.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxWaker {
    /// Called by asx_waker_wake; may be NULL.
    pub wake: Option<AsxWakeFn>,
    /// Its first argument.
    pub data: *mut c_void,
    /// Its second argument.
    pub task: AsxTaskId,
}

/// Returns the time in nanoseconds, which never decreases; ASX_NONE if it is not available.
pub type AsxClockNowFn = unsafe extern "C" fn(state: *mut c_void) -> AsxTime;

/// Waits until an instant, or shorter. ASX_NONE: until something happens.
pub type AsxClockWaitFn = unsafe extern "C" fn(state: *mut c_void, until: AsxTime);

/// A clock: a table of functions and the pointer they get. asx_clock_virtual makes one whose time
/// is a variable of the program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxClock {
    /// Called for ASX_NOW. NULL: there is no clock.
    pub now: Option<AsxClockNowFn>,
    /// For the program's own loop, between steps; the library does not call it. May be NULL.
    pub wait_until: Option<AsxClockWaitFn>,
    /// Handed to both.
    pub state: *mut c_void,
}

/// Polls a task: continues its work, and returns one of the ASX_POLL_ constants. Like every
/// callback it must return: leaving it by longjmp or an exception is forbidden
/// (asx_runtime_recover).
pub type AsxPollFn = unsafe extern "C" fn(cx: *mut AsxCx, ctx: *mut c_void) -> i32;

/// Called once with a context pointer that will not be used again.
pub type AsxDropFn = unsafe extern "C" fn(ctx: *mut c_void);

/// The callbacks of a task, a finalizer or a cleanup entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxBody {
    /// Called until it returns something other than ASX_POLL_PENDING. Not NULL.
    pub poll: Option<AsxPollFn>,
    /// Handed to `poll` and `drop`; never looked at.
    pub ctx: *mut c_void,
    /// Called once when `poll` will not be called again; may be NULL.
    pub drop: Option<AsxDropFn>,
}

/// The poll waits for a wake.
pub const ASX_POLL_PENDING: i32 = 0;
/// The task is done.
pub const ASX_POLL_READY: i32 = 1;
/// The task is done, with the error set by asx_task_set_error.
pub const ASX_POLL_ERROR: i32 = 2;
/// The task gave up because a call answered ASX_E_CANCELLED or ASX_E_BUDGET_EXHAUSTED.
pub const ASX_POLL_CANCELLED: i32 = 3;
/// The task failed unexpectedly, as by a panic or an escaped exception. Unknown results count as
/// this.
pub const ASX_POLL_PANICKED: i32 = 4;

/// "None" or "never" where a time or a number may be absent, and "no limit" where a limit may.
pub const ASX_NONE: u64 = u64::MAX;
/// As `now`: ask the clock hook.
pub const ASX_NOW: u64 = u64::MAX;

/// `ns` counts from the runtime's current time.
pub const ASX_WHEN_AFTER: i32 = 0;
/// `ns` is an instant of the runtime's clock.
pub const ASX_WHEN_AT: i32 = 1;

/// When a wait ends.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxWhen {
    /// Nanoseconds.
    pub ns: AsxTime,
    /// ASX_WHEN_AFTER or ASX_WHEN_AT.
    pub mode: i32,
    /// Zero.
    pub reserved: u32,
}

/// The limits of a task or region. The limits of its region apply as well.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxBudget {
    /// The instant at which it ends; ASX_NONE for none.
    pub deadline: AsxTime,
    /// Polls; ASX_NONE for no limit.
    pub poll_quota: u64,
    /// Cost; ASX_NONE for no limit.
    pub cost_quota: u64,
}

/// Children continue when one fails.
pub const ASX_POLICY_COLLECT_ALL: i32 = 0;
/// The first failure cancels the siblings.
pub const ASX_POLICY_FAIL_FAST: i32 = 1;

/// How a region is opened; see ASX_REGION_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxRegionOptions {
    /// sizeof(asx_region_options).
    pub struct_size: u32,
    /// One of the ASX_POLICY_ constants.
    pub policy: i32,
    /// Live children it admits; ASX_NONE for no limit.
    pub max_children: u64,
    /// Its budget.
    pub budget: AsxBudget,
    /// The priority its tasks have at least: 0 to 255.
    pub priority: u32,
    /// Zero.
    pub reserved: u32,
}

/// The task's slot is freed as soon as it is over; its handle is stale from then on.
pub const ASX_TASK_AUTO_RELEASE: u32 = 1;
/// Take the configured watchdog instead of `watchdog_ns`.
pub const ASX_TASK_DEFAULT_WATCHDOG: u32 = 2;
/// The default priority of a task.
pub const ASX_PRIORITY_DEFAULT: u32 = 128;

/// How a task is spawned; see ASX_TASK_OPTIONS_INIT.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxTaskOptions {
    /// sizeof(asx_task_options).
    pub struct_size: u32,
    /// 0 to 255, higher goes first.
    pub priority: u32,
    /// Its budget.
    pub budget: AsxBudget,
    /// Cancelled if it is not kicked for so long; ASX_NONE for no watchdog.
    pub watchdog_ns: u64,
    /// ASX_TASK_ flags.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
    /// Completed by force if it lives so long after its watchdog has cancelled it; its cleanup
    /// stack has as long again. ASX_NONE: never. With ASX_TASK_DEFAULT_WATCHDOG the configured one.
    pub watchdog_grace_ns: u64,
}

/// A watchdog has cancelled its task.
pub const ASX_WATCHDOG_CANCELLED: i32 = 0;
/// A watchdog has ended its task by force.
pub const ASX_WATCHDOG_FORCED: i32 = 1;

/// The state of a region.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxRegionInfo {
    /// Set by the caller: sizeof(asx_region_info).
    pub struct_size: u32,
    /// One of the ASX_REGION_ constants.
    pub state: i32,
    /// The fold of its children's outcomes once Closed: ASX_OUTCOME_, or -1.
    pub outcome: i32,
    /// The first failure of a fail-fast region: ASX_OUTCOME_, or -1.
    pub first_cause: i32,
    /// Why it was closed: ASX_CANCEL_, or -1.
    pub kind: AsxCancelKind,
    /// Links of its chain of causes.
    pub chain: u32,
    /// Live tasks.
    pub tasks: u64,
    /// Open child regions.
    pub children: u64,
    /// Outstanding obligations.
    pub obligations: u64,
    /// Finalizers not yet started.
    pub finalizers: u64,
    /// Bytes of storage in use.
    pub storage: u64,
}

/// The state of a task.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxTaskInfo {
    /// Set by the caller: sizeof(asx_task_info).
    pub struct_size: u32,
    /// One of the ASX_TASK_ constants.
    pub state: i32,
    /// How it ended: ASX_OUTCOME_, or -1.
    pub outcome: i32,
    /// The status of the error it ended with, or -1.
    pub error: i32,
    /// Why it is cancelled: ASX_CANCEL_, or -1.
    pub kind: AsxCancelKind,
    /// How far the cancel has come: ASX_CANCEL_REQUESTED and so on, or -1.
    pub phase: AsxCancelPhase,
    /// The lane it is queued in: ASX_LANE_, or -1.
    pub lane: i32,
    /// Whether it was completed by force.
    pub overrun: i32,
    /// Whether it is a finalizer.
    pub finalizer: i32,
    /// Whether its chain of causes was cut.
    pub truncated: i32,
    /// Links of its chain of causes.
    pub chain: u32,
    /// Its priority.
    pub priority: u32,
    /// The region it lives in.
    pub region: AsxRegionId,
    /// Cancels so far: 0 or 1.
    pub epoch: u64,
    /// Polls begun.
    pub polls: u64,
    /// Polls begun since a cancel it has not seen.
    pub polls_since_request: u64,
    /// Cleanup polls still allowed, or ASX_NONE.
    pub polls_left: u64,
    /// Its deadline, or ASX_NONE.
    pub deadline: u64,
    /// Polls left in its budget, or ASX_NONE.
    pub quota: u64,
    /// Cost left in its budget, or ASX_NONE.
    pub cost: u64,
}

/// One link of a chain of causes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxCancelReason {
    /// Set by the caller: sizeof(asx_cancel_reason).
    pub struct_size: u32,
    /// ASX_CANCEL_.
    pub kind: AsxCancelKind,
    /// When.
    pub time: u64,
    /// The region the request was made in.
    pub region: AsxRegionId,
    /// The task that made it, if `has_task`.
    pub task: AsxTaskId,
    /// Whether a task made it.
    pub has_task: i32,
    /// Whether deeper causes were cut off below this link.
    pub truncated: i32,
}

/// A task that waits to be polled, and its context pointer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxTaskEntry {
    /// The task.
    pub task: AsxTaskId,
    /// The context pointer that will be polled next.
    pub ctx: *mut c_void,
}

/// The state of a channel.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxChannelInfo {
    /// Set by the caller: sizeof(asx_channel_info).
    pub struct_size: u32,
    /// One of the ASX_CHANNEL_ constants.
    pub state: AsxChannelState,
    /// Slots in all.
    pub capacity: u64,
    /// Committed messages.
    pub len: u64,
    /// Permits granted and not resolved.
    pub reserved: u64,
    /// Senders in line.
    pub waiters: u64,
    /// Senders.
    pub senders: u64,
    /// Bytes of an element.
    pub element_size: u64,
}

/// The state of a timer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxTimerInfo {
    /// Set by the caller: sizeof(asx_timer_info).
    pub struct_size: u32,
    /// 0 to 3: the wheel's level; ASX_TIMER_READY, ASX_TIMER_OVERFLOW or ASX_TIMER_GONE.
    pub level: i32,
    /// Its deadline, or ASX_NONE.
    pub deadline: u64,
}

/// The timer is due.
pub const ASX_TIMER_READY: i32 = 4;
/// The timer is too far away for the wheel.
pub const ASX_TIMER_OVERFLOW: i32 = 5;
/// The timer is not armed (any more).
pub const ASX_TIMER_GONE: i32 = -1;

/// The state of all timers, the run queues and the scheduler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxQueuesInfo {
    /// Set by the caller: sizeof(asx_queues_info).
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Armed timers.
    pub timers: u64,
    /// The earliest deadline of a timer, or ASX_NONE.
    pub next_timer: u64,
    /// Entries the timers' storage holds.
    pub timer_storage: u64,
    /// Tasks queued in the cancel lane.
    pub cancel: u64,
    /// Tasks queued in the timed lane.
    pub timed: u64,
    /// Tasks queued in the ready lane.
    pub ready: u64,
    /// Dispatches from the cancel lane, fallbacks not counted.
    pub cancel_dispatches: u64,
    /// Dispatches from the timed lane.
    pub timed_dispatches: u64,
    /// Dispatches from the ready lane.
    pub ready_dispatches: u64,
    /// Fallback dispatches.
    pub fallback_dispatches: u64,
    /// Cancel dispatches with the streak at the configured limit or over it.
    pub base_exceedances: u64,
    /// The same at the limit in force while other work waited: 0.
    pub effective_exceedances: u64,
    /// The largest limit in force.
    pub max_limit: u64,
    /// The digest of the seven counters above.
    pub certificate: u64,
}

/// The state of the journal.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxJournalInfo {
    /// Set by the caller: sizeof(asx_journal_info).
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Events recorded.
    pub recorded: u64,
    /// Events not retained.
    pub lost: u64,
    /// Events that can be read.
    pub retained: u64,
}

/// Fields of an event: the most any kind has.
pub const ASX_EVENT_FIELDS: usize = 8;
/// `present` bit: the event is about a task.
pub const ASX_EVENT_HAS_TASK: u32 = 1;
/// `present` bit: the event is about a region.
pub const ASX_EVENT_HAS_REGION: u32 = 2;
/// `present` bit: the event is about a timer.
pub const ASX_EVENT_HAS_TIMER: u32 = 4;
/// `present` bit: the event is about a channel.
pub const ASX_EVENT_HAS_CHANNEL: u32 = 8;

/// One event of the journal. Things are named by the order of their creation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsxEvent {
    /// Its position, from 0.
    pub seq: u64,
    /// The runtime's time.
    pub time: u64,
    /// What happened: see asx_event_name.
    pub kind: u32,
    /// Which of the next four there are, ASX_EVENT_HAS_.
    pub present: u32,
    /// The task.
    pub task: u64,
    /// The region.
    pub region: u64,
    /// The timer (its generation).
    pub timer: u64,
    /// The channel.
    pub channel: u64,
    /// How many fields there are.
    pub fields: u32,
    /// A bit for each field that is not null.
    pub fields_present: u32,
    /// The fields: numbers; yes or no as 1 or 0; enumerations as numbers for asx_value_name.
    pub field: [u64; 8],
}

/// Counts of everything that is still alive.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxDiagnosis {
    /// Set by the caller: sizeof(asx_diagnosis).
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Tasks not Completed.
    pub tasks: u64,
    /// Obligations still Reserved.
    pub obligations: u64,
    /// Regions not Closed.
    pub regions: u64,
    /// Armed timers.
    pub timers: u64,
    /// Channels that hold messages or permits.
    pub channels: u64,
}

/// The result of a step.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxProgress {
    /// Set by the caller: sizeof(asx_progress).
    pub struct_size: u32,
    /// Whether nothing is runnable any more at this time.
    pub idle: i32,
    /// Polls made.
    pub polls: u64,
    /// When something happens by itself next, or ASX_NONE.
    pub next_deadline: u64,
    /// The task polled last; zero if none was.
    pub last_task: AsxTaskId,
    /// The lane it came from: ASX_LANE_, or -1.
    pub last_lane: i32,
    /// Zero.
    pub reserved: u32,
}

/// Counters of a runtime.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxStats {
    /// Set by the caller: sizeof(asx_stats).
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Polls made.
    pub polls: u64,
    /// Calls that reached the bound of their work with work left.
    pub overruns: u64,
    /// Tasks cancelled by their watchdog.
    pub watchdogs: u64,
    /// External wakes delivered.
    pub external_wakes: u64,
    /// Misuses counted by the ghost monitors, one number for each ASX_GHOST_ kind.
    pub ghosts: [u64; 9],
    /// The kernel's estimate of the memory in use.
    pub memory: u64,
    /// Bytes of the pool; 0 without one.
    pub pool_size: u64,
    /// Bytes of the pool in use.
    pub pool_used: u64,
    /// The most bytes of the pool that were in use.
    pub pool_peak: u64,
    /// Blocks the allocator gave beyond the pool's size; always 0 without one, and in a strict one.
    pub pool_spills: u64,
    /// Cleanup entries that were dropped before they were done, because the allowance or the grace
    /// of their task was used up.
    pub cleanups_cut: u64,
    /// Tasks completed by force by their watchdog.
    pub watchdogs_forced: u64,
    /// Obligations that were leaked, whether or not there is a journal.
    pub obligations_leaked: u64,
}
