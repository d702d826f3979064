//! What a runtime knows of a channel: its number, the region it closes with, what it counts against
//! the limits, and what happened to it, on the record.

use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use asx_journal::Stamp;
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::region::Operation;
use asx_kernel::status::Status;

use crate::core::Core;
use crate::prim::atomic::AtomicBool;
use crate::raw::poll_context;
use crate::region::Region;
use crate::region::resources::{Obligation, Scoped};
use crate::runtime::cx::Cx;

/// A channel, as its runtime knows it. The channel itself is not implemented in this crate.
///
/// What is said to happen to a channel is recorded in the order in which it is said. So whoever
/// records has the channel's own lock, whatever that is.
pub struct ChannelRecord {
    core: Arc<Core>,
    id: u64,
    /// The region it closes with.
    scope: Option<Arc<Region>>,
    /// Who answers for permits that no task and no region holds.
    home: Arc<Region>,
    stamp: Stamp,
    /// What it weighs, while it counts against the limits.
    bytes: usize,
    counted: AtomicBool,
}

impl ChannelRecord {
    /// A channel of the innermost scope around the caller, with room for so many messages. It
    /// closes with that scope once the scope [has it](ChannelRecord::open).
    ///
    /// # Errors
    /// The scope is closing, or there are too many channels.
    pub fn in_scope(cx: &Cx, capacity: usize) -> Result<ChannelRecord, Status> {
        let scope = cx.region();
        ChannelRecord::new(Some(&scope), &scope, capacity)
    }

    /// A channel of a region, or of none. `home` answers for permits that nobody else does.
    ///
    /// # Errors
    /// The region is closing or of another runtime than `home`, or there are too many channels.
    pub fn new(
        scope: Option<&Arc<Region>>,
        home: &Arc<Region>,
        capacity: usize,
    ) -> Result<ChannelRecord, Status> {
        let core = home.core.clone();
        if scope.is_some_and(|scope| !Arc::ptr_eq(&scope.core, &core)) {
            return Err(Status::InvalidArgument);
        }
        let open = scope.map(|scope| scope.lock());
        if let Some(open) = &open {
            open.admit(Operation::Create)?;
        }
        let bytes = core.room_for_channel(capacity)?;
        let id = core.next_channel.fetch_add(1, Relaxed);
        drop(open);
        Ok(ChannelRecord {
            core,
            id,
            scope: scope.cloned(),
            home: home.clone(),
            stamp: Stamp::default(),
            bytes,
            counted: AtomicBool::new(true),
        })
    }

    /// Records that the channel is there, with room for so many messages, and has it
    /// [released](Scoped::release) when its region closes.
    ///
    /// # Errors
    /// The region has begun to close meanwhile: then there is to be no such channel.
    pub fn open(&self, capacity: usize, channel: Weak<dyn Scoped>) -> Result<(), Status> {
        // Until it is on record, so that it closes with the region, or is not made.
        let mut open = self.scope.as_ref().map(|scope| scope.lock());
        if let Some(open) = &mut open {
            open.admit(Operation::Create)?;
            open.keep_channel(self.id, channel);
        }
        self.note(None, EventKind::ChannelOpened { capacity: capacity as u64 });
        Ok(())
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of the region it closes with, if there is one.
    pub fn scope(&self) -> Option<u64> {
        self.scope.as_ref().map(|scope| scope.id)
    }

    /// Whether its region still lets it be used.
    pub fn is_usable(&self) -> bool {
        let state = |scope: &Arc<Region>| scope.lock().word.state();
        self.scope.as_ref().is_none_or(|scope| state(scope).admit(Operation::UseChannel).is_ok())
    }

    /// The number of a new permit, and of the task that is being polled, which holds it.
    pub fn next_permit(&self) -> (u64, Option<u64>) {
        let task = poll_context::with_current(|task| task.id());
        (self.core.next_permit.fetch_add(1, Relaxed), task)
    }

    /// Makes a permit that was reserved at this place an obligation: of its holder's region, else
    /// of the channel's.
    ///
    /// # Errors
    /// That region takes no more obligations.
    pub fn oblige(&self, at: &'static Location<'static>) -> Result<Obligation, Status> {
        let own = poll_context::with_current(|task| task.region().clone());
        let region = own.or_else(|| self.scope.clone()).unwrap_or_else(|| self.home.clone());
        Obligation::of(region, at)
    }

    /// Records what a task has done to the channel; if none is given, the one that is being polled.
    /// Events that are about something else than a channel are not recorded.
    #[cold]
    pub fn note(&self, task: Option<u64>, kind: EventKind) {
        if !is_of_channel(&kind) {
            return;
        }
        let task = task.or_else(|| poll_context::with_current(|task| task.id()));
        let region = self.scope.as_ref().map(|scope| scope.id);
        let channel = Some(self.id);
        self.core.note_of(&self.stamp, Subject { task, region, channel, timer: None }, kind);
    }

    /// What this thread records next comes after what was recorded of the channel.
    pub fn observe(&self) {
        self.core.see(&self.stamp);
    }

    /// The channel is closed on both sides, and no longer counts against the limits.
    pub fn closed(&self) {
        if self.counted.swap(false, Relaxed) {
            self.core.channel_done(self.bytes);
        }
    }
}

/// Whether an event is about a channel.
fn is_of_channel(kind: &EventKind) -> bool {
    use EventKind::{
        ChannelOpened, Evicted, Received, ReceiverGone, SendAborted, SendLeft, SendRefused,
        SendReserved, SendWaiting, SendersGone, Sent,
    };
    matches!(
        kind,
        ChannelOpened { .. }
            | SendReserved { .. }
            | SendWaiting {}
            | SendLeft {}
            | Sent { .. }
            | SendRefused { .. }
            | SendAborted { .. }
            | Evicted {}
            | Received {}
            | SendersGone {}
            | ReceiverGone { .. }
    )
}

impl Drop for ChannelRecord {
    fn drop(&mut self) {
        self.observe();
        if let Some(scope) = &self.scope {
            scope.forget_channel(self.id);
        }
        self.closed();
    }
}

impl std::fmt::Debug for ChannelRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChannelRecord({})", self.id)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use asx_kernel::budget::Budget;
    use asx_kernel::cancel::Kind;
    use asx_kernel::journal::WhenFull;
    use asx_kernel::session::Resolution;

    use super::*;
    use crate::Runnable;
    use crate::core::Settings;
    use crate::core::limits::Limits;
    use crate::region::Policy;
    use crate::region::resources::ChannelLoad;
    use crate::test_util::Timeless;
    use asx_journal::Recording;

    struct Nowhere;

    impl Timeless for Nowhere {
        fn put(&self, _: Runnable) {}
    }

    /// Notes its release, and panics.
    #[derive(Default)]
    struct Panics(AtomicBool);

    impl Scoped for Panics {
        fn load(&self) -> ChannelLoad {
            ChannelLoad { messages: 2, permits: 1 }
        }

        fn release(&self) {
            self.0.store(true, Relaxed);
            panic!("in a release");
        }
    }

    /// The root of a runtime that records, and lets there be two channels.
    fn root() -> Arc<Region> {
        let journal = Some(Recording::new(100, WhenFull::Refuse));
        let limits = Some(Limits { channels: 2, ..Limits::default() });
        Core::new(Arc::new(Nowhere), Settings { journal, limits, ..Settings::default() }).root()
    }

    fn no_channel() -> Weak<dyn Scoped> {
        Weak::<Panics>::new()
    }

    /// What is on record of channels: their numbers and the codes of the events.
    fn recorded(core: &Core) -> Vec<(u64, u64)> {
        let events = core.recorded().unwrap().events.into_iter();
        events.filter_map(|event| Some((event.subject.channel?, event.kind.code()))).collect()
    }

    #[test]
    fn only_what_happens_to_channels_is_recorded_and_closed_ones_do_not_count() {
        let root = root();
        let first = ChannelRecord::new(None, &root, 1).unwrap();
        let second = ChannelRecord::new(Some(&root), &root, 1).unwrap();
        assert!(ChannelRecord::new(None, &root, 1).is_err(), "there are two");
        first.open(1, no_channel()).unwrap();
        second.open(1, no_channel()).unwrap();
        first.note(None, EventKind::Received {});
        first.note(None, EventKind::SoftStop {});
        first.note(None, EventKind::RegionOpened { parent: None });
        let [a, b] = [first.id(), second.id()];
        let opened = EventKind::ChannelOpened { capacity: 1 }.code();
        let received = EventKind::Received {}.code();
        assert_eq!(recorded(&root.core), [(a, opened), (b, opened), (a, received)]);
        first.closed();
        first.closed();
        let third = ChannelRecord::new(None, &root, 1).expect("one is closed");
        drop(first);
        assert!(ChannelRecord::new(None, &root, 1).is_err(), "it was given back once");
        drop(third);
        assert!(ChannelRecord::new(None, &root, 1).is_ok());
    }

    #[test]
    fn all_that_happens_to_a_channel_is_recorded() {
        let root = root();
        let channel = ChannelRecord::new(None, &root, 1).unwrap();
        let kinds = [
            EventKind::ChannelOpened { capacity: 1 },
            EventKind::SendReserved { permit: 1 },
            EventKind::SendWaiting {},
            EventKind::SendLeft {},
            EventKind::Sent { permit: Some(1) },
            EventKind::SendRefused { permit: 1 },
            EventKind::SendAborted { permit: 1 },
            EventKind::Evicted {},
            EventKind::Received {},
            EventKind::SendersGone {},
            EventKind::ReceiverGone { dropped: 1 },
        ];
        kinds.into_iter().for_each(|kind| channel.note(None, kind));
        let expected = kinds.map(|kind| (channel.id(), kind.code()));
        assert_eq!(recorded(&root.core), expected);
    }

    #[test]
    fn a_region_that_closes_releases_its_channels_and_takes_no_more() {
        let root = root();
        let scope = root.open_child(Policy::FailFast, Budget::INFINITE, None).unwrap();
        let kept = ChannelRecord::new(Some(&scope), &root, 1).unwrap();
        let late = ChannelRecord::new(Some(&scope), &root, 1).unwrap();
        let channel = Arc::<Panics>::default();
        let known: Arc<dyn Scoped> = channel.clone();
        kept.open(1, Arc::downgrade(&known)).unwrap();
        assert!(kept.is_usable() && !channel.0.load(Relaxed));
        scope.close(Arc::new(scope.reason(Kind::User)), Kind::User.cleanup());
        scope.end();
        assert!(channel.0.load(Relaxed) && !kept.is_usable());
        assert_eq!(root.core.health().callback_panics, 1, "its panic ended there");
        assert!(late.open(1, no_channel()).is_err());
        assert!(ChannelRecord::new(Some(&scope), &root, 1).is_err());
    }

    #[test]
    fn a_channel_is_of_one_runtime() {
        assert!(ChannelRecord::new(Some(&root()), &root(), 1).is_err());
    }

    #[test]
    fn a_permit_that_is_an_obligation_is_resolved_once() {
        let root = root();
        let channel = ChannelRecord::new(None, &root, 1).unwrap();
        let obligation = channel.oblige(Location::caller()).unwrap();
        assert!(obligation.resolve(Resolution::Commit).is_ok());
        assert!(obligation.resolve(Resolution::Abort).is_err());
        let [(first, task), (second, _)] = [channel.next_permit(), channel.next_permit()];
        assert_eq!((second, task), (first + 1, None));
    }
}
