//! UDP: datagrams.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use asx_runtime::Cx;
use asx_runtime::net::{Socket, SocketKind, SocketOption};

use crate::io::Result;
use crate::lookup::{ToSocketAddrs, resolve};
use crate::op::{
    FromAddress, PeekInto, PeekOp, ReadInto, ReadOp, RecvFromInto, RecvFromOp, SendToFrom,
    SendToOp, SocketOp, Transport, WriteFrom, WriteOp,
};
use crate::options::{self, SocketBuilder};
use crate::split;

/// Sends and receives datagrams.
///
/// A clone is another handle of the same socket, which is closed when the last one is dropped. Any
/// number of tasks may send and receive; each datagram goes to one of them.
#[derive(Clone)]
pub struct UdpSocket {
    socket: Arc<dyn Socket>,
}

impl UdpSocket {
    pub(crate) fn of(socket: Arc<dyn Socket>) -> UdpSocket {
        UdpSocket { socket }
    }

    /// A socket at an address, or at the first of several that can be bound.
    ///
    /// # Errors
    /// That of the last address.
    pub async fn bind(cx: &Cx, at: impl ToSocketAddrs) -> Result<UdpSocket> {
        SocketBuilder::new().bind_udp(cx, at).await
    }

    /// What is set before it is bound.
    pub fn builder() -> SocketBuilder {
        SocketBuilder::new()
    }

    /// Binds it to a peer: [`send`](UdpSocket::send) sends there, and only what comes from there is
    /// received.
    ///
    /// # Errors
    /// That of the last address.
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

    /// Sends a datagram to the peer: its size. Cancel-safe.
    #[track_caller]
    pub fn send<'a>(&'a self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        SocketOp::new(
            cx,
            &self.socket,
            WriteFrom { buffer: bytes, transport: Transport::Datagrams },
        )
    }

    /// Takes a datagram: how much of it fits; the rest is lost.
    ///
    /// Cancel-safe: cancelled or dropped, it has taken none.
    #[track_caller]
    pub fn recv<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        SocketOp::new(cx, &self.socket, ReadInto { buffer, transport: Transport::Datagrams })
    }

    /// Sends a datagram somewhere: its size. Cancel-safe.
    #[track_caller]
    pub fn send_to<'a>(&'a self, cx: &'a Cx, bytes: &'a [u8], to: SocketAddr) -> SendToOp<'a> {
        SocketOp::new(cx, &self.socket, SendToFrom { buffer: bytes, to: to.into() })
    }

    /// Takes a datagram: how much of it fits, and where it comes from; the rest is lost.
    ///
    /// Cancel-safe: cancelled or dropped, it has taken none.
    #[track_caller]
    pub fn recv_from<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> RecvFromOp<'a, SocketAddr> {
        SocketOp::new(cx, &self.socket, RecvFromInto { buffer, from: PhantomData })
    }

    /// Looks at a datagram that has come, and leaves it there: how much of it fits. Cancel-safe.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, &self.socket, PeekInto { buffer, transport: Transport::Datagrams })
    }

    /// Where it is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.local_address()?)
    }

    /// Where its peer is.
    ///
    /// # Errors
    /// [`NotConnected`](std::io::ErrorKind::NotConnected) if it has none.
    pub fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        SocketAddr::from_address(self.socket.peer_address()?)
    }

    /// Whether datagrams may go to all of a network.
    ///
    /// # Errors
    /// What the system says.
    pub fn broadcast(&self) -> std::io::Result<bool> {
        options::broadcast(&self.socket)
    }

    /// Allows datagrams to go to all of a network.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_broadcast(&self, on: bool) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::Broadcast(on))
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

    /// What went wrong since this was asked last: that nobody is at the peer's port, for example.
    ///
    /// # Errors
    /// It cannot be told.
    pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
        self.socket.take_error()
    }

    /// Takes over a socket that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) in the lab, whose network is simulated.
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
        split::duplicate(&self.socket).map(Into::into)
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

options::buffer_sizes!(UdpSocket);
