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

/** Runs `body` with a browser over a profile of its own. */
export const withBrowser = firefox ? withFirefox : withChromium;

async function withFirefox(body) {
  const { default: puppeteer } = await import(pathToFileURL(modules.resolve("puppeteer-core")).href);
  const browser = await puppeteer.launch({
    browser: "firefox",
    executablePath: process.env.ASX_FIREFOX ?? "/usr/bin/firefox-esr",
    headless: true,
  });
  try {
    return await body(browser);
  } finally {
    await browser.close();
  }
}

async function withChromium(body, options = {}) {
  const { chromium } = modules("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "asx-web-"));
  let context;
  try {
    context = await chromium.launchPersistentContext(profile, {
      executablePath: process.env.ASX_CHROMIUM ?? "/usr/bin/chromium",
      headless: true,
      args: FLAGS,
      viewport: { width: 1280, height: 800 },
      ...options,
    });
    return await body(context);
  } finally {
    await context?.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/** A page whose errors fail the test. */
export async function open(context, path) {
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${address}/${path}`);
  return { page, errors };
}
