// The view: the visible part of the axis. Positions are in units: events, or nanoseconds.
const ROW = 40;
// Bars and signs of a row are drawn in its middle part, which is lower by this much.
const INSET = 4;
// After the last event there is space for intervals without an end.
const pos = new Float64Array(count + 2);
let byTime = false;
let left = 0;
let scale = 1;
let width = 800;
let height = 400;
let cursor = -1;
let hovered = -1;
let showArrows = true;

const layAxis = () => {
  const start = count ? times[0] : 0;
  for (let i = 0, next = 0; i <= count; i++) {
    // Simultaneous events remain apart, so that they can be distinguished when zoomed in.
    pos[i] = byTime ? Math.max(times[i] - start, next) : i;
    next = pos[i] + 1;
  }
  if (byTime && count) pos[count] = pos[count - 1] + Math.max(1, pos[count - 1] * 0.02);
  pos[count + 1] = pos[count] + (folded ? Math.max(byTime ? 1 : 3, pos[count] * 0.2) : 0);
};
const extent = () => Math.max(pos[count + 1], 1);
const toX = (i) => (pos[i] - left) * scale;
const fitScale = () => (width - 24) / extent();
const widest = () => Math.max(fitScale(), 160);
const clampView = () => {
  scale = Math.min(Math.max(scale, fitScale()), widest());
  const slack = 12 / scale;
  left = Math.min(Math.max(left, -slack), Math.max(-slack, extent() + slack - width / scale));
};
const zoomBy = (factor, x = width / 2) => {
  const at = left + x / scale;
  scale = Math.min(Math.max(scale * factor, fitScale()), widest());
  left = at - x / scale;
  clampView();
  redraw();
};
const panBy = (pixels) => {
  left += pixels / scale;
  clampView();
  redraw();
};
const fitAll = () => {
  scale = fitScale();
  left = -12 / scale;
  clampView();
  redraw();
};
// The first index in a sorted list with an event at or after a position.
const firstFrom = (list, position) => {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pos[list[middle]] < position) low = middle + 1; else high = middle;
  }
  return low;
};
const firstIndex = (list, index) => {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < index) low = middle + 1; else high = middle;
  }
  return low;
};
const eventAtPosition = (position) => {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pos[middle] < position) low = middle + 1; else high = middle;
  }
  return low;
};

const rowsBox = $("rows");
const reveal = (i) => {
  const x = toX(i), margin = Math.min(90, width / 5);
  if (x < margin || x > width - margin) {
    left = pos[i] - (width / 2) / scale;
    clampView();
  }
  const place = shownRow(rowOf[i]);
  if (!place) return;
  const top = place.place * ROW, bottom = top + ROW;
  const seen = top >= rowsBox.scrollTop && bottom <= rowsBox.scrollTop + height;
  if (!seen) rowsBox.scrollTop = Math.max(0, top - (height - ROW) / 2);
};
const select = (i, show = true) => {
  if (!count) return;
  cursor = Math.min(Math.max(i, 0), count - 1);
  if (show) reveal(cursor);
  showDetail();
  showList(true);
  redraw();
};
// Selects the next event of a sorted list, in a direction.
const stepIn = (list, direction) => {
  if (!list.length) return;
  let at = firstIndex(list, cursor);
  if (direction > 0) at = cursor >= 0 && list[at] === cursor ? at + 1 : at;
  else at -= 1;
  if (at >= 0 && at < list.length) select(list[at]);
};
const decisions = [];
for (let i = 0; i < count; i++) if (isDecision[kindOf[i]]) decisions.push(i);
const markList = [...marksAt.keys()].sort((a, b) => a - b);
const closeUp = (i) => {
  const wanted = byTime ? scale : 26;
  if (scale < wanted) {
    scale = Math.min(wanted, widest());
    left = pos[i] - width / 2 / scale;
  }
  clampView();
  select(i);
};

let waiting = false;
const redraw = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawAll(); });
};
