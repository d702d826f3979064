// The same work on this pump, on this pump without bounds, and on wasm-bindgen-futures, in one page:
// long tasks, how long clicks wait, what it costs. Interleaved; the median of the rounds. What it
// costs is the processor time of the page's thread until the work is done and all clicks are
// answered: the same for all of them, whoever else uses the machine. The time by the clock is given
// too, and again for short runs without clicks: who never yields answers those afterwards, and
// others who use the machine are in long runs for sure.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { out, open, withBrowser } from "./browser.mjs";

const ROUNDS = Number(process.env.ASX_ROUNDS ?? 3);
const EXECUTORS = ["asx", "unbounded", "spawn_local"];
const POLLS_US = [0.2, 2, 20, 200];
const TASKS = 64;
const CPU_MS = 1200;
const ALONE = { rounds: 150, ms: 5 };

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const percentile = (values, p) =>
  values.length === 0 ? 0 : values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * p)];

/** The processor time of the page's thread so far, in milliseconds. */
async function processor(session) {
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "ThreadTime").value * 1000;
}

/** One run: the page works while the mouse clicks every 37 ms. */
async function run(page, session, executor, polls, rounds) {
  await page.evaluate(() => {
    globalThis.waits = [];
    globalThis.long = [];
  });
  const before = await processor(session);
  const done = page.evaluate(
    async ([executor, tasks, polls, rounds]) => {
      const start = performance.now();
      await asx.work(executor, tasks, polls, rounds);
      return performance.now() - start;
    },
    [executor, TASKS, polls, rounds],
  );
  let over = false;
  done.finally(() => (over = true));
  const clicks = [];
  while (!over) {
    clicks.push(page.mouse.click(30, 20));
    await new Promise((next) => setTimeout(next, 37));
  }
  const took = await done;
  await Promise.all(clicks);
  await page.waitForTimeout(100);
  const used = (await processor(session)) - before;
  const { waits, long } = await page.evaluate(() => ({ waits, long }));
  return { took, used, waits, long };
}

/** The best times of short runs without clicks, in nanoseconds per poll. */
function alone(page, executors, polls, rounds) {
  return page.evaluate(
    async ([executors, tasks, polls, rounds, repeat]) => {
      const best = {};
      for (let round = 0; round < repeat; round += 1) {
        for (const name of executors) {
          const start = performance.now();
          await asx.work(name, tasks, polls, rounds);
          const took = ((performance.now() - start) * 1e6) / (tasks * polls);
          best[name] = Math.min(best[name] ?? Infinity, took);
        }
      }
      return best;
    },
    [executors, TASKS, polls, rounds, ALONE.rounds],
  );
}

await withBrowser(async (context) => {
  const { page } = await open(context, "blank.html");
  await page.waitForFunction(() => globalThis.ready);
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const perMicro = await page.evaluate(() => {
    document.addEventListener("mousedown", (event) => waits.push(performance.now() - event.timeStamp));
    globalThis.long = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) long.push(entry.duration);
    }).observe({ type: "longtask" });
    let best = 0;
    for (let n = 0; n < 40; n += 1) {
      const start = performance.now();
      asx.spin(1_000_000);
      best = Math.max(best, 1_000_000 / ((performance.now() - start) * 1000));
    }
    return best;
  });
  const rows = [];
  for (const us of POLLS_US) {
    const [rounds, polls] = [Math.max(1, Math.round(us * perMicro)), Math.round((CPU_MS * 1000) / us / TASKS)];
    const results = Object.fromEntries(EXECUTORS.map((name) => [name, []]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const name of EXECUTORS) results[name].push(await run(page, session, name, polls, rounds));
    }
    const least = (name, what) => Math.min(...results[name].map((r) => r[what]));
    const ratio = (name, what) => Number((least(name, what) / least("unbounded", what)).toFixed(2));
    const best = await alone(page, EXECUTORS, Math.ceil((polls * ALONE.ms) / CPU_MS), rounds);
    for (const name of EXECUTORS) {
      const all = results[name];
      rows.push({
        poll_us: us,
        executor: name,
        took_ms: Math.round(median(all.map((r) => r.took))),
        cost: ratio(name, "used"),
        cost_by_clock: ratio(name, "took"),
        cost_alone: Number((best[name] / best.unbounded).toFixed(2)),
        long_tasks: median(all.map((r) => r.long.length)),
        longest_ms: Math.round(median(all.map((r) => Math.max(0, ...r.long)))),
        input_p50_ms: Number(median(all.map((r) => percentile(r.waits, 0.5))).toFixed(1)),
        input_p95_ms: Number(median(all.map((r) => percentile(r.waits, 0.95))).toFixed(1)),
      });
    }
  }
  // A wake and a poll that do nothing: tasks that only yield.
  const empty = await alone(page, EXECUTORS.slice(1), 2000, 0);
  console.table(rows);
  console.log(`an empty wake and poll: asx ${empty.unbounded.toFixed(0)} ns, spawn_local ${empty.spawn_local.toFixed(0)} ns`);
  writeFileSync(join(out, "measure.json"), JSON.stringify({ rows, empty }, null, 1));
});
