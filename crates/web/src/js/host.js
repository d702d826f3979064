// The page's side of asx-web. `ofGlobal` is the only function that reaches for globals, and it is
// called only by who wants that; everything else uses the handles it is given.

export function ofGlobal() {
  const g = globalThis;
  const done = g.Promise.resolve();
  return {
    clock: () => g.performance.now(),
    entropy: () => g.crypto.getRandomValues(new g.Uint32Array(2)),
    timer: { set: (f, ms) => g.setTimeout(f, ms), clear: (id) => g.clearTimeout(id) },
    post: g.MessageChannel
      ? (receive) => {
          // Nobody else has the ports, and one message is on its way at most: it need not say
          // anything, which is quicker.
          const { port1, port2 } = new g.MessageChannel();
          let sent = 0;
          port1.onmessage = () => receive(sent);
          const send = (data) => {
            sent = data;
            port2.postMessage(null);
          };
          return { send, close: () => port1.close() };
        }
      : undefined,
    microtask: (f) => void done.then(f),
    fetch: (request, init) => g.fetch(request, init),
    abortController: () => new g.AbortController(),
    report: (line) => g.console.warn(line),
  };
}

export function has(handles, name) {
  return handles != null && handles[name] != null;
}

// What went wrong, by number; Rust has the words.
const TRAP = 0;
const CLOCK = 1;
const ENTROPY = 2;
const TIMER = 3;
const POST = 4;
const MICROTASK = 5;
const REENTRY = 6;

// How many promise reactions in a row may follow from one settled promise before a paused drain
// resumes: an `await` is one, and so is each `async` function around it.
const REACTIONS = 8;

// Joins a runtime to its page.
//
// Nothing that the page's functions throw goes through the runtime, which could not be unwound: the
// runtime is told, and ends. Nor may they call it back before they return. A trap comes back as an
// exception: the runtime is told, and the page sees it too. From then on nothing of the runtime is
// called. `handles.joined` gets a function that ends it so, `handles.trapped` is told when it has.
export function connect(handles, called, rang, trapped) {
  const { clock, entropy, timer, post, microtask } = handles;
  let closed = false;
  let asking = false;
  let port;
  let set = null;
  const close = () => {
    closed = true;
    try {
      if (set !== null) timer.clear(set);
      port?.close();
    } catch {
      // It is the page's own.
    }
  };
  // What failed, for who was not there yet to be told.
  let broken = -1;
  const fail = (site, error) => {
    if (closed) return;
    broken = site;
    close();
    try {
      trapped(site);
    } catch {
      // It is beyond hearing. Those who watch from outside are told below.
    }
    handles.trapped?.(error);
  };
  const reentered = () => fail(REENTRY, new Error("the runtime was called inside a host call"));
  const ask = (site, f, otherwise) => {
    if (!closed && asking) reentered();
    if (closed) return otherwise;
    asking = true;
    try {
      return f();
    } catch (error) {
      fail(site, error);
      return otherwise;
    } finally {
      asking = false;
    }
  };
  const guard = (f, token) => {
    if (!closed && asking) reentered();
    if (closed) return;
    try {
      f(token);
    } catch (error) {
      fail(TRAP, error);
      throw error;
    }
  };
  const number = (data) => (Number.isInteger(data) && data > 0 && data < 2 ** 32 ? data : 0);
  const read = () => {
    const ms = clock();
    if (typeof ms === "number" && ms === ms) return ms;
    throw new TypeError("the clock gave no number");
  };
  const draw = () => entropy().reduce((sum, word) => (sum << 32n) | BigInt(word), 0n);
  const enter = (token) => ask(MICROTASK, () => void microtask(() => guard(called, token)));
  handles.joined?.(fail);
  if (post) port = ask(POST, () => post((data) => guard(called, number(data))));
  return {
    broken: () => broken,
    microtask: enter,
    // Behind the promise reactions that are queued now, and so many that follow from them.
    resume: async (token) => {
      for (let n = 0; n < REACTIONS; n += 1) await null;
      enter(token);
    },
    message: (token) => ask(POST, () => port.send(token)),
    timeout: (token) => ask(TIMER, () => void timer.set(() => guard(called, token), 0)),
    arm: (ms, token) =>
      ask(TIMER, () => {
        if (set !== null) timer.clear(set);
        set = timer.set(() => {
          set = null;
          guard(rang, token);
        }, ms);
      }),
    now: () => ask(CLOCK, read, 0),
    entropy: () => ask(ENTROPY, draw, 0n),
    // A page that cannot be told goes on.
    report: (line) => {
      if (closed || asking) return;
      asking = true;
      try {
        handles.report?.(line);
      } catch {
        // The runtime does not depend on it.
      } finally {
        asking = false;
      }
    },
    // From now on nothing of the runtime is called: it is about to be freed.
    close,
  };
}
