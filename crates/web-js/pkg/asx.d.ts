/** What a page gives the runtime. What is missing is denied; nothing is looked for elsewhere. */
export interface Capabilities {
  /** The time in milliseconds; it never goes back. */
  clock?: () => number;
  /** Two random words. */
  entropy?: () => Uint32Array;
  /** The one host timer. */
  timer?: { set(callback: () => void, ms: number): unknown; clear(timer: unknown): void };
  /** Messages to oneself: a host turn each. */
  post?: (receive: (data: unknown) => void) => { send(data: number): void; close(): void };
  /** A microtask. */
  microtask?: (callback: () => void) => void;
  /** For tasks: without it they cannot be aborted, so they do not start. */
  abortController?: () => AbortController;
  /** For `fetch` of Rust programs. */
  fetch?: (request: RequestInfo, init?: RequestInit) => Promise<Response>;
}

export type CapabilityName = "clock" | "entropy" | "timer" | "post" | "microtask";

export interface Options {
  /** The page's own facilities unless given. */
  capabilities?: Capabilities;
  /** Steps per drain: 256 unless given. */
  burst?: number;
  /** Milliseconds per drain: 4 unless given. */
  sliceMs?: number;
  /** How many events are retained: 0, and nothing is recorded, unless given. */
  journal?: number;
  /** Where the WebAssembly file is, if not beside this module. */
  module?: string | URL | Response | BufferSource | WebAssembly.Module;
}

/** One event of the journal. Fields beyond these depend on the kind. */
export interface JournalEvent {
  seq: number;
  /** Nanoseconds. */
  time: number;
  /** What happened: `task_spawned`, `scheduler_step_decision`, `cancel_witness`, .. */
  event: string;
  task: number | null;
  region: number | null;
  timer: number | null;
  channel: number | null;
  [field: string]: unknown;
}

/** What the scheduler did in which host turn. */
export interface HostEvent {
  seq: number;
  /**
   * What happened: `scheduler_step_begin`, `scheduler_step_decision`, `scheduler_step_end`, `scheduler_reentrancy_deferred`,
   * `scheduler_burst_limit_reached`, `scheduler_host_handoff`, or an error of the host's. The fields of the decision are those of the step
   * in which it happened, `null` outside of one.
   */
  event: string;
  task_id: number | null;
  region_id: number | null;
  lane: "cancel" | "timed" | "ready" | null;
  decision_seq: number | null;
  decision_hash: string | null;
  host_turn_id: number;
  microtask_batch_id: number;
  cancel_streak: number;
  cancel_streak_limit: number;
  error_class: string | null;
  [field: string]: unknown;
}

export interface TaskInfo {
  id: number;
  name: string | null;
  state: string;
  activity: "Running" | "Runnable" | "Waiting";
  blocking: boolean;
  waits_for: string | null;
  at: string | null;
}

export interface RegionInfo {
  id: number;
  parent: number | null;
  state: string;
  finalizers: number;
  reason: string | null;
  tasks: TaskInfo[];
}

export interface Dump {
  regions: RegionInfo[];
  timers: number;
}

/** A task's context: time, children and the cancel come through it. */
export interface Context {
  readonly id: number;
  /** Aborts when the task is asked to stop; the reason is an `AbortError` with a `kind`. */
  readonly signal: AbortSignal;
  /** Milliseconds. */
  now(): number;
  /** Rejects with an `AbortError` when the task is asked to stop. */
  sleep(ms: number): Promise<void>;
  /** Lets everything that is runnable go first. */
  yieldNow(): Promise<void>;
  /** Starts a task inside this one, which is over only when that is; a text is its name. */
  spawn<T>(body: Body<T>, options?: string | TaskOptions): Promise<T>;
  /** Asks everything that was started here to stop; this task goes on. */
  cancelChildren(why?: string): void;
}

export type Body<T> = (cx: Context) => T | PromiseLike<T>;

/** How a task is started. A value that makes no sense is thrown back: `INVALID_ARGUMENT`. */
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

/** A task that was started. */
export class Task<T> implements PromiseLike<T> {
  /** Its value when it and everything inside has ended. */
  readonly promise: Promise<T>;
  /** The region it runs in, as in dumps. */
  readonly region: number;
  /** Asks it to stop: its signal aborts, and it goes on until its promise is settled. */
  cancel(why?: string): void;
  then<A = T, B = never>(
    done?: ((value: T) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B>;
}

export class Runtime {
  /** Starts a task; a text is its name. */
  spawn<T>(body: Body<T>, options?: string | TaskOptions): Task<T>;
  /** Calls back with each event of the journal once; answers how to stop that. */
  subscribe(listener: (event: JournalEvent) => void): () => void;
  /** Has subscribers told of what was recorded until now; ends of tasks do so by themselves. */
  flush(): void;
  hostEvents(after?: number): HostEvent[];
  /** The digest of everything that was recorded. */
  digest(): string | undefined;
  dump(): Dump;
  grant(capability: CapabilityName): void;
  revoke(capability: CapabilityName): void;
  /** Why the runtime is dead, if it is. */
  readonly trapped: string | null;
  /** Stops everything: told at once, cancelled after `softMs`, ended after `hardMs` more. */
  shutdown(options?: { softMs?: number; hardMs?: number }): void;
  /** Ends what lives, and lets go of the page. */
  close(): void;
}

/** Loads the module and starts the runtime of this page or worker: one at a time. */
export function start(options?: Options): Promise<Runtime>;
