//! The encoding of an event in four words, used where the [short form](super::delta) does not fit.
//!
//! ```text
//!   63    56 55                                   0
//!  +--------+---------------------------------------+
//!  |  code  |                stamp                  |
//!  +--------+---------+-----------------------------+
//!  | timer, channel.. |         stamp - time        |
//!  +------------------+-----------------------------+
//!  |      region      |            task             |
//!  +------------------+-----------------------------+
//!  |              the fields of the kind            |
//!  +------------------------------------------------+
//! ```
//! Ids are stored plus one; 0 means none. Two events that always occur together (a dispatch and the
//! step it makes, the last step and the end) share a slot. An event that is too rare or too large
//! for this encoding is stored beside the slots, and a [`WIDE`] slot holds its index.

use std::num::NonZero;

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;

use super::Dispatch;

/// An encoded event.
pub(super) type Slot = [u64; 4];
/// An event that is stored unencoded: its time, subject and kind.
pub(super) type Wide = (u64, Subject, EventKind);
/// The exclusive upper bound of stamps.
pub(super) const MOST: u64 = 1 << CODE_SHIFT;

/// The last word is an index into the unencoded events.
const WIDE: u64 = 0;
pub(super) const SPAWNED: u64 = 1;
pub(super) const DISPATCHED: u64 = 2;
pub(super) const ENDED: u64 = 3;
const MOVED: u64 = 4;
const WITNESS: u64 = 5;
const OPENED: u64 = 6;
const REGION_MOVED: u64 = 7;
const OUTCOME: u64 = 8;
/// The first code of an event of a timer or channel.
pub(super) const ARMED: u64 = 9;
pub(super) const FIRED: u64 = 10;
const DISARMED: u64 = 11;
const RESERVED: u64 = 12;
const SENT: u64 = 13;
const RECEIVED: u64 = 14;
const WAITING: u64 = 15;
/// The first code of a socket event. These events always use a full slot.
pub(super) const SOCKET_OPENED: u64 = 16;
const IO_WAITING: u64 = 17;
const IO_LEFT: u64 = 18;
const IO_DONE: u64 = 19;
const IO_FAILED: u64 = 20;
const SOCKET_ENDED: u64 = 21;
const SOCKET_CLOSED: u64 = 22;

pub(super) const CODE_SHIFT: u32 = 56;

/// An encoded event without its stamp and time.
#[derive(Clone, Copy)]
pub(super) struct PackedEvent {
    /// The code, shifted to its position.
    pub(super) code: u64,
    pub(super) object: u32,
    pub(super) ids: u64,
    pub(super) fields: u64,
}

impl PackedEvent {
    /// Returns the number of events in the slot.
    #[inline]
    pub(super) fn events(&self) -> u64 {
        count(self.code >> CODE_SHIFT, self.fields)
    }

    /// Encodes the spawn of a task.
    pub(super) fn spawned(
        task: u64,
        region: u64,
        priority: u8,
        finalizer: bool,
    ) -> Option<PackedEvent> {
        let fields = pack_spawned(priority, finalizer);
        Some(PackedEvent {
            code: SPAWNED << CODE_SHIFT,
            object: 0,
            ids: task_ids(task, region)?,
            fields,
        })
    }

    /// Returns the slot for this stamp and time, or `None` if they do not fit.
    #[inline]
    pub(super) fn at(&self, stamp: u64, time: u64) -> Option<Slot> {
        let lead = u32::try_from(stamp.checked_sub(time)?).ok()?;
        let object = u64::from(self.object) << 32;
        Some([stamp | self.code, object | u64::from(lead), self.ids, self.fields])
    }

    /// Encodes a worker's decision, and the step that the task makes if its state changes.
    #[inline]
    pub(super) fn dispatched(
        task: u64,
        region: u64,
        dispatch: &Dispatch,
        from: TaskState,
        to: TaskState,
    ) -> Option<PackedEvent> {
        let fields = dispatch.packed?.get() | pack_step(from, to);
        Some(PackedEvent {
            code: DISPATCHED << CODE_SHIFT,
            object: 0,
            ids: task_ids(task, region)?,
            fields,
        })
    }

    /// Encodes the end of a task and the step it makes.
    #[inline]
    pub(super) fn ended(
        task: u64,
        region: u64,
        outcome: Severity,
        from: TaskState,
        to: TaskState,
    ) -> Option<PackedEvent> {
        let ids = task_ids(task, region)?;
        let fields = pack_step(from, to) | (outcome as u64) << 8;
        Some(PackedEvent { code: ENDED << CODE_SHIFT, object: 0, ids, fields })
    }

    /// Encodes any single event, or returns `None` if it does not fit.
    #[inline(always)]
    pub(super) fn new(subject: Subject, kind: EventKind) -> Option<PackedEvent> {
        let (object, ids) = pack_ids(subject)?;
        if let Some((code, socket, fields)) = of_socket(kind) {
            let object = pack_id(Some(socket)).filter(|_| object == 0)?;
            return Some(PackedEvent { code: code << CODE_SHIFT, object, ids, fields: fields? });
        }
        let (code, fields) = match kind {
            EventKind::TaskSpawned { priority, finalizer } => {
                (SPAWNED, pack_spawned(priority, finalizer))
            }
            EventKind::TaskMoved { from, to } => (MOVED, pack_step(from, to)),
            EventKind::TaskEnded { outcome } => (ENDED, (outcome as u64) << 8),
            EventKind::CancelWitness { epoch: 1, phase, kind, polls, strengthened } => {
                let polls = u64::from(u32::try_from(polls).ok()?);
                let cancel = kind as u64 | (phase as u64) << 8 | u64::from(strengthened) << 16;
                (WITNESS, cancel | polls << 32)
            }
            EventKind::RegionOpened { parent } => (OPENED, pack_id(parent)?.into()),
            EventKind::RegionMoved { from, to } => (REGION_MOVED, from as u64 | (to as u64) << 8),
            EventKind::RegionOutcome { outcome } => (OUTCOME, outcome as u64),
            EventKind::TimerArmed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::TimerCancelled {} => of_timer(kind),
            EventKind::SendReserved { permit } => (RESERVED, permit),
            EventKind::Sent { permit } => (SENT, pack_id(permit)?.into()),
            EventKind::Received {} => (RECEIVED, 0),
            EventKind::SendWaiting {} => (WAITING, 0),
            _ => return None,
        };
        Some(PackedEvent { code: code << CODE_SHIFT, object, ids, fields })
    }
}

/// Returns the code and the fields of a timer event.
#[inline(always)]
pub(super) fn of_timer(kind: EventKind) -> (u64, u64) {
    match kind {
        EventKind::TimerArmed { deadline } => (ARMED, deadline),
        EventKind::TimerFired { deadline } => (FIRED, deadline),
        _ => (DISARMED, 0),
    }
}

/// Returns the code, the socket and the fields (if they fit) of a socket event.
#[inline(always)]
fn of_socket(kind: EventKind) -> Option<(u64, u64, Option<u64>)> {
    Some(match kind {
        EventKind::SocketOpened { socket, how, of } => {
            let fields = pack_id(of).map(|of| how as u64 | u64::from(of) << 8);
            (SOCKET_OPENED, socket, fields)
        }
        EventKind::IoWaiting { socket, way } => (IO_WAITING, socket, Some(way as u64)),
        EventKind::IoLeft { socket, way } => (IO_LEFT, socket, Some(way as u64)),
        EventKind::IoDone { socket, op, bytes } => {
            (IO_DONE, socket, (bytes >> 56 == 0).then_some(op as u64 | bytes << 8))
        }
        EventKind::IoFailed { socket, op, error } => {
            (IO_FAILED, socket, Some(op as u64 | (error as u64) << 8))
        }
        EventKind::SocketEnded { socket, way } => (SOCKET_ENDED, socket, Some(way as u64)),
        EventKind::SocketClosed { socket } => (SOCKET_CLOSED, socket, Some(0)),
        _ => return None,
    })
}

/// Flag: the fields contain a step. Its two states are in the bits above.
const HAS_STEP: u64 = 1;
/// Mask of the step: the flag and both states.
pub(super) const STEP_MASK: u64 = 0x7f;
/// The steps of most tasks: the first poll, further polls, and the end.
pub(super) const STARTS: u64 = pack_step(TaskState::Created, TaskState::Running);
pub(super) const RESUMES: u64 = pack_step(TaskState::Running, TaskState::Running);
pub(super) const ENDS: u64 = pack_step(TaskState::Running, TaskState::Completed);

/// Encodes the fields of a dispatch, or returns `None` if they do not fit.
#[inline]
pub(super) fn pack_dispatch(
    worker: u16,
    lane: Lane,
    [streak, limit]: [u32; 2],
    fallback: bool,
) -> Option<NonZero<u64>> {
    let fields = (lane as u64) << 8
        | u64::from(fallback) << 10
        | u64::from(worker) << 16
        | u64::from(streak) << 32
        | u64::from(limit) << 48;
    // A limit is never 0.
    NonZero::new(fields).filter(|_| streak | limit <= 0xffff)
}

#[inline]
pub(super) fn pack_spawned(priority: u8, finalizer: bool) -> u64 {
    u64::from(priority) | u64::from(finalizer) << 8
}

#[inline]
const fn pack_step(from: TaskState, to: TaskState) -> u64 {
    let steps = if from as u8 == to as u8 { 0 } else { HAS_STEP };
    steps | (from as u64) << 1 | (to as u64) << 4
}

#[inline]
fn task_ids(task: u64, region: u64) -> Option<u64> {
    let fit = task | region < u64::from(u32::MAX >> 1);
    fit.then_some((task + 1) | (region + 1) << 32)
}

/// Encodes an optional id, or returns `None` if it does not fit.
#[inline]
fn pack_id(id: Option<u64>) -> Option<u32> {
    match id {
        None => Some(0),
        Some(id) => u32::try_from(id).ok()?.checked_add(1),
    }
}

#[inline]
fn pack_ids(subject: Subject) -> Option<(u32, u64)> {
    let Subject { task, region, timer, channel } = subject;
    if timer.is_some() && channel.is_some() {
        return None;
    }
    let object = pack_id(timer.or(channel))?;
    Some((object, u64::from(pack_id(task)?) | u64::from(pack_id(region)?) << 32))
}

/// Returns the slot for the unencoded event at index `wide_index`.
pub(super) fn wide(stamp: u64, wide_index: usize) -> Slot {
    [stamp | WIDE << CODE_SHIFT, 0, 0, wide_index as u64]
}

/// Returns the stamp of a slot.
pub(super) fn stamp(slot: &Slot) -> u64 {
    slot[0] & !(u64::MAX << CODE_SHIFT)
}

/// Returns the time of a slot.
pub(super) fn time(slot: &Slot) -> u64 {
    stamp(slot) - (slot[1] & u64::from(u32::MAX))
}

/// Returns the index of the unencoded event, if the slot is [`WIDE`].
pub(super) fn wide_index(slot: &mut Slot) -> Option<&mut u64> {
    (slot[0] >> CODE_SHIFT == WIDE).then_some(&mut slot[3])
}

/// Returns the number of events in a slot.
#[cfg(all(test, not(loom)))]
pub(super) fn events(slot: &Slot) -> u64 {
    count(slot[0] >> CODE_SHIFT, slot[3])
}

#[inline]
fn count(code: u64, fields: u64) -> u64 {
    1 + u64::from(matches!(code, DISPATCHED | ENDED) && fields & HAS_STEP != 0)
}

/// Whether the slot contains a decision.
pub(super) fn is_dispatch(slot: &Slot) -> bool {
    slot[0] >> CODE_SHIFT == DISPATCHED
}

/// Decodes the events of a slot that is not [`WIDE`]. The position of a decision in the chain is
/// left at zero.
pub(super) fn read(slot: &Slot, mut each: impl FnMut(Subject, EventKind)) {
    let code = slot[0] >> CODE_SHIFT;
    let fields = slot[3];
    let timed = matches!(code, ARMED | FIRED | DISARMED);
    let object = unpack_id(slot[1] >> 32);
    let subject = Subject {
        task: unpack_id(slot[2] & u64::from(u32::MAX)),
        region: unpack_id(slot[2] >> 32),
        timer: object.filter(|_| timed),
        channel: object.filter(|_| !timed && code < SOCKET_OPENED),
    };
    let socket = object.unwrap_or(0);
    let mut each = |kind| each(subject, kind);
    let byte = |at: u32| (fields >> at & 0xff) as usize;
    let moved = || {
        let state = |at: u32| TaskState::ALL[(fields >> at & 7) as usize];
        (fields & HAS_STEP != 0).then(|| EventKind::TaskMoved { from: state(1), to: state(4) })
    };
    match code {
        SPAWNED => each(EventKind::TaskSpawned { priority: fields as u8, finalizer: byte(8) != 0 }),
        DISPATCHED => {
            each(EventKind::Decision {
                worker: fields >> 16 & 0xffff,
                lane: Lane::ALL[byte(8) & 3],
                decision_seq: 0,
                decision_hash: 0,
                cancel_streak: fields >> 32 & 0xffff,
                limit: fields >> 48,
                fallback: byte(8) & 4 != 0,
            });
            moved().into_iter().for_each(each);
        }
        ENDED => {
            moved().into_iter().for_each(&mut each);
            each(EventKind::TaskEnded { outcome: Severity::ALL[byte(8)] });
        }
        MOVED => moved().into_iter().for_each(each),
        WITNESS => each(EventKind::CancelWitness {
            epoch: 1,
            phase: Phase::ALL[byte(8)],
            kind: Kind::ALL[byte(0)],
            polls: fields >> 32,
            strengthened: byte(16) != 0,
        }),
        OPENED => each(EventKind::RegionOpened { parent: unpack_id(fields) }),
        REGION_MOVED => each(EventKind::RegionMoved {
            from: RegionState::ALL[byte(0)],
            to: RegionState::ALL[byte(8)],
        }),
        OUTCOME => each(EventKind::RegionOutcome { outcome: Severity::ALL[byte(0)] }),
        ARMED => each(EventKind::TimerArmed { deadline: fields }),
        FIRED => each(EventKind::TimerFired { deadline: fields }),
        DISARMED => each(EventKind::TimerCancelled {}),
        RESERVED => each(EventKind::SendReserved { permit: fields }),
        SENT => each(EventKind::Sent { permit: unpack_id(fields) }),
        RECEIVED => each(EventKind::Received {}),
        WAITING => each(EventKind::SendWaiting {}),
        SOCKET_OPENED => each(EventKind::SocketOpened {
            socket,
            how: Opening::ALL[byte(0)],
            of: unpack_id(fields >> 8),
        }),
        IO_WAITING => each(EventKind::IoWaiting { socket, way: Way::ALL[byte(0)] }),
        IO_LEFT => each(EventKind::IoLeft { socket, way: Way::ALL[byte(0)] }),
        IO_DONE => {
            each(EventKind::IoDone { socket, op: IoOp::ALL[byte(0)], bytes: fields >> 8 });
        }
        IO_FAILED => each(EventKind::IoFailed {
            socket,
            op: IoOp::ALL[byte(0)],
            error: IoFailure::ALL[byte(8)],
        }),
        SOCKET_ENDED => each(EventKind::SocketEnded { socket, way: Way::ALL[byte(0)] }),
        SOCKET_CLOSED => each(EventKind::SocketClosed { socket }),
        _ => {}
    }
}

fn unpack_id(id: u64) -> Option<u64> {
    id.checked_sub(1)
}
