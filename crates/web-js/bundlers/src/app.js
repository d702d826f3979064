// Runs a task with a child, and shows its value on the page.

export async function show(asx) {
  const task = asx.spawn(async (cx) => {
    const half = await cx.spawn(async (cx) => {
      await cx.sleep(5);
      await cx.yieldNow();
      return 21;
    });
    return 2 * half;
  });
  document.body.textContent = `the answer is ${await task}`;
  await asx.shutdown();
  asx.close();
  document.body.dataset.done = "yes";
}
