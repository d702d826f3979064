//! The halves of a stream: one type for each direction, over a borrowed or a shared socket.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::net::Shutdown;
use std::sync::Arc;

use asx_runtime::Cx;
use asx_runtime::net::Socket;

use crate::bound::Bound;
use crate::io::{self, Result, WriteAllError};
use crate::op::sealed::Sealed;
use crate::op::{
    FromAddress, PeekInto, PeekOp, ReadExactOp, ReadInto, ReadIntoAll, ReadOp, ReadVectoredOp,
    SocketOp, Transport, WriteAllOp, WriteFrom, WriteFromAll, WriteOp, WriteVectoredOp,
};
use crate::stream::{OverSocket, ReadSide, SocketStream, WriteSide, end_write};

/// The read half of a stream `S`, borrowed from it; created by
/// [`StreamSocket::split`](crate::StreamSocket::split).
pub type ReadHalf<'a, S> = ReadPart<S, BorrowedSocket<'a>>;

/// The write half of a stream `S`, borrowed from it; created by
/// [`StreamSocket::split`](crate::StreamSocket::split).
pub type WriteHalf<'a, S> = WritePart<S, BorrowedSocket<'a>>;

/// The read half of a stream `S`, with its own reference to the socket; created by
/// [`StreamSocket::into_split`](crate::StreamSocket::into_split).
pub type OwnedReadHalf<S> = ReadPart<S, SharedSocket>;

/// The write half of a stream `S`, with its own reference to the socket; created by
/// [`StreamSocket::into_split`](crate::StreamSocket::into_split).
///
/// Dropping it shuts down this direction: the peer reads the end of the stream. The read half can
/// still be read.
pub type OwnedWriteHalf<S> = WritePart<S, ShutdownOnDrop>;

/// The direction from the peer of a stream `S`.
///
/// Use it by the names [`ReadHalf`] and [`OwnedReadHalf`].
pub struct ReadPart<S, R> {
    socket: R,
    stream: PhantomData<fn() -> S>,
}

impl<S: SocketStream, R: SocketRef> ReadPart<S, R> {
    /// Reads bytes into `buffer`; see [`StreamSocket::read`](crate::StreamSocket::read).
    ///
    /// # Errors
    /// The error of the connection, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a read that is cancelled or dropped has consumed no bytes.
    #[track_caller]
    pub fn read<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        SocketOp::new(cx, self.socket.get(), ReadInto { buffer, transport: S::TRANSPORT })
    }

    /// Reads bytes into several buffers, filling one after the other.
    ///
    /// # Errors
    /// As [`read`](ReadPart::read).
    ///
    /// # Cancel safety
    /// Cancel-safe, as [`read`](ReadPart::read).
    #[track_caller]
    pub fn read_vectored<'a, 'b>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> ReadVectoredOp<'a, 'b> {
        SocketOp::new(cx, self.socket.get(), ReadIntoAll { buffers, transport: S::TRANSPORT })
    }

    /// Reads until `buffer` is full.
    ///
    /// # Errors
    /// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) if the peer ends its direction before,
    /// otherwise as [`read`](ReadPart::read).
    ///
    /// # Cancel safety
    /// Not cancel-safe: the number of bytes that a cancelled call has read is lost.
    #[track_caller]
    pub fn read_exact<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadExactOp<'a, S> {
        ReadExactOp::new(cx, self.socket.get(), buffer)
    }

    /// Copies available bytes into `buffer` without consuming them; see
    /// [`StreamSocket::peek`](crate::StreamSocket::peek).
    ///
    /// # Errors
    /// As [`read`](ReadPart::read).
    ///
    /// # Cancel safety
    /// Cancel-safe: it consumes no bytes.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, self.socket.get(), PeekInto { buffer, transport: S::TRANSPORT })
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn local_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.get().local_address()?)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// [`NotConnected`](std::io::ErrorKind::NotConnected) if the connection is closed.
    pub fn peer_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.get().peer_address()?)
    }
}

impl<S: SocketStream> OwnedReadHalf<S> {
    /// Returns the stream that both halves were created from.
    ///
    /// # Errors
    /// [`ReuniteError`], which returns the halves, if they belong to different streams.
    pub fn reunite(self, write: OwnedWriteHalf<S>) -> std::result::Result<S, ReuniteError<S>> {
        reunite(self, write)
    }

    /// Binds the half to a context, which implements the IO traits of other libraries.
    #[track_caller]
    pub fn bound(self, cx: &Cx) -> Bound<OwnedReadHalf<S>> {
        Bound::new(self, cx)
    }
}

/// The direction to the peer of a stream `S`.
///
/// Use it by the names [`WriteHalf`] and [`OwnedWriteHalf`].
pub struct WritePart<S, R> {
    socket: R,
    stream: PhantomData<fn() -> S>,
}

impl<S: SocketStream, R: SocketRef> WritePart<S, R> {
    /// Writes some of `bytes`; see [`StreamSocket::write`](crate::StreamSocket::write).
    ///
    /// # Errors
    /// The error of the connection, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a write that is cancelled or dropped has sent no bytes.
    #[track_caller]
    pub fn write<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        let attempt = WriteFrom { buffer: bytes, transport: S::TRANSPORT };
        SocketOp::new(cx, self.socket.get(), attempt)
    }

    /// Writes some of the bytes of several buffers, one after the other.
    ///
    /// # Errors
    /// As [`write`](WritePart::write).
    ///
    /// # Cancel safety
    /// Cancel-safe, as [`write`](WritePart::write).
    #[track_caller]
    pub fn write_vectored<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a [IoSlice<'a>],
    ) -> WriteVectoredOp<'a> {
        SocketOp::new(cx, self.socket.get(), WriteFromAll { buffers, transport: S::TRANSPORT })
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// A [`WriteAllError`] with the number of bytes that were written before the error or the
    /// cancellation.
    ///
    /// # Cancel safety
    /// Not cancel-safe: if the future is dropped, the number of bytes it has written is lost.
    #[track_caller]
    pub fn write_all<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteAllOp<'a, S> {
        WriteAllOp::new(cx, self.socket.get(), bytes)
    }

    /// Shuts down this direction: the peer reads the bytes that were written, then the end of the
    /// stream. Succeeds if the connection is closed already.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn shutdown(&mut self) -> Result<()> {
        Ok(end_write(self.socket.get())?)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn local_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.get().local_address()?)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// [`NotConnected`](std::io::ErrorKind::NotConnected) if the connection is closed.
    pub fn peer_addr(&self) -> std::io::Result<S::Address> {
        S::Address::from_address(self.socket.get().peer_address()?)
    }
}

impl<S: SocketStream> OwnedWriteHalf<S> {
    /// Returns the stream that both halves were created from.
    ///
    /// # Errors
    /// [`ReuniteError`], which returns the halves, if they belong to different streams.
    pub fn reunite(self, read: OwnedReadHalf<S>) -> std::result::Result<S, ReuniteError<S>> {
        reunite(read, self)
    }

    /// Binds the half to a context, which implements the IO traits of other libraries.
    #[track_caller]
    pub fn bound(self, cx: &Cx) -> Bound<OwnedWriteHalf<S>> {
        Bound::new(self, cx)
    }
}

/// The reference of a half to the socket of its stream. This trait is sealed.
pub trait SocketRef: Sealed + Send {
    /// True for owned halves, which have other names in `Debug` output.
    #[doc(hidden)]
    const IS_OWNED: bool;

    #[doc(hidden)]
    fn get(&self) -> &Arc<dyn Socket>;
}

/// The socket of a [`ReadHalf`] or [`WriteHalf`], borrowed from its stream.
pub struct BorrowedSocket<'a>(&'a Arc<dyn Socket>);

impl Sealed for BorrowedSocket<'_> {}

impl SocketRef for BorrowedSocket<'_> {
    const IS_OWNED: bool = false;

    fn get(&self) -> &Arc<dyn Socket> {
        self.0
    }
}

/// The socket of an [`OwnedReadHalf`], shared with the write half.
pub struct SharedSocket(Arc<dyn Socket>);

impl Sealed for SharedSocket {}

impl SocketRef for SharedSocket {
    const IS_OWNED: bool = true;

    fn get(&self) -> &Arc<dyn Socket> {
        &self.0
    }
}

impl Drop for SharedSocket {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// The socket of an [`OwnedWriteHalf`], shared with the read half. Dropping it shuts down the
/// direction to the peer.
pub struct ShutdownOnDrop {
    /// `None` after the half was reunited.
    socket: Option<Arc<dyn Socket>>,
}

impl Sealed for ShutdownOnDrop {}

impl SocketRef for ShutdownOnDrop {
    const IS_OWNED: bool = true;

    fn get(&self) -> &Arc<dyn Socket> {
        self.socket.as_ref().expect("`reunite` consumes the half")
    }
}

impl Drop for ShutdownOnDrop {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            // It fails if the connection is closed already.
            let _ = socket.shutdown(Shutdown::Write);
            socket.release();
        }
    }
}

pub(crate) fn halves<S>(socket: &Arc<dyn Socket>) -> (ReadHalf<'_, S>, WriteHalf<'_, S>) {
    let read = ReadPart { socket: BorrowedSocket(socket), stream: PhantomData };
    (read, WritePart { socket: BorrowedSocket(socket), stream: PhantomData })
}

pub(crate) fn owned_halves<S>(socket: Arc<dyn Socket>) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let read = ReadPart { socket: SharedSocket(socket.clone()), stream: PhantomData };
    let socket = ShutdownOnDrop { socket: Some(socket) };
    (read, WritePart { socket, stream: PhantomData })
}

pub(crate) fn reunite<S: SocketStream>(
    read: OwnedReadHalf<S>,
    mut write: OwnedWriteHalf<S>,
) -> std::result::Result<S, ReuniteError<S>> {
    if !Arc::ptr_eq(read.socket.get(), write.socket.get()) {
        return Err(ReuniteError { read, write });
    }
    // Dropping the write half would shut down the stream.
    write.socket.socket = None;
    Ok(S::of(read.socket.get().clone()))
}

/// The error of [`StreamSocket::reunite`](crate::StreamSocket::reunite): the halves belong to
/// different streams.
pub struct ReuniteError<S> {
    /// The read half.
    pub read: OwnedReadHalf<S>,
    /// The write half.
    pub write: OwnedWriteHalf<S>,
}

impl<S> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReuniteError")
    }
}

impl<S> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves belong to different streams")
    }
}

impl<S> std::error::Error for ReuniteError<S> {}

impl<S, R: SocketRef> fmt::Debug for ReadPart<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if R::IS_OWNED { "OwnedReadHalf" } else { "ReadHalf" };
        f.debug_tuple(name).field(self.socket.get()).finish()
    }
}

impl<S, R: SocketRef> fmt::Debug for WritePart<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if R::IS_OWNED { "OwnedWriteHalf" } else { "WriteHalf" };
        f.debug_tuple(name).field(self.socket.get()).finish()
    }
}

impl<S: SocketStream, R: SocketRef> io::Read for ReadPart<S, R> {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        ReadPart::read(self, cx, buffer).await
    }

    async fn read_exact(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<()> {
        ReadPart::read_exact(self, cx, buffer).await
    }
}

impl<S: SocketStream, R: SocketRef> io::Write for WritePart<S, R> {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        WritePart::write(self, cx, bytes).await
    }

    async fn write_all(&mut self, cx: &Cx, bytes: &[u8]) -> std::result::Result<(), WriteAllError> {
        WritePart::write_all(self, cx, bytes).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        cx.checkpoint()?;
        WritePart::shutdown(self)
    }

    fn abort(&mut self) {
        let _ = self.socket.get().shutdown(Shutdown::Write);
    }
}

impl<S: SocketStream, R: SocketRef> Sealed for ReadPart<S, R> {}

impl<S: SocketStream, R: SocketRef> OverSocket for ReadPart<S, R> {
    const TRANSPORT: Transport = S::TRANSPORT;

    fn socket(&self) -> &Arc<dyn Socket> {
        self.socket.get()
    }
}

impl<S: SocketStream, R: SocketRef> ReadSide for ReadPart<S, R> {}

impl<S: SocketStream, R: SocketRef> Sealed for WritePart<S, R> {}

impl<S: SocketStream, R: SocketRef> OverSocket for WritePart<S, R> {
    const TRANSPORT: Transport = S::TRANSPORT;

    fn socket(&self) -> &Arc<dyn Socket> {
        self.socket.get()
    }
}

impl<S: SocketStream, R: SocketRef> WriteSide for WritePart<S, R> {}
