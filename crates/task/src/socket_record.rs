//! Sockets whose operations are on the record.
//!
//! Where events are recorded, a socket that a host made is put into one that passes everything on
//! and writes down what came of it; where they are not, it stays as it is and pays nothing. So
//! neither hosts nor the operations above them know of the record.
//!
//! A socket has a number, counted like those of tasks, and its addresses are its name on the
//! record. What is done to one socket is recorded in the order in which it was done. What is done
//! at the two ends of a connection is in the order in which it was written down: on threads, a read
//! may stand before the write it answers to.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use asx_journal::Stamp;
use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::{EventKind, Subject};

use crate::core::Core;
use crate::net::{Address, Direction, OptionName, ReadyEvent, Socket, SocketOption, WaitSlot};
use crate::raw::poll_context;
use crate::runtime::cx::Cx;

impl Cx {
    /// What a host answered that was asked for a socket, at this address or to it. If events are
    /// recorded, what is done with the socket is from now on; otherwise nothing happens.
    ///
    /// # Errors
    /// That of the host.
    #[inline]
    pub fn record_socket(
        &self,
        how: Opening,
        address: &Address,
        made: io::Result<Arc<dyn Socket>>,
    ) -> io::Result<Arc<dyn Socket>> {
        if self.core().recording() { record(self.core(), how, address, made) } else { made }
    }

    /// [`record_socket`](Cx::record_socket) of one that was made elsewhere, or with another.
    #[inline]
    pub fn adopt_socket(&self, socket: Arc<dyn Socket>) -> Arc<dyn Socket> {
        if !self.core().recording() {
            return socket;
        }
        let nowhere = Address::Unix(None);
        RecordedSocket::open(self.core(), socket, Opening::Adopt, None, &nowhere)
    }
}

#[cold]
#[inline(never)]
fn record(
    core: &Arc<Core>,
    how: Opening,
    address: &Address,
    made: io::Result<Arc<dyn Socket>>,
) -> io::Result<Arc<dyn Socket>> {
    match made {
        Ok(socket) => Ok(RecordedSocket::open(core, socket, how, None, address)),
        Err(error) => {
            let number = core.next_socket.fetch_add(1, Relaxed);
            let op = match how {
                Opening::Listen => IoOp::Listen,
                Opening::Connect => IoOp::Connect,
                Opening::Bind | Opening::Accept | Opening::Adopt => IoOp::Bind,
            };
            core.name_socket(number, address.to_string());
            let error_kind = failure(error.kind());
            note(
                core,
                &Stamp::default(),
                EventKind::IoFailed { socket: number, op, error: error_kind },
            );
            Err(error)
        }
    }
}

/// Records an event of the socket whose stamp this is. The caller has its lock.
fn note(core: &Core, stamp: &Stamp, kind: EventKind) {
    let task = poll_context::with_current(|task| task.id());
    core.note_of(stamp, Subject { task, ..Subject::default() }, kind);
}

/// A socket of a host, and what was recorded of it.
struct RecordedSocket {
    inner: Arc<dyn Socket>,
    core: Arc<Core>,
    number: u64,
    how: Opening,
    stamp: Stamp,
    /// Held while something is recorded.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// It has begun to connect, and nobody has heard how that ended.
    is_connecting: bool,
    /// Operations that wait, by the host's numbers.
    waits: Vec<(Direction, u32)>,
}

impl RecordedSocket {
    fn open(
        core: &Arc<Core>,
        inner: Arc<dyn Socket>,
        how: Opening,
        listener: Option<u64>,
        address: &Address,
    ) -> Arc<dyn Socket> {
        let number = core.next_socket.fetch_add(1, Relaxed);
        let is_connecting = how == Opening::Connect;
        let socket = RecordedSocket {
            inner,
            core: core.clone(),
            number,
            how,
            stamp: Stamp::default(),
            state: Mutex::new(State { is_connecting, waits: Vec::new() }),
        };
        socket.name(Some(address));
        socket.note(&socket.lock(), EventKind::SocketOpened { socket: number, how, of: listener });
        Arc::new(socket)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, _held: &State, kind: EventKind) {
        note(&self.core, &self.stamp, kind);
    }

    /// Gives it its name: where it is, and where its peer is, who may be known from elsewhere.
    fn name(&self, peer: Option<&Address>) {
        let local = self.inner.local_address().ok();
        let local = local.as_ref().or(peer.filter(|_| self.how != Opening::Connect));
        let local = local.map_or_else(|| "somewhere".into(), Address::to_string);
        let peer = match self.how {
            Opening::Listen | Opening::Bind | Opening::Adopt => None,
            Opening::Connect | Opening::Accept => peer.cloned(),
        };
        let peer = peer.or_else(|| self.inner.peer_address().ok());
        let name = match (self.how, peer) {
            (Opening::Listen, _) => format!("listener {local}"),
            (Opening::Bind, None) => format!("datagrams {local}"),
            (Opening::Bind, Some(peer)) => format!("datagrams {local} -> {peer}"),
            (_, None) => local,
            (_, Some(peer)) => format!("{local} -> {peer}"),
        };
        self.core.name_socket(self.number, name);
    }

    /// Records what came of an operation, unless it has to wait or be tried again.
    fn done<T>(
        &self,
        op: IoOp,
        came: io::Result<T>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> io::Result<T> {
        let socket = self.number;
        match &came {
            Ok(moved) => {
                let bytes = bytes(moved) as u64;
                self.note(&self.lock(), EventKind::IoDone { socket, op, bytes });
            }
            Err(error) => self.failed(op, error.kind()),
        }
        came
    }

    fn failed(&self, op: IoOp, kind: ErrorKind) {
        if matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted) {
            return;
        }
        let error = failure(kind);
        self.note(&self.lock(), EventKind::IoFailed { socket: self.number, op, error });
    }

    /// Whether this is the first to hear how the connect ended.
    fn is_connected(&self) -> bool {
        std::mem::take(&mut self.lock().is_connecting)
    }
}

impl Drop for RecordedSocket {
    fn drop(&mut self) {
        self.note(&self.lock(), EventKind::SocketClosed { socket: self.number });
    }
}

impl fmt::Debug for RecordedSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Socket for RecordedSocket {
    fn poll_ready(
        &self,
        direction: Direction,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Poll<io::Result<ReadyEvent>> {
        let before = slot.0;
        let polled = self.inner.poll_ready(direction, slot, waker);
        if slot.0 == 0 && before == 0 {
            return polled;
        }
        let mut state = self.lock();
        if polled.is_ready() {
            state.waits.retain(|wait| *wait != (direction, before));
        } else if !state.waits.contains(&(direction, slot.0)) {
            state.waits.push((direction, slot.0));
            let way = way(direction);
            self.note(&state, EventKind::IoWaiting { socket: self.number, way });
        }
        polled
    }

    fn clear_ready(&self, direction: Direction, seen: ReadyEvent) {
        self.inner.clear_ready(direction, seen);
    }

    fn clear_after_short(&self, direction: Direction, seen: ReadyEvent) {
        self.inner.clear_after_short(direction, seen);
    }

    fn yields(&self) {
        self.inner.yields();
    }

    fn leave(&self, direction: Direction, slot: &mut WaitSlot) {
        let place = (direction, slot.0);
        let mut state = self.lock();
        if let Some(at) = state.waits.iter().position(|wait| *wait == place) {
            state.waits.swap_remove(at);
            let way = way(direction);
            self.note(&state, EventKind::IoLeft { socket: self.number, way });
        }
        drop(state);
        self.inner.leave(direction, slot);
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.done(IoOp::Read, self.inner.read(buffer), |count| *count)
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.done(IoOp::Read, self.inner.read_vectored(buffers), |count| *count)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.done(IoOp::Peek, self.inner.peek(buffer), |count| *count)
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.done(IoOp::Write, self.inner.write(buffer), |count| *count)
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.done(IoOp::Write, self.inner.write_vectored(buffers), |count| *count)
    }

    fn accept(&self) -> io::Result<(Arc<dyn Socket>, Address)> {
        match self.inner.accept() {
            Ok((socket, from)) => {
                let listener = Some(self.number);
                let socket =
                    RecordedSocket::open(&self.core, socket, Opening::Accept, listener, &from);
                Ok((socket, from))
            }
            Err(error) => {
                self.failed(IoOp::Accept, error.kind());
                Err(error)
            }
        }
    }

    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        self.done(IoOp::Receive, self.inner.recv_from(buffer), |(count, _)| *count)
    }

    fn send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        self.done(IoOp::Send, self.inner.send_to(buffer, to), |count| *count)
    }

    fn connect_to(&self, to: &Address) -> io::Result<()> {
        let connected = self.inner.connect_to(to);
        if connected.is_ok() {
            self.name(Some(to));
        }
        self.done(IoOp::Connect, connected, |()| 0)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let ended = self.inner.shutdown(how);
        let socket = self.number;
        let way = match how {
            Shutdown::Read => Way::Read,
            Shutdown::Write => Way::Write,
            Shutdown::Both => Way::Both,
        };
        match &ended {
            Ok(()) => self.note(&self.lock(), EventKind::SocketEnded { socket, way }),
            Err(error) => self.failed(IoOp::Shutdown, error.kind()),
        }
        ended
    }

    fn local_address(&self) -> io::Result<Address> {
        self.inner.local_address()
    }

    /// Whoever connects asks for the peer, and is connected if there is one.
    fn peer_address(&self) -> io::Result<Address> {
        let peer = self.inner.peer_address()?;
        if self.is_connected() {
            self.name(Some(&peer));
            let socket = self.number;
            self.note(&self.lock(), EventKind::IoDone { socket, op: IoOp::Connect, bytes: 0 });
        }
        Ok(peer)
    }

    /// Whoever connects asks for the error first.
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.inner.take_error()?;
        if let Some(error) = &error
            && self.is_connected()
        {
            self.failed(IoOp::Connect, error.kind());
        }
        Ok(error)
    }

    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.inner.set_option(option)
    }

    fn option(&self, name: OptionName) -> io::Result<SocketOption> {
        self.inner.option(name)
    }

    #[cfg(any(unix, windows))]
    fn handle(&self) -> Option<crate::net::BorrowedHandle<'_>> {
        self.inner.handle()
    }
}

fn way(direction: Direction) -> Way {
    match direction {
        Direction::Read => Way::Read,
        Direction::Write => Way::Write,
    }
}

/// The word for a kind of error.
fn failure(kind: ErrorKind) -> IoFailure {
    match kind {
        ErrorKind::ConnectionRefused => IoFailure::ConnectionRefused,
        ErrorKind::ConnectionReset => IoFailure::ConnectionReset,
        ErrorKind::ConnectionAborted => IoFailure::ConnectionAborted,
        ErrorKind::NotConnected => IoFailure::NotConnected,
        ErrorKind::BrokenPipe => IoFailure::BrokenPipe,
        ErrorKind::AddrInUse => IoFailure::AddrInUse,
        ErrorKind::AddrNotAvailable => IoFailure::AddrNotAvailable,
        ErrorKind::NotFound => IoFailure::NotFound,
        ErrorKind::PermissionDenied => IoFailure::PermissionDenied,
        ErrorKind::TimedOut => IoFailure::TimedOut,
        ErrorKind::HostUnreachable => IoFailure::HostUnreachable,
        ErrorKind::NetworkUnreachable => IoFailure::NetworkUnreachable,
        ErrorKind::OutOfMemory => IoFailure::OutOfMemory,
        ErrorKind::InvalidInput => IoFailure::InvalidInput,
        ErrorKind::InvalidData => IoFailure::InvalidData,
        ErrorKind::Unsupported => IoFailure::Unsupported,
        _ => IoFailure::Other,
    }
}
