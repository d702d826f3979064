//! The errors that socket operations of a run returned, with the socket and the side that closed.
//!
//! A program that fails because of one reports an `io::Error`, which names none of these.

use std::io::{self, ErrorKind};
use std::panic::Location;

use asx_runtime::net::{self, Address};

use super::network::{Network, What};
use super::pipe::Mark;
use crate::failure::place;

/// Failures that are reported, the last ones.
const MOST_FAILURES: usize = 3;

/// Why an operation on a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The peer closed or shut down the connection.
    Peer,
    /// This side did.
    ThisSide,
    /// A fault of the network.
    Fault,
    /// Nothing listens at the peer's address.
    NoListener,
    /// The peer did not answer in time.
    NoAnswer,
}

/// A socket operation that failed, or that reached the end of its stream.
#[derive(Debug)]
pub(super) struct IoFailure {
    task: u64,
    operation: &'static str,
    at: Option<&'static Location<'static>>,
    /// None: the end of the stream.
    error: Option<ErrorKind>,
    local: Address,
    peer: Option<Address>,
    cause: Option<Cause>,
    /// The task that closed the side that is to blame.
    closer: Option<u64>,
}

impl IoFailure {
    fn describe(&self, called: &dyn Fn(u64) -> String) -> String {
        let task = match self.task {
            0 => String::from("an operation outside of all tasks"),
            task => format!("`{}`", called(task)),
        };
        let at = self.at.map_or_else(String::new, |at| format!(" at {}", place(at)));
        let result = match self.error {
            Some(error) => format!("failed with {error:?}"),
            None => String::from("reached the end of the stream"),
        };
        let local = named(&self.local);
        let peer = self.peer.as_ref().map(|peer| format!(", peer {}", named(peer)));
        let peer = peer.unwrap_or_default();
        let closer = self.closer.map(|task| format!(", in `{}`", called(task)));
        let closer = closer.unwrap_or_default();
        let cause = match self.cause {
            Some(Cause::Peer) => format!(": the peer closed the connection{closer}"),
            Some(Cause::ThisSide) => format!(": this side closed the connection{closer}"),
            Some(Cause::Fault) => String::from(": a fault of the network broke the connection"),
            Some(Cause::NoListener) => String::from(": nothing listens there"),
            Some(Cause::NoAnswer) => String::from(": the peer did not answer"),
            None => String::new(),
        };
        let operation = self.operation;
        format!("{task}: {operation}{at} {result} on socket {local}{peer}{cause}\n")
    }
}

fn named(address: &Address) -> String {
    match address {
        Address::Inet(address) => address.to_string(),
        Address::Unix(Some(path)) => path.display().to_string(),
        Address::Unix(None) => String::from("(unnamed)"),
    }
}

impl Network {
    /// The last failures of this run, a line each.
    pub(super) fn describe_failures(&self, called: &dyn Fn(u64) -> String) -> String {
        let first = self.failures.len().saturating_sub(MOST_FAILURES);
        self.failures[first..].iter().map(|failure| failure.describe(called)).collect()
    }

    /// Notes the result of an operation, if it failed.
    pub(super) fn note_result<R>(
        &mut self,
        id: usize,
        operation: &'static str,
        result: &io::Result<R>,
    ) {
        let Err(error) = result else { return };
        let kind = error.kind();
        if !matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            self.note_failure(id, operation, Some(kind));
        }
    }

    /// Notes that an operation failed, or reached the end of the stream.
    pub(super) fn note_failure(
        &mut self,
        id: usize,
        operation: &'static str,
        error: Option<ErrorKind>,
    ) {
        let task = self.current();
        // Futures that connect are made inside the library: their place says nothing.
        let at = net::attempted_at().filter(|_| operation != "connect");
        let local = self.sockets[id].local.clone();
        let mut failure = IoFailure {
            task,
            operation,
            at,
            error,
            local,
            peer: None,
            cause: self.sockets[id].cause,
            closer: None,
        };
        if let What::Stream(stream) = &self.sockets[id].what {
            failure.peer = Some(stream.peer.clone());
            let incoming = &self.pipes[stream.incoming];
            let is_shut = match error {
                Some(ErrorKind::BrokenPipe) => stream.shut_write,
                None => stream.shut_read,
                Some(_) => false,
            };
            let peer = incoming.from;
            let has_peer_closed = incoming.fin == Mark::Arrived
                || peer.is_some_and(|peer| !self.sockets[peer].is_open);
            failure.cause = match failure.cause {
                _ if is_shut => Some(Cause::ThisSide),
                None if has_peer_closed => Some(Cause::Peer),
                cause => cause,
            };
            let side = match failure.cause {
                Some(Cause::Peer) => peer,
                Some(Cause::ThisSide) => Some(id),
                _ => None,
            };
            failure.closer = side.and_then(|side| self.sockets[side].closer);
        }
        self.failures.push(failure);
    }

    /// The current task closes or shuts down a socket.
    pub(super) fn note_closer(&mut self, id: usize) {
        let task = self.current();
        let closer = &mut self.sockets[id].closer;
        *closer = closer.or(Some(task).filter(|task| *task != 0));
    }

    fn current(&self) -> u64 {
        self.driver().map_or(0, |driver| driver.current_task())
    }
}
