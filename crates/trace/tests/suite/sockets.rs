//! The laws for sockets, and the descriptions of socket events.

use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::EventKind::{self, *};
use asx_kernel::journal::{Event, Subject};
use asx_kernel::time::Time;
use asx_trace::refine::Refinement;
use asx_trace::socket_words;

/// Checks a record. Returns the code of the first breach.
fn judge(kinds: &[EventKind]) -> Result<(), &'static str> {
    let mut laws = Refinement::default();
    for (seq, kind) in (0..).zip(kinds) {
        let event =
            Event { seq, time: Time::from_nanos(seq), subject: Subject::default(), kind: *kind };
        laws.check_event(&event).map_err(|breach| breach.code)?;
    }
    laws.finish().map_err(|breach| breach.code)
}

const LISTENS: EventKind = SocketOpened { socket: 1, how: Opening::Listen, of: None };
const ACCEPTED: EventKind = SocketOpened { socket: 2, how: Opening::Accept, of: Some(1) };
const WAITS: EventKind = IoWaiting { socket: 2, way: Way::Read };
const LEFT: EventKind = IoLeft { socket: 2, way: Way::Read };
const READ: EventKind = IoDone { socket: 2, op: IoOp::Read, bytes: 5 };
const RESET: EventKind = IoFailed { socket: 2, op: IoOp::Read, error: IoFailure::ConnectionReset };
const ENDED: EventKind = SocketEnded { socket: 2, way: Way::Write };
const CLOSED: EventKind = SocketClosed { socket: 2 };
const REFUSED: EventKind = IoFailed { socket: 3, op: IoOp::Listen, error: IoFailure::AddrInUse };

#[test]
fn sockets_are_opened_used_and_closed() {
    let whole = [LISTENS, ACCEPTED, WAITS, READ, WAITS, LEFT, ENDED, RESET, CLOSED, REFUSED];
    assert_eq!(judge(&whole), Ok(()));
    // A socket may remain open at the end, and its listener may be closed.
    let open = [LISTENS, SocketClosed { socket: 1 }, ACCEPTED, READ];
    assert_eq!(judge(&open), Ok(()));
}

#[test]
fn impossible_records_are_breaches() {
    let connected = SocketOpened { socket: 1, how: Opening::Connect, of: None };
    let of_nobody = SocketOpened { socket: 2, how: Opening::Bind, of: Some(1) };
    let both = IoWaiting { socket: 2, way: Way::Both };
    let written = IoLeft { socket: 2, way: Way::Write };
    for (record, code) in [
        (&[READ][..], "unknown_socket"),
        (&[CLOSED], "unknown_socket"),
        (&[LISTENS, LISTENS], "socket_twice"),
        (&[LISTENS, ACCEPTED, CLOSED, READ], "socket_closed"),
        (&[LISTENS, ACCEPTED, CLOSED, CLOSED], "socket_closed"),
        (&[LISTENS, ACCEPTED, CLOSED, ACCEPTED], "socket_twice"),
        (&[connected, ACCEPTED], "socket_of"),
        (&[ACCEPTED], "socket_of"),
        (&[LISTENS, of_nobody], "socket_of"),
        (&[LISTENS, ACCEPTED, LEFT], "socket_waits"),
        (&[LISTENS, ACCEPTED, WAITS, LEFT, LEFT], "socket_waits"),
        (&[LISTENS, ACCEPTED, WAITS, written], "socket_waits"),
        (&[LISTENS, ACCEPTED, both], "socket_way"),
        (&[REFUSED, IoDone { socket: 3, op: IoOp::Accept, bytes: 0 }], "socket_closed"),
        (&[IoFailed { socket: 3, op: IoOp::Read, error: IoFailure::Other }], "unknown_socket"),
    ] {
        assert_eq!(judge(record), Err(code), "{record:?}");
    }
}

#[test]
fn every_socket_event_has_a_description() {
    let name = |socket: u64| ["nobody", "listener", "peer", "other"][socket as usize].to_owned();
    let words = |kind: EventKind| socket_words(&kind, name).unwrap_or_default();
    assert_eq!(words(LISTENS), "opens listener");
    assert_eq!(words(ACCEPTED), "accepts peer from listener");
    assert_eq!(words(WAITS), "waits to read from peer");
    assert_eq!(words(LEFT), "no longer waits to read from peer");
    assert_eq!(words(READ), "reads 5 bytes from peer");
    assert_eq!(words(RESET), "read fails at peer: connection_reset");
    assert_eq!(words(ENDED), "writes no more to peer");
    assert_eq!(words(CLOSED), "closes peer");
    assert_eq!(words(REFUSED), "listen fails at other: addr_in_use");
    for op in IoOp::ALL {
        assert!(words(IoDone { socket: 2, op, bytes: 1 }).contains("peer"), "{op:?}");
    }
    for how in Opening::ALL {
        assert!(words(SocketOpened { socket: 2, how, of: None }).contains("peer"), "{how:?}");
    }
    assert_eq!(socket_words(&SoftStop {}, name), None);
}
