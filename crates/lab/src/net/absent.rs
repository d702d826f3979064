//! Where programs have no network.

use std::sync::{Arc, Weak};

use asx_kernel::time::Time;

use super::{Driver, Faults, Names};
use crate::explore::TaskPath;

/// No network: nothing is ever delivered.
pub(crate) struct SimNet;

impl SimNet {
    pub(crate) fn new(_: Weak<dyn Driver>) -> Arc<SimNet> {
        Arc::new(SimNet)
    }

    pub(crate) fn set_names(&self, _: Names) {}

    pub(crate) fn start(&self, _: Faults) {}

    pub(crate) fn end(&self) {}

    pub(crate) fn deliver(&self, _: TaskPath) {}

    pub(crate) fn next_event(&self) -> Option<Time> {
        None
    }

    pub(crate) fn fire(&self, _: Time) {}

    pub(crate) fn describe_failures(&self, _: &dyn Fn(u64) -> String) -> String {
        String::new()
    }

    pub(crate) fn called(&self, _: TaskPath) -> Option<String> {
        None
    }
}
