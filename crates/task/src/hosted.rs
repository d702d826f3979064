//! Regions and tasks in the hands of a host: of one that starts tasks for programs that are no
//! futures of Rust, as pages do for their scripts, and has to open and close their regions itself.
//!
//! Programs have scopes and handles for all of this.

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;

pub use crate::dump::quoted;

use crate::raw::TaskRef;
use crate::raw::audit::Owner;
use crate::raw::poll_context;
use crate::region::{Policy, Region};
use crate::runtime::cx::Cx;
use crate::scope::Scope;
use crate::{Runnable, Task};

/// A task that a host asks to stop, or asks why it ends.
#[derive(Clone)]
pub struct HostTask(pub(crate) TaskRef);

impl HostTask {
    /// The task of a context.
    pub fn of(cx: &Cx) -> HostTask {
        HostTask(cx.task().clone().given_to(Owner::Probe))
    }

    /// The task of a handle.
    pub fn of_task<T, E>(task: &Task<T, E>) -> HostTask {
        HostTask(task.to_ref().given_to(Owner::Probe))
    }

    /// The task of a queue entry.
    pub fn of_entry(entry: &Runnable) -> HostTask {
        HostTask(entry.to_ref().given_to(Owner::Probe))
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Its region.
    pub fn region(&self) -> HostRegion {
        HostRegion(self.0.region().clone())
    }

    /// Why it was asked to stop.
    pub fn reason(&self) -> Option<Arc<Reason>> {
        self.0.reason()
    }

    /// Asks it to stop: whether for the first time.
    ///
    /// # Errors
    /// There is no room in the lane of cancelled tasks.
    pub fn cancel(&self, kind: Kind, message: Option<Arc<str>>) -> Result<bool, Status> {
        let word = self.0.word.load();
        if word.is_completed() || self.0.is_finalizer() {
            return Ok(false);
        }
        let _reserved = self.0.region().core.room_to_cancel(&self.0)?;
        let reason = asked(self.0.region(), kind, message);
        Ok(self.0.region().cancel_task(&self.0, &Arc::new(reason), kind.cleanup()))
    }
}

/// A region that a host opens, ends and closes.
#[derive(Clone)]
pub struct HostRegion(pub(crate) Arc<Region>);

impl HostRegion {
    /// A region of the host's: its root, as a rule.
    pub fn of(region: Arc<Region>) -> HostRegion {
        HostRegion(region)
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// How it has closed.
    pub fn outcome(&self) -> Option<Severity> {
        self.0.outcome()
    }

    /// Opens a region inside, with the one scope it has.
    ///
    /// # Errors
    /// The region takes no more.
    pub fn open_scope<E>(
        &self,
        policy: Policy,
        budget: Budget,
    ) -> Result<(HostRegion, Scope<E>), Status> {
        let child = HostRegion(self.0.open_child(policy, budget, None)?);
        // The region is new, and no other scope starts tasks in it: all have this type of errors.
        let scope = Scope::over(child.0.clone(), PhantomData);
        Ok((child, scope))
    }

    /// Nothing more is started in it by its author: it closes when all inside has ended.
    pub fn end(&self) {
        self.0.end();
    }

    /// Whether it has closed; if not, the waker is woken when it has.
    pub fn poll_closed(&self, waker: &Waker) -> bool {
        self.0.poll_closed(waker)
    }

    /// Closes it with a reason: whether for the first time.
    pub fn close(
        &self,
        kind: Kind,
        message: Option<Arc<str>>,
        force_after: Option<Duration>,
    ) -> bool {
        let state = self.0.lock().word.state();
        if state == RegionState::Closed {
            return false;
        }
        let reason = asked(&self.0, kind, message);
        self.0.close(Arc::new(reason), kind.cleanup());
        if let Some(after) = force_after {
            self.0.force_after(after);
        }
        state == RegionState::Open
    }
}

/// A reason as somebody asks for it here and now.
fn asked(region: &Region, kind: Kind, message: Option<Arc<str>>) -> Reason {
    let asker = poll_context::with_current(|task| Cx::of(task.clone()).id_unseen());
    let mut reason = region.reason(kind);
    (reason.origin_task, reason.message) = (asker, message);
    reason
}
