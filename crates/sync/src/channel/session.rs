//! Senders with permits that must be resolved.
//!
//! A plain [`Permit`](super::Permit) may be dropped: that gives its slot back. A [`TrackedPermit`]
//! must be resolved by hand: sending commits it, aborting calls it off, each answered with a proof
//! that only a resolution makes. Dropping one gives its slot back too, but is a leak: it is
//! counted, and it panics where it happens, unless a panic is under way already or the runtime
//! drops a task by force. The runtime counts and reports it
//! ([`Health::leaked_obligations`](asx_task::Health::leaked_obligations)) with the task that
//! reserved the permit and the place, and its [dumps](asx_task::Dump) list the permits that are not
//! resolved.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

pub use asx_kernel::session::{AbortedProof, CommittedProof};
use asx_kernel::session::{DropContext, LEAK_MESSAGE, PermitEffect, PermitEvent, PermitState};
use asx_kernel::status::{Coded, Status};
use asx_task::operation::{PermitRecord, is_dropping_by_force};
use asx_task::{AdmissionError, CancelSafe, Cancelled, Cx, footprint};

use super::permit::OwnedPermit;
use super::reserve::ReserveOwned;
use super::shared::Shared;
use super::{Disconnected, Receiver, SendError, Sender, UntilClosed, ZeroCapacity};
use crate::prim::Arc;
use crate::prim::atomic::{AtomicU64, Ordering};

/// Creates a [`bounded`](super::bounded()) channel with permits that must be resolved.
///
/// ```
/// let (tx, mut rx) = asx::channel::session::bounded(1);
/// let permit = tx.try_reserve()?;
/// let _proof = permit.send("done");
/// assert_eq!(rx.try_recv()?, "done");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the capacity is 0.
#[track_caller]
pub fn bounded<T>(capacity: usize) -> (TrackedSender<T>, Receiver<T>) {
    let (sender, receiver) = super::bounded(capacity);
    (sender.tracked(), receiver)
}

/// [`bounded`], for capacities that are not known to be above 0.
pub fn try_bounded<T>(capacity: usize) -> Result<(TrackedSender<T>, Receiver<T>), ZeroCapacity> {
    let (sender, receiver) = super::try_bounded(capacity)?;
    Ok((sender.tracked(), receiver))
}

impl<T> Sender<T> {
    /// This sender, with permits that are duties. Leaks are counted from here on, for it and its
    /// clones.
    pub fn tracked(self) -> TrackedSender<T> {
        TrackedSender { sender: self, leaked: Arc::new(AtomicU64::new(0)) }
    }
}

/// A sending side with permits that are duties; a clone is a further one.
#[must_use = "the channel disconnects with its last sender"]
pub struct TrackedSender<T> {
    sender: Sender<T>,
    leaked: Arc<AtomicU64>,
}

impl<T> TrackedSender<T> {
    /// Waits for a slot, as [`Sender::reserve`] does. The duty begins with the permit: a wait that
    /// is dropped or cancelled leaks nothing.
    ///
    /// # Errors
    ///
    /// Fails if the receiver is gone, if the task was cancelled, or if the scope refuses the
    /// obligation: it is closing, or the limit on obligations is reached. The slot then stays free.
    #[track_caller]
    pub fn reserve<'a>(&'a self, cx: &'a Cx) -> TrackedReserve<'a, T> {
        let reserve = ReserveOwned::new(&self.sender.shared, cx, Location::caller());
        TrackedReserve { reserve, leaked: &self.leaked }
    }

    /// Reserves a slot if one is free and no task waits for one.
    ///
    /// # Errors
    ///
    /// Fails if there is no free slot, if the receiver is gone, or if the scope refuses the
    /// obligation. Nothing has changed then.
    #[track_caller]
    pub fn try_reserve(&self) -> Result<TrackedPermit<T>, TryReserveError> {
        let _after = footprint::operation();
        let permit = TrackedPermit::try_reserve(&self.sender.shared);
        let mut permit = permit.map_err(TryReserveError::new)?;
        permit.leaked = self.leaked.clone();
        Ok(permit)
    }

    /// Waits until the receiver is gone, or was [closed](Receiver::close).
    #[track_caller]
    pub fn closed<'a>(&'a self, cx: &'a Cx) -> UntilClosed<'a, T> {
        self.sender.closed(cx)
    }

    /// Whether the receiver is gone, or takes no more senders.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// How many permits were dropped unresolved so far.
    pub fn leaked(&self) -> u64 {
        self.leaked.load(Ordering::Relaxed)
    }

    /// The plain sender. Permits that are out remain duties.
    pub fn into_untracked(self) -> Sender<T> {
        self.sender
    }
}

impl<T> Clone for TrackedSender<T> {
    fn clone(&self) -> Self {
        TrackedSender { sender: self.sender.clone(), leaked: self.leaked.clone() }
    }
}

impl<T> fmt::Debug for TrackedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedSender").field("leaked", &self.leaked()).finish_non_exhaustive()
    }
}

/// Error returned by [`TrackedSender::reserve`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReserveError {
    /// The receiver is gone.
    Disconnected,
    /// The task was cancelled.
    Cancelled(Cancelled),
    /// The scope refused the obligation.
    Refused(AdmissionError),
}

impl ReserveError {
    /// Returns the cancel, if the task was cancelled.
    pub fn into_cancelled(self) -> Option<Cancelled> {
        match self {
            ReserveError::Cancelled(cancelled) => Some(cancelled),
            ReserveError::Disconnected | ReserveError::Refused(_) => None,
        }
    }
}

impl From<SendError<()>> for ReserveError {
    fn from(error: SendError<()>) -> Self {
        match error {
            SendError::Disconnected(()) => ReserveError::Disconnected,
            SendError::Cancelled((), cancelled) => ReserveError::Cancelled(cancelled),
        }
    }
}

impl Coded for ReserveError {
    fn status(&self) -> Status {
        match self {
            ReserveError::Disconnected => Status::Disconnected,
            ReserveError::Cancelled(_) => Status::Cancelled,
            ReserveError::Refused(refused) => refused.status(),
        }
    }
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReserveError::Disconnected => f.write_str(Status::Disconnected.text()),
            ReserveError::Cancelled(cancelled) => cancelled.fmt(f),
            ReserveError::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for ReserveError {}

/// Error returned by [`TrackedSender::try_reserve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TryReserveError {
    /// No slot is free, or other tasks wait for one.
    Full,
    /// The receiver is gone.
    Disconnected,
    /// The scope refused the obligation.
    Refused(AdmissionError),
}

impl TryReserveError {
    fn new(status: Status) -> TryReserveError {
        match status {
            Status::Full => TryReserveError::Full,
            Status::Disconnected => TryReserveError::Disconnected,
            status => TryReserveError::Refused(AdmissionError::new(status)),
        }
    }
}

impl Coded for TryReserveError {
    fn status(&self) -> Status {
        match self {
            TryReserveError::Full => Status::Full,
            TryReserveError::Disconnected => Status::Disconnected,
            TryReserveError::Refused(refused) => refused.status(),
        }
    }
}

impl fmt::Display for TryReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.status().text())
    }
}

impl std::error::Error for TryReserveError {}

/// The future of [`TrackedSender::reserve`]; gives `Result<TrackedPermit<T>, ReserveError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct TrackedReserve<'a, T> {
    reserve: ReserveOwned<'a, T>,
    leaked: &'a Arc<AtomicU64>,
}

impl<T> Future for TrackedReserve<'_, T> {
    type Output = Result<TrackedPermit<T>, ReserveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let leaked = self.leaked;
        let at = self.reserve.place();
        let reserved = self.reserve.poll_tracked(context);
        reserved.map_ok(|permit| TrackedPermit::new(permit, leaked, at))
    }
}

impl<T> CancelSafe for TrackedReserve<'_, T> {}

/// A reserved slot that must be sent or aborted. It borrows nothing.
#[must_use = "dropping it unresolved is a leak and panics"]
pub struct TrackedPermit<T> {
    /// `None` once resolved.
    slot: Option<OwnedPermit<T>>,
    state: PermitState,
    leaked: Arc<AtomicU64>,
    /// Present for channels without a scope: their permits are not obligations.
    record: Option<PermitRecord>,
}

impl<T> TrackedPermit<T> {
    fn new(slot: OwnedPermit<T>, leaked: &Arc<AtomicU64>, at: &'static Location<'static>) -> Self {
        let record = (!slot.shared().has_obligations()).then(|| PermitRecord::new(at));
        let leaked = leaked.clone();
        TrackedPermit { slot: Some(slot), state: PermitState::Live, leaked, record }
    }

    /// Waits for a permit. No sender counts its leak.
    pub(crate) async fn reserve(shared: &Arc<Shared<T>>, cx: &Cx) -> Result<Self, ReserveError> {
        let leaked = Arc::new(AtomicU64::new(0));
        let reserve = ReserveOwned::new(shared, cx, Location::caller());
        TrackedReserve { reserve, leaked: &leaked }.await
    }

    /// [`reserve`](TrackedPermit::reserve), if a slot is free.
    #[track_caller]
    pub(crate) fn try_reserve(shared: &Arc<Shared<T>>) -> Result<Self, Status> {
        let _after = footprint::operation();
        let at = Location::caller();
        let reserved = shared.try_reserve(|shared| shared.number_tracked(at));
        let reserved = reserved.map_err(|error| error.status())?;
        let permit = OwnedPermit::tracked(shared, reserved, at)?;
        Ok(TrackedPermit::new(permit, &Arc::new(AtomicU64::new(0)), at))
    }

    /// The number of the permit; 0 without a record.
    pub(crate) fn id(&self) -> u64 {
        self.slot.as_ref().map_or(0, OwnedPermit::id)
    }

    /// Sends, which does the duty. If the receiver is gone, the value is dropped; the duty was to
    /// send, not to be heard.
    pub fn send(self, value: T) -> CommittedProof {
        self.try_send(value).0
    }

    /// [`send`](TrackedPermit::send), and hands the value back if the receiver is gone.
    pub fn try_send(mut self, value: T) -> (CommittedProof, Result<(), Disconnected<T>>) {
        let _after = footprint::operation();
        match (self.resolve(PermitEvent::Send), self.slot.take()) {
            (Some(PermitEffect::Fill(proof)), Some(slot)) => (proof, slot.try_send(value)),
            _ => unreachable!("a permit is live until it is consumed"),
        }
    }

    /// Calls the duty off and gives the slot back.
    pub fn abort(mut self) -> AbortedProof {
        match (self.resolve(PermitEvent::Abort), self.slot.take()) {
            (Some(PermitEffect::Free(proof)), Some(slot)) => {
                slot.abort();
                proof
            }
            _ => unreachable!("a permit is live until it is consumed"),
        }
    }

    /// Steps the permit; `None` if it was resolved before.
    fn resolve(&mut self, event: PermitEvent) -> Option<PermitEffect> {
        let (state, effect) = self.state.resolve(event).ok()?;
        self.state = state;
        Some(effect)
    }
}

impl<T> Drop for TrackedPermit<T> {
    fn drop(&mut self) {
        let dropped = PermitEvent::DropTracked(drop_context());
        let Some(PermitEffect::Leak { panics }) = self.resolve(dropped) else { return };
        self.leaked.fetch_add(1, Ordering::Relaxed);
        drop(self.slot.take());
        if let Some(record) = self.record.take() {
            record.leaked();
        }
        if panics {
            panic!("{LEAK_MESSAGE}");
        }
    }
}

impl<T> fmt::Debug for TrackedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedPermit").field("state", &self.state).finish_non_exhaustive()
    }
}

fn drop_context() -> DropContext {
    if std::thread::panicking() {
        DropContext::Unwinding
    } else if is_dropping_by_force() {
        DropContext::ForceCompleted
    } else {
        DropContext::User
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use asx_task::testing::{Polls, cancelled_cx, dropping_by_force, live_cx};

    fn caught(run: impl FnOnce()) -> Option<String> {
        let payload = catch_unwind(AssertUnwindSafe(run)).err()?;
        let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
        text.or_else(|| payload.downcast_ref::<String>().cloned())
    }

    #[test]
    fn a_sent_permit_is_committed_and_an_aborted_one_called_off() {
        let (tx, mut rx) = bounded(1);
        let _: CommittedProof = tx.try_reserve().unwrap().send(1);
        assert_eq!(rx.try_recv(), Ok(1));
        let _: AbortedProof = tx.try_reserve().unwrap().abort();
        let _ = tx.try_reserve().expect("the slot is free again").abort();
        assert_eq!(tx.leaked(), 0);
    }

    #[test]
    fn a_send_to_nobody_is_still_committed_and_hands_the_value_back() {
        let (tx, rx) = bounded(1);
        let permit = tx.try_reserve().unwrap();
        drop(rx);
        let (_proof, sent) = permit.try_send(7);
        assert_eq!((sent, tx.leaked()), (Err(Disconnected(7)), 0));
    }

    #[test]
    fn a_permit_dropped_by_user_code_frees_its_slot_is_counted_and_panics() {
        let (cx, (tx, _rx)) = (live_cx(), bounded::<u8>(1));
        let permit = tx.try_reserve().unwrap();
        let mut next = Polls::new(tx.reserve(&cx));
        assert!(next.is_pending());
        assert_eq!(caught(|| drop(permit)).as_deref(), Some("OBLIGATION TOKEN LEAKED: SendPermit"));
        assert_eq!((tx.leaked(), next.wakes()), (1, 1));
        let _ = next.ready().unwrap().abort();
    }

    #[test]
    fn a_permit_dropped_by_a_panic_is_counted_and_the_panic_goes_on() {
        let (tx, _rx) = bounded::<u8>(1);
        let message = caught(|| {
            let _permit = tx.try_reserve().unwrap();
            panic!("mine");
        });
        assert_eq!((message.as_deref(), tx.leaked()), (Some("mine"), 1));
        let _ = tx.try_reserve().unwrap().abort();
    }

    #[test]
    fn a_permit_dropped_by_force_is_counted_and_does_not_panic() {
        let (tx, _rx) = bounded::<u8>(1);
        let permit = tx.try_reserve().unwrap();
        assert_eq!(caught(|| dropping_by_force(|| drop(permit))), None);
        assert_eq!(tx.leaked(), 1);
        let permit = tx.try_reserve().unwrap();
        assert!(caught(|| drop(permit)).is_some(), "the force ended with the call");
    }

    #[test]
    fn a_wait_that_is_dropped_or_cancelled_leaks_nothing() {
        let (cx, (tx, mut rx)) = (live_cx(), bounded::<u8>(1));
        let _ = tx.try_reserve().unwrap().send(1);
        assert!(Polls::new(tx.reserve(&cx)).is_pending());
        let stopped = cancelled_cx();
        assert!(Polls::new(tx.reserve(&stopped)).ready().is_err());
        assert_eq!((rx.try_recv(), tx.leaked()), (Ok(1), 0));
        let _ = tx.clone().into_untracked().try_send(2);
        assert_eq!(rx.try_recv(), Ok(2));
    }
}
