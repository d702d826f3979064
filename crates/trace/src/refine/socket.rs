//! Sockets: each is used only between its opening and its closing.

use super::{CheckResult, Refinement, breach, ensure};
use alloc::format;
use asx_kernel::io::{IoOp, Opening, Way};
use asx_kernel::journal::{Event, EventKind};

#[derive(Clone, Debug)]
pub(super) struct SocketSeen {
    /// How it was opened; `None` if opening failed.
    how: Option<Opening>,
    is_open: bool,
    /// The number of pending waits to read and to write.
    waits: [u64; 2],
}

impl Refinement {
    pub(super) fn check_socket(&mut self, event: &Event) -> CheckResult {
        match event.kind {
            EventKind::SocketOpened { socket, how, of } => self.check_opening(socket, how, of)?,
            EventKind::IoWaiting { socket, way } => self.wait(socket, way, true)?,
            EventKind::IoLeft { socket, way } => self.wait(socket, way, false)?,
            // Opening failed: the number identifies the request.
            EventKind::IoFailed {
                socket, op: IoOp::Listen | IoOp::Bind | IoOp::Connect, ..
            } if !self.sockets.contains_key(&socket) => {
                let refused = SocketSeen { how: None, is_open: false, waits: [0; 2] };
                self.sockets.insert(socket, refused);
            }
            EventKind::IoDone { socket, .. }
            | EventKind::IoFailed { socket, .. }
            | EventKind::SocketEnded { socket, .. } => drop(self.open_socket(socket)?),
            EventKind::SocketClosed { socket } => self.open_socket(socket)?.is_open = false,
            _ => {}
        }
        let Some(task) = event.subject.task else { return Ok(()) };
        ensure(self.tasks.contains_key(&task), "unknown_task", "unknown task")
    }

    fn check_opening(&mut self, socket: u64, how: Opening, of: Option<u64>) -> CheckResult {
        let listener = of.map(|of| self.sockets.get(&of).and_then(|seen| seen.how));
        let fits = match how {
            Opening::Accept => listener.is_none_or(|how| how == Some(Opening::Listen)),
            _ => listener.is_none(),
        };
        ensure(fits, "socket_of", "the socket it was accepted from is not a listener")?;
        let opened = SocketSeen { how: Some(how), is_open: true, waits: [0; 2] };
        let new = self.sockets.insert(socket, opened).is_none();
        ensure(new, "socket_twice", "the socket was opened before")
    }

    fn open_socket(&mut self, socket: u64) -> Result<&mut SocketSeen, super::Breach> {
        let seen = self.sockets.get_mut(&socket);
        let seen = seen.ok_or_else(|| breach("unknown_socket", "unknown socket"))?;
        ensure(seen.is_open, "socket_closed", format!("socket {socket} is closed"))?;
        Ok(seen)
    }

    /// Begins or ends a wait.
    fn wait(&mut self, socket: u64, way: Way, begins: bool) -> CheckResult {
        let waits = &mut self.open_socket(socket)?.waits;
        let waits = match way {
            Way::Read => &mut waits[0],
            Way::Write => &mut waits[1],
            Way::Both => return Err(breach("socket_way", "a wait for both directions at once")),
        };
        if begins {
            *waits += 1;
            return Ok(());
        }
        ensure(*waits > 0, "socket_waits", "there is no such wait")?;
        *waits -= 1;
        Ok(())
    }
}
