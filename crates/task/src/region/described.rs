//! What a dump says of a region and of its tasks.

#[cfg(not(target_family = "wasm"))]
use std::collections::HashMap;
#[cfg(not(any(loom, target_family = "wasm")))]
use std::sync::Arc;
#[cfg(not(target_family = "wasm"))]
use std::time::Duration;

use asx_kernel::time::Time;

#[cfg(not(target_family = "wasm"))]
use crate::core::coarse;
#[cfg(not(any(loom, target_family = "wasm")))]
use crate::dump::LockHolder;
#[cfg(not(target_family = "wasm"))]
use crate::dump::{Activity, RegionInfo};
use crate::dump::{Dump, TaskInfo};
use crate::region::Region;
use crate::task::cell::Header;
#[cfg(not(target_family = "wasm"))]
use crate::task::cell::task_number;
#[cfg(not(any(loom, target_family = "wasm")))]
use crate::task::holding::lock_waits;

impl TaskInfo {
    pub(crate) fn of(task: &Header, _now: Time) -> TaskInfo {
        let word = task.word.load();
        #[cfg(not(target_family = "wasm"))]
        let waited_for = waited_for(task, word.activity(), _now);
        #[cfg(target_family = "wasm")]
        let waited_for = None;
        TaskInfo {
            id: task.id(),
            name: task.attrs.as_ref().and_then(|attrs| attrs.name.clone()),
            state: word.state(),
            activity: word.activity(),
            blocking: task.is_blocking(),
            overrun: word.is_forced(),
            waits: task.wait().map(|(on, at)| (on.text(), at)),
            waited_for,
            held_by: None,
            socket: None,
            stale: task.is_wait_stale(),
            spawned: task.spawned_at(),
            #[cfg(not(target_family = "wasm"))]
            function: crate::dump::function(task.body()).map(String::from),
            #[cfg(target_family = "wasm")]
            function: None,
            timer_in: None,
        }
    }
}

/// How long a task has waited, if it does. The thread of a blocking job does not set the clock.
#[cfg(not(target_family = "wasm"))]
fn waited_for(task: &Header, activity: Activity, now: Time) -> Option<Duration> {
    if activity != Activity::Waiting || task.is_blocking() || task.is_wait_stale() {
        return None;
    }
    task.wait_age(coarse::steps(now)).map(|age| coarse::STEP * age)
}

impl Dump {
    /// What is in a region and below it.
    pub fn of(region: &Region) -> Dump {
        let mut regions = Vec::new();
        region.describe(&mut regions);
        #[cfg(not(target_family = "wasm"))]
        name_sockets(region, &mut regions);
        #[cfg(not(target_family = "wasm"))]
        name_timers(region, &mut regions);
        #[cfg(not(any(loom, target_family = "wasm")))]
        name_holders(region, &mut regions);
        Dump { regions, timers: region.core.live_timers() }
    }
}

/// Says of each task that waits at a socket at which.
#[cfg(not(target_family = "wasm"))]
fn name_sockets(region: &Region, regions: &mut [RegionInfo]) {
    let waits = region.core.host.net().map(|net| net.waits()).unwrap_or_default();
    let named = waits.into_iter().filter_map(|wait| Some((task_number(&wait.waker)?, wait.what)));
    let mut sockets: HashMap<u64, String> = named.collect();
    if !sockets.is_empty() {
        for task in regions.iter_mut().flat_map(|region| &mut region.tasks) {
            task.socket = sockets.remove(&task.id);
        }
    }
}

/// Says of each task when the next of its timers is due.
#[cfg(not(target_family = "wasm"))]
fn name_timers(region: &Region, regions: &mut [RegionInfo]) {
    let timers: HashMap<u64, Time> = region.core.timers.by_task();
    if !timers.is_empty() {
        let now = region.core.host.now();
        for task in regions.iter_mut().flat_map(|region| &mut region.tasks) {
            task.timer_in = timers.get(&task.id).map(|due| *due - now);
        }
    }
}

/// Says of each task that waits for a lock who holds that.
#[cfg(not(any(loom, target_family = "wasm")))]
fn name_holders(region: &Region, regions: &mut [RegionInfo]) {
    let waits = lock_waits(&region.core);
    if waits.is_empty() {
        return;
    }
    let tasks = || regions.iter().flat_map(|region| &region.tasks);
    let names: HashMap<u64, Option<Arc<str>>> =
        tasks().map(|task| (task.id, task.name.clone())).collect();
    for task in regions.iter_mut().flat_map(|region| &mut region.tasks) {
        task.held_by = waits
            .get(&task.id)
            .map(|holder| LockHolder { id: *holder, name: names.get(holder).cloned().flatten() });
    }
}
