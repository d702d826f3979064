//! Capabilities without an event loop: the kernel's law, held beside the runtime.
//!
//! Workers deny nothing: their clock and their randomness are there. What a scenario about
//! capabilities compares is what else happens while something is denied, which is nothing: the
//! refusal is an answer and a host-only event, and tasks go on as if nobody had asked.

use crate::events::HostEvent;
use crate::host::Reply;
use crate::parity::OF_HOST_EVENT;
use crate::scenario::{Browser, BrowserOp};
use crate::value::Value;
use asx_kernel::pump::{Capabilities, Denied};
use asx_kernel::status::{Coded, Status};
use std::sync::{Mutex, PoisonError};

/// What is granted, and what was refused.
pub(super) struct Gate(Mutex<(Capabilities, Vec<HostEvent>)>);

impl Gate {
    pub(super) fn of(browser: &Browser) -> Gate {
        Gate(Mutex::new((browser.granted(), Vec::new())))
    }

    pub(super) fn op(&self, op: &BrowserOp) -> Reply {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (granted, refused) = &mut *inside;
        match op {
            BrowserOp::Grant { capability } => granted.grant(capability.0),
            BrowserOp::Revoke { capability } => granted.revoke(capability.0),
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

/// A refusal with every mandatory field; there is neither turn nor decision to tell of.
fn event(denied: Denied) -> HostEvent {
    let class = |field| (field == "error_class").then(|| denied.status().name().into());
    let mut fields: Vec<_> = OF_HOST_EVENT.iter().map(|field| (*field, class(*field))).collect();
    fields.push(("capability", Some(denied.capability.name().into())));
    fields.push(("provenance", Some(denied.provenance.into())));
    HostEvent { kind: "scheduler_capability_denied", fields }
}
