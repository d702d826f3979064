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
  };
}

export function has(handles, name) {
  return handles != null && handles[name] != null;
}

// Joins a runtime to its page. A trap comes back as an exception: the runtime is told, and the page
// sees it too.
export function connect(handles, called, rang, trapped) {
  const { clock, entropy, timer, post, microtask } = handles;
  let closed = false;
  const guard = (f, token) => {
    if (closed) return;
    try {
      f(token);
    } catch (error) {
      if (!closed) trapped();
      throw error;
    }
  };
  const number = (data) => (Number.isInteger(data) && data > 0 && data < 2 ** 32 ? data : 0);
  const port = post?.((data) => guard(called, number(data)));
  let set = null;
  return {
    microtask: (token) => microtask(() => guard(called, token)),
    message: (token) => port.send(token),
    timeout: (token) => timer.set(() => guard(called, token), 0),
    arm: (ms, token) => {
      if (set !== null) timer.clear(set);
      set = timer.set(() => {
        set = null;
        guard(rang, token);
      }, ms);
    },
    now: () => clock(),
    entropy: () => entropy().reduce((sum, word) => (sum << 32n) | BigInt(word), 0n),
    // From now on nothing of the runtime is called: it is about to be freed.
    close: () => {
      closed = true;
      if (set !== null) timer.clear(set);
      port?.close();
    },
  };
}
