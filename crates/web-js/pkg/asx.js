// asx for pages and workers. See asx.d.ts for what each thing does.

import init, { Host } from "./wasm/asx.js";

let loaded;
let running = null;

/** Loads the module and starts the runtime of this page or worker. */
export async function start(options = {}) {
  loaded ??= init(options.module ? { module_or_path: options.module } : undefined);
  await loaded;
  if (running) throw named("INVALID_TRANSITION", "there is a runtime already: start it once");
  running = new Runtime(options);
  return running;
}

function named(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

export class Runtime {
  #host;
  #subscribers = new Set();
  #seen = -1;

  constructor({ capabilities, burst = 256, sliceMs = 4, journal = 0 } = {}) {
    this.#host = new Host(capabilities, burst, sliceMs, journal);
  }

  spawn(body, options) {
    const spawned = this.#alive().spawn(body, options);
    spawned.promise.then(() => this.#publish(), () => this.#publish());
    return new Task(spawned);
  }

  /** Calls back with the events of the journal, in order, each once. */
  subscribe(listener) {
    this.#subscribers.add(listener);
    this.#publish();
    return () => void this.#subscribers.delete(listener);
  }

  /** Has subscribers told of what was recorded until now. */
  flush() {
    this.#publish();
  }

  #publish() {
    if (!this.#host || this.#subscribers.size === 0) return;
    for (const line of this.#host.journal(this.#seen).split("\n")) {
      if (!line) continue;
      const event = JSON.parse(line);
      this.#seen = Math.max(this.#seen, Number(event.seq));
      for (const listener of this.#subscribers) listener(event);
    }
  }

  hostEvents(after = 0) {
    return JSON.parse(this.#alive().host_events(after));
  }

  digest() {
    return this.#alive().digest();
  }

  dump() {
    return JSON.parse(this.#alive().dump());
  }

  grant(capability) {
    this.#alive().set_granted(capability, true);
  }

  revoke(capability) {
    this.#alive().set_granted(capability, false);
  }

  get trapped() {
    return this.#host?.trapped() ?? null;
  }

  shutdown({ softMs = 0, hardMs = 1000 } = {}) {
    this.#alive().shutdown(softMs, hardMs);
  }

  /** Ends what lives, and lets go of the page. */
  close() {
    this.#publish();
    this.#host?.free();
    this.#host = null;
    if (running === this) running = null;
  }

  #alive() {
    if (!this.#host) throw named("STALE_HANDLE", "the runtime is closed");
    return this.#host;
  }
}

export class Task {
  #spawned;

  constructor(spawned) {
    this.#spawned = spawned;
    this.promise = spawned.promise;
    this.region = spawned.region;
  }

  cancel(why) {
    this.#spawned.cancel(why);
  }

  then(done, failed) {
    return this.promise.then(done, failed);
  }
}
