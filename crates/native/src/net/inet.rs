//! Kinds of sockets with internet addresses: TCP and UDP.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use asx_runtime::net::{Address, BorrowedHandle, Socket};
use mio::net::{TcpListener, TcpStream, UdpSocket};

use super::{Kind, NetSocket, unsupported};
use crate::reactor::{Description, Reactor, Role};

/// Borrows the operating system's socket.
#[cfg(unix)]
fn borrow(io: &impl std::os::fd::AsFd) -> BorrowedHandle<'_> {
    io.as_fd()
}

/// Borrows the operating system's socket.
#[cfg(windows)]
fn borrow(io: &impl std::os::windows::io::AsSocket) -> BorrowedHandle<'_> {
    io.as_socket()
}

/// Buffers that are passed to the operating system at once. With more, some systems fail instead of
/// using the first ones.
const MOST_BUFFERS: usize = 1024;

/// The result of a read or peek after this side was shut down for reading. Windows fails, Unix
/// reports the end.
fn after_shutdown_read(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if is_shut_down(&error) => Ok(0),
        read => read,
    }
}

/// A write after the own side was shut down for writing. The standard library has no kind for the
/// error of Windows; Unix has [`BrokenPipe`](io::ErrorKind::BrokenPipe).
fn after_shutdown_write(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Err(error) if is_shut_down(&error) => Err(io::ErrorKind::BrokenPipe.into()),
        written => written,
    }
}

/// Whether the error is `WSAESHUTDOWN`. Always false on Unix.
fn is_shut_down(error: &io::Error) -> bool {
    const WSAESHUTDOWN: i32 = 10_058;
    cfg!(windows) && error.raw_os_error() == Some(WSAESHUTDOWN)
}

impl Kind for TcpListener {
    fn handle(&self) -> Option<BorrowedHandle<'_>> {
        Some(borrow(self))
    }

    fn description(&self, _to: Option<&Address>) -> Option<Description> {
        Some(Description::Socket(Role::Listener, self.local_address().ok()?))
    }

    fn accept(&self, reactor: &Arc<Reactor>) -> io::Result<(Arc<dyn Socket>, Address)> {
        let (stream, from) = TcpListener::accept(self)?;
        let from = Address::Inet(from);
        let description = Description::Socket(Role::Connection, from.clone());
        // Not the first registered socket: the listener is registered.
        let (socket, _) = NetSocket::new(stream, Some(description), reactor)?;
        Ok((socket, from))
    }

    fn local_address(&self) -> io::Result<Address> {
        self.local_addr().map(Address::Inet)
    }
}

impl Kind for TcpStream {
    fn handle(&self) -> Option<BorrowedHandle<'_>> {
        Some(borrow(self))
    }

    fn description(&self, to: Option<&Address>) -> Option<Description> {
        Some(match to {
            Some(to) => Description::Socket(Role::Connecting, to.clone()),
            None => Description::Socket(Role::Connection, Kind::peer_address(self).ok()?),
        })
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        after_shutdown_read((&mut &*self).read(buffer))
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let count = buffers.len().min(MOST_BUFFERS);
        after_shutdown_read((&mut &*self).read_vectored(&mut buffers[..count]))
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        after_shutdown_read(TcpStream::peek(self, buffer))
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        after_shutdown_write((&mut &*self).write(buffer))
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = buffers.len().min(MOST_BUFFERS);
        after_shutdown_write((&mut &*self).write_vectored(&buffers[..count]))
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        TcpStream::shutdown(self, how)
    }

    fn local_address(&self) -> io::Result<Address> {
        self.local_addr().map(Address::Inet)
    }

    fn peer_address(&self) -> io::Result<Address> {
        self.peer_addr().map(Address::Inet)
    }
}

impl Kind for UdpSocket {
    fn handle(&self) -> Option<BorrowedHandle<'_>> {
        Some(borrow(self))
    }

    fn description(&self, _to: Option<&Address>) -> Option<Description> {
        Some(Description::Socket(Role::Datagrams, self.local_address().ok()?))
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv(buffer)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        UdpSocket::peek(self, buffer)
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.send(buffer)
    }

    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        UdpSocket::recv_from(self, buffer).map(|(count, from)| (count, from.into()))
    }

    fn send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        UdpSocket::send_to(self, buffer, to.inet().ok_or_else(unsupported)?)
    }

    fn connect_to(&self, to: &Address) -> io::Result<()> {
        self.connect(to.inet().ok_or_else(unsupported)?)
    }

    fn local_address(&self) -> io::Result<Address> {
        self.local_addr().map(Address::Inet)
    }

    fn peer_address(&self) -> io::Result<Address> {
        self.peer_addr().map(Address::Inet)
    }
}
