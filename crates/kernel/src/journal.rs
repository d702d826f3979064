//! The journal: every semantic event in canonical order, with a digest that identifies the run.
//!
//! An event names its objects by creation ordinal (the same on every host) and carries the fields
//! of its kind. [`EventKind::visit`] lists those fields once; printing, hashing and encoding all
//! use it. The digest covers every recorded event, including those that the ring has overwritten.

use crate::cancel::{Kind, Phase};
use crate::digest::Digest;
use crate::io::{IoFailure, IoOp, Opening, Way};
use crate::lanes::Lane;
use crate::obligation::ObligationState;
use crate::outcome::Severity;
use crate::region::RegionState;
use crate::task::TaskState;
use crate::time::Time;
use alloc::collections::{TryReserveError, VecDeque};
use core::fmt;

/// One field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// A number.
    Number(u64),
    /// A number that may be absent.
    Maybe(Option<u64>),
    /// A boolean.
    Flag(bool),
    /// A fixed word.
    Word(&'static str),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Number(n) | Field::Maybe(Some(n)) => write!(f, "{n}"),
            Field::Maybe(None) => f.write_str("null"),
            Field::Flag(b) => write!(f, "{b}"),
            Field::Word(w) => f.write_str(w),
        }
    }
}

macro_rules! events {
    ($($(#[doc = $doc:literal])* $variant:ident = $code:literal $name:literal
        { $($field:ident: $type:ty => $encode:expr),* $(,)? })*) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventKind {
            $($(#[doc = $doc])* $variant {
                $(#[doc = concat!("The `", stringify!($field), "` field.")] $field: $type,)*
            },)*
        }

        impl EventKind {
            /// The name of the kind in files and messages.
            pub const fn name(&self) -> &'static str {
                match self { $(EventKind::$variant { .. } => $name,)* }
            }

            /// The stable number of the kind in the canonical encoding.
            pub const fn code(&self) -> u64 {
                match self { $(EventKind::$variant { .. } => $code,)* }
            }

            /// The names of all kinds, in code order.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// Calls `show` with each field, in order.
            #[allow(unused_variables, reason = "kinds without fields do not call `show`")]
            pub fn visit(&self, mut show: impl FnMut(&'static str, Field)) {
                match *self {
                    $(EventKind::$variant { $($field),* } => {
                        $(show(stringify!($field), $encode);)*
                    })*
                }
            }
        }
    };
}

use Field::{Flag, Maybe, Number, Word};

events! {
    /// A region was opened.
    RegionOpened = 1 "region_opened" { parent: Option<u64> => Maybe(parent) }
    /// A region changed its state.
    RegionMoved = 2 "region_moved" {
        from: RegionState => Word(from.name()), to: RegionState => Word(to.name()),
    }
    /// A region was cancelled, or an earlier cancel was `strengthened`.
    RegionCancelled = 3 "region_cancelled" {
        kind: Kind => Word(kind.name()), strengthened: bool => Flag(strengthened),
    }
    /// A region closed with this fold of its children's outcomes.
    RegionOutcome = 4 "region_outcome" { outcome: Severity => Word(outcome.name()) }
    /// Obligations were outstanding when the region closed.
    UnresolvedObligations = 5 "unresolved_obligations" { count: u64 => Number(count) }

    /// A task was spawned.
    TaskSpawned = 10 "task_spawned" {
        priority: u8 => Number(priority.into()), finalizer: bool => Flag(finalizer),
    }
    /// A task changed its state.
    TaskMoved = 11 "task_moved" {
        from: TaskState => Word(from.name()), to: TaskState => Word(to.name()),
    }
    /// A task's cancel reached a phase, or was strengthened in it.
    CancelWitness = 12 "cancel_witness" {
        epoch: u64 => Number(epoch), phase: Phase => Word(phase.name()),
        kind: Kind => Word(kind.name()), polls: u64 => Number(polls),
        strengthened: bool => Flag(strengthened),
    }
    /// A task ended.
    TaskEnded = 13 "task_ended" { outcome: Severity => Word(outcome.name()) }
    /// A task was aborted; its cleanup had run for this number of `polls`.
    CleanupOverrun = 14 "cleanup_overrun" { polls: u64 => Number(polls) }
    /// Cleanup returned an error; the task's outcome does not change.
    CleanupError = 15 "cleanup_error" {}
    /// A wake for a task that has ended or was removed.
    StaleWake = 16 "stale_wake" {}
    /// A part of a task's budget ran out.
    BudgetExhausted = 17 "budget_exhausted" { kind: Kind => Word(kind.name()) }
    /// The scheduler dispatched this task.
    Decision = 18 "scheduler_step_decision" {
        worker: u64 => Number(worker), lane: Lane => Word(lane.name()),
        decision_seq: u64 => Number(decision_seq), decision_hash: u64 => Number(decision_hash),
        cancel_streak: u64 => Number(cancel_streak), limit: u64 => Number(limit),
        fallback: bool => Flag(fallback),
    }

    /// An obligation was reserved.
    ObligationReserved = 30 "obligation_reserved" { obligation: u64 => Number(obligation) }
    /// An obligation was resolved or leaked.
    ObligationResolved = 31 "obligation_resolved" {
        obligation: u64 => Number(obligation), to: ObligationState => Word(to.name()),
    }

    /// A timer was armed.
    TimerArmed = 40 "timer_armed" { deadline: u64 => Number(deadline) }
    /// A timer fired.
    TimerFired = 41 "timer_fired" { deadline: u64 => Number(deadline) }
    /// A timer was cancelled.
    TimerCancelled = 42 "timer_cancelled" {}

    /// A channel was created.
    ChannelOpened = 50 "channel_opened" { capacity: u64 => Number(capacity) }
    /// A slot was reserved.
    SendReserved = 51 "send_reserved" { permit: u64 => Number(permit) }
    /// A sender waits for a slot.
    SendWaiting = 52 "send_waiting" {}
    /// A waiting sender left without a slot.
    SendLeft = 53 "send_left" {}
    /// A message was committed.
    Sent = 54 "sent" { permit: Option<u64> => Maybe(permit) }
    /// A commit found the receiver closed; nothing was queued.
    SendRefused = 55 "send_refused" { permit: u64 => Number(permit) }
    /// A reserved slot was released.
    SendAborted = 56 "send_aborted" { permit: u64 => Number(permit) }
    /// The oldest message was evicted for a new one.
    Evicted = 57 "evicted" {}
    /// A message was received.
    Received = 58 "received" {}
    /// The last sender was closed.
    SendersGone = 59 "senders_gone" {}
    /// The receiver was closed, with this number of unread messages.
    ReceiverGone = 60 "receiver_gone" { dropped: u64 => Number(dropped) }

    /// A limit was reached; the operation changed nothing.
    ResourceExhausted = 70 "resource_exhausted" { what: &'static str => Word(what) }
    /// Tasks can observe that the run is about to stop.
    SoftStop = 71 "soft_stop" {}
    /// A grace period has expired: remaining tasks are aborted.
    GraceExpired = 72 "grace_expired" {}

    /// A socket was opened. For an accepted connection, `of` is the listener.
    SocketOpened = 80 "socket_opened" {
        socket: u64 => Number(socket), how: Opening => Word(how.name()),
        of: Option<u64> => Maybe(of),
    }
    /// An operation waits at a socket.
    IoWaiting = 81 "io_waiting" {
        socket: u64 => Number(socket), way: Way => Word(way.name()),
    }
    /// A waiting operation was cancelled or dropped. It has transferred nothing.
    IoLeft = 82 "io_left" { socket: u64 => Number(socket), way: Way => Word(way.name()) }
    /// An operation succeeded and transferred this number of bytes.
    IoDone = 83 "io_done" {
        socket: u64 => Number(socket), op: IoOp => Word(op.name()), bytes: u64 => Number(bytes),
    }
    /// An operation failed. If opening a socket failed, its number is never used by another socket.
    IoFailed = 84 "io_failed" {
        socket: u64 => Number(socket), op: IoOp => Word(op.name()),
        error: IoFailure => Word(error.name()),
    }
    /// One or both directions of a socket were shut down.
    SocketEnded = 85 "socket_ended" {
        socket: u64 => Number(socket), way: Way => Word(way.name()),
    }
    /// A socket was closed.
    SocketClosed = 86 "socket_closed" { socket: u64 => Number(socket) }
}

/// The number of kinds about sockets, which are the last ones.
const SOCKET_KINDS: usize = 7;

impl EventKind {
    /// The names of the kinds that a host without sockets can record, in code order.
    pub const NAMES_WITHOUT_SOCKETS: &[&str] =
        Self::NAMES.split_at(Self::NAMES.len() - SOCKET_KINDS).0;
}

/// The objects that an event is about, by creation ordinal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The task.
    pub task: Option<u64>,
    /// The region.
    pub region: Option<u64>,
    /// The timer (its generation).
    pub timer: Option<u64>,
    /// The channel.
    pub channel: Option<u64>,
}

impl Subject {
    /// Calls `show` with each of the four ids, including absent ones, in order.
    pub fn visit(&self, mut show: impl FnMut(&'static str, Option<u64>)) {
        show("task", self.task);
        show("region", self.region);
        show("timer", self.timer);
        show("channel", self.channel);
    }
}

/// One entry of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The position in the canonical order, from 0.
    pub seq: u64,
    /// The logical time.
    pub time: Time,
    /// The objects that the event is about.
    pub subject: Subject,
    /// The kind, with its fields.
    pub kind: EventKind,
}

impl Event {
    /// Adds the canonical encoding to a digest.
    pub fn absorb(&self, digest: &mut Digest) {
        digest.word(self.seq).word(self.time.as_nanos()).word(self.kind.code());
        self.subject.visit(|_, id| absorb_maybe(digest, id));
        self.kind.visit(|_, field| match field {
            Field::Number(n) => drop(digest.word(n)),
            Field::Maybe(n) => absorb_maybe(digest, n),
            Field::Flag(b) => drop(digest.word(b.into())),
            Field::Word(w) => drop(digest.bytes(w.as_bytes())),
        });
    }
}

fn absorb_maybe(digest: &mut Digest, value: Option<u64>) {
    digest.word(value.is_some().into()).word(value.unwrap_or(0));
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = write!(f, "{} {} {}", self.seq, self.time, self.kind.name());
        let mut show = |name, field| result = result.and_then(|()| write!(f, " {name}={field}"));
        self.subject.visit(|name, id| id.into_iter().for_each(|id| show(name, Number(id))));
        self.kind.visit(show);
        result
    }
}

/// The behaviour when the journal's capacity is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest event is overwritten; [`Journal::lost`] counts.
    Overwrite,
    /// New work is refused (RESOURCE_EXHAUSTED); events of existing work are counted as lost.
    Refuse,
}

/// A recorder of events: a bounded ring and an incremental digest.
///
/// Digesting an event takes longer than storing it. An event is therefore digested when it leaves
/// the ring, or when the digest is requested; in order either way.
#[derive(Clone, Debug)]
pub struct Journal {
    events: VecDeque<Event>,
    capacity: usize,
    when_full: WhenFull,
    /// The digest of all events with numbers below `folded`.
    digest: Digest,
    folded: u64,
    next_seq: u64,
    lost: u64,
    /// Whether the ring grows only when the host reserves room.
    fixed: bool,
    /// Whether nothing is recorded.
    off: bool,
}

impl Journal {
    /// Creates a journal that retains up to `capacity` events.
    pub const fn new(capacity: usize, when_full: WhenFull) -> Journal {
        Journal {
            events: VecDeque::new(),
            capacity,
            when_full,
            digest: Digest::new(),
            folded: 0,
            next_seq: 0,
            lost: 0,
            fixed: false,
            off: false,
        }
    }

    /// Creates a journal that records nothing. Its digest is meaningless.
    pub fn off() -> Journal {
        Journal { off: true, ..Journal::new(0, WhenFull::Overwrite) }
    }

    /// Reserves room for `more` events, up to the capacity. From the first call on the journal does
    /// not grow by itself, and an event without room is treated as beyond the capacity.
    pub fn try_reserve(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.fixed = true;
        self.events.try_reserve(more.min(self.capacity.saturating_sub(self.events.len())))
    }

    /// Appends an event, unless the journal is off.
    pub fn record(&mut self, time: Time, subject: Subject, kind: EventKind) {
        if self.is_off() {
            return;
        }
        let event = Event { seq: self.next_seq, time, subject, kind };
        self.next_seq += 1;
        let room = if self.fixed { self.events.capacity() } else { usize::MAX };
        if self.events.len() >= self.capacity.min(room) {
            self.lost += 1;
            let oldest = match self.when_full {
                WhenFull::Refuse => None,
                WhenFull::Overwrite => self.events.pop_front(),
            };
            let Some(oldest) = oldest else {
                self.fold_retained(event.seq);
                return self.fold(&event);
            };
            self.fold(&oldest);
        }
        self.events.push_back(event);
    }

    /// Returns the digest of every event recorded so far. Takes time in proportion to the retained
    /// events.
    pub fn digest(&self) -> u64 {
        let mut digest = self.digest.clone();
        let unfolded = self.events.iter().filter(|event| event.seq >= self.folded);
        unfolded.for_each(|event| event.absorb(&mut digest));
        digest.value()
    }

    /// Digests an event after all events before it.
    fn fold(&mut self, event: &Event) {
        if event.seq >= self.folded {
            event.absorb(&mut self.digest);
            self.folded = event.seq + 1;
        }
    }

    /// Digests all retained events, which have numbers below `before`.
    fn fold_retained(&mut self, before: u64) {
        if self.folded >= before {
            return;
        }
        let retained = core::mem::take(&mut self.events);
        retained.iter().for_each(|event| self.fold(event));
        self.events = retained;
    }

    getters! {
        /// Whether new work must be refused.
        is_refusing(&self) -> bool =
            self.when_full == WhenFull::Refuse && self.events.len() >= self.capacity;
        /// The retained events, oldest first.
        events(&self) -> impl ExactSizeIterator<Item = &Event> = self.events.iter();
        /// The number of events that can be recorded before an allocation or an overwrite;
        /// `usize::MAX` if the journal is off or at its capacity.
        room(&self) -> usize = match !self.is_off() && self.events.len() < self.capacity {
            true => self.events.capacity() - self.events.len(),
            false => usize::MAX,
        };
        /// The number of recorded events.
        recorded(&self) -> u64 = self.next_seq;
        /// The number of recorded events that were not retained.
        lost(&self) -> u64 = self.lost;
        /// Whether nothing is recorded at all.
        is_off(&self) -> bool = cfg!(not(feature = "journal")) || self.off;
    }

    /// Removes and returns the retained events; the digest is unchanged.
    pub fn take(&mut self) -> VecDeque<Event> {
        self.fold_retained(self.next_seq);
        core::mem::take(&mut self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::vec::Vec;

    #[test]
    fn fields_print_plainly() {
        let fields = [Number(7), Maybe(Some(8)), Maybe(None), Flag(true), Flag(false), Word("w")];
        let text: Vec<_> = fields.iter().map(|field| format!("{field}")).collect();
        assert_eq!(text, ["7", "8", "null", "true", "false", "w"]);
    }

    #[test]
    fn subjects_are_visited_in_order_with_absent_ones() {
        let mut shown = Vec::new();
        let subject = Subject { region: Some(2), channel: Some(4), ..Subject::default() };
        subject.visit(|name, id| shown.push((name, id)));
        let expected = [("task", None), ("region", Some(2)), ("timer", None), ("channel", Some(4))];
        assert_eq!(shown, expected);
    }
    #[test]
    fn a_journal_with_reserved_room_does_not_grow_and_keeps_its_digest() {
        let mut free = Journal::new(1000, WhenFull::Overwrite);
        let mut fixed = free.clone();
        fixed.try_reserve(4).unwrap();
        let room = fixed.room();
        assert!((4..1000).contains(&room));
        for n in 0..room as u64 + 3 {
            for journal in [&mut free, &mut fixed] {
                journal.record(Time::from_nanos(n), Subject::default(), EventKind::SoftStop {});
            }
        }
        assert_eq!((fixed.lost(), free.lost()), (3, 0));
        assert_eq!((fixed.room(), fixed.digest()), (0, free.digest()));
        fixed.try_reserve(1).unwrap();
        assert!(fixed.room() > 0);
        assert_eq!(Journal::new(0, WhenFull::Refuse).room(), usize::MAX);
    }
}
