// Pointer, wheel and keyboard input.
const chart = $("chart");
const hit = (event) => {
  const box = chart.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const each = rows[Math.floor((y + rowsBox.scrollTop) / ROW)];
  return { x, y, each };
};
// The event of a row nearest to a position.
const nearest = (each, x, reach) => {
  const list = each.events;
  if (!list.length) return -1;
  const near = firstFrom(list, left + (x - (!byTime && scale >= CLOSE ? scale / 2 : 0)) / scale);
  let best = -1, away = reach;
  for (let k = Math.max(0, near - 2); k < Math.min(list.length, near + 3); k++) {
    if (hiddenKinds.has(kindOf[list[k]])) continue;
    const distance = Math.abs(centre(list[k]) - x);
    if (distance <= away) { best = list[k]; away = distance; }
  }
  return best;
};
const under = (list, x) => list.find(([from, to]) => toX(from) <= x && x <= Math.max(toX(to), toX(from) + 2));
const describe = ({ x, y, each }) => {
  if (!each) return ["", -1];
  const inRow = y + rowsBox.scrollTop - each.place * ROW - INSET;
  const i = nearest(each, x, 6);
  if (each.type === "host") {
    const host = raw.hosts.find((item) => Math.abs(toX(item[0]) - x) < 5);
    return [host ? hostText(host) : "", -1];
  }
  if (i >= 0 && (inRow > 20 || each.type === "worker" || scale < 4)) return [tipOf(i), i];
  const poll = each.type === "region" && each.open ? undefined : under(each.polls, x);
  if (poll && (each.type === "worker" || inRow > 14)) return [tipOf(poll[0]), poll[0]];
  const parked = each.parked.find(([from, to]) => toX(from) <= x && x <= toX(to));
  if (parked && inRow <= 16) return [each.name + " " + parked[3], i];
  const span = each.spans.find(([, from, to]) => toX(from) <= x && x <= toX(to));
  if (span) {
    const until = span[2] >= count ? "to the end" : "to #" + seqText(span[2]);
    return [each.name + ": " + span[0] + "\nfrom #" + seqText(span[1]) + " " + until, i];
  }
  const interval = each.intervals.find((item) => toX(item.from) <= x && x <= toX(item.to));
  if (interval && inRow > 20) return [interval.name + (interval.how ? ": " + interval.how : ": to the end"), i];
  return [i >= 0 ? tipOf(i) : "", i];
};

const pointers = new Map();
let dragged = 0;
let pinch = 0;
chart.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, event);
  dragged = 0;
  chart.setPointerCapture(event.pointerId);
  showTip("");
});
chart.addEventListener("pointermove", (event) => {
  const known = pointers.get(event.pointerId);
  if (!known) {
    const place = hit(event);
    const [text, i] = describe(place);
    hoverRow = place.each ? place.each.place : -1;
    hovered = i;
    showTip(text, event.clientX, event.clientY);
    redraw();
    return;
  }
  pointers.set(event.pointerId, event);
  if (pointers.size === 2) {
    const [a, b] = [...pointers.values()];
    const apart = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    if (pinch) zoomBy(apart / pinch, (a.clientX + b.clientX) / 2 - chart.getBoundingClientRect().left);
    pinch = apart;
    dragged = 99;
    return;
  }
  const step = event.clientX - known.clientX;
  dragged += Math.abs(step) + Math.abs(event.clientY - known.clientY);
  if (dragged > 4) panBy(-step);
  if (event.pointerType === "mouse" && dragged > 4) rowsBox.scrollTop -= event.clientY - known.clientY;
});
const release = (event) => {
  const known = pointers.delete(event.pointerId);
  pinch = 0;
  if (event.type !== "pointerup" || !known || dragged > 4) return;
  const { x, each } = hit(event);
  if (!each) return;
  let i = nearest(each, x, Infinity);
  if (i < 0) i = Math.min(count - 1, Math.max(0, eventAtPosition(left + x / scale)));
  select(i, false);
};
chart.addEventListener("pointerup", release);
chart.addEventListener("pointercancel", release);
chart.addEventListener("pointerleave", () => { hoverRow = hovered = -1; showTip(""); redraw(); });
chart.addEventListener("dblclick", (event) => { zoomBy(2.5, hit(event).x); });

// The wheel zooms unless the rows can be scrolled; with a modifier key it always zooms.
const wheel = (event) => {
  const scrolls = rows.length * ROW > height && event.currentTarget === rowsBox;
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  if (sideways && !event.ctrlKey) {
    panBy(event.deltaX || event.deltaY);
    event.preventDefault();
  } else if (event.ctrlKey || event.metaKey || event.altKey || !scrolls) {
    const box = chart.getBoundingClientRect();
    const x = Math.min(Math.max(event.clientX - box.left, 0), width);
    zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022)), x);
    event.preventDefault();
  }
  showTip("");
};
[rowsBox, $("ruler"), $("over")].forEach((box) => box.addEventListener("wheel", wheel, { passive: false }));
rowsBox.addEventListener("scroll", redraw);
listBox.addEventListener("scroll", () => showList(false));
listBox.addEventListener("click", (event) => {
  const line = event.target.closest(".event");
  if (line) select(Number(line.dataset.event));
});

const dragOver = (event) => {
  const box = $("over").getBoundingClientRect();
  left = (event.clientX - box.left) / box.width * extent() - width / scale / 2;
  clampView();
  redraw();
};
$("over").addEventListener("pointerdown", (event) => { $("over").setPointerCapture(event.pointerId); dragOver(event); });
$("over").addEventListener("pointermove", (event) => { if (event.buttons) dragOver(event); });
let rulerAt = null;
$("ruler").addEventListener("pointerdown", (event) => { rulerAt = event.clientX; $("ruler").setPointerCapture(event.pointerId); });
$("ruler").addEventListener("pointermove", (event) => {
  if (rulerAt === null || !event.buttons) return;
  panBy(rulerAt - event.clientX);
  rulerAt = event.clientX;
});

$("labels").addEventListener("click", (event) => {
  const made = event.target.closest(".row");
  if (!made) return;
  const each = rows[Number(made.dataset.place)];
  focusPlace = each.place;
  if (each.children.length) toggle(each);
  else if (each.events.length) {
    const at = firstIndex(each.events, cursor);
    select(each.events[at < each.events.length && each.events[at] !== cursor ? at : 0]);
  }
  redraw();
});
$("labels").addEventListener("keydown", (event) => {
  const each = rows[focusPlace];
  if (!each) return;
  const go = (place) => {
    focusPlace = Math.min(Math.max(place, 0), rows.length - 1);
    const top = focusPlace * ROW;
    if (top < rowsBox.scrollTop) rowsBox.scrollTop = top;
    if (top + ROW > rowsBox.scrollTop + height) rowsBox.scrollTop = top + ROW - height;
    redraw();
  };
  const keys = {
    ArrowDown: () => go(focusPlace + 1),
    ArrowUp: () => go(focusPlace - 1),
    ArrowRight: () => (each.children.length && !each.open ? toggle(each) : go(focusPlace + 1)),
    ArrowLeft: () => (each.children.length && each.open ? toggle(each) : each.parent && go(each.parent.place)),
    Enter: () => (each.children.length ? toggle(each) : each.events.length && select(each.events[0])),
    " ": () => each.children.length && toggle(each),
  };
  if (!keys[event.key]) return;
  keys[event.key]();
  event.preventDefault();
  event.stopPropagation();
});

const goFirst = () => filtered.length && select(filtered[0]);
const goLast = () => filtered.length && select(filtered[filtered.length - 1]);
const unfold = (fold) => {
  everyRow(roots, (each) => { if (each.children.length && each.parent) each.open = !fold; });
  layRows();
  relay();
};
const KEYS = {
  ArrowRight: () => stepIn(filtered, 1),
  ArrowLeft: () => stepIn(filtered, -1),
  ArrowDown: () => rowsBox.scrollBy(0, ROW),
  ArrowUp: () => rowsBox.scrollBy(0, -ROW),
  ".": () => stepIn(decisions, 1),
  ",": () => stepIn(decisions, -1),
  n: () => stepIn(markList, 1),
  p: () => stepIn(markList, -1),
  Home: goFirst,
  End: goLast,
  "+": () => zoomBy(1.5, cursor >= 0 ? Math.min(Math.max(centre(cursor), 0), width) : undefined),
  "-": () => zoomBy(1 / 1.5),
  0: fitAll,
  h: () => panBy(-width / 4),
  l: () => panBy(width / 4),
  a: () => $("arrows").click(),
  t: () => $("theme").click(),
  f: () => unfold(rows.some((each) => each.parent && each.children.length && each.open)),
  "/": () => $("filter").focus(),
  "?": () => $("help").click(),
  Escape: () => { if ($("filter").value) clearFilter(); else { cursor = -1; showDetail(); showList(false); redraw(); } },
};
KEYS["="] = KEYS["+"];
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("legend").open) return;
  if (event.target === $("filter")) {
    if (event.key === "Escape") { clearFilter(); chart.focus(); }
    if (event.key === "Enter") { goFirst(); chart.focus(); }
    return;
  }
  if (event.target.closest("#kinds") || ((event.key === " " || event.key === "Enter"))) return;
  const act = KEYS[event.key];
  if (!act) return;
  act();
  event.preventDefault();
});
listBox.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  stepIn(filtered, step);
  event.preventDefault();
  event.stopPropagation();
});
