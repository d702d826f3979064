//! Streams that implement the IO traits of `futures-io` and tokio.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_runtime::Cx;
use asx_runtime::net::Direction;

use crate::op::{Attempt, ReadInto, ReadIntoAll, SocketWaiter, WriteFrom, WriteFromAll};
use crate::stream::{OverSocket, ReadSide, WriteSide, end_write};

/// A stream, or half of one, with the context of the task that uses it.
///
/// It implements the IO traits of `futures-io` and, with the feature `tokio`, those of tokio. TLS,
/// HTTP and database libraries that use these traits can run on it.
///
/// Every poll is an operation of the context's task. If the task is cancelled, the poll fails with
/// a [`std::io::Error`] that contains the [`Cancelled`](asx_runtime::Cancelled);
/// [`io::Error::from`](crate::io::Error) restores it. A poll by another task fails.
///
/// # Cancel safety
/// A pending poll has moved no bytes. Whether an operation of another library can be dropped is up
/// to that library.
///
/// # Examples
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
    /// `None` after `into_inner`.
    stream: Option<S>,
    /// The wait of the read direction, which lasts from one poll to the next.
    read: SocketWaiter,
    /// The wait of the write direction.
    write: SocketWaiter,
}

impl<S: OverSocket> Bound<S> {
    #[track_caller]
    pub(crate) fn new(stream: S, cx: &Cx) -> Bound<S> {
        Bound {
            cx: cx.clone(),
            stream: Some(stream),
            read: SocketWaiter::new(),
            write: SocketWaiter::new(),
        }
    }

    /// Returns the context.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Returns the stream.
    pub fn get_ref(&self) -> &S {
        self.stream.as_ref().expect("`into_inner` consumes the bound stream")
    }

    /// Returns the stream without the context. It can then be moved to another task, or bound to
    /// another context.
    pub fn into_inner(mut self) -> S {
        self.leave();
        self.stream.take().expect("`into_inner` consumes the bound stream")
    }

    /// Removes the waits of both directions.
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
