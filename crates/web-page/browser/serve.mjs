// A server for the files of a folder, on this machine only.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";

const KINDS = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** Serves until `close`; answers with the address. */
export async function serve(folder) {
  const root = normalize(folder + sep);
  const server = createServer(async (request, response) => {
    try {
      const path = normalize(join(root, new URL(request.url, "http://localhost").pathname));
      if (!path.startsWith(root)) throw new Error("outside");
      const body = await readFile(path);
      response.writeHead(200, { "content-type": KINDS[extname(path)] ?? "text/plain" }).end(body);
    } catch {
      response.writeHead(404).end("not found");
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const close = () => (server.close(), server.closeAllConnections());
  return { address: `http://127.0.0.1:${server.address().port}`, close };
}
