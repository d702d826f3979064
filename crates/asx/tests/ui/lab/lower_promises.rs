// As in the lower crates without the lab: what relies on a promise of its caller is unsafe.
use std::sync::Arc;

use asx_runtime::{Core, Region, Runnable, waits};

fn numbers_twice(core: &Core) {
    core.renumber();
}

fn looks_at_wakers(region: &Arc<Region>) {
    waits::waiters(region);
}

fn polls_on_any_thread(entry: Runnable) {
    entry.run_inline();
}

fn main() {}
