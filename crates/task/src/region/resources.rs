//! What a region holds besides tasks and regions: obligations, timers, channels.
//!
//! All of it is given back when the region closes, after its finalizers: timers are cancelled, then
//! channels closed, each in the order of their making; obligations nobody resolved are leaks.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::Waker;

use asx_kernel::arena::Key;
use asx_kernel::ids::ObligationId;
use asx_kernel::journal::EventKind;
use asx_kernel::obligation::ObligationState;
use asx_kernel::region::{Operation, RegionState, RegionWord};
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::Cx;
use crate::core::timers::Owner;
use crate::error::{AdmissionError, ObligationError};
use crate::region::{InlineMap, Inner, Region};
use crate::task::cell::TimerToken;
use crate::task::context;
use crate::wait_list;

/// What one region holds.
#[derive(Default)]
pub(crate) struct Resources {
    /// Those that are reserved, and those that leaked; who was resolved is forgotten.
    obligations: BTreeMap<u64, ObligationState>,
    /// By generation: in the order of arming. Only probes arm timers of regions: they are few.
    timers: Vec<TimerHandle>,
    channels: InlineMap<Weak<dyn Scoped>>,
}

/// A channel of a region.
pub trait Scoped: Send + Sync {
    /// The region closes: permits are aborted, both sides closed. It is called once, on any thread,
    /// and a panic ends there.
    fn release(&self);
}

impl Inner {
    fn resources(&mut self) -> &mut Resources {
        self.resources.get_or_insert_default()
    }

    /// Has a channel closed when the region closes.
    pub(crate) fn keep_channel(&mut self, id: u64, channel: Weak<dyn Scoped>) {
        self.resources().channels.insert(id, channel);
    }

    /// How many obligations are reserved.
    pub(crate) fn outstanding(&self) -> usize {
        let reserved = |state: &&ObligationState| **state == ObligationState::Reserved;
        let count = |held: &Resources| held.obligations.values().filter(reserved).count();
        self.resources.as_deref().map_or(0, count)
    }
}

/// Obligations.
impl Region {
    /// Reserves an obligation: its number.
    #[track_caller]
    pub(crate) fn oblige(&self) -> Result<u64, Status> {
        let mut inner = self.lock();
        inner.admit(Operation::Create)?;
        self.core.room_for_obligation()?;
        let id = self.core.next_obligation.fetch_add(1, Relaxed);
        inner.word.obligation_added();
        inner.resources().obligations.insert(id, ObligationState::Reserved);
        self.note(EventKind::ObligationReserved { obligation: id });
        let task = || context::with_current(|task| task.id());
        wait_list::obliged(id, task, Location::caller());
        Ok(id)
    }

    /// Resolves an obligation, once.
    pub(crate) fn resolve(&self, id: u64, resolution: Resolution) -> Result<(), Status> {
        let mut inner = self.lock();
        let to = self.obligation_in(&inner, id)?.resolve(resolution)?;
        inner.word.state().admit(Operation::Resolve)?;
        RegionWord::obligation_done(&mut inner.word);
        self.resolved(&mut inner, id, to);
        Ok(())
    }

    /// Where an obligation stands: Reserved or Leaked; a resolved one answers that it is.
    pub(crate) fn obligation(&self, id: u64) -> Result<ObligationState, Status> {
        self.obligation_in(&self.lock(), id)
    }

    fn obligation_in(&self, inner: &Inner, id: u64) -> Result<ObligationState, Status> {
        let held = inner.resources.as_ref().and_then(|resources| resources.obligations.get(&id));
        held.copied().ok_or(Status::ObligationAlreadyResolved)
    }

    /// The obligation no longer counts; only a leaked one stays on record.
    fn resolved(&self, inner: &mut Inner, id: u64, to: ObligationState) {
        let obligations = &mut inner.resources().obligations;
        match to {
            // It is there: nothing is inserted, so that pages without obligations link no code
            // for that.
            ObligationState::Leaked => drop(obligations.get_mut(&id).map(|state| *state = to)),
            _ => {
                obligations.remove(&id);
                wait_list::released(id);
            }
        }
        self.core.obligation_done();
        if inner.cancel.is_some() {
            self.core.closing_obligation_done();
        }
        self.note(EventKind::ObligationResolved { obligation: id, to });
    }

    /// Turns each outstanding obligation into a leak, in order.
    pub(crate) fn account_leaks(&self) {
        let mut inner = self.lock();
        let reserved = |(id, state): (&u64, &ObligationState)| {
            (*state == ObligationState::Reserved).then_some(*id)
        };
        let outstanding: Vec<_> = match &inner.resources {
            Some(resources) => resources.obligations.iter().filter_map(reserved).collect(),
            None => Vec::new(),
        };
        for id in &outstanding {
            self.resolved(&mut inner, *id, ObligationState::Leaked);
        }
        if outstanding.is_empty() {
            // The last was resolved since this was found to be due.
            return;
        }
        self.note(EventKind::UnresolvedObligations { count: outstanding.len() as u64 });
        outstanding.iter().for_each(|id| wait_list::leaked(*id));
        drop(inner);
        self.span.leaked(&outstanding);
    }
}

/// Timers and channels.
impl Region {
    /// Arms a timer that the region cancels when it closes.
    pub(crate) fn arm(
        self: &Arc<Self>,
        deadline: Time,
        wakes: Option<Waker>,
    ) -> Result<TimerHandle, Status> {
        self.lock().admit(timer_operation())?;
        let armed = TimerToken::boxed(Owner::Region(self.clone()), wakes);
        let handle = self.core.arm(deadline, armed)?;
        self.keep_timer(handle)
    }

    /// Arms a timer in place of another, which stays if that fails; one that is over is no
    /// hindrance.
    pub(crate) fn rearm(
        self: &Arc<Self>,
        old: TimerHandle,
        deadline: Time,
        wakes: Option<Waker>,
    ) -> Result<TimerHandle, Status> {
        self.lock().admit(timer_operation())?;
        let armed = TimerToken::boxed(Owner::Region(self.clone()), wakes);
        let handle = match self.core.timers.look(old, |_| ()).is_some() {
            true => self.core.rearm(old, deadline, armed)?,
            false => self.core.arm(deadline, armed)?,
        };
        self.forget_timer(old);
        self.keep_timer(handle)
    }

    /// Lists a timer, unless the region has closed meanwhile.
    fn keep_timer(&self, handle: TimerHandle) -> Result<TimerHandle, Status> {
        let mut inner = self.lock();
        if inner.word.state() == RegionState::Closed {
            drop(inner);
            self.core.cancel_timer(handle);
            return Err(Status::RegionNotOpen);
        }
        let timers = &mut inner.resources().timers;
        let at = timers.partition_point(|timer| timer.generation < handle.generation);
        timers.insert(at, handle);
        Ok(handle)
    }

    /// A timer of this region is over.
    pub(crate) fn forget_timer(&self, handle: TimerHandle) {
        if let Some(resources) = &mut self.lock().resources {
            resources.timers.retain(|timer| *timer != handle);
        }
    }

    /// A channel of this region is gone.
    pub(crate) fn forget_channel(&self, id: u64) {
        let channel = {
            let mut inner = self.lock();
            self.core.touch(self.stamp());
            inner.resources.as_mut().and_then(|held| held.channels.remove(id))
        };
        drop(channel);
    }

    /// Cancels the region's timers.
    pub(crate) fn cancel_timers(&self) {
        let timers = match &mut self.lock().resources {
            Some(resources) => std::mem::take(&mut resources.timers),
            None => return,
        };
        for timer in timers {
            self.core.cancel_timer(timer);
        }
    }

    /// Closes the region's channels.
    pub(crate) fn release_channels(&self) {
        let channels = match &mut self.lock().resources {
            Some(resources) => std::mem::take(&mut resources.channels),
            None => return,
        };
        channels.take_each(|channel| {
            if let Some(channel) = channel.upgrade() {
                // Whatever panics is counted by this runtime.
                self.core.contain(move || channel.release());
            }
        });
    }
}

/// What arming a timer is to a region: finalizers may do more.
fn timer_operation() -> Operation {
    match context::with_current(|task| task.is_finalizer()) {
        Some(true) => Operation::ArmFinalizerTimer,
        _ => Operation::ArmTimer,
    }
}

/// A promise made in a scope: to be kept or called off.
///
/// One that is dropped unresolved counts as open until the scope closes, which then records it as
/// leaked. It changes nobody's outcome.
///
/// ```
/// # use asx::Cx;
/// # use std::error::Error;
/// async fn transfer(cx: &Cx) -> Result<(), Box<dyn Error>> {
///     let promise = cx.obligation()?;
///     // .. do what was promised ..
///     promise.commit()?;
///     Ok(())
/// }
/// ```
#[must_use = "an obligation that is neither committed nor aborted is a leak"]
pub struct Obligation {
    region: Arc<Region>,
    id: u64,
}

impl Obligation {
    /// Reserves an obligation of a region.
    #[track_caller]
    pub(crate) fn of(region: Arc<Region>) -> Result<Obligation, Status> {
        let id = region.oblige()?;
        Ok(Obligation { region, id })
    }

    /// Resolves it in any way: for permits that are obligations, and say how they end. Fails if it
    /// was resolved before.
    pub fn resolve(&self, resolution: Resolution) -> Result<(), Status> {
        self.region.resolve(self.id, resolution)
    }

    /// Its number.
    pub fn id(&self) -> ObligationId {
        ObligationId(Key { generation: self.id, index: 0 })
    }

    /// What was promised is done. Fails if the scope has closed meanwhile and counted it as leaked.
    pub fn commit(self) -> Result<(), ObligationError> {
        self.region.resolve(self.id, Resolution::Commit).map_err(ObligationError::new)
    }

    /// The promise is called off.
    pub fn abort(self) -> Result<(), ObligationError> {
        self.region.resolve(self.id, Resolution::Abort).map_err(ObligationError::new)
    }
}

impl std::fmt::Debug for Obligation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Obligation({})", self.id())
    }
}

impl Cx {
    /// Makes a promise that the innermost scope around the caller keeps account of.
    #[track_caller]
    pub fn obligation(&self) -> Result<Obligation, AdmissionError> {
        Obligation::of(self.region()).map_err(AdmissionError::new)
    }
}
