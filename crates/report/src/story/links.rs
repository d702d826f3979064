//! Arrows: what led to what.
//!
//! A message is known by its channel and its order. A wake is what first made a task runnable
//! again before its next decision: its spawn, its timer, its cancel, a slot it had waited for. A
//! cancel goes from a region to what is in it. Bytes of a connection are known by their place among
//! all that went that way. Other causes are not in a trace.

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

/// From one event to another.
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
    /// What made a task runnable.
    woken: BTreeMap<u64, usize>,
    /// The last cancel of a region.
    cancelled: BTreeMap<u64, usize>,
    parents: BTreeMap<u64, u64>,
    /// The other end of each connection of which both ends are in the trace.
    peers: BTreeMap<u64, u64>,
    /// What was written to each socket.
    written: BTreeMap<u64, Bytes>,
}

#[derive(Default)]
struct Queue {
    sent: VecDeque<usize>,
    /// Threads may write down a receive before the send it belongs to.
    early: VecDeque<usize>,
    /// Tasks that wait for a slot.
    waiting: VecDeque<u64>,
}

/// The bytes that went one way.
#[derive(Default)]
struct Bytes {
    /// The writes that are not read entirely, each with how much there was after it.
    writes: VecDeque<(usize, u64)>,
    written: u64,
    read: u64,
}

impl Links {
    pub(super) fn of(run: &Run) -> Links {
        Links { peers: peers(run), ..Links::default() }
    }

    pub(super) fn look(&mut self, at: usize, event: &Event) {
        let task = event.subject.task;
        let region = event.subject.region;
        if let Some(channel) = event.subject.channel {
            self.look_at_channel(at, channel, event);
        }
        match event.kind {
            EventKind::TaskSpawned { .. } | EventKind::TimerFired { .. } => {
                if let Some(task) = task {
                    self.woken.entry(task).or_insert(at);
                }
            }
            // It takes the task out of whatever lane it was in.
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
                    let parent = self.parents.get(&region).filter(|_| is_passed_on(kind));
                    let cause = parent.and_then(|parent| self.cancelled.get(parent)).copied();
                    self.link(LinkKind::Cancel, cause, at);
                    self.cancelled.insert(region, at);
                }
            }
            EventKind::CancelWitness { phase: Phase::Requested, kind, .. }
                if is_passed_on(kind) =>
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
                // The write with the first of these bytes, if it was written down before.
                while way.writes.pop_front_if(|(_, end)| *end <= way.read).is_some() {}
                way.read = way.read.saturating_add(bytes);
                let write = way.writes.front().map(|(write, _)| *write);
                self.link(LinkKind::Message, write, at);
            }
            _ => {}
        }
    }

    fn look_at_channel(&mut self, at: usize, channel: u64, event: &Event) {
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

/// The two ends of each connection, by their names: one is where the other leads to.
fn peers(run: &Run) -> BTreeMap<u64, u64> {
    let sockets = run.labels.iter().filter(|((class, _), _)| *class == Class::Socket);
    let ends = sockets.filter_map(|((_, number), name)| Some((name.split_once(" -> ")?, *number)));
    let ends: BTreeMap<(&str, &str), u64> = ends.collect();
    let other = |((from, to), number): (&(&str, &str), &u64)| {
        ends.get(&(*to, *from)).map(|peer| (*number, *peer))
    };
    ends.iter().filter_map(other).collect()
}

/// Whether the cancel came from the region above, with a cause of its own.
fn is_passed_on(kind: Kind) -> bool {
    kind == Kind::ParentCancelled
}
