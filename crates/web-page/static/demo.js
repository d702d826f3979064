// The page of the show: it only looks at the runtime and passes on what people press.

import init, { Demo, report, spin } from "./page/page.js";
import { record, replay } from "./tape.js";
import { stopped } from "./words.js";

const at = (id) => document.getElementById(id);
const POLLS = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 3000];
const LANES = ["cancel", "timed", "ready"];
const WINDOW = 10_000;

await init();
// The runtime of the show; while it is on tape, calls go through the tape.
let demo = new Demo();
let call = (name, ...args) => demo[name](...args);
const perMicro = calibrate();

function calibrate() {
  // The best of several: others may be using the processor.
  let best = 0;
  for (let n = 0; n < 6; n += 1) {
    const start = performance.now();
    spin(2_000_000);
    best = Math.max(best, 2_000_000 / ((performance.now() - start) * 1000));
  }
  return best;
}

const rounds = () => Math.max(1, Math.round(POLLS[at("poll").value] * perMicro));
// About two seconds of work, whatever a poll takes.
const polls = () => Math.max(4, Math.round(30_000 / POLLS[at("poll").value]));

function settings() {
  const steps = 2 ** at("steps").value;
  const slice = Number(at("slice").value);
  const naive = at("naive").checked;
  at("poll-out").textContent = `${POLLS[at("poll").value]} µs`;
  at("steps-out").textContent = naive ? "no number of steps" : `${steps} steps`;
  at("slice-out").textContent = naive ? "no time" : `${slice} ms`;
  call("configure", steps, slice, naive);
}
for (const id of ["poll", "steps", "slice", "naive"]) at(id).addEventListener("input", settings);
settings();

at("compute").onclick = () => call("compute", 64, polls(), rounds(), 0);
at("timed").onclick = () => call("compute", 16, polls(), rounds(), 3000);
at("family").onclick = () => call("family", 8, rounds());
at("pressure").onclick = () => call("cancel_pressure", 300, 20, rounds());
at("cancel").onclick = () => say(stopped(call("cancel_all")));
at("tick").onclick = () => (at("ticks").textContent = Number(at("ticks").textContent) + 1);

function say(text, kind = "") {
  at("status").textContent = text;
  at("status").className = kind;
}

// Lanes.
for (const lane of LANES) {
  const row = document.createElement("div");
  row.className = "lane";
  row.innerHTML = `<span>${lane}</span><span class="bar"><i></i></span><b>0</b>`;
  row.querySelector("i").style.background = `var(--${lane})`;
  row.dataset.lane = lane;
  at("lanes").append(row);
}

function showLanes(stats) {
  for (const lane of LANES) {
    const row = at("lanes").querySelector(`[data-lane="${lane}"]`);
    row.querySelector("b").textContent = stats[lane];
    row.querySelector("i").style.width = `${100 * (1 - 1 / (1 + stats[lane] / 24))}%`;
  }
  const [cancel, timed, ready] = stats.done;
  polled.add(stats.done);
  at("pump").textContent =
    `turn ${stats.turn}, drain ${stats.batch}; polled ${cancel} cancelled, ${timed} timed, ` +
    `${ready} ready; ${stats.timers} timers`;
}

/** A pen for a canvas of that height, cleared, and its width. */
function penOf(canvas, height) {
  const scale = devicePixelRatio;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * scale)) {
    [canvas.width, canvas.height] = [Math.round(width * scale), height * scale];
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return [pen, width];
}

// What was polled in each frame, lane upon lane.
class History {
  constructor(canvas) {
    Object.assign(this, { canvas, before: null, points: [] });
  }

  add(done) {
    // Another runtime begins anew.
    const goesOn = this.before?.every((count, lane) => count <= done[lane]);
    const polls = LANES.map((_, lane) => (goesOn ? done[lane] - this.before[lane] : 0));
    this.before = done;
    if (polls.some((count) => count > 0)) this.points.push([performance.now(), polls]);
  }

  draw() {
    const end = performance.now();
    while (this.points.length > 0 && this.points[0][0] < end - WINDOW) this.points.shift();
    const height = 120;
    const [pen, width] = penOf(this.canvas, height);
    const sum = (polls) => polls.reduce((sum, count) => sum + count, 0);
    const most = this.points.reduce((most, [, polls]) => Math.max(most, sum(polls)), 1);
    for (const [time, polls] of this.points) {
      let bottom = height;
      for (const [lane, count] of polls.entries()) {
        const tall = (count / most) * (height - 4);
        pen.fillStyle = resolve(`--${LANES[lane]}`);
        pen.fillRect(width - ((end - time) / WINDOW) * width, bottom - tall, 3, tall);
        bottom -= tall;
      }
    }
  }
}
const polled = new History(at("polled-graph"));

// Graphs: what input and frames had to wait.
class Graph {
  constructor(canvas, now, worst, limit) {
    Object.assign(this, { canvas, now, worst, limit, points: [] });
  }

  add(value) {
    this.points.push([performance.now(), value]);
    this.now.textContent = value.toFixed(1);
  }

  draw() {
    const end = performance.now();
    while (this.points.length > 0 && this.points[0][0] < end - WINDOW) this.points.shift();
    const most = this.points.reduce((most, [, value]) => Math.max(most, value), 0);
    this.worst.textContent = most.toFixed(0);
    const height = 90;
    const [pen, width] = penOf(this.canvas, height);
    const top = Math.max(this.limit * 1.6, most);
    const y = (value) => height - 2 - (value / top) * (height - 14);
    pen.strokeStyle = resolve("--line");
    pen.setLineDash([4, 4]);
    pen.beginPath();
    pen.moveTo(0, y(this.limit));
    pen.lineTo(width, y(this.limit));
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = resolve("--soft");
    pen.font = "11px system-ui";
    pen.fillText(`${this.limit} ms`, 2, y(this.limit) - 3);
    for (const [time, value] of this.points) {
      pen.fillStyle = resolve(value > this.limit ? "--cancel" : "--ready");
      const x = width - ((end - time) / WINDOW) * width;
      pen.fillRect(x, y(value), 2, height - y(value));
    }
  }
}

// A custom property may hold light-dark(), which a canvas cannot read.
const probe = document.createElement("span");
probe.hidden = true;
document.body.append(probe);
const colours = new Map();
function resolve(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colours.clear());

const input = new Graph(at("input-graph"), at("input-now"), at("input-worst"), 50);
const frames = new Graph(at("frame-graph"), at("frame-now"), at("frame-worst"), 34);
for (const kind of ["pointermove", "pointerdown", "keydown", "click"]) {
  addEventListener(kind, (event) => input.add(Math.max(0, performance.now() - event.timeStamp)), true);
}

// The tree: a region, its tasks side by side, and the regions inside. Of many tasks the first are
// shown, so that what is inside has room too.
const MOST = 15;

function element(kind, className, ...content) {
  const made = document.createElement(kind);
  made.className = className;
  made.append(...content);
  return made;
}

function showTask(task) {
  const waits = task.activity === "Waiting" && task.waits_for;
  const does = waits ? `waits for ${task.waits_for}` : task.activity.toLowerCase();
  const state = task.state === "Running" ? does : `${task.state}, ${does}`;
  const line = element("div", "task", `${task.name ?? `task ${task.id}`} `, element("span", "state", state));
  line.title = `task ${task.id}`;
  return line;
}

function showTree(dump) {
  const children = Map.groupBy(dump.regions, (region) => region.parent);
  const list = (region) => {
    const tasks = region.tasks.slice(0, MOST).map(showTask);
    const rest = region.tasks.length - tasks.length;
    if (rest > 0) tasks.push(element("div", "task more", `and ${rest} more`));
    const inside = (children.get(region.id) ?? []).slice(0, MOST).map(list);
    const label = element("b", "", `region ${region.id} `);
    const state = element("span", "state", region.state);
    return element("li", "", label, state, element("div", "tasks", ...tasks), element("ul", "", ...inside));
  };
  at("tree").replaceChildren(element("ul", "", ...(children.get(null) ?? []).map(list)));
}

// Record, replay, download, report.
let recording = null;
let recorded = null;
// The runtime that is being shown again, if one is.
let again = null;
at("record").onclick = () => {
  if (recording === null) startRecording();
  else stopRecording();
  at("record").setAttribute("aria-pressed", recording !== null);
  at("record").textContent = recording === null ? "Record" : "Stop recording";
};

function startRecording() {
  // From the beginning: a runtime that already lives has a past that is not on the tape.
  demo.free();
  recording = record((handles) => new Demo(handles));
  demo = recording.runtime;
  call = recording.call;
  settings();
  say("Recording, from a fresh start: every input of the runtime goes on tape");
}

function stopRecording() {
  recording.stop();
  recorded = { tape: recording.tape, digest: demo.digest(), events: demo.events() };
  recording = null;
  at("replay").disabled = false;
  say(`Recorded ${recorded.tape.inputs.length} inputs, ${recorded.events} events, ` +
    `digest ${recorded.digest}`);
}

// Runs the tape in a second runtime, and holds its digest against the first one's.
at("replay").onclick = async () => {
  at("replay").disabled = true;
  say("Running it again");
  let began = performance.now();
  const pause = async (runtime) => {
    again = runtime;
    if (performance.now() - began < 8) return;
    await new Promise((next) => setTimeout(next));
    began = performance.now();
  };
  const { runtime, wrong } = await replay(recorded.tape, (handles) => new Demo(handles), pause);
  const [digest, events] = [runtime.digest(), runtime.events()];
  const same = !wrong && digest === recorded.digest && events === recorded.events;
  if (same) {
    say(`Run again: ${events} events, digest equal: ${digest}`, "good");
  } else {
    const found = `${digest} of ${events} events, recorded ${recorded.digest} of ${recorded.events}`;
    say(`REPLAY_MISMATCH: ${wrong ?? "another digest"}: ${found}`, "bad");
  }
  again = null;
  runtime.free();
  at("replay").disabled = false;
};
at("download").onclick = () => save("asx-demo.jsonl", demo.trace(), "application/jsonl");
at("report").onclick = () => {
  const page = new Blob([report(demo.trace())], { type: "text/html" });
  open(URL.createObjectURL(page), "_blank");
};

function save(name, data, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data], { type }));
  link.download = name;
  link.click();
  say(`${name}: ${data.length} bytes`);
}

let last = performance.now();
let looked = 0;
function frame(now) {
  frames.add(Math.max(0, now - last));
  last = now;
  const shown = again ?? demo;
  showLanes(JSON.parse(shown.stats()));
  if (now - looked > 250) {
    looked = now;
    showTree(JSON.parse(shown.tree()));
    for (const graph of [polled, input, frames]) graph.draw();
  }
  requestAnimationFrame(frame);
}
// The first frame is drawn before the page says that it is ready: all figures are there then.
frame(last);
globalThis.demoReady = true;
