//! Streams for code that knows the IO traits of others.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_runtime::net::{Direction, WaitSlot};
use asx_runtime::{Cx, Operation};

use crate::op::{Attempt, ReadInto, ReadIntoAll, WriteFrom, WriteFromAll, leave, poll_attempt};
use crate::split::{OverSocket, ReadSide, WriteSide};

/// A stream, or half of one, with the context of the task that uses it.
///
/// It implements the traits of `futures-io`, and with the feature `tokio` those of tokio, so that
/// TLS, HTTP and database clients that are written for these run on it. Every poll is an operation
/// of the context's task: a cancel of it ends the poll with an error around the
/// [`Cancelled`](asx_runtime::Cancelled), which
/// [`io::Error::from`](crate::io::Error) finds again; a poll in another task is refused.
///
/// ```
/// use asx_net::{Cx, TcpStream, io};
/// use futures_lite::AsyncReadExt as _;
///
/// async fn greeting(cx: &Cx, stream: TcpStream) -> io::Result<String> {
///     let mut text = String::new();
///     stream.bound(cx).read_to_string(&mut text).await?;
///     Ok(text)
/// }
/// ```
pub struct Bound<S: OverSocket> {
    // Before the stream: their operations leave its socket.
    read: Side,
    write: Side,
    cx: Cx,
    stream: S,
}

/// The operation in one direction, from one poll to the next.
struct Side {
    operation: Operation<'static>,
    slot: WaitSlot,
    /// Whether it has waited: then another one follows it.
    waited: bool,
    at: &'static Location<'static>,
}

impl Side {
    #[track_caller]
    fn new(cx: &Cx) -> Side {
        Side {
            operation: Operation::owned(cx.clone()),
            slot: WaitSlot::default(),
            waited: false,
            at: Location::caller(),
        }
    }

    fn poll<A: Attempt>(
        &mut self,
        stream: &impl OverSocket,
        mut attempt: A,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<A::Output>> {
        let Side { operation, slot, waited, .. } = self;
        let polled = poll_attempt(operation, stream.socket(), slot, &mut attempt, context);
        match &polled {
            Poll::Pending => *waited = true,
            // What has waited no longer does: a cancel need not wake it.
            Poll::Ready(_) if *waited => {
                let cx = operation.cx().clone();
                *operation = Operation::owned(cx);
                *waited = false;
            }
            Poll::Ready(_) => {}
        }
        polled.map_err(Into::into)
    }
}

impl<S: OverSocket> Bound<S> {
    #[track_caller]
    pub(crate) fn new(stream: S, cx: &Cx) -> Bound<S> {
        Bound { read: Side::new(cx), write: Side::new(cx), cx: cx.clone(), stream }
    }

    /// The context.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// The stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: OverSocket> Drop for Bound<S> {
    fn drop(&mut self) {
        leave(self.stream.socket(), Direction::Read, &mut self.read.slot);
        leave(self.stream.socket(), Direction::Write, &mut self.write.slot);
    }
}

impl<S: OverSocket> fmt::Debug for Bound<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("task", &self.cx.id())
            .field("socket", self.stream.socket())
            .field("at", &format_args!("{}", self.read.at))
            .finish()
    }
}

impl<S: ReadSide + Unpin> Bound<S> {
    fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.read.poll(&self.stream, ReadInto { buffer, short: S::SHORT }, context)
    }
}

impl<S: WriteSide + Unpin> Bound<S> {
    fn poll_write_from(
        &mut self,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write.poll(&self.stream, WriteFrom { buffer, short: S::SHORT }, context)
    }

    fn poll_write_from_all(
        &mut self,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write.poll(&self.stream, WriteFromAll { buffers, short: S::SHORT }, context)
    }

    /// The direction to the peer is ended; a peer that is gone need not be told.
    fn end_write(&self) -> io::Result<()> {
        match self.stream.socket().shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            ended => ended,
        }
    }
}

impl<S: ReadSide + Unpin> futures_io::AsyncRead for Bound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_into(context, buffer)
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let Bound { read, stream, .. } = &mut *self;
        read.poll(stream, ReadIntoAll { buffers, short: S::SHORT }, context)
    }
}

impl<S: WriteSide + Unpin> futures_io::AsyncWrite for Bound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_from(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_from_all(context, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.end_write())
    }
}

#[cfg(feature = "tokio")]
impl<S: ReadSide + Unpin> tokio::io::AsyncRead for Bound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = std::task::ready!(self.poll_read_into(context, buffer.initialize_unfilled()))?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}

#[cfg(feature = "tokio")]
impl<S: WriteSide + Unpin> tokio::io::AsyncWrite for Bound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_from(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_from_all(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.end_write())
    }
}
