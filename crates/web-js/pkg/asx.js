// asx for pages and workers. See asx.d.ts for what each thing does.
//
// The module (WebAssembly) has the runtime and knows tasks by number. Everything that is
// JavaScript's own is here: bodies, values, promises, signals, reasons. So a task is small in the
// module, a reason comes back as the object it was, and every promise is settled even if the module
// has trapped: then this side tells, closes, and puts a fresh module in its place.

import init, { Host, __wbg_reset_state as renew, page_handles, ran_out } from "./wasm/asx.js";
import { settingsOf, taskOptionsOf, graceOf, callable, span, count, invalid, named } from "./check.js";

let loading = null;
let running = null;
/** Whether the module has trapped, and another has to take its place. */
let spent = false;
/** What `host.js` of asx-web is told, by number. */
const TRAP = 0;
const REENTRY = 6;
/** What `await using` calls; where the engine has no such symbol, the one that compilers use. */
const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
/** Constructors are for this file. */
const OURS = Symbol("asx");

/** Loads the module and starts the runtime of this page or worker. */
export async function start(options = {}) {
  const settings = settingsOf(options);
  const mine = (loading ??= init(settings.module && { module_or_path: settings.module }));
  try {
    await mine;
  } catch (error) {
    // Whoever asks next tries again.
    if (loading === mine) loading = null;
    throw error;
  }
  if (running) throw named("INVALID_TRANSITION", "there is a runtime already: start it once");
  replaceSpent();
  running = new Runtime(OURS, settings);
  return running;
}

function replaceSpent() {
  if (spent) renew();
  spent = false;
}

/** What a reason says to people. */
function textOf(why) {
  if (why === undefined || why === null) return undefined;
  if (typeof why === "string") return why;
  try {
    const { message } = why;
    if (typeof message === "string" && message !== "") return message;
  } catch {
    // It is the caller's own, and may do as it likes.
  }
  return typeof why === "number" ? String(why) : undefined;
}

/** The kind of cancel a reason stands for: `AbortSignal.timeout` aborts with a `TimeoutError`. */
function kindOf(why) {
  try {
    return why?.name === "TimeoutError" ? "Timeout" : "User";
  } catch {
    return "User";
  }
}

/** The cancels that somebody here asked for: who does not await those tasks misses nothing. */
const WANTED = new Set(["User", "Shutdown", "ParentCancelled"]);

const ignore = () => {};

/** Whether the module has thrown this on purpose: it has the name of a status. */
const isStatus = (error) => error instanceof Error && /^[A-Z_]+$/.test(error.name);

export class Runtime {
  #host = null;
  /** The live tasks, by slot. */
  #records = [];
  #vacant = [];
  /** The region of the tasks that the page starts. */
  #region = null;
  /** Whether it is dead, why, and what was thrown. */
  #dead = false;
  #trapped = null;
  #cause = undefined;
  /** What a function of the page's threw last. */
  #thrown = undefined;
  #closed = false;
  /** Which function of the page's is being called by the module, if one is. */
  #asking = null;
  /** How many calls of the module's are on the stack here. */
  #inside = 0;
  /** The capabilities that there is nothing behind. */
  #missing = new Set(["clock", "entropy", "timer", "post", "microtask"]);
  /** Ends the connection of the module to the page. */
  #disconnect = ignore;
  /** The listeners, each with the number of the last event it was called with. */
  #subscribers = new Set();
  #publishing = false;
  #toPublish = false;
  /** A promise of the end, once there was a shutdown. */
  #over = null;
  /** What tasks and contexts do, which are the only ones to have it. */
  #does = {
    now: () => this.#enter((host) => host.now()),
    cancel: (record, why) => this.#cancel(record, why),
    cancelChildren: (record, why) => this.#cancelChildren(record, why),
    spawn: (record, body, options) => new Task(OURS, this.#spawn(record, body, options), this.#does),
    sleep: (record, ms) =>
      this.#started(record, null, (host, slot) => host.sleep(record.slot, slot, ms)).promise,
    yieldNow: (record) => this.#yieldNow(record),
  };

  constructor(ours, settings) {
    if (ours !== OURS) throw new TypeError("Illegal constructor: call start()");
    const given = settings.capabilities ?? page_handles();
    this.#does.newController = () => given.abortController();
    const hooks = {
      begin: (slot) => this.#out(() => this.#begin(this.#records[slot])),
      abort: (slot, error) => this.#out(() => this.#abort(this.#records[slot], error)),
      end: (slot, stopped) => this.#out(() => this.#end(this.#records[slot], stopped)),
      stalled: (why) => this.#failYields(why),
      closed: () => this.#over?.resolve(),
    };
    const { burst, sliceMs, journal, limits, taskKey } = settings;
    let failed;
    try {
      this.#host = new Host(this.#pageOf(given), hooks, burst, sliceMs, journal, limits, taskKey);
      failed = this.#host.trapped() === undefined ? undefined : this.#thrown;
      this.#region = this.#host.region();
    } catch (error) {
      failed = error;
    }
    // A function of the page's may have failed before there was a runtime to tell.
    if (this.#dead) this.#trapped = this.#diagnosis();
    else if (failed !== undefined) this.#die(failed);
  }

  spawn(body, options) {
    if (this.#over) throw named("REGION_NOT_OPEN", "the runtime is shutting down");
    return new Task(OURS, this.#spawn(null, body, options), this.#does);
  }

  subscribe(listener) {
    callable(listener, "listener");
    this.#alive();
    const subscriber = { listener, seen: -1, behind: true };
    this.#subscribers.add(subscriber);
    this.#publish();
    return () => void this.#subscribers.delete(subscriber);
  }

  flush() {
    this.#publish();
  }

  hostEvents(after = 0) {
    count(after, "after");
    return JSON.parse(this.#enter((host) => host.host_events(after)));
  }

  digest() {
    return this.#enter((host) => host.digest());
  }

  dump() {
    return JSON.parse(this.#enter((host) => host.dump()));
  }

  quiescence() {
    const alive = this.#enter((host) => host.quiescence());
    return alive === undefined ? null : JSON.parse(alive);
  }

  grant(capability) {
    this.#setGranted(capability, true);
  }

  revoke(capability) {
    this.#setGranted(capability, false);
  }

  get trapped() {
    return this.#trapped;
  }

  async shutdown(options = {}) {
    const [soft, hard] = graceOf(options);
    const first = this.#over === null;
    this.#alive();
    this.#over ??= deferred();
    this.#enter((host) => host.shutdown(soft, hard, first));
    return this.#over.promise;
  }

  close() {
    if (this.#closed) return;
    if (this.#asking !== null) this.#reenter();
    this.#publish();
    this.#closed = true;
    if (running === this) running = null;
    const host = this.#host;
    if (!this.#dead) {
      try {
        host.free();
      } catch (error) {
        this.#die(error);
      }
    }
    const why = this.#dead ? this.#internal() : null;
    for (const record of [...this.#records]) {
      if (record) this.#settle(record, why ?? cancelOf("Shutdown", "the runtime was closed"));
    }
    this.#over?.resolve();
    this.#host = null;
    this.#subscribers.clear();
    if (!this.#dead) return;
    // Nothing in it can be trusted, its destructors least of all. It goes when nothing of it is on
    // the stack.
    spent = true;
    if (this.#inside === 0) replaceSpent();
    else Promise.resolve().then(replaceSpent);
  }

  /** `await using`: a shutdown, and then a close, also of a runtime that is dead. */
  async [ASYNC_DISPOSE]() {
    try {
      if (!this.#closed && !this.#dead) await this.shutdown();
    } finally {
      this.close();
    }
  }

  // The page as the module sees it: what of it is being called is known, so that nothing can call
  // back meanwhile.
  #pageOf(given) {
    const page = { ...given };
    for (const name of this.#missing) if (given[name]) this.#missing.delete(name);
    const asked = (name, f) => f && ((...all) => this.#ask(name, () => f(...all)));
    for (const name of ["clock", "entropy", "microtask"]) page[name] = asked(name, given[name]);
    const { timer, post } = given;
    page.timer = timer && {
      set: asked("timer", (f, ms) => timer.set(f, ms)),
      clear: asked("timer", (set) => timer.clear(set)),
    };
    page.post =
      post &&
      asked("post", (receive) => {
        const port = post(receive);
        return { send: asked("post", (data) => port.send(data)), close: () => port.close() };
      });
    page.report = (line) => this.#out(() => given.report?.(line));
    page.joined = (fail) => (this.#disconnect = fail);
    page.trapped = (error) => this.#die(error);
    return page;
  }

  #ask(name, call) {
    const around = this.#asking;
    this.#asking = name;
    try {
      return this.#out(call);
    } catch (error) {
      this.#thrown = error;
      throw error;
    } finally {
      this.#asking = around;
    }
  }

  /** Calls something that the module asked for. */
  #out(call) {
    this.#inside += 1;
    try {
      return call();
    } finally {
      this.#inside -= 1;
    }
  }

  /** Calls the module. What it throws by itself has a status for a name; all else is a trap. */
  #enter(call) {
    if (this.#asking !== null) {
      this.#reenter();
      throw named("REENTRANT", `called inside the page's ${this.#asking}`);
    }
    const host = this.#alive();
    try {
      return call(host);
    } catch (error) {
      if (isStatus(error)) throw error;
      this.#die(error);
      throw this.#internal();
    }
  }

  #reenter() {
    this.#disconnect(REENTRY, new Error(`the runtime was called inside the page's ${this.#asking}`));
  }

  #alive() {
    if (this.#dead) throw this.#internal();
    if (this.#closed) throw named("STALE_HANDLE", "the runtime is closed");
    return this.#host;
  }

  #internal() {
    const error = named("INTERNAL", this.#trapped);
    error.cause = this.#cause;
    return error;
  }

  /** The runtime is dead: whoever waits is told. */
  #die(error) {
    if (this.#dead) return;
    this.#dead = true;
    this.#cause = error;
    this.#disconnect(TRAP, error);
    this.#trapped = this.#diagnosis();
    for (const record of [...this.#records]) {
      if (record) this.#settle(record, this.#internal());
    }
    this.#over?.reject(this.#internal());
  }

  #diagnosis() {
    let said = "the runtime trapped";
    let cause = String(this.#cause);
    try {
      if (ran_out()) cause = "memory ran out";
      said = this.#host?.trapped() ?? said;
    } catch {
      // It does not even say that.
    }
    return `${said}: ${cause}`;
  }

  #setGranted(capability, granted) {
    if (typeof capability !== "string") throw invalid("capability: not a name");
    if (granted && this.#missing.has(capability)) {
      throw named("CAPABILITY_DENIED", `the page gave no \`${capability}\` to grant`);
    }
    this.#enter((host) => host.set_granted(capability, granted));
  }

  #record(parent) {
    const slot = this.#vacant.pop() ?? this.#records.length;
    const { promise, resolve, reject } = deferred();
    const record = {
      slot,
      id: null,
      /** The region that it is in, and the one of what it starts. */
      region: parent === null ? this.#region : null,
      inside: null,
      parent,
      promise,
      resolve,
      reject,
      body: null,
      children: null,
      /** Of its signal, once somebody has looked at that. */
      controller: null,
      /** What was said by who asked it to stop, by kind. */
      asked: null,
      /** What its signal was aborted with. */
      stopped: undefined,
      /** Whether it only lets others go first. */
      yields: false,
      /** How its body has ended. */
      result: null,
      unlisten: null,
      ended: false,
    };
    this.#records[slot] = record;
    return record;
  }

  /** Starts a task by a call of the module's. */
  #started(parent, body, call) {
    if (parent?.ended) throw named("REGION_CLOSED", "the task has ended");
    this.#alive();
    const record = this.#record(parent);
    record.body = body;
    try {
      record.id = this.#enter((host) => call(host, record.slot));
    } catch (error) {
      // Nobody has its promise.
      record.promise.catch(ignore);
      if (!record.ended) this.#settle(record, error);
      throw error;
    }
    if (parent && !record.ended) (parent.children ??= new Set()).add(record);
    return record;
  }

  #spawn(parent, body, options) {
    callable(body, "body");
    const { name, priority, deadlineMs, signal } = taskOptionsOf(options);
    const record = this.#started(parent, body, (host, slot) =>
      host.spawn(parent?.slot, slot, name, priority ?? -1, deadlineMs ?? NaN),
    );
    if (parent) {
      parent.inside ??= this.#enter((host) => host.region_inside(parent.slot));
      record.region = parent.inside;
    }
    if (signal && !record.ended) {
      const abort = () => this.#cancel(record, signal.reason);
      if (signal.aborted) {
        abort();
      } else {
        signal.addEventListener("abort", abort);
        record.unlisten = () => signal.removeEventListener("abort", abort);
      }
    }
    return record;
  }

  #yieldNow(parent) {
    const fails = (why) => Promise.reject(named("CAPABILITY_DENIED", why));
    // While no task can run, a yield starts none: those would only pile up until the grant.
    const before = this.#enter((host) => host.stalled());
    if (before !== undefined) return fails(before);
    const record = this.#started(parent, null, (host, slot) => host.yield_now(parent.slot, slot));
    record.yields = true;
    const why = this.#enter((host) => host.stalled());
    if (why !== undefined) this.#failYields(why);
    return record.promise;
  }

  /** Rejects every pending yield: no task can run because a capability is denied. The slots are
   *  reused when the module reports the end of their tasks. */
  #failYields(why) {
    for (const record of this.#records) {
      if (record?.yields) record.reject(named("CAPABILITY_DENIED", why));
    }
  }

  /** Asks a task to stop. */
  #cancel(record, why, kind = kindOf(why), text = textOf(why)) {
    if (record.ended) return;
    record.asked ??= new Map();
    if (!record.asked.has(kind)) record.asked.set(kind, why);
    this.#enter((host) => host.cancel(record.slot, kind, text));
  }

  #cancelChildren(record, why, kind, text) {
    for (const child of [...(record.children ?? [])]) this.#cancel(child, why, kind, text);
  }

  /** The module has the body of a task begin. */
  #begin(record) {
    if (!record || record.ended) return;
    const { body } = record;
    record.body = null;
    const given = new Promise((done) => done(body(new Context(OURS, record, this.#does))));
    given.then(
      (value) => this.#settled(record, true, value),
      (error) => this.#settled(record, false, error),
    );
  }

  #settled(record, fulfilled, value) {
    if (record.ended) return;
    record.result = { fulfilled, value };
    try {
      this.#enter((host) => host.settled(record.slot, fulfilled));
    } catch {
      // Whoever awaits the task was told already.
    }
  }

  /** The module has seen that a task is asked to stop. */
  #abort(record, error) {
    if (!record || record.ended) return;
    record.stopped = withCause(error, record);
    const { kind, message, cause } = error;
    try {
      this.#cancelChildren(record, cause, kind, cause === undefined ? message : textOf(cause));
    } catch {
      // Only if the runtime has died of it, and then all were told.
    }
    record.controller?.abort(error);
  }

  /** The module says that a task is over. */
  #end(record, stopped) {
    if (!record || record.ended) return;
    if (stopped !== undefined) {
      this.#settle(record, record.stopped ?? withCause(stopped, record));
      return;
    }
    const { fulfilled, value } = record.result ?? { fulfilled: true, value: undefined };
    this.#free(record);
    if (fulfilled) record.resolve(value);
    else record.reject(value);
  }

  /** A task has no result, for this reason. */
  #settle(record, error) {
    this.#free(record);
    if (WANTED.has(error?.kind)) record.promise.catch(ignore);
    record.reject(error);
  }

  #free(record) {
    record.ended = true;
    record.body = null;
    record.unlisten?.();
    record.parent?.children?.delete(record);
    this.#records[record.slot] = undefined;
    this.#vacant.push(record.slot);
    if (this.#subscribers.size > 0 && !this.#toPublish) {
      this.#toPublish = true;
      Promise.resolve().then(() => {
        this.#toPublish = false;
        this.#publish();
      });
    }
  }

  #publish() {
    if (this.#publishing || this.#closed || this.#dead) return;
    if (this.#subscribers.size === 0) return;
    this.#publishing = true;
    for (const subscriber of this.#subscribers) subscriber.behind = true;
    try {
      // A listener may add another, which is served in the next round.
      for (let all = this.#behind(); all.length > 0; all = this.#behind()) {
        const seen = Math.min(...all.map((subscriber) => subscriber.seen));
        const lines = this.#enter((host) => host.journal(seen)).split("\n");
        for (const line of lines) if (line) this.#tell(JSON.parse(line), all);
        for (const subscriber of all) subscriber.behind = false;
      }
    } finally {
      this.#publishing = false;
    }
  }

  /** The subscribers that were added, or all of them in the first round. */
  #behind() {
    return [...this.#subscribers].filter((subscriber) => subscriber.behind);
  }

  /** Calls the subscribers that have not had this event. */
  #tell(event, subscribers) {
    for (const subscriber of subscribers) {
      const from = subscriber.seen + 1;
      if (event.seq < from || !this.#subscribers.has(subscriber)) continue;
      const [to, lost] = [event.seq - 1, event.seq - from];
      if (lost > 0) this.#call(subscriber, { event: "journal_gap", from, to, lost });
      subscriber.seen = event.seq;
      this.#call(subscriber, event);
    }
  }

  #call({ listener }, event) {
    try {
      listener(event);
    } catch (error) {
      // The page sees an unhandled rejection.
      Promise.reject(error);
    }
  }
}

function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
}

function cancelOf(kind, message) {
  const error = new DOMException(message, "AbortError");
  error.kind = kind;
  return error;
}

/** The error of a cancel with what was said by who asked for it. */
function withCause(error, record) {
  const why = record.asked?.get(error.kind);
  if (why !== undefined) error.cause = why;
  return error;
}

/** A wait that cannot begin is a promise that rejects. */
function waits(begin) {
  try {
    return begin();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** A task's context. */
class Context {
  #record;
  #does;

  constructor(ours, record, does) {
    if (ours !== OURS) throw new TypeError("Illegal constructor: tasks get a context");
    this.#record = record;
    this.#does = does;
  }

  get id() {
    return this.#record.id;
  }

  get signal() {
    const record = this.#record;
    if (record.controller === null) {
      record.controller = this.#does.newController();
      if (record.stopped !== undefined) record.controller.abort(record.stopped);
    }
    return record.controller.signal;
  }

  now() {
    return this.#does.now();
  }

  // The promises of the tasks themselves: an `async` function would put reactions between the end
  // of a wait and the code behind it.
  sleep(ms) {
    return waits(() => this.#does.sleep(this.#record, span(ms, "ms")));
  }

  yieldNow() {
    return waits(() => this.#does.yieldNow(this.#record));
  }

  spawn(body, options) {
    return this.#does.spawn(this.#record, body, options);
  }

  cancelChildren(why) {
    this.#does.cancelChildren(this.#record, why);
  }
}

export class Task {
  #record;
  #does;

  constructor(ours, record, does) {
    if (ours !== OURS) throw new TypeError("Illegal constructor: call spawn()");
    this.#record = record;
    this.#does = does;
  }

  get promise() {
    return this.#record.promise;
  }

  get id() {
    return this.#record.id;
  }

  get region() {
    return this.#record.region;
  }

  cancel(why) {
    this.#does.cancel(this.#record, why);
  }

  /** `await using`: asks the task to stop, and waits until it has ended. */
  async [ASYNC_DISPOSE]() {
    if (this.#record.ended) return;
    this.cancel();
    await this.promise.then(ignore, ignore);
  }

  then(done, failed) {
    return this.promise.then(done, failed);
  }

  catch(failed) {
    return this.promise.catch(failed);
  }

  finally(done) {
    return this.promise.finally(done);
  }

  get [Symbol.toStringTag]() {
    return "Task";
  }
}
