// The entry for bundlers that copy no files, such as esbuild: the WebAssembly module is part of this
// script. Otherwise the same as asx.js.

import { startWith } from "./runtime.js";
import { wasm } from "./wasm/bytes.js";

export { Runtime } from "./runtime.js";
export { Task } from "./task.js";

/** Starts the runtime of this page or worker. */
export function start(options) {
  return startWith(options, () => Uint8Array.from(atob(wasm), (char) => char.charCodeAt(0)));
}
