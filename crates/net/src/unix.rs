//! Unix sockets: names in the file system instead of addresses.

use std::fmt;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use asx_runtime::Cx;
use asx_runtime::net::{Address, Opening, Socket, SocketKind, SocketSetup};

use crate::bound::Bound;
use crate::io::{self, Duplex, Error, Result, WriteAllError};
use crate::lookup::network;
use crate::op::sealed::Sealed;
use crate::op::{
    AcceptOp, Accepted, FromAddress, PeekInto, PeekOp, ReadExactOp, ReadInto, ReadOp,
    ReadVectoredOp, RecvFromInto, RecvFromOp, SendToFrom, SendToOp, SocketOp, TakeConnection,
    Transport, WriteAllOp, WriteFrom, WriteOp, WriteVectoredOp,
};
use crate::options::{self, SocketBuilder, adopt, connect_one};
use crate::split::{
    self, OverSocket, OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReadSide, ReuniteError,
    SocketStream, WriteHalf, WriteSide,
};

/// Where a unix socket is: a name, in the file system or (on Linux) apart from it, or nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnixAddr {
    path: Option<PathBuf>,
}

impl UnixAddr {
    /// The name, if it has one. A name that is not in the file system (an *abstract* one) begins
    /// with a zero byte; sockets can be bound and connected to it, but it is no path of a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl FromAddress for UnixAddr {
    fn from_address(address: Address) -> std::io::Result<UnixAddr> {
        match address {
            Address::Unix(path) => Ok(UnixAddr { path }),
            Address::Inet(_) => {
                Err(std::io::Error::new(ErrorKind::InvalidData, "not a unix socket"))
            }
        }
    }
}

fn named(path: impl AsRef<Path>) -> Address {
    Address::Unix(Some(path.as_ref().to_path_buf()))
}

/// Takes connections of unix sockets.
///
/// A clone is another handle of the same listener, which is closed when the last one is dropped.
/// The name stays in the file system: remove it before it is bound again.
#[derive(Clone)]
pub struct UnixListener {
    socket: Arc<dyn Socket>,
}

impl UnixListener {
    /// Listens at a name, which it makes.
    ///
    /// # Errors
    /// [`AddrInUse`](ErrorKind::AddrInUse) if there is something of that name.
    pub fn bind(cx: &Cx, path: impl AsRef<Path>) -> std::io::Result<UnixListener> {
        SocketBuilder::new().listen_unix(cx, path)
    }

    /// What is set before it is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Takes a connection. Cancel-safe: cancelled or dropped, it has taken none.
    ///
    /// # Errors
    /// As [`TcpListener::accept`](crate::TcpListener::accept).
    #[track_caller]
    pub fn accept<'a>(&'a self, cx: &'a Cx) -> AcceptOp<'a, UnixStream> {
        SocketOp::new(cx, &self.socket, TakeConnection::new())
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.local_address()?)
    }

    /// A listener that was made elsewhere.
    ///
    /// # Errors
    /// The host does not know such sockets.
    pub fn from_std(
        cx: &Cx,
        listener: std::os::unix::net::UnixListener,
    ) -> std::io::Result<UnixListener> {
        Ok(UnixListener { socket: adopt(cx, SocketKind::UnixListener, listener)? })
    }

    /// The listener for other code, of which the operations do not block: call `set_nonblocking`
    /// for one that does. It is closed when all handles of it are; whether operations
    /// block is the same for all of them, so leave that as it is while there are others.
    ///
    /// # Errors
    /// As [`TcpStream::into_std`](crate::TcpStream::into_std).
    pub fn into_std(self) -> std::io::Result<std::os::unix::net::UnixListener> {
        split::duplicate(&self.socket).map(Into::into)
    }

    /// The descriptor, if it is one of the operating system's.
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

/// A connection of unix sockets. As [`TcpStream`](crate::TcpStream), without what is TCP's.
pub struct UnixStream {
    socket: Arc<dyn Socket>,
}

/// How long a connect waits before it tries again to get into a full backlog, at first and at most.
const RETRY: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(64)];

impl UnixStream {
    /// Connects to a name. Where too many connections wait to be accepted, it waits as well.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound), or [`ConnectionRefused`](ErrorKind::ConnectionRefused) if
    /// nobody listens there any more.
    pub async fn connect(cx: &Cx, path: impl AsRef<Path>) -> Result<UnixStream> {
        SocketBuilder::new().connect_unix(cx, path).await
    }

    /// What is set before it is connected.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Two streams that are connected to each other.
    ///
    /// # Errors
    /// There are no descriptors to spare.
    pub fn pair(cx: &Cx) -> std::io::Result<(UnixStream, UnixStream)> {
        let [one, other] = network(cx)?.stream_pair()?.map(|socket| cx.adopt_socket(socket));
        Ok((UnixStream::of(one), UnixStream::of(other)))
    }

    /// Takes bytes that have come; 0: the peer sends no more. Cancel-safe.
    #[track_caller]
    pub fn read<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        split::read::<UnixStream>(cx, &self.socket, buffer)
    }

    /// The same into several buffers, one after the other.
    #[track_caller]
    pub fn read_vectored<'a, 'b>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> ReadVectoredOp<'a, 'b> {
        split::read_vectored::<UnixStream>(cx, &self.socket, buffers)
    }

    /// Fills the buffer; see [`io::Read::read_exact`]. Not cancel-safe.
    ///
    /// # Errors
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the peer ends before.
    #[track_caller]
    pub fn read_exact<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffer: &'a mut [u8],
    ) -> ReadExactOp<'a, UnixStream> {
        split::read_exact::<UnixStream>(cx, &self.socket, buffer)
    }

    /// Looks at bytes that have come, and leaves them there; 0: the peer sends no more.
    ///
    /// Cancel-safe.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, &self.socket, PeekInto { buffer, transport: Transport::UnixStream })
    }

    /// Gives bytes to be sent, once: how many were taken. Cancel-safe.
    #[track_caller]
    pub fn write<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        split::write::<UnixStream>(cx, &self.socket, bytes)
    }

    /// The same out of several buffers, one after the other.
    #[track_caller]
    pub fn write_vectored<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a [IoSlice<'a>],
    ) -> WriteVectoredOp<'a> {
        split::write_vectored::<UnixStream>(cx, &self.socket, buffers)
    }

    /// Gives all bytes to be sent; see [`io::Write::write_all`]. Not cancel-safe.
    ///
    /// # Errors
    /// Tell how many went out.
    #[track_caller]
    pub fn write_all<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteAllOp<'a, UnixStream> {
        split::write_all::<UnixStream>(cx, &self.socket, bytes)
    }

    /// Ends one direction, or both.
    ///
    /// # Errors
    /// What the system says.
    pub fn shutdown(&self, how: Shutdown) -> std::io::Result<()> {
        self.socket.shutdown(how)
    }

    /// Both directions, for as long as they are borrowed.
    pub fn split(&mut self) -> (ReadHalf<'_, UnixStream>, WriteHalf<'_, UnixStream>) {
        split::halves(&self.socket)
    }

    /// Both directions, each with an owner of its own.
    pub fn into_split(self) -> (OwnedReadHalf<UnixStream>, OwnedWriteHalf<UnixStream>) {
        split::owned_halves(self.socket)
    }

    /// The stream that [`into_split`](UnixStream::into_split) has made these of.
    ///
    /// # Errors
    /// They are of different streams, and are given back.
    pub fn reunite(
        read: OwnedReadHalf<UnixStream>,
        write: OwnedWriteHalf<UnixStream>,
    ) -> std::result::Result<UnixStream, ReuniteError<UnixStream>> {
        split::reunite(read, write)
    }

    /// The stream with a context, for code that knows the IO traits of others.
    #[track_caller]
    pub fn bound(self, cx: &Cx) -> Bound<UnixStream> {
        Bound::new(self, cx)
    }

    /// Where this end is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.local_address()?)
    }

    /// Where the peer is.
    ///
    /// # Errors
    /// What the system says.
    pub fn peer_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.peer_address()?)
    }

    /// What went wrong since this was asked last.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
        self.socket.take_error()
    }

    /// A connection that was made elsewhere.
    ///
    /// # Errors
    /// The host does not know such sockets.
    pub fn from_std(cx: &Cx, stream: std::os::unix::net::UnixStream) -> std::io::Result<Self> {
        adopt(cx, SocketKind::UnixStream, stream).map(UnixStream::of)
    }

    /// The connection for other code, of which the operations do not block.
    ///
    /// # Errors
    /// As [`TcpStream::into_std`](crate::TcpStream::into_std).
    pub fn into_std(self) -> std::io::Result<std::os::unix::net::UnixStream> {
        split::duplicate(&self.socket).map(Into::into)
    }

    /// The descriptor, if it is one of the operating system's.
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

/// Sends and receives datagrams between unix sockets.
///
/// A clone is another handle of the same socket, which is closed when the last one is dropped.
#[derive(Clone)]
pub struct UnixDatagram {
    socket: Arc<dyn Socket>,
}

impl UnixDatagram {
    /// A socket at a name, which it makes.
    ///
    /// # Errors
    /// [`AddrInUse`](ErrorKind::AddrInUse) if there is something of that name.
    pub fn bind(cx: &Cx, path: impl AsRef<Path>) -> std::io::Result<UnixDatagram> {
        SocketBuilder::new().bind_unix(cx, path)
    }

    /// What is set before it is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// A socket without a name, which nobody can send to.
    ///
    /// # Errors
    /// There is no descriptor to spare.
    pub fn unbound(cx: &Cx) -> std::io::Result<UnixDatagram> {
        datagrams(cx, &Address::Unix(None), &SocketSetup::default())
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// There are no descriptors to spare.
    pub fn pair(cx: &Cx) -> std::io::Result<(UnixDatagram, UnixDatagram)> {
        let [one, other] = network(cx)?.datagram_pair()?.map(|socket| cx.adopt_socket(socket));
        Ok((UnixDatagram { socket: one }, UnixDatagram { socket: other }))
    }

    /// Binds it to a peer.
    ///
    /// # Errors
    /// Nobody is there.
    pub fn connect(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        self.socket.connect_to(&named(path))
    }

    /// Sends a datagram to the peer: its size. Cancel-safe.
    #[track_caller]
    pub fn send<'a>(&'a self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        SocketOp::new(
            cx,
            &self.socket,
            WriteFrom { buffer: bytes, transport: Transport::Datagrams },
        )
    }

    /// Takes a datagram: how much of it fits; the rest is lost. Cancel-safe.
    #[track_caller]
    pub fn recv<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        SocketOp::new(cx, &self.socket, ReadInto { buffer, transport: Transport::Datagrams })
    }

    /// Sends a datagram to a name: its size. Cancel-safe.
    #[track_caller]
    pub fn send_to<'a>(
        &'a self,
        cx: &'a Cx,
        bytes: &'a [u8],
        to: impl AsRef<Path>,
    ) -> SendToOp<'a> {
        SocketOp::new(cx, &self.socket, SendToFrom { buffer: bytes, to: named(to) })
    }

    /// Takes a datagram: how much of it fits, and where it comes from. Cancel-safe.
    #[track_caller]
    pub fn recv_from<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> RecvFromOp<'a, UnixAddr> {
        SocketOp::new(cx, &self.socket, RecvFromInto { buffer, from: PhantomData })
    }

    /// Where it is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.local_address()?)
    }

    /// Where its peer is.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) if it has none.
    pub fn peer_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.peer_address()?)
    }

    /// Looks at a datagram that has come, and leaves it there: how much of it fits. Cancel-safe.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, &self.socket, PeekInto { buffer, transport: Transport::Datagrams })
    }

    /// What went wrong since this was asked last.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
        self.socket.take_error()
    }

    /// A socket that was made elsewhere.
    ///
    /// # Errors
    /// The host does not know such sockets.
    pub fn from_std(
        cx: &Cx,
        socket: std::os::unix::net::UnixDatagram,
    ) -> std::io::Result<UnixDatagram> {
        Ok(UnixDatagram { socket: adopt(cx, SocketKind::UnixDatagram, socket)? })
    }

    /// The socket for other code, of which the operations do not block: call `set_nonblocking` for
    /// one that does. It is closed when all handles of it are; whether operations
    /// block is the same for all of them, so leave that as it is while there are others.
    ///
    /// # Errors
    /// As [`TcpStream::into_std`](crate::TcpStream::into_std).
    pub fn into_std(self) -> std::io::Result<std::os::unix::net::UnixDatagram> {
        split::duplicate(&self.socket).map(Into::into)
    }

    /// The descriptor, if it is one of the operating system's.
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

/// Unix sockets about to be made.
impl SocketBuilder {
    /// Listens at a name, which it makes.
    ///
    /// # Errors
    /// As [`UnixListener::bind`].
    pub fn listen_unix(&self, cx: &Cx, path: impl AsRef<Path>) -> std::io::Result<UnixListener> {
        let at = named(path);
        let made = network(cx)?.listen(&at, self.setup());
        let socket = cx.record_socket(Opening::Listen, &at, made)?;
        Ok(UnixListener { socket })
    }

    /// Connects to a name. Where too many connections wait to be accepted, it waits as well.
    ///
    /// # Errors
    /// As [`UnixStream::connect`].
    pub async fn connect_unix(&self, cx: &Cx, path: impl AsRef<Path>) -> Result<UnixStream> {
        let to = named(path);
        let [mut pause, longest] = RETRY;
        loop {
            match connect_one(cx, &to, self.setup()).await {
                // The backlog is full: of unix sockets the system says that at once, and tells
                // nobody when there is room.
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    cx.sleep(pause).await?;
                    pause = longest.min(2 * pause);
                }
                connected => return connected.map(UnixStream::of),
            }
        }
    }

    /// Binds a socket for datagrams to a name, which it makes.
    ///
    /// # Errors
    /// As [`UnixDatagram::bind`].
    pub fn bind_unix(&self, cx: &Cx, path: impl AsRef<Path>) -> std::io::Result<UnixDatagram> {
        datagrams(cx, &named(path), self.setup())
    }
}

fn datagrams(cx: &Cx, at: &Address, setup: &SocketSetup) -> std::io::Result<UnixDatagram> {
    let made = network(cx)?.datagrams(at, setup);
    let socket = cx.record_socket(Opening::Bind, at, made)?;
    Ok(UnixDatagram { socket })
}

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnixListener").field(&self.socket).finish()
    }
}

impl fmt::Debug for UnixStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnixStream").field(&self.socket).finish()
    }
}

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnixDatagram").field(&self.socket).finish()
    }
}

impl Sealed for UnixStream {}

impl Accepted for UnixStream {
    type Address = UnixAddr;

    fn of(socket: Arc<dyn Socket>) -> UnixStream {
        UnixStream { socket }
    }
}

impl SocketStream for UnixStream {}

impl ReadSide for UnixStream {}

impl WriteSide for UnixStream {}

impl OverSocket for UnixStream {
    const TRANSPORT: Transport = Transport::UnixStream;

    fn socket(&self) -> &Arc<dyn Socket> {
        &self.socket
    }
}

impl io::Read for UnixStream {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        split::read::<UnixStream>(cx, &self.socket, buffer).await
    }

    async fn read_exact(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<()> {
        split::read_exact::<UnixStream>(cx, &self.socket, buffer).await
    }
}

impl io::Write for UnixStream {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        split::write::<UnixStream>(cx, &self.socket, bytes).await
    }

    async fn write_all(&mut self, cx: &Cx, bytes: &[u8]) -> std::result::Result<(), WriteAllError> {
        split::write_all::<UnixStream>(cx, &self.socket, bytes).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        cx.checkpoint()?;
        split::end_write(&self.socket)
    }

    fn abort(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl Duplex for UnixStream {
    type Reader<'a> = ReadHalf<'a, UnixStream>;
    type Writer<'a> = WriteHalf<'a, UnixStream>;

    fn split(&mut self) -> (Self::Reader<'_>, Self::Writer<'_>) {
        split::halves(&self.socket)
    }
}

options::buffer_sizes!(UnixStream);
options::buffer_sizes!(UnixDatagram);
