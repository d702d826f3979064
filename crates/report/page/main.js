// Assembles the page.
const on = (id, act) => $(id).addEventListener("click", act);
on("in", () => zoomBy(1.5));
on("out", () => zoomBy(1 / 1.5));
on("fit", fitAll);
on("first", goFirst);
on("last", goLast);
on("prev", () => stepIn(filtered, -1));
on("next", () => stepIn(filtered, 1));
on("before", () => stepIn(decisions, -1));
on("after", () => stepIn(decisions, 1));
on("arrows", () => {
  showArrows = !showArrows;
  $("arrows").setAttribute("aria-pressed", showArrows);
  redraw();
});
const setAxis = (time) => {
  byTime = time;
  $("order").setAttribute("aria-pressed", !time);
  $("clock").setAttribute("aria-pressed", time);
  $("axis").textContent = time ? "logical time" : "event, time";
  layAxis();
  fitAll();
  if (cursor >= 0) reveal(cursor);
};
on("order", () => setAxis(false));
on("clock", () => setAxis(true));
on("info", () => {
  const open = document.querySelector("header").classList.toggle("open");
  $("info").setAttribute("aria-expanded", open);
  measure();
});

const showAllKinds = showKinds();
const clearFilter = () => {
  $("filter").value = "";
  hiddenKinds.clear();
  showAllKinds();
};
on("clear", clearFilter);
let typing = 0;
$("filter").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(refilter, count > 5000 ? 150 : 0);
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest("#kinds")) $("kinds").open = false;
});
$("kinds").addEventListener("toggle", () => {
  const box = $("kinds").getBoundingClientRect();
  $("kindlist").style.left = Math.max(4, Math.min(box.left, innerWidth - 260)) + "px";
});

// The colour theme: the system's, until the user chooses one. Without storage it is not remembered.
const system = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";
try { theme = localStorage.getItem("asx-theme") || "auto"; } catch { /* Nothing is remembered here. */ }
const useTheme = () => {
  const dark = theme === "dark" || (theme === "auto" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
  readTones();
  redraw();
};
system.addEventListener("change", useTheme);
on("theme", () => {
  theme = { auto: system.matches ? "light" : "dark", light: system.matches ? "dark" : "auto", dark: system.matches ? "auto" : "light" }[theme];
  try { localStorage.setItem("asx-theme", theme); } catch { /* Nothing is remembered here. */ }
  useTheme();
});

const measure = () => {
  const fitted = Math.abs(scale - fitScale()) < 1e-9 || scale < fitScale();
  height = rowsBox.clientHeight;
  $("labels").style.height = chart.style.height = height + "px";
  $("hint").style.top = height - 28 + "px";
  width = chart.clientWidth;
  if (fitted) { scale = fitScale(); left = -12 / scale; }
  clampView();
  showList(false);
  redraw();
};
new ResizeObserver(measure).observe(rowsBox);

const LEGEND = [
  ["Tasks", [["Created", "created"], ["Running", "running"], ["CancelRequested", "cancel requested"], ["Cancelling", "cancelling"],
    ["Finalizing", "finalizing"], ["Completed", "completed"]]],
  ["Regions", [["Open", "open"], ["Closing", "closing"], ["Draining", "draining"], ["Finalizing", "finalizing"], ["Closed", "closed"]]],
  ["Polls and decisions, by lane", [["ready", "ready"], ["timed", "timed"], ["cancel", "cancel"]]],
  ["Outcomes", [["Ok", "Ok"], ["Err", "Err"], ["Cancelled", "Cancelled"], ["Panicked", "Panicked"]]],
];
const SIGNS = [
  ["up", "message", "sent"], ["down", "message", "received"], ["diamond", "CancelRequested", "cancel, by phase"], ["ring", "timer", "timer armed"],
  ["dot", "timer", "timer fired, cancelled"], ["box", "obligation", "obligation reserved"], ["square", "obligation", "obligation resolved"],
  ["square", "Ok", "end, by outcome"], ["bar", "ready", "decision"], ["square", "problem", "something went wrong"],
];
const KEYHELP = [["← →", "previous, next event"], [", .", "previous, next decision"], ["p n", "previous, next mark"], ["Home End", "first, last event"],
  ["+ - 0", "zoom in, out, show everything; also the wheel on the ruler, Ctrl and the wheel, or two fingers"],
  ["h l", "pan; also drag, or Shift and the wheel"], ["↑ ↓", "scroll the rows"], ["f", "fold, unfold the regions"], ["a", "arrows on, off"],
  ["/", "filter: a name, task=…, region=…, channel=…, socket=…, timer=…, kind=…, worker=…; quotes make it exact"], ["t", "colours"], ["Esc", "clear the filter, let go of the event"]];
const showLegend = () => {
  const box = $("legend");
  const close = element("button", "Close");
  close.type = "button";
  close.style.float = "right";
  close.addEventListener("click", () => box.close());
  box.replaceChildren(close, element("h2", "Legend"));
  const swatch = (paint, text) => {
    const line = element("div");
    const canvas = element("canvas");
    line.append(canvas, element("span", text));
    paint(canvas);
    return line;
  };
  const later = [];
  const grid = (title, items) => {
    const list = element("div", null, "grid");
    list.append(...items);
    box.append(element("h3", title), list);
  };
  const paintWith = (paint) => (canvas) => later.push(() => { const [pen, w, h] = fitCanvas(canvas); paint(pen, w, h); });
  for (const [title, items] of LEGEND) {
    grid(title, items.map(([tone, text]) => swatch(paintWith((pen, w, h) => { pen.fillStyle = tones[tone]; pen.fillRect(0, 1, w, h - 2); }), text)));
  }
  grid("Events", SIGNS.map(([shape, tone, text]) => swatch(paintWith((pen, w, h) => drawShape(pen, shape, w / 2, h / 2, 4, tones[tone])), text)));
  const line = (tone, dash) => paintWith((pen, w, h) => {
    pen.strokeStyle = pen.fillStyle = tones[tone];
    pen.lineWidth = 1.5;
    pen.setLineDash(dash);
    pen.beginPath(); pen.moveTo(0, h / 2); pen.lineTo(w - 4, h / 2); pen.stroke();
    pen.beginPath(); pen.moveTo(w, h / 2); pen.lineTo(w - 6, h / 2 - 3.2); pen.lineTo(w - 6, h / 2 + 3.2); pen.fill();
  });
  const plain = (tone) => paintWith((pen, w, h) => { pen.fillStyle = tones[tone]; pen.fillRect(0, h / 2 - 1, w, 2); });
  grid("Lines", [swatch(line("message", []), "message: sent, received"), swatch(line("wake", [4, 3]), "wake: what led to a decision"),
    swatch(line("pass", []), "cancel, passed down"), swatch(plain("timer"), "timer, while armed"),
    swatch(plain("obligation"), "obligation, while reserved"), swatch(plain("lock"), "lock or permit, while held"), swatch(plain("socket"), "wait at a socket"), swatch(plain("mark"), "mark")]);
  box.append(element("h3", "How to read it"));
  box.append(element("p", "A row's upper bar is its state, the thin blocks below are polls, the signs at the bottom events. A poll is shown from its decision to the last thing its task did: it may have gone on for longer. A channel's row shows messages (full) and reserved slots (light); an orange edge is a sender that waits. A socket's row shows whether it is open; a thin line in a task's row is its wait there. A dashed part of a task's state says what the task waits for."));
  box.append(element("h2", "Keys"));
  const table = element("table");
  for (const [keys, text] of KEYHELP) {
    const tr = element("tr"), first = element("td");
    keys.split(" ").forEach((key) => first.append(element("kbd", key), " "));
    tr.append(first, element("td", text));
    table.append(tr);
  }
  box.append(table);
  box.showModal();
  later.forEach((paint) => paint());
};
on("help", showLegend);
for (const [tone, text] of [["ready", "poll"], ["Running", "running"], ["CancelRequested", "cancel requested"], ["Cancelling", "cancelling"],
  ["Finalizing", "finalizing"], ["Completed", "completed"], ["message", "message"], ["wake", "wake"], ["timer", "timer"],
  ["obligation", "obligation"], ["parked", "waits"], ["lock", "lock"], ["socket", "socket"], ["problem", "went wrong"]]) {
  const item = element("span"), swatch = element("i");
  swatch.style.background = "var(--" + tone + ")";
  item.append(swatch, text);
  $("key").append(item);
}

const moved = count && times[count - 1] > times[0];
$("clock").disabled = !moved;
if (!moved) $("clock").title = "Logical time did not pass in this run";
for (const id of ["first", "prev", "next", "last", "in", "out", "fit", "order", "filter"]) $(id).disabled = !count;
$("before").disabled = $("after").disabled = !decisions.length;
$("arrows").disabled = !linkCount;
$("corner").textContent = "overview";
chart.setAttribute("aria-label", "Timeline of " + count + " events; the list of events says the same in words");
showHead();
readTones();
setAxis(false);
applyFilter();
refilter();
showDetail();
measure();
useTheme();
fitAll();
// The page opens at the first changed decision, because the run is the default one up to there. A
// run that fails in the default order opens at its failure.
const failed = raw.marks.find((mark) => mark[2] === "failure" && mark[0] !== null);
const opening = [changed.find(([, at]) => at !== null)?.[1], failed?.[0], markList[0]];
const open = opening.find((i) => i !== undefined);
if (open !== undefined) closeUp(open);
