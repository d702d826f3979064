// The rows: workers, the tree of regions with their tasks, channels, host events.
let nextRow = 0;
const row = (type, name, parent, at) => {
  const made = { id: nextRow++, type, name, parent, at, children: [], open: true, events: [], place: -1,
    depth: parent ? parent.depth + 1 : 0, spans: [], polls: [], intervals: [], choices: [], parked: [] };
  if (parent) parent.children.push(made);
  return made;
};

const roots = [];
const everyRow = (list, visit) => list.forEach((each) => { visit(each); everyRow(each.children, visit); });
const root = (type, name, at) => {
  const made = row(type, name, null, at);
  roots.push(made);
  return made;
};

const workerRows = new Map();
const workerGroup = raw.deciders.length > 1 ? root("group", "Workers") : null;
for (const number of raw.deciders) {
  const name = "worker " + number;
  workerRows.set(String(number), workerGroup ? row("worker", name, workerGroup, number) : root("worker", name, number));
}

const regionRows = new Array(raw.regions.length);
const makeRegion = (at, below) => {
  if (regionRows[at]) return regionRows[at];
  const parent = raw.regions[at][2] - 1;
  // An unlawful trace may have a cycle of regions.
  const inside = parent >= 0 && !below.has(parent);
  const above = inside ? makeRegion(parent, below.add(at)) : null;
  if (regionRows[at]) return regionRows[at];
  const made = above ? row("region", names.region[at], above, at) : root("region", names.region[at], at);
  return regionRows[at] = made;
};
const taskRows = new Array(raw.tasks.length);
const strays = [];
const tasksIn = raw.regions.map(() => []);
raw.tasks.forEach((task, at) => (task[2] ? tasksIn[task[2] - 1] : strays).push(at));
// A region's own tasks come before its child regions.
const ordered = raw.regions.map((_, at) => at);
ordered.forEach((at) => makeRegion(at, new Set([at])));
regionRows.forEach((made, at) => {
  const inner = made.children;
  made.children = [];
  tasksIn[at].forEach((task) => { taskRows[task] = row("task", names.task[task], made, task); });
  made.children.push(...inner);
});
if (strays.length) {
  const group = root("group", "Tasks elsewhere");
  strays.forEach((task) => { taskRows[task] = row("task", names.task[task], group, task); });
}
const channelRows = new Array(raw.channels.length);
const channelGroup = raw.channels.length > 1 ? root("group", "Channels") : null;
raw.channels.forEach((_, at) => {
  const name = names.channel[at];
  channelRows[at] = channelGroup ? row("channel", name, channelGroup, at) : root("channel", name, at);
});
const socketGroup = raw.sockets.length > 1 ? root("group", "Sockets") : null;
const socketRows = raw.sockets.map((socket, at) => {
  const made = socketGroup ? row("socket", names.socket[at], socketGroup, at) : root("socket", names.socket[at], at);
  const flat = socket[2];
  for (let k = 0; k < flat.length; k += 3) made.spans.push([flat[k], flat[k + 1], flat[k + 2]]);
  return made;
});
if (raw.hosts.length) root("host", "Host");
let otherRow = null;

// The row of an event: its task's, else its region's, else that of its channel or socket.
const rowOf = new Array(count);
for (let i = 0; i < count; i++) {
  const task = taskOf(i), region = regionOf(i), channel = channelOf(i), socket = socketOf(i);
  const place = task >= 0 ? taskRows[task] : region >= 0 ? regionRows[region]
    : channel >= 0 ? channelRows[channel] : socket >= 0 ? socketRows[socket] : (otherRow = otherRow || root("other", "The whole run"));
  rowOf[i] = place;
  place.events.push(i);
  if (channel >= 0 && place !== channelRows[channel]) channelRows[channel].events.push(i);
  if (socket >= 0 && place !== socketRows[socket]) socketRows[socket].events.push(i);
  if (isDecision[kindOf[i]]) workerRows.get(String(rawField(i, "worker"))).events.push(i);
}

const takeSpans = (rows, lives) => lives.forEach((life, at) => {
  const flat = life[5];
  for (let k = 0; k < flat.length; k += 3) rows[at].spans.push([flat[k], flat[k + 1], flat[k + 2]]);
  rows[at].outcome = life[4];
  rows[at].finalizer = life[3] === 1;
});
takeSpans(taskRows, raw.tasks);
takeSpans(regionRows, raw.regions);
for (let k = 0; k < raw.polls.length; k += 2) {
  const poll = [raw.polls[k], raw.polls[k + 1]];
  const task = taskOf(poll[0]);
  if (task >= 0) taskRows[task].polls.push(poll);
  workerRows.get(String(rawField(poll[0], "worker"))).polls.push(poll);
}

// A collapsed region shows the polls of everything in it.
const pollsBelow = (each) => {
  const polls = [];
  everyRow(each.children, (inner) => { if (inner.type === "task") for (const poll of inner.polls) polls.push(poll); });
  return polls.sort((a, b) => a[0] - b[0]);
};

// A choice belongs to its worker, or to the worker that made the next decision.
for (const choice of raw.choices) {
  const [at, , , subject] = choice;
  const next = at < count && isDecision[kindOf[at]] ? rawField(at, "worker") : raw.deciders[0];
  const whose = workerRows.get(String(subject === null ? next : subject)) || workerRows.get(String(next));
  if (whose) whose.choices.push(choice);
}

// Timers, obligations and waits at sockets share the lower part of their owner's row, in up to three lines.
const takeIntervals = (list, type) => list.forEach((item) => {
  const [number, label, task, region, from, to, how] = item;
  const owner = task ? taskRows[task - 1] : region ? regionRows[region - 1] : rowOf[from];
  if (!owner || from >= count) return;
  const name = visible(label || type + " " + number);
  owner.intervals.push({ type, name, from, to: to === null ? count + 1 : to, how });
});
takeIntervals(raw.timers, "timer");
takeIntervals(raw.obligations, "obligation");
takeIntervals(raw.waits, "socket");
// The waits of a task, and the locks that it holds.
for (const [task, from, to, brief, whole] of raw.parked) {
  if (task) taskRows[task - 1].parked.push([from, to, visible(brief), whole.split("\n").map(visible).join("\n")]);
}
for (const [task, from, to, , whole] of raw.held) {
  const name = whole.split("\n").map(visible).join("\n");
  if (task) taskRows[task - 1].intervals.push({ type: "lock", name, from, to, how: to <= count ? "released" : "" });
}
everyRow(roots, (each) => {
  each.intervals.sort((a, b) => a.from - b.from);
  const ends = [-1, -1, -1];
  each.intervals.forEach((interval) => {
    let line = ends.findIndex((end) => end < interval.from);
    if (line < 0) line = ends.indexOf(Math.min(...ends));
    ends[line] = interval.to;
    interval.line = line;
  });
});

// The visible rows and events.
const hiddenKinds = new Set();
let query = [];
const parseQuery = (text) => {
  const terms = [];
  for (const [, key, quoted, plain] of text.matchAll(/(?:(\w+)=)?(?:"([^"]*)"|([^\s"]+))/g)) {
    terms.push([key ? key.toLowerCase() : "", (quoted !== undefined ? quoted : plain).toLowerCase(), quoted !== undefined]);
  }
  return terms;
};
const fits = (value, [, wanted, exact]) => {
  const lower = value.toLowerCase();
  return exact ? lower === wanted : lower.includes(wanted);
};
const eventFits = (i) => query.every((term) => {
  if (term[0] === "kind") return fits(kindName(i), term);
  if (term[0] === "worker") return String(rawField(i, "worker")) === term[1];
  if (term[0] === "event") return seqText(i) === term[1];
  const all = subjects(i);
  if (term[0]) return all.some(([word, name]) => word === term[0] && fits(name, term));
  return fits(kindName(i), term) || all.some(([, name]) => fits(name, term));
});
const rowTerms = () => query.filter((term) => ["", "task", "region", "channel", "socket", "worker"].includes(term[0]));
let filtered = Int32Array.from({ length: count }, (_, i) => i);
let rows = [];
const applyFilter = () => {
  if (query.length || hiddenKinds.size) {
    const keep = [];
    for (let i = 0; i < count; i++) {
      if (!hiddenKinds.has(kindOf[i]) && (!query.length || eventFits(i))) keep.push(i);
    }
    filtered = Int32Array.from(keep);
  } else {
    filtered = Int32Array.from({ length: count }, (_, i) => i);
  }
  const terms = rowTerms();
  const touched = new Set();
  if (query.length) {
    for (const i of filtered) {
      touched.add(rowOf[i]);
      if (channelOf(i) >= 0) touched.add(channelRows[channelOf(i)]);
      if (socketOf(i) >= 0) touched.add(socketRows[socketOf(i)]);
      if (isDecision[kindOf[i]]) touched.add(workerRows.get(String(rawField(i, "worker"))));
    }
  }
  const direct = (each) => terms.length && terms.every((term) =>
    (!term[0] || term[0] === each.type) && fits(term[0] === "worker" ? String(each.at) : each.name, term));
  const mark = (each) => {
    each.wanted = !query.length || touched.has(each) || direct(each);
    each.children.forEach((child) => { if (mark(child)) each.wanted = true; });
    return each.wanted;
  };
  roots.forEach(mark);
  layRows();
};
const layRows = () => {
  everyRow(roots, (each) => { each.place = -1; });
  rows = [];
  const lay = (each) => {
    if (!each.wanted) return;
    each.place = rows.length;
    rows.push(each);
    if (each.open) each.children.forEach(lay);
    else if (each.type === "region" && !each.polls.length) each.polls = pollsBelow(each);
  };
  roots.forEach(lay);
};
// The row itself, or the collapsed row that contains it.
const shownRow = (each) => {
  while (each && each.place < 0) each = each.parent;
  return each;
};
