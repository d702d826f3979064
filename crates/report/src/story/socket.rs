//! Sockets: their states from opening to closing, and the waits of tasks at them.

use super::{Interval, Span};
use asx_kernel::io::{IoOp, Opening, Way};
use asx_kernel::journal::EventKind;

#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) number: u64,
    pub(crate) spans: Vec<Span>,
}

impl Socket {
    pub(super) fn new(number: u64) -> Socket {
        Socket { number, spans: Vec::new() }
    }

    pub(super) fn apply(&mut self, at: usize, kind: EventKind) {
        match kind {
            EventKind::SocketOpened { how: Opening::Connect, .. } => self.enter(at, "Connecting"),
            EventKind::SocketOpened { .. } | EventKind::IoDone { op: IoOp::Connect, .. } => {
                self.enter(at, "Open");
            }
            EventKind::SocketEnded { .. } => self.enter(at, "Closing"),
            EventKind::SocketClosed { .. } => self.stop(at),
            // It was not opened.
            EventKind::IoFailed { op: IoOp::Listen | IoOp::Bind | IoOp::Connect, .. } => {}
            // The trace lacks the opening of the socket.
            _ if self.spans.is_empty() && at > 0 => self.enter(0, "Open"),
            _ => {}
        }
    }

    fn enter(&mut self, at: usize, state: &'static str) {
        if self.spans.last().is_some_and(|last| last.state == state) {
            return;
        }
        self.stop(at);
        self.spans.push(Span { state, from: at, to: usize::MAX });
    }

    /// Ends the last span, unless it has ended.
    pub(super) fn stop(&mut self, at: usize) {
        if let Some(last) = self.spans.last_mut() {
            last.to = last.to.min(at.max(last.from));
        }
    }
}

/// Returns the socket of an event.
pub(crate) fn socket_of(kind: EventKind) -> Option<u64> {
    match kind {
        EventKind::SocketOpened { socket, .. }
        | EventKind::IoWaiting { socket, .. }
        | EventKind::IoLeft { socket, .. }
        | EventKind::IoDone { socket, .. }
        | EventKind::IoFailed { socket, .. }
        | EventKind::SocketEnded { socket, .. }
        | EventKind::SocketClosed { socket } => Some(socket),
        _ => None,
    }
}

/// The waits of tasks at sockets. Each ends with the operation that waited.
#[derive(Default)]
pub(super) struct Waits {
    all: Vec<(Way, Interval)>,
    /// The indices of the waits that have not ended.
    open: Vec<usize>,
}

impl Waits {
    pub(super) fn apply(&mut self, at: usize, task: Option<usize>, kind: EventKind) {
        let (socket, way, how) = match kind {
            EventKind::IoWaiting { socket, way } => {
                self.end(at, (socket, way, task), "again");
                let wait = Interval { number: socket, task, region: None, from: at, end: None };
                self.open.push(self.all.len());
                self.all.push((way, wait));
                return;
            }
            EventKind::IoLeft { socket, way } => (socket, way, "left"),
            EventKind::IoDone { socket, op, .. } => (socket, way_of(op), "done"),
            EventKind::IoFailed { socket, op, .. } => (socket, way_of(op), "failed"),
            // An accepted connection ends a wait at its listener.
            EventKind::SocketOpened { of: Some(listener), .. } => (listener, Way::Read, "done"),
            _ => return,
        };
        self.end(at, (socket, way, task), how);
    }

    fn end(&mut self, at: usize, key: (u64, Way, Option<usize>), how: &'static str) {
        let all = &mut self.all;
        let is_it = |place: &usize| {
            let (way, wait) = &all[*place];
            (wait.number, *way, wait.task) == key
        };
        if let Some(found) = self.open.iter().position(is_it) {
            let place = self.open.swap_remove(found);
            all[place].1.end = Some((at, how));
        }
    }

    pub(super) fn finish(self) -> Vec<Interval> {
        self.all.into_iter().map(|(_, wait)| wait).collect()
    }
}

fn way_of(op: IoOp) -> Way {
    match op {
        IoOp::Accept | IoOp::Read | IoOp::Peek | IoOp::Receive => Way::Read,
        IoOp::Listen | IoOp::Bind | IoOp::Connect | IoOp::Write | IoOp::Send | IoOp::Shutdown => {
            Way::Write
        }
    }
}
