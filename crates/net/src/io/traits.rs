//! What streams have in common.

use std::future::Future;
use std::io::ErrorKind;

use asx_runtime::Cx;

use crate::io::{Error, Result, WriteAllError};

/// Bytes come out of it.
///
/// ```
/// use asx::{Cx, io};
///
/// /// A reader that answers each read with one letter.
/// struct Letters(std::ops::RangeInclusive<u8>);
///
/// impl io::Read for Letters {
///     async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> io::Result<usize> {
///         cx.checkpoint()?;
///         let Some(first) = buffer.first_mut() else { return Ok(0) };
///         let Some(letter) = self.0.next() else { return Ok(0) };
///         *first = letter;
///         Ok(1)
///     }
/// }
/// ```
pub trait Read: Send {
    /// Takes some bytes; 0: there are no more, or the buffer is empty.
    ///
    /// A read that is cancelled, or whose future is dropped before it is done, has taken nothing.
    /// Whoever implements this keeps that promise: buffers, frames and lines are built on it.
    fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> impl Future<Output = Result<usize>> + Send;

    /// Fills the buffer; [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the bytes end before.
    ///
    /// Not cancel-safe: what was read before a cancel is in the buffer, and nobody says how much.
    /// Bytes that must not be lost are read through a [`BufReader`](crate::io::BufReader) or
    /// [`FrameReader`](crate::io::FrameReader).
    fn read_exact(
        &mut self,
        cx: &Cx,
        buffer: &mut [u8],
    ) -> impl Future<Output = Result<()>> + Send {
        async move {
            let mut filled = 0;
            while filled < buffer.len() {
                match self.read(cx, &mut buffer[filled..]).await? {
                    0 => return Err(ErrorKind::UnexpectedEof.into()),
                    count => filled += count,
                }
            }
            Ok(())
        }
    }

    /// Appends all that comes until the end: how much.
    ///
    /// Cancel-safe in this sense: what was read is in `bytes`.
    fn read_to_end(
        &mut self,
        cx: &Cx,
        bytes: &mut Vec<u8>,
    ) -> impl Future<Output = Result<usize>> + Send {
        async move {
            let before = bytes.len();
            let mut chunk = vec![0; CHUNK];
            loop {
                match self.read(cx, &mut chunk).await? {
                    0 => return Ok(bytes.len() - before),
                    count => bytes.extend_from_slice(&chunk[..count]),
                }
            }
        }
    }
}

/// How much is moved at once.
pub(crate) const CHUNK: usize = 16 * 1024;

/// Bytes go into it.
pub trait Write: Send {
    /// Gives some bytes: how many were taken.
    ///
    /// A write that is cancelled, or whose future is dropped before it is done, has given nothing.
    /// Whoever implements this keeps that promise.
    fn write(&mut self, cx: &Cx, bytes: &[u8]) -> impl Future<Output = Result<usize>> + Send;

    /// Sends what is buffered on its way. It has nothing to do where nothing is buffered.
    fn flush(&mut self, _cx: &Cx) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Flushes, and tells the other side that no more comes.
    fn shutdown(&mut self, cx: &Cx) -> impl Future<Output = Result<()>> + Send {
        self.flush(cx)
    }

    /// Ends it at once, since what was written last is cut off and nothing may follow it. Nothing,
    /// unless there is a connection: of that, this direction is shut down.
    fn abort(&mut self) {}

    /// Gives all bytes.
    ///
    /// # Errors
    /// Not cancel-safe: [`WriteAllError::written`] tells how many went out. The error says nothing
    /// more if the future is dropped: do not have it dropped, or write frames
    /// ([`FrameWriter`](crate::io::FrameWriter)).
    fn write_all(
        &mut self,
        cx: &Cx,
        bytes: &[u8],
    ) -> impl Future<Output = std::result::Result<(), WriteAllError>> + Send {
        async move {
            let mut written = 0;
            while written < bytes.len() {
                let error = match self.write(cx, &bytes[written..]).await {
                    Ok(0) => Error::from(ErrorKind::WriteZero),
                    Ok(count) => {
                        written += count;
                        continue;
                    }
                    Err(error) => error,
                };
                return Err(WriteAllError { written, error });
            }
            Ok(())
        }
    }
}

/// A connection whose two directions can be used at the same time.
pub trait Duplex: Send {
    /// The direction from the peer.
    type Reader<'a>: Read
    where
        Self: 'a;

    /// The direction to the peer.
    type Writer<'a>: Write
    where
        Self: 'a;

    /// Both directions, for as long as they are borrowed.
    fn split(&mut self) -> (Self::Reader<'_>, Self::Writer<'_>);
}

impl<R: Read> Read for &mut R {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        (**self).read(cx, buffer).await
    }
}

impl<W: Write> Write for &mut W {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        (**self).write(cx, bytes).await
    }

    async fn flush(&mut self, cx: &Cx) -> Result<()> {
        (**self).flush(cx).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        (**self).shutdown(cx).await
    }

    fn abort(&mut self) {
        (**self).abort();
    }
}

/// What is left of the slice is what is left to read.
impl Read for &[u8] {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        cx.checkpoint()?;
        let count = buffer.len().min(self.len());
        let (head, tail) = self.split_at(count);
        buffer[..count].copy_from_slice(head);
        *self = tail;
        Ok(count)
    }
}

impl Write for Vec<u8> {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        cx.checkpoint()?;
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}
