/**
 * What a page gives the runtime. What is missing is denied; nothing is looked for elsewhere. A
 * function here that throws, or that calls the runtime back before it returns, ends the runtime:
 * `trapped` says which, and every promise of it rejects (`INTERNAL`).
 */
export interface Capabilities {
  /** The time in milliseconds. It should never go back: a jump back is a host event
   *  (`scheduler_clock_went_back`), and time goes on from where it was. */
  clock?: () => number;
  /** Two random words. */
  entropy?: () => Uint32Array;
  /** The one host timer. */
  timer?: { set(callback: () => void, ms: number): unknown; clear(timer: unknown): void };
  /** Messages to oneself: a host turn each. */
  post?: (receive: (data: unknown) => void) => { send(data: number): void; close(): void };
  /** A microtask. Nothing can run without it. */
  microtask: (callback: () => void) => void;
  /** For the signals of tasks. */
  abortController: () => AbortController;
  /** For `fetch` of Rust programs. */
  fetch?: (request: RequestInfo, init?: RequestInit) => Promise<Response>;
  /** Shows a line to the author of the page. The page's own facilities write it to the console. */
  report?: (line: string) => void;
}

/** What can be granted and taken away. */
export type CapabilityName =
  /** Reading the time. Without it waits for a time fail (`CAPABILITY_DENIED`). */
  | "clock"
  /** Random numbers. Without it a task that wants one is cancelled (`ResourceUnavailable`). */
  | "entropy"
  /** The host timer. Without it waits for a time fail (`CAPABILITY_DENIED`). */
  | "timer"
  /** Messages to oneself. Without it what is runnable when the allowance of a host turn is used up
   *  goes on when it is granted, and `yieldNow` fails (`CAPABILITY_DENIED`). */
  | "post"
  /** Microtasks. Without it nothing begins until it is granted. */
  | "microtask";

/** How a runtime is started. A value that makes no sense, and an option that does not exist, reject
 *  with `INVALID_ARGUMENT`. */
export interface Options {
  /** The page's own facilities unless given. */
  capabilities?: Capabilities;
  /** Steps per host turn, from 1: 256 unless given. */
  burst?: number;
  /** Milliseconds per host turn, above 0: 4 unless given, `Infinity` for no limit. What bodies of
   *  tasks and callbacks of the page take between its steps counts. */
  sliceMs?: number;
  /** How many events are retained, up to 2^24: 0, and nothing is recorded, unless given. */
  journal?: number;
  /** Milliseconds, from 0: a longer sleep rejects with `Cancelled`, whose message names
   *  `max_timer_duration`. 7 days unless given, `Infinity` for no limit. */
  maxTimerMs?: number;
  /** Milliseconds, from 0: longer timers wait in a heap instead of the timer wheel, which affects
   *  speed only. 24 hours unless given. */
  maxWheelMs?: number;
  /** How many links the chain of causes of a cancel has at most: 16 unless given. */
  causeDepth?: number;
  /** How many bytes it has at most, 88 and the message for each link: 4096 unless given. */
  causeBytes?: number;
  /** Which of several tasks of the same lane and priority runs first: the one that has waited
   *  longest, unless this is `"taskKey"`, which orders them by their numbers. */
  tieBreak?: "fifo" | "taskKey";
  /** Where the WebAssembly file is, if not beside this module. Of the first start that succeeds. */
  module?: string | URL | Response | BufferSource | WebAssembly.Module;
}

/** What happened in the semantics of the runtime: the same on every host of asx. */
export type JournalEventName =
  /** A region was opened inside `parent`. */
  | "region_opened"
  /** A region changed its state, `from` one `to` another. */
  | "region_moved"
  /** A region was asked to close: `kind`; not the first time if `strengthened`. */
  | "region_cancelled"
  /** A region closed with this fold of its children's outcomes: `outcome`. */
  | "region_outcome"
  /** So many obligations were outstanding when the region closed: `count`. */
  | "unresolved_obligations"
  /** A task was spawned: `priority`, `finalizer`. */
  | "task_spawned"
  /** A task changed its state, `from` one `to` another. */
  | "task_moved"
  /** A task's cancel reached a `phase`, or was `strengthened` in it: `epoch`, `kind`, `polls`. */
  | "cancel_witness"
  /** A task ended: `outcome`. */
  | "task_ended"
  /** A task was completed by force, after so many `polls` of cleanup. */
  | "cleanup_overrun"
  /** An error came out of cleanup; the task ends as it would have. */
  | "cleanup_error"
  /** A wake for a task that is over. */
  | "stale_wake"
  /** A part of a task's budget ran out: `kind`. */
  | "budget_exhausted"
  /** The scheduler chose this task: `worker`, `lane`, `decision_seq`, `decision_hash`,
   *  `cancel_streak`, `limit`, `fallback`. */
  | "scheduler_step_decision"
  /** An obligation was reserved: `obligation`. */
  | "obligation_reserved"
  /** An obligation was resolved or leaked: `obligation`, `to`. */
  | "obligation_resolved"
  /** A timer was armed for a `deadline`. */
  | "timer_armed"
  /** A timer fired, that was armed for a `deadline`. */
  | "timer_fired"
  /** A timer was cancelled. */
  | "timer_cancelled"
  /** A channel was created: `capacity`. */
  | "channel_opened"
  /** A slot of a channel was reserved: `permit`. */
  | "send_reserved"
  /** A sender waits for a slot. */
  | "send_waiting"
  /** A waiting sender left without a slot. */
  | "send_left"
  /** A message was committed: `permit`. */
  | "sent"
  /** A commit found the receiver gone: `permit`. */
  | "send_refused"
  /** A reserved slot was given back: `permit`. */
  | "send_aborted"
  /** The oldest message made room for a new one. */
  | "evicted"
  /** A message was taken. */
  | "received"
  /** The last sender is gone. */
  | "senders_gone"
  /** The receiver is gone, with this many messages unread: `dropped`. */
  | "receiver_gone"
  /** A limit was reached, and the operation changed nothing: `what`. */
  | "resource_exhausted"
  /** Tasks may now see that the run is about to stop. */
  | "soft_stop"
  /** A grace period is over: what still lives is completed by force. */
  | "grace_expired";

/** One event of the journal. Fields beyond these depend on the kind. */
export interface JournalEvent {
  /** Its place in the journal: 0, 1, .. */
  seq: number;
  /** Nanoseconds. */
  time: number;
  /** What happened. */
  event: JournalEventName;
  task: number | null;
  region: number | null;
  timer: number | null;
  channel: number | null;
  [field: string]: unknown;
}

/** Events were overwritten before anybody was told of them: retain more, or `flush` more often. */
export interface JournalGap {
  event: "journal_gap";
  /** The first and the last of them. */
  from: number;
  to: number;
  /** How many. */
  lost: number;
}

/** What the scheduler did in which host turn. */
export type HostEventName =
  /** A step begins. */
  | "scheduler_step_begin"
  /** The scheduler chose a task. */
  | "scheduler_step_decision"
  /** The step is over. */
  | "scheduler_step_end"
  /** The pump was called inside a drain: noted, and made good afterwards. */
  | "scheduler_reentrancy_deferred"
  /** A drain has had its share: `limit` says of what (`steps`, `time`, `clock`, `timers`). */
  | "scheduler_burst_limit_reached"
  /** What is left goes on in another host turn: `call` says through what. */
  | "scheduler_host_handoff"
  /** Something is not granted: `capability`, and who wanted it: `provenance`. */
  | "scheduler_capability_denied"
  /** A message came that the runtime never posted: `token`. */
  | "scheduler_forged_message"
  /** A timer rang that the runtime never set: `token`. */
  | "scheduler_forged_timer"
  /** A host timer rang after it was replaced: `timer`. */
  | "scheduler_stale_timer"
  /** The page's clock went back, by so many nanoseconds: `by_ns`. Time goes on from where it was. */
  | "scheduler_clock_went_back"
  /** Somebody tried to start a second runtime. */
  | "scheduler_started_twice"
  /** The runtime is dead: `diagnosis`. */
  | "scheduler_trapped";

/** One host event. The fields of the decision are those of the step in which it happened, `null`
 *  outside of one. */
export interface HostEvent {
  /** Its place among the host events: 1, 2, .. */
  seq: number;
  /** What happened. */
  event: HostEventName;
  task_id: number | null;
  region_id: number | null;
  lane: "cancel" | "timed" | "ready" | null;
  decision_seq: number | null;
  /** Its link in the chain of decisions, in hexadecimal. */
  decision_hash: string | null;
  /** The turn of the event loop: a microtask is part of the turn it was queued in. */
  host_turn_id: number;
  /** The last drain. */
  microtask_batch_id: number;
  /** How many cancels went in a row before, and how many may while other work waits. */
  cancel_streak: number;
  cancel_streak_limit: number;
  /** What went wrong, if something did: the name of a status. */
  error_class: string | null;
  [field: string]: unknown;
}

/** A task that lives. */
export interface TaskInfo {
  /** Its number, as in the journal. */
  id: number;
  name: string | null;
  /** `Created`, `Running`, `CancelRequested`, `Cancelling` or `Finalizing`. */
  state: string;
  activity: "Running" | "Runnable" | "Waiting";
  /** Whether it may block its thread: never in a page. */
  blocking: boolean;
  /** Whether it takes longer to clean up than it may, and cannot be ended. */
  overrun: boolean;
  /** What it waits for, and where in the source of asx or of a Rust program. */
  waits_for: string | null;
  at: string | null;
  /** Whether that was its last wait, and it waits for something outside asx now. */
  stale: boolean;
}

/** A region that is not closed: who owns which tasks. */
export interface RegionInfo {
  id: number;
  /** The region around it; `null` of the root. */
  parent: number | null;
  /** `Open`, `Closing`, `Draining` or `Finalizing`. */
  state: string;
  /** How many finalizers are to run. */
  finalizers: number;
  /** Why it closes, if it was asked to. */
  reason: string | null;
  /** In the order they were started. */
  tasks: TaskInfo[];
  /** The obligations of Rust programs that are not resolved, if there are any. */
  obligations?: { id: number | null; task: number | null; name: string | null; reserved: string }[];
}

/** What lives, where, and what it waits for. */
export interface Dump {
  /** Parents before what is inside them. */
  regions: RegionInfo[];
  /** How many timers are armed. */
  timers: number;
}

/** Why a runtime is not quiescent, in the order of the check. */
export type QuiescenceCode =
  /** A task has not ended. */
  | "TASKS_STILL_ACTIVE"
  /** An obligation of a Rust program is not resolved. */
  | "OBLIGATIONS_UNRESOLVED"
  /** A region is not closed. The root is open until `shutdown` is complete. */
  | "REGIONS_NOT_CLOSED"
  /** A timer is armed. */
  | "TIMERS_PENDING"
  /** A channel of a scope of a Rust program holds messages or permits. */
  | "CHANNEL_NOT_DRAINED";

/** What is alive in a runtime that is not quiescent. */
export interface NotQuiescent {
  /** The failures in order, with how many things each is about; at least one. */
  failures: { code: QuiescenceCode; count: number }[];
  /** The regions that are not closed, with their tasks. */
  regions: RegionInfo[];
  /** The armed timers, the earliest first, with whose each is and the milliseconds left. */
  timers: { task: number | null; region: number | null; due_in: number }[];
  /** The channels that hold something. */
  channels: { id: number; region: number; messages: number; permits: number }[];
}

/** Why a task was cancelled. */
export type CancelKind =
  /** Somebody asked for it: `cancel`, an abort signal. */
  | "User"
  /** An abort signal timed out. */
  | "Timeout"
  /** It was not done within `deadlineMs`. */
  | "Deadline"
  /** It was polled as often as it may be. */
  | "PollQuota"
  /** It has spent what it may spend. */
  | "CostBudget"
  /** A task beside it failed, in a scope of Rust. */
  | "FailFast"
  /** Another branch of a race of Rust won. */
  | "RaceLost"
  /** A task it is linked to ended. */
  | "LinkedExit"
  /** The task around it ended. */
  | "ParentCancelled"
  /** Something the task needs is not to be had. */
  | "ResourceUnavailable"
  /** The runtime is shutting down, or was closed. */
  | "Shutdown";

/**
 * What a cancelled task rejects with, and what its signal is aborted with: a `TimeoutError` if time
 * was over (`Timeout`, `Deadline`), an `AbortError` else. If nobody awaits the task, `User`,
 * `ParentCancelled` and `Shutdown` are no unhandled rejections: somebody here asked for them.
 */
export interface CancelError extends DOMException {
  readonly name: "AbortError" | "TimeoutError";
  /** The kind of cancel that it began with, also if it reached this task through others. */
  readonly kind: CancelKind;
  /** What was said by who asked for it: the argument of `cancel`, or the reason of the signal. */
  readonly cause?: unknown;
}

/** A task's context: time, children and the cancel come through it. */
export interface Context {
  /** The number of the task, as in dumps. */
  readonly id: number;
  /** Aborts when the task is asked to stop; the reason is a `CancelError`. */
  readonly signal: AbortSignal;
  /** Milliseconds. */
  now(): number;
  /** Rejects with a `CancelError` when the task is asked to stop, and with an error named
   *  `CAPABILITY_DENIED` if the page denies the clock or the timer. */
  sleep(ms: number): Promise<void>;
  /** Lets everything that is runnable go first. Rejects with an error named `CAPABILITY_DENIED` if
   *  that needs another host turn and the page denies messages. */
  yieldNow(): Promise<void>;
  /** Starts a task inside this one, which is over only when that is; a text is its name. The handle
   *  is a promise of its value, and can cancel it. */
  spawn<T>(body: Body<T>, options?: string | TaskOptions): Task<T>;
  /** Asks everything that was started here to stop; this task goes on. */
  cancelChildren(why?: unknown): void;
}

export type Body<T> = (cx: Context) => T | PromiseLike<T>;

/** How a task is started. A value that makes no sense, and an option that does not exist, are thrown
 *  back: `INVALID_ARGUMENT`. */
export interface TaskOptions {
  /** What dumps and traces call it. */
  name?: string;
  /** 0 to 255, 128 unless given: of what is runnable in a lane, higher goes first. */
  priority?: number;
  /** In how many milliseconds it should be done: sooner ones go first, and it is asked to stop
   *  (`Deadline`) when they are over. */
  deadlineMs?: number;
  /** An abort of it asks the task to stop. */
  signal?: AbortSignal;
}

/** A task that was started. It is a promise of its value when it and everything inside has ended;
 *  a failure that nobody awaits is an `unhandledrejection`. */
export class Task<T> implements Promise<T> {
  private constructor();
  /** The same as a plain promise. */
  readonly promise: Promise<T>;
  /** Its number, as in dumps. */
  readonly id: number;
  /** The region it is in: that of the tasks the page starts, or of those its parent starts. */
  readonly region: number;
  /** Asks it to stop: its signal aborts, and it goes on until its promise is settled. Whatever is
   *  said comes back as the `cause` of the error. */
  cancel(why?: unknown): void;
  then<A = T, B = never>(
    done?: ((value: T) => A | PromiseLike<A>) | null,
    failed?: ((reason: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B>;
  catch<B = never>(failed?: ((reason: any) => B | PromiseLike<B>) | null): Promise<T | B>;
  finally(done?: (() => void) | null): Promise<T>;
  /** `await using`: asks the task to stop and waits until it has ended, whatever its outcome. */
  [Symbol.asyncDispose](): Promise<void>;
  readonly [Symbol.toStringTag]: string;
}

/**
 * The runtime of a page. Errors that it throws by itself are named after a status:
 * `INVALID_ARGUMENT`, `STALE_HANDLE` once it is closed, `REGION_NOT_OPEN` once it is shutting down,
 * `INTERNAL` once it is dead, with what was thrown as the `cause`.
 */
export class Runtime {
  private constructor();
  /** Starts a task; a text is its name. */
  spawn<T>(body: Body<T>, options?: string | TaskOptions): Task<T>;
  /** Calls back with each event of the journal once, in order, from the oldest one that is retained
   *  on; a gap stands for those that were overwritten. Each subscription has its own place in the
   *  journal. Answers how to stop that. What a listener throws is an `unhandledrejection`, and
   *  disturbs nobody. */
  subscribe(listener: (event: JournalEvent | JournalGap) => void): () => void;
  /** Has subscribers told of what was recorded until now; ends of tasks do so by themselves. */
  flush(): void;
  /** The host events after number `after`, as far as they are retained: as many as `journal` says,
   *  and without a journal the last 64 that are errors. */
  hostEvents(after?: number): HostEvent[];
  /** The digest of everything that was recorded, in hexadecimal; without a journal there is none. */
  digest(): string | undefined;
  /** What lives at this moment. */
  dump(): Dump;
  /** Checks whether nothing is alive: `null`, or the failures and what is alive. */
  quiescence(): NotQuiescent | null;
  /** Grants what was taken away: what is owed for want of it is done. `CAPABILITY_DENIED` if the
   *  page gave nothing for it at the start. */
  grant(capability: CapabilityName): void;
  /** Takes a capability away: who wants it is denied, which is a host event with who it was. */
  revoke(capability: CapabilityName): void;
  /** Why the runtime is dead, if it is. `close` it, and another can be started. */
  readonly trapped: string | null;
  /** Stops everything: told at once, cancelled after `softMs` (0), ended by force after `hardMs`
   *  (1000) more. Resolves when everything has ended. */
  shutdown(options?: { softMs?: number; hardMs?: number }): Promise<void>;
  /** Ends what lives, by force, and lets go of the page; always, also of a runtime that is dead. */
  close(): void;
  /** `await using`: a `shutdown` with its usual times, and then `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Loads the module and starts the runtime of this page or worker: one at a time. A load that failed
 *  can be tried again. */
export function start(options?: Options): Promise<Runtime>;
