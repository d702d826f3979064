//! Links: causal relations between events.
//!
//! - A message is matched by its channel and its order.
//! - A wake links to the event that first made the task runnable after its last decision: its
//!   spawn, its timer, its cancel, or a freed slot that it waited for.
//! - A cancel links from a region to its children.
//! - Bytes of a connection are matched by their offset in the stream.
//!
//! A trace does not contain other causes.

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::task::TaskState;
use std::collections::{BTreeMap, VecDeque};

use crate::run::Run;
use asx_kernel::io::IoOp;
use asx_trace::Class;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkKind {
    Message,
    Wake,
    Cancel,
}

/// A link from one event to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) kind: LinkKind,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Default)]
pub(super) struct Links {
    links: Vec<Link>,
    channels: BTreeMap<u64, Queue>,
    /// The event that made each task runnable.
    woken: BTreeMap<u64, usize>,
    /// The last cancel of each region.
    cancelled: BTreeMap<u64, usize>,
    parents: BTreeMap<u64, u64>,
    /// The peer of each socket, for connections with both ends in the trace.
    peers: BTreeMap<u64, u64>,
    /// The bytes written to each socket.
    written: BTreeMap<u64, Bytes>,
}

#[derive(Default)]
struct Queue {
    sent: VecDeque<usize>,
    /// Receives without a send so far: threads may record a receive before its send.
    early: VecDeque<usize>,
    /// Tasks that wait for a slot.
    waiting: VecDeque<u64>,
}

/// The bytes that were written in one direction.
#[derive(Default)]
struct Bytes {
    /// The writes that are not yet read completely, each with the offset of its end.
    writes: VecDeque<(usize, u64)>,
    written: u64,
    read: u64,
}

impl Links {
    pub(super) fn of(run: &Run) -> Links {
        Links { peers: peers(run), ..Links::default() }
    }

    pub(super) fn apply(&mut self, at: usize, event: &Event) {
        let task = event.subject.task;
        let region = event.subject.region;
        if let Some(channel) = event.subject.channel {
            self.track_channel(at, channel, event);
        }
        match event.kind {
            EventKind::TaskSpawned { .. } | EventKind::TimerFired { .. } => {
                if let Some(task) = task {
                    self.woken.entry(task).or_insert(at);
                }
            }
            // A cancel moves the task to the cancel lane, so earlier wakes do not matter.
            EventKind::TaskMoved { from, to: state @ TaskState::CancelRequested }
                if from != state =>
            {
                if let Some(task) = task {
                    self.woken.insert(task, at);
                }
            }
            EventKind::Decision { .. } => {
                let cause = task.and_then(|task| self.woken.remove(&task));
                self.link(LinkKind::Wake, cause, at);
            }
            EventKind::RegionOpened { parent: Some(parent) } => {
                if let Some(region) = region {
                    self.parents.insert(region, parent);
                }
            }
            EventKind::RegionCancelled { kind, .. } => {
                if let Some(region) = region {
                    let parent = self.parents.get(&region).filter(|_| is_propagated(kind));
                    let cause = parent.and_then(|parent| self.cancelled.get(parent)).copied();
                    self.link(LinkKind::Cancel, cause, at);
                    self.cancelled.insert(region, at);
                }
            }
            EventKind::CancelWitness { phase: Phase::Requested, kind, .. }
                if is_propagated(kind) =>
            {
                let cause = region.and_then(|region| self.cancelled.get(&region)).copied();
                self.link(LinkKind::Cancel, cause, at);
            }
            EventKind::IoDone { socket, op: IoOp::Write, bytes } => {
                let way = self.written.entry(socket).or_default();
                way.written = way.written.saturating_add(bytes);
                way.writes.push_back((at, way.written));
            }
            EventKind::IoDone { socket, op: IoOp::Read, bytes: bytes @ 1.. } => {
                let Some(peer) = self.peers.get(&socket) else { return };
                let way = self.written.entry(*peer).or_default();
                // Find the write with the first of these bytes, if it was recorded before this
                // read.
                while way.writes.pop_front_if(|(_, end)| *end <= way.read).is_some() {}
                way.read = way.read.saturating_add(bytes);
                let write = way.writes.front().map(|(write, _)| *write);
                self.link(LinkKind::Message, write, at);
            }
            _ => {}
        }
    }

    fn track_channel(&mut self, at: usize, channel: u64, event: &Event) {
        let queue = self.channels.entry(channel).or_default();
        let mut message = None;
        let mut freed = false;
        match event.kind {
            EventKind::Sent { .. } => match queue.early.pop_front() {
                Some(received) => message = Some((at, received)),
                None => queue.sent.push_back(at),
            },
            EventKind::Received {} => {
                freed = true;
                match queue.sent.pop_front() {
                    Some(sent) => message = Some((sent, at)),
                    None => queue.early.push_back(at),
                }
            }
            EventKind::Evicted {} => {
                queue.sent.pop_front();
            }
            EventKind::SendAborted { .. } => freed = true,
            EventKind::ReceiverGone { .. } => queue.sent.clear(),
            EventKind::SendWaiting {} => queue.waiting.extend(event.subject.task),
            EventKind::SendLeft {} | EventKind::SendReserved { .. } => {
                queue.waiting.retain(|task| event.subject.task != Some(*task));
            }
            _ => {}
        }
        if freed && let Some(task) = queue.waiting.front() {
            self.woken.entry(*task).or_insert(at);
        }
        if let Some((sent, received)) = message {
            self.link(LinkKind::Message, Some(sent), received);
        }
    }

    fn link(&mut self, kind: LinkKind, from: Option<usize>, to: usize) {
        self.links.extend(from.map(|from| Link { kind, from, to }));
    }

    pub(super) fn finish(self) -> Vec<Link> {
        self.links
    }
}

/// Returns the peers of connections, matched by name: `a -> b` is the peer of `b -> a`.
fn peers(run: &Run) -> BTreeMap<u64, u64> {
    let sockets = run.labels.iter().filter(|((class, _), _)| *class == Class::Socket);
    let ends = sockets.filter_map(|((_, number), name)| Some((name.split_once(" -> ")?, *number)));
    let ends: BTreeMap<(&str, &str), u64> = ends.collect();
    let other = |((from, to), number): (&(&str, &str), &u64)| {
        ends.get(&(*to, *from)).map(|peer| (*number, *peer))
    };
    ends.iter().filter_map(other).collect()
}

/// Whether the cancel was propagated from the parent region.
fn is_propagated(kind: Kind) -> bool {
    kind == Kind::ParentCancelled
}
