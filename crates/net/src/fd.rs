//! Descriptors of the user's own: pipes, devices, event counters, sockets of other libraries.

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

/// What a descriptor is to be ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// To be read.
    Readable,
    /// To be written.
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

/// Waits until a descriptor seems ready, as it does at first: only an attempt tells. What is then
/// done with it, by [`get_ref`](AsyncFd::get_ref) and without blocking, is the owner's business:
/// set it not to block.
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
///         // Tries, and notes that the descriptor is not ready if it would block.
///         if let Some(read) = guard.try_io(|mut pipe| pipe.read_exact(&mut byte)) {
///             read?;
///             return Ok(byte[0]);
///         }
///     }
/// }
/// ```
pub struct AsyncFd<T: AsFd> {
    // Dropped before the descriptor.
    watch: Arc<dyn Socket>,
    inner: T,
}

impl<T: AsFd> AsyncFd<T> {
    /// Watches a descriptor, which is not to block.
    ///
    /// # Errors
    /// The host has no such descriptors, or this one cannot be watched: a file on a disk, or one
    /// that is watched already.
    pub fn new(cx: &Cx, inner: T) -> io::Result<AsyncFd<T>> {
        let watch = network(cx)?.watch(inner.as_fd())?;
        Ok(AsyncFd { watch, inner })
    }

    /// Waits until the descriptor seems ready to be read. Cancel-safe.
    #[track_caller]
    pub fn readable<'a>(&'a self, cx: &'a Cx) -> Readiness<'a, T> {
        self.ready(cx, Interest::Readable)
    }

    /// Waits until the descriptor seems ready to be written. Cancel-safe.
    #[track_caller]
    pub fn writable<'a>(&'a self, cx: &'a Cx) -> Readiness<'a, T> {
        self.ready(cx, Interest::Writable)
    }

    /// Waits until the descriptor seems ready. Cancel-safe.
    #[track_caller]
    pub fn ready<'a>(&'a self, cx: &'a Cx, interest: Interest) -> Readiness<'a, T> {
        let operation = Operation::new(cx);
        Readiness { operation, fd: self, interest, slot: WaitSlot::default() }
    }

    /// Waits until the descriptor is ready and `attempt` does not answer `WouldBlock`: what it
    /// answers. As cancel-safe as an attempt is that is not made.
    ///
    /// # Errors
    /// Those of the attempt, or a cancel.
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

    /// What the descriptor belongs to.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// What the descriptor belongs to. Its descriptor must stay the same: if it is closed while it
    /// is watched, nobody is told, and who waits for it waits until a cancel. Nothing else is
    /// touched, whoever gets its number.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// What the descriptor belongs to, which is no longer watched.
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

/// The wait is over.
fn leave(watch: &Arc<dyn Socket>, direction: Direction, slot: &mut WaitSlot) {
    if slot.0 != 0 {
        watch.leave(direction, slot);
    }
}

/// A descriptor that was seen to be ready. That stays so until an operation has found otherwise and
/// [says so](ReadyGuard::clear_ready); without that, the next wait is over at once.
#[must_use = "try an operation"]
pub struct ReadyGuard<'a, T: AsFd> {
    fd: &'a AsyncFd<T>,
    direction: Direction,
    seen: ReadyEvent,
}

impl<'a, T: AsFd> ReadyGuard<'a, T> {
    /// Tries an operation. `None`: it would block, so the descriptor was not ready after all, and
    /// the next wait is for news; but where an end was told, the next one is over at once, as that
    /// end may have been told with the last bytes.
    pub fn try_io<R>(&self, attempt: impl FnOnce(&T) -> io::Result<R>) -> Option<io::Result<R>> {
        match attempt(&self.fd.inner) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.clear_ready();
                None
            }
            answer => Some(answer),
        }
    }

    /// The descriptor is not ready any more. What has happened since it was seen to be counts: then
    /// it still is.
    pub fn clear_ready(&self) {
        self.fd.watch.clear_ready(self.direction, self.seen);
    }

    /// What the descriptor belongs to.
    pub fn get_ref(&self) -> &'a T {
        &self.fd.inner
    }
}

impl<T: AsFd> fmt::Debug for ReadyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyGuard").field("direction", &self.direction).finish_non_exhaustive()
    }
}
