// The demo page as people use it: by mouse, by keyboard, in the dark, on a phone.

import { strict as assert } from "node:assert";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { open, out } from "./browser.mjs";

const number = async (page, id) => Number(await page.textContent(`#${id}`));

export async function demo(context, test) {
  await test("the demo: work fills the lanes, drains them, and the page stays quick", async () => {
    const { page, errors } = await open(context, "index.html");
    await page.waitForFunction(() => globalThis.demoReady);
    await page.click("#family");
    // Families end by themselves: looked for while this one lives.
    const family = () => /region 1 Open[\s\S]*parent/.test(document.getElementById("tree").textContent);
    await page.waitForFunction(family);
    await page.click("#compute");
    await page.click("#timed");
    await page.waitForFunction(() => document.querySelector('[data-lane="ready"] b').textContent > 0);
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
        () =>
          new Promise((done) => {
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
          }),
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
    await page.focus("#record");
    await page.keyboard.press("Enter");
    await page.focus("#compute");
    await page.keyboard.press("Space");
    for (const id of ["timed", "family", "pressure"]) {
      await page.focus(`#${id}`);
      await page.keyboard.press("Enter");
    }
    await page.waitForTimeout(500);
    await page.focus("#cancel");
    await page.keyboard.press("Enter");
    await page.waitForTimeout(100);
    await page.focus("#record");
    await page.keyboard.press("Enter");
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
    await report.waitForLoadState();
    assert.match(await report.title(), /demo/);
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
      await new Promise((next) => setTimeout(next, 300));
      recording.call("cancel_all");
      await new Promise((next) => setTimeout(next, 50));
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
        kinds: [...new Set(recording.tape.inputs.map((input) => input.kind))].sort(),
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
