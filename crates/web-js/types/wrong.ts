// Misuse that the compiler has to refuse: an expected error that is none is an error itself.

import { Runtime, Task, start } from "asx-web";
import type { TaskOptions } from "asx-web";

export async function wrong(): Promise<void> {
  const asx = await start();
  // @ts-expect-error: a runtime comes from `start`
  new Runtime();
  // @ts-expect-error: a task comes from `spawn`
  new Task();
  // @ts-expect-error: nothing can run without a microtask
  await start({ capabilities: {} });
  // @ts-expect-error: there is no such event
  asx.subscribe((event) => event.event === "task_lost");
  // @ts-expect-error: steps are a number
  await start({ burst: "many" });
  // @ts-expect-error: there are two orders
  await start({ tieBreak: "random" });
  // @ts-expect-error: a body is a function
  asx.spawn(42);
  // @ts-expect-error: the value of a task is what its body gives
  const text: string = await asx.spawn(() => 42);
  // @ts-expect-error: a priority is a number
  asx.spawn(() => text, { priority: "high" });
  // @ts-expect-error: it is called deadlineMs
  const how: TaskOptions = { deadline: 5 };
  // @ts-expect-error: a signal, not its controller
  asx.spawn(() => 1, { ...how, signal: new AbortController() });
  // @ts-expect-error: there is no such capability
  asx.revoke("files");
  // @ts-expect-error: events are told by number
  asx.hostEvents("all");
  // @ts-expect-error: a listener takes an event
  asx.subscribe((event: number) => event);
  // @ts-expect-error: the tree has regions, not tasks
  asx.dump().tasks;
  // @ts-expect-error: it can only be asked
  asx.trapped = null;
  await asx.spawn(async (cx) => {
    // @ts-expect-error: milliseconds are a number
    await cx.sleep("1s");
    // @ts-expect-error: it is the task's own
    cx.signal = new AbortController().signal;
  });
}
