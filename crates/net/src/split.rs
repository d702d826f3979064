//! The two directions of a stream, and what both kinds of stream share.

use std::fmt;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::net::Shutdown;
use std::sync::Arc;

use asx_runtime::Cx;
use asx_runtime::net::{OwnedHandle, Socket};

use crate::bound::Bound;
use crate::io::{self, Result, WriteAllError};
use crate::op::sealed::Sealed;
use crate::op::{
    Accepted, FromAddress, PeekInto, PeekOp, ReadExactOp, ReadInto, ReadIntoAll, ReadOp,
    ReadVectoredOp, SocketOp, Transport, WriteAllOp, WriteFrom, WriteFromAll, WriteOp,
    WriteVectoredOp,
};

/// A stream, or half of one, over a socket. Implemented here only.
pub trait OverSocket: Sealed + Send {
    /// What its counts mean.
    #[doc(hidden)]
    const TRANSPORT: Transport;

    /// The socket.
    #[doc(hidden)]
    fn socket(&self) -> &Arc<dyn Socket>;
}

/// A stream over a socket: [`TcpStream`](crate::TcpStream), `UnixStream`. Implemented here only.
pub trait SocketStream: ReadSide + WriteSide + Accepted {}

/// What can be read from when it is [bound](Bound) to a context. Implemented here only.
pub trait ReadSide: OverSocket {}

/// What can be written to when it is [bound](Bound) to a context. Implemented here only.
pub trait WriteSide: OverSocket {}

#[track_caller]
pub(crate) fn read<'a, S: SocketStream>(
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    buffer: &'a mut [u8],
) -> ReadOp<'a> {
    SocketOp::new(cx, socket, ReadInto { buffer, transport: S::TRANSPORT })
}

#[track_caller]
pub(crate) fn read_vectored<'a, 'b, S: SocketStream>(
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    buffers: &'a mut [IoSliceMut<'b>],
) -> ReadVectoredOp<'a, 'b> {
    SocketOp::new(cx, socket, ReadIntoAll { buffers, transport: S::TRANSPORT })
}

#[track_caller]
pub(crate) fn read_exact<'a, S: SocketStream>(
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    buffer: &'a mut [u8],
) -> ReadExactOp<'a, S> {
    ReadExactOp::new(cx, socket, buffer)
}

#[track_caller]
pub(crate) fn write_all<'a, S: SocketStream>(
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    bytes: &'a [u8],
) -> WriteAllOp<'a, S> {
    WriteAllOp::new(cx, socket, bytes)
}

#[track_caller]
pub(crate) fn write<'a, S: SocketStream>(
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    buffer: &'a [u8],
) -> WriteOp<'a> {
    SocketOp::new(cx, socket, WriteFrom { buffer, transport: S::TRANSPORT })
}

#[track_caller]
pub(crate) fn write_vectored<'a, S: SocketStream>(
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    buffers: &'a [IoSlice<'a>],
) -> WriteVectoredOp<'a> {
    SocketOp::new(cx, socket, WriteFromAll { buffers, transport: S::TRANSPORT })
}

/// Tells the peer that no more comes. A peer that is gone need not be told.
pub(crate) fn end_write(socket: &Arc<dyn Socket>) -> Result<()> {
    match socket.shutdown(Shutdown::Write) {
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
        ended => Ok(ended?),
    }
}

/// Duplicates the socket of the operating system.
pub(crate) fn duplicate(socket: &Arc<dyn Socket>) -> std::io::Result<OwnedHandle> {
    let none = || std::io::Error::new(ErrorKind::Unsupported, "the socket is simulated");
    socket.handle().ok_or_else(none)?.try_clone_to_owned()
}

pub(crate) fn halves<S: SocketStream>(
    socket: &Arc<dyn Socket>,
) -> (ReadHalf<'_, S>, WriteHalf<'_, S>) {
    (ReadHalf { socket, stream: PhantomData }, WriteHalf { socket, stream: PhantomData })
}

pub(crate) fn owned_halves<S: SocketStream>(
    socket: Arc<dyn Socket>,
) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let read = OwnedReadHalf { socket: socket.clone(), stream: PhantomData };
    (read, OwnedWriteHalf { socket: Some(socket), stream: PhantomData })
}

pub(crate) fn reunite<S: SocketStream>(
    read: OwnedReadHalf<S>,
    mut write: OwnedWriteHalf<S>,
) -> std::result::Result<S, ReuniteError<S>> {
    let same = write.socket.as_ref().is_some_and(|socket| Arc::ptr_eq(socket, &read.socket));
    if !same {
        return Err(ReuniteError { read, write });
    }
    // Its drop would end the direction.
    write.socket = None;
    Ok(S::of(read.socket))
}

/// The direction from the peer, borrowed from a stream `S`.
pub struct ReadHalf<'a, S> {
    socket: &'a Arc<dyn Socket>,
    stream: PhantomData<&'a mut S>,
}

impl<S: SocketStream> ReadHalf<'_, S> {
    /// Takes bytes that have come; 0: the peer sends no more. Cancel-safe.
    #[track_caller]
    pub fn read<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        read::<S>(cx, self.socket, buffer)
    }

    /// The same into several buffers, one after the other.
    #[track_caller]
    pub fn read_vectored<'a, 'b>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> ReadVectoredOp<'a, 'b> {
        read_vectored::<S>(cx, self.socket, buffers)
    }

    /// Fills the buffer; see [`io::Read::read_exact`]. Not cancel-safe.
    ///
    /// # Errors
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the peer ends before.
    #[track_caller]
    pub fn read_exact<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadExactOp<'a, S> {
        read_exact::<S>(cx, self.socket, buffer)
    }

    /// Looks at bytes that have come, and leaves them there; 0: the peer sends no more.
    ///
    /// Cancel-safe.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, self.socket, PeekInto { buffer, transport: S::TRANSPORT })
    }

    /// Where this end is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.local_address()?)
    }

    /// Where the peer is.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) once the connection is gone.
    pub fn peer_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.peer_address()?)
    }
}

/// The direction to the peer, borrowed from a stream `S`.
pub struct WriteHalf<'a, S> {
    socket: &'a Arc<dyn Socket>,
    stream: PhantomData<&'a mut S>,
}

impl<S: SocketStream> WriteHalf<'_, S> {
    /// Gives bytes to be sent, once: how many were taken. Cancel-safe.
    #[track_caller]
    pub fn write<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        write::<S>(cx, self.socket, bytes)
    }

    /// The same out of several buffers, one after the other.
    #[track_caller]
    pub fn write_vectored<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a [IoSlice<'a>],
    ) -> WriteVectoredOp<'a> {
        write_vectored::<S>(cx, self.socket, buffers)
    }

    /// Gives all bytes to be sent; see [`io::Write::write_all`]. Not cancel-safe.
    ///
    /// # Errors
    /// Tell how many went out.
    #[track_caller]
    pub fn write_all<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteAllOp<'a, S> {
        write_all::<S>(cx, self.socket, bytes)
    }

    /// Tells the peer that no more comes.
    ///
    /// # Errors
    /// What the system says.
    pub fn shutdown(&mut self) -> Result<()> {
        end_write(self.socket)
    }

    /// Where this end is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.local_address()?)
    }

    /// Where the peer is.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) once the connection is gone.
    pub fn peer_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.peer_address()?)
    }
}

/// The direction from the peer, with an owner of its own.
pub struct OwnedReadHalf<S> {
    socket: Arc<dyn Socket>,
    stream: PhantomData<fn() -> S>,
}

impl<S: SocketStream> OwnedReadHalf<S> {
    /// Takes bytes that have come; 0: the peer sends no more. Cancel-safe.
    #[track_caller]
    pub fn read<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        read::<S>(cx, &self.socket, buffer)
    }

    /// The same into several buffers, one after the other.
    #[track_caller]
    pub fn read_vectored<'a, 'b>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> ReadVectoredOp<'a, 'b> {
        read_vectored::<S>(cx, &self.socket, buffers)
    }

    /// Fills the buffer; see [`io::Read::read_exact`]. Not cancel-safe.
    ///
    /// # Errors
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the peer ends before.
    #[track_caller]
    pub fn read_exact<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadExactOp<'a, S> {
        read_exact::<S>(cx, &self.socket, buffer)
    }

    /// The stream both halves were made of.
    ///
    /// # Errors
    /// They are of different streams, and are given back.
    pub fn reunite(self, write: OwnedWriteHalf<S>) -> std::result::Result<S, ReuniteError<S>> {
        reunite(self, write)
    }

    /// The half with a context, for code that knows the IO traits of others.
    #[track_caller]
    pub fn bound(self, cx: &Cx) -> Bound<OwnedReadHalf<S>> {
        Bound::new(self, cx)
    }

    /// Looks at bytes that have come, and leaves them there; 0: the peer sends no more.
    ///
    /// Cancel-safe.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, &self.socket, PeekInto { buffer, transport: S::TRANSPORT })
    }

    /// Where this end is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.local_address()?)
    }

    /// Where the peer is.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) once the connection is gone.
    pub fn peer_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.peer_address()?)
    }
}

/// The direction to the peer, with an owner of its own. Dropped, it is ended: the peer is told that
/// no more comes, while the other half can still be read from.
pub struct OwnedWriteHalf<S> {
    /// There until it is reunited.
    socket: Option<Arc<dyn Socket>>,
    stream: PhantomData<fn() -> S>,
}

impl<S: SocketStream> OwnedWriteHalf<S> {
    fn open(&self) -> &Arc<dyn Socket> {
        self.socket.as_ref().expect("a half that is reunited is gone")
    }

    /// Gives bytes to be sent, once: how many were taken. Cancel-safe.
    #[track_caller]
    pub fn write<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        write::<S>(cx, self.open(), bytes)
    }

    /// The same out of several buffers, one after the other.
    #[track_caller]
    pub fn write_vectored<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a [IoSlice<'a>],
    ) -> WriteVectoredOp<'a> {
        write_vectored::<S>(cx, self.open(), buffers)
    }

    /// Gives all bytes to be sent; see [`io::Write::write_all`]. Not cancel-safe.
    ///
    /// # Errors
    /// Tell how many went out.
    #[track_caller]
    pub fn write_all<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteAllOp<'a, S> {
        write_all::<S>(cx, self.open(), bytes)
    }

    /// Tells the peer that no more comes.
    ///
    /// # Errors
    /// What the system says.
    pub fn shutdown(&mut self) -> Result<()> {
        end_write(self.open())
    }

    /// The stream both halves were made of.
    ///
    /// # Errors
    /// They are of different streams, and are given back.
    pub fn reunite(self, read: OwnedReadHalf<S>) -> std::result::Result<S, ReuniteError<S>> {
        reunite(read, self)
    }

    /// The half with a context, for code that knows the IO traits of others.
    #[track_caller]
    pub fn bound(self, cx: &Cx) -> Bound<OwnedWriteHalf<S>> {
        Bound::new(self, cx)
    }

    /// Where this end is.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.open().local_address()?)
    }

    /// Where the peer is.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) once the connection is gone.
    pub fn peer_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.open().peer_address()?)
    }
}

impl<S> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // It fails where the connection is gone already.
            let _ = socket.shutdown(Shutdown::Write);
        }
    }
}

/// Two halves that are not of the same stream.
pub struct ReuniteError<S> {
    /// One of them.
    pub read: OwnedReadHalf<S>,
    /// The other one.
    pub write: OwnedWriteHalf<S>,
}

impl<S> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReuniteError")
    }
}

impl<S> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves are not of the same stream")
    }
}

impl<S> std::error::Error for ReuniteError<S> {}

impl<S> fmt::Debug for ReadHalf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadHalf").field(self.socket).finish()
    }
}

impl<S> fmt::Debug for WriteHalf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteHalf").field(self.socket).finish()
    }
}

impl<S> fmt::Debug for OwnedReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedReadHalf").field(&self.socket).finish()
    }
}

impl<S> fmt::Debug for OwnedWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedWriteHalf").field(&self.socket).finish()
    }
}

impl<S: SocketStream> io::Read for ReadHalf<'_, S> {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        read::<S>(cx, self.socket, buffer).await
    }

    async fn read_exact(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<()> {
        read_exact::<S>(cx, self.socket, buffer).await
    }
}

impl<S: SocketStream> io::Read for OwnedReadHalf<S> {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        read::<S>(cx, &self.socket, buffer).await
    }

    async fn read_exact(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<()> {
        read_exact::<S>(cx, &self.socket, buffer).await
    }
}

impl<S: SocketStream> io::Write for WriteHalf<'_, S> {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        write::<S>(cx, self.socket, bytes).await
    }

    async fn write_all(&mut self, cx: &Cx, bytes: &[u8]) -> std::result::Result<(), WriteAllError> {
        write_all::<S>(cx, self.socket, bytes).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        cx.checkpoint()?;
        end_write(self.socket)
    }

    fn abort(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl<S: SocketStream> io::Write for OwnedWriteHalf<S> {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        write::<S>(cx, self.open(), bytes).await
    }

    async fn write_all(&mut self, cx: &Cx, bytes: &[u8]) -> std::result::Result<(), WriteAllError> {
        write_all::<S>(cx, self.open(), bytes).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        cx.checkpoint()?;
        end_write(self.open())
    }

    fn abort(&mut self) {
        let _ = self.open().shutdown(Shutdown::Write);
    }
}

impl<S: SocketStream> Sealed for OwnedReadHalf<S> {}

impl<S: SocketStream> OverSocket for OwnedReadHalf<S> {
    const TRANSPORT: Transport = S::TRANSPORT;

    fn socket(&self) -> &Arc<dyn Socket> {
        &self.socket
    }
}

impl<S: SocketStream> ReadSide for OwnedReadHalf<S> {}

impl<S: SocketStream> Sealed for OwnedWriteHalf<S> {}

impl<S: SocketStream> OverSocket for OwnedWriteHalf<S> {
    const TRANSPORT: Transport = S::TRANSPORT;

    fn socket(&self) -> &Arc<dyn Socket> {
        self.open()
    }
}

impl<S: SocketStream> WriteSide for OwnedWriteHalf<S> {}
