//! The traits of streams.

use std::future::Future;
use std::io::ErrorKind;

use asx_runtime::Cx;

use crate::io::{Error, Result, WriteAllError};

/// A source of bytes.
///
/// ```
/// use asx::{Cx, io};
///
/// /// A reader that returns one letter per read.
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
    /// Reads bytes into `buffer` and returns how many were read. Returns 0 at the end, or if
    /// `buffer` is empty.
    ///
    /// # Errors
    /// The error of the source, or the cancellation.
    ///
    /// # Cancel safety
    /// Implementations must be cancel-safe: a read that is cancelled or dropped has consumed no
    /// bytes. Buffers, lines and frames rely on it.
    fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> impl Future<Output = Result<usize>> + Send;

    /// Reads until `buffer` is full.
    ///
    /// # Errors
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the source ends before, otherwise as
    /// [`read`](Read::read).
    ///
    /// # Cancel safety
    /// Not cancel-safe: the number of bytes that a cancelled call has read is lost. Use a
    /// [`BufReader`](crate::io::BufReader) or [`FrameReader`](crate::io::FrameReader) to keep them.
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

    /// Reads to the end, appends the bytes to `bytes` and returns their number.
    ///
    /// # Errors
    /// As [`read`](Read::read).
    ///
    /// # Cancel safety
    /// No bytes are lost: those read before the cancellation are in `bytes`. `select!` does not
    /// accept the future, because its result is lost.
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

/// The size of the buffers of copies, readers and writers.
pub(crate) const CHUNK: usize = 16 * 1024;

/// A destination of bytes.
///
/// ```
/// use asx::{Cx, io};
///
/// /// A writer that counts bytes and discards them.
/// struct Count(usize);
///
/// impl io::Write for Count {
///     async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> io::Result<usize> {
///         cx.checkpoint()?;
///         self.0 += bytes.len();
///         Ok(bytes.len())
///     }
/// }
/// ```
pub trait Write: Send {
    /// Writes some of `bytes` and returns how many were accepted.
    ///
    /// # Errors
    /// The error of the destination, or the cancellation.
    ///
    /// # Cancel safety
    /// Implementations must be cancel-safe: a write that is cancelled or dropped has accepted no
    /// bytes.
    fn write(&mut self, cx: &Cx, bytes: &[u8]) -> impl Future<Output = Result<usize>> + Send;

    /// Writes buffered bytes. The default does nothing, which is correct for unbuffered writers.
    ///
    /// # Errors
    /// As [`write`](Write::write).
    ///
    /// # Cancel safety
    /// Implementations keep the bytes that were not written, so a cancelled flush can be repeated.
    fn flush(&mut self, _cx: &Cx) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Flushes, then ends this direction: the peer reads the end of the stream. The default only
    /// flushes.
    ///
    /// # Errors
    /// As [`write`](Write::write).
    ///
    /// # Cancel safety
    /// As [`flush`](Write::flush): a cancelled call can be repeated.
    fn shutdown(&mut self, cx: &Cx) -> impl Future<Output = Result<()>> + Send {
        self.flush(cx)
    }

    /// Ends this direction immediately, without flushing: the last write was cut off, and no bytes
    /// may follow it. Connections shut down this direction; the default does nothing.
    fn abort(&mut self) {}

    /// Writes all bytes.
    ///
    /// # Errors
    /// A [`WriteAllError`] with the number of bytes that were written before the error or the
    /// cancellation. A writer that accepts no bytes is the error
    /// [`WriteZero`](ErrorKind::WriteZero).
    ///
    /// # Cancel safety
    /// Not cancel-safe. A cancelled call returns the number of bytes it has written; if the future
    /// is dropped, the number is lost. Use a [`FrameWriter`](crate::io::FrameWriter) if the future
    /// may be dropped.
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

/// A connection with two directions that can be used at the same time.
pub trait Duplex: Send {
    /// The read half.
    type Reader<'a>: Read
    where
        Self: 'a;

    /// The write half.
    type Writer<'a>: Write
    where
        Self: 'a;

    /// Borrows the two directions.
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

/// Reads from the front of the slice and advances it.
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
