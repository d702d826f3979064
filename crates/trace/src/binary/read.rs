//! The reader of the binary codec.

use super::{MAGIC, NUMBERED, OTHER_SEQ, OTHER_TIME, SHORT, TAGS, checksum};
use crate::error::{ErrorKind, Place};
use crate::fields::{FieldReader, Item, Tag, distinct, read_item};
use crate::input::{Input, Source};
use crate::limits::Limits;
use crate::record::{VERSION, Value};
use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::journal::Subject;
use asx_kernel::time::Time;

/// Decodes blocks into records.
#[derive(Debug)]
pub(crate) struct BinaryReader<S> {
    input: Input<S>,
    block: Block,
    /// The number of blocks begun.
    blocks: u64,
    checksum: u64,
    /// The position of the last record or error.
    at: u64,
}

impl<S: Source> BinaryReader<S> {
    /// Creates a reader at the start of the file.
    pub(crate) fn new(input: Input<S>, limits: Limits) -> BinaryReader<S> {
        BinaryReader { input, block: Block::new(limits), blocks: 0, checksum: 0, at: 0 }
    }

    /// Returns the position of the last record or error.
    pub(crate) fn place(&self) -> Place {
        Place::Byte(self.at)
    }

    /// Reads the magic bytes and the version.
    pub(crate) fn preamble(&mut self) -> Result<(), ErrorKind> {
        for wanted in MAGIC {
            self.at = self.input.offset;
            let byte = self.input.byte()?.ok_or(ErrorKind::Truncated)?;
            if byte != wanted {
                return Err(ErrorKind::Magic);
            }
        }
        self.at = self.input.offset;
        let version = u64::from(self.input.byte()?.ok_or(ErrorKind::Truncated)?);
        if version == VERSION { Ok(()) } else { Err(ErrorKind::Version { version }) }
    }

    /// Reads the next item.
    pub(crate) fn next(&mut self) -> Result<Item, ErrorKind> {
        if self.block.is_empty() {
            self.load()?;
        }
        let start = self.block.offset();
        let item = self.block.item();
        self.at = if item.is_ok() { start } else { self.block.offset() };
        item
    }

    /// Checks that the input is at its end.
    pub(crate) fn finish(&mut self) -> Result<(), ErrorKind> {
        self.at = self.block.offset();
        if !self.block.is_empty() {
            return Err(ErrorKind::AfterEnd);
        }
        self.at = self.input.offset;
        match () {
            () if self.block.cut => Err(ErrorKind::Truncated),
            () if self.input.is_at_end()? => Ok(()),
            () => Err(ErrorKind::AfterEnd),
        }
    }

    /// Loads the next block. A truncated block is loaded as far as possible: it may hold complete
    /// records.
    fn load(&mut self) -> Result<(), ErrorKind> {
        self.at = self.input.offset;
        if self.block.cut {
            return Err(ErrorKind::Truncated);
        }
        let length = self.length()?;
        let max = self.block.limits.block;
        Limits::check("bytes of a block", usize::try_from(length).unwrap_or(usize::MAX), max)?;
        let block = &mut self.block;
        (block.base, block.at) = (self.input.offset, 0);
        block.payload.clear();
        self.input.bytes(length as usize, &mut block.payload)?;
        let mut sum = Vec::with_capacity(8);
        self.input.bytes(8, &mut sum)?;
        match <[u8; 8]>::try_from(sum) {
            Ok(sum) => {
                self.checksum = checksum(self.checksum, &block.payload);
                if self.checksum != u64::from_le_bytes(sum) {
                    return Err(ErrorKind::Checksum { block: self.blocks });
                }
            }
            Err(_) => block.cut = true,
        }
        self.blocks += 1;
        if self.block.is_empty() {
            self.at = self.input.offset;
            return Err(ErrorKind::Truncated);
        }
        Ok(())
    }

    fn length(&mut self) -> Result<u64, ErrorKind> {
        let mut length = 0;
        for shift in (0..28).step_by(7) {
            let Some(byte) = self.input.byte()? else {
                self.at = self.input.offset;
                return Err(ErrorKind::Truncated);
            };
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let wanted = "a block that is not empty";
                return if length > 0 { Ok(length) } else { Err(ErrorKind::Syntax { wanted }) };
            }
        }
        Err(ErrorKind::Limit { what: "bytes of a block", max: self.block.limits.block })
    }
}

/// The current block, and the decoder state that the records so far have established.
#[derive(Debug)]
struct Block {
    limits: Limits,
    payload: Vec<u8>,
    at: usize,
    /// The offset of the payload in the file.
    base: u64,
    /// Whether the file ends inside this block.
    cut: bool,
    texts: Vec<String>,
    next_seq: u64,
    time: u64,
}

impl Block {
    fn new(limits: Limits) -> Block {
        let payload = Vec::new();
        let texts = Vec::new();
        Block { limits, payload, at: 0, base: 0, cut: false, texts, next_seq: 0, time: 0 }
    }

    fn is_empty(&self) -> bool {
        self.at == self.payload.len()
    }

    fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    fn item(&mut self) -> Result<Item, ErrorKind> {
        let byte = self.byte()?;
        let own = TAGS.iter().find(|(own, _)| *own == byte);
        let tag = own.map_or(Tag::Event(byte.into()), |(_, tag)| *tag);
        read_item(tag, self)
    }

    fn bytes(&mut self, count: u64) -> Result<&[u8], ErrorKind> {
        let start = self.at;
        if count > (self.payload.len() - start) as u64 {
            self.at = self.payload.len();
            return Err(match self.cut {
                true => ErrorKind::Truncated,
                false => ErrorKind::Syntax { wanted: "a record that ends inside its block" },
            });
        }
        self.at += count as usize;
        Ok(&self.payload[start..self.at])
    }

    fn byte(&mut self) -> Result<u8, ErrorKind> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn varint(&mut self) -> Result<u64, ErrorKind> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ErrorKind::Syntax { wanted: "a number below 2^64" })
    }

    /// Reads a difference and returns the sum.
    fn step(&mut self, from: u64) -> Result<u64, ErrorKind> {
        let step = self.varint()?;
        Ok(from.wrapping_add(step >> 1 ^ (step & 1).wrapping_neg()))
    }

    fn string(&mut self) -> Result<&str, ErrorKind> {
        let number = self.varint()?;
        if let Some(index) = number.checked_sub(1) {
            let known = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
            return known.map(String::as_str).ok_or(ErrorKind::Reference { number });
        }
        let length = self.varint()?;
        let max = self.limits.text;
        Limits::check("bytes of a text", usize::try_from(length).unwrap_or(usize::MAX), max)?;
        self.bytes(length)?;
        let start = self.at - length as usize;
        let text = core::str::from_utf8(&self.payload[start..self.at]);
        let text = text.map_err(|_| ErrorKind::Utf8)?;
        if text.len() <= SHORT && self.texts.len() < NUMBERED {
            self.texts.push(text.into());
        }
        Ok(text)
    }
}

impl FieldReader for Block {
    fn number(&mut self, _: &'static str) -> Result<u64, ErrorKind> {
        self.varint()
    }

    fn hash(&mut self, _: &'static str) -> Result<u64, ErrorKind> {
        let bytes = self.bytes(8)?.try_into().unwrap_or_default();
        Ok(u64::from_le_bytes(bytes))
    }

    fn maybe(&mut self, field: &'static str) -> Result<Option<u64>, ErrorKind> {
        Ok(if self.flag(field)? { Some(self.varint()?) } else { None })
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, ErrorKind> {
        match self.byte()? {
            byte @ 0..=1 => Ok(byte == 1),
            _ => Err(ErrorKind::Range { field }),
        }
    }

    fn text(&mut self, _: &'static str) -> Result<&str, ErrorKind> {
        self.string()
    }

    fn pairs(&mut self, field: &'static str) -> Result<Vec<(String, Value)>, ErrorKind> {
        let count = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        Limits::check("number of pairs", count, self.limits.pairs)?;
        let mut pairs = Vec::with_capacity(count);
        for _ in 0..count {
            let name = self.string()?.into();
            let value = match self.byte()? {
                0 => Value::Null,
                flag @ 1..=2 => Value::Flag(flag == 2),
                3 => Value::Number(self.varint()?),
                4 => Value::Text(self.string()?.into()),
                _ => return Err(ErrorKind::Range { field }),
            };
            pairs.push((name, value));
        }
        distinct(&pairs)?;
        Ok(pairs)
    }

    fn head(&mut self) -> Result<(u64, Time, Subject), ErrorKind> {
        let bits = self.byte()?;
        if bits > 0x3f {
            return Err(ErrorKind::Range { field: "subject" });
        }
        let seq = if bits & OTHER_SEQ == 0 { self.next_seq } else { self.step(self.next_seq)? };
        let time = if bits & OTHER_TIME == 0 { self.time } else { self.step(self.time)? };
        (self.next_seq, self.time) = (seq.wrapping_add(1), time);
        let mut id = |bit| Ok(if bits & bit == 0 { None } else { Some(self.varint()?) });
        let subject = Subject { task: id(1)?, region: id(2)?, timer: id(4)?, channel: id(8)? };
        Ok((seq, Time::from_nanos(time), subject))
    }
}
