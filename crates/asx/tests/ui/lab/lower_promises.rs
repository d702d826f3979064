// As in the lower crates without the lab: what relies on a promise of its caller is unsafe.
use std::sync::Arc;

use asx_runtime::{Core, Region, waits};

fn numbers_twice(core: &Core) {
    core.renumber();
}

fn looks_at_wakers(region: &Arc<Region>) {
    waits::waiters(region);
}

fn main() {}
