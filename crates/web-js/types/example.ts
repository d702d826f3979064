// A program in TypeScript that uses what the package offers: it has to pass the compiler.

import { start } from "asx-web";
import type { CancelError, CancelKind, Context, Dump, HostEvent, HostEventName, JournalEvent } from "asx-web";
import type { JournalGap, Runtime, Task, TaskOptions } from "asx-web";

export async function example(): Promise<number> {
  const asx: Runtime = await start({ journal: 1000, burst: 64, sliceMs: 2, maxTimerMs: 1000, tieBreak: "taskKey" });
  const kinds: string[] = [];
  let lost = 0;
  const stop: () => void = asx.subscribe((event: JournalEvent | JournalGap) => {
    kinds.push(event.event);
    if (event.event === "journal_gap") lost += (event as JournalGap).lost;
  });

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
    const child: Task<number> = cx.spawn((inside) => inside.sleep(60_000).then(() => 1), "waits");
    child.cancel("not needed");
    const name: string = await cx.spawn(() => "plain", { name: "child", priority: 1 });
    cx.cancelChildren({ why: "done" });
    return length + name.length + cx.id + cx.now();
  }, how);
  task.cancel(new Error("the user left"));
  const ended: number | string = await task.then(
    (value) => value,
    (reason: unknown) => String(reason),
  );
  const kind: CancelKind | number = await task.catch((error: CancelError) => error.kind);
  const both: [number, string] = await Promise.all([task.finally(() => stop()), asx.spawn(() => "x")]);

  const dump: Dump = asx.dump();
  const names: (string | null)[] = dump.regions.flatMap((region) => region.tasks).map((t) => t.name);
  const codes: string[] = asx.quiescence()?.failures.map((failure) => failure.code) ?? [];
  const turns: number[] = asx.hostEvents().map((event: HostEvent) => event.host_turn_id);
  const handoff: HostEventName = "scheduler_host_handoff";
  const digest: string | undefined = asx.digest();
  asx.revoke("timer");
  asx.grant("timer");
  {
    await using waits = asx.spawn((cx) => cx.sleep(60_000));
    lost += waits.region;
  }
  await asx.shutdown({ softMs: 10 });
  asx.close();
  const trapped: string | null = asx.trapped;
  const said = `${ended}${digest}${trapped}${kind}${both}${handoff}`;
  return names.length + codes.length + turns.length + kinds.length + lost + said.length;
}
