// The npm package as strangers use it: what fails and nobody awaits, a page whose own functions
// throw, memory that runs out, why a task was cancelled, bad arguments, listeners that throw.

import { strict as assert } from "node:assert";
import { open } from "./browser.mjs";

/** A blank page with `caps`, handles of the page's own for tests to change, and `pause`. */
async function fresh(context) {
  const opened = await open(context, "blank.html");
  await opened.page.waitForFunction(() => globalThis.ready);
  await opened.page.evaluate(async () => {
    globalThis.pause = (ms = 30) => new Promise((next) => setTimeout(next, ms));
    globalThis.pkg = await import("./pkg/asx.js");
    // What a promise comes to, or that it comes to nothing.
    globalThis.outcome = (promise) =>
      Promise.race([
        Promise.resolve(promise).then(
          (value) => ["value", value],
          (error) => ["error", error?.name, error?.message],
        ),
        pause(120_000).then(() => ["nothing"]),
      ]);
    /** The tasks that live. */
    globalThis.live = (asx) => asx.dump().regions.flatMap((region) => region.tasks);
    globalThis.thrown = (body) => {
      try {
        return ["value", body()];
      } catch (error) {
        return ["error", error?.name, error?.message];
      }
    };
  });
  return opened;
}

export async function pack(context, test) {
  await test("the package: a task that always yields leaves the page its turns", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const results = {};
      for (const [name, options] of Object.entries({ usual: {}, short: { sliceMs: 1 }, steps: { sliceMs: Infinity, burst: 16 } })) {
        const asx = await pkg.start(options);
        let stop = false;
        const timer = setTimeout(() => (stop = true), 100);
        // A page that is frozen for so long has failed; the test still has to end.
        const end = performance.now() + 20_000;
        const burn = (ms) => {
          const until = performance.now() + ms;
          while (performance.now() < until);
        };
        const yielder = async (cx) => {
          while (!stop && performance.now() < end) {
            burn(3);
            await cx.yieldNow();
          }
        };
        await Promise.all([asx.spawn(yielder), asx.spawn((cx) => cx.spawn(yielder))]);
        clearTimeout(timer);
        asx.close();
        results[name] = stop;
      }
      return results;
    });
    assert.deepEqual(seen, { usual: true, short: true, steps: true }, "the timer never fired");
    await page.close();
  });

  await test("the package: the page paints while tasks yield", async () => {
    const { page } = await fresh(context);
    const frames = await page.evaluate(async () => {
      const burn = (ms) => {
        const until = performance.now() + ms;
        while (performance.now() < until);
      };
      // Firefox painted 18 times in 1500 ms when a message was always waiting. Another program may
      // take the processor for one round.
      let most = 0;
      for (let round = 0; round < 4 && most < 36; round += 1) {
        const asx = await pkg.start();
        const end = performance.now() + 1500;
        const body = async (cx) => {
          for (; performance.now() < end; await cx.yieldNow()) burn(3);
        };
        let frames = 0;
        const frame = () => {
          frames += 1;
          if (performance.now() < end) requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
        await Promise.all(Array.from({ length: 8 }, () => asx.spawn(body)));
        asx.close();
        most = Math.max(most, frames);
      }
      return most;
    });
    assert.ok(frames >= 36, `${frames} frames in 1500 ms`);
    await page.close();
  });

  await test("the package: bodies of tasks count towards the allowance of a host turn", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const results = [];
      for (const tasks of [1, 8, 1000]) {
        for (const ms of [0.2, 3, 50]) {
          // The clock moves as pieces say, so that no machine is too slow for this.
          let now = 0;
          let turn = 0;
          const turns = new Map();
          const good = handles();
          const asx = await pkg.start({
            capabilities: handles({
              clock: () => now,
              post: (receive) => good.post((data) => (turn += 1, receive(data))),
            }),
          });
          const piece = () => {
            turns.set(turn, (turns.get(turn) ?? 0) + 1);
            now += ms;
          };
          const deep = async (cx) => {
            await cx.yieldNow();
            piece();
          };
          const body = async (cx) => {
            piece();
            for (let n = 0; n < 2; n += 1) {
              await cx.yieldNow();
              piece();
              await deep(cx);
              await cx.spawn(() => piece());
              piece();
              await cx.sleep(0);
              piece();
            }
          };
          await Promise.all(Array.from({ length: tasks }, () => asx.spawn(body)));
          asx.close();
          results.push([tasks, ms, Math.max(...turns.values()), turns.size]);
        }
      }
      return results;
    });
    for (const [tasks, ms, most, turns] of seen) {
      const all = JSON.stringify({ tasks, ms, most, turns });
      // The allowance, plus at most two pieces of the last body before it waited.
      assert.ok(most <= Math.ceil(4 / ms) + 2, all);
      assert.ok(turns >= (tasks * 11 * ms) / (4 + 2 * ms) - 1, all);
    }
    await page.close();
  });

  await test("the package: failures that nobody awaits are unhandled rejections, cancels are not", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const unhandled = [];
      addEventListener("unhandledrejection", (event) => {
        event.preventDefault();
        unhandled.push(event.reason?.message);
      });
      const asx = await pkg.start({ journal: 100 });
      asx.subscribe(() => {});
      asx.spawn(async () => { throw new Error("first"); });
      asx.spawn(() => { throw new Error("second"); });
      asx.spawn(async (cx) => {
        cx.spawn(async () => { throw new Error("third"); });
      });
      const awaited = await asx.spawn(async () => { throw new Error("awaited"); }).promise.catch((e) => e.message);
      asx.spawn(() => 1);
      asx.spawn((cx) => cx.sleep(60_000)).cancel("enough");
      asx.spawn((cx) => cx.sleep(60_000));
      await until(() => unhandled.length >= 3 && live(asx).length <= 2);
      asx.close();
      // Rejections are told in order: this one comes after whatever the close has brought about.
      await pause();
      Promise.reject(new Error("last"));
      await until(() => unhandled.includes("last"));
      return { unhandled: unhandled.sort(), awaited };
    });
    assert.deepEqual(seen, { unhandled: ["first", "last", "second", "third"], awaited: "awaited" });
    await page.close();
  });

  await test("the package: a page function that throws ends the runtime, and another can start", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const results = {};
      // Each works for a while: the runtime is in the middle of things when it throws.
      const bad = (works, f) => {
        let calls = 0;
        return (...all) => {
          calls += 1;
          if (calls > works) throw new TypeError("the page is broken");
          return f(...all);
        };
      };
      const good = handles();
      const cases = {
        clock: { clock: bad(2, good.clock) },
        "clock at once": { clock: bad(0, good.clock) },
        "no number": { clock: () => "late" },
        microtask: { microtask: bad(1, good.microtask) },
        "microtask at once": { microtask: bad(0, good.microtask) },
        timer: { timer: { set: bad(0, good.timer.set), clear: good.timer.clear } },
        post: { post: bad(0, good.post) },
        send: {
          post: (receive) => {
            const port = good.post(receive);
            return { ...port, send: bad(2, port.send) };
          },
        },
      };
      for (const [name, change] of Object.entries(cases)) {
        const asx = await pkg.start({ capabilities: handles(change), burst: 1 });
        let inside = null;
        const spawned = thrown(() =>
          asx.spawn(async (cx) => {
            await pause(1);
            for (let n = 0; n < 4; n += 1) cx.spawn(() => 1).catch(() => {});
            inside = cx.sleep(20);
            inside.catch(() => {});
            await cx.spawn(() => cx.sleep(20)).catch(() => {});
            await new Promise(() => {});
          }),
        );
        const task = spawned[0] === "value" ? spawned[1] : null;
        const ended = task === null ? spawned : await outcome(task.promise);
        const child = inside === null ? null : await outcome(inside);
        const { trapped } = asx;
        const later = thrown(() => asx.spawn(() => 1))[1];
        const dump = thrown(() => asx.dump())[1];
        const closed = thrown(() => asx.close());
        const again = await pkg.start();
        const works = await outcome(again.spawn(async (cx) => (await cx.sleep(1), 7)));
        again.close();
        results[name] = { ended, child, trapped, later, dump, closed, works };
      }
      return results;
    });
    for (const [name, it] of Object.entries(seen)) {
      const all = `${name}: ${JSON.stringify(it)}`;
      assert.equal(it.ended[1], "INTERNAL", all);
      if (it.child !== null && it.child[0] === "error") assert.equal(it.child[1], "INTERNAL", all);
      assert.notDeepEqual(it.child, ["nothing"], all);
      assert.match(it.trapped, /the page's (clock|microtask|timer|post) failed/, all);
      assert.match(it.trapped, /the page is broken|no number/, all);
      assert.deepEqual([it.later, it.dump], ["INTERNAL", "INTERNAL"], all);
      assert.equal(it.closed[0], "value", all);
      assert.deepEqual(it.works, ["value", 7], all);
    }
    await page.close();
  });

  await test("the package: a clock or microtask that calls back into the runtime ends it, and only it", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const results = {};
      let asx = null;
      let armed = false;
      const once = (call) => () => {
        if (armed) {
          armed = false;
          call();
        }
        return performance.now();
      };
      let controller = new AbortController();
      const cases = {
        spawn: { clock: once(() => asx.spawn(() => 1)) },
        "spawn for ever": { clock: () => (armed && asx.spawn(() => 1, { deadlineMs: 5 }), performance.now()) },
        dump: { clock: once(() => asx.dump()) },
        close: { clock: once(() => asx.close()) },
        abort: { clock: once(() => controller.abort()) },
        "at once": { microtask: (run) => run() },
      };
      for (const [name, change] of Object.entries(cases)) {
        controller = new AbortController();
        asx = await pkg.start({ capabilities: handles(change) });
        const { signal } = controller;
        const ended = outcome(asx.spawn((cx) => cx.sleep(60_000), { signal }).promise);
        await pause(10);
        armed = true;
        thrown(() => asx.spawn(() => 1, { deadlineMs: 50 }).catch(() => {}));
        const first = await ended;
        armed = false;
        const { trapped } = asx;
        const closed = thrown(() => asx.close());
        await pause(1);
        const again = await pkg.start();
        const works = await outcome(again.spawn(async (cx) => (await cx.sleep(1), 7)));
        again.close();
        results[name] = { first, trapped, closed, works };
      }
      return results;
    });
    for (const [name, it] of Object.entries(seen)) {
      const all = `${name}: ${JSON.stringify(it)}`;
      assert.equal(it.first[1], "INTERNAL", all);
      assert.match(it.trapped, /called back inside a host call/, all);
      assert.equal(it.closed[0], "value", all);
      assert.deepEqual(it.works, ["value", 7], all);
    }
    await page.close();
  });

  await test("the package: memory that runs out ends the runtime, close releases it, start works again", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      // The module with room for no more than 4 MiB.
      const whole = new Uint8Array(await (await fetch("./pkg/wasm/asx_bg.wasm")).arrayBuffer());
      const module = limited(whole, 64);
      const asx = await pkg.start({ module });
      const memory = async () => (await (await import("./pkg/wasm/asx.js")).default()).memory.buffer.byteLength;
      const first = await memory();
      const tasks = [asx.spawn(() => new Promise(() => {}))];
      const ends = [outcome(tasks[0].promise)];
      let error = null;
      for (let n = 0; n < 1_000_000 && error === null; n += 1) {
        try {
          const task = asx.spawn(() => new Promise(() => {}));
          task.promise.catch(() => {});
          if (n % 1000 === 0) ends.push(outcome(task.promise));
        } catch (caught) {
          error = [caught.name, caught.message];
        }
      }
      const full = await memory();
      const names = new Set((await Promise.all(ends)).map((end) => end[1]));
      const { trapped } = asx;
      const closed = thrown(() => asx.close());
      const released = await memory();
      const again = await pkg.start();
      const works = await outcome(again.spawn(async (cx) => (await cx.sleep(1), 7)));
      again.close();
      return { error, names: [...names], trapped, closed, works, sizes: [first, full, released] };

      function limited(bytes, most) {
        const number = (at) => {
          let [value, shift] = [0, 0];
          for (;;) {
            const byte = bytes[at++];
            value += (byte & 127) * 2 ** shift;
            shift += 7;
            if (byte < 128) return [value, at];
          }
        };
        const leb = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)]);
        let at = 8;
        for (;;) {
          const start = at;
          const id = bytes[at++];
          const [size, body] = number(at);
          if (id === 5) {
            // One memory: its flags, and how much there is at first.
            const [least] = number(body + 2);
            const limits = [1, 1, ...leb(least), ...leb(most)];
            const section = [5, ...leb(limits.length), ...limits];
            return new Uint8Array([...bytes.slice(0, start), ...section, ...bytes.slice(body + size)]);
          }
          at = body + size;
        }
      }
    });
    const all = JSON.stringify(seen);
    assert.equal(seen.error?.[0], "INTERNAL", all);
    assert.deepEqual(seen.names, ["INTERNAL"], all);
    assert.match(seen.trapped, /memory ran out/, all);
    assert.equal(seen.closed[0], "value", all);
    assert.deepEqual(seen.works, ["value", 7], all);
    assert.ok(seen.sizes[1] > 3_000_000 && seen.sizes[2] <= seen.sizes[0], all);
    await page.close();
  });

  await test("the package: a runtime that is closed with living tasks gives their memory back", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const bodies = {
        "a promise that never settles": () => new Promise(() => {}),
        "a sleep": (cx) => cx.sleep(60_000),
        "a child": (cx) => cx.spawn(() => new Promise(() => {})),
        "children and a sleep": async (cx) => {
          for (let n = 0; n < 5; n += 1) cx.spawn((cx) => cx.sleep(60_000));
          await cx.sleep(60_000);
        },
        "a yielder": async (cx) => {
          for (;;) await cx.yieldNow();
        },
        "not begun": null,
      };
      const results = {};
      for (const [name, body] of Object.entries(bodies)) {
        const rounds = async (count) => {
          for (let round = 0; round < count; round += 1) {
            const asx = await pkg.start({ journal: 10 });
            asx.spawn(body ?? (() => 1));
            if (body) await pause(0);
            asx.close();
          }
          const { memory } = await (await import("./pkg/wasm/asx.js")).default();
          return memory.buffer.byteLength;
        };
        const first = await rounds(30);
        results[name] = (await rounds(600)) - first;
      }
      return results;
    });
    for (const [name, grown] of Object.entries(seen)) assert.equal(grown, 0, `${name}: ${grown} bytes`);
    await page.close();
  });

  await test("the package: a task of JavaScript costs at most 400 bytes of the module's memory", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const asx = await pkg.start();
      const { memory } = await (await import("./pkg/wasm/asx.js")).default();
      const COUNT = 100_000;
      const before = memory.buffer.byteLength;
      const release = [];
      let begun = 0;
      const tasks = [];
      for (let n = 0; n < COUNT; n += 1) {
        tasks.push(asx.spawn((cx) => {
          begun += cx.signal.aborted ? 0 : 1;
          return new Promise((done) => release.push(done));
        }));
      }
      const spawned = (memory.buffer.byteLength - before) / COUNT;
      while (begun < COUNT) await pause(10);
      const waiting = (memory.buffer.byteLength - before) / COUNT;
      for (const done of release) done(1);
      const sum = (await Promise.all(tasks)).reduce((a, b) => a + b, 0);
      const left = live(asx).length;
      asx.close();
      return { spawned, waiting, sum, left };
    });
    console.log(`     ${seen.spawned.toFixed(0)} bytes spawned, ${seen.waiting.toFixed(0)} begun and waiting`);
    assert.deepEqual([seen.sum, seen.left], [100_000, 0]);
    assert.ok(seen.spawned <= 400 && seen.waiting <= 400, JSON.stringify(seen));
    await page.close();
  });

  await test("the package: cancels say their root kind, keep the caller's reason, and read well", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const asx = await pkg.start();
      const reason = { why: "an object" };
      const told = (error, cause) => ({
        dom: error instanceof DOMException,
        name: error.name,
        kind: error.kind,
        same: error.cause === cause,
        message: error.message,
      });
      const sleeps = (cx) => cx.sleep(60_000);
      const ends = async (task, cause) => told(await task.promise.catch((error) => error), cause);
      const cancelled = asx.spawn(sleeps);
      await pause(5);
      cancelled.cancel(reason);
      const words = asx.spawn(sleeps);
      words.cancel("the user left");
      const bare = asx.spawn(sleeps);
      bare.cancel();
      const controller = new AbortController();
      const aborted = asx.spawn(sleeps, { signal: controller.signal });
      await pause(5);
      const why = new RangeError("gone");
      controller.abort(why);
      const before = new AbortController();
      before.abort(reason);
      let ran = false;
      const never = asx.spawn(() => { ran = true; }, { signal: before.signal });
      const signal = AbortSignal.timeout(10);
      const timed = asx.spawn(sleeps, { signal });
      const late = asx.spawn(sleeps, { deadlineMs: 10 });
      // What a task inside, its signal and its sleep say of the cancel of the one around it.
      let inner = null;
      let begun = false;
      const outer = asx.spawn(async (cx) => {
        const child = cx.spawn(async (cx) => {
          begun = true;
          const slept = await cx.sleep(60_000).catch((error) => error);
          inner = { slept: told(slept, reason), signal: told(cx.signal.reason, reason) };
          throw slept;
        });
        const ended = await child.catch((error) => error);
        inner.child = told(ended, reason);
        // A task may still wait while it cleans up.
        inner.cleaned = await outcome(cx.sleep(1));
      });
      await until(() => begun);
      outer.cancel(reason);
      let children = null;
      const parent = asx.spawn(async (cx) => {
        const child = cx.spawn(sleeps);
        await cx.sleep(1);
        cx.cancelChildren(reason);
        children = told(await child.catch((error) => error), reason);
        return 5;
      });
      const results = {
        cancelled: await ends(cancelled, reason),
        words: await ends(words, "the user left"),
        bare: await ends(bare, undefined),
        aborted: await ends(aborted, why),
        never: await ends(never, reason),
        timed: await timed.promise.catch((error) => told(error, signal.reason)),
        late: await ends(late, undefined),
        outer: await ends(outer, reason),
        inner,
        parent: await outcome(parent.promise),
        children,
        ran,
      };
      const stopped = asx.spawn(sleeps);
      await until(() => live(asx).some((task) => task.name === "sleep"));
      const shut = asx.shutdown({ hardMs: 60_000 });
      results.stopped = await ends(stopped, undefined);
      await shut;
      asx.close();
      return results;
    });
    const user = { dom: true, name: "AbortError", kind: "User", same: true };
    const time = { dom: true, name: "TimeoutError", same: true };
    const check = (name, it, wanted, message) => {
      const { message: said, ...rest } = it;
      assert.deepEqual(rest, wanted, `${name}: ${JSON.stringify(it)}`);
      assert.match(said, message, name);
    };
    check("cancelled", seen.cancelled, user, /^the task was cancelled$/);
    check("words", seen.words, user, /^the user left$/);
    check("bare", seen.bare, user, /^the task was cancelled$/);
    check("aborted", seen.aborted, user, /^gone$/);
    check("never", seen.never, user, /^the task was cancelled$/);
    assert.equal(seen.ran, false);
    check("timed", seen.timed, { ...time, kind: "Timeout" }, /timed out|timeout/i);
    check("late", seen.late, { ...time, kind: "Deadline" }, /^the task was not done by its deadline$/);
    check("outer", seen.outer, user, /^the task was cancelled$/);
    check("inner sleep", seen.inner.slept, user, /^the task was cancelled$/);
    check("inner signal", seen.inner.signal, user, /^the task was cancelled$/);
    check("inner", seen.inner.child, user, /^the task was cancelled$/);
    assert.equal(seen.inner.cleaned[0], "value");
    check("children", seen.children, user, /^the task was cancelled$/);
    assert.deepEqual(seen.parent, ["value", 5]);
    check("stopped", seen.stopped, { ...user, kind: "Shutdown" }, /^the runtime is shutting down$/);
    await page.close();
  });

  await test("the package: a listener that throws, journal gaps, a load that fails and is tried again", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const errors = [];
      addEventListener("unhandledrejection", (event) => {
        event.preventDefault();
        errors.push(event.reason?.message);
      });
      const failed = await pkg.start({ module: "./pkg/wasm/missing.wasm" }).then(() => "started", () => "failed");
      const asx = await pkg.start({ journal: 40 });
      const [all, late] = [[], []];
      asx.subscribe(() => { throw new Error("a bad listener"); });
      const stop = asx.subscribe((event) => all.push(event));
      asx.subscribe((event) => {
        late.push(event);
        // A listener may do what it likes.
        asx.flush();
        stop();
        asx.subscribe(() => {});
      });
      await asx.spawn((cx) => cx.sleep(1));
      asx.flush();
      const first = { all: all.length, late: late.length, bad: errors.length };
      const busy = [];
      asx.subscribe((event) => busy.push(event));
      // More than is retained, before anybody is told.
      await Promise.all(Array.from({ length: 60 }, () => asx.spawn((cx) => cx.id)));
      asx.flush();
      await until(() => errors.length > 5);
      asx.close();
      // Copies: not every driver knows that two lists have the same things in them.
      return { failed, first, busy: structuredClone(busy), late: structuredClone(late), errors };
    });
    assert.equal(seen.failed, "failed");
    assert.ok(seen.first.all >= 1 && seen.first.late > 5, JSON.stringify(seen.first));
    assert.ok(seen.errors.length > 5 && seen.errors.every((it) => it === "a bad listener"), `${seen.errors}`);
    const gaps = seen.busy.filter((event) => event.event === "journal_gap");
    assert.ok(gaps.length >= 1, "no gap was told");
    // With the gaps, nothing is missing: each event follows the one before, or the gap does.
    const events = seen.late;
    for (let n = 1; n < events.length; n += 1) {
      const before = events[n - 1].event === "journal_gap" ? events[n - 1].to : events[n - 1].seq;
      const here = events[n].event === "journal_gap" ? events[n].from : events[n].seq;
      assert.equal(here, before + 1, JSON.stringify([events[n - 1], events[n]]));
      if (events[n].event === "journal_gap") assert.equal(events[n].lost, events[n].to - events[n].from + 1);
    }
    await page.close();
  });

  await test("the package: bad arguments are typed errors, and change nothing", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const starts = {};
      const bad = [
        { jurnal: 5 }, { slicems: 4 }, { capabilities: { ...handles(), timers: handles().timer } },
        { burst: "many" }, { burst: 0 }, { burst: 1.5 }, { burst: NaN }, { burst: -1 }, { burst: 2 ** 32 },
        { sliceMs: "4" }, { sliceMs: NaN }, { sliceMs: 0 }, { sliceMs: -4 },
        { maxTimerMs: -1 }, { maxTimerMs: NaN }, { maxWheelMs: "1 d" }, { causeDepth: 0 },
        { causeBytes: 1.5 }, { tieBreak: "random" },
        { journal: "all" }, { journal: -1 }, { journal: 0.5 }, { journal: Infinity },
        { capabilities: {} }, { capabilities: 5 }, { capabilities: { ...handles(), clock: 5 } },
        { capabilities: { ...handles(), timer: {} } }, { capabilities: { ...handles(), microtask: undefined } },
        { capabilities: { ...handles(), post: "post" } }, { capabilities: { ...handles(), entropy: {} } },
        { capabilities: { ...handles(), abortController: null } },
        null, 7, "fast",
      ];
      for (const options of bad) {
        const ended = await outcome(pkg.start(options));
        if (ended[0] === "value") ended[1].close();
        starts[JSON.stringify(options) + Object.keys(starts).length] = ended[0] === "value" ? "started" : ended[1];
      }
      const asx = await pkg.start({ sliceMs: Infinity });
      const calls = {
        "spawn(.., { nmae })": () => asx.spawn(() => 1, { nmae: "x" }),
        "spawn(.., { deadline })": () => asx.spawn(() => 1, { deadline: 5 }),
        "spawn(42)": () => asx.spawn(42),
        "spawn()": () => asx.spawn(),
        "spawn({})": () => asx.spawn({}),
        "a symbol": () => asx.spawn(() => 1, { name: Symbol("x") }),
        "hostEvents(all)": () => asx.hostEvents("all"),
        "hostEvents(NaN)": () => asx.hostEvents(NaN),
        "subscribe(5)": () => asx.subscribe(5),
        "grant(files)": () => asx.grant("files"),
        "grant(5)": () => asx.grant(5),
        "revoke()": () => asx.revoke(),
      };
      const thrown_by = Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, thrown(call)[1]]));
      const inside = await asx.spawn(async (cx) => ({
        nan: (await outcome(cx.sleep(NaN)))[1],
        text: (await outcome(cx.sleep("1s")))[1],
        negative: (await outcome(cx.sleep(-1)))[1],
        none: (await outcome(cx.sleep()))[1],
        endless: (await outcome(cx.sleep(Infinity)))[1],
        body: thrown(() => cx.spawn(42))[1],
        priority: thrown(() => cx.spawn(() => 1, { priority: 999 }))[1],
        fine: await outcome(cx.sleep(0).then(() => "slept")),
      })).promise;
      inside.shutdown = [
        (await outcome(asx.shutdown({ softMs: NaN })))[1],
        (await outcome(asx.shutdown({ hardMs: "soon" })))[1],
        (await outcome(asx.shutdown(5)))[1],
        (await outcome(asx.shutdown({ hardMS: 5 })))[1],
      ];
      // None of that has stopped anything.
      const works = await outcome(asx.spawn(() => 7));
      const left = live(asx).length;
      const made = [
        thrown(() => new pkg.Runtime())[1],
        thrown(() => new pkg.Task())[1],
        thrown(() => new (Object.getPrototypeOf(asx).constructor)({}))[1],
      ];
      const partial = { ...handles() };
      delete partial.timer;
      asx.close();
      const without = await pkg.start({ capabilities: partial });
      const granted = thrown(() => without.grant("timer"))[1];
      without.close();
      return { starts, thrown_by, inside, works, left, made, granted };
    });
    for (const [options, name] of Object.entries(seen.starts)) assert.equal(name, "INVALID_ARGUMENT", options);
    for (const [call, name] of Object.entries(seen.thrown_by)) assert.equal(name, "INVALID_ARGUMENT", call);
    const { fine, shutdown, ...wrong } = seen.inside;
    for (const [call, name] of Object.entries(wrong)) assert.equal(name, "INVALID_ARGUMENT", call);
    assert.deepEqual(shutdown, Array(4).fill("INVALID_ARGUMENT"));
    assert.deepEqual([fine, seen.works, seen.left], [["value", "slept"], ["value", 7], 0]);
    assert.deepEqual(seen.made, ["TypeError", "TypeError", "TypeError"]);
    assert.equal(seen.granted, "CAPABILITY_DENIED");
    await page.close();
  });

  await test("the package: every option of start is accepted", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const module = new URL("./pkg/wasm/asx_bg.wasm", location.href);
      const options = {
        capabilities: handles(), burst: 100, sliceMs: 2, journal: 100, module,
        maxTimerMs: 1000, maxWheelMs: 100, causeDepth: 2, causeBytes: 64, tieBreak: "taskKey",
      };
      const results = {};
      for (const [name, value] of Object.entries(options)) {
        const ended = await outcome(pkg.start({ [name]: value }));
        if (ended[0] === "value") {
          const asx = ended[1];
          const works = await outcome(asx.spawn(async (cx) => (await cx.sleep(1), name)));
          const long = await outcome(asx.spawn((cx) => cx.sleep(2000), { deadlineMs: 50 }));
          asx.close();
          results[name] = [...works, long[2]];
        } else {
          results[name] = ended;
        }
      }
      return results;
    });
    for (const [name, [kind, value, late]] of Object.entries(seen)) {
      assert.deepEqual([kind, value], ["value", name], JSON.stringify(seen[name]));
      if (name === "maxTimerMs") assert.match(late, /max_timer_duration/);
    }
    assert.equal(Object.keys(seen).length, 10);
    await page.close();
  });

  await test("the package: equal tasks run in the order of `tieBreak`", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const results = {};
      for (const tieBreak of ["fifo", "taskKey"]) {
        const asx = await pkg.start({ tieBreak });
        const order = [];
        const gates = [];
        const tasks = [0, 1, 2, 3].map((n) =>
          asx.spawn(async (cx) => {
            await new Promise((open) => (gates[n] = open));
          }).then(() => order.push(n)),
        );
        await until(() => gates.filter(Boolean).length === 4);
        for (const open of gates.toReversed()) open();
        await Promise.all(tasks);
        asx.close();
        results[tieBreak] = order;
      }
      return results;
    });
    assert.deepEqual(seen, { fifo: [3, 2, 1, 0], taskKey: [0, 1, 2, 3] });
    await page.close();
  });

  await test("the package: tasks are promises, and a shutdown can be awaited", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const asx = await pkg.start();
      const order = [];
      const value = await asx.spawn(() => 1).then((n) => n + 1).finally(() => order.push("finally"));
      const caught = await asx.spawn(() => { throw new TypeError("x"); }).catch((error) => error.name);
      const ended = await asx.spawn(() => { throw new TypeError("x"); }).finally(() => order.push("also")).catch(() => 0);
      const all = await Promise.all([asx.spawn(() => 2), asx.spawn(async (cx) => (await cx.sleep(1), 3))]);
      const { id } = asx.spawn((cx) => cx.id);
      let begun = false;
      asx.spawn(async (cx) => {
        await new Promise((done) => {
          cx.signal.addEventListener("abort", () => setTimeout(() => (order.push("cleaned up"), done()), 20));
          begun = true;
        });
      }).catch(() => order.push("cancelled"));
      await until(() => begun);
      const shut = asx.shutdown({ softMs: 1, hardMs: 60_000 });
      const late = thrown(() => asx.spawn(() => 1))[1];
      await shut;
      order.push("shut");
      const again = await outcome(asx.shutdown());
      const left = live(asx).length;
      asx.close();
      // In a runtime of its own, for which time may run out: this one never ends by itself, and does
      // not look.
      const other = await pkg.start();
      other.spawn(() => new Promise(() => {})).catch((error) => order.push(`forced: ${error.kind}`));
      await other.shutdown({ softMs: 1, hardMs: 20 });
      order.push("shut too");
      other.close();
      return { value, caught, ended, all, id, order, late, left, again: again[0] };
    });
    assert.deepEqual([seen.value, seen.caught, seen.ended, seen.all], [2, "TypeError", 0, [2, 3]]);
    assert.ok(Number.isInteger(seen.id));
    assert.deepEqual(seen.order, ["finally", "also", "cleaned up", "cancelled", "shut", "forced: Shutdown", "shut too"]);
    assert.deepEqual([seen.late, seen.left, seen.again], ["REGION_NOT_OPEN", 0, "value"]);
    await page.close();
  });

  await test("the package: each subscriber gets the whole journal, with gaps of its own", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const asx = await pkg.start({ journal: 50 });
      const [first, second, third] = [[], [], []];
      asx.subscribe((event) => first.push(event));
      await asx.spawn(() => 1);
      asx.flush();
      asx.subscribe((event) => second.push(event));
      const early = [first.length, second.length];
      for (let n = 0; n < 30; n += 1) {
        await asx.spawn(() => 1);
        asx.flush();
      }
      asx.subscribe((event) => third.push(event));
      asx.close();
      const same = JSON.stringify(first) === JSON.stringify(second);
      return { early, same, first: first.length, kept: structuredClone(third) };
    });
    assert.ok(seen.early[0] > 3 && seen.early[0] === seen.early[1], `${seen.early}`);
    assert.ok(seen.same, "the second subscriber missed something");
    const [gap, next] = seen.kept;
    assert.deepEqual([gap.event, gap.from, gap.to + 1], ["journal_gap", 0, next.seq]);
    assert.equal(seen.kept.length, 51);
    assert.equal(next.seq + 50, seen.first);
    await page.close();
  });

  await test("the package: a clock that goes back holds up no sleep", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      let back = 0;
      const clock = () => performance.now() + 1e6 - back;
      const asx = await pkg.start({ capabilities: handles({ clock }) });
      const task = asx.spawn((cx) => cx.sleep(50));
      await pause(10);
      back = 1e6;
      const ended = await outcome(task);
      const events = asx.hostEvents().map((event) => [event.event, event.by_ns > 9e11]);
      asx.close();
      return { ended, events };
    });
    assert.deepEqual(seen.ended[0], "value");
    assert.deepEqual(seen.events, [["scheduler_clock_went_back", true]]);
    await page.close();
  });

  await test("the package: children are handles, and tasks and runtimes can be disposed of", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const dispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
      const asx = await pkg.start();
      const outer = await asx.spawn(async (cx) => {
        const child = cx.spawn((cx) => cx.sleep(60_000), "child");
        const other = cx.spawn(() => 7);
        child.cancel("not needed");
        const ended = await child.catch((error) => [error.name, error.kind, error.cause]);
        return { ended, other: await other, task: child instanceof pkg.Task, regions: [child.region, other.region], ids: [child.id, other.id] };
      });
      const order = [];
      const task = asx.spawn(async (cx) => {
        await cx.sleep(60_000).catch(() => {});
        await cx.sleep(5).catch(() => {});
        order.push("cleaned up");
      });
      await pause(5);
      await task[dispose]();
      order.push("disposed");
      const page = asx.spawn(() => 1).region;
      asx.spawn((cx) => cx.sleep(60_000));
      await asx[dispose]();
      const after = thrown(() => asx.spawn(() => 1))[1];
      // A runtime that has trapped is closed, and so is one that was.
      const broken = await pkg.start({ capabilities: handles({ clock: () => "late" }) });
      thrown(() => broken.spawn(() => 1).promise.catch(() => {}));
      await pause(5);
      await broken[dispose]();
      await broken[dispose]();
      const again = await pkg.start();
      again.close();
      return { outer, order, page, after };
    });
    assert.deepEqual(seen.outer.ended, ["AbortError", "User", "not needed"]);
    assert.deepEqual([seen.outer.other, seen.outer.task], [7, true]);
    const [one, other] = seen.outer.regions;
    assert.ok(one === other && one !== seen.page && Number.isInteger(one), `${seen.outer.regions}`);
    assert.notEqual(seen.outer.ids[0], seen.outer.ids[1]);
    assert.deepEqual(seen.order, ["cleaned up", "disposed"]);
    assert.equal(seen.after, "REGION_NOT_OPEN");
    await page.close();
  });

  await test("the package: a wait without the page's timer or clock fails with CAPABILITY_DENIED", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const results = {};
      for (const name of ["timer", "clock"]) {
        const asx = await pkg.start();
        const under_way = asx.spawn((cx) => cx.sleep(60_000));
        await pause(5);
        asx.revoke(name);
        const caught = asx.spawn(async (cx) => (await outcome(cx.sleep(1))).slice(1));
        results[name] = [(await outcome(under_way)).slice(1), await caught];
        asx.grant(name);
        results[name].push((await outcome(asx.spawn((cx) => cx.sleep(1))))[0]);
        asx.close();
      }
      return results;
    });
    for (const [name, [under_way, caught, after]] of Object.entries(seen)) {
      const why = `${name} capability denied to a task's timer`;
      assert.deepEqual(under_way, ["CAPABILITY_DENIED", why]);
      assert.deepEqual(caught, ["CAPABILITY_DENIED", why]);
      assert.equal(after, "value");
    }
    await page.close();
  });

  await test("the package: yields without the page's messages fail with CAPABILITY_DENIED", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const asx = await pkg.start({ burst: 8, sliceMs: 1_000_000 });
      asx.revoke("post");
      let yields = 0;
      const task = asx.spawn(async (cx) => {
        for (;;) {
          const error = await cx.yieldNow().then(() => null, (error) => error);
          if (error) {
            const again = new Set();
            for (let n = 0; n < 100; n += 1) again.add((await outcome(cx.yieldNow()))[1]);
            return [error.name, error.message, [...again].join()];
          }
          yields += 1;
        }
      });
      let told = null;
      task.then((value) => (told = value));
      await pause(50);
      const before = told;
      const stalled = live(asx).length;
      asx.grant("post");
      const ended = await outcome(task);
      asx.close();
      return { before, ended, yields, stalled };
    });
    assert.equal(seen.before, null, "the end of the task waits for the grant");
    // The body's task, and the yield that needed the hand-off first.
    assert.ok(seen.stalled <= 2, `failed yields left ${seen.stalled} tasks behind`);
    const why = "post capability denied to pump hand-off";
    assert.deepEqual(seen.ended, ["value", ["CAPABILITY_DENIED", why, "CAPABILITY_DENIED"]]);
    assert.ok(seen.yields > 0 && seen.yields < 8, `${seen.yields}`);
    await page.close();
  });
}
