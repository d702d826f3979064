import { start } from "asx-web";
import { show } from "./app.js";

start().then(show);
