// Tasks and their contexts. Both are thin: the runtime keeps a record for each task, and passes its
// operations on records as `does`.

import { span } from "./check.js";

/** Marks calls of constructors by this package. */
export const OURS = Symbol("asx");
/** The method that `await using` calls; where the engine has no such symbol, the one of compilers. */
export const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

export const ignore = () => {};

/** Turns an exception of `begin` into a promise that rejects. */
function waits(begin) {
  try {
    return begin();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The context of a task. */
export class Context {
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

  // No `async` functions: they would put promise reactions between the end of a wait and the code
  // after it.
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

  /** `await using`: cancels the task and waits until it has ended. */
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
