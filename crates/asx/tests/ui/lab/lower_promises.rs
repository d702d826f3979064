// With the lab: functions of the lower crates that rely on a promise of their caller are unsafe.
use std::sync::Arc;

use asx_runtime::{Core, Region, waits};

fn numbers_twice(core: &Core) {
    core.renumber();
}

fn looks_at_wakers(region: &Arc<Region>) {
    waits::waiters(region);
}

fn main() {}
