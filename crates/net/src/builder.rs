//! Sockets with options that are set before they are bound or connected.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use asx_runtime::Cx;
use asx_runtime::net::{Address, Net, Opening, Socket, SocketOption, SocketSetup};

use crate::io::{Error, Result};
use crate::lookup::{ToSocketAddrs, network, resolve};
use crate::op::{Accepted as _, FinishConnect, SocketOp};
use crate::{TcpListener, TcpStream, UdpSocket};

/// Creates sockets with options that are set before they are bound or connected.
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
    /// Returns a builder with the default options of the operating system.
    pub fn new() -> SocketBuilder {
        SocketBuilder::default()
    }

    fn option(mut self, option: SocketOption) -> SocketBuilder {
        self.setup.options.push(option);
        self
    }

    /// Sends small writes of TCP immediately instead of collecting them (`TCP_NODELAY`).
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

    /// Sets the maximum number of routers that a packet may pass (`IP_TTL`), from 1 to 255.
    pub fn ttl(self, hops: u32) -> SocketBuilder {
        self.option(SocketOption::Ttl(hops))
    }

    /// Sets how long a close waits for unsent bytes; see [`TcpStream::set_linger`].
    pub fn linger(self, time: Option<Duration>) -> SocketBuilder {
        self.option(SocketOption::Linger(time))
    }

    /// Sets the size of the receive buffer in bytes. Accepted connections inherit it.
    pub fn recv_buffer(self, bytes: usize) -> SocketBuilder {
        self.option(SocketOption::RecvBuffer(bytes))
    }

    /// Sets the size of the send buffer in bytes. Accepted connections inherit it.
    pub fn send_buffer(self, bytes: usize) -> SocketBuilder {
        self.option(SocketOption::SendBuffer(bytes))
    }

    /// Probes TCP connections that have been idle for a long time (`SO_KEEPALIVE`).
    pub fn keepalive(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::KeepAlive(on))
    }

    /// Allows datagrams to broadcast addresses (`SO_BROADCAST`).
    pub fn broadcast(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::Broadcast(on))
    }

    /// Restricts an IPv6 socket to IPv6 peers (`IPV6_V6ONLY`).
    pub fn only_v6(self, on: bool) -> SocketBuilder {
        self.option(SocketOption::OnlyV6(on))
    }

    /// Sets how many connections may wait to be accepted.
    pub fn backlog(mut self, connections: u32) -> SocketBuilder {
        self.setup.backlog = Some(connections);
        self
    }

    /// Sets the local address of a socket that connects.
    pub fn local(mut self, address: SocketAddr) -> SocketBuilder {
        self.setup.local = Some(address.into());
        self
    }

    /// Listens for TCP connections at the first of the addresses that can be bound.
    ///
    /// # Errors
    /// The error of the last address, the error of the name lookup
    /// ([`lookup_host`](crate::lookup_host)), or the cancellation.
    ///
    /// # Cancel safety
    /// A call that is cancelled or dropped has created no socket.
    pub async fn listen(&self, cx: &Cx, at: impl ToSocketAddrs) -> Result<TcpListener> {
        let addresses = resolve(cx, at.target()?).await?;
        self.first(cx, Opening::Listen, &addresses, |net, at, setup| net.listen(at, setup))
            .map(TcpListener::of)
    }

    /// Binds a UDP socket to the first of the addresses that can be bound.
    ///
    /// # Errors
    /// As [`listen`](SocketBuilder::listen).
    ///
    /// # Cancel safety
    /// A call that is cancelled or dropped has created no socket.
    pub async fn bind_udp(&self, cx: &Cx, at: impl ToSocketAddrs) -> Result<UdpSocket> {
        let addresses = resolve(cx, at.target()?).await?;
        self.first(cx, Opening::Bind, &addresses, |net, at, setup| net.datagrams(at, setup))
            .map(UdpSocket::of)
    }

    /// Connects to the first of the addresses that accepts the TCP connection.
    ///
    /// # Errors
    /// The error of the last address, for example
    /// [`ConnectionRefused`](ErrorKind::ConnectionRefused), the error of the name lookup
    /// ([`lookup_host`](crate::lookup_host)), or the cancellation.
    ///
    /// # Cancel safety
    /// Not cancel-safe: a call that is cancelled or dropped closes its socket, but the peer may
    /// have accepted the connection.
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

    /// Creates a socket at the first address where `make` succeeds.
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
