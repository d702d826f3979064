// Validation of arguments, before any state changes. An invalid value throws an error named
// `INVALID_ARGUMENT` whose message names the argument.

export function named(name, message) {
  const error = new Error(message);
  error.name = name;
  return error;
}

export const invalid = (message) => named("INVALID_ARGUMENT", message);

/** A function. */
export function callable(value, name) {
  if (typeof value !== "function") throw invalid(`${name}: not a function`);
  return value;
}

/** A number of milliseconds. */
export function span(value, name) {
  if (typeof value === "number" && value >= 0 && value < Infinity) return value;
  throw invalid(`${name}: not a number of milliseconds from 0`);
}

/** A whole number. */
export function count(value, name, least = 0, most = Number.MAX_SAFE_INTEGER) {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw invalid(`${name}: not a whole number from ${least} to ${most}`);
}

/** Throws if an object has other keys: a misspelt option would be ignored silently. */
function onlyKeys(value, name, known) {
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    throw invalid(`${name}.${key}: unknown; ${name} may have ${known.join(", ")}`);
  }
}

const isObject = (value) => typeof value === "object" && value !== null;

const SETTINGS = ["capabilities", "burst", "sliceMs", "journal", "module"].concat(
  ["maxTimerMs", "maxWheelMs", "causeDepth", "causeBytes", "tieBreak"],
);

/** The options of `start`, all of them. */
export function settingsOf(options) {
  if (!isObject(options)) throw invalid("options: not an object");
  onlyKeys(options, "options", SETTINGS);
  const { capabilities, burst = 256, sliceMs = 4, journal = 0, module } = options;
  const { limits, taskKey } = limitsOf(options);
  count(burst, "burst", 1, 2 ** 32 - 1);
  count(journal, "journal", 0, 2 ** 24);
  if (!(typeof sliceMs === "number" && sliceMs > 0)) {
    throw invalid("sliceMs: not a number of milliseconds above 0");
  }
  if (capabilities !== undefined) checkCapabilities(capabilities);
  return { capabilities, burst, sliceMs, journal, limits, taskKey, module };
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Limits of timers and chains of causes as the module takes them, and the order of equal tasks. */
function limitsOf(options) {
  const { maxTimerMs = 7 * DAY_MS, maxWheelMs = DAY_MS } = options;
  const { causeDepth = 16, causeBytes = 4096, tieBreak = "fifo" } = options;
  for (const [name, ms] of Object.entries({ maxTimerMs, maxWheelMs })) {
    const valid = typeof ms === "number" && ms >= 0;
    if (!valid) throw invalid(`${name}: not a number of milliseconds from 0, nor Infinity`);
  }
  count(causeDepth, "causeDepth", 1, 2 ** 32 - 1);
  count(causeBytes, "causeBytes", 0, 2 ** 32 - 1);
  if (tieBreak !== "fifo" && tieBreak !== "taskKey") {
    throw invalid('tieBreak: neither "fifo" nor "taskKey"');
  }
  const limits = Float64Array.of(maxTimerMs, maxWheelMs, causeDepth, causeBytes);
  return { limits, taskKey: tieBreak === "taskKey" };
}

/** Facilities that every runtime needs. The others are denied if they are missing. */
const NEEDED = ["microtask", "abortController"];
const FUNCTIONS = ["clock", "entropy", "post", "microtask", "abortController", "fetch"];

function checkCapabilities(given) {
  if (!isObject(given)) throw invalid("capabilities: not an object");
  onlyKeys(given, "capabilities", [...FUNCTIONS, "timer"]);
  for (const name of FUNCTIONS) {
    const value = given[name];
    if (value !== undefined && value !== null) callable(value, `capabilities.${name}`);
    else if (NEEDED.includes(name)) throw invalid(`capabilities.${name}: nothing can run without it`);
  }
  const { timer } = given;
  if (timer === undefined || timer === null) return;
  if (!isObject(timer)) throw invalid("capabilities.timer: not an object");
  callable(timer.set, "capabilities.timer.set");
  callable(timer.clear, "capabilities.timer.clear");
}

/** The options of `spawn`: nothing, a name, or an object. */
export function taskOptionsOf(options) {
  if (options === undefined || options === null) return {};
  if (typeof options === "string") return { name: options };
  if (!isObject(options)) throw invalid("options: not a name or an object");
  onlyKeys(options, "options", ["name", "priority", "deadlineMs", "signal"]);
  const { name, priority, deadlineMs, signal } = options;
  const given = (value) => value !== undefined && value !== null;
  if (given(name) && typeof name !== "string") throw invalid("name: not a text");
  if (given(priority)) count(priority, "priority", 0, 255);
  if (given(deadlineMs)) span(deadlineMs, "deadlineMs");
  const listens = (signal) => isObject(signal) && "aborted" in signal && "addEventListener" in signal;
  if (given(signal) && !listens(signal)) throw invalid("signal: not an AbortSignal");
  return { name, priority, deadlineMs, signal };
}

/** The options of `shutdown`. */
export function graceOf(options) {
  if (!isObject(options)) throw invalid("options: not an object");
  onlyKeys(options, "options", ["softMs", "hardMs"]);
  const { softMs = 0, hardMs = 1000 } = options;
  return [span(softMs, "softMs"), span(hardMs, "hardMs")];
}
