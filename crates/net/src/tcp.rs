//! TCP: listeners and streams.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use asx_runtime::Cx;
use asx_runtime::net::{Socket, SocketKind, SocketOption};

use crate::bound::Bound;
use crate::io::{self, Duplex, Result, WriteAllError};
use crate::lookup::ToSocketAddrs;
use crate::op::sealed::Sealed;
use crate::op::{
    AcceptOp, Accepted, FromAddress, PeekInto, PeekOp, ReadExactOp, ReadOp, ReadVectoredOp,
    SocketOp, TakeConnection, Transport, WriteAllOp, WriteOp, WriteVectoredOp,
};
use crate::options::{self, SocketBuilder};
use crate::split::{
    self, OverSocket, OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReadSide, ReuniteError,
    SocketStream, WriteHalf, WriteSide,
};

/// Takes TCP connections.
///
/// A clone is another handle of the same listener, which is closed when the last one is dropped:
/// several tasks may accept, and each connection goes to one of them.
#[derive(Clone)]
pub struct TcpListener {
    socket: Arc<dyn Socket>,
}

impl TcpListener {
    pub(crate) fn of(socket: Arc<dyn Socket>) -> TcpListener {
        TcpListener { socket }
    }

    /// Listens at an address, or at the first of several that can be bound. Port 0: one that is
    /// free, as [`local_addr`](TcpListener::local_addr) tells.
    ///
    /// # Errors
    /// [`AddrInUse`](std::io::ErrorKind::AddrInUse) for example; of several addresses, that of the
    /// last.
    pub async fn bind(cx: &Cx, at: impl ToSocketAddrs) -> Result<TcpListener> {
        SocketBuilder::new().listen(cx, at).await
    }

    /// What is set before it is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Takes a connection, and says where it comes from.
    ///
    /// Cancel-safe: cancelled or dropped, it has taken none.
    ///
    /// # Errors
    /// Also such as pass: a connection that was given up meanwhile, or that there is no descriptor
    /// to spare. [`AcceptFailure`](crate::AcceptFailure) tells which;
    /// [`serve`](crate::serve) goes on after those.
    #[track_caller]
    pub fn accept<'a>(&'a self, cx: &'a Cx) -> AcceptOp<'a, TcpStream> {
        SocketOp::new(cx, &self.socket, TakeConnection::new())
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.local_address()?)
    }

    /// How many routers a packet may pass.
    ///
    /// # Errors
    /// What the system says.
    pub fn ttl(&self) -> std::io::Result<u32> {
        options::ttl(&self.socket)
    }

    /// Sets how many routers a packet may pass.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_ttl(&self, hops: u32) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::Ttl(hops))
    }

    /// Takes over a listener that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) in the lab, whose network is simulated.
    pub fn from_std(cx: &Cx, listener: std::net::TcpListener) -> std::io::Result<TcpListener> {
        options::adopt(cx, SocketKind::TcpListener, listener).map(TcpListener::of)
    }

    /// Returns the listener as one of the standard library. It stays in non-blocking mode: call
    /// `set_nonblocking(false)` for blocking calls. The mode applies to all handles of the socket,
    /// so change it only when no other handle is in use. The socket is closed when all its handles
    /// are dropped.
    ///
    /// # Errors
    /// As [`TcpStream::into_std`](crate::TcpStream::into_std).
    pub fn into_std(self) -> std::io::Result<std::net::TcpListener> {
        split::duplicate(&self.socket).map(Into::into)
    }

    /// Returns the file descriptor, or `None` in the lab. Available on Unix.
    #[cfg(unix)]
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TcpListener").field(&self.socket).finish()
    }
}

/// A TCP connection.
///
/// To read and to write takes it exclusively, so that no two tasks mix up their bytes.
/// [`split`](TcpStream::split) and [`into_split`](TcpStream::into_split) make two halves of it, one
/// for each direction. Dropped, it is closed; what was written goes on to be sent.
pub struct TcpStream {
    socket: Arc<dyn Socket>,
}

impl TcpStream {
    /// Connects to an address, or to the first of several where somebody answers.
    ///
    /// # Errors
    /// [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused) for example; of several
    /// addresses, that of the last.
    pub async fn connect(cx: &Cx, to: impl ToSocketAddrs) -> Result<TcpStream> {
        SocketBuilder::new().connect(cx, to).await
    }

    /// What is set before it is connected.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Takes bytes that have come; 0: the peer sends no more.
    ///
    /// Cancel-safe: cancelled or dropped, it has taken none.
    #[track_caller]
    pub fn read<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        split::read::<TcpStream>(cx, &self.socket, buffer)
    }

    /// The same into several buffers, one after the other.
    #[track_caller]
    pub fn read_vectored<'a, 'b>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> ReadVectoredOp<'a, 'b> {
        split::read_vectored::<TcpStream>(cx, &self.socket, buffers)
    }

    /// Fills the buffer; see [`io::Read::read_exact`]. Not cancel-safe.
    ///
    /// # Errors
    /// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) if the peer ends before.
    #[track_caller]
    pub fn read_exact<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffer: &'a mut [u8],
    ) -> ReadExactOp<'a, TcpStream> {
        split::read_exact::<TcpStream>(cx, &self.socket, buffer)
    }

    /// Looks at bytes that have come, and leaves them there; 0: the peer sends no more.
    ///
    /// Cancel-safe.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, &self.socket, PeekInto { buffer, transport: Transport::Tcp })
    }

    /// Gives bytes to be sent, once: how many were taken.
    ///
    /// Cancel-safe: cancelled or dropped, it has given none.
    #[track_caller]
    pub fn write<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        split::write::<TcpStream>(cx, &self.socket, bytes)
    }

    /// The same out of several buffers, one after the other.
    #[track_caller]
    pub fn write_vectored<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a [IoSlice<'a>],
    ) -> WriteVectoredOp<'a> {
        split::write_vectored::<TcpStream>(cx, &self.socket, buffers)
    }

    /// Gives all bytes to be sent; see [`io::Write::write_all`]. Not cancel-safe.
    ///
    /// # Errors
    /// Tell how many went out.
    #[track_caller]
    pub fn write_all<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteAllOp<'a, TcpStream> {
        split::write_all::<TcpStream>(cx, &self.socket, bytes)
    }

    /// Ends one direction, or both. To end [`Write`](Shutdown::Write) tells the peer that no more
    /// comes, after what was written; it can still be read from.
    ///
    /// # Errors
    /// What the system says.
    pub fn shutdown(&self, how: Shutdown) -> std::io::Result<()> {
        self.socket.shutdown(how)
    }

    /// Both directions, for as long as they are borrowed.
    pub fn split(&mut self) -> (ReadHalf<'_, TcpStream>, WriteHalf<'_, TcpStream>) {
        split::halves(&self.socket)
    }

    /// Both directions, each with an owner of its own.
    pub fn into_split(self) -> (OwnedReadHalf<TcpStream>, OwnedWriteHalf<TcpStream>) {
        split::owned_halves(self.socket)
    }

    /// The stream that [`into_split`](TcpStream::into_split) has made these of.
    ///
    /// # Errors
    /// They are of different streams, and are given back.
    pub fn reunite(
        read: OwnedReadHalf<TcpStream>,
        write: OwnedWriteHalf<TcpStream>,
    ) -> std::result::Result<TcpStream, ReuniteError<TcpStream>> {
        split::reunite(read, write)
    }

    /// The stream with a context, for code that knows the IO traits of others.
    #[track_caller]
    pub fn bound(self, cx: &Cx) -> Bound<TcpStream> {
        Bound::new(self, cx)
    }

    /// Where this end is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.local_address()?)
    }

    /// Where the peer is.
    ///
    /// # Errors
    /// [`NotConnected`](std::io::ErrorKind::NotConnected) once the connection is gone.
    pub fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.peer_address()?)
    }

    /// What went wrong since this was asked last.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
        self.socket.take_error()
    }
}

/// Settings.
impl TcpStream {
    /// Whether small writes go out at once.
    ///
    /// # Errors
    /// What the system says.
    pub fn nodelay(&self) -> std::io::Result<bool> {
        options::nodelay(&self.socket)
    }

    /// Has small writes go out at once instead of waiting for more.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_nodelay(&self, on: bool) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::NoDelay(on))
    }

    /// How many routers a packet may pass.
    ///
    /// # Errors
    /// What the system says.
    pub fn ttl(&self) -> std::io::Result<u32> {
        options::ttl(&self.socket)
    }

    /// Sets how many routers a packet may pass.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_ttl(&self, hops: u32) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::Ttl(hops))
    }

    /// How long the close goes on to send.
    ///
    /// # Errors
    /// What the system says.
    pub fn linger(&self) -> std::io::Result<Option<Duration>> {
        options::linger(&self.socket)
    }

    /// How long the close goes on to send: `None` lets the system do that behind it; a time blocks
    /// the thread that drops the stream for up to that, in whole seconds, rounded up; no time at
    /// all *resets* the connection, which throws away what was not sent and is an error for the
    /// peer.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_linger(&self, time: Option<Duration>) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::Linger(time))
    }

    /// Whether the connection is probed while it is idle.
    ///
    /// # Errors
    /// What the system says.
    pub fn keepalive(&self) -> std::io::Result<bool> {
        options::keepalive(&self.socket)
    }

    /// Has the connection probed while it is idle.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_keepalive(&self, on: bool) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::KeepAlive(on))
    }
}

/// Conversions from and to the standard library.
impl TcpStream {
    /// Takes over a connection that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) in the lab, whose network is simulated.
    pub fn from_std(cx: &Cx, stream: std::net::TcpStream) -> std::io::Result<TcpStream> {
        options::adopt(cx, SocketKind::TcpStream, stream).map(TcpStream::of)
    }

    /// Returns the connection as one of the standard library. It stays in non-blocking mode: call
    /// `set_nonblocking(false)` for blocking calls.
    ///
    /// # Errors
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) in the lab, or the error of the operating
    /// system if the socket cannot be duplicated.
    pub fn into_std(self) -> std::io::Result<std::net::TcpStream> {
        split::duplicate(&self.socket).map(Into::into)
    }

    /// Returns the file descriptor, or `None` in the lab. Available on Unix.
    ///
    /// Do not receive urgent data (`MSG_OOB`) through it: the system then stops reporting the mark
    /// to the runtime, and a read that stopped at the mark may wait for the next bytes.
    #[cfg(unix)]
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TcpStream").field(&self.socket).finish()
    }
}

impl Sealed for TcpStream {}

impl Accepted for TcpStream {
    type Address = SocketAddr;

    fn of(socket: Arc<dyn Socket>) -> TcpStream {
        TcpStream { socket }
    }
}

impl SocketStream for TcpStream {}

impl ReadSide for TcpStream {}

impl WriteSide for TcpStream {}

impl OverSocket for TcpStream {
    const TRANSPORT: Transport = Transport::Tcp;

    fn socket(&self) -> &Arc<dyn Socket> {
        &self.socket
    }
}

impl io::Read for TcpStream {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        split::read::<TcpStream>(cx, &self.socket, buffer).await
    }

    async fn read_exact(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<()> {
        split::read_exact::<TcpStream>(cx, &self.socket, buffer).await
    }
}

impl io::Write for TcpStream {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        split::write::<TcpStream>(cx, &self.socket, bytes).await
    }

    async fn write_all(&mut self, cx: &Cx, bytes: &[u8]) -> std::result::Result<(), WriteAllError> {
        split::write_all::<TcpStream>(cx, &self.socket, bytes).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        cx.checkpoint()?;
        split::end_write(&self.socket)
    }

    fn abort(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl Duplex for TcpStream {
    type Reader<'a> = ReadHalf<'a, TcpStream>;
    type Writer<'a> = WriteHalf<'a, TcpStream>;

    fn split(&mut self) -> (Self::Reader<'_>, Self::Writer<'_>) {
        split::halves(&self.socket)
    }
}

options::buffer_sizes!(TcpStream);
