//! Descriptions of socket events in English.

use alloc::format;
use alloc::string::String;
use asx_kernel::io::{IoOp, Opening, Way};
use asx_kernel::journal::EventKind;

/// Describes a socket event as a predicate without its subject, the task. `name` returns the name
/// of a socket. Returns `None` for all other events.
///
/// ```
/// use asx_kernel::io::IoOp;
/// use asx_kernel::journal::EventKind;
/// let read = EventKind::IoDone { socket: 2, op: IoOp::Read, bytes: 64 };
/// let words = asx_trace::socket_words(&read, |socket| format!("socket {socket}"));
/// assert_eq!(words.as_deref(), Some("reads 64 bytes from socket 2"));
/// ```
pub fn socket_words(kind: &EventKind, name: impl Fn(u64) -> String) -> Option<String> {
    Some(match *kind {
        EventKind::SocketOpened { socket, how, of } => {
            let socket = name(socket);
            match (how, of) {
                (Opening::Listen | Opening::Bind, _) => format!("opens {socket}"),
                (Opening::Connect, _) => format!("begins to connect {socket}"),
                (Opening::Accept, Some(of)) => format!("accepts {socket} from {}", name(of)),
                (Opening::Accept, None) => format!("accepts {socket}"),
                (Opening::Adopt, _) => format!("has {socket}"),
            }
        }
        EventKind::IoWaiting { socket, way } => format!("waits to {}", toward(way, &name(socket))),
        EventKind::IoLeft { socket, way } => {
            format!("no longer waits to {}", toward(way, &name(socket)))
        }
        EventKind::IoDone { socket, op, bytes } => done(op, bytes, &name(socket)),
        EventKind::IoFailed { socket, op, error } => {
            format!("{} fails at {}: {}", op.name(), name(socket), error.name())
        }
        EventKind::SocketEnded { socket, way } => match way {
            Way::Read => format!("reads no more from {}", name(socket)),
            Way::Write => format!("writes no more to {}", name(socket)),
            Way::Both => format!("ends both directions of {}", name(socket)),
        },
        EventKind::SocketClosed { socket } => format!("closes {}", name(socket)),
        _ => return None,
    })
}

fn toward(way: Way, socket: &str) -> String {
    match way {
        Way::Read => format!("read from {socket}"),
        Way::Write => format!("write to {socket}"),
        Way::Both => format!("read from and write to {socket}"),
    }
}

fn done(op: IoOp, bytes: u64, socket: &str) -> String {
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    match op {
        IoOp::Read => format!("reads {bytes} {unit} from {socket}"),
        IoOp::Peek => format!("looks at {bytes} {unit} of {socket}"),
        IoOp::Write => format!("writes {bytes} {unit} to {socket}"),
        IoOp::Receive => format!("receives {bytes} {unit} at {socket}"),
        IoOp::Send => format!("sends {bytes} {unit} from {socket}"),
        IoOp::Connect => format!("is connected: {socket}"),
        IoOp::Listen | IoOp::Bind | IoOp::Accept | IoOp::Shutdown => {
            format!("is done with {} at {socket}", op.name())
        }
    }
}
