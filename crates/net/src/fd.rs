//! Readiness of foreign file descriptors: pipes, devices, event counters, sockets of other
//! libraries.

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use asx_runtime::net::{Direction, ReadyEvent, Socket, WaitSlot};
use asx_runtime::operation::charge;
use asx_runtime::{CancelSafe, Cx, Operation};

use crate::io::Result;
use crate::lookup::network;
use crate::op::COST;

/// The kind of readiness to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// The descriptor can be read.
    Readable,
    /// The descriptor can be written.
    Writable,
}

impl Interest {
    fn direction(self) -> Direction {
        match self {
            Interest::Readable => Direction::Read,
            Interest::Writable => Direction::Write,
        }
    }
}

/// A file descriptor that tasks can await the readiness of.
///
/// The descriptor must be in non-blocking mode. It counts as ready until an attempt would block, at
/// first too. Wait for readiness, then attempt the operation with [`ReadyGuard::try_io`], or do
/// both with [`with`](AsyncFd::with).
///
/// ```
/// use std::io::Read as _;
/// use std::os::unix::net::UnixStream;
/// use asx::{Cx, io, net::AsyncFd};
///
/// async fn first_byte(cx: &Cx, pipe: &AsyncFd<UnixStream>) -> io::Result<u8> {
///     loop {
///         let guard = pipe.readable(cx).await?;
///         let mut byte = [0];
///         // Clears the readiness if the read would block.
///         if let Some(read) = guard.try_io(|mut pipe| pipe.read_exact(&mut byte)) {
///             read?;
///             return Ok(byte[0]);
///         }
///     }
/// }
/// ```
pub struct AsyncFd<T: AsFd> {
    // Dropped before the descriptor, which must be open when it is removed from the reactor.
    watch: Arc<dyn Socket>,
    inner: T,
}

impl<T: AsFd> AsyncFd<T> {
    /// Registers a descriptor in non-blocking mode.
    ///
    /// # Errors
    /// The error of the operating system if the descriptor cannot be watched (a regular file) or is
    /// watched already, or [`Unsupported`](ErrorKind::Unsupported) in the lab.
    pub fn new(cx: &Cx, inner: T) -> io::Result<AsyncFd<T>> {
        let watch = network(cx)?.watch(inner.as_fd())?;
        Ok(AsyncFd { watch, inner })
    }

    /// Waits until the descriptor seems ready to be read.
    ///
    /// # Errors
    /// The cancellation, or an error if the runtime of the descriptor is not running.
    ///
    /// # Cancel safety
    /// Cancel-safe: the wait has no side effects.
    #[track_caller]
    pub fn readable<'a>(&'a self, cx: &'a Cx) -> Readiness<'a, T> {
        self.ready(cx, Interest::Readable)
    }

    /// Waits until the descriptor seems ready to be written.
    ///
    /// # Errors
    /// As [`readable`](AsyncFd::readable).
    ///
    /// # Cancel safety
    /// Cancel-safe: the wait has no side effects.
    #[track_caller]
    pub fn writable<'a>(&'a self, cx: &'a Cx) -> Readiness<'a, T> {
        self.ready(cx, Interest::Writable)
    }

    /// Waits until the descriptor seems ready for an operation.
    ///
    /// # Errors
    /// As [`readable`](AsyncFd::readable).
    ///
    /// # Cancel safety
    /// Cancel-safe: the wait has no side effects.
    #[track_caller]
    pub fn ready<'a>(&'a self, cx: &'a Cx, interest: Interest) -> Readiness<'a, T> {
        let operation = Operation::new(cx);
        Readiness { operation, fd: self, interest, slot: WaitSlot::default() }
    }

    /// Waits for readiness and calls `attempt`, until it returns something else than `WouldBlock`.
    /// Returns its result.
    ///
    /// # Errors
    /// The error of the attempt, or as [`readable`](AsyncFd::readable).
    ///
    /// # Cancel safety
    /// A call that is cancelled or dropped has made no successful attempt.
    pub async fn with<R>(
        &self,
        cx: &Cx,
        interest: Interest,
        mut attempt: impl FnMut(&T) -> io::Result<R>,
    ) -> Result<R> {
        loop {
            let guard = self.ready(cx, interest).await?;
            if let Some(answer) = guard.try_io(&mut attempt) {
                return Ok(answer?);
            }
        }
    }

    /// Returns the owner of the descriptor.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns the owner of the descriptor, which must keep the same descriptor. If the descriptor
    /// is closed while it is registered, operations that wait for it wait until they are cancelled.
    /// A new descriptor with the same number is not affected.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Ends the registration and returns the owner of the descriptor.
    pub fn into_inner(self) -> T {
        let AsyncFd { watch, inner } = self;
        drop(watch);
        inner
    }
}

impl<T: AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncFd").field(&self.inner).finish()
    }
}

/// The future of [`AsyncFd::readable`] and [`AsyncFd::writable`]; gives `io::Result<ReadyGuard>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Readiness<'a, T: AsFd> {
    operation: Operation<'a>,
    fd: &'a AsyncFd<T>,
    interest: Interest,
    slot: WaitSlot,
}

impl<'a, T: AsFd> Future for Readiness<'a, T> {
    type Output = Result<ReadyGuard<'a, T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Readiness { operation, fd, interest, slot } = &mut *self;
        let Poll::Ready(proceed) = operation.poll_proceed(context) else {
            fd.watch.yields();
            return Poll::Pending;
        };
        proceed?;
        let direction = interest.direction();
        match fd.watch.poll_ready(direction, slot, context.waker()) {
            Poll::Ready(seen) => {
                charge(COST - 1);
                leave(&fd.watch, direction, slot);
                Poll::Ready(Ok(ReadyGuard { fd, direction, seen: seen? }))
            }
            Poll::Pending => operation.pending(context),
        }
    }
}

impl<T: AsFd> Drop for Readiness<'_, T> {
    fn drop(&mut self) {
        leave(&self.fd.watch, self.interest.direction(), &mut self.slot);
    }
}

impl<T: AsFd> CancelSafe for Readiness<'_, T> {}

impl<T: AsFd> fmt::Debug for Readiness<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").field("interest", &self.interest).finish_non_exhaustive()
    }
}

/// Removes the wait from the socket.
fn leave(watch: &Arc<dyn Socket>, direction: Direction, slot: &mut WaitSlot) {
    if slot.0 != 0 {
        watch.leave(direction, slot);
    }
}

/// A descriptor that was observed to be ready; created by [`AsyncFd::readable`] and
/// [`AsyncFd::writable`].
///
/// The descriptor stays ready until an attempt would block and the readiness is
/// [cleared](ReadyGuard::clear_ready). Until then, waits complete immediately.
#[must_use = "try an operation"]
pub struct ReadyGuard<'a, T: AsFd> {
    fd: &'a AsyncFd<T>,
    direction: Direction,
    seen: ReadyEvent,
}

impl<'a, T: AsFd> ReadyGuard<'a, T> {
    /// Attempts an operation. Returns `None` if it would block, and clears the readiness: the next
    /// wait lasts until the next event. If the end of the stream was reported, the next wait
    /// completes immediately, because the end may have been reported with the last bytes.
    pub fn try_io<R>(&self, attempt: impl FnOnce(&T) -> io::Result<R>) -> Option<io::Result<R>> {
        match attempt(&self.fd.inner) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.clear_ready();
                None
            }
            answer => Some(answer),
        }
    }

    /// Clears the readiness. An event since the guard was created is kept: the descriptor is then
    /// still ready.
    pub fn clear_ready(&self) {
        self.fd.watch.clear_ready(self.direction, self.seen);
    }

    /// Returns the owner of the descriptor.
    pub fn get_ref(&self) -> &'a T {
        &self.fd.inner
    }
}

impl<T: AsFd> fmt::Debug for ReadyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyGuard").field("direction", &self.direction).finish_non_exhaustive()
    }
}
