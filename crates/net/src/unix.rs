//! Unix sockets: streams and datagrams between processes of one machine.

use std::fmt;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use asx_runtime::Cx;
use asx_runtime::net::{Address, Opening, Socket, SocketKind, SocketOption, SocketSetup};

use crate::builder::{SocketBuilder, connect_one};
use crate::io::{Error, Result};
use crate::lookup::network;
use crate::op::sealed::Sealed;
use crate::op::{
    AcceptOp, Accepted as _, FromAddress, PeekInto, PeekOp, ReadInto, ReadOp, RecvFromInto,
    RecvFromOp, SendToFrom, SendToOp, SocketOp, TakeConnection, Transport, WriteFrom, WriteOp,
};
use crate::options::{self, adopt};
use crate::stream::{Family, StreamSocket};

/// The address of a Unix socket: a path in the file system, an abstract name (on Linux), or none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnixAddr {
    path: Option<PathBuf>,
}

impl UnixAddr {
    /// Returns the path, or `None` for an unnamed socket. An *abstract* name, which is not in the
    /// file system, begins with a zero byte. Sockets can be bound and connected to it.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl FromAddress for UnixAddr {
    fn from_address(address: Address) -> std::io::Result<UnixAddr> {
        match address {
            Address::Unix(path) => Ok(UnixAddr { path }),
            Address::Inet(address) => {
                let text = format!("{address} is not the address of a unix socket");
                Err(std::io::Error::new(ErrorKind::InvalidData, text))
            }
        }
    }
}

fn named(path: impl AsRef<Path>) -> Address {
    Address::Unix(Some(path.as_ref().to_path_buf()))
}

/// A Unix socket that accepts connections.
///
/// A clone is another handle of the same listener, which is closed when the last handle is dropped.
/// Its file stays in the file system: remove it before the path is bound again.
///
/// ```
/// use asx::net::{UnixListener, UnixStream};
/// use asx::{Cx, io};
///
/// # let runtime = asx::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async |cx: Cx| {
/// # let cx = &cx;
/// let path = std::env::temp_dir().join(format!("asx-example-{}", std::process::id()));
/// # let _ = std::fs::remove_file(&path);
/// let listener = UnixListener::bind(cx, &path)?;
/// let mut client = UnixStream::connect(cx, &path).await?;
/// let (mut server, _) = listener.accept(cx).await?;
/// client.write_all(cx, b"hello").await?;
/// let mut buffer = [0; 5];
/// server.read_exact(cx, &mut buffer).await?;
/// assert_eq!(&buffer, b"hello");
/// std::fs::remove_file(&path)?;
/// # Ok::<_, io::Error>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UnixListener {
    socket: Arc<dyn Socket>,
}

impl UnixListener {
    /// Creates a socket file at `path` and listens there.
    ///
    /// # Errors
    /// [`AddrInUse`](ErrorKind::AddrInUse) if the path exists, or another error of the operating
    /// system.
    pub fn bind(cx: &Cx, path: impl AsRef<Path>) -> std::io::Result<UnixListener> {
        SocketBuilder::new().listen_unix(cx, path)
    }

    /// Returns a builder for options that are set before the listener is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Waits for a connection and returns it with the address of the peer.
    ///
    /// # Errors
    /// As [`TcpListener::accept`](crate::TcpListener::accept).
    ///
    /// # Cancel safety
    /// Cancel-safe: an accept that is cancelled or dropped has taken no connection.
    #[track_caller]
    pub fn accept<'a>(&'a self, cx: &'a Cx) -> AcceptOp<'a, UnixStream> {
        SocketOp::new(cx, &self.socket, TakeConnection::new())
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn local_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.local_address()?)
    }

    /// Takes over a listener that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) in the lab, which simulates its network.
    pub fn from_std(
        cx: &Cx,
        listener: std::os::unix::net::UnixListener,
    ) -> std::io::Result<UnixListener> {
        Ok(UnixListener { socket: adopt(cx, SocketKind::UnixListener, listener)? })
    }

    /// Returns the listener as one of the standard library. It stays in non-blocking mode: call
    /// `set_nonblocking(false)` for blocking calls. The mode applies to all handles of the socket,
    /// so change it only when no other handle is in use. The socket is closed when all its handles
    /// are dropped.
    ///
    /// # Errors
    /// As [`UnixStream::into_std`](crate::UnixStream::into_std).
    pub fn into_std(self) -> std::io::Result<std::os::unix::net::UnixListener> {
        options::duplicate(&self.socket).map(Into::into)
    }

    /// Returns the file descriptor, or `None` in the lab.
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

/// The Unix family of stream sockets.
#[derive(Debug)]
pub enum Unix {}

impl Sealed for Unix {}

impl Family for Unix {
    type Address = UnixAddr;
    type Std = std::os::unix::net::UnixStream;
    const NAME: &'static str = "UnixStream";
    const TRANSPORT: Transport = Transport::UnixStream;
    const KIND: SocketKind = SocketKind::UnixStream;
}

/// A connection between two Unix sockets.
///
/// The operations that Unix streams share with TCP streams are methods of [`StreamSocket`];
/// [`TcpStream`](crate::TcpStream) has a table of them.
///
/// ```
/// use asx::{Cx, io, net::UnixStream};
///
/// # let runtime = asx::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async |cx: Cx| {
/// # let cx = &cx;
/// let (mut one, mut other) = UnixStream::pair(cx)?;
/// one.write_all(cx, b"hello").await?;
/// let mut buffer = [0; 5];
/// other.read_exact(cx, &mut buffer).await?;
/// assert_eq!(&buffer, b"hello");
/// # Ok::<_, io::Error>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type UnixStream = StreamSocket<Unix>;

/// The first and the longest pause before `connect` retries after a full backlog.
const RETRY: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(64)];

/// Unix sockets.
impl UnixStream {
    /// Connects to a socket file. Waits while the backlog of the listener is full.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the path does not exist,
    /// [`ConnectionRefused`](ErrorKind::ConnectionRefused) if its listener is closed, another error
    /// of the operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Not cancel-safe: a call that is cancelled or dropped closes its socket, but the peer may
    /// have accepted the connection.
    pub async fn connect(cx: &Cx, path: impl AsRef<Path>) -> Result<UnixStream> {
        SocketBuilder::new().connect_unix(cx, path).await
    }

    /// Returns a builder for options that are set before the stream is connected.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Creates two streams that are connected to each other.
    ///
    /// # Errors
    /// The error of the operating system, for example if no descriptor is free.
    pub fn pair(cx: &Cx) -> std::io::Result<(UnixStream, UnixStream)> {
        let [one, other] = network(cx)?.stream_pair()?.map(|socket| cx.adopt_socket(socket));
        Ok((UnixStream::of(one), UnixStream::of(other)))
    }
}

/// A Unix socket that sends and receives datagrams.
///
/// A clone is another handle of the same socket, which is closed when the last handle is dropped.
///
/// ```
/// use asx::{Cx, io, net::UnixDatagram};
///
/// # let runtime = asx::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async |cx: Cx| {
/// # let cx = &cx;
/// let (one, other) = UnixDatagram::pair(cx)?;
/// one.send(cx, b"hello").await?;
/// let mut buffer = [0; 64];
/// assert_eq!(other.recv(cx, &mut buffer).await?, 5);
/// # Ok::<_, io::Error>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UnixDatagram {
    socket: Arc<dyn Socket>,
}

impl UnixDatagram {
    /// Creates a socket file at `path` and binds a socket to it.
    ///
    /// # Errors
    /// [`AddrInUse`](ErrorKind::AddrInUse) if the path exists, or another error of the operating
    /// system.
    pub fn bind(cx: &Cx, path: impl AsRef<Path>) -> std::io::Result<UnixDatagram> {
        SocketBuilder::new().bind_unix(cx, path)
    }

    /// Returns a builder for options that are set before the socket is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Creates a socket without a name, which other sockets cannot address.
    ///
    /// # Errors
    /// The error of the operating system, for example if no descriptor is free.
    pub fn unbound(cx: &Cx) -> std::io::Result<UnixDatagram> {
        datagrams(cx, &Address::Unix(None), &SocketSetup::default())
    }

    /// Creates two sockets that are connected to each other.
    ///
    /// # Errors
    /// The error of the operating system, for example if no descriptor is free.
    pub fn pair(cx: &Cx) -> std::io::Result<(UnixDatagram, UnixDatagram)> {
        let [one, other] = network(cx)?.datagram_pair()?.map(|socket| cx.adopt_socket(socket));
        Ok((UnixDatagram { socket: one }, UnixDatagram { socket: other }))
    }

    /// Connects the socket to a peer, the destination of [`send`](UnixDatagram::send).
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the path does not exist,
    /// [`ConnectionRefused`](ErrorKind::ConnectionRefused) if its socket is closed, or another
    /// error of the operating system.
    pub fn connect(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        self.socket.connect_to(&named(path))
    }

    /// Sends a datagram to the connected peer and returns its size.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) if there is no peer, another error of the
    /// operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a send that is cancelled or dropped has sent nothing.
    #[track_caller]
    pub fn send<'a>(&'a self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        let attempt = WriteFrom { buffer: bytes, transport: Transport::Datagrams };
        SocketOp::new(cx, &self.socket, attempt)
    }

    /// Receives a datagram and returns how many of its bytes were copied into `buffer`. Bytes that
    /// do not fit are lost.
    ///
    /// # Errors
    /// The error of the operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a receive that is cancelled or dropped has taken no datagram.
    #[track_caller]
    pub fn recv<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        SocketOp::new(cx, &self.socket, ReadInto { buffer, transport: Transport::Datagrams })
    }

    /// Sends a datagram to the socket at a path and returns its size.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if the path does not exist,
    /// [`ConnectionRefused`](ErrorKind::ConnectionRefused) if its socket is closed, another error
    /// of the operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a send that is cancelled or dropped has sent nothing.
    #[track_caller]
    pub fn send_to<'a>(
        &'a self,
        cx: &'a Cx,
        bytes: &'a [u8],
        to: impl AsRef<Path>,
    ) -> SendToOp<'a> {
        SocketOp::new(cx, &self.socket, SendToFrom { buffer: bytes, to: named(to) })
    }

    /// Receives a datagram. Returns how many of its bytes were copied into `buffer`, and the
    /// address of the sender. Bytes that do not fit are lost.
    ///
    /// # Errors
    /// The error of the operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a receive that is cancelled or dropped has taken no datagram.
    #[track_caller]
    pub fn recv_from<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> RecvFromOp<'a, UnixAddr> {
        SocketOp::new(cx, &self.socket, RecvFromInto { buffer, from: PhantomData })
    }

    /// Copies a datagram into `buffer` without taking it and returns how many of its bytes were
    /// copied.
    ///
    /// # Errors
    /// The error of the operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: it takes no datagram.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, &self.socket, PeekInto { buffer, transport: Transport::Datagrams })
    }

    /// Returns the address of the socket.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn local_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.local_address()?)
    }

    /// Returns the address of the connected peer.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) if there is no peer.
    pub fn peer_addr(&self) -> std::io::Result<UnixAddr> {
        UnixAddr::from_address(self.socket.peer_address()?)
    }

    /// Returns the pending error of the socket, if there is one, and clears it.
    ///
    /// # Errors
    /// The error of the operating system if the pending error cannot be read.
    pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
        self.socket.take_error()
    }

    /// Returns the size of the receive buffer in bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn recv_buffer(&self) -> std::io::Result<usize> {
        options::recv_buffer(&self.socket)
    }

    /// Sets the size of the receive buffer. The operating system may choose another size.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_recv_buffer(&self, bytes: usize) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::RecvBuffer(bytes))
    }

    /// Returns the size of the send buffer in bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn send_buffer(&self) -> std::io::Result<usize> {
        options::send_buffer(&self.socket)
    }

    /// Sets the size of the send buffer. The operating system may choose another size.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_send_buffer(&self, bytes: usize) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::SendBuffer(bytes))
    }

    /// Takes over a socket that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) in the lab, which simulates its network.
    pub fn from_std(
        cx: &Cx,
        socket: std::os::unix::net::UnixDatagram,
    ) -> std::io::Result<UnixDatagram> {
        Ok(UnixDatagram { socket: adopt(cx, SocketKind::UnixDatagram, socket)? })
    }

    /// Returns the socket as one of the standard library. It stays in non-blocking mode: call
    /// `set_nonblocking(false)` for blocking calls. The mode applies to all handles of the socket,
    /// so change it only when no other handle is in use. The socket is closed when all its handles
    /// are dropped.
    ///
    /// # Errors
    /// As [`UnixStream::into_std`](crate::UnixStream::into_std).
    pub fn into_std(self) -> std::io::Result<std::os::unix::net::UnixDatagram> {
        options::duplicate(&self.socket).map(Into::into)
    }

    /// Returns the file descriptor, or `None` in the lab.
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

/// Unix sockets.
impl SocketBuilder {
    /// Creates a socket file at `path` and listens there.
    ///
    /// # Errors
    /// As [`UnixListener::bind`].
    pub fn listen_unix(&self, cx: &Cx, path: impl AsRef<Path>) -> std::io::Result<UnixListener> {
        let at = named(path);
        let made = network(cx)?.listen(&at, self.setup());
        let socket = cx.record_socket(Opening::Listen, &at, made)?;
        Ok(UnixListener { socket })
    }

    /// Connects to a socket file. Waits while the backlog of the listener is full.
    ///
    /// # Errors
    /// As [`UnixStream::connect`].
    ///
    /// # Cancel safety
    /// Not cancel-safe: a call that is cancelled or dropped closes its socket, but the peer may
    /// have accepted the connection.
    pub async fn connect_unix(&self, cx: &Cx, path: impl AsRef<Path>) -> Result<UnixStream> {
        let to = named(path);
        let [mut pause, longest] = RETRY;
        loop {
            match connect_one(cx, &to, self.setup()).await {
                // The backlog is full. For unix sockets the operating system reports this
                // immediately, and there is no event when a place becomes free.
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    cx.sleep(pause).await?;
                    pause = longest.min(2 * pause);
                }
                connected => return connected.map(UnixStream::of),
            }
        }
    }

    /// Creates a socket file at `path` and binds a datagram socket to it.
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

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnixDatagram").field(&self.socket).finish()
    }
}
