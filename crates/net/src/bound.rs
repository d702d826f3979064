//! Streams for code that knows the IO traits of others.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_runtime::Cx;
use asx_runtime::net::Direction;

use crate::op::{Attempt, ReadInto, ReadIntoAll, Waiter, WriteFrom, WriteFromAll};
use crate::stream::{OverSocket, ReadSide, WriteSide, end_write};

/// A stream, or half of one, with the context of the task that uses it.
///
/// It implements the traits of `futures-io`, and with the feature `tokio` those of tokio, so that
/// TLS, HTTP and database clients that are written for these run on it. Every poll is an operation
/// of the context's task: a cancel of it ends the poll with an error around the
/// [`Cancelled`](asx_runtime::Cancelled), which
/// [`io::Error::from`](crate::io::Error) finds again; a poll in another task is refused.
///
/// ```
/// use asx::{Cx, io, net::TcpStream};
/// use futures_lite::AsyncReadExt as _;
///
/// async fn greeting(cx: &Cx, stream: TcpStream) -> io::Result<String> {
///     let mut text = String::new();
///     stream.bound(cx).read_to_string(&mut text).await?;
///     Ok(text)
/// }
/// ```
pub struct Bound<S: OverSocket> {
    cx: Cx,
    /// There until it is taken back.
    stream: Option<S>,
    /// From one poll to the next, in each direction.
    read: Waiter,
    write: Waiter,
}

impl<S: OverSocket> Bound<S> {
    #[track_caller]
    pub(crate) fn new(stream: S, cx: &Cx) -> Bound<S> {
        Bound { cx: cx.clone(), stream: Some(stream), read: Waiter::new(), write: Waiter::new() }
    }

    /// The context.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// The stream.
    pub fn get_ref(&self) -> &S {
        self.stream.as_ref().expect("a stream that was taken back is bound no more")
    }

    /// The stream without the context: another task may have it, or it may be bound to another
    /// context.
    pub fn into_inner(mut self) -> S {
        self.leave();
        self.stream.take().expect("a stream is taken back once")
    }

    /// Nothing is waited for any more.
    fn leave(&mut self) {
        if let Some(stream) = &self.stream {
            self.read.leave(stream.socket(), Direction::Read);
            self.write.leave(stream.socket(), Direction::Write);
        }
    }
}

impl<S: OverSocket> Drop for Bound<S> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<S: OverSocket> fmt::Debug for Bound<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("task", &self.cx.id())
            .field("socket", self.get_ref().socket())
            .finish()
    }
}

impl<S: OverSocket> Bound<S> {
    fn poll_read_side<A: Attempt>(
        &mut self,
        context: &mut Context<'_>,
        mut attempt: A,
    ) -> Poll<io::Result<A::Output>> {
        let Bound { cx, stream, read, .. } = self;
        let stream = stream.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        read.poll(cx, stream.socket(), &mut attempt, context).map_err(Into::into)
    }

    fn poll_write_side<A: Attempt>(
        &mut self,
        context: &mut Context<'_>,
        mut attempt: A,
    ) -> Poll<io::Result<A::Output>> {
        let Bound { cx, stream, write, .. } = self;
        let stream = stream.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        write.poll(cx, stream.socket(), &mut attempt, context).map_err(Into::into)
    }
}

impl<S: ReadSide + Unpin> futures_io::AsyncRead for Bound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_side(context, ReadInto { buffer, transport: S::TRANSPORT })
    }

    fn poll_read_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_side(context, ReadIntoAll { buffers, transport: S::TRANSPORT })
    }
}

impl<S: WriteSide + Unpin> futures_io::AsyncWrite for Bound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_side(context, WriteFrom { buffer, transport: S::TRANSPORT })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_side(context, WriteFromAll { buffers, transport: S::TRANSPORT })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(end_write(self.get_ref().socket()))
    }
}

#[cfg(feature = "tokio")]
impl<S: ReadSide + Unpin> tokio::io::AsyncRead for Bound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let unfilled = buffer.initialize_unfilled();
        let read = ReadInto { buffer: unfilled, transport: S::TRANSPORT };
        let count = std::task::ready!(self.poll_read_side(context, read))?;
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
        self.poll_write_side(context, WriteFrom { buffer, transport: S::TRANSPORT })
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_side(context, WriteFromAll { buffers, transport: S::TRANSPORT })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(end_write(self.get_ref().socket()))
    }
}
