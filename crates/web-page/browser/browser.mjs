// A headless Chromium for tests, or Firefox where it is asked for, closed and cleaned up whatever
// happens.

import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const address = process.env.ASX_WEB_ADDRESS;
export const out = process.env.ASX_WEB_OUT;
mkdirSync(out, { recursive: true });

const modules = createRequire(join(process.env.ASX_WEB_MODULES, "index.js"));
/** Firefox as it comes, over WebDriver BiDi; Playwright knows only one that was changed for it. */
export const firefox = process.env.ASX_WEB_BROWSER === "firefox";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How often a browser is launched before that is an error. */
const LAUNCHES = 4;
/**
 * How long the driver waits for anything: a launch, a page, a condition. Only what will never come
 * takes that long, so a slow machine fails nothing.
 */
const PATIENCE_MS = 180_000;
/** The same for one call into a page: a whole test may be one. */
const CALL_MS = 600_000;

/** Runs `body` with a browser over a profile of its own. */
export const withBrowser = firefox ? withFirefox : withChromium;

/** Launches a browser. No test is about launches: one that fails is told, and tried again. */
async function launched(launch) {
  for (let nth = 1; ; nth += 1) {
    try {
      return await launch();
    } catch (error) {
      console.log(`launch ${nth} of ${LAUNCHES} failed: ${error.stack ?? error}`);
      if (nth === LAUNCHES) throw error;
    }
    await new Promise((next) => setTimeout(next, 1000 * nth));
  }
}

async function withFirefox(body) {
  const { default: puppeteer } = await import(pathToFileURL(modules.resolve("puppeteer-core")).href);
  const browser = await launched(() =>
    puppeteer.launch({
      browser: "firefox",
      executablePath: process.env.ASX_FIREFOX ?? "/usr/bin/firefox-esr",
      headless: true,
      timeout: PATIENCE_MS,
      protocolTimeout: CALL_MS,
    }),
  );
  try {
    return await body(browser);
  } finally {
    await browser.close();
  }
}

async function withChromium(body, options = {}) {
  const { chromium } = modules("playwright-core");
  const profiles = [];
  let context;
  try {
    context = await launched(() => {
      const profile = mkdtempSync(join(tmpdir(), "asx-web-"));
      profiles.push(profile);
      return chromium.launchPersistentContext(profile, {
        executablePath: process.env.ASX_CHROMIUM ?? "/usr/bin/chromium",
        headless: true,
        args: FLAGS,
        viewport: { width: 1280, height: 800 },
        timeout: PATIENCE_MS,
        ...options,
      });
    });
    context.setDefaultTimeout(PATIENCE_MS);
    return await body(context);
  } finally {
    await context?.close();
    for (const profile of profiles) rmSync(profile, { recursive: true, force: true });
  }
}

/** The pages of the test that runs, each with what it said. */
let watched = [];

/** A page that is waited for, and whose words are kept in case the test fails. */
export function watch(page) {
  page.setDefaultTimeout(PATIENCE_MS);
  const errors = [];
  const said = [];
  page.on("pageerror", (error) => {
    errors.push(String(error));
    said.push(`uncaught: ${error.stack ?? error}`);
  });
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("crash", () => said.push("the page crashed"));
  page.on("requestfailed", (request) => said.push(`not loaded: ${request.url()}`));
  watched.push({ page, said });
  return { page, errors };
}

/** A page whose errors fail the test. */
export async function open(context, path) {
  const opened = watch(await context.newPage());
  await opened.page.goto(`${address}/${path}`);
  return opened;
}

/** What the pages of a test said, a line each. Those pages that it left open are closed. */
export async function endOfTest() {
  const pages = watched;
  watched = [];
  const lines = pages.flatMap(({ page, said }) => [
    `page ${page.url()}${said.length === 0 ? ", which said nothing" : ""}`,
    ...said.map((line) => `  ${line}`),
  ]);
  for (const { page } of pages) await (page.isClosed() || page.close().catch(() => {}));
  return lines;
}
