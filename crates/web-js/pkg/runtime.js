// The runtime for pages and workers, shared by the entries asx.js and inline.js.
//
// The module (WebAssembly) runs the tasks and knows them by slot numbers. Bodies, values, promises,
// signals and reasons stay in JavaScript: a task takes little memory in the module, a reason comes
// back as the same object, and every promise is settled even if the module traps. This side then
// rejects them, closes the runtime, and replaces the module instance before the next start.

import init, { Host, __wbg_reset_state as renew, page_handles, ran_out } from "./wasm/asx.js";
import { settingsOf, taskOptionsOf, graceOf, callable, count, invalid, named } from "./check.js";
import { WANTED, cancelOf, kindOf, textOf, withCause } from "./reasons.js";
import { ASYNC_DISPOSE, Context, OURS, Task, ignore } from "./task.js";

let loading = null;
let running = null;
/** Whether the module has trapped, so that the next runtime needs a new instance. */
let spent = false;
/** Codes of `host.js` in asx-web for what ended a runtime. */
const TRAP = 0;
const REENTRY = 6;

/** Loads the module from `source()`, unless an option names another source, and starts a runtime. */
export async function startWith(options = {}, source) {
  const settings = settingsOf(options);
  const load = () => init({ module_or_path: settings.module || source() });
  const mine = (loading ??= load());
  try {
    await mine;
  } catch (error) {
    // The next start tries again.
    if (loading === mine) loading = null;
    throw error;
  }
  if (running) throw named("INVALID_TRANSITION", "a runtime is running: a page can start only one");
  replaceSpent();
  running = new Runtime(OURS, settings);
  return running;
}

function replaceSpent() {
  if (spent) renew();
  spent = false;
}

/** Whether the module threw this error on purpose: its name is a status. */
const isStatus = (error) => error instanceof Error && /^[A-Z_]+$/.test(error.name);

export class Runtime {
  #host = null;
  /** The live tasks, by slot. */
  #records = [];
  #vacant = [];
  /** The region of the tasks that the page starts. */
  #region = null;
  /** Whether the runtime is dead, the diagnosis, and the exception that ended it. */
  #dead = false;
  #trapped = null;
  #cause = undefined;
  /** The last exception of a page function. */
  #thrown = undefined;
  #closed = false;
  /** The page function that the module is calling, if any. */
  #asking = null;
  /** How many calls from the module are on the stack. */
  #inside = 0;
  /** The capabilities that the page did not provide. */
  #missing = new Set(["clock", "entropy", "timer", "post", "microtask"]);
  /** Ends the connection of the module to the page. */
  #disconnect = ignore;
  /** The listeners, each with the number of the last event it was called with. */
  #subscribers = new Set();
  #publishing = false;
  #toPublish = false;
  /** The promise of `shutdown`, once it was called. */
  #over = null;
  /** The operations of tasks and contexts. No other object has access to them. */
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
    // A page function may have failed while the module created the runtime.
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
    // The instance cannot be trusted, and its destructors must not run. It is replaced when none of
    // its frames is on the stack.
    spent = true;
    if (this.#inside === 0) replaceSpent();
    else Promise.resolve().then(replaceSpent);
  }

  /** `await using`: `shutdown`, then `close`. A dead runtime is only closed. */
  async [ASYNC_DISPOSE]() {
    try {
      if (!this.#closed && !this.#dead) await this.shutdown();
    } finally {
      this.close();
    }
  }

  // Wraps the page functions for the module. The wrappers record which function is running, to detect
  // calls back into the runtime.
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

  /** Makes a call on behalf of the module. */
  #out(call) {
    this.#inside += 1;
    try {
      return call();
    } finally {
      this.#inside -= 1;
    }
  }

  /** Calls the module. An error that it throws on purpose is named after a status; any other
   *  exception is a trap. */
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

  /** Ends the runtime and rejects all its promises. */
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
      // The instance does not respond.
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
      /** The region of the task, and the region of its children. */
      region: parent === null ? this.#region : null,
      inside: null,
      parent,
      promise,
      resolve,
      reject,
      body: null,
      children: null,
      /** The controller of its signal, created on first use. */
      controller: null,
      /** The reasons that callers gave for cancels, by kind. */
      asked: null,
      /** The error that its signal was aborted with. */
      stopped: undefined,
      /** Whether it is a `yieldNow`. */
      yields: false,
      /** The result of its body. */
      result: null,
      unlisten: null,
      ended: false,
    };
    this.#records[slot] = record;
    return record;
  }

  /** Starts a task by a call into the module. */
  #started(parent, body, call) {
    if (parent?.ended) throw named("REGION_CLOSED", "the task has ended");
    this.#alive();
    const record = this.#record(parent);
    record.body = body;
    try {
      record.id = this.#enter((host) => call(host, record.slot));
    } catch (error) {
      // The caller gets the exception instead of the promise.
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

  /** Cancels a task. */
  #cancel(record, why, kind = kindOf(why), text = textOf(why)) {
    if (record.ended) return;
    record.asked ??= new Map();
    if (!record.asked.has(kind)) record.asked.set(kind, why);
    this.#enter((host) => host.cancel(record.slot, kind, text));
  }

  #cancelChildren(record, why, kind, text) {
    for (const child of [...(record.children ?? [])]) this.#cancel(child, why, kind, text);
  }

  /** Called by the module: starts the body of a task. */
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
      // The runtime has died, and the promise of the task was rejected.
    }
  }

  /** Called by the module: a task has observed its cancel. */
  #abort(record, error) {
    if (!record || record.ended) return;
    record.stopped = withCause(error, record);
    const { kind, message, cause } = error;
    try {
      this.#cancelChildren(record, cause, kind, cause === undefined ? message : textOf(cause));
    } catch {
      // The runtime has died, and all promises were rejected.
    }
    record.controller?.abort(error);
  }

  /** Called by the module: a task has ended. */
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

  /** Ends a task without a result. */
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
      // A listener may add a subscriber, which the next round serves.
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

  /** The subscribers that the current round serves: all in the first round, then new ones. */
  #behind() {
    return [...this.#subscribers].filter((subscriber) => subscriber.behind);
  }

  /** Calls the subscribers that have not received this event. */
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
