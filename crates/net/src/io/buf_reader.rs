//! Buffered reading, and lines.

use std::io::{Error as IoError, ErrorKind};

use asx_runtime::{CancelSafe, Cx};

use crate::io::traits::CHUNK;
use crate::io::{Lossless, Read, Result, Write};

/// The default of `BufReader::max_section`.
const MAX_SECTION: usize = 1024 * 1024;

/// A buffered reader.
///
/// Bytes that were read and not yet returned stay in the buffer, however the operation ends. A
/// cancelled [`read_line`](BufReader::read_line) therefore loses no part of a line, and `select!`
/// accepts it. The buffer grows for a long line, up to a [limit](BufReader::max_section).
///
/// ```
/// use asx::{Cx, io};
///
/// # let runtime = asx::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(async |cx: Cx| {
/// # let cx = &cx;
/// let mut reader = io::BufReader::new(&b"first line\nrest"[..]);
/// let mut line = String::new();
/// assert_eq!(reader.read_line(cx, &mut line).await?, 11);
/// assert_eq!(line, "first line\n");
/// assert_eq!(reader.buffer(), b"rest");
/// # Ok::<_, io::Error>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BufReader<R> {
    inner: R,
    /// The buffered bytes are `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    max_section: usize,
}

impl<R> BufReader<R> {
    /// Creates a reader with a buffer of 16 KiB.
    pub fn new(inner: R) -> BufReader<R> {
        BufReader::with_capacity(CHUNK, inner)
    }

    /// Creates a reader with a buffer of `capacity` bytes, at least 1.
    pub fn with_capacity(capacity: usize, inner: R) -> BufReader<R> {
        let buffer = vec![0; capacity.max(1)];
        BufReader { inner, buffer, start: 0, end: 0, max_section: MAX_SECTION }
    }

    /// Sets the maximum length of a line or section; 1 MiB by default. A longer one is the error
    /// [`InvalidData`](ErrorKind::InvalidData).
    ///
    /// The limit bounds the memory that a peer can occupy with a line that never ends: the buffer
    /// grows to at most `bytes + 1`, or keeps its capacity if that is larger.
    #[must_use]
    pub fn max_section(self, bytes: usize) -> BufReader<R> {
        BufReader { max_section: bytes, ..self }
    }

    /// Returns the bytes that were read and not yet consumed.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Removes the first `count` bytes of the [`buffer`](BufReader::buffer), or all if there are
    /// fewer.
    pub fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start.saturating_add(count));
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Returns the inner reader.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the inner reader. Bytes that are read from it directly bypass the buffer.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Returns the inner reader. Buffered bytes are lost.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// Converts the reader to a reader of lines.
    pub fn lines(self) -> Lines<R> {
        Lines { reader: self }
    }

    /// Returns the position after the first `byte` in the buffered bytes from `from` on.
    fn position_after(&self, byte: u8, from: usize) -> Option<usize> {
        let found = self.buffer()[from..].iter().position(|other| *other == byte);
        found.map(|at| from + at + 1)
    }
}

impl<R: Read> BufReader<R> {
    /// Returns the buffered bytes. Reads once if there are none; an empty slice is the end.
    ///
    /// # Errors
    /// The error of the inner reader, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: bytes that were read are in the buffer.
    pub fn fill_buf<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> impl CancelSafe<Output = Result<&'a [u8]>> + Send {
        // The buffer is changed after the only await.
        Lossless::new(async move {
            if self.start == self.end {
                self.fill_more(cx).await?;
            }
            Ok(self.buffer())
        })
    }

    /// Reads up to and including `byte`, or to the end. Appends the bytes to `section` and returns
    /// their number.
    ///
    /// # Errors
    /// [`InvalidData`](ErrorKind::InvalidData) if the section is longer than
    /// [`max_section`](BufReader::max_section), the error of the inner reader, or the cancellation.
    /// After an error nothing was consumed.
    ///
    /// # Cancel safety
    /// Cancel-safe: the section is consumed in one step. A call that is cancelled or dropped has
    /// consumed nothing.
    pub fn read_until<'a>(
        &'a mut self,
        cx: &'a Cx,
        byte: u8,
        section: &'a mut Vec<u8>,
    ) -> impl CancelSafe<Output = Result<usize>> + Send {
        Lossless::new(async move {
            let count = self.find(cx, byte).await?;
            section.extend_from_slice(&self.buffer()[..count]);
            self.consume(count);
            Ok(count)
        })
    }

    /// Reads a line and appends it to `line`, with its line end. Returns the number of bytes, 0 at
    /// the end.
    ///
    /// # Errors
    /// As [`read_until`](BufReader::read_until). A line that is not UTF-8 is also
    /// [`InvalidData`](ErrorKind::InvalidData); this line is skipped.
    ///
    /// # Cancel safety
    /// Cancel-safe, as [`read_until`](BufReader::read_until).
    pub fn read_line<'a>(
        &'a mut self,
        cx: &'a Cx,
        line: &'a mut String,
    ) -> impl CancelSafe<Output = Result<usize>> + Send {
        Lossless::new(async move {
            let count = self.find(cx, b'\n').await?;
            let text = std::str::from_utf8(&self.buffer()[..count]);
            let text = text.map(|text| line.push_str(text));
            let text = text.map_err(|error| IoError::new(ErrorKind::InvalidData, error));
            self.consume(count);
            text?;
            Ok(count)
        })
    }

    /// Reads until `byte` or the end is buffered. Returns the length of the section.
    async fn find(&mut self, cx: &Cx, byte: u8) -> Result<usize> {
        let mut searched = 0;
        loop {
            let found = self.position_after(byte, searched);
            searched = found.unwrap_or_else(|| self.buffer().len());
            // Checked for complete sections too: the limit must not depend on the sizes of reads.
            if searched > self.max_section {
                let max = self.max_section;
                let text = format!("no byte {byte} within the maximum section of {max} bytes");
                return Err(IoError::new(ErrorKind::InvalidData, text).into());
            }
            if found.is_some() {
                return Ok(searched);
            }
            if self.fill_more_up_to(cx, self.max_section.saturating_add(1)).await? == 0 {
                return Ok(searched);
            }
        }
    }

    /// Reads once and appends to the buffered bytes. Returns the number of bytes, 0 at the end. A
    /// full buffer is enlarged.
    pub(crate) async fn fill_more(&mut self, cx: &Cx) -> Result<usize> {
        self.fill_more_up_to(cx, usize::MAX).await
    }

    /// As `fill_more`, with a buffer that is enlarged to at most `most` bytes. A full buffer of
    /// that size still grows by one byte.
    async fn fill_more_up_to(&mut self, cx: &Cx, most: usize) -> Result<usize> {
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            } else {
                let len = self.buffer.len();
                self.buffer.resize((2 * len).min(most.max(len + 1)), 0);
            }
        }
        let count = self.inner.read(cx, &mut self.buffer[self.end..]).await?;
        self.end += count;
        Ok(count)
    }
}

impl<R: Read> Read for BufReader<R> {
    /// Reads directly into `buffer` if nothing is buffered and `buffer` is at least as large as the
    /// internal buffer.
    async fn read(&mut self, cx: &Cx, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            cx.checkpoint()?;
            return Ok(0);
        }
        if self.buffer().is_empty() && buffer.len() >= self.buffer.len() {
            return self.inner.read(cx, buffer).await;
        }
        let mut buffered = self.fill_buf(cx).await?;
        let count = buffered.read(cx, buffer).await?;
        self.consume(count);
        Ok(count)
    }
}

/// Writes are passed to the inner stream, unbuffered.
impl<S: Write> Write for BufReader<S> {
    async fn write(&mut self, cx: &Cx, bytes: &[u8]) -> Result<usize> {
        self.inner.write(cx, bytes).await
    }

    async fn flush(&mut self, cx: &Cx) -> Result<()> {
        self.inner.flush(cx).await
    }

    async fn shutdown(&mut self, cx: &Cx) -> Result<()> {
        self.inner.shutdown(cx).await
    }

    fn abort(&mut self) {
        self.inner.abort();
    }
}

/// A reader of lines; created by [`BufReader::lines`].
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
}

impl<R: Read> Lines<R> {
    /// Reads the next line and returns it without its line end (`\n` or `\r\n`), or `None` at the
    /// end.
    ///
    /// # Errors
    /// As [`BufReader::read_line`].
    ///
    /// # Cancel safety
    /// Cancel-safe: a call that is cancelled or dropped has consumed nothing.
    pub fn next<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> impl CancelSafe<Output = Result<Option<String>>> + Send {
        Lossless::new(async move {
            let mut line = String::new();
            if self.reader.read_line(cx, &mut line).await? == 0 {
                return Ok(None);
            }
            if line.ends_with('\n') {
                line.pop();
                if line.ends_with('\r') {
                    line.pop();
                }
            }
            Ok(Some(line))
        })
    }
}

impl<R> Lines<R> {
    /// Returns the inner reader.
    pub fn get_ref(&self) -> &R {
        self.reader.get_ref()
    }

    /// Returns the inner reader, for example to write to a connection between two lines.
    pub fn get_mut(&mut self) -> &mut R {
        self.reader.get_mut()
    }

    /// Returns the buffered reader, with its buffered bytes.
    pub fn into_reader(self) -> BufReader<R> {
        self.reader
    }
}
