//! UDP sockets.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use asx_runtime::Cx;
use asx_runtime::net::{Socket, SocketKind, SocketOption};

use crate::builder::SocketBuilder;
use crate::io::Result;
use crate::lookup::{ToSocketAddrs, resolve};
use crate::op::{
    FromAddress, PeekInto, PeekOp, ReadInto, ReadOp, RecvFromInto, RecvFromOp, SendToFrom,
    SendToOp, SocketOp, Transport, WriteFrom, WriteOp,
};
use crate::options;

/// A UDP socket, which sends and receives datagrams.
///
/// A clone is another handle of the same socket, which is closed when the last handle is dropped.
/// Any number of tasks may send and receive; each datagram is returned to one of them.
///
/// ```
/// use asx::{Cx, io, net::UdpSocket};
///
/// # let runtime = asx::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async |cx: Cx| {
/// # let cx = &cx;
/// let one = UdpSocket::bind(cx, "127.0.0.1:0").await?;
/// let other = UdpSocket::bind(cx, "127.0.0.1:0").await?;
/// one.send_to(cx, b"hello", other.local_addr()?).await?;
/// let mut buffer = [0; 64];
/// let (count, from) = other.recv_from(cx, &mut buffer).await?;
/// assert_eq!((&buffer[..count], from), (&b"hello"[..], one.local_addr()?));
/// # Ok::<_, io::Error>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct UdpSocket {
    socket: Arc<dyn Socket>,
}

impl UdpSocket {
    pub(crate) fn of(socket: Arc<dyn Socket>) -> UdpSocket {
        UdpSocket { socket }
    }

    /// Creates a socket at the first of the addresses that can be bound. Port 0 selects a free
    /// port, which [`local_addr`](UdpSocket::local_addr) returns.
    ///
    /// # Errors
    /// The error of the last address, for example [`AddrInUse`](std::io::ErrorKind::AddrInUse),
    /// the error of the name lookup ([`lookup_host`](crate::lookup_host)), or the cancellation.
    ///
    /// # Cancel safety
    /// A call that is cancelled or dropped has created no socket.
    pub async fn bind(cx: &Cx, at: impl ToSocketAddrs) -> Result<UdpSocket> {
        SocketBuilder::new().bind_udp(cx, at).await
    }

    /// Returns a builder for options that are set before the socket is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Connects the socket to a peer: [`send`](UdpSocket::send) sends to this address, and only
    /// datagrams from this address are received.
    ///
    /// # Errors
    /// The error of the last address, the error of the name lookup
    /// ([`lookup_host`](crate::lookup_host)), or the cancellation.
    ///
    /// # Cancel safety
    /// A call that is cancelled or dropped has not changed the peer.
    pub async fn connect(&self, cx: &Cx, to: impl ToSocketAddrs) -> Result<()> {
        let addresses = resolve(cx, to.target()?).await?;
        let mut connected = Ok(());
        for address in addresses {
            connected = self.socket.connect_to(&address.into());
            if connected.is_ok() {
                break;
            }
        }
        Ok(connected?)
    }

    /// Sends a datagram to the connected peer and returns its size.
    ///
    /// # Errors
    /// The error of the operating system, or the cancellation. On Linux it may be the error of an
    /// earlier datagram: [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused) if the port
    /// of the peer was closed.
    ///
    /// # Cancel safety
    /// Cancel-safe: a send that is cancelled or dropped has sent nothing.
    #[track_caller]
    pub fn send<'a>(&'a self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        let attempt = WriteFrom { buffer: bytes, transport: Transport::Datagrams };
        SocketOp::new(cx, &self.socket, attempt)
    }

    /// Receives a datagram and returns how many of its bytes were copied into `buffer`. Bytes that
    /// do not fit are lost; on Windows the receive then also fails.
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

    /// Sends a datagram to an address and returns its size.
    ///
    /// # Errors
    /// The error of the operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a send that is cancelled or dropped has sent nothing.
    #[track_caller]
    pub fn send_to<'a>(&'a self, cx: &'a Cx, bytes: &'a [u8], to: SocketAddr) -> SendToOp<'a> {
        SocketOp::new(cx, &self.socket, SendToFrom { buffer: bytes, to: to.into() })
    }

    /// Receives a datagram. Returns how many of its bytes were copied into `buffer`, and the
    /// address of the sender. Bytes that do not fit are lost; on Windows the receive then also
    /// fails.
    ///
    /// # Errors
    /// The error of the operating system, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a receive that is cancelled or dropped has taken no datagram.
    #[track_caller]
    pub fn recv_from<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> RecvFromOp<'a, SocketAddr> {
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
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.local_address()?)
    }

    /// Returns the address of the connected peer.
    ///
    /// # Errors
    /// [`NotConnected`](std::io::ErrorKind::NotConnected) if there is no peer.
    pub fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.peer_address()?)
    }

    /// Returns the pending error of the socket, if there is one, and clears it. An error can be
    /// pending because the port of the peer is closed, for example.
    ///
    /// # Errors
    /// The error of the operating system if the pending error cannot be read.
    pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
        self.socket.take_error()
    }
}

/// Options.
impl UdpSocket {
    /// Returns true if datagrams to broadcast addresses are allowed (`SO_BROADCAST`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn broadcast(&self) -> std::io::Result<bool> {
        options::broadcast(&self.socket)
    }

    /// Allows datagrams to broadcast addresses (`SO_BROADCAST`).
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_broadcast(&self, on: bool) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::Broadcast(on))
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
}

/// Conversions from and to the standard library.
impl UdpSocket {
    /// Takes over a socket that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) in the lab, which simulates its network.
    pub fn from_std(cx: &Cx, socket: std::net::UdpSocket) -> std::io::Result<UdpSocket> {
        options::adopt(cx, SocketKind::Udp, socket).map(UdpSocket::of)
    }

    /// Returns the socket as one of the standard library. It stays in non-blocking mode: call
    /// `set_nonblocking(false)` for blocking calls. The mode applies to all handles of the socket,
    /// so change it only when no other handle is in use. The socket is closed when all its handles
    /// are dropped.
    ///
    /// # Errors
    /// As [`TcpStream::into_std`](crate::TcpStream::into_std).
    pub fn into_std(self) -> std::io::Result<std::net::UdpSocket> {
        options::duplicate(&self.socket).map(Into::into)
    }

    /// Returns the file descriptor, or `None` in the lab. Available on Unix.
    #[cfg(unix)]
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UdpSocket").field(&self.socket).finish()
    }
}
