//! TCP: listeners, and what TCP streams have beyond other streams.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use asx_runtime::Cx;
use asx_runtime::net::{Socket, SocketKind, SocketOption};

use crate::builder::SocketBuilder;
use crate::io::Result;
use crate::lookup::ToSocketAddrs;
use crate::op::sealed::Sealed;
use crate::op::{AcceptOp, FromAddress, SocketOp, TakeConnection, Transport};
use crate::options;
use crate::stream::{Family, OverSocket, StreamSocket};

/// A TCP socket that accepts connections.
///
/// A clone is another handle of the same listener, which is closed when the last handle is dropped.
/// Several tasks may accept at the same time; each connection is returned to one of them.
/// [`serve`](crate::serve) runs a task for each connection.
///
/// ```
/// use asx::net::{TcpListener, TcpStream};
/// use asx::{Cx, io};
///
/// # let runtime = asx::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async |cx: Cx| {
/// # let cx = &cx;
/// let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
/// let client = TcpStream::connect(cx, listener.local_addr()?).await?;
/// let (_server, peer) = listener.accept(cx).await?;
/// assert_eq!(peer, client.local_addr()?);
/// # Ok::<_, io::Error>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TcpListener {
    socket: Arc<dyn Socket>,
}

impl TcpListener {
    pub(crate) fn of(socket: Arc<dyn Socket>) -> TcpListener {
        TcpListener { socket }
    }

    /// Listens at the first of the addresses that can be bound. Port 0 selects a free port, which
    /// [`local_addr`](TcpListener::local_addr) returns.
    ///
    /// # Errors
    /// The error of the last address, for example [`AddrInUse`](std::io::ErrorKind::AddrInUse),
    /// the error of the name lookup ([`lookup_host`](crate::lookup_host)), or the cancellation.
    ///
    /// # Cancel safety
    /// A call that is cancelled or dropped has created no socket.
    pub async fn bind(cx: &Cx, at: impl ToSocketAddrs) -> Result<TcpListener> {
        SocketBuilder::new().listen(cx, at).await
    }

    /// Returns a builder for options that are set before the listener is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Waits for a connection and returns it with the address of the peer.
    ///
    /// # Errors
    /// The error of the operating system, or the cancellation. Some errors are temporary: the peer
    /// closed the connection before it was accepted, or no descriptor is free.
    /// [`AcceptFailure`](crate::AcceptFailure) distinguishes them, and [`serve`](crate::serve)
    /// continues after them.
    ///
    /// # Cancel safety
    /// Cancel-safe: an accept that is cancelled or dropped has taken no connection.
    #[track_caller]
    pub fn accept<'a>(&'a self, cx: &'a Cx) -> AcceptOp<'a, TcpStream> {
        SocketOp::new(cx, &self.socket, TakeConnection::new())
    }

    /// Returns the address of the listener.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.local_address()?)
    }

    /// Returns the maximum number of routers that a packet may pass (`IP_TTL`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn ttl(&self) -> std::io::Result<u32> {
        options::ttl(&self.socket)
    }

    /// Sets the maximum number of routers that a packet may pass.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if `hops` is not between 1 and 255, or
    /// the error of the operating system.
    pub fn set_ttl(&self, hops: u32) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::Ttl(hops))
    }

    /// Takes over a listener that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) in the lab, which simulates its network.
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
        options::duplicate(&self.socket).map(Into::into)
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

/// The TCP family of stream sockets.
#[derive(Debug)]
pub enum Tcp {}

impl Sealed for Tcp {}

impl Family for Tcp {
    type Address = SocketAddr;
    type Std = std::net::TcpStream;
    const NAME: &'static str = "TcpStream";
    const TRANSPORT: Transport = Transport::Tcp;
    const KIND: SocketKind = SocketKind::TcpStream;
}

/// A TCP connection.
///
/// The operations that TCP streams share with Unix streams are methods of [`StreamSocket`]:
///
/// | to | use |
/// |---|---|
/// | read | [`read`], [`read_exact`], [`read_vectored`], [`peek`] |
/// | write | [`write`], [`write_all`], [`write_vectored`] |
/// | end a direction | [`shutdown`] |
/// | use both directions at the same time | [`split`], [`into_split`], [`reunite`] |
/// | use a library of tokio or futures | [`bound`] |
/// | query addresses and errors | [`local_addr`], [`peer_addr`], [`take_error`] |
/// | convert from and to the standard library | [`from_std`], [`into_std`] |
///
/// Lines, buffers and frames are in [`io`](crate::io).
///
/// ```
/// use asx::{Cx, io, net::TcpStream};
///
/// async fn request(cx: &Cx) -> io::Result<Vec<u8>> {
///     let mut stream = TcpStream::connect(cx, "example.org:80").await?;
///     stream.write_all(cx, b"GET / HTTP/1.0\r\nHost: example.org\r\n\r\n").await?;
///     let mut answer = vec![0; 1024];
///     let count = stream.read(cx, &mut answer).await?;
///     answer.truncate(count);
///     Ok(answer)
/// }
/// ```
///
/// [`read`]: StreamSocket::read
/// [`read_exact`]: StreamSocket::read_exact
/// [`read_vectored`]: StreamSocket::read_vectored
/// [`peek`]: StreamSocket::peek
/// [`write`]: StreamSocket::write
/// [`write_all`]: StreamSocket::write_all
/// [`write_vectored`]: StreamSocket::write_vectored
/// [`shutdown`]: StreamSocket::shutdown
/// [`split`]: StreamSocket::split
/// [`into_split`]: StreamSocket::into_split
/// [`reunite`]: StreamSocket::reunite
/// [`bound`]: StreamSocket::bound
/// [`local_addr`]: StreamSocket::local_addr
/// [`peer_addr`]: StreamSocket::peer_addr
/// [`take_error`]: StreamSocket::take_error
/// [`from_std`]: StreamSocket::from_std
/// [`into_std`]: StreamSocket::into_std
pub type TcpStream = StreamSocket<Tcp>;

/// TCP.
impl TcpStream {
    /// Connects to the first of the addresses that accepts the connection.
    ///
    /// # Errors
    /// The error of the last address, for example
    /// [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused), the error of the name lookup
    /// ([`lookup_host`](crate::lookup_host)), or the cancellation.
    ///
    /// # Cancel safety
    /// Not cancel-safe: a call that is cancelled or dropped closes its socket, but the peer may
    /// have accepted the connection.
    pub async fn connect(cx: &Cx, to: impl ToSocketAddrs) -> Result<TcpStream> {
        SocketBuilder::new().connect(cx, to).await
    }

    /// Returns a builder for options that are set before the stream is connected.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Returns true if small writes are sent immediately (`TCP_NODELAY`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn nodelay(&self) -> std::io::Result<bool> {
        options::nodelay(self.socket())
    }

    /// Sends small writes immediately instead of collecting them (`TCP_NODELAY`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_nodelay(&self, on: bool) -> std::io::Result<()> {
        self.socket().set_option(SocketOption::NoDelay(on))
    }

    /// Returns the maximum number of routers that a packet may pass (`IP_TTL`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn ttl(&self) -> std::io::Result<u32> {
        options::ttl(self.socket())
    }

    /// Sets the maximum number of routers that a packet may pass.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if `hops` is not between 1 and 255, or
    /// the error of the operating system.
    pub fn set_ttl(&self, hops: u32) -> std::io::Result<()> {
        self.socket().set_option(SocketOption::Ttl(hops))
    }

    /// Returns how long closing the stream waits for unsent bytes (`SO_LINGER`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn linger(&self) -> std::io::Result<Option<Duration>> {
        options::linger(self.socket())
    }

    /// Sets how long closing the stream waits for unsent bytes (`SO_LINGER`).
    ///
    /// - `None`, the default: the close returns immediately, and the operating system sends the
    ///   bytes in the background.
    /// - A positive time: the thread that drops the stream is blocked until the bytes are sent, or
    ///   for this time, rounded up to whole seconds.
    /// - Zero: the close *resets* the connection. Unsent bytes are discarded, and the peer gets
    ///   [`ConnectionReset`](std::io::ErrorKind::ConnectionReset).
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if the time is longer than [`i32::MAX`]
    /// seconds, or the error of the operating system.
    pub fn set_linger(&self, time: Option<Duration>) -> std::io::Result<()> {
        self.socket().set_option(SocketOption::Linger(time))
    }

    /// Returns true if the connection is probed while it is idle (`SO_KEEPALIVE`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn keepalive(&self) -> std::io::Result<bool> {
        options::keepalive(self.socket())
    }

    /// Probes the connection after it has been idle for a long time (`SO_KEEPALIVE`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_keepalive(&self, on: bool) -> std::io::Result<()> {
        self.socket().set_option(SocketOption::KeepAlive(on))
    }
}
