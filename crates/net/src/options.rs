//! Settings of sockets, before and after they are made.

use std::io::{Error as IoError, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use asx_runtime::Cx;
use asx_runtime::net::{
    Address, Net, Opening, OptionName, OwnedHandle, Socket, SocketKind, SocketOption, SocketSetup,
};

use crate::io::{Error, Result};
use crate::lookup::{ToSocketAddrs, network, resolve};
use crate::op::{Accepted as _, FinishConnect, SocketOp};
use crate::{TcpListener, TcpStream, UdpSocket};

/// A socket about to be made: what is set before it is bound or connected.
///
/// ```
/// use asx::net::{SocketBuilder, TcpListener};
/// use asx::{Cx, io};
///
/// async fn listen(cx: &Cx) -> io::Result<TcpListener> {
///     SocketBuilder::new().backlog(4096).recv_buffer(65_536).listen(cx, "127.0.0.1:8080").await
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "listen, connect or bind"]
pub struct SocketBuilder {
    setup: SocketSetup,
}

impl SocketBuilder {
    /// A socket as the system makes it.
    pub fn new() -> SocketBuilder {
        SocketBuilder::default()
    }

    fn option(mut self, option: SocketOption) -> SocketBuilder {
        self.setup.options.push(option);
        self
    }

    /// Small writes go out at once instead of waiting for more (TCP).
    pub fn nodelay(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::NoDelay(on))
    }

    /// Allows the address to be bound while connections of an earlier socket linger
    /// (`SO_REUSEADDR`). On Windows this lets another process take over a port in use, so listeners
    /// set it by default on Unix only.
    pub fn reuse_address(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::ReuseAddress(on))
    }

    /// Allows several sockets to be bound to the same address (`SO_REUSEPORT`). On Linux the kernel
    /// distributes connections and datagrams among them; macOS does not. Available on Unix.
    #[cfg(unix)]
    pub fn reuse_port(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::ReusePort(on))
    }

    /// How many routers a packet may pass.
    pub fn ttl(self, hops: u32) -> SocketBuilder {
        self.option(SocketOption::Ttl(hops))
    }

    /// See [`TcpStream::set_linger`].
    pub fn linger(self, time: Option<Duration>) -> SocketBuilder {
        self.option(SocketOption::Linger(time))
    }

    /// How many bytes may wait to be read. Connections that are accepted inherit it.
    pub fn recv_buffer(self, bytes: usize) -> SocketBuilder {
        self.option(SocketOption::RecvBuffer(bytes))
    }

    /// How many bytes may wait to go out. Connections that are accepted inherit it.
    pub fn send_buffer(self, bytes: usize) -> SocketBuilder {
        self.option(SocketOption::SendBuffer(bytes))
    }

    /// A connection that is idle for long is probed (TCP).
    pub fn keepalive(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::KeepAlive(on))
    }

    /// Datagrams may go to all of a network.
    pub fn broadcast(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::Broadcast(on))
    }

    /// An IPv6 socket takes no IPv4.
    pub fn only_v6(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::OnlyV6(on))
    }

    /// How many connections may wait to be accepted.
    pub fn backlog(mut self, connections: u32) -> SocketBuilder {
        self.setup.backlog = Some(connections);
        self
    }

    /// Where a socket that connects is bound.
    pub fn local(mut self, address: SocketAddr) -> SocketBuilder {
        self.setup.local = Some(address.into());
        self
    }

    /// Listens for connections: at the first address that can be bound.
    ///
    /// # Errors
    /// That of the last address.
    pub async fn listen(&self, cx: &Cx, at: impl ToSocketAddrs) -> Result<TcpListener> {
        let addresses = resolve(cx, at.target()?).await?;
        self.first(cx, Opening::Listen, &addresses, |net, at, setup| net.listen(at, setup))
            .map(TcpListener::of)
    }

    /// Binds a socket for datagrams: to the first address that can be bound.
    ///
    /// # Errors
    /// That of the last address.
    pub async fn bind_udp(&self, cx: &Cx, at: impl ToSocketAddrs) -> Result<UdpSocket> {
        let addresses = resolve(cx, at.target()?).await?;
        self.first(cx, Opening::Bind, &addresses, |net, at, setup| net.datagrams(at, setup))
            .map(UdpSocket::of)
    }

    /// Connects: to the first address where somebody answers.
    ///
    /// Cancelled or dropped, the attempt is given up; the peer may have seen it.
    ///
    /// # Errors
    /// That of the last address.
    pub async fn connect(&self, cx: &Cx, to: impl ToSocketAddrs) -> Result<TcpStream> {
        let addresses = resolve(cx, to.target()?).await?;
        let mut last = None;
        for address in addresses {
            match connect_one(cx, &address.into(), &self.setup).await {
                Ok(socket) => return Ok(TcpStream::of(socket)),
                Err(Error::Cancelled(cancelled)) => return Err(cancelled.into()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ErrorKind::NotFound.into()))
    }

    #[cfg(unix)]
    pub(crate) fn setup(&self) -> &SocketSetup {
        &self.setup
    }

    fn first(
        &self,
        cx: &Cx,
        how: Opening,
        addresses: &[SocketAddr],
        make: impl Fn(&dyn Net, &Address, &SocketSetup) -> std::io::Result<Arc<dyn Socket>>,
    ) -> Result<Arc<dyn Socket>> {
        let net = network(cx)?;
        let mut last = None;
        for address in addresses {
            let address = Address::from(*address);
            match cx.record_socket(how, &address, make(net, &address, &self.setup)) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ErrorKind::NotFound.into()).into())
    }
}

/// Connects to one address.
pub(crate) async fn connect_one(
    cx: &Cx,
    to: &Address,
    setup: &SocketSetup,
) -> Result<Arc<dyn Socket>> {
    cx.checkpoint()?;
    let socket = cx.record_socket(Opening::Connect, to, network(cx)?.connect(to, setup))?;
    SocketOp::new(cx, &socket, FinishConnect).await?;
    Ok(socket)
}

/// Takes over a socket that was created elsewhere.
pub(crate) fn adopt(
    cx: &Cx,
    kind: SocketKind,
    socket: impl Into<OwnedHandle>,
) -> std::io::Result<Arc<dyn Socket>> {
    Ok(cx.adopt_socket(network(cx)?.adopt(kind, socket.into())?))
}

/// A host answered with another setting than it was asked for.
fn mixed_up(option: SocketOption) -> IoError {
    IoError::other(format!("the host answered with {option:?}"))
}

pub(crate) fn nodelay(socket: &Arc<dyn Socket>) -> std::io::Result<bool> {
    match socket.option(OptionName::NoDelay)? {
        SocketOption::NoDelay(on) => Ok(on),
        other => Err(mixed_up(other)),
    }
}

pub(crate) fn ttl(socket: &Arc<dyn Socket>) -> std::io::Result<u32> {
    match socket.option(OptionName::Ttl)? {
        SocketOption::Ttl(hops) => Ok(hops),
        other => Err(mixed_up(other)),
    }
}

pub(crate) fn linger(socket: &Arc<dyn Socket>) -> std::io::Result<Option<Duration>> {
    match socket.option(OptionName::Linger)? {
        SocketOption::Linger(time) => Ok(time),
        other => Err(mixed_up(other)),
    }
}

pub(crate) fn keepalive(socket: &Arc<dyn Socket>) -> std::io::Result<bool> {
    match socket.option(OptionName::KeepAlive)? {
        SocketOption::KeepAlive(on) => Ok(on),
        other => Err(mixed_up(other)),
    }
}

/// The sizes of the buffers of a socket, which several kinds have.
macro_rules! buffer_sizes {
    ($socket:ident) => {
        /// The sizes of its buffers.
        impl $socket {
            /// How many bytes may wait to be read.
            ///
            /// # Errors
            /// What the system says.
            pub fn recv_buffer(&self) -> std::io::Result<usize> {
                $crate::options::recv_buffer(&self.socket)
            }

            /// Sets how many bytes may wait to be read; the system may make that more.
            ///
            /// # Errors
            /// What the system says.
            pub fn set_recv_buffer(&self, bytes: usize) -> std::io::Result<()> {
                self.socket.set_option(asx_runtime::net::SocketOption::RecvBuffer(bytes))
            }

            /// How many bytes may wait to go out.
            ///
            /// # Errors
            /// What the system says.
            pub fn send_buffer(&self) -> std::io::Result<usize> {
                $crate::options::send_buffer(&self.socket)
            }

            /// Sets how many bytes may wait to go out; the system may make that more.
            ///
            /// # Errors
            /// What the system says.
            pub fn set_send_buffer(&self, bytes: usize) -> std::io::Result<()> {
                self.socket.set_option(asx_runtime::net::SocketOption::SendBuffer(bytes))
            }
        }
    };
}
pub(crate) use buffer_sizes;

pub(crate) fn recv_buffer(socket: &Arc<dyn Socket>) -> std::io::Result<usize> {
    match socket.option(OptionName::RecvBuffer)? {
        SocketOption::RecvBuffer(bytes) => Ok(bytes),
        other => Err(mixed_up(other)),
    }
}

pub(crate) fn send_buffer(socket: &Arc<dyn Socket>) -> std::io::Result<usize> {
    match socket.option(OptionName::SendBuffer)? {
        SocketOption::SendBuffer(bytes) => Ok(bytes),
        other => Err(mixed_up(other)),
    }
}

pub(crate) fn broadcast(socket: &Arc<dyn Socket>) -> std::io::Result<bool> {
    match socket.option(OptionName::Broadcast)? {
        SocketOption::Broadcast(on) => Ok(on),
        other => Err(mixed_up(other)),
    }
}
