//! Kinds of sockets with internet addresses: TCP and UDP.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use asx_runtime::net::{Address, BorrowedHandle, Socket};
use mio::net::{TcpListener, TcpStream, UdpSocket};

use super::{Kind, NetSocket, unsupported};
use crate::reactor::{About, Reactor, Role};

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

impl Kind for TcpListener {
    fn handle(&self) -> Option<BorrowedHandle<'_>> {
        Some(borrow(self))
    }

    fn about(&self, _to: Option<&Address>) -> Option<About> {
        Some(About::Socket(Role::Listener, self.local_address().ok()?))
    }

    fn accept(&self, reactor: &Arc<Reactor>) -> io::Result<(Arc<dyn Socket>, Address)> {
        let (stream, from) = TcpListener::accept(self)?;
        let from = Address::Inet(from);
        let about = About::Socket(Role::Connection, from.clone());
        // Not the first registered socket: the listener is registered.
        let (socket, _) = NetSocket::new(stream, Some(about), reactor)?;
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

    fn about(&self, to: Option<&Address>) -> Option<About> {
        Some(match to {
            Some(to) => About::Socket(Role::Connecting, to.clone()),
            None => About::Socket(Role::Connection, Kind::peer_address(self).ok()?),
        })
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&mut &*self).read(buffer)
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&mut &*self).read_vectored(buffers)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        TcpStream::peek(self, buffer)
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        (&mut &*self).write(buffer)
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&mut &*self).write_vectored(buffers)
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

    fn about(&self, _to: Option<&Address>) -> Option<About> {
        Some(About::Socket(Role::Datagrams, self.local_address().ok()?))
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
