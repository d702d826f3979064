//! What a dump says of a region and of its tasks.

use crate::dump::{Dump, TaskInfo};
use crate::region::Region;
use crate::task::cell::Header;

impl TaskInfo {
    pub(crate) fn of(task: &Header) -> TaskInfo {
        let word = task.word.load();
        TaskInfo {
            id: task.id(),
            name: task.attrs.as_ref().and_then(|attrs| attrs.name.clone()),
            state: word.state(),
            activity: word.activity(),
            blocking: task.is_blocking(),
            overrun: word.is_forced(),
            waits: task.wait().map(|(on, at)| (on.text(), at)),
            stale: task.is_wait_stale(),
        }
    }
}

impl Dump {
    /// What is in a region and below it.
    pub fn of(region: &Region) -> Dump {
        let mut regions = Vec::new();
        region.describe(&mut regions);
        Dump { regions, timers: region.core.live_timers() }
    }
}
