//! Length-prefixed frames: the peer receives whole frames, or the end of the connection.
//!
//! A frame is a length of four bytes, big-endian, followed by that many bytes. Sending has two
//! phases, as with channels. [`reserve`](FrameWriter::reserve) waits for space and can be cancelled
//! without effect. [`FramePermit::send`] commits the frame to the buffer and does not wait.
//! [`flush`](FrameWriter::flush) writes the committed frames.
//!
//! ```text
//!   reserve ---- permit.send(frame) ---- flush -------------------> the peer
//!      |                                   | cancelled, dropped or failed
//!      cancelled: no effect                +-- between two frames: committed frames are kept
//!                                          +-- inside a frame: poisoned
//! ```
//!
//! A connection that is cut off inside a frame is *poisoned*. Its direction to the peer is shut
//! down, so the peer reads the end of the stream in place of the rest of the frame. Every later use
//! returns [`FrameError::Poisoned`].

use std::collections::VecDeque;
use std::fmt;
use std::io::ErrorKind;

use asx_runtime::{CancelSafe, Cancelled, Cx};

use crate::io::{BufReader, Error, Lossless, Read, Write};

/// The default of `max_frame`.
const MAX_FRAME: usize = 8 * 1024 * 1024;
/// The default of `FrameWriter::high_water`.
const HIGH_WATER: usize = 64 * 1024;
/// The size of the length prefix.
const PREFIX: usize = size_of::<u32>();

/// The error of sending or receiving a frame.
#[derive(Debug)]
pub enum FrameError {
    /// The error of the connection.
    Io(std::io::Error),
    /// The task, or a scope or timeout around the operation, was cancelled.
    Cancelled(Cancelled),
    /// The connection was cut off inside a frame earlier, or an invalid frame was received. It can
    /// send or receive no more frames.
    Poisoned,
    /// The frame is longer than the maximum.
    TooLong {
        /// The length of the frame.
        length: usize,
        /// The maximum length.
        max: usize,
    },
}

impl FrameError {
    /// Returns true if the operation was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, FrameError::Cancelled(_))
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Io(error) => error.fmt(f),
            FrameError::Cancelled(cancelled) => cancelled.fmt(f),
            FrameError::Poisoned => {
                f.write_str("an earlier frame was cut off or too long; open a new connection")
            }
            FrameError::TooLong { length, max } => {
                write!(f, "a frame of {length} bytes is longer than the maximum of {max}")
            }
        }
    }
}

impl std::error::Error for FrameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FrameError::Io(error) => Some(error),
            FrameError::Cancelled(cancelled) => Some(cancelled),
            FrameError::Poisoned | FrameError::TooLong { .. } => None,
        }
    }
}

impl From<Error> for FrameError {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => FrameError::Io(error),
            Error::Cancelled(cancelled) => FrameError::Cancelled(cancelled),
        }
    }
}

impl From<Cancelled> for FrameError {
    fn from(cancelled: Cancelled) -> Self {
        FrameError::Cancelled(cancelled)
    }
}

impl From<FrameError> for Error {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) => Error::Io(error),
            FrameError::Cancelled(cancelled) => Error::Cancelled(cancelled),
            FrameError::Poisoned => Error::Io(std::io::Error::new(ErrorKind::BrokenPipe, error)),
            FrameError::TooLong { .. } => {
                Error::Io(std::io::Error::new(ErrorKind::InvalidData, error))
            }
        }
    }
}

/// Sends frames in two phases: [`reserve`](FrameWriter::reserve) waits, [`FramePermit::send`]
/// commits.
///
/// A frame is a length of four bytes, big-endian, followed by that many bytes. Committed frames are
/// written by [`flush`](FrameWriter::flush). A connection that is cut off inside a frame is
/// *poisoned*: its direction to the peer is shut down, and every later use returns
/// [`FrameError::Poisoned`].
///
/// ```
/// use asx::{Cx, io, net::TcpStream};
/// use asx::io::{FrameError, FrameReader, FrameWriter};
///
/// /// Sends a request and reads the answer.
/// async fn ask(
///     cx: &Cx,
///     stream: &mut TcpStream,
///     request: &[u8],
/// ) -> Result<Option<Vec<u8>>, FrameError> {
///     let (reader, writer) = stream.split();
///     let mut frames = FrameWriter::new(writer);
///     frames.reserve(cx).await?.send(request)?; // commits the whole frame
///     frames.flush(cx).await?; // poisons the connection if it is cut off inside the frame
///     FrameReader::new(reader).read(cx).await
/// }
/// ```
#[derive(Debug)]
pub struct FrameWriter<W: Write> {
    inner: W,
    buffer: Vec<u8>,
    /// The number of bytes at the front of the buffer that are written already.
    out: usize,
    /// The ends of the frames in the buffer that are not written completely.
    ends: VecDeque<usize>,
    /// The end of the last frame that is written completely.
    last_end: usize,
    high_water: usize,
    max_frame: usize,
    poisoned: bool,
}

impl<W: Write> FrameWriter<W> {
    /// Creates a writer for frames of up to 8 MiB, with a high-water mark of 64 KiB.
    pub fn new(inner: W) -> FrameWriter<W> {
        FrameWriter {
            inner,
            buffer: Vec::new(),
            out: 0,
            ends: VecDeque::new(),
            last_end: 0,
            high_water: HIGH_WATER,
            max_frame: MAX_FRAME,
            poisoned: false,
        }
    }

    /// Sets the maximum length of a frame.
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> FrameWriter<W> {
        self.max_frame = bytes.min(u32::MAX as usize);
        self
    }

    /// Sets the number of pending bytes from which `reserve` writes before it returns.
    #[must_use]
    pub fn high_water(mut self, bytes: usize) -> FrameWriter<W> {
        self.high_water = bytes.max(1);
        self
    }

    /// Waits until a frame may be committed. Writes the committed frames first if they have reached
    /// the [high-water mark](FrameWriter::high_water).
    ///
    /// # Errors
    /// As [`flush`](FrameWriter::flush).
    ///
    /// # Cancel safety
    /// Not cancel-safe: it commits nothing, but cancelling it while it writes a frame poisons the
    /// connection.
    pub async fn reserve(&mut self, cx: &Cx) -> Result<FramePermit<'_, W>, FrameError> {
        self.check()?;
        cx.checkpoint()?;
        if self.pending() >= self.high_water {
            self.drain(cx).await?;
        }
        Ok(FramePermit { writer: self })
    }

    /// Writes all committed frames.
    ///
    /// # Errors
    /// [`FrameError::Io`] if the connection fails, [`FrameError::Poisoned`] if it is poisoned, or
    /// [`FrameError::Cancelled`].
    ///
    /// # Cancel safety
    /// Not cancel-safe: a flush that is cancelled, dropped or fails inside a frame poisons the
    /// connection. Between two frames it does not; the remaining frames are written by the next
    /// flush. Run it in a [shield](Cx::shield) to complete it after a cancellation.
    pub async fn flush(&mut self, cx: &Cx) -> Result<(), FrameError> {
        self.check()?;
        self.drain(cx).await?;
        Ok(self.inner.flush(cx).await?)
    }

    /// Flushes, then ends this direction: the peer reads the end of the stream.
    ///
    /// # Errors
    /// As [`flush`](FrameWriter::flush).
    ///
    /// # Cancel safety
    /// Not cancel-safe, as [`flush`](FrameWriter::flush).
    pub async fn shutdown(&mut self, cx: &Cx) -> Result<(), FrameError> {
        self.flush(cx).await?;
        Ok(self.inner.shutdown(cx).await?)
    }

    /// Returns true if the connection was cut off inside a frame.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// Returns the number of bytes that are committed and not written yet.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.out
    }

    /// Returns the inner writer.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    fn check(&self) -> Result<(), FrameError> {
        if self.poisoned { Err(FrameError::Poisoned) } else { Ok(()) }
    }

    async fn drain(&mut self, cx: &Cx) -> Result<(), FrameError> {
        let draining = Draining { writer: self };
        let FrameWriter { inner, buffer, out, .. } = &mut *draining.writer;
        while *out < buffer.len() {
            match inner.write(cx, &buffer[*out..]).await? {
                0 => return Err(FrameError::Io(ErrorKind::WriteZero.into())),
                count => *out += count,
            }
        }
        Ok(())
    }

    /// Removes completely written frames from the bookkeeping. Returns true if another frame is
    /// partly written.
    fn settle(&mut self) -> bool {
        while let Some(end) = self.ends.pop_front_if(|end| *end <= self.out) {
            self.last_end = end;
        }
        let is_inside = self.out > self.last_end;
        if !is_inside {
            // Written bytes are removed here, not only after a complete flush: flushes that are cut
            // off between frames again and again must not let the buffer grow.
            self.buffer.drain(..self.out);
            self.ends.iter_mut().for_each(|end| *end -= self.out);
            self.out = 0;
            self.last_end = 0;
        }
        is_inside
    }

    fn poison(&mut self) {
        self.poisoned = true;
        self.inner.abort();
        self.buffer = Vec::new();
        self.ends = VecDeque::new();
        self.out = 0;
        self.last_end = 0;
    }
}

/// Poisons the writer if its drain ends inside a frame, however it ends.
struct Draining<'a, W: Write> {
    writer: &'a mut FrameWriter<W>,
}

impl<W: Write> Drop for Draining<'_, W> {
    fn drop(&mut self) {
        if self.writer.settle() {
            self.writer.poison();
        }
    }
}

/// A permit to commit one frame; created by [`FrameWriter::reserve`]. Dropping it has no effect.
#[derive(Debug)]
#[must_use = "send a frame"]
pub struct FramePermit<'a, W: Write> {
    writer: &'a mut FrameWriter<W>,
}

impl<W: Write> FramePermit<'_, W> {
    /// Commits a frame. It is written by the next [`flush`](FrameWriter::flush), or by a
    /// [`reserve`](FrameWriter::reserve) at the high-water mark.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if the frame is longer than the maximum; nothing is committed.
    pub fn send(self, frame: &[u8]) -> Result<(), FrameError> {
        let writer = self.writer;
        let length = frame.len();
        let max = writer.max_frame;
        let prefix = u32::try_from(length).ok().filter(|_| length <= max);
        let prefix = prefix.ok_or(FrameError::TooLong { length, max })?;
        writer.buffer.extend_from_slice(&prefix.to_be_bytes());
        writer.buffer.extend_from_slice(frame);
        writer.ends.push_back(writer.buffer.len());
        Ok(())
    }
}

/// Receives the frames that a [`FrameWriter`] sends.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: BufReader<R>,
    max_frame: usize,
    poisoned: bool,
}

impl<R> FrameReader<R> {
    /// Creates a reader for frames of up to 8 MiB.
    pub fn new(inner: R) -> FrameReader<R> {
        FrameReader { reader: BufReader::new(inner), max_frame: MAX_FRAME, poisoned: false }
    }

    /// Sets the maximum length of a frame. A longer one poisons the reader, which does not buffer
    /// it and so cannot find the next frame.
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> FrameReader<R> {
        self.max_frame = bytes;
        self
    }

    /// Returns the inner reader.
    pub fn get_ref(&self) -> &R {
        self.reader.get_ref()
    }

    /// Returns the length of the next frame if its prefix is buffered.
    fn length(&self) -> Option<usize> {
        let prefix = self.reader.buffer().first_chunk::<PREFIX>()?;
        Some(u32::from_be_bytes(*prefix) as usize)
    }
}

impl<R: Read> FrameReader<R> {
    /// Reads the next frame, or returns `None` if the peer has ended the connection between two
    /// frames.
    ///
    /// # Errors
    /// - [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the connection ends inside a frame, and
    ///   [`TooLong`](FrameError::TooLong) for a frame that is longer than the maximum. After these
    ///   the reader is [poisoned](FrameError::Poisoned).
    /// - The error of the connection, or the cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: a part of a frame stays in the buffer. A call that is cancelled or dropped has
    /// consumed nothing.
    pub fn read<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> impl CancelSafe<Output = Result<Option<Vec<u8>>, FrameError>> + Send {
        // At every await, the bytes that were read are in the buffer.
        Lossless::new(async move {
            if self.poisoned {
                return Err(FrameError::Poisoned);
            }
            loop {
                let max = self.max_frame;
                match self.length() {
                    Some(length) if length > max => {
                        self.poisoned = true;
                        return Err(FrameError::TooLong { length, max });
                    }
                    Some(length) if self.reader.buffer().len() >= PREFIX + length => {
                        let frame = self.reader.buffer()[PREFIX..PREFIX + length].to_vec();
                        self.reader.consume(PREFIX + length);
                        return Ok(Some(frame));
                    }
                    _ => {}
                }
                if self.reader.fill_more(cx).await? == 0 {
                    if self.reader.buffer().is_empty() {
                        return Ok(None);
                    }
                    self.poisoned = true;
                    return Err(FrameError::Io(ErrorKind::UnexpectedEof.into()));
                }
            }
        })
    }
}
