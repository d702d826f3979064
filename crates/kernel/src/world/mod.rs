//! The executable model: every law, composed into one single-threaded engine without IO.
//!
//! A host calls [`World::next`] for the next action, polls the returned task, calls the world's
//! operations on behalf of the task meanwhile, and reports the result with [`World::polled`]:
//!
//! ```text
//!  host: next(now, choose) ------> Step::Poll { task } ----> take_payload, run it
//!           ^                                                  | reserve, recv, sleep, spawn, ..
//!           |                                                  v
//!           +------ Pending / Ready / .. <------- polled(task, payload, end)
//! ```
//! The world makes no callbacks. Payloads and messages to be dropped are returned by
//! [`World::take_released`] and [`World::take_dropped`]; the host runs their destructors. Every
//! change is recorded in the journal; a refused operation changes nothing.

mod channels;
mod config;
mod finish;
mod invariants;
mod obligations;
mod permits;
mod polls;
mod records;
mod regions;
mod reserve;
mod store;
mod tasks;
mod timers;
mod views;
mod waits;

pub use config::{
    Answer, Ask, Config, Limits, Offer, Part, Policy, PollEnd, RegionOptions, SleepUntil, Step,
    TaskError, TaskOptions, TaskOutcome,
};
pub use invariants::InvariantViolation;
pub use records::{PermitId, TimerToken};
pub use reserve::Living;
pub use views::{ChannelView, RegionView, TaskView};

use crate::arena::{Arena, Key};
use crate::budget::{Budget, Exhausted, Noticed};
use crate::cancel::{ChainLimits, Cleanup, Kind, Phase, Reason, Witness};
use crate::cascade::{self, RegionStore};
use crate::channel::{Channel, ChannelState, Recv, Reserve, Sent, TrySendError, WaiterId};
use crate::choose::{Choose, Point};
use crate::handle::Handle;
use crate::ids::{ChannelId, ObligationId, RegionId, TaskId};
use crate::journal::{EventKind, Journal, Subject, WhenFull};
use crate::lanes::{
    Decision, Lane, Place, Priority, Scheduler, SchedulerConfig, Source, Suggestion, Ticket,
};
use crate::named::ensure;
use crate::obligation::ObligationState;
use crate::outcome::{Fold, Lattice, NoValue, Outcome, Severity};
use crate::quiescence::{Census, NotQuiescent};
use crate::region::{Operation, RegionState, RegionWord};
use crate::session::{DropContext, PermitEffect, PermitEvent, PermitState, Resolution};
use crate::sorted::{Map, Set};
use crate::status::{Coded, Status};
use crate::task::{Lifecycle, TaskState};
use crate::time::Time;
use crate::wheel::{Expired, RegisterError, TimerHandle, Wheel, WheelConfig};
use alloc::collections::{TryReserveError, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use config::with;
use core::fmt::Write;
use core::mem::take;
use core::ops::Bound::{self, Excluded, Unbounded};
use core::ops::Range;
use core::task::Poll;
use core::time::Duration;
use records::*;

/// The wheel type of every world. A host with timers outside of worlds uses it with
/// [`TimerToken::UNOWNED`], so that the code of the wheel exists once.
pub type TimerWheel = Wheel<TimerToken>;

/// The engine. `P` is the host's representation of a task, `V` is a channel message.
pub struct World<P, V> {
    now: Time,
    root: RegionId,
    regions: Arena<RegionRecord<P>>,
    tasks: Arena<TaskRecord<P>>,
    obligations: Arena<(RegionId, ObligationState)>,
    channels: Arena<ChannelRecord<V>>,
    permits: Arena<PermitRecord>,
    wheel: TimerWheel,
    timers_made: u64,
    /// The number of timers that may fire before the host allows more.
    timer_allowance: usize,
    /// Budget deadlines of live tasks that have not been reached; they are not timers.
    deadlines: Set<(Time, TaskId)>,
    graces: Map<(Time, u64), (RegionId, Grace)>,
    scheduler: Scheduler<TaskId>,
    suggestion: Suggestion,
    /// The task that is being polled.
    current: Option<TaskId>,
    /// The worker of the current poll, also while its result is processed. Wakes are enqueued
    /// there.
    worker: Option<usize>,
    /// Regions to which a cancel is yet to be delivered, deepest last.
    cancels: Vec<(RegionId, Reason, Cleanup)>,
    delivering: bool,
    /// The number of links of causes that may be created before a host makes room for more.
    links_left: usize,
    stopping: bool,
    /// The waiters of one-time events, in order of registration.
    watchers: Map<(Watched, u64), TaskId>,
    /// Counts watchers and graces, which keeps them in order of registration.
    asked: u64,
    usage: Usage,
    journal: Journal,
    /// The number of cleanup entries that were dropped before they were done.
    cleanups_cut: u64,
    /// The number of closed regions with released storage.
    reclaims: u64,
    /// The number of leaked obligations.
    leaks: u64,
    /// Leaked obligations that were not yet reported to the host, latest last.
    leaked: Vec<(RegionId, ObligationId)>,
    released: VecDeque<P>,
    /// Reusable buffers that are empty between calls.
    doomed: Vec<TaskId>,
    due: Vec<Expired<TimerToken>>,
    /// The queues of closed channels, which are moved here without copying.
    dropped: Vec<VecDeque<V>>,
    config: Config,
}

impl<P, V> World<P, V> {
    fn with_root(config: Config, root: RegionId, regions: Arena<RegionRecord<P>>) -> World<P, V> {
        World {
            now: Time::default(),
            root,
            regions,
            tasks: Arena::default(),
            obligations: Arena::default(),
            channels: Arena::default(),
            permits: Arena::default(),
            wheel: Wheel::new(config.wheel.clone(), Time::ZERO),
            timers_made: 0,
            timer_allowance: usize::MAX,
            deadlines: Set::default(),
            graces: Map::default(),
            scheduler: Scheduler::new(config.scheduler),
            suggestion: Suggestion::default(),
            current: None,
            worker: None,
            cancels: Vec::new(),
            delivering: false,
            links_left: usize::MAX,
            stopping: false,
            watchers: Map::default(),
            asked: 0,
            usage: Usage { regions: 1, ..Usage::default() },
            journal: config.new_journal(),
            cleanups_cut: 0,
            reclaims: 0,
            leaks: 0,
            leaked: Vec::new(),
            released: VecDeque::default(),
            doomed: Vec::new(),
            due: Vec::new(),
            dropped: Vec::new(),
            config,
        }
    }
}

/// The usage that counts towards the limits.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    tasks: usize,
    regions: usize,
    obligations: usize,
    channels: usize,
    channel_bytes: usize,
    storage_bytes: usize,
}

/// The accounted bytes of a task, a region, or a channel without its slots: the same on every host.
pub const OBJECT_BYTES: usize = 256;
/// The accounted bytes of a timer, an obligation or a channel slot.
pub const SMALL_BYTES: usize = 64;

impl<P, V> World<P, V> {
    /// Creates a world with an open root region.
    pub fn new(config: Config) -> World<P, V> {
        let mut regions = Arena::new();
        let root = match regions.insert(RegionRecord::new(None, 0, RegionOptions::default())) {
            Ok(key) => RegionId(key),
            Err(_) => unreachable!("an empty arena has room"),
        };
        let mut world = World::with_root(config, root, regions);
        // The decision chain is used only by the journal.
        world.scheduler.unchained = world.journal.is_off();
        world.note_region(root, EventKind::RegionOpened { parent: None });
        world
    }

    getters! {
        /// The logical time.
        now(&self) -> Time = self.now;
        /// The root region.
        root(&self) -> RegionId = self.root;
        /// The journal.
        journal(&self) -> &Journal = &self.journal;
        /// The timers.
        timers(&self) -> &Wheel<impl Sized> = &self.wheel;
        /// The number of cleanup entries that were dropped before they were done, because the
        /// allowance or grace period of their task was used up.
        cleanups_cut(&self) -> u64 = self.cleanups_cut;
        /// The number of reserved obligations.
        outstanding(&self) -> usize = self.usage.obligations;
        /// The number of leaked obligations, whether or not there is a journal.
        leaks(&self) -> u64 = self.leaks;
        /// Whether [`World::take_released`], [`World::take_dropped`] or [`World::next_leaked`]
        /// would return something.
        has_let_go(&self) -> bool =
            self.released.len() | self.dropped.len() | self.leaked.len() != 0;
        /// The number of closed regions with released storage. A host that allocates storage for
        /// regions frees it when this has increased.
        reclaims(&self) -> u64 = self.reclaims;
        /// The run queues.
        scheduler(&self) -> &Scheduler<TaskId> = &self.scheduler;
    }

    /// Returns the journal mutably, to remove events from it.
    pub fn journal_mut(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Sets the governor's suggestion.
    pub fn suggest(&mut self, suggestion: Suggestion) {
        self.suggestion = suggestion;
    }

    /// Returns the payloads that are no longer polled, for the host to drop.
    pub fn take_released(&mut self) -> Vec<P> {
        take(&mut self.released).into()
    }

    /// Returns the first of those, without allocating.
    #[inline]
    pub fn next_released(&mut self) -> Option<P> {
        self.released.pop_front()
    }

    /// Returns the messages that will not be received, for the host to drop.
    pub fn take_dropped(&mut self) -> Vec<V> {
        let mut queues = take(&mut self.dropped).into_iter();
        let mut all = queues.next().map(Vec::from).unwrap_or_default();
        queues.for_each(|queue| all.extend(queue));
        all
    }

    /// Returns the messages of one closed channel, like [`take_dropped`](World::take_dropped) but
    /// without allocating.
    pub fn pop_dropped(&mut self) -> Option<VecDeque<V>> {
        self.dropped.pop()
    }

    /// Refuses and records the refusal if `used` has reached `limit`.
    fn room(&mut self, what: &'static str, used: usize, limit: usize) -> Answer {
        if used < limit {
            return Ok(());
        }
        self.note(Subject::default(), EventKind::ResourceExhausted { what });
        Err(Status::ResourceExhausted)
    }

    /// Refuses new work if the memory estimate or a refusing journal is full.
    fn room_for(&mut self, bytes: usize) -> Answer {
        if self.journal.is_refusing() {
            return Err(Status::ResourceExhausted);
        }
        let used = self.memory().saturating_add(bytes);
        self.room("memory", used, self.config.limits.memory.saturating_add(1))
    }

    /// Returns the memory estimate.
    pub fn memory(&self) -> usize {
        let objects = self.usage.tasks.saturating_add(self.usage.regions);
        let small = self.usage.obligations.saturating_add(self.wheel.len());
        (objects.saturating_mul(OBJECT_BYTES))
            .saturating_add(small.saturating_mul(SMALL_BYTES))
            .saturating_add(self.usage.channel_bytes)
            .saturating_add(self.usage.storage_bytes)
    }

    #[inline]
    fn note(&mut self, subject: Subject, kind: EventKind) {
        if self.journal.is_off() {
            return;
        }
        self.journal.record(self.now, subject, kind);
    }

    fn note_region(&mut self, region: RegionId, kind: EventKind) {
        let subject = Subject { region: Some(region.ordinal()), ..Subject::default() };
        self.note(subject, kind);
    }

    #[inline]
    fn note_task(&mut self, task: TaskId, kind: EventKind) {
        if self.journal.is_off() {
            return;
        }
        let region = self.task_ref(task).ok().map(|record| record.region.ordinal());
        self.note(Subject { task: Some(task.ordinal()), region, ..Subject::default() }, kind);
    }
}
