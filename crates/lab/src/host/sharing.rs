//! Detection of shared state: whether two tasks use the same channel, lock or other object of asx.
//!
//! A search that leaves out orders of independent steps has nothing to explore if no two tasks
//! share an object. Atomics, standard locks and thread-locals are not visible here, so such a
//! program must not be reported as proved.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use asx_runtime::footprint::{self, is_shared_state};

use crate::explore::TaskPath;

/// The objects of the current run and the task that used each first.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    users: HashMap<u64, TaskPath, BuildHasherDefault<DefaultHasher>>,
    /// Whether two tasks have used one object, in any run.
    is_seen: bool,
}

impl Sharing {
    /// Forgets the objects of the last run.
    pub(super) fn begin_run(&mut self) {
        self.users.clear();
    }

    /// Whether two tasks have used one object, in any run.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Records a use of an object.
    #[inline]
    pub(super) fn note(&mut self, task: TaskPath, access: &footprint::Access) {
        if !self.is_seen && task != TaskPath::CLOCK && is_shared_state(access) {
            let first = self.users.entry(access.object).or_insert(task);
            if *first != task {
                self.is_seen = true;
                self.users = HashMap::default();
            }
        }
    }
}
