//! Writing with a buffer.

use asx_runtime::Cx;

use crate::io::traits::CHUNK;
use crate::io::{Read, Result, Write};
use std::io::ErrorKind;

/// A writer with a buffer: small writes go out together.
///
/// Flush it at the end, or shut it down: what is buffered when it is dropped is lost, since a drop
/// cannot wait. What a cancelled flush has not written stays in the buffer, in its place.
#[derive(Debug)]
pub struct BufWriter<W> {
    inner: W,
    buffer: Vec<u8>,
    /// What of the buffer is out already.
    start: usize,
    capacity: usize,
}

impl<W> BufWriter<W> {
    /// A buffer of 16 KiB.
    pub fn new(inner: W) -> BufWriter<W> {
        BufWriter::with_capacity(CHUNK, inner)
    }

    /// A buffer of this size.
    pub fn with_capacity(capacity: usize, inner: W) -> BufWriter<W> {
        let capacity = capacity.max(1);
        BufWriter { inner, buffer: Vec::with_capacity(capacity), start: 0, capacity }
    }

    /// What is not yet out.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// What it writes to.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// What it writes to. What is written there overtakes what is buffered here.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// What it writes to, and what was not yet out.
    pub fn into_parts(mut self) -> (W, Vec<u8>) {
        self.buffer.drain(..self.start);
        (self.inner, self.buffer)
    }
}

impl<W: Write> BufWriter<W> {
    /// Writes what is buffered. What is out is no longer in the buffer, however this ends.
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

/// Reads go through: a connection is written with a buffer and read without, or with another.
impl<S: Read> Read for BufWriter<S> {
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        self.inner.read(cx, buffer).await
    }
}
