//! Who is who in a run, and what hosts forget.

use crate::api::{Handle, HostApi};
use crate::events::Named;
use crate::events::Ordinals;
use crate::host::Failure;
use crate::names::Names;
use asx_kernel::session::PermitState;
use asx_kernel::status::Status;
use asx_kernel::wheel::TimerHandle;
use std::collections::{BTreeMap, BTreeSet};

/// The names of a host's things, and what went wrong in bodies.
pub(crate) struct Book<H: HostApi> {
    pub(crate) failures: Vec<Failure>,
    pub(crate) ordinals: Ordinals,
    pub(crate) tasks: Names<H::Task>,
    pub(crate) regions: Names<H::Region>,
    pub(crate) channels: Names<H::Channel>,
    pub(crate) permits: Names<H::Permit>,
    pub(crate) obligations: Names<H::Obligation>,
    pub(crate) timers: Names<TimerHandle>,
    /// Tracked permits, by number.
    pub(crate) tracked: BTreeSet<u64>,
    /// How permits were resolved, by number.
    pub(crate) resolved: BTreeMap<u64, PermitState>,
}

impl<H: HostApi> Default for Book<H> {
    fn default() -> Self {
        Book {
            failures: Vec::new(),
            ordinals: Ordinals::default(),
            tasks: Names::default(),
            regions: Names::default(),
            channels: Names::default(),
            permits: Names::default(),
            obligations: Names::default(),
            timers: Names::default(),
            tracked: BTreeSet::new(),
            resolved: BTreeMap::new(),
        }
    }
}

impl<H: HostApi> Book<H> {
    pub(crate) fn bind_task(&mut self, name: &str, task: H::Task) {
        let full = self.tasks.bind(None, name, task);
        self.ordinals.note(Named::Task, task.ordinal(), full);
    }

    pub(crate) fn bind_region(&mut self, name: &str, region: H::Region) {
        let full = self.regions.bind(None, name, region);
        self.ordinals.note(Named::Region, region.ordinal(), full);
    }

    pub(crate) fn bind_channel(&mut self, name: &str, channel: H::Channel) {
        let full = self.channels.bind(None, name, channel);
        self.ordinals.note(Named::Channel, channel.ordinal(), full);
    }

    pub(crate) fn bind_timer(&mut self, scope: Option<&str>, name: &str, timer: TimerHandle) {
        let full = self.timers.bind(scope, name, timer);
        self.ordinals.note(Named::Timer, timer.ordinal(), full);
    }

    pub(crate) fn bind_obligation(&mut self, scope: Option<&str>, name: &str, it: H::Obligation) {
        let full = self.obligations.bind(scope, name, it);
        self.ordinals.note(Named::Obligation, it.ordinal(), full);
    }

    pub(crate) fn bind_permit(
        &mut self,
        scope: Option<&str>,
        name: &str,
        permit: H::Permit,
        tracked: bool,
    ) {
        let full = self.permits.bind(scope, name, permit);
        self.ordinals.note(Named::Permit, permit.ordinal(), full);
        if tracked {
            self.tracked.insert(permit.ordinal());
        }
    }

    /// Whether the journal's task of that number has a name.
    pub(crate) fn knows_task(&self, ordinal: u64) -> bool {
        self.ordinals.name(Named::Task, ordinal).is_some()
    }

    /// The name of the journal's task of that number; else the number.
    pub(crate) fn task_name(&self, ordinal: u64) -> String {
        let name = self.ordinals.name(Named::Task, ordinal);
        name.map_or_else(|| ordinal.to_string(), str::to_owned)
    }

    /// The name of the journal's region of that number.
    pub(crate) fn region_name(&self, ordinal: u64) -> Option<String> {
        self.ordinals.name(Named::Region, ordinal).map(str::to_owned)
    }

    /// Notes what went wrong in the body of a task.
    pub(crate) fn report(&mut self, task: &str, mut failure: Failure) {
        failure.what = format!("task `{task}`, {}", failure.what);
        self.failures.push(failure);
    }
}

/// Finds a name or says that there is no such thing.
pub(crate) fn found<T: Copy>(
    names: &Names<T>,
    scope: Option<&str>,
    name: &str,
) -> Result<T, Status> {
    names.find(scope, name).ok_or(Status::StaleHandle)
}
