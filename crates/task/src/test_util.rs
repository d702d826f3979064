//! Contexts outside any runtime, for tests of what only needs to know whether to stop.

use std::sync::{Arc, Mutex};

use asx_kernel::cancel::Reason;
use asx_kernel::time::Time;

use crate::core::{Core, Host, Settings};
#[cfg(not(loom))]
use crate::raw::TaskRef;
use crate::region::Region;
use crate::spawn::{Plan, make};
use crate::{Cancelled, Cx, Runnable};

/// Runs nothing.
struct Nowhere;

/// What was scheduled: kept for ever unless a test takes it, so that who looks for leaks finds it.
static KEPT: Mutex<Vec<Runnable>> = Mutex::new(Vec::new());

fn keep(entry: Option<Runnable>) {
    KEPT.lock().unwrap().extend(entry);
}

/// Keeps a task that never ends, so that who looks for leaks finds it.
#[cfg(not(loom))]
pub(crate) fn keep_task(task: TaskRef) {
    static TASKS: Mutex<Vec<TaskRef>> = Mutex::new(Vec::new());
    TASKS.lock().unwrap().push(task);
}

/// The entry of a task that was scheduled, to be run by hand.
#[cfg(not(loom))]
pub(crate) fn scheduled(task: &TaskRef) -> Option<Runnable> {
    let mut kept = KEPT.lock().unwrap();
    let at = kept.iter().position(|entry| entry.as_ptr() == task.as_ptr())?;
    Some(kept.remove(at))
}

/// A host without workers, blocking threads and timers, where no time passes.
pub(crate) trait Timeless: Send + Sync + 'static {
    /// An entry was scheduled.
    fn put(&self, entry: Runnable);
}

// SAFETY: it has no worker, so nothing is pinned to one.
unsafe impl<H: Timeless> Host for H {
    fn schedule(&self, entry: Runnable) {
        self.put(entry);
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn timer_moved(&self, _: Time) {}

    fn here(&self) -> Option<u16> {
        None
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        Err(entry)
    }
}

impl Timeless for Nowhere {
    fn put(&self, entry: Runnable) {
        keep(Some(entry));
    }
}

/// A region whose tasks run only when their entries are run by hand.
pub(crate) fn loose_region() -> Arc<Region> {
    Core::new(Arc::new(Nowhere), Settings::default()).root()
}

impl Cx {
    /// The context of a task that never runs, and a switch that cancels it.
    pub fn loose() -> (Cx, impl Fn(Reason)) {
        let region = loose_region();
        let mut cx = None;
        let body = |own: Cx| {
            cx = Some(own);
            std::future::pending::<Result<(), Cancelled>>()
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&region, Plan::default(), body) };
        keep(entry.ok().flatten());
        let cancel = move |reason| {
            task.cancel_with(reason);
        };
        (cx.unwrap(), cancel)
    }
}
