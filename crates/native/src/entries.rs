//! Entries of real tasks, for tests of queues.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use asx_kernel::time::Time;
use asx_runtime::{Cancelled, Core, Cx, Host, Root, Runnable, Scope, Settings};

use crate::prim::{Mutex, lock};

/// A host that keeps scheduled entries.
#[derive(Default)]
pub(crate) struct EntryHost(pub(crate) Mutex<VecDeque<Runnable>>);

impl EntryHost {
    /// Returns the entries that were scheduled since the last call.
    pub(crate) fn take(&self) -> VecDeque<Runnable> {
        std::mem::take(&mut *lock(&self.0))
    }
}

// SAFETY: tests poll everything on the thread that created the tasks.
unsafe impl Host for EntryHost {
    fn schedule(&self, entry: Runnable) {
        lock(&self.0).push_back(entry);
    }

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn timer_moved(&self, _: Time) {}

    fn here(&self) -> Option<u16> {
        Some(0)
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        Err(entry)
    }
}

/// Runs a program that spawns tasks. `drive` receives the host run_with scheduled entries, and is
/// called until the program has completed.
pub(crate) fn run_with(spawn: impl Fn(&Scope<Cancelled>), mut drive: impl FnMut(&EntryHost)) {
    let host = Arc::new(EntryHost::default());
    let core = Core::new(host.clone(), Settings::default());
    let body = async |cx: Cx| {
        let all = cx.scope(async |s| {
            spawn(&s);
            Ok::<_, Cancelled>(())
        });
        all.await.unwrap();
    };
    // SAFETY: only this thread runs tasks.
    let ran = unsafe { Root::run(&core.root(), 0, body, Waker::noop(), || drive(&host)) };
    ran.unwrap().unwrap();
}

/// [`run_with`] tasks that each yield a few times.
pub(crate) fn with_tasks(tasks: usize, drive: impl FnMut(&EntryHost)) {
    run_with(|s| (0..tasks).for_each(|_| drop(s.spawn(yields))), drive);
}

/// A task that yields three times.
pub(crate) async fn yields(cx: Cx) -> Result<(), Cancelled> {
    for _ in 0..3 {
        cx.yield_now().await;
    }
    Ok(())
}
