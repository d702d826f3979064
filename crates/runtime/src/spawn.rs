//! How a task comes to be.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use asx_kernel::region::Operation;
use asx_kernel::status::Status;

use crate::Cx;
use crate::cell::{Blueprint, Extra, FREE, Fresh, Joint, Runnable};
use crate::outcome::Panic;
use crate::poll;
use crate::region::Region;
use crate::task::Task;

/// How a task is to be.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) operation: Operation,
    pub(crate) pin: u16,
    pub(crate) priority: u8,
    pub(crate) extra: Option<Box<Extra>>,
}

impl Default for Plan {
    fn default() -> Self {
        let priority = asx_kernel::lanes::Priority::DEFAULT.0;
        Plan { operation: Operation::Create, pin: FREE, priority, extra: None }
    }
}

/// Makes a task in a region and lets it run. In a region that admits nothing the task is over at
/// once, cancelled, and the status says why.
///
/// # Safety
/// Rules 6 and 7 of cells: the future is `Send` or the plan pins it; it is `'static` or the caller
/// waits for its end.
pub(crate) unsafe fn spawn<F, B, T, E>(
    region: &Arc<Region>,
    plan: Plan,
    body: F,
) -> (Result<(), Status>, Task<T, E>)
where
    F: FnOnce(Cx) -> B,
    B: Future<Output = Result<T, E>>,
{
    // SAFETY: the caller's promise.
    let (entry, task) = unsafe { make(region, plan, body) };
    let spawned = entry.map(|entry| {
        if let Some(entry) = entry {
            region.core.host.schedule(entry);
        }
    });
    (spawned, task)
}

/// Makes a task in a region: its first entry, unless it is over already, and its handle.
///
/// # Safety
/// As [`spawn`].
pub(crate) unsafe fn make<F, B, T, E>(
    region: &Arc<Region>,
    plan: Plan,
    body: F,
) -> (Result<Option<Runnable>, Status>, Task<T, E>)
where
    F: FnOnce(Cx) -> B,
    B: Future<Output = Result<T, E>>,
{
    let fresh = Fresh::<B, T, E>::new(Blueprint {
        region: region.clone(),
        id: region.core.next_id(),
        pin: plan.pin,
        priority: plan.priority,
        extra: plan.extra,
    });
    let cx = fresh.cx();
    let (future, panic) = match catch_unwind(AssertUnwindSafe(|| body(cx))) {
        Ok(future) => (Some(future), None),
        Err(payload) => (None, Some(Panic::new(payload))),
    };
    let (header, handle) = fresh.with(future);
    // SAFETY: the cell was made for these types, and this is its handle.
    let task = Task::new(unsafe { Joint::new(handle) });
    let adopted = region.adopt(header, plan.operation);
    // SAFETY: new cells are scheduled.
    let entry = unsafe { Runnable::new(header) };
    let entry = match (adopted, panic) {
        (Ok(()), None) => Ok(Some(entry)),
        (Ok(()), Some(panic)) => {
            poll::end_panicked(entry, panic);
            Ok(None)
        }
        (Err(status), _) => {
            poll::refuse(entry);
            Err(status)
        }
    };
    (entry, task)
}
