// The cause of a failure at the top of the page: the message, the place, the waits, the changed
// decisions, and the command that replays the run.
const failure = raw.failure;
const taskByName = new Map(names.task.map((name, at) => [name, at]));
const isFlagged = (name) => Boolean(failure)
  && (visible(failure.task) === name || visible(failure.message).includes("`" + name + "`"));

// A text with names in backticks; the names of tasks link to their tracks.
const ticked = (tag, text, className) => {
  const made = element(tag, null, className);
  visible(text).split("`").forEach((part, nth) => {
    if (nth % 2 === 0) made.append(part);
    else if (!taskByName.has(part)) made.append(element("code", part));
    else {
      const button = element("button", part, "name");
      button.type = "button";
      button.title = "Only this task";
      button.addEventListener("click", () => only("task", part));
      made.append(button);
    }
  });
  return made;
};

const causePart = (name, ...inside) => {
  const part = element("div", null, "part");
  part.append(element("h3", name), ...inside);
  return part;
};
// A button that selects an event.
const goTo = (text, i) => {
  const button = element("button", text, "go");
  button.type = "button";
  button.addEventListener("click", () => closeUp(i));
  return button;
};
// The changed decisions, each with its event; `null` if the event is not shown.
const changed = failure
  ? failure.changes.map((text, nth) => {
    const at = failure.changed[nth];
    return [text, at === undefined || at === null || at >= count ? null : at];
  })
  : [];
const changesAt = new Map();
for (const [text, at] of changed) {
  if (at !== null) changesAt.set(at, [...(changesAt.get(at) || []), text]);
}
const changeLines = () => {
  const made = element("ul", null, "changes");
  for (const [text, at] of changed) {
    const line = ticked("li", text);
    if (at !== null) line.append(" ", goTo("Go to #" + seqText(at), at));
    made.append(line);
  }
  return made;
};
const lines = (list) => {
  const made = element("ul");
  list.forEach((line) => {
    const last = made.lastElementChild;
    if (!last || !line.startsWith(" ")) return made.append(ticked("li", line));
    // An indented line belongs to the line before it.
    if (last.lastElementChild?.className !== "below") last.append(element("ul", null, "below"));
    last.lastElementChild.append(ticked("li", line.trim()));
  });
  return made;
};
const showCause = () => {
  $("fails").hidden = !failure;
  if (!failure) return;
  const { kind, message, task, place, step, detail, replay } = failure;
  $("fails").textContent = "fails: " + visible(kind);
  $("fails").title = "What the program came to in this run";
  const box = $("cause");
  box.hidden = false;
  const title = element("h2");
  const texts = message.split("\n");
  title.append(element("b", visible(kind)), ticked("span", texts[0]));
  const mark = raw.marks.find((each) => each[2] === "failure" && each[0] !== null);
  if (mark) title.append(goTo("Failure #" + mark[1], mark[0]));
  box.append(title);
  if (texts.length > 1) box.append(element("pre", texts.slice(1).map(visible).join("\n")));
  const where = element("p", null, "where");
  if (place) where.append("at ", element("code", visible(place)), " ");
  if (task) where.append("in ", ticked("span", "`" + task + "`"), " ");
  if (step) where.append("in step " + visible(step));
  if (where.childNodes.length) box.append(where);
  const parts = element("div", null, "parts");
  if (detail.length) parts.append(causePart("Who waits for whom", lines(detail)));
  const order = changed.length
    ? causePart("It fails when the usual order is changed like this", changeLines())
    : causePart("Order", element("p", "It fails in the usual order: nothing was changed."));
  if (replay) {
    const command = element("p", null, "replay");
    const copy = element("button", "Copy");
    copy.type = "button";
    copy.id = "copy";
    copy.addEventListener("click", () => {
      const said = (text) => { copy.textContent = text; };
      const chosen = () => { getSelection().selectAllChildren(command.firstChild); said("Selected"); };
      if (navigator.clipboard) navigator.clipboard.writeText(replay).then(() => said("Copied"), chosen);
      else chosen();
    });
    command.append(element("code", visible(replay)), copy);
    order.append(element("h3", "To see it again"), command);
  }
  parts.append(order);
  box.append(parts);
};

// The teardown by the lab is not the program's behaviour, so it is collapsed.
const showTeardown = () => {
  const button = $("torn");
  button.hidden = !torn;
  button.textContent = folded ? "Show the teardown (" + torn + " events)" : "Fold the teardown away";
  button.title = "After the failure the lab ends what is left of the run by force";
  button.addEventListener("click", () => {
    location.hash = folded ? "#teardown" : "#";
    location.reload();
  });
};
