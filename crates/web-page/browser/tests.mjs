// What runs in a real browser, Chromium or Firefox: the corpus in a page and in a worker, the real event loop, bad use,
// the npm package, the demo. The last line says how many.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { strict as assert } from "node:assert";
import { address, endOfTest, firefox, open, out, watch, withBrowser } from "./browser.mjs";
import { demo } from "./demo.mjs";
import { pack } from "./package.mjs";

let passed = 0;
const failed = [];

/** Only tests whose names have this in them, if it is set. */
const only = process.env.ASX_WEB_ONLY ?? "";

/** A test that takes longer hangs. */
const LIMIT_MS = 600_000;

async function test(name, body) {
  if (!name.includes(only)) return;
  let timer;
  const hangs = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`it hangs: not over after ${LIMIT_MS / 1000} s`)), LIMIT_MS);
  });
  try {
    await Promise.race([body(), hangs]);
    passed += 1;
    console.log(`ok   ${name}`);
    await endOfTest();
  } catch (error) {
    failed.push(name);
    console.log(`FAIL ${name}: ${error.stack ?? error}`);
    for (const line of await endOfTest()) console.log(`     ${line}`);
  } finally {
    clearTimeout(timer);
  }
}

/** A test that takes more of its driver than Firefox's has. */
const testInChromium = firefox ? async () => {} : test;
const records = (place) => join(out, firefox ? `firefox-${place}.jsonl` : `${place}.jsonl`);

/** Holds the lines of the corpus against what the fixtures expect; answers how many ran. */
function judge(text, place) {
  const records = text.trim().split("\n").map((line) => JSON.parse(line));
  const wrong = records.filter((r) => r.error || r.failures?.length);
  assert.deepEqual(wrong.map((r) => [r.scenario, r.seed, r.error, r.failures]), []);
  const ran = records.filter((r) => r.skipped === null);
  for (const record of ran) {
    if (record.expected.length === 0) continue;
    assert.ok(record.expected.includes(record.digest), `${record.scenario}: ${record.digest}`);
  }
  const browser = new Set(ran.map((r) => r.scenario).filter((id) => id.startsWith("sched.browser.")));
  assert.equal(browser.size, 9, "the nine fixtures of the browser");
  const parity = new Set(ran.map((r) => r.scenario).filter((id) => id.startsWith("parity-")));
  assert.equal(parity.size, 5);
  for (const codec of ["json", "binary"]) {
    assert.equal(ran.filter((r) => r.codec === codec).length * 2, ran.length, codec);
  }
  const scenarios = new Set(ran.map((r) => r.scenario)).size;
  const skipped = new Set(records.filter((r) => r.skipped !== null).map((r) => r.scenario)).size;
  console.log(`     ${place}: ${scenarios} scenarios, ${ran.length / 2} runs; ${skipped} skipped`);
  assert.ok(scenarios > 200, `only ${scenarios} scenarios ran`);
  return scenarios;
}

async function fresh(context) {
  const opened = await open(context, "blank.html");
  await opened.page.waitForFunction(() => globalThis.ready);
  return opened;
}

await withBrowser(async (context) => {
  await test("every fixture gives its fingerprint in a page", async () => {
    const { page, errors } = await fresh(context);
    const text = await page.evaluate(async () => {
      const { default: init, fixture_count, run_fixture } = await import("./corpus/corpus.js");
      await init();
      let text = "";
      for (let nth = 0; nth < fixture_count(); nth += 1) {
        text += run_fixture(nth, "window", "web");
        await new Promise((next) => setTimeout(next));
      }
      return text;
    });
    writeFileSync(records("web"), text);
    judge(text, "window");
    assert.deepEqual(errors, []);
    await page.close();
  });

  await test("every fixture gives its fingerprint in a worker", async () => {
    const { page } = await fresh(context);
    const text = await page.evaluate(
      () =>
        new Promise((done, fail) => {
          const worker = new Worker("worker.js", { type: "module" });
          let text = "";
          worker.onerror = (event) => fail(new Error(event.message));
          worker.onmessage = ({ data }) => (data === null ? done(text) : (text += data));
          worker.postMessage({ profile: "web" });
        }),
    );
    writeFileSync(records("worker"), text);
    judge(text, "worker");
    await page.close();
  });

  await test("on the real event loop a program leaves the digest it leaves without one", async () => {
    const { page, errors } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const results = [];
      for (const burst of [1, 16, 256]) {
        await asx.run_pressure(handles({ clock: () => 0 }), burst);
        const [digest, turns] = asx.last_run();
        results.push([burst, digest, asx.digest_without_browser(burst), turns]);
      }
      return results;
    });
    const digests = new Set(seen.flatMap(([, real, simulated]) => [real, simulated]));
    assert.equal(digests.size, 1, JSON.stringify(seen));
    assert.ok(seen[0][3] > 500 && seen[2][3] < 8, `host turns: ${JSON.stringify(seen)}`);
    assert.deepEqual(errors, []);
    await page.close();
  });

  await test("host events of the real loop have every mandatory field", async () => {
    const { page } = await fresh(context);
    const events = await page.evaluate(async () => {
      await asx.run_pressure(handles(), 100);
      return JSON.parse(asx.last_run()[2]);
    });
    const fields = ["task_id", "region_id", "lane", "decision_seq", "decision_hash"].concat(
      ["host_turn_id", "microtask_batch_id", "cancel_streak", "cancel_streak_limit", "error_class"],
    );
    for (const event of events) {
      for (const field of fields) assert.ok(field in event, `${event.event}: ${field}`);
    }
    const kinds = new Set(events.map((event) => event.event));
    for (const kind of ["step_begin", "step_decision", "step_end", "burst_limit_reached", "host_handoff"]) {
      assert.ok(kinds.has(`scheduler_${kind}`), kind);
    }
    await page.close();
  });

  await test("sleeps end, never early, in window", async () => {
    const { page } = await fresh(context);
    const [asked, took] = await page.evaluate(async () => {
      const start = performance.now();
      return [await asx.sleep(handles(), 30.5), performance.now() - start];
    });
    assert.ok(took >= asked, `${took} of ${asked} ms`);
    await page.close();
  });

  await test("a huge timer is set in chunks and rings nobody at once", async () => {
    const { page } = await fresh(context);
    const delays = await page.evaluate(async () => {
      const delays = [];
      const timer = { set: (f, ms) => (delays.push(ms), 1), clear: () => {} };
      asx.sleep(handles({ timer }), 2 ** 40);
      await until(() => delays.length > 0);
      // It would be set again at once if it rang.
      await new Promise((next) => setTimeout(next, 20));
      return delays;
    });
    assert.deepEqual(delays, [2 ** 31 - 1]);
    await page.close();
  });

  await test("promises are futures: values, rejections", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const value = await asx.await_promise(handles(), Promise.resolve(5));
      const rejected = await asx.await_promise(handles(), Promise.reject(new Error("no"))).catch((e) => e.message);
      return [value, rejected];
    });
    assert.deepEqual(seen, [5, "no"]);
    await page.close();
  });

  await testInChromium("an abort cancels, and a cancel aborts and waits for the end", async () => {
    const { page } = await fresh(context);
    await context.route("**/slow", () => {});
    const seen = await page.evaluate(async () => {
      const controller = new AbortController();
      const fetched = asx.fetch_until(handles(), "slow", controller.signal);
      setTimeout(() => controller.abort(new Error("the user left")), 30);
      const error = await fetched.catch((error) => error);
      const order = [];
      const aborted = await asx.abort_by_timeout(handles(), (signal) => {
        return new Promise((done) => {
          signal.addEventListener("abort", () => {
            order.push(`abort: ${signal.reason.name} ${signal.reason.kind}`);
            setTimeout(() => (order.push("cleaned up"), done()), 25);
          });
        });
      }).catch((error) => (order.push("ended"), error));
      return [error.name, error.message, aborted.name, order];
    });
    assert.equal(seen[0], "AbortError");
    assert.ok(seen[1].includes("the user left"), seen[1]);
    assert.equal(seen[2], "TimeoutError");
    assert.deepEqual(seen[3], ["abort: TimeoutError Timeout", "cleaned up", "ended"]);
    await page.close();
  });

  await test("events wait up to their bound, the rest is counted as lost", async () => {
    const { page } = await fresh(context);
    const lost = await page.evaluate(async () => {
      const target = document.getElementById("button");
      let listens = false;
      target.addEventListener = (...all) => {
        listens = true;
        EventTarget.prototype.addEventListener.apply(target, all);
      };
      let go;
      const after = new Promise((done) => (go = done));
      const taken = asx.take_events(handles(), target, "click", 4, after);
      await until(() => listens);
      for (let n = 0; n < 10; n += 1) target.click();
      go();
      return taken;
    });
    assert.equal(lost, 6);
    await page.close();
  });

  await testInChromium("a trap in a task ends the runtime with a diagnosis, and does not hang", async () => {
    const { page, errors } = await fresh(context);
    const [error, events] = await page.evaluate(async () => {
      const error = await asx.trap(handles()).catch((error) => error);
      return [[error.name, error.message], JSON.parse(asx.last_run()[2])];
    });
    assert.equal(error[0], "INTERNAL");
    assert.ok(error[1].includes("a task trapped") && error[1].includes("step"), error[1]);
    assert.ok(events.some((event) => event.event === "scheduler_trapped"));
    await page.waitForTimeout(100);
    assert.ok(errors.length <= 1, `${errors}`);
    await page.close();
  });

  await test("a forged message runs nothing and is on the record", async () => {
    const { page } = await fresh(context);
    const kinds = await page.evaluate(async () => {
      const slept = asx.sleep(handles(), 40);
      for (const data of [77, "x", null, -1, 2 ** 40]) port.postMessage(data);
      await slept;
      // The messages may come after the timer: nothing orders the one before the other.
      const kinds = () => JSON.parse(asx.last_run()[2]).map((event) => event.event);
      const forged = () => kinds().filter((kind) => kind === "scheduler_forged_message").length;
      await until(() => forged() >= 5);
      return kinds();
    });
    assert.equal(kinds.filter((kind) => kind === "scheduler_forged_message").length, 5);
    await page.close();
  });

  await test("what is not granted is denied, with who wanted it, and no global is touched", async () => {
    const { page } = await fresh(context);
    const [denied, global, after] = await page.evaluate(async () => {
      let global = 0;
      const own = globalThis.setTimeout;
      const mine = handles({ timer: undefined });
      globalThis.setTimeout = (...all) => ((global += 1), own(...all));
      const slept = asx.sleep(mine, 5);
      const events = () => JSON.parse(asx.last_run()[2]);
      const denials = () => events().filter((event) => event.error_class === "CAPABILITY_DENIED");
      const ended = await slept.catch((error) => [error.name, error.kind]);
      globalThis.setTimeout = own;
      const denied = denials();
      asx.drop_last();
      return [denied, global, ended];
    });
    assert.equal(denied.length, 1);
    assert.equal(denied[0].provenance, "a task's timer");
    assert.equal(global, 0);
    assert.deepEqual(after, ["AbortError", "ResourceUnavailable"]);
    await page.close();
  });

  await test("Rust tasks that yield fail when the hand-off is denied while they run", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const run = asx.run_pressure(handles(), 10).then(
        () => "completed",
        (error) => String(error?.message ?? error),
      );
      await null;
      asx.set_granted("post", false);
      await new Promise((next) => setTimeout(next, 50));
      // Tasks that did not yield continue with the grant, and the program ends.
      asx.set_granted("post", true);
      return run;
    });
    assert.match(seen, /ResourceUnavailable.*post capability denied to pump hand-off/);
    await page.close();
  });

  await test("runtimes that are gone leave nothing behind, even if one ends itself", async () => {
    const { page, errors } = await fresh(context);
    const [first, last, inside] = await page.evaluate(async () => {
      const rounds = async (count) => {
        for (let round = 0; round < count; round += 1) {
          await asx.sleep(handles(), 0);
          asx.drop_last();
        }
        return asx.memory_pages();
      };
      const first = await rounds(50);
      const last = await rounds(500);
      const inside = await asx.drop_inside(handles()).catch((error) => error.name);
      // What it had asked the page for comes, and finds nobody.
      await new Promise((next) => setTimeout(next, 50));
      return [first, last, inside];
    });
    assert.equal(last, first, "memory grows");
    assert.equal(inside, "AbortError");
    assert.deepEqual(errors, []);
    await page.close();
  });

  await test("starting twice is an error, and starting again afterwards is not", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      asx.start_once(30);
      let error;
      try {
        asx.start_once(1);
      } catch (caught) {
        error = caught.name;
      }
      const starts = () => {
        try {
          asx.start_once(1);
          return true;
        } catch {
          return false;
        }
      };
      await until(starts);
      return error;
    });
    assert.equal(seen, "INVALID_TRANSITION");
    await page.close();
  });

  await testInChromium("hello says hello", async () => {
    const { page } = watch(await context.newPage());
    const said = [];
    page.on("console", (message) => said.push(message.text()));
    const over = page.waitForEvent("console", (message) => message.text() !== "hello");
    await page.goto(`${address}/hello.html`);
    await over;
    assert.deepEqual(said, ["hello", "world"]);
    await page.close();
  });

  await testInChromium("the npm package's example runs, in plain JavaScript", async () => {
    const { page, errors } = await open(context, "pkg/example.html");
    await page.waitForFunction(() => document.body.dataset.done === "yes");
    const text = await page.textContent("#out");
    assert.deepEqual(text.trim().split("\n"), [
      "the slow one was stopped: AbortError",
      "the answer is 42",
      "left behind: 0 tasks",
    ]);
    assert.deepEqual(errors, []);
    await page.close();
  });

  await test("the package: cancel, abort signals, journal, dump, start twice, close", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const { start } = await import("./pkg/asx.js");
      const asx = await start({ journal: 1000 });
      const twice = await start().catch((error) => error.name);
      const kinds = [];
      asx.subscribe((event) => kinds.push(event.event));
      const task = asx.spawn((cx) => cx.sleep(60_000));
      const names = () => asx.dump().regions.flatMap((region) => region.tasks).map((task) => task.name);
      await until(() => names().includes("sleep"));
      const during = names();
      task.cancel("enough");
      const cancelled = await task.promise.catch((error) => [error.name, error.kind]);
      const controller = new AbortController();
      const other = asx.spawn((cx) => cx.sleep(60_000), { signal: controller.signal });
      controller.abort("gone");
      const aborted = await other.promise.catch((error) => error.name);
      const thrown = await asx.spawn(() => { throw new TypeError("x"); }).promise.catch((error) => error.name);
      asx.close();
      let closed;
      try {
        asx.dump();
      } catch (error) {
        closed = error.name;
      }
      return { twice, during, cancelled, aborted, thrown, closed, kinds: [...new Set(kinds)] };
    });
    assert.equal(seen.twice, "INVALID_TRANSITION");
    assert.deepEqual(seen.during, ["main", "sleep"]);
    assert.equal(seen.cancelled[0], "AbortError");
    assert.equal(seen.aborted, "AbortError");
    assert.equal(seen.thrown, "TypeError");
    assert.equal(seen.closed, "STALE_HANDLE");
    for (const kind of ["task_spawned", "task_ended", "timer_armed"]) {
      assert.ok(seen.kinds.includes(kind), `${kind} in ${seen.kinds}`);
    }
    await page.close();
  });

  await test("the package: quiescence lists what is alive until a shutdown is complete", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const { start } = await import("./pkg/asx.js");
      const asx = await start();
      const task = asx.spawn((cx) => cx.sleep(60_000), "sleeper");
      await until(() => asx.quiescence().timers.length === 1);
      const alive = asx.quiescence();
      task.promise.catch(() => {});
      await asx.shutdown();
      const after = asx.quiescence();
      asx.close();
      return { alive, after };
    });
    assert.deepEqual(seen.alive.failures, [
      { code: "TASKS_STILL_ACTIVE", count: 2 },
      { code: "REGIONS_NOT_CLOSED", count: seen.alive.regions.length },
      { code: "TIMERS_PENDING", count: 1 },
    ]);
    const tasks = seen.alive.regions.flatMap((region) => region.tasks);
    assert.ok(tasks.some((task) => task.name === "sleeper"), JSON.stringify(tasks));
    assert.deepEqual(seen.alive.channels, []);
    assert.equal(seen.after, null);
    await page.close();
  });

  await test("the package: names, priorities, deadlines and signals of tasks; bad ones", async () => {
    const { page } = await fresh(context);
    const seen = await page.evaluate(async () => {
      const { start } = await import("./pkg/asx.js");
      const asx = await start({ journal: 5000 });
      const order = [];
      const turn = (name) => async () => void order.push(name);
      const tasks = [["low", 1], ["usual", undefined], ["high", 255]].map(([name, priority]) =>
        asx.spawn(turn(name), { name, priority }),
      );
      const timed = asx.spawn(turn("timed"), { name: "timed", deadlineMs: 60_000 });
      const names = asx.dump().regions.flatMap((region) => region.tasks).map((task) => task.name);
      await Promise.all([...tasks, timed]);
      const late = await asx
        .spawn((cx) => cx.sleep(60_000), { deadlineMs: 20 })
        .promise.catch((error) => [error.name, error.kind]);
      const inside = await asx.spawn(async (cx) => {
        const order = [];
        const controller = new AbortController();
        const waits = cx.spawn((cx) => cx.sleep(60_000), { name: "waits", signal: controller.signal });
        const late = cx.spawn((cx) => cx.sleep(60_000), { deadlineMs: 10 });
        const low = cx.spawn(async () => void order.push("low"), { priority: 0 });
        const high = cx.spawn(async () => void order.push("high"), { priority: 200 });
        await Promise.all([low, high]);
        const names = asx.dump().regions.flatMap((region) => region.tasks).map((task) => task.name);
        controller.abort("gone");
        const ended = [waits, late].map((it) => it.catch((error) => [error.name, error.kind]));
        return [order, names.includes("waits"), ...(await Promise.all(ended))];
      }).promise;
      const refused = [];
      const bad = [
        { priority: 256 }, { priority: -1 }, { priority: 1.5 }, { priority: "high" }, { priority: NaN },
        { deadlineMs: -1 }, { deadlineMs: Infinity }, { deadlineMs: "soon" }, { name: 5 },
        { signal: new AbortController() }, 7, true,
      ];
      for (const options of bad) {
        try {
          asx.spawn(() => refused.push("ran"), options);
        } catch (error) {
          refused.push(`${error.name}: ${error.message.split(":")[0]}`);
        }
      }
      const child = await asx.spawn(async (cx) => {
        try {
          cx.spawn(() => 1, { priority: 999 });
        } catch (error) {
          return error.name;
        }
      }).promise;
      const left = asx.dump().regions.flatMap((region) => region.tasks).length;
      asx.close();
      return { order, names, late, inside, refused, child, left, count: bad.length };
    });
    assert.deepEqual(seen.order, ["timed", "high", "usual", "low"]);
    assert.deepEqual(seen.names.sort(), ["high", "low", "timed", "usual"]);
    assert.deepEqual(seen.late, ["TimeoutError", "Deadline"]);
    assert.deepEqual(seen.inside[0], ["high", "low"]);
    assert.equal(seen.inside[1], true);
    assert.equal(seen.inside[2][0], "AbortError");
    assert.deepEqual(seen.inside[3], ["TimeoutError", "Deadline"]);
    assert.equal(seen.refused.length, seen.count, `${seen.refused}`);
    for (const why of seen.refused) {
      assert.match(why, /^INVALID_ARGUMENT: (priority|deadlineMs|name|signal|options)$/);
    }
    assert.equal(seen.child, "INVALID_ARGUMENT");
    assert.equal(seen.left, 0);
    await page.close();
  });

  await pack(context, test);

  await demo(context, testInChromium);
});

console.log(`${passed} ${firefox ? "Firefox" : "browser"} tests passed, ${failed.length} failed`);
if (failed.length > 0) process.exit(1);
