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

use crate::core::timer_token::{TimerOwner, TimerRegion, TimerToken};
use crate::dump::ObligationInfo;
use crate::error::ObligationError;
use crate::inline_map::InlineMap;
use crate::raw::poll_context;
use crate::region::origin::{Leak, LeakCause, Origin};
use crate::region::{Inner, Region};
use crate::wait_list;

/// What one region holds.
#[derive(Default)]
pub(crate) struct Resources {
    /// Those that are reserved, and those that leaked; who was resolved is forgotten.
    obligations: BTreeMap<u64, Reserved>,
    /// Tracked permits of channels without a scope, in the order of their reservation. They are
    /// shown in dumps and their leaks are counted, but no close waits for them.
    permits: InlineMap<Origin>,
    /// Leaks that were counted and are not reported yet.
    unreported: Vec<Leak>,
    /// Reports leaks. Set by the first reservation, so that a page without obligations links no
    /// code for reports.
    report: Option<Report>,
    /// By generation: in the order of arming. Only probes arm timers of regions: they are few.
    timers: Vec<TimerHandle>,
    channels: InlineMap<Weak<dyn Scoped>>,
}

/// Reports the leaks of a region.
type Report = fn(&Region, Vec<Leak>);

/// The contents of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelLoad {
    /// Messages that were sent and not received.
    pub messages: usize,
    /// Slots that are reserved and neither filled nor given back.
    pub permits: usize,
}

/// An obligation that is reserved or leaked.
struct Reserved {
    state: ObligationState,
    origin: Origin,
}

impl Reserved {
    fn is_outstanding(&self) -> bool {
        self.state == ObligationState::Reserved
    }
}

/// A channel of a region.
pub trait Scoped: Send + Sync {
    /// Returns how many messages and how many permits it holds. No lock of a region is held.
    fn load(&self) -> ChannelLoad;

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
        let reserved = |held: &&Reserved| held.is_outstanding();
        let count = |held: &Resources| held.obligations.values().filter(reserved).count();
        self.resources.as_deref().map_or(0, count)
    }

    /// The obligations and tracked permits that are not resolved, obligations first.
    pub(crate) fn obligations(&self) -> Vec<ObligationInfo> {
        let Some(held) = &self.resources else { return Vec::new() };
        let reserved = held.obligations.iter().filter(|(_, held)| held.is_outstanding());
        let reserved = reserved.map(|(id, held)| held.origin.describe(Some(*id)));
        reserved.chain(held.permits.values().map(|origin| origin.describe(None))).collect()
    }

    /// The numbers of the region's channels, and the channels.
    pub(crate) fn channels(&self) -> Vec<(u64, Weak<dyn Scoped>)> {
        let channels = self.resources.iter().flat_map(|held| held.channels.entries());
        channels.map(|(id, channel)| (id, channel.clone())).collect()
    }

    /// Takes the leaks that are to be reported, and the function that reports them.
    fn take_leaks(&mut self) -> Option<(Vec<Leak>, Report)> {
        let held = self.resources.as_deref_mut()?;
        let report = held.report?;
        (!held.unreported.is_empty()).then(|| (std::mem::take(&mut held.unreported), report))
    }
}

/// Obligations.
impl Region {
    /// Reserves an obligation: its number.
    #[track_caller]
    pub(crate) fn oblige(&self) -> Result<u64, Status> {
        self.oblige_at(Location::caller())
    }

    /// [`oblige`](Region::oblige) for the caller at this place.
    pub(crate) fn oblige_at(&self, at: &'static Location<'static>) -> Result<u64, Status> {
        let origin = Origin::here(at);
        let task = origin.task;
        let mut inner = self.lock();
        inner.admit(Operation::Create)?;
        self.core.room_for_obligation()?;
        let id = self.core.next_obligation.fetch_add(1, Relaxed);
        inner.word.obligation_added();
        let held = inner.resources();
        held.report = Some(Region::report_each);
        held.obligations.insert(id, Reserved { state: ObligationState::Reserved, origin });
        self.note(EventKind::ObligationReserved { obligation: id });
        wait_list::obliged(id, || task, at);
        Ok(id)
    }

    /// Resolves an obligation, once.
    pub(crate) fn resolve(&self, id: u64, resolution: Resolution) -> Result<(), Status> {
        self.resolve_unreported(id, resolution)?;
        if resolution == Resolution::Leak {
            self.report_leaks();
        }
        Ok(())
    }

    /// [`resolve`](Region::resolve) under the lock of a channel. If it is a leak, the caller
    /// [reports](Region::report_leaks) it when it has released that lock.
    fn resolve_unreported(&self, id: u64, resolution: Resolution) -> Result<(), Status> {
        let mut inner = self.lock();
        let to = self.obligation_in(&inner, id)?.resolve(resolution)?;
        inner.word.state().admit(Operation::Resolve)?;
        RegionWord::obligation_done(&mut inner.word);
        self.resolved(&mut inner, id, to, LeakCause::Dropped);
        Ok(())
    }

    /// Where an obligation stands: Reserved or Leaked; a resolved one answers that it is.
    pub(crate) fn obligation(&self, id: u64) -> Result<ObligationState, Status> {
        self.obligation_in(&self.lock(), id)
    }

    fn obligation_in(&self, inner: &Inner, id: u64) -> Result<ObligationState, Status> {
        let held = inner.resources.as_ref().and_then(|resources| resources.obligations.get(&id));
        held.map(|held| held.state).ok_or(Status::ObligationAlreadyResolved)
    }

    /// The obligation no longer counts; only a leaked one stays on record. `cause`: why it leaked,
    /// if it did.
    fn resolved(&self, inner: &mut Inner, id: u64, to: ObligationState, cause: LeakCause) {
        let Resources { obligations, unreported, .. } = inner.resources();
        match to {
            // It is there: nothing is inserted, so that pages without obligations link no code
            // for that.
            ObligationState::Leaked => {
                if let Some(held) = obligations.get_mut(&id) {
                    held.state = to;
                    unreported.push(Leak { id: Some(id), origin: held.origin.clone(), cause });
                    self.core.obligation_leaked();
                }
            }
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
        let reserved = |(id, held): (&u64, &Reserved)| held.is_outstanding().then_some(*id);
        let outstanding: Vec<_> = match &inner.resources {
            Some(resources) => resources.obligations.iter().filter_map(reserved).collect(),
            None => Vec::new(),
        };
        for id in &outstanding {
            self.resolved(&mut inner, *id, ObligationState::Leaked, LeakCause::Closed);
        }
        if outstanding.is_empty() {
            // The last was resolved since this was found to be due.
            return;
        }
        self.note(EventKind::UnresolvedObligations { count: outstanding.len() as u64 });
        outstanding.iter().for_each(|id| wait_list::leaked(*id));
        drop(inner);
        self.report_leaks();
    }

    /// Reports the leaks that were counted under a lock. No lock of a channel or region is held,
    /// since subscribers of `tracing` are third-party code.
    pub(crate) fn report_leaks(&self) {
        let leaks = self.lock().take_leaks();
        if let Some((leaks, report)) = leaks {
            report(self, leaks);
        }
    }

    #[cold]
    fn report_each(&self, leaks: Vec<Leak>) {
        for leak in &leaks {
            let Leak { id, origin, .. } = leak;
            self.span.leaked(*id, origin.task, origin.name.as_deref(), origin.at);
            #[cfg(not(loom))]
            self.core.report_leak(origin.at, || leak.describe_in(self));
        }
    }
}

impl TimerRegion for Region {
    fn id(&self) -> u64 {
        self.id
    }

    fn forget_timer(&self, handle: TimerHandle) {
        if let Some(resources) = &mut self.lock().resources {
            resources.timers.retain(|timer| *timer != handle);
        }
    }
}

/// Tracked permits of channels without a scope.
impl Region {
    /// Lists a permit: its place in the list.
    pub(crate) fn keep_permit(&self, at: &'static Location<'static>) -> u64 {
        let origin = Origin::here(at);
        let place = self.core.next_place();
        let mut inner = self.lock();
        let held = inner.resources();
        held.report = Some(Region::report_each);
        held.permits.insert(place, origin);
        place
    }

    /// A permit was resolved.
    pub(crate) fn forget_permit(&self, place: u64) {
        // Dropped after the lock is released.
        let _origin = self.lock().resources().permits.remove(place);
    }

    /// A permit was dropped unresolved: counts and reports the leak.
    pub(crate) fn permit_leaked(&self, place: u64) {
        let origin = self.lock().resources().permits.remove(place);
        if let Some(origin) = origin {
            self.count_permit(origin);
        }
    }

    /// A permit that was reserved outside of all tasks was dropped unresolved in a task of this
    /// region.
    pub(crate) fn unlisted_permit_leaked(&self, at: &'static Location<'static>) {
        self.count_permit(Origin::outside(at));
    }

    fn count_permit(&self, origin: Origin) {
        self.core.obligation_leaked();
        self.report_each(vec![Leak { id: None, origin, cause: LeakCause::Dropped }]);
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
        let armed = TimerToken::boxed(TimerOwner::Region(self.clone()), wakes);
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
        let armed = TimerToken::boxed(TimerOwner::Region(self.clone()), wakes);
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
    match poll_context::with_current(|task| task.is_finalizer()) {
        Some(true) => Operation::ArmFinalizerTimer,
        _ => Operation::ArmTimer,
    }
}

/// A promise made in a scope: to be kept or called off.
///
/// One that is dropped unresolved counts as open until the scope closes, which then records it as
/// leaked. It changes nobody's outcome.
///
/// A leak is counted in [`Health::leaked_obligations`](crate::Health::leaked_obligations) and
/// reported with the task that reserved the obligation and the place: as an event of `tracing` if
/// that has a subscriber, else once for each place on the error output or on the console of a page.
/// [Dumps](crate::Dump) list the obligations that are not resolved yet.
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
    /// Reserves an obligation of a region, for the caller at this place.
    pub(crate) fn of(
        region: Arc<Region>,
        at: &'static Location<'static>,
    ) -> Result<Obligation, Status> {
        let id = region.oblige_at(at)?;
        Ok(Obligation { region, id })
    }

    /// Resolves it in any way: for permits that are obligations, and say how they end. Fails if it
    /// was resolved before.
    pub fn resolve(&self, resolution: Resolution) -> Result<(), Status> {
        self.region.resolve(self.id, resolution)
    }

    /// [`resolve`](Obligation::resolve) under a lock. After a leak the caller releases the lock and
    /// then calls [`report_leak`](Obligation::report_leak).
    ///
    /// # Errors
    /// As [`resolve`](Obligation::resolve).
    pub fn resolve_locked(&self, resolution: Resolution) -> Result<(), Status> {
        self.region.resolve_unreported(self.id, resolution)
    }

    /// Reports what has leaked in its region and was not reported yet.
    pub fn report_leak(&self) {
        self.region.report_leaks();
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
