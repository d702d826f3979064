// The npm package in bundled applications, and in Vite's development server. The last line is the
// number of applications.

import { strict as assert } from "node:assert";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { address, watch, withBrowser } from "./browser.mjs";

const app = process.env.ASX_WEB_APP;
const BUNDLES = ["vite", "webpack", "esbuild", "esbuild-file"];

/** Starts Vite's development server. */
async function development() {
  const vite = createRequire(join(app, "package.json")).resolve("vite");
  const { createServer, createLogger } = await import(pathToFileURL(vite).href);
  const warnings = [];
  const note = (text) => void warnings.push(text);
  const customLogger = { ...createLogger("silent"), warn: note, warnOnce: note, error: note };
  const options = { root: app, customLogger, server: { host: "127.0.0.1", port: 0 } };
  const server = await createServer(options);
  await server.listen();
  const { port } = server.httpServer.address();
  return { server, warnings, url: `http://127.0.0.1:${port}/` };
}

/** Opens an application, whose task must run without a warning of the page. */
async function runs(context, name, url) {
  const { page, errors } = watch(await context.newPage());
  const warnings = [];
  page.on("console", (message) => {
    if (["warning", "error"].includes(message.type())) warnings.push(message.text());
  });
  page.on("requestfailed", (request) => warnings.push(`not loaded: ${request.url()}`));
  await page.goto(url);
  const done = page.waitForFunction(() => document.body.dataset.done === "yes", null, { timeout: 30_000 });
  await done.catch((error) => assert.fail(`${name}: ${error}: ${[...errors, ...warnings].join("; ")}`));
  assert.equal((await page.textContent("body")).trim(), "the answer is 42", name);
  assert.deepEqual([...errors, ...warnings], [], name);
  await page.close();
  console.log(`ok   ${name}`);
}

await withBrowser(async (context) => {
  for (const name of BUNDLES) await runs(context, name, `${address}/${name}/`);
  const { server, warnings, url } = await development();
  try {
    await runs(context, "vite, development server", url);
    assert.deepEqual(warnings, []);
  } finally {
    await server.close();
  }
});
console.log(`${BUNDLES.length + 1} bundled applications ran`);
process.exit(0);
