//! The futures of socket operations.
//!
//! A [`SocketOp`] waits until its socket is ready in the direction of its [`Attempt`], then makes
//! the attempt. Every poll begins with the entry check of all operations
//! ([`asx_runtime::operation`]): it observes cancellation, charges the operation budget, and
//! refuses the context of another task. The socket is used only after this check, and a successful
//! attempt completes the poll. A cancelled or dropped operation has therefore consumed nothing.
//!
//! Methods return aliases of `SocketOp`, for example [`ReadOp`]. Only the operations that make
//! several attempts ([`WriteAllOp`], [`ReadExactOp`]) are separate futures.

use std::fmt;
use std::future::Future;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use asx_runtime::net::{Address, Direction, Socket, WaitSlot, attempts_at};
use asx_runtime::operation::{Registration, Wait, charge};
use asx_runtime::{CancelSafe, Cx};

use crate::io::{Result, WriteAllError};
use crate::stream::SocketStream;

/// The future of [`TcpStream::read`](crate::TcpStream::read) and other reads; gives
/// `io::Result<usize>`.
pub type ReadOp<'a> = SocketOp<'a, ReadInto<'a>>;
/// The future of [`TcpStream::read_vectored`](crate::TcpStream::read_vectored);
/// gives `io::Result<usize>`.
pub type ReadVectoredOp<'a, 'b> = SocketOp<'a, ReadIntoAll<'a, 'b>>;
/// The future of [`TcpStream::peek`](crate::TcpStream::peek) and other peeks; gives
/// `io::Result<usize>`.
pub type PeekOp<'a> = SocketOp<'a, PeekInto<'a>>;
/// The future of [`TcpStream::write`](crate::TcpStream::write) and other single writes; gives
/// `io::Result<usize>`.
pub type WriteOp<'a> = SocketOp<'a, WriteFrom<'a>>;
/// The future of [`TcpStream::write_vectored`](crate::TcpStream::write_vectored);
/// gives `io::Result<usize>`.
pub type WriteVectoredOp<'a> = SocketOp<'a, WriteFromAll<'a>>;
/// The future of [`TcpListener::accept`](crate::TcpListener::accept); gives
/// `io::Result<(S, Address)>`: a stream `S`, and the address of its peer.
pub type AcceptOp<'a, S> = SocketOp<'a, TakeConnection<S>>;
/// The future of [`UdpSocket::recv_from`](crate::UdpSocket::recv_from); gives
/// `io::Result<(usize, A)>`: the number of bytes, and the address `A` of the sender.
pub type RecvFromOp<'a, A> = SocketOp<'a, RecvFromInto<'a, A>>;
/// The future of [`UdpSocket::send_to`](crate::UdpSocket::send_to); gives `io::Result<usize>`.
pub type SendToOp<'a> = SocketOp<'a, SendToFrom<'a>>;

/// The system call of an operation, made when its socket seems ready. This trait is sealed.
pub trait Attempt: Unpin + sealed::Sealed {
    /// The result of the operation.
    type Output;

    /// The direction in which bytes are moved.
    #[doc(hidden)]
    const DIRECTION: Direction;

    /// Returns the result of an operation that moves no bytes and needs no socket.
    #[doc(hidden)]
    fn without_socket(&self) -> Option<Self::Output> {
        None
    }

    /// Makes one attempt. An attempt that fails has consumed nothing.
    #[doc(hidden)]
    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<Self::Output>>;
}

pub(crate) mod sealed {
    /// Prevents implementations of the socket traits in other crates.
    pub trait Sealed {}
}

/// The result of a successful attempt.
#[doc(hidden)]
#[derive(Debug)]
pub struct Attempted<T> {
    output: T,
    /// True if fewer bytes were moved than the system could have moved. The host may conclude that
    /// the socket is no longer ready ([`Socket::clear_after_short`]).
    is_short: bool,
}

impl<T> Attempted<T> {
    pub(crate) fn new(output: T) -> Attempted<T> {
        Attempted { output, is_short: false }
    }
}

/// One operation on a socket; see the [module](self).
#[must_use = "futures do nothing unless awaited"]
pub struct SocketOp<'a, A: Attempt> {
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    waiter: SocketWaiter,
    attempt: A,
}

impl<'a, A: Attempt> SocketOp<'a, A> {
    #[track_caller]
    pub(crate) fn new(cx: &'a Cx, socket: &'a Arc<dyn Socket>, attempt: A) -> Self {
        SocketOp { cx, socket, waiter: SocketWaiter::new(), attempt }
    }
}

impl<A: Attempt> Future for SocketOp<'_, A> {
    type Output = Result<A::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let SocketOp { cx, socket, waiter, attempt } = &mut *self;
        waiter.poll(cx, socket, attempt, context)
    }
}

impl<A: Attempt> Drop for SocketOp<'_, A> {
    fn drop(&mut self) {
        self.waiter.leave(self.socket, A::DIRECTION);
    }
}

/// An operation is dropped before its attempt or after a failed one, which consumed nothing.
impl<A: Attempt> CancelSafe for SocketOp<'_, A> {}

impl<A: Attempt> fmt::Debug for SocketOp<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketOp")
            .field("direction", &A::DIRECTION)
            .field("socket", self.socket)
            .finish_non_exhaustive()
    }
}

/// The charge of a completed socket operation to the operation budget. By default a poll completes
/// 16 of them. A system call takes tens of times longer than an operation on a channel, so 128 of
/// them would delay the other tasks of the worker for a long time.
pub(crate) const COST: u32 = 8;

/// The wait of a [`SocketOp`], or of one direction of a [`Bound`](crate::Bound) stream.
pub(crate) struct SocketWaiter {
    /// The registration with the task, which wakes the operation when the task is cancelled.
    registration: Registration,
    /// The place among the waiters of the socket.
    slot: WaitSlot,
    /// The line that dumps name.
    at: &'static Location<'static>,
}

impl SocketWaiter {
    #[track_caller]
    pub(crate) fn new() -> SocketWaiter {
        SocketWaiter {
            registration: Registration::default(),
            slot: WaitSlot::default(),
            at: Location::caller(),
        }
    }

    /// Polls an operation: the entry check, then the socket.
    pub(crate) fn poll<A: Attempt>(
        &mut self,
        cx: &Cx,
        socket: &Arc<dyn Socket>,
        attempt: &mut A,
        context: &mut Context<'_>,
    ) -> Poll<Result<A::Output>> {
        let Poll::Ready(proceed) = cx.poll_proceed(context, &mut self.registration) else {
            socket.yields();
            return Poll::Pending;
        };
        let answer = match proceed {
            Ok(()) => ready!(self.poll_socket(cx, socket, attempt, context)).map_err(Into::into),
            Err(cancelled) => Err(cancelled.into()),
        };
        charge(COST - 1);
        self.leave(socket, A::DIRECTION);
        Poll::Ready(answer)
    }

    /// Makes attempts while the socket seems ready, until one succeeds or fails.
    fn poll_socket<A: Attempt>(
        &mut self,
        cx: &Cx,
        socket: &Arc<dyn Socket>,
        attempt: &mut A,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<A::Output>> {
        let SocketWaiter { registration, slot, at } = self;
        if let Some(output) = attempt.without_socket() {
            return Poll::Ready(Ok(output));
        }
        // The last readiness event that was cleared, and how many times.
        let mut cleared = (None, 0);
        loop {
            let Poll::Ready(seen) = socket.poll_ready(A::DIRECTION, slot, context.waker()) else {
                cx.waits(Wait::Signal, at, context.waker(), registration);
                return Poll::Pending;
            };
            let seen = seen?;
            attempts_at(at);
            match attempt.attempt(socket) {
                Ok(Attempted { output, is_short }) => {
                    if is_short {
                        socket.clear_after_short(A::DIRECTION, seen);
                    }
                    return Poll::Ready(Ok(output));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let before = if cleared.0 == Some(seen) { cleared.1 } else { 0 };
                    if before == MOST_CLEARS {
                        return Poll::Ready(Err(closed_without_error()));
                    }
                    cleared = (Some(seen), before + 1);
                    socket.clear_ready(A::DIRECTION, seen);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Removes the wait from the task and from the socket.
    pub(crate) fn leave(&mut self, socket: &Arc<dyn Socket>, direction: Direction) {
        self.registration = Registration::default();
        if self.slot.0 != 0 {
            socket.leave(direction, &mut self.slot);
        }
    }
}

/// The maximum number of attempts after the same readiness event. A closed socket stays ready; if
/// its attempts return `WouldBlock` nevertheless, the operation fails instead of spinning.
const MOST_CLEARS: u32 = 16;

/// The error of a closed socket that reports no error: the error of a failed connection can be
/// taken only once.
#[cold]
fn closed_without_error() -> std::io::Error {
    let text = "the operating system reports the socket as closed, without an error";
    std::io::Error::new(ErrorKind::NotConnected, text)
}

/// The kind of transport, which decides what a short count means.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP stream. After a short count its buffer is empty (a read) or full (a write), unless a
    /// read stopped at urgent data.
    Tcp,
    /// A Unix stream. A read may also stop at descriptors that were sent with the bytes.
    UnixStream,
    /// Datagrams. A count is the size of one datagram, which may be empty.
    Datagrams,
}

/// The maximum number of bytes that one system call moves (Linux: `MAX_RW_COUNT`).
const MOST_BYTES: usize = 0x7fff_f000;
/// The number of buffers that every system accepts in one call (POSIX: `_XOPEN_IOV_MAX`). With more
/// of them a short count proves nothing.
const MOST_BUFFERS: usize = 16;

impl Transport {
    /// Returns 0 for a stream operation that requests no bytes, which needs no socket.
    fn without_socket(self, asked: usize) -> Option<usize> {
        (asked == 0 && self != Transport::Datagrams).then_some(0)
    }

    fn attempted(self, moved: usize, asked: usize) -> Attempted<usize> {
        // A read of zero bytes is the end of the stream, which stays readable.
        let is_short = moved > 0 && moved < asked.min(MOST_BYTES);
        Attempted { output: moved, is_short: self == Transport::Tcp && is_short }
    }

    /// As `attempted`, for several buffers. The system may have used only the first ones.
    fn attempted_all(self, moved: usize, asked: usize, buffers: usize) -> Attempted<usize> {
        let Attempted { output, is_short } = self.attempted(moved, asked);
        Attempted { output, is_short: is_short && buffers <= MOST_BUFFERS }
    }
}

/// The sum of the lengths. It saturates: the same buffer may be listed many times.
fn total(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.fold(0, usize::saturating_add)
}

/// The attempt of a read into one buffer.
#[derive(Debug)]
pub struct ReadInto<'a> {
    pub(crate) buffer: &'a mut [u8],
    pub(crate) transport: Transport,
}

impl sealed::Sealed for ReadInto<'_> {}

impl Attempt for ReadInto<'_> {
    type Output = usize;
    const DIRECTION: Direction = Direction::Read;

    fn without_socket(&self) -> Option<usize> {
        self.transport.without_socket(self.buffer.len())
    }

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<usize>> {
        let count = socket.read(self.buffer)?;
        Ok(self.transport.attempted(count, self.buffer.len()))
    }
}

/// The attempt of a read into several buffers.
#[derive(Debug)]
pub struct ReadIntoAll<'a, 'b> {
    pub(crate) buffers: &'a mut [IoSliceMut<'b>],
    pub(crate) transport: Transport,
}

impl sealed::Sealed for ReadIntoAll<'_, '_> {}

impl Attempt for ReadIntoAll<'_, '_> {
    type Output = usize;
    const DIRECTION: Direction = Direction::Read;

    fn without_socket(&self) -> Option<usize> {
        self.transport.without_socket(total(self.buffers.iter().map(|buffer| buffer.len())))
    }

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<usize>> {
        let count = socket.read_vectored(self.buffers)?;
        let asked = total(self.buffers.iter().map(|buffer| buffer.len()));
        Ok(self.transport.attempted_all(count, asked, self.buffers.len()))
    }
}

/// The attempt of a peek.
#[derive(Debug)]
pub struct PeekInto<'a> {
    pub(crate) buffer: &'a mut [u8],
    pub(crate) transport: Transport,
}

impl sealed::Sealed for PeekInto<'_> {}

impl Attempt for PeekInto<'_> {
    type Output = usize;
    const DIRECTION: Direction = Direction::Read;

    fn without_socket(&self) -> Option<usize> {
        self.transport.without_socket(self.buffer.len())
    }

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<usize>> {
        // What was looked at is still there: the socket stays ready.
        socket.peek(self.buffer).map(Attempted::new)
    }
}

/// The attempt of a write from one buffer.
#[derive(Debug)]
pub struct WriteFrom<'a> {
    pub(crate) buffer: &'a [u8],
    pub(crate) transport: Transport,
}

impl sealed::Sealed for WriteFrom<'_> {}

impl Attempt for WriteFrom<'_> {
    type Output = usize;
    const DIRECTION: Direction = Direction::Write;

    fn without_socket(&self) -> Option<usize> {
        self.transport.without_socket(self.buffer.len())
    }

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<usize>> {
        let count = socket.write(self.buffer)?;
        Ok(self.transport.attempted(count, self.buffer.len()))
    }
}

/// The attempt of a write from several buffers.
#[derive(Debug)]
pub struct WriteFromAll<'a> {
    pub(crate) buffers: &'a [IoSlice<'a>],
    pub(crate) transport: Transport,
}

impl sealed::Sealed for WriteFromAll<'_> {}

impl Attempt for WriteFromAll<'_> {
    type Output = usize;
    const DIRECTION: Direction = Direction::Write;

    fn without_socket(&self) -> Option<usize> {
        self.transport.without_socket(total(self.buffers.iter().map(|buffer| buffer.len())))
    }

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<usize>> {
        let count = socket.write_vectored(self.buffers)?;
        let asked = total(self.buffers.iter().map(|buffer| buffer.len()));
        Ok(self.transport.attempted_all(count, asked, self.buffers.len()))
    }
}

/// The future of [`TcpStream::write_all`](crate::TcpStream::write_all); gives
/// `Result<(), WriteAllError>`. It writes to a stream `S` until all bytes are written.
///
/// # Cancel safety
/// Not cancel-safe: if the future is dropped, the number of bytes it has written is lost.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAllOp<'a, S> {
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    waiter: SocketWaiter,
    /// The bytes that are not written yet.
    bytes: &'a [u8],
    written: usize,
    stream: PhantomData<fn() -> S>,
}

impl<'a, S: SocketStream> WriteAllOp<'a, S> {
    #[track_caller]
    pub(crate) fn new(
        cx: &'a Cx,
        socket: &'a Arc<dyn Socket>,
        bytes: &'a [u8],
    ) -> WriteAllOp<'a, S> {
        WriteAllOp {
            cx,
            socket,
            waiter: SocketWaiter::new(),
            bytes,
            written: 0,
            stream: PhantomData,
        }
    }
}

impl<S: SocketStream> Future for WriteAllOp<'_, S> {
    type Output = std::result::Result<(), WriteAllError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let WriteAllOp { cx, socket, waiter, bytes, written, .. } = &mut *self;
        // An empty write is an operation too: it observes cancellation and is charged.
        while !bytes.is_empty() || *written == 0 {
            let mut attempt = WriteFrom { buffer: bytes, transport: S::TRANSPORT };
            let error = match ready!(waiter.poll(cx, socket, &mut attempt, context)) {
                Ok(0) if bytes.is_empty() => break,
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(count) => {
                    *bytes = &bytes[count..];
                    *written += count;
                    continue;
                }
                Err(error) => error,
            };
            return Poll::Ready(Err(WriteAllError { written: *written, error }));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S> Drop for WriteAllOp<'_, S> {
    fn drop(&mut self) {
        self.waiter.leave(self.socket, Direction::Write);
    }
}

impl<S> fmt::Debug for WriteAllOp<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteAllOp").field("written", &self.written).finish_non_exhaustive()
    }
}

/// The future of [`TcpStream::read_exact`](crate::TcpStream::read_exact); gives
/// `io::Result<()>`. It reads from a stream `S` until the buffer is full.
///
/// # Cancel safety
/// Not cancel-safe: if the future is dropped, the number of bytes it has read is lost.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadExactOp<'a, S> {
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    waiter: SocketWaiter,
    buffer: &'a mut [u8],
    filled: usize,
    stream: PhantomData<fn() -> S>,
}

impl<'a, S: SocketStream> ReadExactOp<'a, S> {
    #[track_caller]
    pub(crate) fn new(
        cx: &'a Cx,
        socket: &'a Arc<dyn Socket>,
        buffer: &'a mut [u8],
    ) -> ReadExactOp<'a, S> {
        ReadExactOp {
            cx,
            socket,
            waiter: SocketWaiter::new(),
            buffer,
            filled: 0,
            stream: PhantomData,
        }
    }
}

impl<S: SocketStream> Future for ReadExactOp<'_, S> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ReadExactOp { cx, socket, waiter, buffer, filled, .. } = &mut *self;
        // An empty read is an operation too: it observes cancellation and is charged.
        while *filled < buffer.len() || *filled == 0 {
            let mut attempt = ReadInto { buffer: &mut buffer[*filled..], transport: S::TRANSPORT };
            match ready!(waiter.poll(cx, socket, &mut attempt, context))? {
                0 if buffer.is_empty() => break,
                0 => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                count => *filled += count,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S> Drop for ReadExactOp<'_, S> {
    fn drop(&mut self) {
        self.waiter.leave(self.socket, Direction::Read);
    }
}

impl<S> fmt::Debug for ReadExactOp<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadExactOp").field("filled", &self.filled).finish_non_exhaustive()
    }
}

/// The attempt of an accept, which creates a stream `S`.
#[derive(Debug)]
pub struct TakeConnection<S> {
    stream: PhantomData<fn() -> S>,
}

impl<S> TakeConnection<S> {
    pub(crate) fn new() -> TakeConnection<S> {
        TakeConnection { stream: PhantomData }
    }
}

impl<S> sealed::Sealed for TakeConnection<S> {}

impl<S: Accepted> Attempt for TakeConnection<S> {
    type Output = (S, S::Address);
    const DIRECTION: Direction = Direction::Read;

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<Self::Output>> {
        let (stream, from) = socket.accept()?;
        Ok(Attempted::new((S::of(stream), S::Address::from_address(from)?)))
    }
}

/// A stream that a listener accepts. This trait is sealed.
pub trait Accepted: sealed::Sealed {
    /// The type of the address of its peer.
    type Address: FromAddress;

    /// Creates the stream over a socket.
    #[doc(hidden)]
    fn of(socket: Arc<dyn Socket>) -> Self;
}

/// An address of one family. Only this crate implements it.
pub trait FromAddress: Sized {
    /// Converts an address of this family; an address of another family is an error.
    #[doc(hidden)]
    fn from_address(address: Address) -> std::io::Result<Self>;
}

impl FromAddress for SocketAddr {
    fn from_address(address: Address) -> std::io::Result<SocketAddr> {
        let other_family = || {
            let text = format!("{address} is not an internet address");
            std::io::Error::new(ErrorKind::InvalidData, text)
        };
        address.inet().ok_or_else(other_family)
    }
}

/// The attempt of a receive that also returns the address of the sender.
#[derive(Debug)]
pub struct RecvFromInto<'a, A> {
    pub(crate) buffer: &'a mut [u8],
    pub(crate) from: PhantomData<fn() -> A>,
}

impl<A> sealed::Sealed for RecvFromInto<'_, A> {}

impl<A: FromAddress> Attempt for RecvFromInto<'_, A> {
    type Output = (usize, A);
    const DIRECTION: Direction = Direction::Read;

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<(usize, A)>> {
        let (count, from) = socket.recv_from(self.buffer)?;
        Ok(Attempted::new((count, A::from_address(from)?)))
    }
}

/// The attempt of a send to an address.
#[derive(Debug)]
pub struct SendToFrom<'a> {
    pub(crate) buffer: &'a [u8],
    pub(crate) to: Address,
}

impl sealed::Sealed for SendToFrom<'_> {}

impl Attempt for SendToFrom<'_> {
    type Output = usize;
    const DIRECTION: Direction = Direction::Write;

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<usize>> {
        socket.send_to(self.buffer, &self.to).map(Attempted::new)
    }
}

/// The attempt that completes a connect: checks whether the connection is established or has
/// failed.
#[derive(Debug)]
pub(crate) struct FinishConnect;

impl sealed::Sealed for FinishConnect {}

impl Attempt for FinishConnect {
    type Output = ();
    const DIRECTION: Direction = Direction::Write;

    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<()>> {
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        match socket.peer_address() {
            Ok(_) => Ok(Attempted::new(())),
            // A spurious event: the connection is still pending.
            Err(error) if error.kind() == ErrorKind::NotConnected => {
                Err(ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
