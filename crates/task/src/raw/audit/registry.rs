//! The tasks of a core, to say at its end which are left.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::books::Record;
use super::{End, graves};
use crate::prim::lock_unseen;

/// How long what other threads are about to give up may stay after the end of a runtime.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The live tasks of a core, by their addresses.
#[derive(Clone)]
pub(crate) struct Registry(Arc<Tasks>);

struct Tasks {
    number: u64,
    live: Mutex<HashMap<usize, Arc<Record>>>,
}

impl Registry {
    pub(crate) fn open() -> Registry {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        Registry(Arc::new(Tasks { number, live: Mutex::default() }))
    }

    /// The number of the core.
    pub(super) fn number(&self) -> u64 {
        self.0.number
    }

    pub(super) fn add(&self, at: usize, record: Arc<Record>) {
        let before = lock_unseen(&self.0.live).insert(at, record);
        if let Some(before) = before {
            before.fail("another task is where it lives");
        }
    }

    pub(super) fn remove(&self, at: usize) {
        lock_unseen(&self.0.live).remove(&at);
    }

    /// What is left of the tasks though no thread runs them any more.
    fn left(&self) -> Option<String> {
        let live = lock_unseen(&self.0.live);
        let left = live.values().filter(|record| record.is_left());
        let left: Vec<_> = left.map(|record| format!("{record}: {}", record.account)).collect();
        (!left.is_empty()).then(|| left.join("\n  "))
    }

    /// The runtime has ended (rule 6).
    pub(super) fn check_end(&self, patience: Duration) {
        graves::check_core(self.number());
        let end = Instant::now() + patience;
        while let Some(left) = self.left() {
            if Instant::now() >= end {
                graves::fail(&format!(
                    "the runtime has ended, and these tasks are left:\n  {left}"
                ));
            }
            sleep(Duration::from_millis(1));
        }
    }

    /// The core is dropped.
    pub(crate) fn close(&self) {
        if let Some(record) = lock_unseen(&self.0.live).values().next() {
            record.fail("its core is freed");
        }
        graves::check_core(self.number());
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.check_end(PATIENCE);
    }
}
