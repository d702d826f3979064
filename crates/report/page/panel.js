// The text parts: the top of the page, the names of rows, the selected event, the list of events.
const ICONS = { worker: "ready", region: "region", task: "Running", channel: "channel", socket: "socket", host: "task", other: "task" };
let hoverRow = -1;
// For narrow screens.
const OUTCOMES = { Ok: "✓", Err: "✕", Cancelled: "⊘", Panicked: "‼" };
const makeLabel = (each) => {
  const made = element("div", null, "row" + (each.type === "group" ? " head" : ""));
  made.setAttribute("role", "treeitem");
  made.setAttribute("aria-level", each.depth + 1);
  made.tabIndex = each.place === focusPlace ? 0 : -1;
  made.dataset.place = each.place;
  made.style.paddingLeft = 4 + Math.min(each.depth, 8) * (innerWidth < 761 ? 7 : 13) + "px";
  const fold = element("span", each.children.length ? (each.open ? "▾" : "▸") : "", "fold");
  made.append(fold);
  if (each.children.length) made.setAttribute("aria-expanded", each.open);
  if (ICONS[each.type]) {
    const icon = element("span", null, "icon" + (each.type === "task" ? " round" : ""));
    icon.style.background = "var(--" + ICONS[each.type] + ")";
    made.append(icon);
  }
  if (each.type === "task" && isFlagged(each.name)) {
    made.classList.add("flagged");
    made.append(element("span", "⚑", "flag"));
  }
  made.append(element("span", each.name, "name"));
  if (each.finalizer) made.append(element("span", "finalizer", "more"));
  if (each.type === "channel" && raw.channels[each.at][3] !== null) {
    made.append(element("span", "holds " + raw.channels[each.at][3], "more"));
  }
  if (each.children.length && !each.open) made.append(element("span", "+" + countBelow(each), "more"));
  if (OUTCOMES[each.outcome]) {
    const outcome = element("span", innerWidth < 761 ? OUTCOMES[each.outcome] : each.outcome, "out");
    outcome.setAttribute("aria-label", each.outcome);
    outcome.style.color = "var(--" + each.outcome + ")";
    made.append(outcome);
  }
  made.title = each.name;
  return made;
};
const countBelow = (each) => each.children.reduce((sum, child) => sum + 1 + countBelow(child), 0);

let focusPlace = 0;
let labelsShown = "";
const showLabels = () => {
  const first = Math.floor(scrolled / ROW);
  const last = Math.min(rows.length - 1, Math.ceil((scrolled + height) / ROW));
  const box = $("labels");
  const key = [first, last, layVersion, focusPlace, innerWidth < 761].join();
  if (key !== labelsShown) {
    const had = box.contains(document.activeElement);
    labelsShown = key;
    const made = [];
    for (let at = first; at <= last; at++) made.push(makeLabel(rows[at]));
    box.replaceChildren(...made);
    if (had) focusLabel();
  }
  for (const made of box.children) {
    const place = Number(made.dataset.place);
    made.style.top = place * ROW - scrolled + "px";
    const current = cursor >= 0 && rowOf[cursor].wanted ? shownRow(rowOf[cursor]) : null;
    made.classList.toggle("on", place === hoverRow || Boolean(current && current.place === place));
  }
};
const focusLabel = () => {
  const made = [...$("labels").children].find((child) => Number(child.dataset.place) === focusPlace);
  if (made) made.focus({ preventScroll: true });
};
let layVersion = 0;
const relay = () => {
  layVersion++;
  $("space").style.height = rows.length * ROW + "px";
  focusPlace = Math.min(focusPlace, Math.max(0, rows.length - 1));
  const empty = $("empty");
  empty.hidden = rows.length > 0;
  empty.textContent = count || rows.length ? "Nothing matches the filter." : "This trace has no events.";
  redraw();
};
const toggle = (each) => {
  each.open = !each.open;
  layRows();
  relay();
};

const refilter = () => {
  query = parseQuery($("filter").value.trim());
  applyFilter();
  relay();
  const active = query.length > 0 || hiddenKinds.size > 0;
  $("clear").hidden = !active;
  $("shown").textContent = active ? filtered.length + " of " + count + " events" : count + " events";
  showList(true);
};
const only = (word, name) => {
  $("filter").value = word + '="' + name + '"';
  refilter();
};

const describeEnd = (i) => {
  const who = subjects(i).filter(([word]) => word === "task" || word === "region")[0];
  return kindName(i) + (who ? " of " + who[1] : "") + " (#" + seqText(i) + ")";
};
const LINK_TEXT = ["message", "wake", "cancel"];
const showDetail = () => {
  const box = $("detail");
  box.replaceChildren();
  if (cursor < 0) {
    box.append(element("p", count ? "Choose an event: click the timeline, or press → to begin." : "Nothing happened in this run."));
    return;
  }
  const i = cursor;
  const title = element("h2", kindName(i));
  title.append(element("small", "#" + seqText(i) + " at " + timeText(times[i])));
  box.append(title);
  for (const mark of marksAt.get(i) || []) box.append(element("p", "⚑ " + visible(mark[2]) + ": " + visible(mark[3]), "alarm"));
  for (const text of changesAt.get(i) || []) box.append(element("p", "◆ changed decision: " + visible(text), "change"));
  const table = element("dl");
  for (const [word, name] of subjects(i)) {
    table.append(element("dt", word));
    const value = element("dd");
    const button = element("button", name, "only");
    button.type = "button";
    button.title = "Only this " + word;
    button.addEventListener("click", () => only(word, name));
    value.append(button);
    table.append(value);
  }
  for (const [name, value] of fields(i)) {
    table.append(element("dt", name), element("dd", value, name === "decision_hash" ? "mono" : ""));
  }
  box.append(table);
  for (const at of linksOf.get(i) || []) {
    const [kind, from, to] = linkEnds.subarray(3 * at, 3 * at + 3);
    const other = from === i ? to : from;
    const text = from === i ? "→ " + LINK_TEXT[kind] + " to " : "← " + LINK_TEXT[kind] + " from ";
    const button = element("button", text + describeEnd(other), "link");
    button.type = "button";
    button.addEventListener("click", () => select(other));
    box.append(button);
  }
  for (const choice of choicesBefore.get(i) || []) box.append(element("p", "before it, " + choiceText(choice)));
  for (const host of (hostsBefore.get(i) || []).slice(0, 6)) box.append(element("p", "before it, " + hostText(host)));
};

// The list of events, which contains only the visible entries.
const LINE = 40;
const listBox = $("list");
let listShown = "";
const showList = (follow) => {
  $("listspace").style.height = filtered.length * LINE + "px";
  const at = firstIndex(filtered, cursor);
  if (follow && cursor >= 0) {
    const top = at * LINE;
    if (top < listBox.scrollTop + LINE || top > listBox.scrollTop + listBox.clientHeight - 2 * LINE) {
      listBox.scrollTop = Math.max(0, top - listBox.clientHeight / 2 + LINE / 2);
    }
  }
  const first = Math.max(0, Math.floor(listBox.scrollTop / LINE) - 2);
  const last = Math.min(filtered.length - 1, first + Math.ceil(listBox.clientHeight / LINE) + 4);
  const key = [first, last, layVersion, cursor, filtered.length].join();
  if (key === listShown) return;
  listShown = key;
  listBox.querySelectorAll(".event").forEach((old) => old.remove());
  for (let k = first; k <= last; k++) listBox.append(makeEvent(k));
  if (cursor >= 0) listBox.setAttribute("aria-activedescendant", "event-" + cursor);
};
const makeEvent = (k) => {
  const i = filtered[k];
  const made = element("div", null, "event" + (i === cursor ? " on" : ""));
  made.id = "event-" + i;
  made.setAttribute("role", "option");
  made.setAttribute("aria-selected", i === cursor);
  made.style.top = k * LINE + "px";
  made.style.borderLeftColor = "var(--" + toneOf(i) + ")";
  made.dataset.event = i;
  made.append(element("span", seqText(i), "n mono"));
  if (marksAt.has(i)) made.append(element("span", "⚑", "f"));
  if (changesAt.has(i)) made.append(element("span", "◆", "c"));
  made.append(element("span", kindName(i), "k"));
  const who = subjects(i).filter(([word], at) => at === 0 || word === "timer" || word === "channel").map(([, name]) => name);
  const where = socketOf(i) >= 0 ? names.socket[socketOf(i)] : "";
  made.append(element("span", [...who, gist(i), where].filter(Boolean).join(" · "), "w"));
  return made;
};

const tip = $("tip");
const showTip = (text, x, y) => {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18) + "px";
};
const tipOf = (i) => {
  const lines = ["#" + seqText(i) + " " + kindName(i) + " at " + timeText(times[i])];
  for (const [word, name] of subjects(i)) lines.push(word + ": " + name);
  for (const [name, value] of fields(i)) if (name !== "decision_hash") lines.push(name + ": " + value);
  for (const mark of marksAt.get(i) || []) lines.push("⚑ " + visible(mark[2]) + ": " + visible(mark[3]));
  return lines.join("\n");
};

// The top of the page.
const fact = (name, value, className, extra) => {
  const made = element("div", null, extra ? "extra" : "");
  made.append(element("dt", name), element("dd", value, className));
  $("facts").append(made);
};
const showHead = () => {
  $("program").textContent = visible(raw.program) || "(no name)";
  $("program").title = visible(raw.program);
  const verdict = $("verdict");
  const many = raw.findings.length;
  verdict.textContent = raw.holds ? (failure ? "trace lawful" : "lawful") : many + (many === 1 ? " finding" : " findings");
  verdict.title = raw.holds ? "Every law of the runtime holds in this trace (strict verification)"
    + (failure ? ". The program fails all the same: that is another question" : "") : "Strict verification: something does not hold";
  // Beside a failure no result is shown in green.
  verdict.classList.add(raw.holds ? (failure ? "plain" : "good") : "bad");
  showCause();
  showTeardown();
  $("partial").hidden = raw.complete && raw.ended && !Number(raw.lost);
  fact("host", visible(raw.host));
  fact("seed", raw.seed);
  fact("workers", raw.workers);
  fact("events", count + (Number(raw.lost) ? " (" + raw.lost + " lost)" : ""));
  fact("choices", raw.choices.length);
  fact("digest", raw.digest, "mono");
  fact("tasks", raw.tasks.length, "", true);
  fact("regions", raw.regions.length, "", true);
  fact("time", count ? timeText(times[count - 1] - times[0]) : "none", "", true);
  fact("codec", raw.codec, "", true);
  for (const [name, value] of raw.meta) {
    if (name === "title") { $("title").textContent = visible(value); $("title").hidden = false; }
    else fact(visible(name), visible(value), "", true);
  }
  const findings = $("findings");
  findings.hidden = raw.holds;
  for (const [code, text, place] of raw.findings) {
    findings.append(element("li", code + ": " + visible(text) + " — " + place));
  }
  const marks = $("marks");
  // The failure is described above in more detail.
  const told = raw.marks.filter((mark) => !failure || mark[2] !== "failure");
  marks.hidden = !told.length;
  for (const [at, seq, severity, text] of told) {
    const made = element("button", null, "mark");
    made.type = "button";
    made.append(element("b", "⚑ " + visible(severity)), element("span", visible(text)));
    made.append(element("i", at === null ? "event " + seq + " is not here" : "Go to #" + seq));
    made.disabled = at === null;
    made.addEventListener("click", () => closeUp(at));
    marks.append(made);
  }
};
const showKinds = () => {
  const box = $("kindlist");
  const tally = new Array(kindNames.length).fill(0);
  for (let i = 0; i < count; i++) tally[kindOf[i]]++;
  const buttons = element("p");
  const all = element("button", "All"), none = element("button", "None");
  all.type = none.type = "button";
  buttons.append(all, none);
  const boxes = kindNames.map((name, kind) => {
    const label = element("label");
    const check = element("input");
    check.type = "checkbox";
    check.checked = true;
    check.addEventListener("change", () => {
      if (check.checked) hiddenKinds.delete(kind); else hiddenKinds.add(kind);
      refilter();
    });
    label.append(check, element("span", name), element("em", tally[kind]));
    return [name, label, check, kind];
  }).sort((a, b) => (a[0] < b[0] ? -1 : 1));
  const setAll = (checked) => {
    boxes.forEach(([, , check, kind]) => {
      check.checked = checked;
      if (checked) hiddenKinds.delete(kind); else hiddenKinds.add(kind);
    });
    refilter();
  };
  all.addEventListener("click", () => setAll(true));
  none.addEventListener("click", () => setAll(false));
  box.replaceChildren(buttons, ...boxes.map(([, label]) => label));
  if (!kindNames.length) box.replaceChildren(element("span", "There are no events."));
  return () => setAll(true);
};
