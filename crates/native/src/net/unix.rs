//! Kinds that exist on Unix only: unix sockets, and foreign descriptors that are watched.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use asx_runtime::net::{Address, Socket, SocketKind};
use mio::event::Source;
use mio::net::{UnixDatagram, UnixListener, UnixStream};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::net::RecvFlags;
use socket2::{SockAddr, SockRef, Type};

use super::{Kind, NetSocket, check_adopted, name_of, unsupported};
use crate::reactor::{Description, Reactor, Role};
use crate::shared::Shared;

/// Converts the path of a unix socket to the form of the operating system.
pub(super) fn name(path: Option<&Path>) -> io::Result<SockAddr> {
    SockAddr::unix(path.unwrap_or(Path::new("")))
}

fn address(address: &SocketAddr) -> Address {
    Address::Unix(address.as_pathname().map(Path::to_path_buf).or_else(|| abstract_name(address)))
}

/// An abstract name, with the zero byte that it is bound with.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn abstract_name(address: &SocketAddr) -> Option<PathBuf> {
    #[cfg(target_os = "android")]
    use std::os::android::net::SocketAddrExt as _;
    #[cfg(target_os = "linux")]
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStringExt as _;
    let name = [b"\0", address.as_abstract_name()?].concat();
    Some(PathBuf::from(std::ffi::OsString::from_vec(name)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn abstract_name(_: &SocketAddr) -> Option<PathBuf> {
    None
}

pub(super) fn listener(shared: &Shared, socket: impl Into<OwnedFd>) -> io::Result<Arc<dyn Socket>> {
    shared.register(UnixListener::from_std(socket.into().into()), None)
}

pub(super) fn stream(
    shared: &Shared,
    socket: impl Into<OwnedFd>,
    to: Option<&Address>,
) -> io::Result<Arc<dyn Socket>> {
    shared.register(UnixStream::from_std(socket.into().into()), to)
}

pub(super) fn datagrams(
    shared: &Shared,
    socket: impl Into<OwnedFd>,
) -> io::Result<Arc<dyn Socket>> {
    shared.register(UnixDatagram::from_std(socket.into().into()), None)
}

pub(super) fn unbound_datagrams(shared: &Shared) -> io::Result<Arc<dyn Socket>> {
    shared.register(UnixDatagram::unbound()?, None)
}

/// Takes over a unix socket that was created elsewhere.
pub(super) fn adopt(
    shared: &Shared,
    kind: SocketKind,
    socket: OwnedFd,
) -> io::Result<Arc<dyn Socket>> {
    match kind {
        SocketKind::UnixListener => {
            listener(shared, check_adopted(socket, Type::STREAM, SockAddr::is_unix)?)
        }
        SocketKind::UnixStream => {
            stream(shared, check_adopted(socket, Type::STREAM, SockAddr::is_unix)?, None)
        }
        SocketKind::UnixDatagram => {
            datagrams(shared, check_adopted(socket, Type::DGRAM, SockAddr::is_unix)?)
        }
        _ => Err(unsupported()),
    }
}

pub(super) fn stream_pair(shared: &Shared) -> io::Result<[Arc<dyn Socket>; 2]> {
    let (one, other) = UnixStream::pair()?;
    Ok([shared.register(one, None)?, shared.register(other, None)?])
}

pub(super) fn datagram_pair(shared: &Shared) -> io::Result<[Arc<dyn Socket>; 2]> {
    let (one, other) = UnixDatagram::pair()?;
    Ok([shared.register(one, None)?, shared.register(other, None)?])
}

pub(super) fn watch(shared: &Shared, fd: BorrowedFd<'_>) -> io::Result<Arc<dyn Socket>> {
    shared.register(Watched(fd.as_raw_fd()), None)
}

impl Kind for UnixListener {
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn description(&self, _to: Option<&Address>) -> Option<Description> {
        Some(Description::Socket(Role::Listener, self.local_address().ok()?))
    }

    fn accept(&self, reactor: &Arc<Reactor>) -> io::Result<(Arc<dyn Socket>, Address)> {
        let (stream, from) = UnixListener::accept(self)?;
        let from = address(&from);
        let description = Description::Socket(Role::Connection, from.clone());
        // Not the first registered socket: the listener is registered.
        let (socket, _) = NetSocket::new(stream, Some(description), reactor)?;
        Ok((socket, from))
    }

    fn local_address(&self) -> io::Result<Address> {
        self.local_addr().map(|at| address(&at))
    }
}

impl Kind for UnixStream {
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn description(&self, to: Option<&Address>) -> Option<Description> {
        let peer = to.cloned().or_else(|| Kind::peer_address(self).ok());
        Some(Description::Socket(Role::Connection, peer?))
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&mut &*self).read(buffer)
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&mut &*self).read_vectored(buffers)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self, buffer, RecvFlags::PEEK)?.0)
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        (&mut &*self).write(buffer)
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&mut &*self).write_vectored(buffers)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        UnixStream::shutdown(self, how)
    }

    fn local_address(&self) -> io::Result<Address> {
        self.local_addr().map(|at| address(&at))
    }

    fn peer_address(&self) -> io::Result<Address> {
        self.peer_addr().map(|at| address(&at))
    }
}

impl Kind for UnixDatagram {
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn description(&self, _to: Option<&Address>) -> Option<Description> {
        Some(Description::Socket(Role::Datagrams, self.local_address().ok()?))
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv(buffer)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self, buffer, RecvFlags::PEEK)?.0)
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.send(buffer)
    }

    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        UnixDatagram::recv_from(self, buffer).map(|(count, from)| (count, address(&from)))
    }

    // The standard library accepts no abstract names in the next two.
    fn send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        SockRef::from(self).send_to(buffer, &peer_name(to)?)
    }

    fn connect_to(&self, to: &Address) -> io::Result<()> {
        SockRef::from(self).connect(&peer_name(to)?)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        UnixDatagram::shutdown(self, how)
    }

    fn local_address(&self) -> io::Result<Address> {
        self.local_addr().map(|at| address(&at))
    }

    fn peer_address(&self) -> io::Result<Address> {
        self.peer_addr().map(|at| address(&at))
    }
}

/// The name of a unix socket that datagrams are sent to.
fn peer_name(to: &Address) -> io::Result<SockAddr> {
    match to {
        Address::Unix(Some(_)) => name_of(to),
        _ => Err(unsupported()),
    }
}

/// A descriptor that belongs to the user and is only watched for readiness.
#[derive(Debug)]
pub(super) struct Watched(RawFd);

impl Kind for Watched {
    const IS_SHARED: bool = true;

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn number(&self) -> i32 {
        self.0
    }

    fn description(&self, _to: Option<&Address>) -> Option<Description> {
        Some(Description::Descriptor(self.0))
    }
}

impl Source for Watched {
    fn register(&mut self, registry: &Registry, token: Token, of: Interest) -> io::Result<()> {
        SourceFd(&self.0).register(registry, token, of)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, of: Interest) -> io::Result<()> {
        SourceFd(&self.0).reregister(registry, token, of)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.0).deregister(registry)
    }
}
