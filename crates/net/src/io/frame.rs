//! Whole frames: each goes out entirely or, with its connection, not at all.
//!
//! A frame is a length of four bytes, big-endian, and that many bytes. To send one has two phases,
//! as with channels: [`reserve`](FrameWriter::reserve) waits for room and can be cancelled with
//! nothing at stake; [`FramePermit::send`] commits the frame to the buffer and cannot wait.
//! [`flush`](FrameWriter::flush) has what was committed go out.
//!
//! ```text
//!   reserve ---- permit.send(frame) ---- flush -------------------> the peer
//!      |                                   | cancelled, dropped or failed
//!      cancelled: nothing happened         +-- between two frames: what is committed stays
//!                                          +-- inside of a frame: poisoned
//! ```
//!
//! A connection that is cut off inside of a frame is *poisoned*: its direction to the peer is shut
//! down, so that the peer sees the end of the connection where the rest of the frame would be, and
//! every later use answers [`FrameError::Poisoned`].

use std::collections::VecDeque;
use std::fmt;
use std::io::ErrorKind;

use asx_runtime::{CancelSafe, Cancelled, Cx};

use crate::io::{BufReader, Error, Lossless, Read, Write};

/// How long a frame may be, unless set.
const MAX_FRAME: usize = 8 * 1024 * 1024;
/// How much may be committed before `reserve` waits for some of it to go out, unless set.
const HIGH_WATER: usize = 64 * 1024;
/// The size of a length.
const PREFIX: usize = size_of::<u32>();

/// Why a frame was not sent or received.
#[derive(Debug)]
pub enum FrameError {
    /// The connection has failed.
    Io(std::io::Error),
    /// The task, or the part of it around, was asked to stop.
    Cancelled(Cancelled),
    /// The connection was cut off inside of a frame earlier, or what came was no frame: nothing can
    /// be sent or received any more.
    Poisoned,
    /// The frame is longer than allowed.
    TooLong {
        /// How long it is.
        length: usize,
        /// How long it may be.
        max: usize,
    },
}

impl FrameError {
    /// Whether the task, or the part of it around, was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, FrameError::Cancelled(_))
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Io(error) => error.fmt(f),
            FrameError::Cancelled(cancelled) => cancelled.fmt(f),
            FrameError::Poisoned => f.write_str("the connection was cut off inside of a frame"),
            FrameError::TooLong { length, max } => {
                write!(f, "a frame of {length} bytes, more than {max}")
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

/// Sends frames in two phases; see the [module](crate::io).
///
/// ```
/// use asx::{Cx, io, net::TcpStream};
/// use asx::io::{FrameError, FrameReader, FrameWriter};
///
/// /// Sends a request and waits for its answer.
/// async fn ask(
///     cx: &Cx,
///     stream: &mut TcpStream,
///     request: &[u8],
/// ) -> Result<Option<Vec<u8>>, FrameError> {
///     let (reader, writer) = stream.split();
///     let mut frames = FrameWriter::new(writer);
///     frames.reserve(cx).await?.send(request)?; // whole, or not at all
///     frames.flush(cx).await?; // cut off in the middle, the connection is poisoned
///     FrameReader::new(reader).read(cx).await
/// }
/// ```
#[derive(Debug)]
pub struct FrameWriter<W: Write> {
    inner: W,
    buffer: Vec<u8>,
    /// How much of the buffer is out.
    out: usize,
    /// Where the frames in the buffer end that are not out entirely.
    ends: VecDeque<usize>,
    /// Where the last frame ended that is out entirely.
    last_end: usize,
    high_water: usize,
    max_frame: usize,
    poisoned: bool,
}

impl<W: Write> FrameWriter<W> {
    /// Frames of up to 8 MiB; a `reserve` waits while 64 KiB or more are on their way.
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

    /// How long a frame may be.
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> FrameWriter<W> {
        self.max_frame = bytes.min(u32::MAX as usize);
        self
    }

    /// From how many bytes that are not out on a `reserve` waits.
    #[must_use]
    pub fn high_water(mut self, bytes: usize) -> FrameWriter<W> {
        self.high_water = bytes.max(1);
        self
    }

    /// Waits until a frame may be committed, and has earlier ones go out if they are many.
    ///
    /// Cancelled, it has committed nothing; if a frame was on its way out, that is cut off.
    ///
    /// # Errors
    /// As [`flush`](FrameWriter::flush).
    pub async fn reserve(&mut self, cx: &Cx) -> Result<FramePermit<'_, W>, FrameError> {
        self.check()?;
        cx.checkpoint()?;
        if self.pending() >= self.high_water {
            self.drain(cx).await?;
        }
        Ok(FramePermit { writer: self })
    }

    /// Has all that was committed go out.
    ///
    /// Not cancel-safe: cancelled, dropped or failed inside of a frame, it poisons the connection.
    /// Between two frames it does not: what is committed then waits for the next flush. Whoever
    /// wants a flush to survive a cancel runs it in a [shield](Cx::shield).
    ///
    /// # Errors
    /// The connection has failed, is poisoned, or the task was asked to stop.
    pub async fn flush(&mut self, cx: &Cx) -> Result<(), FrameError> {
        self.check()?;
        self.drain(cx).await?;
        Ok(self.inner.flush(cx).await?)
    }

    /// Flushes, and tells the peer that no more comes.
    ///
    /// # Errors
    /// As [`flush`](FrameWriter::flush).
    pub async fn shutdown(&mut self, cx: &Cx) -> Result<(), FrameError> {
        self.flush(cx).await?;
        Ok(self.inner.shutdown(cx).await?)
    }

    /// Whether the connection was cut off inside of a frame.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }

    /// How many bytes are committed and not out.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.out
    }

    /// What it writes to.
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

    /// The frames that are out entirely are forgotten. Whether another one is partly out.
    fn settle(&mut self) -> bool {
        while let Some(end) = self.ends.pop_front_if(|end| *end <= self.out) {
            self.last_end = end;
        }
        let is_inside = self.out > self.last_end;
        if !is_inside {
            // What is out need not be kept, also if a flush is cut between frames again and again.
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

/// A drain that ends, however it does, is inside of a frame or not.
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

/// Leave to commit one frame; see [`FrameWriter::reserve`]. Dropped, nothing happens.
#[derive(Debug)]
#[must_use = "send a frame"]
pub struct FramePermit<'a, W: Write> {
    writer: &'a mut FrameWriter<W>,
}

impl<W: Write> FramePermit<'_, W> {
    /// Commits a frame: it goes out with the next [`flush`](FrameWriter::flush), or when so much is
    /// committed that a `reserve` waits.
    ///
    /// # Errors
    /// [`FrameError::TooLong`], and nothing was committed.
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

/// Receives what a [`FrameWriter`] sends.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: BufReader<R>,
    max_frame: usize,
    poisoned: bool,
}

impl<R> FrameReader<R> {
    /// Frames of up to 8 MiB.
    pub fn new(inner: R) -> FrameReader<R> {
        FrameReader { reader: BufReader::new(inner), max_frame: MAX_FRAME, poisoned: false }
    }

    /// How long a frame may be. A longer one poisons the reader: nobody knows where it ends.
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> FrameReader<R> {
        self.max_frame = bytes;
        self
    }

    /// What it reads from.
    pub fn get_ref(&self) -> &R {
        self.reader.get_ref()
    }

    /// The length of the frame that comes next, if that has come.
    fn length(&self) -> Option<usize> {
        let prefix = self.reader.buffer().first_chunk::<PREFIX>()?;
        Some(u32::from_be_bytes(*prefix) as usize)
    }
}

impl<R: Read> FrameReader<R> {
    /// The next frame; `None`: the peer sends no more.
    ///
    /// A part of a frame stays in the buffer: cancelled or dropped before it is done, this has
    /// taken nothing, and `select!` takes it.
    ///
    /// # Errors
    /// [`UnexpectedEof`](ErrorKind::UnexpectedEof) if the connection ends inside of a frame;
    /// [`TooLong`](FrameError::TooLong) for a longer one than allowed. After both the reader is
    /// [poisoned](FrameError::Poisoned).
    pub fn read<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> impl CancelSafe<Output = Result<Option<Vec<u8>>, FrameError>> + Send {
        // What has come is in the buffer at every await.
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
