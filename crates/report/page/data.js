// The data: columns are decoded to arrays of numbers, and everything gets a text.
const raw = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

// The teardown of a failed run is collapsed until it is requested: the data after its first event is
// removed, and intervals that were open then extend to the end.
const foldAt = (end) => {
  const groups = (list, size, keep) => {
    const kept = [];
    for (let k = 0; k < list.length; k += size) {
      const group = keep(list.slice(k, k + size));
      if (group) kept.push(...group);
    }
    return kept;
  };
  // One more than the end: the interval has no end.
  const until = (to) => Math.min(to, end + 1);
  const spansOf = (flat) => groups(flat, 3, ([state, from, to]) => from < end && [state, from, until(to)]);
  for (const key of ["kind", "time"]) raw[key].length = end;
  raw.about.length = 4 * end;
  raw.seq = groups(raw.seq, 2, (jump) => jump[0] < end && jump);
  raw.polls = groups(raw.polls, 2, ([from, to]) => from < end && [from, Math.min(to, end)]);
  raw.links = groups(raw.links, 3, (link) => link[1] < end && link[2] < end && link);
  for (const life of [...raw.tasks, ...raw.regions]) {
    life[5] = spansOf(life[5]);
    const last = life[5][life[5].length - 3];
    if (last !== "Completed" && last !== "Closed") life[4] = "";
  }
  for (const channel of raw.channels) channel[4] = groups(channel[4], 4, (level) => level[0] < end && level);
  for (const socket of raw.sockets) socket[2] = spansOf(socket[2]);
  for (const interval of [...raw.timers, ...raw.obligations, ...raw.waits]) {
    if (interval[5] !== null && interval[5] >= end) [interval[5], interval[6]] = [null, ""];
  }
  for (const key of ["parked", "held"]) {
    raw[key] = raw[key].filter((stretch) => stretch[1] <= end);
    for (const stretch of raw[key]) stretch[2] = until(stretch[2]);
  }
  for (const key of ["choices", "hosts"]) raw[key] = raw[key].filter((each) => each[0] <= end);
  for (const mark of raw.marks) if (mark[0] >= end) mark[0] = null;
};
const torn = raw.teardown === null ? 0 : raw.kind.length - raw.teardown;
const folded = torn > 0 && location.hash !== "#teardown";
if (folded) foldAt(raw.teardown);
const count = raw.kind.length;

// Texts of a trace are shown unchanged, except for characters that hide or garble other text.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;
const visible = (text) => String(text).replace(HIDDEN, (c) => {
  const code = c.charCodeAt(0);
  if (code < 32) return String.fromCharCode(0x2400 + code);
  return "\\u{" + code.toString(16) + "}";
});

const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
};

const kindNames = raw.kinds.map((kind) => kind[0]);
const kindFields = raw.kinds.map((kind) => {
  const fields = [];
  for (let at = 1; at < kind.length; at += 2) fields.push([kind[at], kind[at + 1]]);
  return fields;
});
const kindOf = Uint8Array.from(raw.kind);
const about = Uint32Array.from(raw.about);
const fieldAt = new Uint32Array(count + 1);
for (let i = 0; i < count; i++) fieldAt[i + 1] = fieldAt[i] + kindFields[kindOf[i]].length;
const times = new Float64Array(count + 1);
for (let i = 0, now = 0; i < count; i++) times[i] = now += Number(raw.time[i]);
times[count] = count ? times[count - 1] : 0;

const kindName = (i) => kindNames[kindOf[i]];
const taskOf = (i) => about[4 * i] - 1;
const regionOf = (i) => about[4 * i + 1] - 1;
const timerOf = (i) => about[4 * i + 2] - 1;
const channelOf = (i) => about[4 * i + 3] - 1;

// The number of an event. The data has it only where it does not follow the previous one.
const jumps = [];
for (let at = 0; at < raw.seq.length; at += 2) jumps.push([raw.seq[at], raw.seq[at + 1]]);
const seqText = (i) => {
  let low = 0, high = jumps.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (jumps[middle][0] <= i) low = middle; else high = middle - 1;
  }
  const [at, seq] = jumps[low];
  return typeof seq === "string" ? String(BigInt(seq) + BigInt(i - at)) : String(seq + i - at);
};

const timeText = (nanos) => {
  const round = (value, digits) => String(Number(value.toFixed(digits)));
  if (nanos < 1e3) return round(nanos, 0) + " ns";
  if (nanos < 1e6) return round(nanos / 1e3, 3) + " µs";
  if (nanos < 1e9) return round(nanos / 1e6, 6) + " ms";
  return round(nanos / 1e9, 9) + " s";
};

const named = (word, thing) => visible(thing[1] || word + " " + thing[0]);
const names = {
  task: raw.tasks.map((task) => named("task", task)),
  region: raw.regions.map((region) => named("region", region)),
  timer: raw.timers.map((timer) => named("timer", timer)),
  channel: raw.channels.map((channel) => named("channel", channel)),
  socket: raw.sockets.map((socket) => named("socket", socket)),
};
const socketByNumber = new Map(raw.sockets.map((socket, at) => [String(socket[0]), at]));
const subjects = (i) => {
  const list = [];
  const add = (word, at) => { if (at >= 0) list.push([word, names[word][at]]); };
  add("task", taskOf(i));
  add("region", regionOf(i));
  add("timer", timerOf(i));
  add("channel", channelOf(i));
  add("socket", socketOf(i));
  return list;
};

const regionByNumber = new Map(raw.regions.map((region, at) => [String(region[0]), at]));
const fields = (i) => kindFields[kindOf[i]].map(([name, type], at) => {
  const value = raw.fields[fieldAt[i] + at];
  if (type === "w") return [name, raw.words[value]];
  if (type === "f") return [name, value ? "yes" : "no"];
  if (value === null) return [name, "none"];
  if (name === "deadline") return [name, timeText(Number(value))];
  if (name === "parent" && regionByNumber.has(String(value))) {
    return [name, names.region[regionByNumber.get(String(value))]];
  }
  return [name, String(value)];
});
// The position of the field with this name, for every kind.
const placesOf = new Map();
const rawField = (i, name) => {
  if (!placesOf.has(name)) placesOf.set(name, kindFields.map((list) => list.findIndex((known) => known[0] === name)));
  const at = placesOf.get(name)[kindOf[i]];
  return at < 0 ? undefined : raw.fields[fieldAt[i] + at];
};
const word = (i, name) => raw.words[rawField(i, name)];
const socketOf = (i) => {
  const number = rawField(i, "socket");
  return number === undefined ? -1 : socketByNumber.get(String(number));
};
// Describes a socket event.
const socketWords = (i) => {
  const kind = kindName(i);
  const bytes = () => rawField(i, "bytes") + (rawField(i, "bytes") === 1 ? " byte" : " bytes");
  const ways = { read: "to read", write: "to write", both: "to read and to write" };
  if (kind === "socket_opened") return "opened: " + word(i, "how");
  if (kind === "io_waiting") return "waits " + ways[word(i, "way")];
  if (kind === "io_left") return "no longer waits " + ways[word(i, "way")];
  if (kind === "io_done") return word(i, "op") === "connect" ? "connected" : word(i, "op") + " " + bytes();
  if (kind === "io_failed") return word(i, "op") + " failed: " + word(i, "error");
  if (kind === "socket_ended") return "ended: " + word(i, "way");
  return "closed";
};

// Describes an event in one line.
const gist = (i) => {
  const kind = kindName(i);
  if (kindGroups[kindOf[i]] === "socket") return socketWords(i);
  if (rawField(i, "from") !== undefined) return word(i, "from") + " → " + word(i, "to");
  if (kind === "scheduler_step_decision") return word(i, "lane") + ", worker " + rawField(i, "worker");
  if (kind === "cancel_witness") return word(i, "phase") + ", " + word(i, "kind");
  if (kind === "task_ended" || kind === "region_outcome") return word(i, "outcome");
  const parts = fields(i).filter(([, value]) => value !== "no");
  return parts.map(([name, value]) => (value === "yes" ? name : name + " " + value)).join(", ");
};

const PROBLEMS = new Set(["cleanup_overrun", "cleanup_error", "stale_wake", "budget_exhausted",
  "resource_exhausted", "unresolved_obligations", "send_refused", "grace_expired", "io_failed"]);
const groupOf = (name) => {
  if (name.startsWith("socket") || name.startsWith("io_")) return "socket";
  if (PROBLEMS.has(name)) return "problem";
  if (name === "scheduler_step_decision") return "ready";
  if (name === "cancel_witness" || name === "region_cancelled" || name === "soft_stop") return "cancel";
  if (name.startsWith("region")) return "region";
  if (name.startsWith("task")) return "task";
  if (name.startsWith("timer")) return "timer";
  if (name.startsWith("obligation")) return "obligation";
  return "channel";
};
const kindGroups = kindNames.map(groupOf);
const isDecision = kindNames.map((name) => name === "scheduler_step_decision");

// The four phases of a cancel, which determine the colour of a task's state.
const PHASES = { Requested: "CancelRequested", Cancelling: "Cancelling", Finalizing: "Finalizing", Completed: "Completed" };
const toneOf = (i) => {
  const name = kindName(i);
  if (name === "cancel_witness") return PHASES[word(i, "phase")];
  if (name === "task_ended" || name === "region_outcome") return word(i, "outcome");
  if (name === "scheduler_step_decision") return word(i, "lane");
  return kindGroups[kindOf[i]];
};

const linkCount = raw.links.length / 3;
const linkEnds = Int32Array.from(raw.links);
const LINKS = ["message", "wake", "pass"];
const linksOf = new Map();
for (let at = 0; at < linkCount; at++) {
  for (const end of [linkEnds[3 * at + 1], linkEnds[3 * at + 2]]) {
    if (!linksOf.has(end)) linksOf.set(end, []);
    linksOf.get(end).push(at);
  }
}
const marksAt = new Map();
for (const mark of raw.marks) {
  if (mark[0] === null) continue;
  if (!marksAt.has(mark[0])) marksAt.set(mark[0], []);
  marksAt.get(mark[0]).push(mark);
}
const before = (list) => {
  const found = new Map();
  for (const item of list) {
    if (!found.has(item[0])) found.set(item[0], []);
    found.get(item[0]).push(item);
  }
  return found;
};
const choicesBefore = before(raw.choices);
const hostsBefore = before(raw.hosts);
const choiceText = (choice) => {
  const [, index, point, subject, many, picked] = choice;
  const whose = subject === null ? "" : " of " + subject;
  return "choice " + index + ": " + visible(point) + whose + ": option " + picked + " of " + many;
};
const hostText = (host) => {
  let text = "host " + host[1] + ": " + visible(host[2]);
  for (let at = 3; at < host.length; at += 2) text += " " + visible(host[at]) + "=" + visible(host[at + 1]);
  return text;
};
