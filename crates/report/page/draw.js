// Drawing. Every row draws the visible part, with at most a few shapes per pixel.
let tones = {};
const readTones = () => {
  const style = getComputedStyle(document.documentElement);
  const wanted = ["bg", "card", "text", "soft", "line", "grid", "hover", "accent", "pick", "ready", "timed", "cancel",
    "Created", "Running", "CancelRequested", "Cancelling", "Finalizing", "Completed", "Open", "Closing",
    "Draining", "Closed", "Ok", "Err", "Cancelled", "Panicked", "bar-text", "message", "wake", "pass", "timer",
    "obligation", "channel", "socket", "lock", "parked", "region", "task", "problem", "mark"];
  tones = {};
  for (const name of wanted) tones[name] = style.getPropertyValue("--" + name).trim();
};
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

const fitCanvas = (canvas) => {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const w = canvas.clientWidth, h = canvas.clientHeight;
  const [pw, ph] = [Math.max(1, Math.round(w * ratio)), Math.max(1, Math.round(h * ratio))];
  if (canvas.width !== pw || canvas.height !== ph) { canvas.width = pw; canvas.height = ph; }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  pen.textBaseline = "middle";
  return [pen, w, h];
};

const textIn = (pen, text, x, y, room) => {
  if (room < 14) return;
  let shown = text;
  if (pen.measureText(shown).width > room) {
    const each = pen.measureText(text).width / text.length;
    shown = text.slice(0, Math.max(0, Math.floor(room / each) - 1));
    if (shown.length < 2) return;
    shown += "…";
  }
  pen.fillText(shown, x, y);
};

const drawSpans = (pen, each, y) => {
  pen.font = "9.5px " + FONT;
  let done = -1;
  for (const [state, from, to] of each.spans) {
    const a = toX(from), b = Math.max(toX(to), a + 2);
    if (b < 0 || b <= done) continue;
    if (a > width) break;
    const x = Math.max(a, -4, done), end = Math.min(b, width + 4);
    pen.fillStyle = tones[state] || tones.Created;
    pen.fillRect(x, y + 3, end - x, 12);
    done = b - 0.5;
    if (end - x > 44) {
      pen.fillStyle = tones["bar-text"];
      textIn(pen, state, Math.max(x, 0) + 5, y + 9.5, end - Math.max(x, 0) - 10);
    }
  }
};

// The waits of a task, above its state.
const drawParked = (pen, each, y) => {
  pen.font = "9.5px " + FONT;
  let drawn = 0;
  for (const [from, to, brief] of each.parked) {
    const a = Math.max(toX(from), -4), b = Math.min(toX(to), width + 4);
    if (b < 0 || b - a < 1) continue;
    if (a > width || drawn++ > 4000) break;
    pen.fillStyle = tones.parked;
    pen.fillRect(a, y + 3, b - a, 12);
    pen.strokeStyle = tones.wake;
    pen.lineWidth = 1;
    pen.setLineDash([3, 2]);
    pen.strokeRect(a + 0.5, y + 3.5, b - a - 1, 11);
    pen.setLineDash([]);
    if (b - a > 30) {
      pen.fillStyle = tones.text;
      textIn(pen, brief, Math.max(a, 0) + 5, y + 9.5, b - Math.max(a, 0) - 8);
    }
  }
};

// Polls: below the state of a task, or as blocks of a worker.
const drawPolls = (pen, each, y, top, tall) => {
  let done = -1;
  const polls = each.polls;
  let low = 0, high = polls.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (toX(polls[middle][1]) < 0) low = middle + 1; else high = middle;
  }
  pen.font = "10.5px " + FONT;
  for (let k = low; k < polls.length; k++) {
    const [from, to] = polls[k];
    const a = toX(from);
    if (a > width) break;
    const gap = scale > 6 ? 1 : 0;
    const b = Math.max(toX(to) - gap, a + 1.5);
    if (b <= done) continue;
    const x = Math.max(a, done);
    pen.fillStyle = tones[word(from, "lane")];
    pen.fillRect(x, y + top, b - x, tall);
    done = b;
    if (each.type === "worker" && b - x > 30) {
      pen.fillStyle = tones.card;
      const inner = Math.max(x, 0);
      textIn(pen, names.task[taskOf(from)] || "?", inner + 4, y + top + tall / 2, Math.min(b, width) - inner - 8);
    }
  }
};

const drawLevels = (pen, each, y) => {
  const [, , , capacity, flat] = raw.channels[each.at];
  if (!each.most) {
    each.most = Number(capacity) || 1;
    for (let k = 0; k < flat.length; k += 4) each.most = Math.max(each.most, Number(flat[k + 1]) + Number(flat[k + 2]));
  }
  const most = each.most;
  const tall = 17, base = y + 20;
  let done = -1;
  let low = 0, high = flat.length / 4;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (toX(flat[4 * middle]) < 0) low = middle + 1; else high = middle;
  }
  for (let k = Math.max(0, low - 1) * 4; k < flat.length; k += 4) {
    const a = toX(flat[k]), b = k + 4 < flat.length ? toX(flat[k + 4]) : toX(count + 1);
    if (b < 0 || b <= done) continue;
    if (a > width) break;
    const x = Math.max(a, -4, done), w = Math.max(Math.min(b, width + 4) - x, 1);
    const queued = Number(flat[k + 1]) / most * tall, reserved = Number(flat[k + 2]) / most * tall;
    pen.globalAlpha = 0.12;
    pen.fillStyle = tones.channel;
    pen.fillRect(x, base - tall, w, tall);
    pen.globalAlpha = 0.45;
    pen.fillRect(x, base - queued - reserved, w, reserved);
    pen.globalAlpha = 1;
    pen.fillRect(x, base - queued, w, queued);
    if (Number(flat[k + 3]) > 0) {
      pen.fillStyle = tones.cancel;
      pen.fillRect(x, base - tall, w, 2.5);
    }
    done = x + w;
  }
};

const END = { done: "Ok", failed: "Err", left: "soft", again: "soft", fired: "timer", cancelled: "soft", Committed: "Ok", Aborted: "soft", Leaked: "Err", released: "lock" };
const drawIntervals = (pen, each, y) => {
  let drawn = 0;
  for (const { type, from, to, how, line } of each.intervals) {
    const a = toX(from), b = toX(to);
    if (b < 0) continue;
    if (a > width || drawn++ > 4000) break;
    const at = y + 22.5 + line * 3;
    pen.fillStyle = tones[type];
    pen.globalAlpha = 0.7;
    pen.fillRect(a, at, Math.max(b - a, 1), 1.5);
    pen.globalAlpha = 1;
    if (scale > 3 && how) {
      pen.fillStyle = tones[END[how]];
      pen.fillRect(b - 1, at - 2, 2.5, 5);
    }
  }
};

// The number of pixels per event from which each event gets a separate sign.
const CLOSE = 6;
const SHAPES = {
  sent: "up", received: "down", cancel_witness: "diamond", region_cancelled: "diamond", timer_armed: "ring",
  io_waiting: "ring", io_done: "dot", socket_opened: "box", socket_closed: "square",
  obligation_reserved: "box", obligation_resolved: "square", task_ended: "square", region_outcome: "square",
  decision: "bar",
};
const drawShape = (pen, shape, x, y, r, tone) => {
  pen.fillStyle = pen.strokeStyle = tone;
  pen.lineWidth = 1.5;
  pen.beginPath();
  if (shape === "up") { pen.moveTo(x, y - r); pen.lineTo(x + r, y + r); pen.lineTo(x - r, y + r); }
  else if (shape === "down") { pen.moveTo(x, y + r); pen.lineTo(x + r, y - r); pen.lineTo(x - r, y - r); }
  else if (shape === "diamond") {
    pen.moveTo(x, y - r - 1); pen.lineTo(x + r + 1, y); pen.lineTo(x, y + r + 1); pen.lineTo(x - r - 1, y);
  } else if (shape === "square" || shape === "box") pen.rect(x - r + 0.5, y - r + 0.5, 2 * r - 1, 2 * r - 1);
  else if (shape === "bar") pen.rect(x - 1, y - r, 2, 2 * r);
  else pen.arc(x, y, r - 0.5, 0, 7);
  pen.closePath();
  if (shape === "ring" || shape === "box") pen.stroke(); else pen.fill();
};
const drawEvents = (pen, each, y) => {
  const list = each.events;
  const close = !byTime && scale >= CLOSE;
  for (let k = firstFrom(list, left - 6 / scale); k < list.length; k++) {
    const i = list[k];
    const x = toX(i);
    if (x > width + 6) break;
    if (hiddenKinds.has(kindOf[i])) continue;
    const tone = tones[toneOf(i)] || tones.task;
    const middle = x + (close ? scale / 2 : 0);
    if (close) {
      const name = kindName(i);
      const shape = PROBLEMS.has(name) ? "problem" : SHAPES[name] || "dot";
      if (shape === "problem") {
        drawShape(pen, "square", middle, y + 26, 4.5, tones.problem);
        pen.fillStyle = tones.card;
        pen.fillRect(middle - 0.75, y + 23, 1.5, 4);
        pen.fillRect(middle - 0.75, y + 28, 1.5, 1.5);
      } else drawShape(pen, shape, middle, y + 26, 3.5, tone);
    } else {
      pen.fillStyle = tone;
      pen.fillRect(x, y + 22, 1.5, PROBLEMS.has(kindName(i)) ? 9 : 7);
      // At most one per pixel.
      const next = firstFrom(list, left + (x + 1) / scale);
      if (next > k + 1) k = next - 1;
    }
  }
};

// Reading the scroll position is slow, so it is done once per frame.
let scrolled = 0;
const rowY = (each) => each.place * ROW + INSET - scrolled;
const drawRow = (pen, each) => {
  const y = rowY(each);
  if (each.place === hoverRow) { pen.fillStyle = tones.hover; pen.fillRect(0, y - INSET, width, ROW); }
  pen.fillStyle = tones.grid;
  pen.fillRect(0, y - INSET + ROW - 1, width, 1);
  if (each.type === "worker") {
    drawPolls(pen, each, y, 5, 17);
    drawBetween(pen, each.choices, y + 27, tones.soft);
  } else if (each.type === "host") drawBetween(pen, raw.hosts, y + 16, tones.task);
  else {
    if (each.type === "channel") drawLevels(pen, each, y);
    drawSpans(pen, each, y);
    drawParked(pen, each, y);
    if (each.type === "task" || (each.type === "region" && !each.open)) drawPolls(pen, each, y, 16, 4);
    drawIntervals(pen, each, y);
    drawEvents(pen, each, y);
  }
};
const drawBetween = (pen, list, y, tone) => {
  let last = -9;
  for (const item of list) {
    const x = toX(item[0]);
    if (x < -4 || x < last + 1) continue;
    if (x > width) break;
    last = x;
    drawShape(pen, "diamond", x, y, scale > 5 ? 2.5 : 1.5, tone);
  }
};

// Arrows between rows. If there are too many, only those of the selected event are drawn.
const MOST_ARROWS = 150;
const centre = (i) => toX(i) + (!byTime && scale >= CLOSE ? scale / 2 : 0);
const drawArrow = (pen, at, strong) => {
  const kind = linkEnds[3 * at], from = linkEnds[3 * at + 1], to = linkEnds[3 * at + 2];
  const a = shownRow(rowOf[from]), b = shownRow(rowOf[to]);
  if (!a || !b || (!rowOf[from].wanted && !rowOf[to].wanted)) return;
  // Events inside a collapsed row are not drawn.
  if (a === b && rowOf[from].place < 0) return;
  const [x1, x2] = [centre(from), centre(to)];
  const [y1, y2] = [rowY(a) + 26, rowY(b) + (kind === 1 ? 17 : 26)];
  if (Math.max(y1, y2) < -ROW || Math.min(y1, y2) > height + ROW) return;
  const tone = tones[LINKS[kind]];
  pen.strokeStyle = pen.fillStyle = tone;
  pen.globalAlpha = strong ? 1 : kind === 1 ? 0.45 : 0.75;
  pen.lineWidth = strong ? 2.2 : 1.2;
  pen.setLineDash(kind === 1 ? [4, 3] : []);
  const bend = a === b ? 0 : Math.max(10, Math.min(60, Math.abs(x2 - x1) / 2));
  pen.beginPath();
  pen.moveTo(x1, y1);
  if (a === b) pen.quadraticCurveTo((x1 + x2) / 2, y1 - 16, x2, y2);
  else pen.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  pen.stroke();
  pen.setLineDash([]);
  const tilt = a === b ? Math.atan2(y2 - y1 + 16, (x2 - x1) / 2) : 0;
  pen.translate(x2, y2);
  pen.rotate(tilt);
  pen.beginPath();
  pen.moveTo(0, 0); pen.lineTo(-6, -3.2); pen.lineTo(-6, 3.2);
  pen.closePath();
  pen.fill();
  pen.rotate(-tilt);
  pen.translate(-x2, -y2);
  pen.globalAlpha = 1;
};
const inSight = (each) => {
  const shown = shownRow(each);
  if (!shown) return false;
  const y = rowY(shown);
  return y > -ROW && y < height;
};
const drawArrows = (pen) => {
  const seen = [];
  const first = eventAtPosition(left), last = eventAtPosition(left + width / scale);
  for (let at = 0; at < linkCount && seen.length <= MOST_ARROWS; at++) {
    const from = linkEnds[3 * at + 1], to = linkEnds[3 * at + 2];
    // One of its ends is in view.
    if ((from < first || from > last) && (to < first || to > last)) continue;
    if (hiddenKinds.has(kindOf[from]) || hiddenKinds.has(kindOf[to])) continue;
    if (!rowOf[from].wanted && !rowOf[to].wanted) continue;
    if (!inSight(rowOf[from]) && !inSight(rowOf[to])) continue;
    seen.push(at);
  }
  const few = seen.length <= MOST_ARROWS;
  if (few) seen.forEach((at) => drawArrow(pen, at, false));
  const own = new Set([...(linksOf.get(cursor) || []), ...(linksOf.get(hovered) || [])]);
  own.forEach((at) => drawArrow(pen, at, true));
  hint(few ? "" : "Many arrows here: zoom in to see them");
};

const drawMoments = (pen, tall) => {
  // Time advances here.
  if (!byTime && scale > 1.5) {
    pen.fillStyle = tones.line;
    const first = Math.max(1, eventAtPosition(left)), last = Math.min(count - 1, eventAtPosition(left + width / scale));
    for (let i = first; i <= last; i++) if (times[i] !== times[i - 1]) pen.fillRect(Math.round(toX(i)), 0, 1, tall);
  }
};
const drawLines = (pen, tall) => {
  for (const i of changesAt.keys()) {
    const x = centre(i);
    if (x < -2 || x > width + 2) continue;
    pen.fillStyle = tones.accent;
    pen.globalAlpha = 0.5;
    pen.fillRect(x - 1, 0, 2, tall);
    pen.globalAlpha = 1;
  }
  for (const i of markList) {
    const x = centre(i);
    if (x < -2 || x > width + 2) continue;
    pen.fillStyle = tones.mark;
    pen.globalAlpha = 0.14;
    pen.fillRect(x - Math.max(3, scale / 2), 0, Math.max(6, scale), tall);
    pen.globalAlpha = 1;
    pen.fillRect(x - 1, 0, 2, tall);
  }
  if (cursor >= 0) {
    const x = centre(cursor);
    pen.fillStyle = tones.accent;
    if (!marksAt.has(cursor)) {
      pen.globalAlpha = 0.12;
      pen.fillRect(x - Math.max(2, scale / 2), 0, Math.max(4, scale), tall);
      pen.globalAlpha = 1;
    }
    pen.fillRect(x - 0.75, 0, 1.5, tall);
  }
};

const drawChart = () => {
  const [pen, , tall] = fitCanvas($("chart"));
  drawMoments(pen, tall);
  const first = Math.floor(scrolled / ROW);
  const last = Math.min(rows.length - 1, Math.ceil((scrolled + height) / ROW));
  for (let at = first; at <= last; at++) drawRow(pen, rows[at]);
  drawLines(pen, Math.min(tall, rows.length * ROW));
  if (showArrows) drawArrows(pen); else hint("");
  if (cursor >= 0 && rowOf[cursor].wanted && shownRow(rowOf[cursor])) {
    pen.strokeStyle = tones.accent;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(centre(cursor), rowY(shownRow(rowOf[cursor])) + 26, 6.5, 0, 7);
    pen.stroke();
  }
};

const stepOf = (room) => {
  const rough = room / scale, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  return Math.max(1, step);
};
const drawRuler = () => {
  const [pen, , tall] = fitCanvas($("ruler"));
  pen.font = "10.5px " + FONT;
  const step = stepOf(byTime ? 110 : 70);
  let done = -99;
  const flags = markList.slice(0, 500).map(centre);
  for (let at = Math.max(0, Math.ceil(left / step) * step); at <= extent(); at += step) {
    const x = (at - left) * scale;
    if (x > width) break;
    if (!byTime && at >= count) break;
    pen.fillStyle = tones.line;
    pen.fillRect(x, 0, 1, byTime ? tall : 14);
    pen.fillStyle = tones.soft;
    const label = byTime ? timeText((count ? times[0] : 0) + at) : "#" + seqText(at);
    // To the right of its line, or to the left if a flag is in the way.
    const room = pen.measureText(label).width;
    const free = (from) => from > done && from + room < width && !flags.some((flag) => flag > from - 14 && flag < from + room + 2);
    const from = [x + 3, x - room - 3].find(free);
    if (from !== undefined) {
      pen.fillText(label, from, 8);
      done = from + room + 5;
    }
  }
  if (!byTime && count) {
    // The time at the left edge, and every change of it.
    let free = 0;
    const first = Math.min(count - 1, Math.max(0, eventAtPosition(left)));
    for (let i = first; i < count; i++) {
      const x = Math.max(toX(i), i === first ? 0 : -99);
      if (x > width) break;
      if ((i === first || times[i] !== times[i - 1]) && x >= free) {
        const label = timeText(times[i]);
        pen.fillStyle = tones.timer;
        if (x + pen.measureText(label).width > width) break;
        pen.fillText(label, x + 3, 22);
        free = x + pen.measureText(label).width + 10;
        // No text is drawn before this position.
        i = Math.max(i, eventAtPosition(left + free / scale) - 1);
      }
    }
  }
  drawLines(pen, tall);
  for (const i of changesAt.keys()) drawShape(pen, "diamond", centre(i), 6, 5, tones.accent);
  for (const i of markList) {
    const x = centre(i);
    pen.fillStyle = tones.mark;
    pen.beginPath();
    pen.moveTo(x, 0); pen.lineTo(x + 12, 5); pen.lineTo(x, 10);
    pen.fill();
  }
};

// An overview of the whole run: the activity over time, and the visible part.
let crowd = null;
const countCrowd = (w) => {
  const bins = { width: w, byTime, all: new Float32Array(w), cancel: new Float32Array(w), problem: new Float32Array(w), most: 1 };
  for (let i = 0; i < count; i++) {
    const bin = Math.min(w - 1, Math.floor(pos[i] / extent() * w));
    const most = ++bins.all[bin];
    const group = kindGroups[kindOf[i]];
    if (group === "cancel") bins.cancel[bin]++;
    if (group === "problem") bins.problem[bin]++;
    if (most > bins.most) bins.most = most;
  }
  return bins;
};
const drawOver = () => {
  const [pen, w, tall] = fitCanvas($("over"));
  const wide = Math.max(1, Math.min(Math.floor(w), count || 1));
  if (!crowd || crowd.width !== wide || crowd.byTime !== byTime) crowd = countCrowd(wide);
  const each = w / wide;
  for (let bin = 0; bin < wide; bin++) {
    const share = (n) => (n ? Math.max(2, Math.log1p(n) / Math.log1p(crowd.most) * (tall - 8)) : 0);
    const bar = (n, tone) => { pen.fillStyle = tone; pen.fillRect(bin * each, tall - 2 - share(n), each > 3 ? each - 1 : each, share(n)); };
    bar(crowd.all[bin], tones.Running);
    bar(crowd.cancel[bin], tones.cancel);
    bar(crowd.problem[bin], tones.problem);
  }
  for (const i of markList) {
    pen.fillStyle = tones.mark;
    pen.fillRect(pos[i] / extent() * w - 1, 0, 2.5, tall);
  }
  if (cursor >= 0) { pen.fillStyle = tones.accent; pen.fillRect(pos[cursor] / extent() * w, 0, 1.5, tall); }
  const a = Math.max(0, left / extent() * w), b = Math.min(w, (left + width / scale) / extent() * w);
  pen.fillStyle = tones.bg;
  pen.globalAlpha = 0.65;
  pen.fillRect(0, 0, a, tall);
  pen.fillRect(b, 0, w - b, tall);
  pen.globalAlpha = 1;
  pen.strokeStyle = tones.accent;
  pen.lineWidth = 1.5;
  pen.strokeRect(a + 0.75, 0.75, Math.max(b - a - 1.5, 3), tall - 2);
};

const hint = (text) => {
  const box = $("hint");
  if ((box.dataset.text || "") === text) return;
  box.dataset.text = text;
  box.replaceChildren(element("span", text));
  box.hidden = !text;
};
const drawAll = () => {
  scrolled = rowsBox.scrollTop;
  drawChart();
  drawRuler();
  drawOver();
  showLabels();
};
