// A runtime on tape: everything it got from the page, so that it can be run again.
//
//   input:  open | a call | a microtask | a message | a timer      what ran, in order
//   answer: what the clock and the random numbers said meanwhile   in order, per input
//
// The runtime does nothing by itself: with the same inputs and the same answers it decides the same,
// so a second one that gets them leaves the same digest.

/** A runtime made by `make(handles)` whose inputs are kept until `stop`. */
export function record(make) {
  const tape = { inputs: [], stopped: false };
  let input = null;
  const enter = (kind, which, body) => {
    if (tape.stopped) return body();
    input = { kind, which, answers: [] };
    tape.inputs.push(input);
    try {
      return body();
    } finally {
      input = null;
    }
  };
  const told = (answer) => (input?.answers.push(answer), answer);
  let microtasks = 0;
  let timers = 0;
  const handles = {
    clock: () => told(performance.now()),
    entropy: () => told(crypto.getRandomValues(new Uint32Array(2))),
    timer: {
      set(rings, ms) {
        const nth = timers++;
        return setTimeout(() => enter("timer", nth, rings), ms);
      },
      clear: (timer) => clearTimeout(timer),
    },
    post(receive) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }) => enter("message", data, () => receive(data));
      return { send: (data) => port2.postMessage(data), close: () => port1.close() };
    },
    microtask(runs) {
      const nth = microtasks++;
      queueMicrotask(() => enter("microtask", nth, runs));
    },
    abortController: () => new AbortController(),
  };
  const runtime = enter("open", null, () => make(handles));
  return {
    tape,
    runtime,
    call: (name, ...args) => enter("call", [name, args], () => runtime[name](...args)),
    stop: () => (tape.stopped = true),
  };
}

/**
 * Makes another runtime and gives it what is on the tape; `pause` is waited for now and then, so
 * that the page is not held up. Answers with the runtime and where it left the tape, if it did.
 */
export async function replay(tape, make, pause) {
  const microtasks = new Map();
  const timers = new Map();
  let receive = null;
  let answers = [];
  let used = 0;
  let wrong = null;
  let last = 0;
  // Which input it is; none between inputs, when the page only looks.
  let at = -1;
  const answer = (otherwise) => {
    if (used < answers.length) return answers[used++];
    if (at >= 0) wrong ??= `it asked for more than input ${at} had`;
    return otherwise;
  };
  const handles = {
    clock: () => (last = answer(last)),
    entropy: () => answer(new Uint32Array(2)),
    timer: { set: (rings) => (timers.set(timers.size, rings), timers.size), clear() {} },
    post(receiver) {
      receive = receiver;
      return { send() {}, close() {} };
    },
    microtask: (runs) => void microtasks.set(microtasks.size, runs),
    abortController: () => new AbortController(),
  };
  let runtime = null;
  const kinds = {
    open: () => (runtime = make(handles)),
    call: ([name, args]) => runtime[name](...args),
    microtask: (nth) => microtasks.get(nth)(),
    timer: (nth) => timers.get(nth)(),
    message: (data) => receive(data),
  };
  for (const [nth, input] of tape.inputs.entries()) {
    const known = { microtask: microtasks, timer: timers }[input.kind];
    if (known && !known.has(input.which)) wrong ??= `there is no ${input.kind} for input ${nth}`;
    if (wrong) break;
    [at, answers, used] = [nth, input.answers, 0];
    kinds[input.kind](input.which);
    if (used < answers.length) wrong ??= `it asked for less than input ${nth} had`;
    // Used up; the place stays taken, for they are told by number.
    known?.set(input.which, () => {});
    [at, answers, used] = [-1, [], 0];
    await pause(runtime);
  }
  return { runtime, wrong };
}
