// The errors that pages know: what the platform itself rejects with when something is aborted or
// takes too long. Where it has none, an error of that name.

export function cancelError(message, name, kind) {
  let error;
  if (typeof DOMException === "function") {
    error = new DOMException(message, name);
  } else {
    error = new Error(message);
    error.name = name;
  }
  error.kind = kind;
  return error;
}
