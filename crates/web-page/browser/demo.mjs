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
    assert.match(await page.textContent("#tree"), /region 1 Open[\s\S]*parent/);
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
    await page.waitForTimeout(500);
    await page.focus("#record");
    await page.keyboard.press("Enter");
    assert.match(await page.textContent("#status"), /recorded \d+ frames/);
    await page.focus("#replay");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.getElementById("status").textContent === "replayed");
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

  await test("the demo in the dark and on a phone: nothing sticks out", async () => {
    const { page } = await open(context, "index.html");
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForFunction(() => globalThis.demoReady);
    await page.click("#compute");
    await page.waitForTimeout(600);
    await page.screenshot({ path: join(out, "demo-phone-dark.png"), fullPage: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} px too wide`);
    await page.close();
  });
}
