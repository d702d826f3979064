//! The origin of an obligation, and why it leaked.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

#[cfg(not(loom))]
use super::Region;
use crate::dump::ObligationInfo;
use crate::raw::poll_context;

/// The task that reserved an obligation, and where.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The number of the task; `None` if it was reserved outside of all tasks.
    pub(crate) task: Option<u64>,
    /// The name of the task, if it has one.
    pub(crate) name: Option<Arc<str>>,
    /// The type of the task's body.
    #[cfg(not(target_family = "wasm"))]
    body: &'static str,
    pub(crate) at: &'static Location<'static>,
}

impl Origin {
    /// The task that this thread is polling, at this place.
    pub(crate) fn here(at: &'static Location<'static>) -> Origin {
        let of_task = poll_context::with_current(|task| Origin {
            task: Some(task.id()),
            name: task.attrs.as_ref().and_then(|attrs| attrs.name.clone()),
            #[cfg(not(target_family = "wasm"))]
            body: task.body(),
            at,
        });
        of_task.unwrap_or_else(|| Origin::outside(at))
    }

    /// No task, at this place.
    pub(crate) fn outside(at: &'static Location<'static>) -> Origin {
        Origin {
            task: None,
            name: None,
            #[cfg(not(target_family = "wasm"))]
            body: "",
            at,
        }
    }

    /// The obligation with this number, for dumps.
    pub(crate) fn describe(&self, id: Option<u64>) -> ObligationInfo {
        ObligationInfo { id, task: self.task, name: self.name.clone(), reserved: self.at }
    }
}

/// Why an obligation leaked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeakCause {
    /// Its region closed first.
    Closed,
    /// Its tracked permit was dropped unresolved.
    Dropped,
}

/// A leaked obligation.
#[derive(Clone, Debug)]
pub(crate) struct Leak {
    /// Its number; `None` for a tracked permit of a channel without a scope.
    pub(crate) id: Option<u64>,
    pub(crate) origin: Origin,
    #[cfg_attr(loom, allow(dead_code, reason = "the models report nothing"))]
    pub(crate) cause: LeakCause,
}

impl Leak {
    /// The report of the leak, in this region.
    #[cfg(not(loom))]
    pub(super) fn describe_in(&self, region: &Region) -> String {
        match self.cause {
            LeakCause::Dropped => format!("{self}, and it was dropped unresolved"),
            LeakCause::Closed => {
                let id = region.id;
                let name = region.label.name.as_ref().map(|name| format!(" {name:?}"));
                let name = name.unwrap_or_default();
                format!("{self}, and region r{id}{name} closed before it was committed or aborted")
            }
        }
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "obligation o{id} leaked: "),
            None => f.write_str("a send permit leaked: "),
        }?;
        let Origin { task, name, at, .. } = &self.origin;
        match (task, name) {
            (Some(id), Some(name)) => write!(f, "task t{id} {name:?} reserved it at {at}"),
            #[cfg(not(target_family = "wasm"))]
            (Some(id), None) => match crate::dump::function(self.origin.body) {
                Some(function) => write!(f, "task t{id} of `{function}` reserved it at {at}"),
                None => write!(f, "task t{id} (the body of the program) reserved it at {at}"),
            },
            #[cfg(target_family = "wasm")]
            (Some(id), None) => write!(f, "task t{id} reserved it at {at}"),
            (None, _) => write!(f, "it was reserved outside of all tasks at {at}"),
        }
    }
}
