//! Buffered writing.

use asx_runtime::Cx;

use crate::io::traits::CHUNK;
use crate::io::{Read, Result, Write};
use std::io::ErrorKind;

/// A buffered writer, which combines small writes.
///
/// Flush it or shut it down at the end: bytes that are buffered when it is dropped are lost,
/// because a drop cannot wait. Bytes that a cancelled flush has not written stay in the buffer, in
/// order.
///
/// ```
/// use asx::{Cx, io};
/// use asx::io::Write as _;
///
/// # let runtime = asx::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async |cx: Cx| {
/// # let cx = &cx;
/// let mut writer = io::BufWriter::new(Vec::new());
/// writer.write_all(cx, b"hello ").await?;
/// writer.write_all(cx, b"world").await?;
/// assert_eq!(writer.buffer(), b"hello world");
/// writer.flush(cx).await?;
/// assert_eq!(writer.get_ref(), b"hello world");
/// # Ok::<_, io::Error>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BufWriter<W> {
    inner: W,
    buffer: Vec<u8>,
    /// The number of bytes at the front of the buffer that are written already.
    start: usize,
    capacity: usize,
}

impl<W> BufWriter<W> {
    /// Creates a writer with a buffer of 16 KiB.
    pub fn new(inner: W) -> BufWriter<W> {
        BufWriter::with_capacity(CHUNK, inner)
    }

    /// Creates a writer with a buffer of `capacity` bytes, at least 1.
    pub fn with_capacity(capacity: usize, inner: W) -> BufWriter<W> {
        let capacity = capacity.max(1);
        BufWriter { inner, buffer: Vec::with_capacity(capacity), start: 0, capacity }
    }

    /// Returns the bytes that are not written yet.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Returns the inner writer.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// Returns the inner writer. Bytes that are written to it directly overtake buffered ones.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Returns the inner writer and the bytes that are not written yet.
    pub fn into_parts(mut self) -> (W, Vec<u8>) {
        self.buffer.drain(..self.start);
        (self.inner, self.buffer)
    }
}

impl<W: Write> BufWriter<W> {
    /// Writes the buffered bytes. Bytes that were written are removed from the buffer, also if this
    /// is cancelled or fails.
    async fn drain(&mut self, cx: &Cx) -> Result<()> {
        while self.start < self.buffer.len() {
            match self.inner.write(cx, &self.buffer[self.start..]).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => self.start += count,
            }
        }
        self.buffer.clear();
        self.start = 0;
        Ok(())
    }
}

impl<W: Write> Write for BufWriter<W> {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        cx.checkpoint()?;
        if self.buffer().len() + bytes.len() > self.capacity {
            self.drain(cx).await?;
            if bytes.len() >= self.capacity {
                return self.inner.write(cx, bytes).await;
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self, cx: &Cx) -> Result<()> {
        self.drain(cx).await?;
        self.inner.flush(cx).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        self.drain(cx).await?;
        self.inner.shutdown(cx).await
    }

    fn abort(&mut self) {
        self.inner.abort();
    }
}

/// Reads are passed to the inner stream, unbuffered.
impl<S: Read> Read for BufWriter<S> {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        self.inner.read(cx, buffer).await
    }
}
