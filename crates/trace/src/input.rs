//! Byte sources and sinks: the only module that depends on whether `std` is available.

use crate::error::ErrorKind;
use alloc::vec::Vec;

/// A source of bytes: any `std::io::Read`; without `std`, a byte slice.
pub trait Source {
    /// Reads some bytes into `buffer` and returns their number; 0 at the end.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind>;
}

/// A sink of bytes: any `std::io::Write`; without `std`, a vector.
pub trait Sink {
    /// Writes all of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ErrorKind>;

    /// Flushes buffered bytes.
    fn flush(&mut self) -> Result<(), ErrorKind>;
}

#[cfg(feature = "std")]
mod with_std {
    use super::{ErrorKind, Sink, Source};
    use std::io::{Error, ErrorKind as IoKind, Read, Write};
    use std::string::ToString;

    impl<R: Read> Source for R {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
            loop {
                match Read::read(self, buffer) {
                    Err(error) if error.kind() == IoKind::Interrupted => {}
                    done => return done.map_err(failed),
                }
            }
        }
    }

    impl<W: Write> Sink for W {
        fn write(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
            self.write_all(bytes).map_err(failed)
        }

        fn flush(&mut self) -> Result<(), ErrorKind> {
            Write::flush(self).map_err(failed)
        }
    }

    fn failed(error: Error) -> ErrorKind {
        ErrorKind::Io { message: error.to_string() }
    }
}

#[cfg(not(feature = "std"))]
impl Source for &[u8] {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        let count = self.len().min(buffer.len());
        let (now, later) = self.split_at(count);
        buffer[..count].copy_from_slice(now);
        *self = later;
        Ok(count)
    }
}

#[cfg(not(feature = "std"))]
impl Sink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

/// The size of a read request.
const PIECE: usize = 32 << 10;

/// A buffered source that counts bytes.
#[derive(Debug)]
pub(crate) struct Input<S> {
    source: S,
    buffer: Vec<u8>,
    /// The number of bytes in the buffer that are consumed.
    taken: usize,
    /// The number of bytes in the buffer that were read.
    filled: usize,
    /// The number of bytes consumed since the start.
    pub(crate) offset: u64,
}

impl<S: Source> Input<S> {
    pub(crate) fn new(source: S) -> Input<S> {
        Input { source, buffer: alloc::vec![0; PIECE], taken: 0, filled: 0, offset: 0 }
    }

    /// Returns the buffered bytes: at least one, unless the source is at its end.
    pub(crate) fn peek(&mut self) -> Result<&[u8], ErrorKind> {
        if self.taken == self.filled {
            self.filled = self.source.read(&mut self.buffer)?.min(self.buffer.len());
            self.taken = 0;
        }
        Ok(&self.buffer[self.taken..self.filled])
    }

    pub(crate) fn is_at_end(&mut self) -> Result<bool, ErrorKind> {
        Ok(self.peek()?.is_empty())
    }

    fn take(&mut self, count: usize, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.buffer[self.taken..self.taken + count]);
        self.taken += count;
        self.offset += count as u64;
    }

    /// Returns the next byte, or `None` at the end.
    pub(crate) fn byte(&mut self) -> Result<Option<u8>, ErrorKind> {
        let byte = self.peek()?.first().copied();
        if byte.is_some() {
            self.taken += 1;
            self.offset += 1;
        }
        Ok(byte)
    }

    /// Appends the next `count` bytes, or fewer at the end.
    pub(crate) fn bytes(&mut self, count: usize, into: &mut Vec<u8>) -> Result<(), ErrorKind> {
        let wanted = into.len() + count;
        while into.len() < wanted {
            let there = self.peek()?.len();
            if there == 0 {
                break;
            }
            self.take(there.min(wanted - into.len()), into);
        }
        Ok(())
    }

    /// Appends a line without its newline. Returns false if the newline is missing, and fails if
    /// the line has more than `max` bytes.
    pub(crate) fn line(&mut self, max: usize, into: &mut Vec<u8>) -> Result<bool, ErrorKind> {
        loop {
            let there = self.peek()?;
            let end = there.iter().position(|byte| *byte == b'\n');
            let count = end.unwrap_or(there.len());
            if there.is_empty() {
                return Ok(false);
            }
            crate::Limits::check("bytes of a line", into.len() + count, max)?;
            self.take(count, into);
            if end.is_some() {
                self.byte()?;
                return Ok(true);
            }
        }
    }
}
