// A program in TypeScript that uses what the package offers: it has to pass the compiler.

import { start } from "asx-web";
import type { Context, Dump, HostEvent, JournalEvent, Runtime, Task, TaskOptions } from "asx-web";

export async function example(): Promise<number> {
  const asx: Runtime = await start({ journal: 1000, burst: 64, sliceMs: 2 });
  const kinds: string[] = [];
  const stop: () => void = asx.subscribe((event: JournalEvent) => kinds.push(event.event));

  const controller = new AbortController();
  const how: TaskOptions = {
    name: "load",
    priority: 200,
    deadlineMs: 5_000,
    signal: controller.signal,
  };
  const task: Task<number> = asx.spawn(async (cx) => {
    const response = await fetch("/data", { signal: cx.signal });
    const length: number = await cx.spawn(async (inside: Context) => {
      await inside.sleep(10);
      await inside.yieldNow();
      return (await response.text()).length;
    }, "measure");
    const name: string = await cx.spawn(() => "plain", { name: "child", priority: 1 });
    cx.cancelChildren("done");
    return length + name.length + cx.id + cx.now();
  }, how);
  task.cancel("the user left");
  const ended: number | string = await task.then(
    (value) => value,
    (reason: unknown) => String(reason),
  );

  const dump: Dump = asx.dump();
  const names: (string | null)[] = dump.regions.flatMap((region) => region.tasks).map((t) => t.name);
  const turns: number[] = asx.hostEvents().map((event: HostEvent) => event.host_turn_id);
  const digest: string | undefined = asx.digest();
  asx.revoke("timer");
  asx.grant("timer");
  asx.shutdown({ softMs: 10 });
  stop();
  asx.close();
  const trapped: string | null = asx.trapped;
  return names.length + turns.length + kinds.length + `${ended}${digest}${trapped}`.length;
}
