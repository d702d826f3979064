//! Sockets of the operating system: non-blocking, registered with the reactor.
//!
//! ```text
//! Shared: Net  -- listen, connect, .. -->  NetSocket<K: Kind>: Socket
//!                                            io: K            mio's TcpStream, UdpSocket, ..
//!                                            registration     its readiness in the reactor
//! ```
//!
//! [`inet`] has the kinds for TCP and UDP, [`unix`] those for unix sockets and foreign descriptors.
//! A kind leaves out the operations that it does not support: they return
//! [`Unsupported`](io::ErrorKind::Unsupported).

#[cfg(windows)]
mod console;
mod inet;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
#[path = "net/no_unix.rs"]
mod unix;

use std::fmt::Debug;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};

use asx_runtime::net::{
    Address, BorrowedHandle, Direction, Net, OptionName, OwnedHandle, ReadyEvent, Socket,
    SocketKind, SocketOption, SocketSetup, SocketWait, WaitSlot, localhost,
};
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UdpSocket};
use socket2::{Domain, Protocol, SockAddr, SockRef, Type};

use crate::reactor::{Description, Reactor, Registration};
use crate::shared::Shared;
use crate::worker::Worker;

/// The default number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// One kind of socket. Methods with a body are refused by the kinds that do not override them.
trait Kind: Source + Debug + Send + Sync + Sized + 'static {
    /// The operating system's socket; `None` for a descriptor that is only watched.
    fn handle(&self) -> Option<BorrowedHandle<'_>>;

    /// The number that identifies the descriptor in the reactor, or -1 where descriptors cannot be
    /// registered twice.
    fn number(&self) -> i32 {
        self.handle().map_or(-1, raw_number)
    }

    /// The description for dumps; `to` is the peer of a socket that is connecting.
    fn description(&self, to: Option<&Address>) -> Option<Description>;

    /// True if closing the descriptor may leave the registration in place, because other
    /// descriptors of the same socket can exist.
    const IS_SHARED: bool = false;

    fn read(&self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(unsupported())
    }

    fn read_vectored(&self, _buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Err(unsupported())
    }

    fn peek(&self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(unsupported())
    }

    fn write(&self, _buffer: &[u8]) -> io::Result<usize> {
        Err(unsupported())
    }

    fn write_vectored(&self, _buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        Err(unsupported())
    }

    /// Accepts a connection and registers it with the listener's reactor.
    fn accept(&self, _reactor: &Arc<Reactor>) -> io::Result<(Arc<dyn Socket>, Address)> {
        Err(unsupported())
    }

    fn recv_from(&self, _buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        Err(unsupported())
    }

    fn send_to(&self, _buffer: &[u8], _to: &Address) -> io::Result<usize> {
        Err(unsupported())
    }

    fn connect_to(&self, _to: &Address) -> io::Result<()> {
        Err(unsupported())
    }

    fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
        Err(unsupported())
    }

    fn local_address(&self) -> io::Result<Address> {
        Err(unsupported())
    }

    fn peer_address(&self) -> io::Result<Address> {
        Err(io::ErrorKind::NotConnected.into())
    }
}

/// A registered socket.
#[derive(Debug)]
struct NetSocket<K: Kind> {
    io: K,
    registration: Registration,
    /// True if other descriptors of the socket may exist: closing this one may leave the
    /// registration in place.
    is_shared: AtomicBool,
}

impl<K: Kind> NetSocket<K> {
    /// Registers a socket. The flag of the result is true if it is the only registered socket.
    fn new(
        mut io: K,
        description: Option<Description>,
        reactor: &Arc<Reactor>,
    ) -> io::Result<(Arc<NetSocket<K>>, bool)> {
        let number = io.number();
        let (registration, is_first) = reactor.register(&mut io, number, description)?;
        let is_shared = AtomicBool::new(K::IS_SHARED);
        Ok((Arc::new(NetSocket { io, registration, is_shared }), is_first))
    }

    /// Calls `f` with the socket for its options.
    fn with_socket<R>(&self, f: impl FnOnce(&socket2::Socket) -> io::Result<R>) -> io::Result<R> {
        let handle = self.io.handle().ok_or_else(unsupported)?;
        f(&SockRef::from(&handle))
    }

    fn is_v6(&self) -> bool {
        let address = self.io.local_address().ok().and_then(|address| address.inet());
        address.is_some_and(|address| address.is_ipv6())
    }
}

impl<K: Kind> Drop for NetSocket<K> {
    fn drop(&mut self) {
        // Otherwise closing the descriptor ends the registration, which saves a system call. A
        // forked child may keep the socket open until it calls exec: the generation in the token
        // of its events does not match.
        if *self.is_shared.get_mut() {
            let number = self.io.number();
            self.registration.deregister(&mut self.io, number);
        }
    }
}

fn unsupported() -> io::Error {
    io::ErrorKind::Unsupported.into()
}

#[cfg(unix)]
fn raw_number(handle: BorrowedHandle<'_>) -> i32 {
    std::os::fd::AsRawFd::as_raw_fd(&handle)
}

/// Windows sockets are registered by ownership: dropping mio's socket ends the registration, also
/// when a duplicate of the socket exists.
#[cfg(windows)]
fn raw_number(_: BorrowedHandle<'_>) -> i32 {
    -1
}

impl<K: Kind> Socket for NetSocket<K> {
    fn poll_ready(
        &self,
        direction: Direction,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Poll<io::Result<ReadyEvent>> {
        self.registration.poll_ready(direction, slot, waker)
    }

    fn clear_ready(&self, direction: Direction, seen: ReadyEvent) {
        self.registration.clear_ready(direction, seen);
    }

    fn clear_after_short(&self, direction: Direction, seen: ReadyEvent) {
        self.registration.clear_after_short(direction, seen);
    }

    fn yields(&self) {
        Worker::check_sockets_soon();
    }

    fn leave(&self, _direction: Direction, slot: &mut WaitSlot) {
        self.registration.leave(slot);
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.read(buffer)
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.io.read_vectored(buffers)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.io.peek(buffer)
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.io.write(buffer)
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.io.write_vectored(buffers)
    }

    fn accept(&self) -> io::Result<(Arc<dyn Socket>, Address)> {
        self.io.accept(self.registration.reactor())
    }

    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        self.io.recv_from(buffer)
    }

    fn send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        self.io.send_to(buffer, to)
    }

    fn connect_to(&self, to: &Address) -> io::Result<()> {
        self.io.connect_to(to)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.io.shutdown(how)?;
        if how != Shutdown::Read {
            self.registration.end_write();
        }
        Ok(())
    }

    fn local_address(&self) -> io::Result<Address> {
        self.io.local_address()
    }

    fn peer_address(&self) -> io::Result<Address> {
        self.io.peer_address()
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.with_socket(socket2::Socket::take_error)
    }

    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.with_socket(|socket| set_option(socket, option, || self.is_v6()))
    }

    fn option(&self, name: OptionName) -> io::Result<SocketOption> {
        self.with_socket(|socket| {
            Ok(match name {
                OptionName::NoDelay => SocketOption::NoDelay(socket.tcp_nodelay()?),
                OptionName::ReuseAddress => SocketOption::ReuseAddress(socket.reuse_address()?),
                #[cfg(unix)]
                OptionName::ReusePort => SocketOption::ReusePort(socket.reuse_port()?),
                OptionName::Ttl if self.is_v6() => SocketOption::Ttl(socket.unicast_hops_v6()?),
                OptionName::Ttl => SocketOption::Ttl(socket.ttl_v4()?),
                OptionName::Linger => SocketOption::Linger(socket.linger()?),
                OptionName::RecvBuffer => SocketOption::RecvBuffer(socket.recv_buffer_size()?),
                OptionName::SendBuffer => SocketOption::SendBuffer(socket.send_buffer_size()?),
                OptionName::KeepAlive => SocketOption::KeepAlive(socket.keepalive()?),
                OptionName::Broadcast => SocketOption::Broadcast(socket.broadcast()?),
                OptionName::OnlyV6 => SocketOption::OnlyV6(socket.only_v6()?),
                _ => return Err(unsupported()),
            })
        })
    }

    fn handle(&self) -> Option<BorrowedHandle<'_>> {
        self.is_shared.store(true, Relaxed);
        self.io.handle()
    }
}

fn set_option(
    socket: &socket2::Socket,
    option: SocketOption,
    is_v6: impl FnOnce() -> bool,
) -> io::Result<()> {
    option.check()?;
    match option {
        SocketOption::NoDelay(on) => socket.set_tcp_nodelay(on),
        SocketOption::ReuseAddress(on) => socket.set_reuse_address(on),
        #[cfg(unix)]
        SocketOption::ReusePort(on) => socket.set_reuse_port(on),
        SocketOption::Ttl(hops) if is_v6() => socket.set_unicast_hops_v6(hops),
        SocketOption::Ttl(hops) => socket.set_ttl_v4(hops),
        SocketOption::Linger(time) => socket.set_linger(time.map(SocketOption::whole_seconds)),
        SocketOption::RecvBuffer(bytes) => socket.set_recv_buffer_size(bytes),
        SocketOption::SendBuffer(bytes) => socket.set_send_buffer_size(bytes),
        SocketOption::KeepAlive(on) => socket.set_keepalive(on),
        SocketOption::Broadcast(on) => socket.set_broadcast(on),
        SocketOption::OnlyV6(on) => socket.set_only_v6(on),
        _ => Err(unsupported()),
    }
}

/// Converts an address to the form of the operating system.
fn name_of(address: &Address) -> io::Result<SockAddr> {
    address.check()?;
    match address {
        Address::Inet(at) => Ok(SockAddr::from(*at)),
        Address::Unix(path) => unix::name(path.as_deref()),
    }
}

/// Creates a non-blocking socket for an address and applies the options.
fn open(
    address: &Address,
    kind: Type,
    setup: &SocketSetup,
) -> io::Result<(socket2::Socket, SockAddr)> {
    let name = name_of(address)?;
    let (domain, protocol) = match address {
        Address::Inet(at) if kind == Type::STREAM => {
            (Domain::for_address(*at), Some(Protocol::TCP))
        }
        Address::Inet(at) => (Domain::for_address(*at), Some(Protocol::UDP)),
        Address::Unix(_) => (Domain::UNIX, None),
    };
    let socket = socket2::Socket::new(domain, kind, protocol)?;
    let is_v6 = || domain == Domain::IPV6;
    setup.options.iter().try_for_each(|option| set_option(&socket, *option, is_v6))?;
    socket.set_nonblocking(true)?;
    Ok((socket, name))
}

fn connect(to: &Address, setup: &SocketSetup) -> io::Result<socket2::Socket> {
    let (socket, name) = open(to, Type::STREAM, setup)?;
    if let Some(local) = &setup.local {
        socket.bind(&name_of(local)?)?;
    }
    match socket.connect(&name) {
        Err(error) if is_connecting(&error) => {}
        connected => connected?,
    }
    Ok(socket)
}

/// Whether the error of a non-blocking connect says that the attempt has begun.
fn is_connecting(error: &io::Error) -> bool {
    #[cfg(unix)]
    let begun = error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error());
    #[cfg(windows)]
    let begun = error.kind() == io::ErrorKind::WouldBlock;
    begun
}

fn listen(at: &Address, setup: &SocketSetup) -> io::Result<socket2::Socket> {
    let (socket, name) = open(at, Type::STREAM, setup)?;
    let is_set = |option: &SocketOption| matches!(option, SocketOption::ReuseAddress(_));
    // As in the standard library: a restarted server need not wait for old connections. On Windows
    // that is the default, and the option would let other processes take over the port.
    if cfg!(unix) && matches!(at, Address::Inet(_)) && !setup.options.iter().any(is_set) {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&name)?;
    socket.listen(i32::try_from(setup.backlog.unwrap_or(BACKLOG)).unwrap_or(i32::MAX))?;
    Ok(socket)
}

/// Prepares a socket that was created elsewhere. Checks that it is of this type and that its
/// address, if it has one, is of this family.
fn check_adopted(
    socket: OwnedHandle,
    kind: Type,
    is_family: fn(&SockAddr) -> bool,
) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::from(socket);
    let has_family = socket.local_addr().map_or(true, |address| is_family(&address));
    if socket.r#type()? != kind || !has_family {
        let text = "the socket is not of the expected kind or address family";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The same for a socket with an internet address.
fn check_inet(socket: OwnedHandle, kind: Type) -> io::Result<socket2::Socket> {
    check_adopted(socket, kind, |address| address.as_socket().is_some())
}

impl Shared {
    /// Registers a socket; `to` is the peer of a socket that is connecting. Workers may be parked
    /// outside the reactor when the first socket is registered, so one is notified.
    fn register<K: Kind>(&self, io: K, to: Option<&Address>) -> io::Result<Arc<dyn Socket>> {
        let description = io.description(to);
        let (socket, is_first) = NetSocket::new(io, description, &self.reactor)?;
        if is_first {
            self.idle.notify_remote();
        }
        Ok(socket)
    }
}

impl Net for Shared {
    fn listen(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        let socket = listen(at, setup)?;
        match at {
            Address::Inet(_) => self.register(TcpListener::from_std(socket.into()), None),
            Address::Unix(_) => unix::listener(self, socket),
        }
    }

    fn connect(&self, to: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        let socket = connect(to, setup)?;
        match to {
            Address::Inet(_) => self.register(TcpStream::from_std(socket.into()), Some(to)),
            Address::Unix(_) => unix::stream(self, socket, Some(to)),
        }
    }

    fn datagrams(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        // A socket that only sends needs no name.
        if matches!(at, Address::Unix(None)) {
            return unix::unbound_datagrams(self);
        }
        let (socket, name) = open(at, Type::DGRAM, setup)?;
        socket.bind(&name)?;
        match at {
            Address::Inet(_) => self.register(UdpSocket::from_std(socket.into()), None),
            Address::Unix(_) => unix::datagrams(self, socket),
        }
    }

    fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }

    fn try_lookup(&self, host: &str, port: u16) -> Option<io::Result<Vec<SocketAddr>>> {
        localhost(host, port).map(Ok)
    }

    fn waits(&self) -> Vec<SocketWait> {
        self.reactor.waits()
    }

    fn adopt(&self, kind: SocketKind, socket: OwnedHandle) -> io::Result<Arc<dyn Socket>> {
        let socket = match kind {
            SocketKind::TcpListener => {
                let socket = check_inet(socket, Type::STREAM)?;
                self.register(TcpListener::from_std(socket.into()), None)
            }
            SocketKind::TcpStream => {
                let socket = check_inet(socket, Type::STREAM)?;
                self.register(TcpStream::from_std(socket.into()), None)
            }
            SocketKind::Udp => {
                let socket = check_inet(socket, Type::DGRAM)?;
                self.register(UdpSocket::from_std(socket.into()), None)
            }
            #[cfg(unix)]
            kind => unix::adopt(self, kind, socket),
        }?;
        // The creator may have other descriptors of it: handing this one out records that.
        let _ = socket.handle();
        Ok(socket)
    }

    #[cfg(unix)]
    fn stream_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        unix::stream_pair(self)
    }

    #[cfg(unix)]
    fn datagram_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        unix::datagram_pair(self)
    }

    #[cfg(unix)]
    fn watch(&self, fd: BorrowedHandle<'_>) -> io::Result<Arc<dyn Socket>> {
        unix::watch(self, fd)
    }

    #[cfg(windows)]
    fn on_console_event(
        &self,
        event: asx_runtime::net::ConsoleEvent,
        notify: asx_runtime::net::ConsoleNotify,
    ) -> io::Result<()> {
        console::register(event, notify)
    }
}
