//! Detection of shared state: whether two tasks use the same channel, lock or other object of asx.
//!
//! A search that leaves out orders of independent steps has nothing to explore if no two tasks
//! share an object that one of them changes. Atomics, standard locks and thread-locals are not
//! visible here, so such a program must not be reported as proved.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

use asx_runtime::footprint::{self, AccessKind, is_shared_state};

use crate::explore::TaskPath;

/// The objects of the current run and the tasks that used them.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    uses: HashMap<u64, Use, BuildHasherDefault<DefaultHasher>>,
    /// Whether two tasks have used one object, and at least one has changed it, in any run.
    is_seen: bool,
}

/// The use of one object.
#[derive(Debug)]
struct Use {
    /// The task that used it first.
    first: TaskPath,
    has_others: bool,
    is_changed: bool,
}

impl Sharing {
    /// Forgets the objects of the last run.
    pub(super) fn begin_run(&mut self) {
        self.uses.clear();
    }

    /// Whether two tasks have used one object, and at least one has changed it, in any run.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Records a use of an object. The clock is no task of the program.
    #[inline]
    pub(super) fn note(&mut self, task: TaskPath, access: &footprint::Access) {
        if self.is_seen || task == TaskPath::CLOCK || !is_shared_state(access) {
            return;
        }
        let new = Use { first: task, has_others: false, is_changed: false };
        let known = self.uses.entry(access.object).or_insert(new);
        known.has_others |= known.first != task;
        known.is_changed |= access.how != AccessKind::Read;
        if known.has_others && known.is_changed {
            self.is_seen = true;
            self.uses = HashMap::default();
        }
    }
}
