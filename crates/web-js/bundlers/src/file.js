import { start } from "asx-web";
import wasm from "asx-web/asx_bg.wasm";
import { show } from "./app.js";

start({ module: new URL(wasm, import.meta.url) }).then(show);
