// JavaScript tasks in pieces, each followed by `yieldNow`: how long clicks and frames wait meanwhile.
// Plain promises that wait for a message after each piece run the same work beside it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { firefox, open, out, withBrowser } from "./browser.mjs";

const TASKS = [1, 8, 1000];
const PIECES_MS = [0.2, 3];
/** Work of one run, and between two clicks. */
const WORK_MS = Number(process.env.ASX_WORK_MS ?? 3000);
const CLICK_MS = 37;

const p95 = (values) =>
  values.length === 0 ? 0 : values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * 0.95)];

/** What the page runs, until all pieces are done. */
async function work([executor, tasks, pieces, ms]) {
  const burn = () => {
    const end = performance.now() + ms;
    while (performance.now() < end);
  };
  let left = pieces;
  const body = async (next) => {
    while (left > 0) {
      left -= 1;
      burn();
      await next();
    }
  };
  const frames = [];
  let before = performance.now();
  let over = false;
  const frame = () => {
    const now = performance.now();
    frames.push(now - before);
    before = now;
    if (!over) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const start = performance.now();
  if (executor === "asx") {
    const { start } = await import("./pkg/asx.js");
    const asx = await start();
    const all = Array.from({ length: tasks }, () => asx.spawn((cx) => body(() => cx.yieldNow())));
    await Promise.all(all);
    asx.close();
  } else {
    const { port1, port2 } = new MessageChannel();
    const waiting = [];
    port1.onmessage = () => waiting.shift()();
    const next = () => new Promise((done) => (waiting.push(done), port2.postMessage(null)));
    await Promise.all(Array.from({ length: tasks }, () => body(next)));
    port1.close();
  }
  over = true;
  return { took: performance.now() - start, frames };
}

await withBrowser(async (context) => {
  const { page } = await open(context, "blank.html");
  await page.waitForFunction(() => globalThis.ready);
  await page.evaluate(() => {
    globalThis.waits = [];
    document.addEventListener("mousedown", (event) => waits.push(performance.now() - event.timeStamp));
  });
  const rows = [];
  for (const tasks of TASKS) {
    for (const ms of PIECES_MS) {
      for (const executor of ["asx", "promises"]) {
        await page.evaluate(() => void (waits.length = 0));
        const pieces = Math.max(tasks, Math.round(WORK_MS / ms));
        const run = page.evaluate(work, [executor, tasks, pieces, ms]);
        let over = false;
        run.finally(() => (over = true));
        const clicks = [];
        while (!over) {
          clicks.push(page.mouse.click(30, 20));
          await new Promise((next) => setTimeout(next, CLICK_MS));
        }
        const { took, frames } = await run;
        await Promise.all(clicks);
        const inputs = await page.evaluate(() => [...waits]);
        rows.push({
          tasks,
          piece_ms: ms,
          executor,
          took_ms: Math.round(took),
          clicks: inputs.length,
          input_p95_ms: Number(p95(inputs).toFixed(1)),
          input_max_ms: Number(Math.max(0, ...inputs).toFixed(1)),
          frame_p95_ms: Number(p95(frames).toFixed(1)),
          frame_max_ms: Number(Math.max(0, ...frames).toFixed(1)),
        });
      }
    }
  }
  console.table(rows);
  const name = firefox ? "firefox-responsive.json" : "responsive.json";
  writeFileSync(join(out, name), JSON.stringify(rows, null, 1));
});
