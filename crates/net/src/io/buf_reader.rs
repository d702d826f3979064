//! Reading with a buffer, and lines.

use std::io::{Error as IoError, ErrorKind};

use asx_runtime::{CancelSafe, Cx};

use crate::io::traits::CHUNK;
use crate::io::{Lossless, Read, Result, Write};

/// The longest line or section that is waited for, unless set.
const MAX_SECTION: usize = 1024 * 1024;

/// A reader with a buffer.
///
/// What was read and not yet given out stays in the buffer, whatever ends the operation that read
/// it: a cancelled [`read_line`](BufReader::read_line) has lost no part of a line, and `select!`
/// takes it. The buffer grows for a long line, up to a [limit](BufReader::max_section).
#[derive(Debug)]
pub struct BufReader<R> {
    inner: R,
    /// What is in use is `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    max_section: usize,
}

impl<R> BufReader<R> {
    /// A buffer of 16 KiB.
    pub fn new(inner: R) -> BufReader<R> {
        BufReader::with_capacity(CHUNK, inner)
    }

    /// A buffer of this size.
    pub fn with_capacity(capacity: usize, inner: R) -> BufReader<R> {
        let buffer = vec![0; capacity.max(1)];
        BufReader { inner, buffer, start: 0, end: 0, max_section: MAX_SECTION }
    }

    /// How long a line, or what [`read_until`](BufReader::read_until) looks for, may be; 1 MiB
    /// unless set. A longer one is an error ([`InvalidData`](ErrorKind::InvalidData)): a peer that
    /// never ends its line takes no more memory than this and a byte, or than the buffer had.
    #[must_use]
    pub fn max_section(self, bytes: usize) -> BufReader<R> {
        BufReader { max_section: bytes, ..self }
    }

    /// What was read and not given out.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Gives out so many bytes of the [`buffer`](BufReader::buffer), at most all.
    pub fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start.saturating_add(count));
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// What it reads from.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// What it reads from. What is read there is missed here.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// What it reads from. What is in the buffer is lost.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// The lines, one after the other.
    pub fn lines(self) -> Lines<R> {
        Lines { reader: self }
    }

    /// The position after the first `byte` among what is buffered beyond `from`.
    fn position_after(&self, byte: u8, from: usize) -> Option<usize> {
        let found = self.buffer()[from..].iter().position(|other| *other == byte);
        found.map(|at| from + at + 1)
    }
}

impl<R: Read> BufReader<R> {
    /// What is buffered, after a read if that is nothing; nothing: the end.
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

    /// Appends all up to `byte` to `section`, `byte` included, or up to the end: how many bytes.
    ///
    /// All of it is given out at once: cancelled or dropped before that, it has taken nothing.
    ///
    /// # Errors
    /// [`InvalidData`](ErrorKind::InvalidData) if it is longer than it
    /// [may be](BufReader::max_section); nothing is given out then.
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

    /// Appends a line with its end to `line`: how many bytes, 0 at the end.
    ///
    /// All of it is given out at once: cancelled or dropped before that, it has taken nothing.
    ///
    /// # Errors
    /// As [`read_until`](BufReader::read_until); and `InvalidData` if the line is not UTF-8, which
    /// is skipped then.
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

    /// Waits until `byte` is buffered, or the end: how much to give out.
    async fn find(&mut self, cx: &Cx, byte: u8) -> Result<usize> {
        let mut looked_at = 0;
        loop {
            let found = self.position_after(byte, looked_at);
            looked_at = found.unwrap_or_else(|| self.buffer().len());
            // However much of it came at once.
            if looked_at > self.max_section {
                let what = format!("more than {} bytes up to byte {byte}", self.max_section);
                return Err(IoError::new(ErrorKind::InvalidData, what).into());
            }
            if found.is_some() {
                return Ok(looked_at);
            }
            if self.fill_more_up_to(cx, self.max_section.saturating_add(1)).await? == 0 {
                return Ok(looked_at);
            }
        }
    }

    /// Reads once, behind what is buffered: how much, 0 at the end. The buffer is made larger where
    /// it is full.
    pub(crate) async fn fill_more(&mut self, cx: &Cx) -> Result<usize> {
        self.fill_more_up_to(cx, usize::MAX).await
    }

    /// The same with a buffer that is made no larger than `most`, unless it is full and is so.
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
    /// A buffer that is as large as this one is read into directly when nothing is buffered.
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

/// Writes go through: a connection is read with a buffer and written without.
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

/// The lines of a reader; see [`BufReader::lines`].
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
}

impl<R: Read> Lines<R> {
    /// The next line without its end (`\n` or `\r\n`); `None`: there are no more.
    ///
    /// Cancelled or dropped before it is done, it has taken nothing.
    ///
    /// # Errors
    /// As [`BufReader::read_line`].
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
    /// What the lines are read from.
    pub fn get_ref(&self) -> &R {
        self.reader.get_ref()
    }

    /// What the lines are read from: to write to a connection between two lines.
    pub fn get_mut(&mut self) -> &mut R {
        self.reader.get_mut()
    }

    /// The reader, with what it has buffered.
    pub fn into_reader(self) -> BufReader<R> {
        self.reader
    }
}
