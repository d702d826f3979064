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
#[cfg(not(any(loom, target_family = "wasm")))]
use crate::holders::Holder;
use crate::raw::Header;
#[cfg(not(any(loom, target_family = "wasm")))]
use crate::raw::lock_holder::lock_waits;
#[cfg(not(target_family = "wasm"))]
use crate::raw::task_number;
use crate::region::Region;

impl TaskInfo {
    /// The number of a task, and its name.
    #[cfg(not(any(loom, target_family = "wasm")))]
    fn named(task: &Header) -> (u64, Option<Arc<str>>) {
        (task.id(), task.attrs.as_ref().and_then(|attrs| attrs.name.clone()))
    }

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
    let waits = lock_waits();
    if waits.is_empty() {
        return;
    }
    let mut tasks = HashMap::new();
    region.each_inside(&mut |region| {
        let inner = region.lock();
        inner.each_task(|task| {
            // SAFETY: the region keeps its tasks alive, and its lock is held.
            let task = unsafe { task.as_ref() };
            tasks.insert(Holder::of_task(task), TaskInfo::named(task));
        });
        inner.children()
    });
    let holders = tasks.iter().filter_map(|(waiter, (id, _))| {
        let (holder, name) = tasks.get(waits.get(waiter)?)?;
        Some((*id, LockHolder { id: *holder, name: name.clone() }))
    });
    let mut holders: HashMap<u64, LockHolder> = holders.collect();
    for task in regions.iter_mut().flat_map(|region| &mut region.tasks) {
        task.held_by = holders.remove(&task.id);
    }
}
