// The default entry of the package: the WebAssembly file is fetched from beside this module. Vite and
// webpack recognise the expression with `import.meta.url`, and copy the file. See asx.d.ts for the
// interface.

import { startWith } from "./runtime.js";

export { Runtime } from "./runtime.js";
export { Task } from "./task.js";

/** Loads the module and starts the runtime of this page or worker. */
export function start(options) {
  return startWith(options, () => new URL("./wasm/asx_bg.wasm", import.meta.url));
}
