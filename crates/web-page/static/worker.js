// The fixtures in a worker.

import init, { fixture_count, run_fixture } from "./corpus/corpus.js";

onmessage = async ({ data: { profile } }) => {
  await init();
  for (let nth = 0; nth < fixture_count(); nth += 1) {
    postMessage(run_fixture(nth, "worker", profile));
  }
  postMessage(null);
};
