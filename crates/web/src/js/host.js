// The page's side of asx-web. `ofGlobal` is the only function that reaches for globals, and it is
// called only by who wants that; everything else uses the handles it is given.

export function ofGlobal() {
  const g = globalThis;
  const done = g.Promise.resolve();
  return {
    clock: () => g.performance.now(),
    entropy: () => g.crypto.getRandomValues(new g.Uint32Array(2)),
    timer: { set: (f, ms) => g.setTimeout(f, ms), clear: (id) => g.clearTimeout(id) },
    post: g.MessageChannel ? (receive) => postTo(g, receive) : undefined,
    microtask: (f) => void done.then(f),
    fetch: (request, init) => g.fetch(request, init),
    abortController: () => new g.AbortController(),
    report: (line) => g.console.warn(line),
  };
}

// How long messages may follow each other without a pause.
const PAUSE_MS = 8;

// Messages to oneself, by MessageChannel.
//
// A browser may defer painting while a message is always waiting: Firefox paints every fifth frame
// then. So once in PAUSE_MS a message that arrives is sent on through `far`, a port that was
// transferred. It leaves the thread, no other message waits, and the page can paint meanwhile.
//
// At most one message is on its way. It delivers the value that was sent last: a runtime needs no
// others, and messages without a value are faster.
function postTo(g, receive) {
  const near = new g.MessageChannel();
  const away = new g.MessageChannel();
  const carrier = new g.MessageChannel();
  let far = null;
  let sent = 0;
  let isSent = false;
  let paused = 0;
  const deliver = () => {
    isSent = false;
    receive(sent);
  };
  near.port1.onmessage = () => {
    if (far !== null && g.performance.now() - paused >= PAUSE_MS) far.postMessage(null);
    else deliver();
  };
  away.port1.onmessage = () => {
    paused = g.performance.now();
    deliver();
  };
  carrier.port1.onmessage = ({ ports }) => {
    far = ports[0];
    carrier.port1.close();
  };
  carrier.port2.postMessage(null, [away.port2]);
  const send = (data) => {
    sent = data;
    if (!isSent) near.port2.postMessage(null);
    isSent = true;
  };
  const close = () => [near, away, carrier].forEach(({ port1 }) => port1.close());
  return { send, close };
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
    // After the queued promise reactions, and up to REACTIONS that follow from them.
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
    // A page without `report` continues.
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
