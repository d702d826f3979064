// The host `web` of `asx parity`: scenarios from standard input, as a list of [file, text], run in
// a page of headless Chromium; their records to standard output, a line each.
//
//   node parity.mjs FOLDER      with FOLDER as `cargo xtask web` leaves it

import { join } from "node:path";
import { text } from "node:stream/consumers";
import { serve } from "./serve.mjs";

const folder = process.argv[2];
const server = await serve(join(folder, "dist"));
process.env.ASX_WEB_ADDRESS = server.address;
process.env.ASX_WEB_MODULES = join(folder, "npm", "node_modules");
process.env.ASX_WEB_OUT = join(folder, "out");
const { open, withBrowser } = await import("./browser.mjs");

const fixtures = JSON.parse(await text(process.stdin));
try {
  await withBrowser(async (context) => {
    const { page, errors } = await open(context, "blank.html");
    await page.waitForFunction(() => globalThis.ready);
    await page.evaluate(async () => {
      globalThis.corpus = await import("./corpus/corpus.js");
      await corpus.default();
    });
    for (const [file, text] of fixtures) {
      const lines = await page.evaluate(
        ([file, text]) => corpus.run_text(file, text, "window", "web"),
        [file, text],
      );
      process.stdout.write(lines);
    }
    if (errors.length > 0) throw new Error(errors.join("; "));
  });
} finally {
  server.close();
}
