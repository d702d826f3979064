// The demo page as people use it: by mouse, by keyboard, in the dark, on a phone.

import { strict as assert } from "node:assert";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { open, out, watch } from "./browser.mjs";

const number = async (page, id) => Number(await page.textContent(`#${id}`));

/** Whether nothing is queued, and no timer set: all that was started is over. */
const idle = () =>
  [...document.querySelectorAll(".lane b")].every((lane) => lane.textContent === "0") &&
  / 0 timers/.test(document.getElementById("pump").textContent);

/**
 * Clicks, waits until the page shows something, and answers with what `look` sees then. What a
 * button starts ends by itself: if all of it is over before a slow page has shown it, the buttons
 * are pressed again.
 */
async function clickUntil(page, ids, look) {
  for (const id of ids) await page.click(`#${id}`);
  return page.evaluate(
    async ([ids, lookText, idleText]) => {
      const [look, idle] = [eval(lookText), eval(idleText)];
      const frame = () => new Promise((next) => requestAnimationFrame(next));
      const end = performance.now() + 300_000;
      while (performance.now() < end) {
        await frame();
        const seen = look();
        if (seen) return seen;
        if (idle()) for (const id of ids) document.getElementById(id).click();
      }
      throw new Error(`never seen: ${lookText}`);
    },
    [ids, String(look), String(idle)],
  );
}

export async function demo(context, test) {
  await test("the demo: work fills the lanes, drains them, and the page stays quick", async () => {
    const { page, errors } = await open(context, "index.html");
    await page.waitForFunction(() => globalThis.demoReady);
    await clickUntil(page, ["family"], () => {
      return /region 1 Open[\s\S]*parent/.test(document.getElementById("tree").textContent);
    });
    await clickUntil(page, ["compute", "timed"], () => {
      return document.querySelector('[data-lane="ready"] b').textContent > 0;
    });
    await page.click("#pressure");
    await page.waitForTimeout(50);
    await page.screenshot({ path: join(out, "demo.png"), fullPage: true });
    for (let n = 0; n < 10; n += 1) {
      await page.click("#tick");
      await page.waitForTimeout(37);
    }
    assert.equal(await number(page, "ticks"), 10);
    await page.click("#cancel");
    await page.waitForFunction(
      () => [...document.querySelectorAll(".lane b")].every((lane) => lane.textContent === "0"),
    );
    assert.deepEqual(errors, []);
    await page.close();
  });

  await test("the demo: naive does all in one drain, bounded lets the page in between", async () => {
    const { page } = await open(context, "index.html");
    await page.waitForFunction(() => globalThis.demoReady);
    // The longest frame is for people; what is asserted are drains, whatever else the machine does.
    const work = () =>
      page.evaluate(
        async () => {
          // What was done before this is shown after a frame.
          await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
          return new Promise((done) => {
            const drains = () => Number(/drain (\d+)/.exec(document.getElementById("pump").textContent)[1]);
            const ready = () => Number(document.querySelector('[data-lane="ready"] b').textContent);
            let [last, most, before] = [performance.now(), 0, drains()];
            const look = (now) => {
              most = Math.max(most, now - last);
              last = now;
              if (now < began + 500 || ready() > 0) requestAnimationFrame(look);
              else done([most, drains() - before]);
            };
            const began = last;
            requestAnimationFrame(look);
            document.getElementById("compute").click();
          });
        },
      );
    const [boundedFrame, bounded] = await work();
    await page.check("#naive");
    const [naiveFrame, naive] = await work();
    console.log(
      `     longest frame: bounded ${boundedFrame.toFixed(0)} ms in ${bounded} drains, ` +
        `naive ${naiveFrame.toFixed(0)} ms in ${naive}`,
    );
    assert.ok(bounded >= 64 * 600 / 256, `${bounded} drains`);
    assert.equal(naive, 1);
    await page.close();
  });

  await test("the demo by keyboard alone; record, replay, trace, report", async () => {
    const { page } = await open(context, "index.html");
    await page.waitForFunction(() => globalThis.demoReady);
    const focused = () => page.evaluate(() => document.activeElement.id);
    const order = [];
    for (let n = 0; n < 16; n += 1) {
      await page.keyboard.press("Tab");
      order.push(await focused());
    }
    for (const id of ["compute", "poll", "steps", "slice", "naive", "tick", "tree", "record"]) {
      assert.ok(order.includes(id), `${id} in ${order}`);
    }
    // Long polls, and so few of them: the journal has room for all that is done, however long it runs.
    await page.focus("#poll");
    for (let n = 0; n < 3; n += 1) await page.keyboard.press("ArrowRight");
    assert.equal(await page.textContent("#poll-out"), "500 µs");
    await page.focus("#record");
    await page.keyboard.press("Enter");
    await page.focus("#compute");
    await page.keyboard.press("Space");
    for (const id of ["timed", "family", "pressure"]) {
      await page.focus(`#${id}`);
      await page.keyboard.press("Enter");
    }
    // The last child is there, or everything is over already.
    const born = (idle) => /child 1\.8/.test(document.getElementById("tree").textContent) || eval(idle)();
    await page.waitForFunction(born, String(idle));
    await page.focus("#cancel");
    await page.keyboard.press("Enter");
    await page.waitForFunction(idle);
    await page.focus("#record");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /Recorded/.test(document.getElementById("status").textContent));
    const told = await page.textContent("#status");
    assert.match(told, /Recorded \d+ inputs, \d+ events, digest [0-9a-f]{16}/);
    await page.focus("#replay");
    await page.keyboard.press("Enter");
    const over = () => /digest equal|MISMATCH/.test(document.getElementById("status").textContent);
    await page.waitForFunction(over);
    const digest = /[0-9a-f]{16}/.exec(told)[0];
    assert.match(await page.textContent("#status"), new RegExp(`digest equal: ${digest}`));
    assert.equal(await page.isDisabled("#replay"), false);
    await page.screenshot({ path: join(out, "demo-replay.png"), fullPage: true });
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
    const trace = join(out, "demo.jsonl");
    await download.saveAs(trace);
    const lines = readFileSync(trace, "utf8").trim().split("\n");
    assert.ok(lines.length > 100 && lines.every((line) => JSON.parse(line)), `${lines.length} lines`);
    const [report] = await Promise.all([context.waitForEvent("page"), page.click("#report")]);
    watch(report);
    await report.waitForLoadState();
    assert.match(await report.title(), /demo/);
    const written = await report.content();
    for (const name of ["compute 1", "compute 64", "deadline 16", "parent 1", "child 1.8", "cancelled 300"]) {
      assert.ok(written.includes(`"${name}"`), `${name} is not in the report`);
    }
    await report.close();
    await page.close();
  });

  await test("the demo's tape: run again it gives its digest, changed it does not", async () => {
    const { page } = await open(context, "index.html");
    await page.waitForFunction(() => globalThis.demoReady);
    const seen = await page.evaluate(async () => {
      const { Demo } = await import("./page/page.js");
      const { record, replay } = await import("./tape.js");
      const make = (handles) => new Demo(handles);
      const recording = record(make);
      recording.call("configure", 16, 4, false);
      recording.call("compute", 8, 20, 10, 0);
      recording.call("family", 3, 10);
      const until = async (condition) => {
        while (!condition()) await new Promise((next) => setTimeout(next, 5));
      };
      const kinds = () => new Set(recording.tape.inputs.map((input) => input.kind));
      await until(() => kinds().has("timer") && kinds().has("message"));
      // Some have ended. The page looks at its runtime whenever it paints, and a tape knows nothing
      // of that: with a look or without, the run must be the same.
      const live = () => JSON.parse(recording.runtime.tree()).regions.flatMap((region) => region.tasks);
      await until(() => !live().some((task) => task.name?.startsWith("compute")));
      recording.runtime.stats();
      // Whatever has ended by now, these live when they are cancelled.
      recording.call("family", 3, 10);
      recording.call("cancel_all");
      await until(() => live().length === 1);
      recording.stop();
      const digest = recording.runtime.digest();
      const again = async (change) => {
        const tape = structuredClone(recording.tape);
        change(tape.inputs);
        const { runtime, wrong } = await replay(tape, make, async () => {});
        return [runtime.digest() === digest, wrong];
      };
      const timer = recording.tape.inputs.findIndex((input) => input.kind === "timer");
      const cancel = (input) => input.kind === "call" && input.which[0] === "cancel_all";
      return {
        kinds: [...kinds()].sort(),
        whole: await again(() => {}),
        twice: await again(() => {}),
        later: await again((inputs) => {
          for (const input of inputs.slice(timer)) input.answers = input.answers.map((t) => t + 1);
        }),
        without: await again((inputs) => inputs.splice(inputs.findIndex(cancel), 1)),
        less: await again((inputs) => inputs.findLast((input) => input.answers.length > 0).answers.pop()),
        unknown: await again((inputs) => (inputs[timer].which = 1e6)),
      };
    });
    assert.deepEqual(seen.kinds, ["call", "message", "microtask", "open", "timer"]);
    assert.deepEqual([seen.whole, seen.twice], [[true, null], [true, null]]);
    assert.equal(seen.later[0], false, "another time");
    assert.equal(seen.without[0], false, "without the cancel");
    assert.match(seen.less[1], /asked for more than input \d+ had/);
    assert.match(seen.unknown[1], /there is no timer for input \d+/);
    await page.close();
  });

  await test("the demo's tree uses its card, and names its tasks", async () => {
    const { page } = await open(context, "index.html");
    await page.waitForFunction(() => globalThis.demoReady);
    const seen = await clickUntil(page, ["family", "compute"], () => {
      // All of them at once: the tasks that compute, the parent and its children.
      if (document.querySelectorAll("#tree .task").length <= 22) return null;
      if (!/parent[\s\S]*child \d+\.8/.test(document.getElementById("tree").textContent)) return null;
      const tree = document.getElementById("tree").getBoundingClientRect();
      const tasks = [...document.querySelectorAll("#tree .task")].map((task) => {
        const { left, right, top, bottom } = task.getBoundingClientRect();
        return { left, right, top, bottom, text: task.textContent };
      });
      const rows = new Set(tasks.map((task) => Math.round(task.top)));
      const shown = tasks.filter((task) => task.bottom <= tree.bottom + 1);
      return {
        names: tasks.map((task) => task.text.trim()),
        columns: tasks.length / rows.size,
        used: (Math.max(...tasks.map((task) => task.right)) - tree.left) / tree.width,
        shown: shown.map((task) => task.text.trim()),
      };
    });
    assert.ok(seen.columns >= 1.8, `${seen.columns} tasks in a row`);
    assert.ok(seen.used > 0.8 && seen.used <= 1.001, `${seen.used} of the width`);
    for (const name of [/^show\b/, /^parent \d+\b/, /^child \d+\.1\b/, /^child \d+\.8\b/, /^compute \d+\b/]) {
      assert.ok(seen.names.some((text) => name.test(text)), `${name} in ${seen.names}`);
    }
    // The family is seen without scrolling, however many compute.
    assert.ok(seen.shown.some((text) => /^child \d+\.1\b/.test(text)), `${seen.shown}`);
    await page.close();
  });

  await test("the demo on a phone: what was said and what to press are beside the controls", async () => {
    const { page } = await open(context, "index.html");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForFunction(() => globalThis.demoReady);
    for (const id of ["compute", "cancel", "naive", "record", "report"]) {
      await page.focus(`#${id}`);
      const seen = await page.evaluate((id) => {
        document.getElementById(id).scrollIntoView({ block: "center", behavior: "instant" });
        const inside = (id) => {
          const { top, bottom, height } = document.getElementById(id).getBoundingClientRect();
          return height > 0 && top >= 0 && bottom <= innerHeight;
        };
        const { left, top, width, height } = document.getElementById(id).getBoundingClientRect();
        const on = document.elementFromPoint(left + width / 2, top + height / 2);
        return [inside("tick"), inside("status"), on?.id === id];
      }, id);
      assert.deepEqual(seen, [true, true, true], id);
    }
    await page.click("#cancel");
    assert.match(await page.textContent("#status"), /^\d+ tasks? (was|were) asked to stop$/);
    const said = await page.evaluate(async () => [0, 1, 2].map((await import("./words.js")).stopped));
    assert.deepEqual(said, ["0 tasks were", "1 task was", "2 tasks were"].map((it) => `${it} asked to stop`));
    await page.click("#tick");
    assert.equal(await number(page, "ticks"), 1);
    await page.close();
  });

  await test("the demo has an icon", async () => {
    const { page } = await open(context, "index.html");
    const seen = await page.evaluate(async () => {
      const link = document.querySelector('link[rel="icon"]');
      if (!link) return null;
      const response = await fetch(link.href);
      const picture = new Image();
      picture.src = link.href;
      await picture.decode();
      return [response.status, response.headers.get("content-type"), picture.width > 0];
    });
    assert.deepEqual(seen, [200, "image/svg+xml", true]);
    await page.close();
  });

  await test("the demo by day, in the dark and on a phone: nothing sticks out", async () => {
    for (const colorScheme of ["light", "dark"]) {
      for (const [place, width, height] of [["desk", 1280, 800], ["pad", 800, 1000], ["phone", 390, 844]]) {
        const { page } = await open(context, "index.html");
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height });
        await page.waitForFunction(() => globalThis.demoReady);
        for (const id of ["family", "timed", "compute"]) await page.click(`#${id}`);
        await page.waitForTimeout(600);
        await page.screenshot({ path: join(out, `demo-${place}-${colorScheme}.png`), fullPage: true });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${place}: ${wide} px too wide`);
        await page.close();
      }
    }
  });
}
