//! The future of socket operations.
//!
//! A [`SocketOp`] waits until its socket is worth a try in the direction of its [`Attempt`], and
//! then makes it. Every poll begins with the steps that all operations have in common
//! ([`asx_runtime::operation`]): a cancel ends it, the task's budget of operations is charged, and
//! the context of another task is refused. Only then is the socket touched, and the attempt that
//! succeeds ends the poll: an operation that was cancelled or dropped has consumed nothing.
//!
//! The names that methods answer with, [`ReadOp`] for example, are aliases of `SocketOp`; only what
//! makes several attempts ([`WriteAllOp`], [`ReadExactOp`]) is a future of its own.

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

/// The future of [`TcpStream::read`](crate::TcpStream::read) and of others that read;
/// gives `io::Result<usize>`.
pub type ReadOp<'a> = SocketOp<'a, ReadInto<'a>>;
/// The future of [`TcpStream::read_vectored`](crate::TcpStream::read_vectored);
/// gives `io::Result<usize>`.
pub type ReadVectoredOp<'a, 'b> = SocketOp<'a, ReadIntoAll<'a, 'b>>;
/// The future of [`TcpStream::peek`](crate::TcpStream::peek) and of others that only look;
/// gives `io::Result<usize>`.
pub type PeekOp<'a> = SocketOp<'a, PeekInto<'a>>;
/// The future of [`TcpStream::write`](crate::TcpStream::write) and of others that write once;
/// gives `io::Result<usize>`.
pub type WriteOp<'a> = SocketOp<'a, WriteFrom<'a>>;
/// The future of [`TcpStream::write_vectored`](crate::TcpStream::write_vectored);
/// gives `io::Result<usize>`.
pub type WriteVectoredOp<'a> = SocketOp<'a, WriteFromAll<'a>>;
/// The future of [`TcpListener::accept`](crate::TcpListener::accept); gives
/// `io::Result<(S, Address)>`: a stream `S`, and where it comes from.
pub type AcceptOp<'a, S> = SocketOp<'a, TakeConnection<S>>;
/// The future of [`UdpSocket::recv_from`](crate::UdpSocket::recv_from); gives
/// `io::Result<(usize, A)>`: a size, and an address `A`.
pub type RecvFromOp<'a, A> = SocketOp<'a, RecvFromInto<'a, A>>;
/// The future of [`UdpSocket::send_to`](crate::UdpSocket::send_to); gives `io::Result<usize>`.
pub type SendToOp<'a> = SocketOp<'a, SendToFrom<'a>>;

/// What an operation does to its socket when that seems ready. Implemented here only.
pub trait Attempt: Unpin + sealed::Sealed {
    /// What the operation answers.
    type Output;

    /// Which way it moves bytes.
    #[doc(hidden)]
    const DIRECTION: Direction;

    /// The answer, if there is nothing to wait for: no bytes are to be moved.
    #[doc(hidden)]
    fn without_socket(&self) -> Option<Self::Output> {
        None
    }

    /// Tries it once. It has consumed nothing if it fails.
    #[doc(hidden)]
    fn attempt(&mut self, socket: &Arc<dyn Socket>) -> std::io::Result<Attempted<Self::Output>>;
}

pub(crate) mod sealed {
    /// Keeps the traits of this crate's sockets to this crate.
    pub trait Sealed {}
}

/// A try that succeeded.
#[doc(hidden)]
#[derive(Debug)]
pub struct Attempted<T> {
    output: T,
    /// Fewer bytes were moved than the system could have moved: the host may conclude that the
    /// socket is not ready any more ([`Socket::clear_after_short`]).
    is_short: bool,
}

impl<T> Attempted<T> {
    pub(crate) fn new(output: T) -> Attempted<T> {
        Attempted { output, is_short: false }
    }
}

/// An operation of a task on a socket; see the [module](self).
#[must_use = "futures do nothing unless awaited"]
pub struct SocketOp<'a, A: Attempt> {
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    waiter: Waiter,
    attempt: A,
}

impl<'a, A: Attempt> SocketOp<'a, A> {
    #[track_caller]
    pub(crate) fn new(cx: &'a Cx, socket: &'a Arc<dyn Socket>, attempt: A) -> Self {
        SocketOp { cx, socket, waiter: Waiter::new(), attempt }
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

/// An attempt that was not made, or failed, has consumed nothing.
impl<A: Attempt> CancelSafe for SocketOp<'_, A> {}

impl<A: Attempt> fmt::Debug for SocketOp<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketOp")
            .field("direction", &A::DIRECTION)
            .field("socket", self.socket)
            .finish_non_exhaustive()
    }
}

/// The share of the operation budget that a completed socket operation takes: a poll completes 16
/// of them by default. A system call takes tens of times longer than an operation on a channel, so
/// 128 of them would keep other tasks of the worker waiting for a long time.
pub(crate) const COST: u32 = 8;

/// How an operation waits: of a [`SocketOp`], or of a stream that is bound to a context.
pub(crate) struct Waiter {
    /// With the task, for its cancel.
    registration: Registration,
    /// At the socket.
    slot: WaitSlot,
    /// Dumps name this line.
    at: &'static Location<'static>,
}

impl Waiter {
    #[track_caller]
    pub(crate) fn new() -> Waiter {
        Waiter {
            registration: Registration::default(),
            slot: WaitSlot::default(),
            at: Location::caller(),
        }
    }

    /// One poll of an operation.
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

    /// Waits until the socket is worth a try, and tries.
    fn poll_socket<A: Attempt>(
        &mut self,
        cx: &Cx,
        socket: &Arc<dyn Socket>,
        attempt: &mut A,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<A::Output>> {
        let Waiter { registration, slot, at } = self;
        if let Some(output) = attempt.without_socket() {
            return Poll::Ready(Ok(output));
        }
        // The last event that was cleared, and how often.
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

    /// The operation waits no longer.
    pub(crate) fn leave(&mut self, socket: &Arc<dyn Socket>, direction: Direction) {
        self.registration = Registration::default();
        if self.slot.0 != 0 {
            socket.leave(direction, &mut self.slot);
        }
    }
}

/// A socket that is closed stays ready. If its operations would block nevertheless, an operation
/// fails after this many attempts instead of trying for ever.
const MOST_CLEARS: u32 = 16;

/// The error of a socket that is closed, without an error that says why: the error of a failed
/// connection can be taken only once.
#[cold]
fn closed_without_error() -> std::io::Error {
    let why = "the system reports that the socket is closed, but not why";
    std::io::Error::new(ErrorKind::NotConnected, why)
}

/// What a socket moves bytes by, which tells what a count means.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A stream. After a short count it is empty or full, unless a read stopped at urgent data.
    Tcp,
    /// A stream. A read may also stop at descriptors that came with the bytes.
    UnixStream,
    /// A datagram is as long as it is, and may be empty.
    Datagrams,
}

/// Systems move no more bytes than this at once, however many are asked for.
const MOST_BYTES: usize = 0x7fff_f000;
/// Every system takes as many buffers at once. Where there are more, it may have passed over some.
const MOST_BUFFERS: usize = 16;

impl Transport {
    /// The answer to who asks for so many bytes, if no socket is needed for it: none of a stream.
    fn without_socket(self, asked: usize) -> Option<usize> {
        (asked == 0 && self != Transport::Datagrams).then_some(0)
    }

    fn attempted(self, moved: usize, asked: usize) -> Attempted<usize> {
        // A count of zero is the end of the stream, which stays readable.
        let is_short = moved > 0 && moved < asked.min(MOST_BYTES);
        Attempted { output: moved, is_short: self == Transport::Tcp && is_short }
    }

    /// The same for several buffers, of which the system may have taken only the first ones.
    fn attempted_all(self, moved: usize, asked: usize, buffers: usize) -> Attempted<usize> {
        let Attempted { output, is_short } = self.attempted(moved, asked);
        Attempted { output, is_short: is_short && buffers <= MOST_BUFFERS }
    }
}

/// The bytes of several buffers, of which one may stand there more than once.
fn total(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.fold(0, usize::saturating_add)
}

/// Reads into a buffer.
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

/// Reads into several buffers.
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

/// Looks at what has come.
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

/// Writes out of a buffer.
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

/// Writes out of several buffers.
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
/// `Result<(), WriteAllError>`: one write after the other, until all bytes are given to a stream
/// `S`. Not cancel-safe.
#[must_use = "futures do nothing unless awaited"]
pub struct WriteAllOp<'a, S> {
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    waiter: Waiter,
    /// What is left.
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
        WriteAllOp { cx, socket, waiter: Waiter::new(), bytes, written: 0, stream: PhantomData }
    }
}

impl<S: SocketStream> Future for WriteAllOp<'_, S> {
    type Output = std::result::Result<(), WriteAllError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let WriteAllOp { cx, socket, waiter, bytes, written, .. } = &mut *self;
        // An empty write is an operation as well: it looks for a cancel, and is charged.
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
/// `io::Result<()>`: one read after the other, until the buffer is full, from a stream `S`. Not
/// cancel-safe.
#[must_use = "futures do nothing unless awaited"]
pub struct ReadExactOp<'a, S> {
    cx: &'a Cx,
    socket: &'a Arc<dyn Socket>,
    waiter: Waiter,
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
        ReadExactOp { cx, socket, waiter: Waiter::new(), buffer, filled: 0, stream: PhantomData }
    }
}

impl<S: SocketStream> Future for ReadExactOp<'_, S> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ReadExactOp { cx, socket, waiter, buffer, filled, .. } = &mut *self;
        // An empty read is an operation as well: it looks for a cancel, and is charged.
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

/// Takes a connection, of which a stream `S` is made.
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

/// A stream that listeners give. Implemented here only.
pub trait Accepted: sealed::Sealed {
    /// Where it comes from.
    type Address: FromAddress;

    /// The stream over a socket.
    #[doc(hidden)]
    fn of(socket: Arc<dyn Socket>) -> Self;
}

/// An address of one family. Implemented here only.
pub trait FromAddress: Sized {
    /// The address, if it is of this family.
    #[doc(hidden)]
    fn from_address(address: Address) -> std::io::Result<Self>;
}

impl FromAddress for SocketAddr {
    fn from_address(address: Address) -> std::io::Result<SocketAddr> {
        let wrong = || std::io::Error::new(ErrorKind::InvalidData, "not an internet address");
        address.inet().ok_or_else(wrong)
    }
}

/// Takes a datagram and where it comes from.
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

/// Sends a datagram somewhere.
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

/// Waits until a connection that was begun is there, or has failed.
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
            // Ready too early.
            Err(error) if error.kind() == ErrorKind::NotConnected => {
                Err(ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
