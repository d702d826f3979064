// Reasons of cancels, and the errors made of them.

/** The text of a reason for messages; `undefined` if it has none. */
export function textOf(why) {
  if (why === undefined || why === null) return undefined;
  if (typeof why === "string") return why;
  try {
    const { message } = why;
    if (typeof message === "string" && message !== "") return message;
  } catch {
    // A getter of the caller's object threw.
  }
  return typeof why === "number" ? String(why) : undefined;
}

/** The kind of cancel for a reason: `AbortSignal.timeout` aborts with a `TimeoutError`. */
export function kindOf(why) {
  try {
    return why?.name === "TimeoutError" ? "Timeout" : "User";
  } catch {
    return "User";
  }
}

/** The kinds of cancel that this page requested. The failure of a task that ended so is no unhandled
 *  rejection. */
export const WANTED = new Set(["User", "Shutdown", "ParentCancelled"]);

/** The error of a cancel. */
export function cancelOf(kind, message) {
  const error = new DOMException(message, "AbortError");
  error.kind = kind;
  return error;
}

/** Adds the reason that the caller gave for this kind of cancel to an error. */
export function withCause(error, record) {
  const why = record.asked?.get(error.kind);
  if (why !== undefined) error.cause = why;
  return error;
}
