//! Capabilities without an event loop: the kernel's law, held beside the runtime.
//!
//! Workers deny nothing by themselves: their clock, timers and randomness are there. For a scenario
//! about capabilities the clock and the timer are denied to the runtime as a page denies them, so
//! that waits for a time fail. Any other refusal is an answer and a host-only event, and changes
//! nothing for the task that asked.

use crate::events::{HostEvent, WAIT};
use crate::host::Reply;
use crate::parity::OF_HOST_EVENT;
use crate::scenario::{Browser, BrowserOp};
use crate::value::Value;
use asx_kernel::pump::{Capabilities, Capability, Denied};
use asx_kernel::status::{Coded, Status};
use asx_runtime::{Core, TimeDenied};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is granted, and what was refused.
pub(super) struct Gate {
    core: Arc<Core>,
    inside: Mutex<(Capabilities, Vec<HostEvent>)>,
}

impl Gate {
    pub(super) fn of(browser: &Browser, core: Arc<Core>) -> Gate {
        let granted = browser.granted();
        core.deny_time(time_denied(granted));
        Gate { core, inside: Mutex::new((granted, Vec::new())) }
    }

    fn lock(&self) -> MutexGuard<'_, (Capabilities, Vec<HostEvent>)> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runtime refused a task a timer.
    pub(super) fn deny_wait(&self) {
        let (granted, refused) = &mut *self.lock();
        let needed = [Capability::Clock, Capability::Timer];
        let denied = needed.map(|capability| granted.require(capability, WAIT).err());
        refused.extend(denied.into_iter().flatten().next().map(event));
    }

    pub(super) fn op(&self, op: &BrowserOp) -> Reply {
        let (granted, refused) = &mut *self.lock();
        match op {
            BrowserOp::Grant { capability } => {
                granted.grant(capability.0);
                self.core.deny_time(time_denied(*granted));
            }
            BrowserOp::Revoke { capability } => {
                granted.revoke(capability.0);
                self.core.deny_time(time_denied(*granted));
            }
            BrowserOp::Require { capability } => match granted.require(capability.0, "scenario") {
                Ok(()) => return Reply::ok().with("provenance", Value::none()),
                Err(denied) => {
                    refused.push(event(denied));
                    return Reply::status(denied.status()).with("provenance", denied.provenance);
                }
            },
            _ => return Status::InvalidArgument.into(),
        }
        Reply::ok()
    }

    pub(super) fn events(&self) -> Vec<HostEvent> {
        self.lock().1.clone()
    }
}

/// What keeps tasks from waiting for a time, if something does.
fn time_denied(granted: Capabilities) -> Option<TimeDenied> {
    if !granted.has(Capability::Clock) {
        return Some(TimeDenied::Clock);
    }
    (!granted.has(Capability::Timer)).then_some(TimeDenied::Timer)
}

/// A refusal with every mandatory field; there is neither turn nor decision to tell of.
fn event(denied: Denied) -> HostEvent {
    let class = |field| (field == "error_class").then(|| denied.status().name().into());
    let mut fields: Vec<_> = OF_HOST_EVENT.iter().map(|field| (*field, class(*field))).collect();
    fields.push(("capability", Some(denied.capability.name().into())));
    fields.push(("provenance", Some(denied.provenance.into())));
    HostEvent { kind: "scheduler_capability_denied", fields }
}
