// Opens report pages in a browser and tests them: `node browser.mjs FILE=EVENTS..`

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { endOfTest, out, watch, withBrowser } from "../../web-page/browser/browser.mjs";

const DESK = { width: 1280, height: 800 };
const SHAPES = [
  ["light", { colorScheme: "light", viewport: DESK }],
  ["dark", { colorScheme: "dark", viewport: DESK }],
  ["phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true }],
];

/** Returns the contents of the chart, once it is drawn. */
const drawn = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done(document.getElementById("chart").toDataURL())));
}));
const text = (page, id) => page.evaluate((id) => document.getElementById(id).textContent, id);

async function shows(page, events, scheme) {
  assert.equal(await text(page, "shown"), `${events} events`);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
  const colours = await page.evaluate(() => {
    const chart = document.getElementById("chart");
    const { data } = chart.getContext("2d").getImageData(0, 0, chart.width, chart.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  assert.ok(colours > 3, `the chart has ${colours} colours`);
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide[0] <= wide[1], `it is wider than the window: ${wide}`);
}

async function steps(page) {
  await page.click("#first");
  const first = await text(page, "detail");
  await page.click("#next");
  const second = await text(page, "detail");
  assert.notEqual(first, second);
  await page.click("#prev");
  assert.equal(await text(page, "detail"), first);
  await page.click("#after");
  const decision = await text(page, "detail");
  assert.match(decision, /decision/);
  await page.keyboard.press("End");
  assert.notEqual(await text(page, "detail"), decision);
}

async function zooms(page) {
  await page.click("#fit");
  const whole = await drawn(page);
  await page.click("#in");
  await page.click("#in");
  const near = await drawn(page);
  assert.notEqual(near, whole);
  await page.click("#fit");
  assert.equal(await drawn(page), whole);
  const box = await page.locator("#ruler").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, -400);
  await page.waitForFunction((whole) => document.getElementById("chart").toDataURL() !== whole, whole);
  await page.click("#fit");
}

async function hovers(page) {
  const box = await page.locator("#chart").boundingBox();
  for (let x = 5; x < box.width; x += 7) {
    for (const y of [8, 24, 40, 56, 72]) {
      await page.mouse.move(box.x + x, box.y + y);
      if (await page.evaluate(() => !document.getElementById("tip").hidden)) {
        assert.notEqual(await text(page, "tip"), "");
        return;
      }
    }
  }
  assert.fail("nothing under the mouse says what it is");
}

async function filters(page, events) {
  await page.fill("#filter", "kind=sent");
  await page.waitForFunction(() => / of /.test(document.getElementById("shown").textContent));
  const [some, all] = (await text(page, "shown")).match(/\d+/g).map(Number);
  assert.ok(all === events && some > 0 && some < all, `${some} of ${all}`);
  await page.click("#clear");
  await page.waitForFunction((events) => document.getElementById("shown").textContent === `${events} events`, events);
}

async function turns(page) {
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const before = await theme();
  await page.click("#theme");
  assert.notEqual(await theme(), before);
  await page.click("#help");
  assert.ok(await page.evaluate(() => document.getElementById("legend").open));
  await isReadable(page, "with the legend open");
  await page.keyboard.press("Escape");
  assert.ok(!(await page.evaluate(() => document.getElementById("legend").open)));
}

/** Checks the initial state of the page of a failing check: the cause, and the collapsed teardown. */
async function tells(page, events) {
  const chips = await page.evaluate(() => ["fails", "verdict"].map((id) => {
    const chip = document.getElementById(id);
    return [chip.textContent, chip.className];
  }));
  assert.deepEqual(chips, [["fails: deadlock", "chip bad"], ["trace lawful", "chip plain"]]);
  const cause = await text(page, "cause");
  for (const part of ["deadlock", "feed (main/1) and drain (main/2) wait for each other", "src/shop.rs:3:5", "in step 9",
    "feed (main/1) waits for what drain (main/2) took <b>", "at step 3 run drain (main/2) instead of feed (main/1)",
    "ASX_REPLAY=AQCugbM cargo test shop"]) {
    assert.ok(cause.includes(part), `${part} in ${cause}`);
  }
  const below = await page.evaluate(() => [...document.querySelectorAll("#cause li > .below > li")].map((each) => each.textContent));
  assert.deepEqual(below, ["last sent by drain (main/2) at src/shop.rs:4:5", "spawned at src/shop.rs:2:5"]);
  // The panel is visible without scrolling.
  const seen = await page.evaluate(() => {
    const title = document.querySelector("#cause h2").getBoundingClientRect();
    return title.top >= 0 && title.bottom < innerHeight / 2 && title.height > 0;
  });
  assert.ok(seen, "the cause is in sight");
  const flagged = await page.evaluate(() => [...document.querySelectorAll(".row.flagged .name")].map((each) => each.textContent));
  assert.deepEqual(flagged, ["feed (main/1)", "drain (main/2)"]);
  const fold = await text(page, "torn");
  assert.match(fold, /^Show the teardown \(\d+ events\)$/);
  await page.click("#torn");
  const whole = events + Number(fold.match(/\d+/)[0]);
  await page.waitForFunction((whole) => document.getElementById("shown").textContent === `${whole} events`, whole);
  await page.click("#torn");
  await page.waitForFunction((events) => document.getElementById("shown").textContent === `${events} events`, events);
}

/** Checks that all visible text has a contrast of at least 4.5:1, and all targets at least 40 px. */
async function isReadable(page, when) {
  const wrong = await page.evaluate(() => {
    // A transition between two colours is shown for a moment only.
    for (const transition of document.getAnimations()) transition.finish();
    const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const over = (top, below) => {
      const alpha = top[3] ?? 1;
      return [0, 1, 2].map((at) => top[at] * alpha + below[at] * (1 - alpha));
    };
    const behind = (node) => {
      if (!node) return [255, 255, 255];
      return over(parse(getComputedStyle(node).backgroundColor), behind(node.parentElement));
    };
    const isSeen = (node) => {
      const box = node.getBoundingClientRect();
      return box.width > 0 && box.height > 0 && getComputedStyle(node).visibility === "visible";
    };
    const name = (node) => node.tagName + "#" + node.id + "." + node.className;
    const found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode.parentElement;
      if (!texts.currentNode.data.trim() || node.closest("script, noscript") || !isSeen(node)) continue;
      const ground = behind(node);
      const style = getComputedStyle(node);
      let opacity = 1;
      for (let up = node; up; up = up.parentElement) opacity *= Number(getComputedStyle(up).opacity);
      const ink = parse(style.color);
      const shown = over([ink[0], ink[1], ink[2], (ink[3] ?? 1) * opacity], ground);
      const [high, low] = [light(shown), light(ground)].sort((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      if (ratio < 4.5) found.push(`${name(node)} has a contrast of ${ratio.toFixed(2)}: ${texts.currentNode.data}`);
    }
    const targets = "button, input:not([type=checkbox]), summary, select, a, .row, .event, #kindlist label, [role=option], [role=treeitem]";
    let seen = 0;
    for (const node of document.querySelectorAll(targets)) {
      if (!isSeen(node)) continue;
      seen += 1;
      const { width, height } = node.getBoundingClientRect();
      if (width < 40 || height < 40) found.push(`${name(node)} is ${width} by ${height}: ${node.textContent}`);
    }
    if (seen < 10) found.push(`only ${seen} targets`);
    return found;
  });
  assert.deepEqual(wrong, [], when);
}

/** Checks that the page opens at the changed decision, which the cause links, like the failure. */
async function opensAtChange(page) {
  const chosen = () => page.evaluate(() => document.querySelector("#detail h2 small").textContent.split(" ")[0]);
  const list = await page.evaluate(() => [...document.querySelectorAll("#cause .changes li")].map((each) => each.querySelector(".go")?.textContent ?? ""));
  // The third one is in the collapsed part of the run.
  assert.deepEqual(list, ["Go to #11", "Go to #30", ""]);
  assert.equal(await chosen(), "#11");
  assert.match(await text(page, "detail"), /◆ changed decision: at step 3 run `drain/);
  await page.click("#cause .changes li:nth-child(2) .go");
  assert.equal(await chosen(), "#30");
  await page.click("#cause h2 .go");
  assert.match(await text(page, "detail"), /⚑ failure/);
  await page.click("#cause .changes li:nth-child(1) .go");
  assert.equal(await chosen(), "#11");
}

/** Whether a track shows this text for some position of the mouse. */
async function says(page, words) {
  const box = await page.locator("#chart").boundingBox();
  for (let y = 8; y < box.height; y += 32) {
    for (let x = 5; x < box.width; x += 9) {
      await page.mouse.move(box.x + x, box.y + y);
      const tip = await text(page, "tip");
      if (tip.includes(words)) return;
    }
  }
  assert.fail(`no track says: ${words}`);
}

async function use(context, file, events, shape, options) {
  const { page } = watch(await context.newPage());
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("dialog", (dialog) => { wrong.push("a dialog"); dialog.dismiss(); });
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => document.getElementById("shown").textContent !== "");
  await shows(page, events, options.colorScheme);
  const failed = basename(file) === "failed.html";
  if (failed) await page.screenshot({ path: join(out, `failed-${shape}.png`) });
  await isReadable(page, "as it opens");
  if (failed) await tells(page, events);
  if (failed) await opensAtChange(page);
  if (failed && !options.hasTouch) {
    await page.click("#fit");
    await says(page, "waits for a message: orders.recv");
  }
  await steps(page);
  await zooms(page);
  if (!options.hasTouch) await hovers(page);
  if (!failed) await filters(page, events);
  await turns(page);
  await isReadable(page, "in other colours");
  await page.click("#kinds summary");
  await isReadable(page, "with the kinds of events open");
  assert.deepEqual(wrong, []);
}

for (const [shape, options] of SHAPES) {
  for (const argument of process.argv.slice(2)) {
    const at = argument.lastIndexOf("=");
    const [file, events] = [argument.slice(0, at), Number(argument.slice(at + 1))];
    // A separate profile, since pages remember the theme.
    const name = `${basename(file)}, ${events} events, ${shape}`;
    await withBrowser(async (context) => {
      try {
        await use(context, file, events, shape, options);
        await endOfTest();
      } catch (error) {
        console.log(`FAIL ${name}: ${error.stack ?? error}`);
        for (const line of await endOfTest()) console.log(`     ${line}`);
        process.exitCode = 1;
        return;
      }
      console.log(`ok ${name}`);
    }, options);
  }
}
