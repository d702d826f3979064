//! The network of the operating system: sockets that never block, registered with the reactor.
//!
//! Each is of one of the kinds of [`Io`]. What a kind does not do, listening datagrams say, answers
//! [`Unsupported`](io::ErrorKind::Unsupported).

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};

use asx_runtime::net::{
    Address, Direction, Net, OptionName, ReadyEvent, Socket, SocketOption, SocketSetup, SocketWait,
    WaitSlot, localhost,
};
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use mio::unix::SourceFd;
use rustix::net::RecvFlags;
use socket2::{Domain, Protocol, SockAddr, SockRef, Type};

use crate::reactor::{About, Reactor, Registration, Role};
use crate::shared::Shared;
use crate::worker::Worker;

/// Connections that may wait to be accepted, unless that is set.
const BACKLOG: u32 = 1024;

/// A socket of the operating system.
#[derive(Debug)]
enum Io {
    TcpListener(TcpListener),
    TcpStream(TcpStream),
    Udp(UdpSocket),
    UnixListener(UnixListener),
    UnixStream(UnixStream),
    UnixDatagram(UnixDatagram),
    /// Somebody else's descriptor, which is watched.
    Watched(i32),
}

impl Io {
    fn source(&mut self, f: impl FnOnce(&mut dyn Source) -> io::Result<()>) -> io::Result<()> {
        match self {
            Io::TcpListener(io) => f(io),
            Io::TcpStream(io) => f(io),
            Io::Udp(io) => f(io),
            Io::UnixListener(io) => f(io),
            Io::UnixStream(io) => f(io),
            Io::UnixDatagram(io) => f(io),
            Io::Watched(fd) => f(&mut SourceFd(fd)),
        }
    }

    /// The number of its descriptor.
    fn number(&self) -> i32 {
        match self {
            Io::Watched(fd) => *fd,
            io => io.fd().map_or(-1, |fd| fd.as_raw_fd()),
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Io::TcpListener(io) => Some(io.as_fd()),
            Io::TcpStream(io) => Some(io.as_fd()),
            Io::Udp(io) => Some(io.as_fd()),
            Io::UnixListener(io) => Some(io.as_fd()),
            Io::UnixStream(io) => Some(io.as_fd()),
            Io::UnixDatagram(io) => Some(io.as_fd()),
            Io::Watched(_) => None,
        }
    }
}

/// A socket that is registered.
#[derive(Debug)]
struct NetSocket {
    io: Io,
    registration: Registration,
    /// Somebody else may have a descriptor of the same socket: to close this one need not end the
    /// registration.
    is_shared: AtomicBool,
}

impl NetSocket {
    /// Registers a socket: whether it is the only one.
    fn new(
        mut io: Io,
        about: Option<About>,
        reactor: &Arc<Reactor>,
    ) -> io::Result<(Arc<NetSocket>, bool)> {
        let fd = io.number();
        let mut registered = None;
        io.source(|source| {
            registered = Some(reactor.register(source, fd, about)?);
            Ok(())
        })?;
        let (registration, is_first) = registered.ok_or(io::ErrorKind::Other)?;
        let is_shared = AtomicBool::new(matches!(io, Io::Watched(_)));
        Ok((Arc::new(NetSocket { io, registration, is_shared }), is_first))
    }

    /// Calls `f` with the socket, for its settings.
    fn with_socket<R>(&self, f: impl FnOnce(&socket2::Socket) -> io::Result<R>) -> io::Result<R> {
        let fd = self.io.fd().ok_or_else(unsupported)?;
        f(&SockRef::from(&fd))
    }
}

impl Drop for NetSocket {
    fn drop(&mut self) {
        // Else the close ends it, which saves a call. A child that was forked and has not begun its
        // program yet may keep it for a moment: what is told of it then finds no tenant.
        if *self.is_shared.get_mut() {
            let fd = self.io.number();
            let registration = &self.registration;
            let _ = self.io.source(|source| {
                registration.deregister(source, fd);
                Ok(())
            });
        }
    }
}

fn unsupported() -> io::Error {
    io::ErrorKind::Unsupported.into()
}

fn unix_address(address: &std::os::unix::net::SocketAddr) -> Address {
    Address::Unix(address.as_pathname().map(Path::to_path_buf).or_else(|| abstract_name(address)))
}

/// A name that is not in the file system, with the zero byte by which it is bound.
#[cfg(target_os = "linux")]
fn abstract_name(address: &std::os::unix::net::SocketAddr) -> Option<PathBuf> {
    use std::os::{linux::net::SocketAddrExt as _, unix::ffi::OsStringExt as _};
    let name = [b"\0", address.as_abstract_name()?].concat();
    Some(PathBuf::from(std::ffi::OsString::from_vec(name)))
}

#[cfg(not(target_os = "linux"))]
fn abstract_name(_: &std::os::unix::net::SocketAddr) -> Option<PathBuf> {
    None
}

impl Socket for NetSocket {
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
        match &self.io {
            Io::TcpStream(io) => (&*io).read(buffer),
            Io::UnixStream(io) => (&*io).read(buffer),
            Io::Udp(io) => io.recv(buffer),
            Io::UnixDatagram(io) => io.recv(buffer),
            _ => Err(unsupported()),
        }
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match &self.io {
            Io::TcpStream(io) => (&*io).read_vectored(buffers),
            Io::UnixStream(io) => (&*io).read_vectored(buffers),
            _ => Err(unsupported()),
        }
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.io {
            Io::TcpStream(io) => io.peek(buffer),
            Io::Udp(io) => io.peek(buffer),
            Io::UnixStream(io) => Ok(rustix::net::recv(io, buffer, RecvFlags::PEEK)?.0),
            Io::UnixDatagram(io) => Ok(rustix::net::recv(io, buffer, RecvFlags::PEEK)?.0),
            _ => Err(unsupported()),
        }
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        match &self.io {
            Io::TcpStream(io) => (&*io).write(buffer),
            Io::UnixStream(io) => (&*io).write(buffer),
            Io::Udp(io) => io.send(buffer),
            Io::UnixDatagram(io) => io.send(buffer),
            _ => Err(unsupported()),
        }
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.io {
            Io::TcpStream(io) => (&*io).write_vectored(buffers),
            Io::UnixStream(io) => (&*io).write_vectored(buffers),
            _ => Err(unsupported()),
        }
    }

    fn accept(&self) -> io::Result<(Arc<dyn Socket>, Address)> {
        let (io, from) = match &self.io {
            Io::TcpListener(io) => {
                let (stream, from) = io.accept()?;
                (Io::TcpStream(stream), Address::Inet(from))
            }
            Io::UnixListener(io) => {
                let (stream, from) = io.accept()?;
                (Io::UnixStream(stream), unix_address(&from))
            }
            _ => return Err(unsupported()),
        };
        let about = About::Socket(Role::Connection, from.clone());
        // Not the first: the one that listens is registered.
        let (socket, _) = NetSocket::new(io, Some(about), self.registration.reactor())?;
        Ok((socket, from))
    }

    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        match &self.io {
            Io::Udp(io) => io.recv_from(buffer).map(|(count, from)| (count, from.into())),
            Io::UnixDatagram(io) => {
                io.recv_from(buffer).map(|(count, from)| (count, unix_address(&from)))
            }
            _ => Err(unsupported()),
        }
    }

    fn send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        match (&self.io, to) {
            (Io::Udp(io), Address::Inet(to)) => io.send_to(buffer, *to),
            // The standard library knows no names with a zero byte here.
            (Io::UnixDatagram(io), Address::Unix(Some(_))) => {
                SockRef::from(io).send_to(buffer, &name_of(to)?)
            }
            _ => Err(unsupported()),
        }
    }

    fn connect_to(&self, to: &Address) -> io::Result<()> {
        match (&self.io, to) {
            (Io::Udp(io), Address::Inet(to)) => io.connect(*to),
            (Io::UnixDatagram(io), Address::Unix(Some(_))) => {
                SockRef::from(io).connect(&name_of(to)?)
            }
            _ => Err(unsupported()),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match &self.io {
            Io::TcpStream(io) => io.shutdown(how),
            Io::UnixStream(io) => io.shutdown(how),
            Io::UnixDatagram(io) => io.shutdown(how),
            _ => Err(unsupported()),
        }?;
        if how != Shutdown::Read {
            self.registration.end_write();
        }
        Ok(())
    }

    fn local_address(&self) -> io::Result<Address> {
        match &self.io {
            Io::TcpListener(io) => io.local_addr().map(Address::Inet),
            Io::TcpStream(io) => io.local_addr().map(Address::Inet),
            Io::Udp(io) => io.local_addr().map(Address::Inet),
            Io::UnixListener(io) => io.local_addr().map(|at| unix_address(&at)),
            Io::UnixStream(io) => io.local_addr().map(|at| unix_address(&at)),
            Io::UnixDatagram(io) => io.local_addr().map(|at| unix_address(&at)),
            Io::Watched(_) => Err(unsupported()),
        }
    }

    fn peer_address(&self) -> io::Result<Address> {
        match &self.io {
            Io::TcpStream(io) => io.peer_addr().map(Address::Inet),
            Io::Udp(io) => io.peer_addr().map(Address::Inet),
            Io::UnixStream(io) => io.peer_addr().map(|at| unix_address(&at)),
            Io::UnixDatagram(io) => io.peer_addr().map(|at| unix_address(&at)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.with_socket(socket2::Socket::take_error)
    }

    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        self.with_socket(|socket| set_option(socket, option))
    }

    fn option(&self, name: OptionName) -> io::Result<SocketOption> {
        self.with_socket(|socket| {
            Ok(match name {
                OptionName::NoDelay => SocketOption::NoDelay(socket.tcp_nodelay()?),
                OptionName::ReuseAddress => SocketOption::ReuseAddress(socket.reuse_address()?),
                OptionName::ReusePort => SocketOption::ReusePort(socket.reuse_port()?),
                OptionName::Ttl if is_v6(socket)? => SocketOption::Ttl(socket.unicast_hops_v6()?),
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

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.is_shared.store(true, Relaxed);
        self.io.fd()
    }
}

fn is_v6(socket: &socket2::Socket) -> io::Result<bool> {
    Ok(socket.domain()? == Domain::IPV6)
}

fn set_option(socket: &socket2::Socket, option: SocketOption) -> io::Result<()> {
    option.check()?;
    match option {
        SocketOption::NoDelay(on) => socket.set_tcp_nodelay(on),
        SocketOption::ReuseAddress(on) => socket.set_reuse_address(on),
        SocketOption::ReusePort(on) => socket.set_reuse_port(on),
        SocketOption::Ttl(hops) if is_v6(socket)? => socket.set_unicast_hops_v6(hops),
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

/// An address as the system takes it.
fn name_of(address: &Address) -> io::Result<SockAddr> {
    address.check()?;
    match address {
        Address::Inet(at) => Ok(SockAddr::from(*at)),
        Address::Unix(path) => SockAddr::unix(path.as_deref().unwrap_or(Path::new(""))),
    }
}

/// A socket for an address, with its settings, that does not block.
fn open(
    address: &Address,
    kind: Type,
    setup: &SocketSetup,
) -> io::Result<(socket2::Socket, SockAddr)> {
    let domain = match address {
        Address::Inet(at) => Domain::for_address(*at),
        Address::Unix(_) => Domain::UNIX,
    };
    let name = name_of(address)?;
    let protocol = match address {
        Address::Inet(_) if kind == Type::STREAM => Some(Protocol::TCP),
        Address::Inet(_) => Some(Protocol::UDP),
        Address::Unix(_) => None,
    };
    let socket = socket2::Socket::new(domain, kind, protocol)?;
    setup.options.iter().try_for_each(|option| set_option(&socket, *option))?;
    socket.set_nonblocking(true)?;
    Ok((socket, name))
}

fn connect(to: &Address, setup: &SocketSetup) -> io::Result<Io> {
    let (socket, name) = open(to, Type::STREAM, setup)?;
    if let Some(local) = &setup.local {
        socket.bind(&name_of(local)?)?;
    }
    match socket.connect(&name) {
        Err(error)
            if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
        connected => connected?,
    }
    Ok(match to {
        Address::Inet(_) => Io::TcpStream(TcpStream::from_std(socket.into())),
        Address::Unix(_) => Io::UnixStream(UnixStream::from_std(OwnedFd::from(socket).into())),
    })
}

fn listen(at: &Address, setup: &SocketSetup) -> io::Result<Io> {
    let (socket, name) = open(at, Type::STREAM, setup)?;
    let is_set = |option: &SocketOption| matches!(option, SocketOption::ReuseAddress(_));
    if matches!(at, Address::Inet(_)) && !setup.options.iter().any(is_set) {
        // As std does: a server that starts again need not wait for old connections.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&name)?;
    socket.listen(i32::try_from(setup.backlog.unwrap_or(BACKLOG)).unwrap_or(i32::MAX))?;
    Ok(match at {
        Address::Inet(_) => Io::TcpListener(TcpListener::from_std(socket.into())),
        Address::Unix(_) => Io::UnixListener(UnixListener::from_std(OwnedFd::from(socket).into())),
    })
}

fn datagrams(at: &Address, setup: &SocketSetup) -> io::Result<Io> {
    // One that only sends needs no name.
    if matches!(at, Address::Unix(None)) {
        return Ok(Io::UnixDatagram(UnixDatagram::unbound()?));
    }
    let (socket, name) = open(at, Type::DGRAM, setup)?;
    socket.bind(&name)?;
    Ok(match at {
        Address::Inet(_) => Io::Udp(UdpSocket::from_std(socket.into())),
        Address::Unix(_) => Io::UnixDatagram(UnixDatagram::from_std(OwnedFd::from(socket).into())),
    })
}

/// What a socket of somebody else's is.
fn adopt(fd: OwnedFd) -> io::Result<Io> {
    let socket = socket2::Socket::from(fd);
    let is_unix = socket.domain()? == Domain::UNIX;
    let kind = socket.r#type()?;
    let listens = kind == Type::STREAM && socket.is_listener()?;
    socket.set_nonblocking(true)?;
    Ok(match (is_unix, kind, listens) {
        (false, Type::STREAM, true) => Io::TcpListener(TcpListener::from_std(socket.into())),
        (false, Type::STREAM, false) => Io::TcpStream(TcpStream::from_std(socket.into())),
        (false, Type::DGRAM, _) => Io::Udp(UdpSocket::from_std(socket.into())),
        (true, Type::STREAM, true) => {
            Io::UnixListener(UnixListener::from_std(OwnedFd::from(socket).into()))
        }
        (true, Type::STREAM, false) => {
            Io::UnixStream(UnixStream::from_std(OwnedFd::from(socket).into()))
        }
        (true, Type::DGRAM, _) => {
            Io::UnixDatagram(UnixDatagram::from_std(OwnedFd::from(socket).into()))
        }
        _ => return Err(unsupported()),
    })
}

impl Shared {
    /// Registers a socket, which connects to this peer if one is named. Workers may be parked where
    /// they would not see its events: one is told.
    fn register(&self, io: Io, to: Option<&Address>) -> io::Result<Arc<dyn Socket>> {
        let about = match &io {
            Io::Watched(fd) => Some(About::Descriptor(*fd)),
            io => address_of(io, to).map(|(role, address)| About::Socket(role, address)),
        };
        let (socket, is_first) = NetSocket::new(io, about, &self.reactor)?;
        if is_first {
            self.idle.notify_remote();
        }
        Ok(socket)
    }
}

/// What dumps tell of a socket, which connects to this peer if one is named.
fn address_of(io: &Io, to: Option<&Address>) -> Option<(Role, Address)> {
    let peer = |known: io::Result<Address>| to.cloned().or_else(|| known.ok());
    let (role, address) = match io {
        Io::TcpListener(io) => (Role::Listener, io.local_addr().map(Address::Inet).ok()),
        Io::Udp(io) => (Role::Datagrams, io.local_addr().map(Address::Inet).ok()),
        Io::TcpStream(_) if to.is_some() => (Role::Connecting, to.cloned()),
        Io::TcpStream(io) => (Role::Connection, peer(io.peer_addr().map(Address::Inet))),
        Io::UnixListener(io) => (Role::Listener, io.local_addr().map(|at| unix_address(&at)).ok()),
        Io::UnixDatagram(io) => (Role::Datagrams, io.local_addr().map(|at| unix_address(&at)).ok()),
        Io::UnixStream(io) => (Role::Connection, peer(io.peer_addr().map(|at| unix_address(&at)))),
        Io::Watched(_) => return None,
    };
    Some((role, address?))
}

impl Net for Shared {
    fn listen(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        self.register(listen(at, setup)?, None)
    }

    fn connect(&self, to: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        self.register(connect(to, setup)?, Some(to))
    }

    fn datagrams(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        self.register(datagrams(at, setup)?, None)
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

    fn stream_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        let (one, other) = UnixStream::pair()?;
        let one = self.register(Io::UnixStream(one), None)?;
        Ok([one, self.register(Io::UnixStream(other), None)?])
    }

    fn datagram_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        let (one, other) = UnixDatagram::pair()?;
        let one = self.register(Io::UnixDatagram(one), None)?;
        Ok([one, self.register(Io::UnixDatagram(other), None)?])
    }

    fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<Arc<dyn Socket>> {
        self.register(Io::Watched(fd.as_raw_fd()), None)
    }

    fn adopt(&self, fd: OwnedFd) -> io::Result<Arc<dyn Socket>> {
        let socket = self.register(adopt(fd)?, None)?;
        // Whoever made it may have another descriptor of it: to hand this one out says so.
        let _ = socket.fd();
        Ok(socket)
    }
}
