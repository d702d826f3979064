import { start } from "asx-web/inline";
import { show } from "./app.js";

start().then(show);
