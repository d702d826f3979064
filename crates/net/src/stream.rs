//! Stream sockets: one implementation for TCP and Unix streams.
//!
//! A [`StreamSocket`] is a socket of the host and a [`Family`]. `TcpStream` and `UnixStream` are
//! aliases of it; the modules `tcp` and `unix` add what only one family has. The halves of a stream
//! are in `split`.

use std::fmt;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::net::Shutdown;
use std::sync::Arc;

use asx_runtime::Cx;
use asx_runtime::net::{OwnedHandle, Socket, SocketKind, SocketOption};

use crate::bound::Bound;
use crate::io::{self, Duplex, Result, WriteAllError};
use crate::op::sealed::Sealed;
use crate::op::{
    Accepted, FromAddress, PeekInto, PeekOp, ReadExactOp, ReadInto, ReadIntoAll, ReadOp,
    ReadVectoredOp, SocketOp, Transport, WriteAllOp, WriteFrom, WriteFromAll, WriteOp,
    WriteVectoredOp,
};
use crate::options;
use crate::split::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};

/// A family of stream sockets: [`Tcp`](crate::Tcp), or `Unix` on Unix. This trait is sealed.
pub trait Family: Sealed + 'static {
    /// The type of its addresses.
    type Address: FromAddress;

    /// Its stream type in the standard library.
    type Std: From<OwnedHandle> + Into<OwnedHandle>;

    /// The name of the stream type in `Debug` output.
    #[doc(hidden)]
    const NAME: &'static str;

    #[doc(hidden)]
    const TRANSPORT: Transport;

    /// The kind of socket that `from_std` adopts.
    #[doc(hidden)]
    const KIND: SocketKind;
}

/// A connected stream socket of the family `F`.
///
/// Use it by the names [`TcpStream`](crate::TcpStream) and `UnixStream`. This page lists what both
/// have in common.
///
/// Reads and writes take `&mut self`, so two tasks cannot mix their bytes in one direction. To read
/// and write at the same time, [`split`](StreamSocket::split) the stream or convert it with
/// [`into_split`](StreamSocket::into_split). Dropping the stream closes the connection; bytes that
/// were written are still sent.
///
/// ```
/// use asx::{Cx, io, net::{Family, StreamSocket}};
///
/// /// Sends a request and reads the answer to its end, over TCP or a Unix socket.
/// async fn ask<F: Family>(
///     cx: &Cx,
///     stream: &mut StreamSocket<F>,
///     request: &[u8],
/// ) -> io::Result<Vec<u8>> {
///     use asx::io::Read as _;
///
///     stream.write_all(cx, request).await?;
///     stream.shutdown(std::net::Shutdown::Write)?;
///     let mut answer = Vec::new();
///     stream.read_to_end(cx, &mut answer).await?;
///     Ok(answer)
/// }
/// ```
pub struct StreamSocket<F> {
    socket: Arc<dyn Socket>,
    family: PhantomData<fn() -> F>,
}

/// Reading.
impl<F: Family> StreamSocket<F> {
    /// Reads bytes into `buffer` and returns how many were read.
    ///
    /// Waits until at least one byte is available. Returns 0 if the peer has ended its direction,
    /// or if `buffer` is empty.
    ///
    /// # Errors
    /// The error of the connection, for example [`ConnectionReset`](ErrorKind::ConnectionReset), or
    /// the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a read that is cancelled or dropped has consumed no bytes.
    #[track_caller]
    pub fn read<'a>(&'a mut self, cx: &'a Cx, buffer: &'a mut [u8]) -> ReadOp<'a> {
        SocketOp::new(cx, &self.socket, ReadInto { buffer, transport: F::TRANSPORT })
    }

    /// Reads bytes into several buffers, filling one after the other, and returns how many were
    /// read.
    ///
    /// # Errors
    /// As [`read`](StreamSocket::read).
    ///
    /// # Cancel safety
    /// Cancel-safe, as [`read`](StreamSocket::read).
    #[track_caller]
    pub fn read_vectored<'a, 'b>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a mut [IoSliceMut<'b>],
    ) -> ReadVectoredOp<'a, 'b> {
        SocketOp::new(cx, &self.socket, ReadIntoAll { buffers, transport: F::TRANSPORT })
    }

    /// Reads until `buffer` is full.
    ///
    /// # Errors
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the peer ends its direction before, otherwise
    /// as [`read`](StreamSocket::read).
    ///
    /// # Cancel safety
    /// Not cancel-safe: the number of bytes that a cancelled call has read is lost. Use a
    /// [`BufReader`](io::BufReader) or [`FrameReader`](io::FrameReader) to keep them.
    #[track_caller]
    pub fn read_exact<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffer: &'a mut [u8],
    ) -> ReadExactOp<'a, StreamSocket<F>> {
        ReadExactOp::new(cx, &self.socket, buffer)
    }

    /// Copies available bytes into `buffer` without consuming them and returns how many were
    /// copied.
    ///
    /// Waits until at least one byte is available. Returns 0 if the peer has ended its direction,
    /// after a [`shutdown`](StreamSocket::shutdown) of reading, or if `buffer` is empty.
    ///
    /// # Errors
    /// As [`read`](StreamSocket::read).
    ///
    /// # Cancel safety
    /// Cancel-safe: it consumes no bytes.
    #[track_caller]
    pub fn peek<'a>(&'a self, cx: &'a Cx, buffer: &'a mut [u8]) -> PeekOp<'a> {
        SocketOp::new(cx, &self.socket, PeekInto { buffer, transport: F::TRANSPORT })
    }
}

/// Writing.
impl<F: Family> StreamSocket<F> {
    /// Writes some of `bytes` and returns how many were accepted for sending.
    ///
    /// Waits until at least one byte is accepted, unless `bytes` is empty.
    ///
    /// # Errors
    /// The error of the connection, for example [`BrokenPipe`](ErrorKind::BrokenPipe), or the
    /// cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a write that is cancelled or dropped has sent no bytes.
    #[track_caller]
    pub fn write<'a>(&'a mut self, cx: &'a Cx, bytes: &'a [u8]) -> WriteOp<'a> {
        SocketOp::new(cx, &self.socket, WriteFrom { buffer: bytes, transport: F::TRANSPORT })
    }

    /// Writes some of the bytes of several buffers, one after the other, and returns how many were
    /// accepted for sending.
    ///
    /// # Errors
    /// As [`write`](StreamSocket::write).
    ///
    /// # Cancel safety
    /// Cancel-safe, as [`write`](StreamSocket::write).
    #[track_caller]
    pub fn write_vectored<'a>(
        &'a mut self,
        cx: &'a Cx,
        buffers: &'a [IoSlice<'a>],
    ) -> WriteVectoredOp<'a> {
        SocketOp::new(cx, &self.socket, WriteFromAll { buffers, transport: F::TRANSPORT })
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// A [`WriteAllError`] with the number of bytes that were written before the error or the
    /// cancellation.
    ///
    /// # Cancel safety
    /// Not cancel-safe. A cancelled call returns the number of bytes it has written; if the future
    /// is dropped, the number is lost.
    #[track_caller]
    pub fn write_all<'a>(
        &'a mut self,
        cx: &'a Cx,
        bytes: &'a [u8],
    ) -> WriteAllOp<'a, StreamSocket<F>> {
        WriteAllOp::new(cx, &self.socket, bytes)
    }

    /// Shuts down one direction or both.
    ///
    /// After [`Shutdown::Write`] the peer reads the bytes that were written, then the end of the
    /// stream. The stream can still be read.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) if the connection is closed, or another error of
    /// the operating system.
    pub fn shutdown(&self, how: Shutdown) -> std::io::Result<()> {
        self.socket.shutdown(how)
    }
}

/// Halves, and contexts.
impl<F: Family> StreamSocket<F> {
    /// Borrows the two directions of the stream as halves that can be used at the same time.
    pub fn split(&mut self) -> (ReadHalf<'_, StreamSocket<F>>, WriteHalf<'_, StreamSocket<F>>) {
        split::halves(&self.socket)
    }

    /// Converts the stream into two halves that different tasks can own.
    ///
    /// Dropping the write half ends that direction. The connection is closed when both halves are
    /// dropped.
    pub fn into_split(self) -> (OwnedReadHalf<StreamSocket<F>>, OwnedWriteHalf<StreamSocket<F>>) {
        split::owned_halves(self.socket)
    }

    /// Returns the stream that [`into_split`](StreamSocket::into_split) was called on.
    ///
    /// # Errors
    /// [`ReuniteError`], which returns the halves, if they belong to different streams.
    pub fn reunite(
        read: OwnedReadHalf<StreamSocket<F>>,
        write: OwnedWriteHalf<StreamSocket<F>>,
    ) -> std::result::Result<StreamSocket<F>, ReuniteError<StreamSocket<F>>> {
        split::reunite(read, write)
    }

    /// Binds the stream to a context, which implements the IO traits of other libraries.
    #[track_caller]
    pub fn bound(self, cx: &Cx) -> Bound<StreamSocket<F>> {
        Bound::new(self, cx)
    }
}

/// Addresses, errors and buffer sizes.
impl<F: Family> StreamSocket<F> {
    /// Returns the address of this end.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn local_addr(&self) -> std::io::Result<F::Address> {
        F::Address::from_address(self.socket.local_address()?)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// [`NotConnected`](ErrorKind::NotConnected) if the connection is closed.
    pub fn peer_addr(&self) -> std::io::Result<F::Address> {
        F::Address::from_address(self.socket.peer_address()?)
    }

    /// Returns the pending error of the socket, if there is one, and clears it.
    ///
    /// # Errors
    /// The error of the operating system if the pending error cannot be read.
    pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
        self.socket.take_error()
    }

    /// Returns the size of the receive buffer in bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn recv_buffer(&self) -> std::io::Result<usize> {
        options::recv_buffer(&self.socket)
    }

    /// Sets the size of the receive buffer. The operating system may choose another size.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_recv_buffer(&self, bytes: usize) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::RecvBuffer(bytes))
    }

    /// Returns the size of the send buffer in bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn send_buffer(&self) -> std::io::Result<usize> {
        options::send_buffer(&self.socket)
    }

    /// Sets the size of the send buffer. The operating system may choose another size.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_send_buffer(&self, bytes: usize) -> std::io::Result<()> {
        self.socket.set_option(SocketOption::SendBuffer(bytes))
    }
}

/// Conversions from and to the standard library.
impl<F: Family> StreamSocket<F> {
    /// Takes over a connection that was created elsewhere and sets it to non-blocking mode.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) in the lab, which simulates its network.
    pub fn from_std(cx: &Cx, stream: F::Std) -> std::io::Result<StreamSocket<F>> {
        options::adopt(cx, F::KIND, stream).map(StreamSocket::of)
    }

    /// Returns the connection as one of the standard library. It stays in non-blocking mode: call
    /// `set_nonblocking(false)` for blocking calls.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) in the lab, or the error of the operating system if
    /// the socket cannot be duplicated.
    pub fn into_std(self) -> std::io::Result<F::Std> {
        options::duplicate(&self.socket).map(Into::into)
    }

    /// Returns the file descriptor, or `None` in the lab. Available on Unix.
    ///
    /// Do not receive urgent data of TCP (`MSG_OOB`) through it: the system then stops reporting
    /// the mark to the runtime, and a read that stopped at the mark may wait for the next bytes.
    #[cfg(unix)]
    pub fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.socket.handle()
    }
}

impl<F: Family> fmt::Debug for StreamSocket<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(F::NAME).field(&self.socket).finish()
    }
}

impl<F: Family> io::Read for StreamSocket<F> {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        StreamSocket::read(self, cx, buffer).await
    }

    async fn read_exact(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<()> {
        StreamSocket::read_exact(self, cx, buffer).await
    }
}

impl<F: Family> io::Write for StreamSocket<F> {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        StreamSocket::write(self, cx, bytes).await
    }

    async fn write_all(&mut self, cx: &Cx, bytes: &[u8]) -> std::result::Result<(), WriteAllError> {
        StreamSocket::write_all(self, cx, bytes).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        cx.checkpoint()?;
        Ok(end_write(&self.socket)?)
    }

    fn abort(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

impl<F: Family> Duplex for StreamSocket<F> {
    type Reader<'a> = ReadHalf<'a, StreamSocket<F>>;
    type Writer<'a> = WriteHalf<'a, StreamSocket<F>>;

    fn split(&mut self) -> (Self::Reader<'_>, Self::Writer<'_>) {
        split::halves(&self.socket)
    }
}

/// A stream, or half of one, over a socket. This trait is sealed.
pub trait OverSocket: Sealed + Send {
    #[doc(hidden)]
    const TRANSPORT: Transport;

    #[doc(hidden)]
    fn socket(&self) -> &Arc<dyn Socket>;
}

/// A stream over a socket: [`TcpStream`](crate::TcpStream) or `UnixStream`. This trait is sealed.
pub trait SocketStream: ReadSide + WriteSide + Accepted {}

/// A stream or half that can be read when it is [bound](Bound) to a context. This trait is sealed.
pub trait ReadSide: OverSocket {}

/// A stream or half that can be written when it is [bound](Bound) to a context. This trait is
/// sealed.
pub trait WriteSide: OverSocket {}

impl<F: Family> Sealed for StreamSocket<F> {}

impl<F: Family> OverSocket for StreamSocket<F> {
    const TRANSPORT: Transport = F::TRANSPORT;

    fn socket(&self) -> &Arc<dyn Socket> {
        &self.socket
    }
}

impl<F: Family> Accepted for StreamSocket<F> {
    type Address = F::Address;

    fn of(socket: Arc<dyn Socket>) -> StreamSocket<F> {
        StreamSocket { socket, family: PhantomData }
    }
}

impl<F: Family> SocketStream for StreamSocket<F> {}

impl<F: Family> ReadSide for StreamSocket<F> {}

impl<F: Family> WriteSide for StreamSocket<F> {}

/// Shuts down the direction to the peer. Succeeds if the connection is closed already.
pub(crate) fn end_write(socket: &Arc<dyn Socket>) -> std::io::Result<()> {
    match socket.shutdown(Shutdown::Write) {
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
        ended => ended,
    }
}
